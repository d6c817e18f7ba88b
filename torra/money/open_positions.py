"""What the open positions and orders of each account may still win or lose.

The price is that of the newest stored close.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from torra.config import Instance, Profile, SymbolSpec
from torra.errors import ConfigError
from torra.store import bars as bar_table
from torra.store.standings import WarmUps
from torra.verdict.position_size import worth
from torra.verdict.risk_engine import Position
from torra.verdict.trade_outcome import gain, planned_risk, value_at_bid

if TYPE_CHECKING:
    from instance_database import Database

PAPER: Final = "paper"

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


class _Stake(NamedTuple):
    """One position or order: what closing it would bring, its loss at the stop, that in planned R.

    None where its terms are not known, for `result` also where there is no price.
    """

    result: float | None
    risk: float | None
    risk_r: float | None
    warm_up: bool = False


def open_now(database: Database, setups: Setups, now: datetime) -> dict[str, OpenNow]:
    """Return positions and orders by account; `setups` are the desk's instances by name."""
    held: dict[str, tuple[list[_Stake], list[_Stake]]] = {}
    warm_ups = WarmUps(database)
    for one in database.positions():
        opening = database.signal(one.signal_id)
        if opening is None:
            continue
        # where it was opened, whatever desk.json says of its instance now
        where = opening["bridge"] if isinstance(opening["bridge"], str) else ""
        positions, orders = held.setdefault(where or PAPER, ([], []))
        kind = orders if opening["price"] is None else positions
        stake = _stake(database, setups, one, now)
        kind.append(stake._replace(warm_up=warm_ups.made(*bar_of(opening))))
    return {where: _together(*stakes) for where, stakes in held.items()}


def _stake(
    database: Database,
    setups: Setups,
    held: Position,
    now: datetime,
) -> _Stake:
    item, spec = terms_of(setups, held.instance)
    if item is None or spec is None:
        return _Stake(None, None, None)
    distance = max(0.0, -gain(held.side, held.entry, held.stop))
    whole = planned_risk(held.planned_stop, held.target)
    risk = worth(distance, held.lots, spec)
    price = bar_table.newest_close(database, item.id, item.timeframes, now)
    result = None if price is None else value_at_bid(held, price, spec).profit
    return _Stake(result, risk, distance / whole if whole else None)


def _together(positions: Sequence[_Stake], orders: Sequence[_Stake]) -> OpenNow:
    results = [one.result for one in positions if one.result is not None]
    known = [one for one in (*positions, *orders) if one.risk is not None]
    return OpenNow(
        positions=len(positions),
        valued=len(results),
        known=sum(one.risk is not None for one in positions),
        result=math.fsum(results) if results else None,
        risk=math.fsum(one.risk or 0.0 for one in known) if known else None,
        risk_r=math.fsum(one.risk_r or 0.0 for one in known) if known else None,
        orders=len(orders),
        warm_up=math.fsum(one.result or 0.0 for one in positions if one.warm_up),
    )


def bar_of(signal: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return instance, timeframe and time of the bar that decided a signal."""
    return signal["instance"], signal["timeframe"], signal["bar_time"]


def terms_of(setups: Setups, instance: str) -> tuple[Instance | None, SymbolSpec | None]:
    """Return an instance of the desk and its symbol's trading terms, as far as they are known."""
    item, profile = setups.get(instance, (None, None))
    return item, spec_of(profile, item.symbol) if item and profile else None


def spec_of(profile: Profile, symbol: str) -> SymbolSpec | None:
    """Return a symbol's trading terms, None where a profile has none."""
    try:
        return profile.symbol(symbol)
    except ConfigError:
        return None
