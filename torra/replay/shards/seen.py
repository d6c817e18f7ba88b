"""Turns the result of a tick or a trade into an observation: plain values for torra.evaluation.

Nothing is computed that the tick did not compute; a number is only moved to its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.contracts import VECTORS, AgentReport
from agents.debate.deliberation import Deliberation
from agents.evidence import trust
from agents.registry import AGENTS
from torra.clock import time_of
from torra.desk.journal_ticks import focus_of, own_veto, silent, swarm_seen, weights_of
from torra.evaluation.observations import (
    Opinion,
    SwarmSeen,
    TickSeen,
    TradeSeen,
    four,
    leaning,
    side_of,
)
from torra.tick.debate import SHADOW
from torra.tick.record import TickResult


def tick_seen(seen: TickResult, elapsed_ms: float) -> TickSeen:
    """Return the observation of a finished tick, which took `elapsed_ms` of real time."""
    inputs, debated, saved = seen.inputs, seen.debated, seen.saved
    said, counted = debated.deliberation, debated.counted
    ruling, rule = counted.ruling, counted.rule_ruling
    lessons: Mapping[str, Any] = inputs.lessons.numbers
    return TickSeen(
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
        opinions=opinions(said),
        elapsed_ms=elapsed_ms,
        lessons_r=leaning(lessons.get("side", ""), lessons.get("mean_r")),
        **_consulted(said),
        swarm=_swarm(inputs.timeframe, said),
    )


def _swarm(timeframe: str, said: Deliberation) -> SwarmSeen | None:
    found = said.swarm
    if found is None:
        return None
    told = {
        "regime": found.directive.as_json(),
        "trust": found.directive.trusted,
        "storm": found.storm,
        "judgement": None if found.worth is None else found.worth.as_json(),
        "thin": found.thin,
    }
    return swarm_seen(timeframe, told, said.rule_ruling.reasons, said.ruling.veto_sides)


def _consulted(said: Deliberation) -> dict[str, Any]:
    """Return what a tick tells of the trader: nothing where it was not asked."""
    told = said.consulted
    if told is None:
        return {}
    declined = None if told.report is None else told.report.declined
    return {"consulted": told.side, "tier": told.tier, "declined": declined}


def opinions(said: Deliberation) -> tuple[Opinion, ...]:
    """Return the opinion of each agent, abstainers and failures included."""
    heard = tuple(_opinion(report) for report in said.reports)
    return (*heard, *map(silent, said.failures))


def _opinion(report: AgentReport) -> Opinion:
    word = report.ruling
    return Opinion(
        agent_id=report.agent_id,
        kind=AGENTS[report.agent_id].role.kind,
        adjustments=tuple(report.adjustments.get(vector) for vector in VECTORS),
        focus=focus_of(report.agent_id),
        trust=trust(report),
        confidence=report.confidence,
        abstained=report.abstained,
        multiplier=1.0 if word is None else word.multiplier,
        veto=word is not None and word.veto,
        winner=report.winner or None,
        weights=weights_of(report.weights),
        horizon=report.horizon or None,
        anomaly=report.anomaly or None,
        pattern=report.pattern or None,
    )


def trade_seen(row: Mapping[str, Any]) -> TradeSeen:
    """Return the observation of a closed trade; `row` is that of its opening signal."""
    return TradeSeen(
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
