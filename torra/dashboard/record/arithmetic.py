"""The arithmetic of one tick: every step from the four L1 scores to the verdict.

This module also recomputes each step from the numbers of the record, the debate with the overlay's
own synthesis. `failed_checks` names the steps that do not come out as stored. A number that the
record lacks is a dash with the reason; a check that lacks a number is left out. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from agent_config import FOCUS_WEIGHT, THIN_CONVICTION
from agents import evidence
from agents.contracts import (
    ADJUSTMENT_BOUND,
    BLEND_WEIGHT,
    OPINIONS,
    RESEARCHER_BOUND,
    SIDES,
    VECTORS,
    AgentReport,
    Role,
)
from agents.debate import scoring
from agents.registry import AGENTS
from torra.dashboard.record import agreement, swarm, thesis
from torra.dashboard.record.shown import NOT_COUNTED
from torra.exhibits import figures
from torra.tick.marks import GATE, PROPOSED
from torra.tick.sentence import number
from torra.tick.tick_record import DebateRecord, TickRecord, is_gate
from torra.tick.words import swarm_words

TOLERANCE: Final = 1e-6
"""A recomputed step may differ from the stored one by this much."""

ARBITERS: Final = frozenset(
    name for name, one in AGENTS.items() if one.role.kind in ("arbiter", "reader")
)
"""Seats that weigh the cases, or read the regime, and move no score."""

JUDGES: Final = frozenset(
    name for name, one in AGENTS.items() if one.role.kind in ("arbiter", "judge")
)
"""Seats whose word bounds the conviction."""

JUDGE: Final = frozenset(name for name, one in AGENTS.items() if one.role.kind == "judge")
"""Seats that add to the analysts' average what they say, times their trust."""

NO_AGENT: Final = "no agent scored this vector"
NO_DEBATE: Final = "no agent was heard"


Scores = Mapping[str, float | None]
"""A number for each vector, and for the record score (`ath`) where it has one."""


class ScoreStep(NamedTuple):
    """A step from L1 to the composite; `plain` numbers have three decimals and no sign."""

    name: str
    note: str
    values: Scores
    kind: str = ""
    missing: str = NO_AGENT
    plain: bool = False


class DecisionStep(NamedTuple):
    """A step from the composite to the action, with the agents and for L1 alone."""

    name: str
    final: str
    l1: str


Check = tuple[str, float | None, float | None]
"""A step's name, its number as recomputed, and as stored."""


def steps(record: TickRecord) -> list[ScoreStep]:
    """Return the steps from L1 to the composite, one row each, one column a score."""
    deliberation = record.deliberation
    voices = _voices(deliberation)
    # a sum over nobody is not a zero that was said
    average, debate = (deliberation.analyst_avg, deliberation.debate) if voices else ({}, {})
    mark = f"; {NOT_COUNTED}" if deliberation.in_shadow else ""
    own = record.hosted is not None and record.hosted.own_scores
    regime = ", by focus and by what the regime lets each count"
    counted = regime if deliberation.swarm and deliberation.swarm.trust else ""
    blend = f"{1 - BLEND_WEIGHT:.2f} L1 + {BLEND_WEIGHT:.2f} agent score"
    multiplier = dict.fromkeys(VECTORS, record.applied_multiplier)
    return [
        ScoreStep(
            "L1 score",
            "as your scorer gave it" if own else "from the bars alone",
            record.l1,
            kind="base",
        ),
        *voices,
        ScoreStep(
            "Analyst average", f"of those that scored it{counted}", average, missing=NO_DEBATE
        ),
        ScoreStep("Debate", _debate_note(deliberation), debate, missing=NO_DEBATE),
        ScoreStep(
            "Gate multiplier",
            f"the lower of rules and gate agent{mark or ', in force'}",
            multiplier,
            plain=True,
        ),
        ScoreStep(
            "Adjustment",
            f"debate × multiplier, within ±{ADJUSTMENT_BOUND:.2f}{mark}",
            record.adjustments,
        ),
        ScoreStep("Agent score", f"L1 + adjustment, within ±1{mark}", record.agents),
        ScoreStep(
            "Blended score",
            "the bars alone: the agents looked on" if mark else blend,
            _finals(record),
            kind="base",
        ),
        ScoreStep("Weight", "of the composite", record.weights, plain=True),
        ScoreStep("Contribution", "score × weight ÷ sum of the weights", contributions(record)),
    ]


def _debate_note(deliberation: DebateRecord) -> str:
    if deliberation.swarm is not None and deliberation.swarm.board.stands:
        return "average + k judge"
    if deliberation.manager:
        return "average + (w k bull + w k bear) / 2, w by the manager"
    return "average + (k bull + k bear) / 2"


