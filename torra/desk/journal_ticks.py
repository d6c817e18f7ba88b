"""Stored ticks as observations: turns rows of the journal into what torra.evaluation reads.

The counterpart of torra.replay.shards.seen for ticks that are stored. A number is only moved to its
place, and a tick that ran in a replay gives the same observation either way. A record of an older
version that lacks what an observation needs is left out, never guessed at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_config import EXPERTS, FOCUS_WEIGHT, REGIME_BUDGET, tabled_trust
from agents.contracts import (
    SIDES,
    VECTORS,
    AgentReport,
    GateReason,
    OfficerReason,
)
from agents.evidence import trust
from agents.registry import AGENTS
from torra.clock import parse
from torra.evaluation.observations import (
    NOTHING,
    Four,
    Opinion,
    SwarmSeen,
    TickSeen,
    four,
    leaning,
    side_of,
)
from torra.tick.debate import SHADOW

Row = Mapping[str, Any]

VETOES: Final = frozenset(
    (
        *(GateReason.WIDE_SPREAD, GateReason.THIN_DATA),
        *(GateReason.STALE_DATA, GateReason.SCHEDULED_EVENT),
    )
)
"""Reasons for which the gate's rules veto openings."""

NEEDED: Final = ("symbol", "close", "atr", "gate")
"""Parts of a record without which there is nothing to observe."""


def tick_of(row: Row) -> TickSeen | None:
    """Return the observation of a row of StandingStore.observed; None for one that lacks a part."""
    record, said = row["record"], row["deliberation"]
    if any(record[name] is None for name in NEEDED) or said["adjustments"] is None:
        return None
    gate, flags = record["gate"], said["flags"] or ()
    return TickSeen(
        instance=row["instance"],
        symbol=record["symbol"],
        timeframe=row["timeframe"],
        bar_time=parse(row["bar_time"]),
        close_time=parse(row["close_time"]),
        close=record["close"],
        atr=record["atr"],
        ath=row["ath"],
        l1=four(row["l1"]),
        debate=four(said["debate"] or said["adjustments"]),
        adjustments=four(said["adjustments"]),
        scores=four({vector: row[vector] for vector in VECTORS}),
        l1_consensus=row["l1_consensus"],
        consensus=row["consensus"],
        l1_verdict=row["l1_verdict"],
        verdict=row["verdict"],
        action=row["action"],
        reason=row["reason"],
        source_type=row["source_type"],
        multiplier=gate["multiplier"],
        veto=gate["veto"],
        rule_multiplier=gate["rule"]["multiplier"],
        rule_veto=own_veto(gate["rule"]["veto"], gate["rule"].get("reasons") or ()),
        # In shadow the tick was sized without its agents.
        conviction=1.0
        if SHADOW in flags
        else _conviction(said["panel"], side_of(row["verdict"], row["consensus"])),
        calls=record["calls"] or 0,
        cost_usd=row["cost_usd"],
        regime=record["regime.name"] or "",
        session=str(record["memory.session"] or ""),
        state=str(record["memory.current_markov_state"] or ""),
        shadow=SHADOW in flags,
        opinions=opinions(said["reports"] or (), said["failures"] or {}),
        elapsed_ms=row["elapsed_ms"],
        lessons_r=leaning(record["lessons.numbers.side"] or "", record["lessons.numbers.mean_r"]),
        **_consulted(said["consulted"]),
        swarm=_swarm(row["timeframe"], said),
    )


def own_veto(veto: bool, reasons: Sequence[str]) -> bool:
    """Return whether a veto of the rules is their own: a judge's hold stands among them too."""
    own = any(reason in VETOES for reason in reasons)
    return veto and (own or OfficerReason.JUDGE_HOLD not in reasons)


def _swarm(timeframe: str, said: Row) -> SwarmSeen | None:
    told = said["swarm"]
    if not told:
        return None
    ruling, rule = said["ruling"] or {}, said["rule_ruling"] or {}
    reasons, sides = rule.get("reasons", ()), ruling.get("veto_sides", ())
    return swarm_seen(timeframe, told, reasons, sides)


