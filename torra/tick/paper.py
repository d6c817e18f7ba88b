"""Paper trading between two ticks: takes orders and position through the bars that went by.

`path` returns the bars since the paper bridge's cursor. `advance` takes the instance's orders and
its position through them, books what happened and moves the cursor; it joins the tick's
transaction. A store that fails raises what it raises, and then the cursor stays where it was.
torra.bridges.paper reads the bars, signal_bridge books the events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import signal_bridge
from torra.bridges import paper
from torra.bridges.guards import limits
from torra.clock import duration
from torra.config import Instance, Profile, SymbolSpec
from torra.tick.bar_window import Window
from torra.tick.tick_database import TickDatabase


def path(
    instance: Instance, window: Window, cursor: datetime | None, as_of: datetime
) -> list[paper.Bar]:
    """Return the bars of the shortest timeframe that the paper bridge has not lived through."""
    # Two timeframes close at the same moment: the first tick of the two has lived these bars.
    if cursor is None or cursor >= as_of - duration(instance.shortest):
        return []
    return window.path(instance.shortest, cursor, as_of)


def advance(
    instance: Instance,
    profile: Profile,
    database: TickDatabase,
    bars: Sequence[paper.Bar],
    cursor: datetime | None,
    as_of: datetime,
) -> None:
    """Live through the bars; a bridge without a cursor begins before the newest of them."""
    if cursor is None:
        database.set_paper_cursor(instance.id, as_of - duration(instance.shortest))
        return
    # Once more, right before they fill: between its publication and its bar lies a while.
    check = signal_bridge.set_aside(database, ("PUBLISHED", "WAITING"), instance.id)
    position = database.paper_position(instance.id)
    spec = profile.symbol(instance.symbol)
    result, reached = paper.advance_all(
        [_order(row, profile, spec) for row in database.paper_orders(instance.id, check.whole)],
        paper.PaperPosition.of(position) if position else None,
        bars,
        cursor=cursor,
        spread=spec.spread,
        spec=spec,
    )
    for event in result.events:
        signal_bridge.apply_event(database, event, as_of)
    # The cursor never goes back, or bars would fill the same orders twice.
    if reached is not None and reached > cursor:
        database.set_paper_cursor(instance.id, reached)


def _order(row: Mapping[str, Any], profile: Profile, spec: SymbolSpec) -> paper.PaperOrder:
    """Return a stored signal as the paper bridge takes it, with the limits of its moment.

    It fills at the next bar's open, not now, so the price may have gone as far as the collar lets.
    """
    known = {name: value for name, value in row.items() if name != "atr"}
    if row["kind"] == "open" and row["atr"]:
        allowed = limits(
            row["atr"],
            spec.digits,
            spread_share=profile.gate.max_spread_atr,
            deviation_share=profile.risk.price_collar_atr,
        )
        known |= allowed._asdict()
    return paper.PaperOrder(**known)