def records_line(record: TickRecord) -> str:
    """Return the records behind the record score and since when they count."""
    high, low = record.ath_price, record.low_price
    if record.record_score != "both":
        text = (
            f"ATH: how near the price is to its all-time high, {figures.format_any(high)}; +1 at it"
        )
    else:
        text = (
            f"Record: +1 at the record high, {figures.format_any(high)}, −1 at the record low, "
            f"{figures.format_any(low)}, 0 far from both"
        )
    since = f"; of the {record.timeframe} bars since {str(record.records_since)[:10]}"
    return figures.sanitize(f"{text}{since if record.records_since else ''}.", 200)


def failed_checks(record: TickRecord) -> list[str]:
    """Return the steps that do not come out as stored when they are recomputed."""
    return [name for name, expected, kept in _checks(record) if _differs(expected, kept)]


def consensus_line(record: TickRecord) -> str:
    """Return in a sentence of which timeframes the consensus is; "" where it is of one alone."""
    fresh = {name: one for name, one in record.composites.items() if one.fresh}
    total = sum(one.weight for one in fresh.values())
    part = {name: one.weight / total for name, one in fresh.items()} if total else {}
    # a damaged record may have weights of which no shares can be made
    if len(record.composites) < 2 or not part or not all(0 <= one <= 1 for one in part.values()):
        return ""
    parts = [
        f"{figures.sanitize(name, 12)} {figures.format_signed(one.composite, 2)} "
        f"({100 * part[name]:.0f} %)"
        for name, one in fresh.items()
    ]
    left_out = [figures.sanitize(name, 12) for name in record.composites if name not in fresh]
    more = f"; {', '.join(left_out)} is too old and left out" if left_out else ""
    limits = [record.thresholds.buy, -record.thresholds.sell]
    value = number(record.consensus, limits).replace("-", figures.MINUS)
    return f"Consensus {value}: {' and '.join(parts)}{more}."


def decision_rows(record: TickRecord) -> list[DecisionStep]:
    """Return the last steps, with the agents and for L1 alone: composite to action."""
    buy, sell = record.thresholds.buy, record.thresholds.sell
    limits = f"BUY ≥ {figures.format_signed(buy, 2)}, SELL ≤ {figures.format_signed(-sell, 2)}"
    action = "◔ proposed" if record.reason == PROPOSED else figures.mark(record.action).text
    verdict, l1_verdict = figures.mark(record.verdict), figures.mark(record.l1_verdict)
    return [
        DecisionStep("Composite", _full(record.composite), _full(record.l1_composite)),
        DecisionStep("Consensus", _full(record.consensus), _full(record.l1_consensus)),
        DecisionStep("Thresholds", limits, "the same"),
        DecisionStep("Verdict", verdict.text, l1_verdict.text),
        DecisionStep(
            "Consensus with the least and the most of the gate",
            f"{_full(record.low_consensus)}, {_full(record.high_consensus)}",
            figures.DASH,
        ),
        DecisionStep("Action", action, "never sent"),
    ]


def vector_weights(record: TickRecord) -> dict[str, float]:
    """Return what each vector weighs in the composite."""
    return {v: record.weights[v] for v in VECTORS}


def trust(report: AgentReport) -> float | None:
    """Return the trust k of a report; None when it abstained."""
    return None if report.abstained else evidence.trust(report)


def _checks(record: TickRecord) -> Iterable[Check]:
    """Yield every step: its name, as recomputed, as stored."""
    deliberation = record.deliberation
    answers = _answers(deliberation)
    swarm_record, debate = deliberation.swarm, None
    trusted = swarm.trusted(swarm_record)
    if answers:
        debate = scoring.synthesise(answers, thesis.weights(deliberation), trusted)
    if debate is not None:
        # neither gate nor manager is a voice of the panel: a manager that failed lowers it apart
        failed = [name for name in deliberation.failures if name not in (GATE, *ARBITERS)]
        weights, judged = vector_weights(record), _judged(deliberation)
        most = THIN_CONVICTION if swarm_record and swarm_record.thin else 1.0
        agreed = scoring.panel_of(answers, failed, weights, judged, trusted, most)
        yield from agreement.checks(deliberation.panel, agreed)
    yield from _swarm_checks(deliberation)
    for vector in VECTORS:
        name = figures.title(vector).lower()
        if debate is not None:
            average, shifted = debate.analyst_avg[vector], debate.debate[vector]
            yield f"analyst average of {name}", average, deliberation.analyst_avg[vector]
            yield f"debate of {name}", shifted, deliberation.debate[vector]
        for step, expected, kept in _vector_checks(record, vector):
            yield f"{step} of {name}", expected, kept
    yield "composite", _total(contributions(record)), record.composite
    yield "consensus", _total(shares(record)), record.consensus


