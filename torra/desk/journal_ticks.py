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
from agents.debate.deliberation import Deliberation
from agents.debate.swarm import Swarm
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
from torra.tick.marks import SHADOW
from torra.tick.tick_record import DebateRecord, GateRecord, SwarmRecord, TickRecord
from torra.verdict.sentiment_rules import ConsensusResult

OF_CONSENSUS: Final = ("l1_consensus", "consensus", "l1_verdict", "verdict")

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
    bar_time, agreed = parse(record.bar_time), debate.panel.agreement(leaning_side(record))
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
        scores=four({vector: record.final(vector) for vector in VECTORS}),
        action=record.action,
        reason=record.reason,
        # In shadow the tick was sized without its agents.
        conviction=1.0 if debate.in_shadow else agreed.conviction,
        regime=record.regime.name,
        elapsed_ms=record.elapsed_ms,
        **common(debate, record, record.timeframe, gate, gate.rule),
        **background(record.memory, record.lessons.numbers if record.lessons else {}),
    )


def leaning_side(saved: ConsensusResult | TickRecord) -> str:
    """Return the side whose size a tick tells."""
    return side_of(saved.verdict, saved.consensus)


def common(
    debate: Deliberation | DebateRecord,
    saved: ConsensusResult | TickRecord,
    timeframe: str,
    ruling: GateRuling | GateRecord,
    rule: GateRuling,
) -> dict[str, Any]:
    """Return what the debate and the verdict of a tick give an observation, stored or not.

    `ruling` is the one that counted, `rule` that of the rules alone.
    """
    swarm, trader = debate.swarm, debate.consulted
    if isinstance(swarm, Swarm):
        swarm = SwarmRecord.parse(swarm.as_json())
    report = trader.report if trader else None
    return {
        **{name: getattr(saved, name) for name in OF_CONSENSUS},
        "debate": four(debate.debate),
        "adjustments": four(debate.adjustments),
        "source_type": str(debate.source_type),
        "multiplier": ruling.multiplier,
        "veto": ruling.veto,
        "rule_multiplier": rule.multiplier,
        "rule_veto": own_veto(rule.veto, rule.reasons),
        "calls": len(debate.calls),
        "cost_usd": debate.cost_usd,
        "shadow": SHADOW in debate.flags,
        "opinions": opinions(debate.reports, debate.failures),
        "consulted": trader and trader.side,
        "tier": trader and trader.tier,
        "declined": report and report.declined,
        "swarm": swarm and swarm_observation(timeframe, swarm, debate.rule_ruling, debate.ruling),
    }


def background(memory: Mapping[str, Any], lessons: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the memory of a tick and the numbers of its lessons give an observation."""
    return {
        "session": str(memory.get("session") or ""),
        "state": str(memory.get("current_markov_state") or ""),
        "lessons_r": leaning(lessons.get("side") or "", lessons.get("mean_r")),
    }


def own_veto(veto: bool, reasons: Sequence[str]) -> bool:
    """Return whether a veto of the rules is their own: a judge's hold stands among them too."""
    own = any(reason in VETOES for reason in reasons)
    return veto and (own or OfficerReason.JUDGE_HOLD not in reasons)


def swarm_observation(
    timeframe: str, swarm: SwarmRecord, rules: GateRuling, ruling: GateRuling
) -> SwarmObservation:
    """Return what a swarm came to; `rules` and `ruling` are those of the tick's deliberation.

    Reasons of the gate's own rules are left out.
    """
    regime, worth = swarm.regime, swarm.judgement
    trusted, unled = (
        tuple(weights[name] for name in EXPERTS if name in weights)
        for weights in (swarm.trust, tabled_trust(timeframe, regime.code))
    )
    return SwarmObservation(
        budget=regime.budget,
        plain=REGIME_BUDGET.get(regime.code, 1.0),
        storm=swarm.storm,
        trusted=trusted,
        unled=unled if trusted else (),
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


def opinions(reports: Iterable[AgentReport], failures: Iterable[str]) -> tuple[AgentOpinion, ...]:
    """Return the opinion of each agent, abstainers and failures included.

    An agent that this version does not know is left out: its focus is not known either.
    """
    reported = [_opinion(report) for report in reports if report.agent_id in AGENTS]
    return (*reported, *(silent(name) for name in failures if name in AGENTS))


def _opinion(report: AgentReport) -> AgentOpinion:
    ruling, weights = report.ruling or GateRuling(), report.weights
    bull, bear = (float(weights.get(side, 1.0)) for side in SIDES)
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
        weights=(bull, bear) if weights else None,
        horizon=report.horizon or None,
        anomaly=report.anomaly or None,
        pattern=report.pattern or None,
    )


def silent(name: str) -> AgentOpinion:
    """Return the opinion of an agent that gave none."""
    return AgentOpinion(name, AGENTS[name].role.kind, focus=focus_of(name), answered=False)


def focus_of(name: str) -> Four:
    """Return the weight of an agent's word on each vector; the gate has none on any."""
    role = AGENTS[name].role
    if role.kind == "gate":
        return NOTHING
    return four({v: FOCUS_WEIGHT[role.focus[v]] if v in role.focus else 0.0 for v in VECTORS})