def _in_order(weights: Mapping[str, float]) -> tuple[float, ...]:
    return tuple(weights[name] for name in EXPERTS if name in weights)


def swarm_seen(
    timeframe: str, told: Row, reasons: Sequence[str], sides: Sequence[str]
) -> SwarmSeen:
    """Return what a swarm came to: `deliberation.swarm` of a record, reasons and sides of a ruling.

    `reasons` are all of them; those of the gate's rules are left out.
    """
    regime, worth = told["regime"], told["judgement"] or {}
    trusted = told["trust"]
    return SwarmSeen(
        budget=regime["budget"],
        plain=REGIME_BUDGET.get(regime["code"], 1.0),
        storm=told["storm"],
        trusted=_in_order(trusted),
        unled=_in_order(tabled_trust(timeframe, regime["code"])) if trusted else (),
        reader=regime["reader"],
        first=regime["first"],
        reasons=tuple(str(one) for one in OfficerReason if one in reasons),
        veto_sides=tuple(sides),
        side=worth.get("side", ""),
        said=worth.get("said"),
        used=worth.get("used"),
        value_r=worth.get("value_r"),
        vetoes=worth.get("vetoes", ""),
        thin=told["thin"],
    )


def _consulted(told: Row | None) -> dict[str, Any]:
    """Return what a tick tells of the trader: nothing where it was not asked."""
    if not told:
        return {}
    report = told["report"]
    declined = None if report is None else bool(report.get("declined"))
    return {"consulted": told["side"], "tier": told["tier"], "declined": declined}


def opinions(reports: Sequence[Row], failures: Mapping[str, str]) -> tuple[Opinion, ...]:
    """Return what each agent said, abstainers and failures included.

    An agent that this version does not know is left out: its focus is not known either.
    """
    heard = [_opinion(told) for told in reports if told["agent_id"] in AGENTS]
    failed = [silent(name) for name in failures if name in AGENTS]
    return (*heard, *failed)


def _opinion(told: Row) -> Opinion:
    name, votes, ruling = told["agent_id"], told["adjustments"], told["ruling"] or {}
    word, flags = told["confidence"], tuple(told["flags"])
    return Opinion(
        agent_id=name,
        kind=AGENTS[name].role.kind,
        adjustments=tuple(votes.get(vector) for vector in VECTORS),
        focus=focus_of(name),
        trust=trust(AgentReport(name, {}, confidence=word, flags=flags)),
        confidence=word,
        abstained=told["abstained"],
        multiplier=ruling.get("multiplier", 1.0),
        veto=ruling.get("veto", False),
        winner=told.get("winner"),
        weights=weights_of(told.get("weights")),
        horizon=told.get("horizon"),
        anomaly=told.get("anomaly"),
        pattern=told.get("pattern"),
    )


def weights_of(told: Mapping[str, float] | None) -> tuple[float, float] | None:
    """Return an arbiter's weights of bull and bear; None of an agent that gives none."""
    if not told:
        return None
    bull, bear = (float(told.get(side, 1.0)) for side in SIDES)
    return bull, bear


def silent(name: str) -> Opinion:
    """Return the opinion of an agent that gave none."""
    return Opinion(name, AGENTS[name].role.kind, focus=focus_of(name), answered=False)


def focus_of(name: str) -> Four:
    """Return the weight of an agent's word on each vector; the gate has none on any."""
    role = AGENTS[name].role
    if role.kind == "gate":
        return NOTHING
    return four({v: FOCUS_WEIGHT[role.focus[v]] if v in role.focus else 0.0 for v in VECTORS})


def _conviction(panel: object, side: str) -> float:
    from torra.tick.tick_record import PanelTold  # noqa: PLC0415 - its models take time to make

    found = PanelTold.read(panel or {}).agreement(side)
    return 1.0 if found is None or found.conviction is None else found.conviction
