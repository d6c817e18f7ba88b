"""What the open positions of each account may still win or lose, and the line of its results.

A position is valued at the stored close that had come last, at the symbol's terms of now. Nothing
of the line is stored, so nothing can be missing: it is computed from the fills of the signals and
the stored bars at the moments that are asked for. A trade whose end became known late stands where
it ended.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torra.clock import iso, parse
from torra.config import Instance, Profile, SymbolSpec
from torra.errors import ConfigError
from torra.store import bars as bar_table
from torra.store.standings import WarmUps
from torra.store.trade import signals as signal_table
from torra.store.trade.positions import as_position
from torra.verdict.position_size import worth
from torra.verdict.risk_engine import Position
from torra.verdict.trade_outcome import gain, planned_risk, value_at_bid

if TYPE_CHECKING:
    from instance_database import Database

PAPER: Final = "paper"

POINTS: Final = 120
"""Moments of a line: as many as a page can show apart."""

PERIODS: Final[Mapping[str, timedelta | None]] = {
    "today": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=30), "all": None,
}  # fmt: skip
"""How far back a line goes; None: from the first closed trade on."""

BEFORE: Final = timedelta(minutes=1)
"""How long before its first trade a line begins that goes back to all: at zero."""

Setups = Mapping[str, tuple[Instance, Profile]]
"""The instances of a desk by name, each with the profile that it runs with."""


@dataclass(frozen=True, slots=True)
class OpenNow:
    """The open positions of one account, and its openings that are out as `orders`.

    `known` of the `positions` have known terms, `valued` have a price besides. `result` is what
    closing the valued ones would bring. `risk` is what positions and orders of known terms would
    lose against their entries (an order's is the planned one) if every stop filled at its price, 0
    where a stop already lies beyond the entry, and `risk_r` the same in planned R. None where there
    is none to add up.
    """

    positions: int = 0
    valued: int = 0
    known: int = 0
    result: float | None = None
    risk: float | None = None
    risk_r: float | None = None
    orders: int = 0
    warm_up: float = 0.0
    """What of `result` is of positions that the warm-up opened."""


class LinePoint(NamedTuple):
    """One moment: closed trades added up since the beginning of all, and with what was open then.

    `whole` is None where something was open of which no price or no terms are known.
    """

    at: datetime
    closed: float
    whole: float | None


def open_now(database: Database, setups: Setups, now: datetime) -> dict[str, OpenNow]:
    """Return positions and orders by account."""
    by_account: dict[str, tuple[list[Position], list[Position]]] = {}
    warm_up: set[str] = set()
    warm_ups = WarmUps(database)
    for one in database.positions():
        opening = database.signal(one.signal_id)
        if opening is None:
            continue
        # where it was opened, whatever desk.json says of its instance now
        positions, orders = by_account.setdefault(str(opening["bridge"] or PAPER), ([], []))
        (orders if opening["price"] is None else positions).append(one)
        if warm_ups.made(*bar_of(opening)):
            warm_up.add(one.signal_id)
    accounts = {}
    for account, (positions, orders) in by_account.items():
        results = {one.signal_id: _result(database, setups, one, now) for one in positions}
        risks = [_risk(setups, one) for one in (*positions, *orders)]
        valued = [value for value in results.values() if value is not None]
        accounts[account] = OpenNow(
            positions=len(positions),
            valued=len(valued),
            known=sum(risk is not None for risk, _ in risks[: len(positions)]),
            result=_sum(valued),
            risk=_sum(risk for risk, _ in risks),
            risk_r=_sum(None if risk is None else risk_r or 0.0 for risk, risk_r in risks),
            orders=len(orders),
            warm_up=math.fsum(results[sid] or 0.0 for sid in results if sid in warm_up),
        )
    return accounts


class OpenThen:
    """What the positions of a desk were worth at moments of the past, by account.

    Positions of an instance that is not among the desk's have no known terms.
    """

    def __init__(self, database: Database, setups: Setups) -> None:
        self._database = database
        self._setups = setups
        self._warm_ups = WarmUps(database)
        self._openings = [row for row in database.openings() if self._counts(row)]

    def worth(self, at: datetime) -> dict[str, float | None]:
        """Return by account what closing everything then would have brought; None: not known."""
        by_account: dict[str, list[float | None]] = {}
        for row in self._open(iso(at)):
            filled = row["price"] is not None
            result = _result(self._database, self._setups, as_position(row), at) if filled else None
            by_account.setdefault(row["bridge"] or PAPER, []).append(result)
        return {
            account: None if None in results else _sum(results)
            for account, results in by_account.items()
        }

    def opened(self) -> dict[str, str]:
        """Return by account when the first of its open positions was filled (ISO)."""
        newest_first = sorted(self._openings, key=lambda row: str(row["opened_at"]), reverse=True)
        return {row["bridge"] or PAPER: row["opened_at"] for row in newest_first}

    def _open(self, moment: str) -> Iterator[Mapping[str, Any]]:
        """Yield the openings that were positions at a moment; an instance has one at a time."""
        ended = (
            signal_table.next_closed(self._database, name, moment) for name in sorted(self._setups)
        )
        for row in (*ended, *self._openings):
            if row is not None and self._counts(row) and row["opened_at"] <= moment:
                yield row

    def _counts(self, row: Mapping[str, Any]) -> bool:
        """Return whether an opening was filled; those of the warm-up are no result."""
        return row["opened_at"] is not None and not self._warm_ups.made(*bar_of(row))


def line(
    ends: Sequence[tuple[str, float]], values: Mapping[datetime, float | None]
) -> tuple[LinePoint, ...]:
    """Return the line of an account's trades, (closed_at, profit) oldest first, at some moments.

    `values` is what the open positions were worth at each of them.
    """
    times = [end for end, _ in ends]
    sums = [0.0, *accumulate(profit for _, profit in ends)]
    points = []
    for at, open_ in values.items():
        closed = sums[bisect_right(times, iso(at))]
        points.append(LinePoint(at, closed, None if open_ is None else closed + open_))
    return tuple(points)


def moments(period: str, now: datetime, first: str, points: int = POINTS) -> list[datetime]:
    """Return the moments of an account's line over a period (a key of PERIODS), evenly spread.

    `first` is the earliest moment (ISO) that is known of its trades.
    """
    back = PERIODS[period]
    # a moment earlier, where nothing was won or lost yet
    begin = parse(first) - BEFORE if back is None else now - back
    if begin >= now:
        return [now]
    step = (now - begin) / (points - 1)
    return [*(begin + step * number for number in range(points - 1)), now]


def bar_of(signal: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return instance, timeframe and time of the bar that decided a signal."""
    return signal["instance"], signal["timeframe"], signal["bar_time"]


def spec_of(profile: Profile, symbol: str) -> SymbolSpec | None:
    """Return a symbol's trading terms, None where a profile has none."""
    try:
        return profile.symbol(symbol)
    except ConfigError:
        return None


def _terms(setups: Setups, instance: str) -> tuple[Instance, SymbolSpec] | None:
    """Return an instance of the desk with its symbol's terms; None where they are not known."""
    item, profile = setups.get(instance, (None, None))
    spec = spec_of(profile, item.symbol) if item and profile else None
    return (item, spec) if item and spec else None


def _result(database: Database, setups: Setups, position: Position, at: datetime) -> float | None:
    """Return what closing a position would bring; None without its terms or a price."""
    terms = _terms(setups, position.instance)
    if terms is None:
        return None
    item, spec = terms
    price = bar_table.newest_close(database, item.id, item.timeframes, at)
    return None if price is None else value_at_bid(position, price, spec).profit


def _risk(setups: Setups, position: Position) -> tuple[float | None, float | None]:
    """Return the loss at the stop, in money and in planned R; None without its terms."""
    terms = _terms(setups, position.instance)
    if terms is None:
        return None, None
    distance = max(0.0, -gain(position.side, position.entry, position.stop))
    whole = planned_risk(position.planned_stop, position.target)
    return worth(distance, position.lots, terms[1]), distance / whole if whole else None


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum of what is known; None without any."""
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None
