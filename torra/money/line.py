"""The line of an account's results: closed trades added up, and what was open at each moment.

Nothing of it is stored, so nothing can be missing: it is computed from the fills of the signals and
the stored bars at the moments that are asked for. A trade whose end became known late stands where
it ended. Open positions are valued at the close that had come last, at the symbol's terms of now.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torra.clock import iso, parse
from torra.money.open_positions import PAPER, Setups, bar_of, terms_of
from torra.store import bars as bar_table
from torra.store.standings import WarmUps
from torra.store.trade import signals as signal_table
from torra.store.trade.positions import as_position
from torra.verdict.trade_outcome import value_at_bid

if TYPE_CHECKING:
    from instance_database import Database

POINTS: Final = 120
"""Moments of a line: as many as a page can show apart."""

PERIODS: Final[Mapping[str, timedelta | None]] = {
    "today": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=30), "all": None,
}  # fmt: skip
"""How far back a line goes; None: from the first closed trade on."""

BEFORE: Final = timedelta(minutes=1)
"""How long before its first trade a line begins that goes back to all: at zero."""


class LinePoint(NamedTuple):
    """One moment: closed trades added up since the beginning of all, and with what was open then.

    `whole` is None where something was open of which no price or no terms are known.
    """

    at: datetime
    closed: float
    whole: float | None


def moments(first: datetime, now: datetime, points: int = POINTS) -> list[datetime]:
    """Return so many moments from one to another, evenly spread, both among them."""
    if first >= now:
        return [now]
    step = (now - first) / (points - 1)
    return [*(first + step * number for number in range(points - 1)), now]


def line(
    ends: Sequence[tuple[str, float]], held: Mapping[datetime, float | None]
) -> tuple[LinePoint, ...]:
    """Return the line of an account's trades, (closed_at, profit) oldest first, at some moments.

    `held` is what the open positions were worth at each of them.
    """
    times = [end for end, _ in ends]
    sums = [0.0, *accumulate(profit for _, profit in ends)]
    found = []
    for at, open_ in held.items():
        closed = sums[bisect_right(times, iso(at))]
        found.append(LinePoint(at, closed, None if open_ is None else closed + open_))
    return tuple(found)


class OpenThen:
    """What the positions of a desk were worth at moments of the past, by account.

    `setups` are the desk's instances by name; positions of others have no known terms.
    """

    def __init__(self, database: Database, setups: Setups) -> None:
        self._database = database
        self._setups = setups
        self._warm_ups = WarmUps(database)
        self._held = [
            row
            for row in database.openings()
            if row["opened_at"] is not None and not self._warm_ups.made(*bar_of(row))
        ]

    def worth(self, at: datetime) -> dict[str, float | None]:
        """Return by account what closing everything then would have brought; None: not known."""
        found: dict[str, list[float | None]] = {}
        for row in self._open(at):
            found.setdefault(row["bridge"] or PAPER, []).append(self._result(row, at))
        return {
            account: None if None in some else math.fsum(x for x in some if x is not None)
            for account, some in found.items()
        }

    def opened(self) -> dict[str, str]:
        """Return by account when the first of its open positions was filled (ISO)."""
        newest_first = sorted(self._held, key=itemgetter("opened_at"), reverse=True)
        return {row["bridge"] or PAPER: row["opened_at"] for row in newest_first}

    def _open(self, at: datetime) -> Iterator[Mapping[str, Any]]:
        """Yield the openings that were positions at a moment; an instance has one at a time.

        None is of the warm-up: its trades are no result.
        """
        moment = iso(at)
        for name in sorted(self._setups):
            row = signal_table.next_closed(self._database, name, moment)
            if row is None or row["opened_at"] is None or row["opened_at"] > moment:
                continue
            if not self._warm_ups.made(*bar_of(row)):
                yield row
        yield from (row for row in self._held if row["opened_at"] <= moment)

    def _result(self, row: Mapping[str, Any], at: datetime) -> float | None:
        item, spec = terms_of(self._setups, row["instance"])
        if item is None or spec is None or row["price"] is None:
            return None
        price = bar_table.newest_close(self._database, item.id, item.timeframes, at)
        if price is None:
            return None
        return value_at_bid(as_position(row), price, spec).profit


def begin_of(period: str, now: datetime, first: str) -> datetime:
    """Return the first moment of a period (a key of PERIODS) of an account's line.

    `first` is the earliest moment (ISO) that is known of its trades.
    """
    back = PERIODS[period]
    # a moment earlier, where nothing was won or lost yet
    return min(parse(first) - BEFORE, now) if back is None else now - back
