"""Stored ticks as observations: turns records into what torra.evaluation reads.

The counterpart of torra.replay.shards.seen for ticks that are stored. A number is only moved to its
place, and a tick that ran in a replay gives the same observation either way. A damaged record is
left out, never guessed at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agent_config import EXPERTS, FOCUS_WEIGHT, REGIME_BUDGET, tabled_trust
from agents.contracts import SIDES, VECTORS, AgentReport, GateReason, GateRuling, OfficerReason
from agents.debate.deliberation import Consulted
from agents.evidence import trust
from agents.registry import AGENTS
from torra.clock import duration, parse
from torra.evaluation.observations import (
    NOTHING,
    AgentOpinion,
    Four,
    SwarmObservation,
    TickObservation,
    four,
    leaning,
    side_of,
)
from torra.tick.tick_record import SwarmRecord, TickRecord

VETOES: Final = frozenset(
    (
        *(GateReason.WIDE_SPREAD, GateReason.THIN_DATA),
        *(GateReason.STALE_DATA, GateReason.SCHEDULED_EVENT),
    )
)
"""Reasons for which the gate's rules veto openings."""


def tick_of(record: TickRecord) -> TickObservation:
    """Return the observation of a stored tick."""
    debate, gate = record.deliberation, record.gate
    bar_time, shadow = parse(record.bar_time), debate.in_shadow
    lessons: Mapping[str, Any] = record.lessons.numbers if record.lessons else {}
    agreed = debate.panel.agreement(side_of(record.verdict, record.consensus))
    return TickObservation(
        instance=record.instance,
        symbol=record.symbol,
        timeframe=record.timeframe,
        bar_time=bar_time,
        close_time=bar_time + duration(record.timeframe),
        close=record.close,
        atr=record.atr,
        ath=record.ath,
        l1=four(record.l1),
        debate=four(debate.debate),
        adjustments=four(debate.adjustments),
        scores=four({vector: record.final(vector) for vector in VECTORS}),
        l1_consensus=record.l1_consensus,
        consensus=record.consensus,
        l1_verdict=record.l1_verdict,
        verdict=record.verdict,
        action=record.action,
        reason=record.reason,
        source_type=str(record.source_type),
        multiplier=gate.multiplier,
        veto=gate.veto,
        rule_multiplier=gate.rule.multiplier,
        rule_veto=own_veto(gate.rule.veto, gate.rule.reasons),
        # In shadow the tick was sized without its agents.
        conviction=1.0 if shadow else agreed.conviction,
        calls=len(record.made_calls),
        cost_usd=record.cost_usd,
        regime=record.regime.name,
        session=str(record.memory.get("session") or ""),
        state=str(record.memory.get("current_markov_state") or ""),
        shadow=shadow,
        opinions=opinions(debate.reports, debate.failures),
        elapsed_ms=record.elapsed_ms,
        lessons_r=leaning(lessons.get("side") or "", lessons.get("mean_r")),
        **consulted(debate.consulted),
        swarm=None
        if debate.swarm is None
        else swarm_seen(record.timeframe, debate.swarm, debate.rule_ruling, debate.ruling),
    )


def own_veto(veto: bool, reasons: Sequence[str]) -> bool:
    """Return whether a veto of the rules is their own: a judge's hold stands among them too."""
    own = any(reason in VETOES for reason in reasons)
    return veto and (own or OfficerReason.JUDGE_HOLD not in reasons)


def _in_order(weights: Mapping[str, float]) -> tuple[float, ...]:
    return tuple(weights[name] for name in EXPERTS if name in weights)


def swarm_seen(
    timeframe: str, swarm: SwarmRecord, rules: GateRuling, ruling: GateRuling
) -> SwarmObservation:
    """Return what a swarm came to; `rules` and `ruling` are those of the tick's deliberation.

    Reasons of the gate's own rules are left out.
    """
    regime, worth = swarm.regime, swarm.judgement
    tabled = tabled_trust(timeframe, regime.code)
    return SwarmObservation(
        budget=regime.budget,
        plain=REGIME_BUDGET.get(regime.code, 1.0),
        storm=swarm.storm,
        trusted=_in_order(swarm.trust),
        unled=_in_order(tabled) if swarm.trust else (),
        reader=regime.reader,
        first=regime.first,
        reasons=tuple(str(one) for one in OfficerReason if one in rules.reasons),
        veto_sides=ruling.veto_sides,
        side=worth.side if worth else "",
        said=worth.said if worth else None,
        used=worth.used if worth else None,
        value_r=worth.value_r if worth else None,
        vetoes=worth.vetoes if worth else "",
        thin=swarm.thin,
    )


def consulted(trader: Consulted | None) -> dict[str, Any]:
    """Return what a tick tells of the trader: nothing where it was not asked."""
    if trader is None:
        return {}
    declined = None if trader.report is None else trader.report.declined
    return {"consulted": trader.side, "tier": trader.tier, "declined": declined}


def opinions(reports: Iterable[AgentReport], failures: Iterable[str]) -> tuple[AgentOpinion, ...]:
    """Return the opinion of each agent, abstainers and failures included.

    An agent that this version does not know is left out: its focus is not known either.
    """
    heard = [_opinion(report) for report in reports if report.agent_id in AGENTS]
    return (*heard, *(silent(name) for name in failures if name in AGENTS))


def _opinion(report: AgentReport) -> AgentOpinion:
    ruling = report.ruling or GateRuling()
    return AgentOpinion(
        agent_id=report.agent_id,
        kind=AGENTS[report.agent_id].role.kind,
        adjustments=tuple(report.adjustments.get(vector) for vector in VECTORS),
        focus=focus_of(report.agent_id),
        trust=trust(report),
        confidence=report.confidence,
        abstained=report.abstained,
        multiplier=ruling.multiplier,
        veto=ruling.veto,
        winner=report.winner or None,
        weights=weights_of(report.weights),
        horizon=report.horizon or None,
        anomaly=report.anomaly or None,
        pattern=report.pattern or None,
    )


def weights_of(weights: Mapping[str, float]) -> tuple[float, float] | None:
    """Return an arbiter's weights of bull and bear; None of an agent that gives none."""
    if not weights:
        return None
    bull, bear = (float(weights.get(side, 1.0)) for side in SIDES)
    return bull, bear


def silent(name: str) -> AgentOpinion:
    """Return the opinion of an agent that gave none."""
    return AgentOpinion(name, AGENTS[name].role.kind, focus=focus_of(name), answered=False)


def focus_of(name: str) -> Four:
    """Return the weight of an agent's word on each vector; the gate has none on any."""
    role = AGENTS[name].role
    if role.kind == "gate":
        return NOTHING
    return four({v: FOCUS_WEIGHT[role.focus[v]] if v in role.focus else 0.0 for v in VECTORS})
