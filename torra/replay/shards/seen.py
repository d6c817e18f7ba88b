"""Turns the result of a tick or a trade into an observation: plain values for torra.evaluation.

Nothing is computed that the tick did not compute; a number is only moved to its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.contracts import VECTORS
from agents.debate.deliberation import Deliberation
from torra.clock import time_of
from torra.desk.journal_ticks import consulted, opinions, own_veto, swarm_seen
from torra.evaluation.observations import (
    SwarmObservation,
    TickObservation,
    TradeObservation,
    four,
    leaning,
    side_of,
)
from torra.tick.debate import SHADOW
from torra.tick.record import TickResult
from torra.tick.tick_record import SwarmRecord


def tick_seen(seen: TickResult, elapsed_ms: float) -> TickObservation:
    """Return the observation of a finished tick, which took `elapsed_ms` of real time."""
    inputs, debated, saved = seen.inputs, seen.debated, seen.saved
    said, counted = debated.deliberation, debated.counted
    ruling, rule = counted.ruling, counted.rule_ruling
    lessons: Mapping[str, Any] = inputs.lessons.numbers
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
        debate=four(said.debate),
        adjustments=four(said.adjustments),
        scores=four({vector: debated.gated[vector]["score"] for vector in VECTORS}),
        l1_consensus=saved.l1_consensus,
        consensus=saved.consensus,
        l1_verdict=saved.l1_verdict,
        verdict=saved.verdict,
        action=seen.action.name,
        reason=seen.action.reason,
        source_type=str(said.source_type),
        multiplier=ruling.multiplier,
        veto=ruling.veto,
        rule_multiplier=rule.multiplier,
        rule_veto=own_veto(rule.veto, rule.reasons),
        conviction=counted.conviction_for(side_of(saved.verdict, saved.consensus)),
        calls=len(said.calls),
        cost_usd=said.cost_usd,
        regime=inputs.bundle.regime.name,
        session=str(inputs.memory.get("session") or ""),
        state=str(inputs.memory.get("current_markov_state") or ""),
        shadow=SHADOW in said.flags,
        opinions=opinions(said.reports, said.failures),
        elapsed_ms=elapsed_ms,
        lessons_r=leaning(lessons.get("side", ""), lessons.get("mean_r")),
        **consulted(said.consulted),
        swarm=_swarm(inputs.timeframe, said),
    )


def _swarm(timeframe: str, debate: Deliberation) -> SwarmObservation | None:
    if debate.swarm is None:
        return None
    swarm = SwarmRecord.parse(debate.swarm.as_json())
    return swarm_seen(timeframe, swarm, debate.rule_ruling, debate.ruling)


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
