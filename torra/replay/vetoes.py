"""Follows vetoed openings: what each would have come to, with its own levels, on the bars after it.

The gate's worth is loss avoided minus gain forgone. An opening that a veto took away (GATE_VETO,
GATE_CANNOT_OPEN) is made on the paper bridge at the next bar's open, with the levels of its tick,
and followed to its stop or its target. In a real arm an opposite verdict would close it earlier, so
this is what the trade itself was worth. When the same verdict is vetoed on several ticks in a row,
the first is the opening; the others are the same decision asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pandas as pd

from agents.contracts import OfficerReason
from torra.bridges import paper
from torra.config import SymbolSpec
from torra.evaluation.gate_value import GATE, TRADER, Vetoer
from torra.evaluation.observations import TickObservation
from torra.evaluation.paired import Key
from torra.tick.bar_window import as_bars
from torra.tick.vetoed import VETOED
from torra.verdict.order_levels import Levels, Side, levels
from torra.verdict.sentiment_rules import SIDES
from torra.words.deny_reasons import DenyReason

LOTS: Final = 1.0
"""Any size will do: the result is in R."""

LOOK: Final = 500
"""Bars that are looked through at a time for the end of a trade."""


def vetoed(ticks: Sequence[TickObservation]) -> Iterator[TickObservation]:
    """Yield the ticks on which an opening was first taken away, in their order."""
    standing: dict[str, str] = {}
    for tick in ticks:
        if tick.verdict == "HOLD" or tick.reason not in VETOED:
            # The row has ended: the next veto is a decision of its own.
            standing.pop(tick.instance, None)
            continue
        if standing.get(tick.instance) != tick.verdict:
            yield tick
        standing[tick.instance] = tick.verdict


def whose(ticks: Sequence[TickObservation]) -> dict[Key, Vetoer]:
    """Return who took away the opening of each tick on which one was taken away.

    Where a veto of an earlier tick still holds, whoever made the last one on that side.
    """
    held: dict[tuple[str, str], Vetoer] = {}
    found: dict[Key, Vetoer] = {}
    for tick in ticks:
        held |= {(tick.instance, side): by for side in SIDES if (by := vetoer(tick, side))}
        if tick.reason not in VETOED:
            continue
        found[tick.key] = GATE
        if tick.reason == DenyReason.TRADER_DECLINED:
            found[tick.key] = TRADER
        elif tick.reason == DenyReason.GATE_VETO and tick.swarm is not None:
            found[tick.key] = held.get((tick.instance, tick.verdict), GATE)
    return found


def vetoer(tick: TickObservation, side: str) -> Vetoer | None:
    """Return who vetoes openings of a side on a tick; None where nobody does."""
    told = tick.swarm
    holds = told is not None and OfficerReason.JUDGE_HOLD in told.reasons
    if tick.veto:
        own = tick.rule_veto or any(one.kind == "gate" and one.veto for one in tick.opinions)
        return "JUDGE_HOLD" if holds and not own else GATE
    if told is None or tick.shadow or side not in told.veto_sides:
        return None
    return "NEGATIVE_EV" if told.vetoes == side else "CROWDED"


def would_have_come_to(tick: TickObservation, bars: pd.DataFrame, spec: SymbolSpec) -> float | None:
    """Return the result, in R, of the opening that a tick asked for; None when none could be made.

    `bars` are those of the instance's shortest timeframe. None too where the bars end before the
    trade does.
    """
    side: Side = "BUY" if tick.verdict == "BUY" else "SELL"
    found = levels(side, tick.close, tick.atr, spec)
    if not isinstance(found, Levels):
        return None
    orders: Sequence[paper.PaperOrder] = (
        paper.PaperOrder(
            "veto", "open", side, LOTS, found.stop, found.target, tick.close_time, entry=found.entry
        ),
    )
    position: paper.PaperPosition | None = None
    at = int(bars.index.searchsorted(pd.Timestamp(tick.close_time)))
    while at < len(bars) and (orders or position):
        path = as_bars(bars.iloc[at : at + LOOK])
        result, _ = paper.advance_all(
            orders, position, path, cursor=None, spread=spec.spread, spec=spec
        )
        orders, position = result.orders, result.position
        for event in result.events:
            if event.kind in ("STOPPED", "TARGET"):
                return event.r_multiple
        at += LOOK
    return None
