"""Turns the result of a tick or a trade into an observation: plain values for torra.evaluation.

Nothing is computed that the tick did not compute; a number is only moved to its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.contracts import VECTORS
from torra.clock import time_of
from torra.desk.journal_ticks import background, common, leaning_side
from torra.evaluation.observations import TickObservation, TradeObservation, four
from torra.tick.record import TickResult


def tick_seen(seen: TickResult, elapsed_ms: float) -> TickObservation:
    """Return the observation of a finished tick, which took `elapsed_ms` of real time."""
    inputs, debated, saved = seen.inputs, seen.debated, seen.saved
    counted = debated.counted
    return TickObservation(
        instance=inputs.instance.id,
        symbol=inputs.instance.symbol,
        timeframe=inputs.timeframe,
        bar_time=inputs.bar_time,
        close_time=inputs.as_of,
        close=inputs.close,
        atr=inputs.atr,
        ath=inputs.ath_score,
        l1=four(inputs.l1),
        scores=four({vector: debated.gated[vector]["score"] for vector in VECTORS}),
        action=seen.action.name,
        reason=seen.action.reason,
        conviction=counted.conviction_for(leaning_side(saved)),
        regime=inputs.bundle.regime.name,
        elapsed_ms=elapsed_ms,
        **common(
            debated.deliberation, saved, inputs.timeframe, counted.ruling, counted.rule_ruling
        ),
        **background(inputs.memory, inputs.lessons.numbers),
    )


def trade_seen(row: Mapping[str, Any]) -> TradeObservation:
    """Return the observation of a closed trade; `row` is that of its opening signal."""
    return TradeObservation(
        instance=row["instance"],
        symbol=row["symbol"],
        timeframe=row["timeframe"],
        side=row["side"],
        decided=time_of(row["decided_at"]),
        opened=time_of(row["opened_at"]),
        closed=time_of(row["closed_at"]),
        entry=float(row["price"]),
        exit=float(row["close_price"]),
        stop=float(row["stop"]),
        target=float(row["target"]),
        lots=float(row["filled_lots"] or row["lots"]),
        r=float(row["r_multiple"]),
        profit=float(row["profit"]),
        reason=str(row["close_reason"]),
    )