def _swarm_checks(deliberation: DebateRecord) -> Iterable[Check]:
    """Yield the sums of a swarm: their name, as recomputed, as stored."""
    swarm_record = deliberation.swarm
    if swarm_record is None:
        return
    if swarm_record.board.stands:
        lean = math.fsum(one.weight * one.trust * one.stance for one in swarm_record.board.stands)
        yield "lean of the board", lean, swarm_record.board.lean
    if swarm_record.judgement is not None:
        yield (
            "expected value",
            swarm_words.value_of(swarm_record.judgement),
            swarm_record.judgement.value_r,
        )
    budget, storm = swarm_record.regime.budget, swarm_record.storm
    if storm:
        yield "budget", min(budget, storm) / storm, swarm_record.budget


def _judged(deliberation: DebateRecord) -> AgentReport | None:
    """Return a manager's or a judge's report; UNJUDGED of one that failed, None without one."""
    report = deliberation.manager or deliberation.judge
    if report is None:
        failed = any(name in deliberation.failures for name in JUDGES)
        return scoring.UNJUDGED if failed else None
    return replace(report, weights=thesis.weights(deliberation))


def _vector_checks(record: TickRecord, vector: str) -> Iterable[Check]:
    l1, agent = record.l1[vector], record.agents[vector]
    shift, debate = record.adjustments[vector], record.deliberation.debate[vector]
    # in shadow L1 alone was blended, whatever the agents said
    blend = l1 if record.deliberation.in_shadow else agent
    if record.source_type.startswith("AGENT"):
        moved = scoring.clamp(debate * record.applied_multiplier, ADJUSTMENT_BOUND)
        yield "adjustment", moved, shift
    yield "agent score", scoring.clamp(l1 + shift, 1.0), agent
    yield "blend", scoring.blended(l1, blend), record.final(vector)


def in_role(role: Role, report: AgentReport) -> bool:
    """Return whether a stored report moves only what its role has a say in, as all replies do."""
    moved = {vector for vector, value in report.adjustments.items() if value is not None}
    return role.kind != "analyst" or moved <= role.focus.keys()


def _answers(deliberation: DebateRecord) -> list[scoring.CountedReport]:
    """Return the stored opinions with their roles; none when an author is not in the registry."""
    answers = []
    for report in deliberation.reports:
        seat = AGENTS.get(report.agent_id)
        if seat is None or not in_role(seat.role, report):
            # the agent of a host has no role here: a sum without it would look like a fault
            return []
        if seat.role.kind in OPINIONS:
            answers.append(scoring.CountedReport(seat.role, report))
    return answers


def _voices(deliberation: DebateRecord) -> list[ScoreStep]:
    """Return each agent's contribution to the debate, already times its trust."""
    rows, weighs = [], thesis.weights(deliberation)
    counts = swarm.trusted(deliberation.swarm)
    for report in deliberation.reports:
        weight, name = trust(report), report.agent_id
        if weight is None or is_gate(report) or name in ARBITERS:
            continue
        side = name in SIDES or name in JUDGE
        bound = RESEARCHER_BOUND if side else ADJUSTMENT_BOUND
        scaled = {v: _scaled(report.adjustments.get(v), weight, bound) for v in VECTORS}
        note = f"k a, k {figures.plain(weight, 3)}, "
        note += f"a within ±{bound:.2f}" if side else f"f {_focus(name)}"
        if name in weighs:
            note += f", weight {weighs[name]:.2f}"
        if name in counts:
            note += f", counts {counts[name]:.2f}"
        title = figures.title(name)
        rows.append(ScoreStep(title, note, scaled, "voiced", "not scored by this agent"))
    return rows


def _focus(name: str) -> str:
    seat = AGENTS.get(name)
    if seat is None:
        return "of its role"
    weights = [FOCUS_WEIGHT[seat.role.focus[v]] if v in seat.role.focus else None for v in VECTORS]
    return " ".join(figures.plain(weight, 1) for weight in weights)


def _scaled(vote: float | None, weight: float, bound: float) -> float | None:
    return None if vote is None else weight * scoring.clamp(vote, bound)


def _finals(record: TickRecord) -> dict[str, float]:
    return {**{vector: record.final(vector) for vector in VECTORS}, "ath": record.ath}


def contributions(record: TickRecord) -> dict[str, float]:
    """Return what each of the five scores gives to the composite; {} without weights."""
    total = sum(record.weights.values())
    if not total:
        return {}
    return {name: value * record.weights[name] / total for name, value in _finals(record).items()}


def shares(record: TickRecord) -> dict[str, float]:
    """Return the contribution of each fresh timeframe to the consensus."""
    fresh = {name: one for name, one in record.composites.items() if one.fresh}
    total = sum(one.weight for one in fresh.values())
    if not total:
        return {}
    return {name: one.composite * one.weight / total for name, one in fresh.items()}


def _total(parts: Mapping[str, float]) -> float | None:
    return sum(parts.values()) if parts else None


def _differs(expected: float | None, kept: float | None) -> bool:
    return expected is not None and kept is not None and abs(expected - kept) > TOLERANCE


def _full(value: float | None) -> str:
    return figures.format_signed(value, figures.FULL_DECIMALS)
