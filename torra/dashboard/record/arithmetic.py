"""The arithmetic of one tick: every step from the four L1 scores to the verdict.

This module also recomputes each step from the numbers of the record, the debate with the overlay's
own synthesis. `failed_checks` names the steps that do not come out as stored. A number that the
record lacks is a dash with the reason; a check that lacks a number is left out. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal, TypedDict, cast

from agent_config import FOCUS_WEIGHT, THIN_CONVICTION
from agents import evidence
from agents.contracts import (
    ADJUSTMENT_BOUND,
    BLEND_WEIGHT,
    OPINIONS,
    RESEARCHER_BOUND,
    SIDES,
    VECTORS,
    WINNERS,
    AgentReport,
    Winner,
)
from agents.debate import panel, synthesis
from agents.registry import AGENTS
from torra.dashboard.record import agreement, swarm, thesis
from torra.dashboard.record.shown import NOT_COUNTED
from torra.dashboard.record.summary import proposed
from torra.exhibits import figures
from torra.exhibits.figures import Cell, cell
from torra.tick.marks import GATE
from torra.tick.sentence import number
from torra.tick.tick_record import Composite, DebateRecord, ReportRecord, TickRecord
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


class Step(TypedDict):
    """A step from L1 to the composite; `ath` is None where it has none."""

    name: str
    note: str
    kind: str
    cells: list[Cell]
    ath: Cell | None


class Consensus(TypedDict):
    """A timeframe's composite, with its weight and its share of the consensus."""

    timeframe: str
    close_time: str
    composite: Cell
    weight: str
    share: Cell
    state: str


class DecisionStep(TypedDict):
    """A step from the composite to the action, with the agents and for L1 alone."""

    name: str
    final: str
    l1: str


Check = tuple[str, float | None, float | None]
"""A step's name, its number as recomputed, and as stored."""


def steps(record: TickRecord) -> list[Step]:
    """Return the steps from L1 to the composite, one row each, one column a score."""
    deliberation = record.deliberation
    voices = _voices(deliberation)
    silent = NO_DEBATE if deliberation else "no deliberation is stored"
    # a sum over nobody is not a zero that was said
    debated = deliberation if voices else DebateRecord()
    mark = f"; {NOT_COUNTED}" if deliberation.in_shadow else ""
    return [
        _scores("L1 score", _l1_source(record), record.l1, kind="base"),
        *voices,
        _scores(
            "Analyst average",
            "of those that scored it, by focus and by what the regime lets each count"
            if deliberation.swarm and deliberation.swarm.trust
            else "of those that scored it",
            debated.analyst_avg,
            missing=silent,
        ),
        _scores(
            "Debate",
            _debate_note(deliberation),
            debated.debate,
            missing=silent,
        ),
        _numbers(
            "Gate multiplier",
            f"the lower of rules and gate agent{mark or ', in force'}",
            dict.fromkeys(VECTORS, record.said_multiplier),
        ),
        _scores(
            "Adjustment",
            f"debate × multiplier, within ±{ADJUSTMENT_BOUND:.2f}{mark}",
            record.adjustments,
        ),
        _scores("Agent score", f"L1 + adjustment, within ±1{mark}", record.agents),
        _scores(
            "Blended score",
            "the bars alone: the agents looked on"
            if mark
            else f"{1 - BLEND_WEIGHT:.2f} L1 + {BLEND_WEIGHT:.2f} agent score",
            _finals(record),
            kind="base",
        ),
        _numbers("Weight", "of the composite", record.weights),
        _scores("Contribution", "score × weight ÷ sum of the weights", contributions(record)),
    ]


def _debate_note(deliberation: DebateRecord) -> str:
    if deliberation.swarm is not None and deliberation.swarm.board.stands:
        return "average + k judge"
    if deliberation.manager:
        return "average + (w k bull + w k bear) / 2, w by the manager"
    return "average + (k bull + k bear) / 2"


def records_line(record: TickRecord) -> str:
    """Return the records behind the record score and since when they count; "" without any.

    A tick that knew the record high alone tells of the all-time high, as it was called then.
    """
    high, low = record.ath_price, record.low_price
    if high is None:
        return ""
    if record.record_score != "both" or low is None:
        told = f"ATH: how near the price is to its all-time high, {figures.loose(high)}; +1 at it"
    else:
        told = (
            f"Record: +1 at the record high, {figures.loose(high)}, −1 at the record low, "
            f"{figures.loose(low)}, 0 far from both"
        )
    since = f"; of the {record.timeframe} bars since {str(record.records_since)[:10]}"
    return figures.clean(f"{told}{since if record.records_since else ''}.", 200)


def failed_checks(record: TickRecord) -> list[str]:
    """Return the steps that do not come out as stored when they are recomputed."""
    return [name for name, expected, kept in _checks(record) if _differs(expected, kept)]


def consensus_rows(record: TickRecord) -> list[Consensus]:
    """Return each timeframe's composite with its weight and its share of the consensus."""
    shared = shares(record)
    return [
        {
            "timeframe": figures.clean(name, 12),
            "close_time": figures.moment(entry.close_time),
            "composite": cell(entry.composite, figures.FULL_DECIMALS),
            "weight": figures.plain(entry.weight, 2),
            "share": cell(shared.get(name), figures.FULL_DECIMALS, "stale: left out"),
            "state": "fresh" if entry.fresh else "stale, left out",
        }
        for name, entry in record.composites.items()
    ]


def consensus_line(record: TickRecord) -> str:
    """Return in a sentence of which timeframes the consensus is; "" where it is of one alone."""
    fresh = {name: one for name, one in record.composites.items() if one.fresh}
    total = _total([one.weight for one in fresh.values()])
    shared = {name: (one.weight or 0.0) / total for name, one in fresh.items()} if total else {}
    # a damaged record may have weights of which no shares can be made
    whole = shared and all(0.0 <= share <= 1.0 for share in shared.values())
    if len(record.composites) < 2 or not whole or record.consensus is None:
        return ""
    parts = [
        f"{figures.clean(name, 12)} {figures.signed(one.composite, 2)} ({100 * shared[name]:.0f} %)"
        for name, one in fresh.items()
    ]
    left_out = [figures.clean(name, 12) for name in record.composites if name not in fresh]
    more = f"; {', '.join(left_out)} is too old and left out" if left_out else ""
    limits = [one for one in (record.thresholds.buy, -(record.thresholds.sell or 0.0)) if one]
    said = number(record.consensus, limits).replace("-", figures.MINUS)
    return f"Consensus {said}: {' and '.join(parts)}{more}."


def decision_rows(record: TickRecord) -> list[DecisionStep]:
    """Return the last steps, with the agents and for L1 alone: composite to action."""
    return [
        _pair("Composite", record.composite, record.l1_composite),
        _pair("Consensus", record.consensus, record.l1_consensus),
        {"name": "Thresholds", "final": _thresholds(record), "l1": "the same"},
        {
            "name": "Verdict",
            "final": figures.mark(record.verdict).text,
            "l1": figures.mark(record.l1_verdict).text,
        },
        {
            "name": "Consensus with the least and the most of the gate",
            "final": f"{_full(record.low_consensus)}, {_full(record.high_consensus)}",
            "l1": figures.DASH,
        },
        {
            "name": "Action",
            "final": "◔ proposed" if proposed(record) else figures.mark(record.action).text,
            "l1": "never sent",
        },
    ]


def as_report(told: ReportRecord) -> AgentReport | None:
    """Return a stored report as the overlay's own value, None when it cannot be one."""
    confidence = _CONFIDENCE.get(str(told.confidence))
    if confidence is None:
        return None
    return AgentReport(
        agent_id=told.author,
        adjustments={vector: told.adjustments.get(vector) for vector in VECTORS},
        confidence=confidence,
        flags=told.flags,
        abstained=told.abstained,
    )


_CONFIDENCE: Final[dict[str, Literal["high", "medium", "low"]]] = {
    "high": "high",
    "medium": "medium",
    "low": "low",
}


def vector_weights(record: TickRecord) -> dict[str, float]:
    """Return what each vector weighs in the composite, as far as the record says."""
    return {v: weight for v in VECTORS if (weight := record.weights.get(v)) is not None}


def trust(told: ReportRecord) -> float | None:
    """Return the trust k of a stored report; None when it abstained or cannot be read."""
    report = as_report(told)
    return None if report is None or report.abstained else evidence.trust(report)


def _checks(record: TickRecord) -> Iterable[Check]:
    """Yield every step: its name, as recomputed, as stored."""
    deliberation = record.deliberation
    answers = _answers(deliberation)
    told, debate = deliberation.swarm, None
    trusted = swarm.trusted(told)
    if answers:
        debate = synthesis.synthesise(answers, thesis.weights(deliberation), trusted)
    if debate is not None and deliberation.panel:
        # neither gate nor manager is a voice of the panel: a manager that failed lowers it apart
        failed = [name for name in deliberation.failures if name not in (GATE, *ARBITERS)]
        weights, judged = vector_weights(record), _judged(deliberation)
        most = THIN_CONVICTION if told and told.thin else 1.0
        agreed = panel.measure(answers, failed, weights, judged, trusted, most)
        yield from agreement.checks(deliberation.panel, agreed)
    yield from _swarm_checks(deliberation)
    for vector in VECTORS:
        name = figures.title(vector).lower()
        if debate is not None:
            average, shifted = debate.analyst_avg[vector], debate.debate[vector]
            yield f"analyst average of {name}", average, deliberation.analyst_avg.get(vector)
            yield f"debate of {name}", shifted, deliberation.debate.get(vector)
        for step, expected, kept in _vector_checks(record, vector):
            yield f"{step} of {name}", expected, kept
    yield "composite", _total(contributions(record).values()), record.composite
    yield "consensus", _total(shares(record).values()), record.consensus


def _swarm_checks(spoken: DebateRecord) -> Iterable[Check]:
    """Yield the sums of a swarm: their name, as recomputed, as stored."""
    told = spoken.swarm
    if told is None:
        return
    whole = [
        (one.weight, one.trust, one.stance)
        for one in told.board.stands
        if one.weight is not None and one.trust is not None and one.stance is not None
    ]
    if whole and len(whole) == len(told.board.stands):
        yield "lean of the board", math.fsum(w * k * s for w, k, s in whole), told.board.lean
    if told.judgement is not None:
        yield "expected value", swarm_words.value_of(told.judgement), told.judgement.value_r
    budget, storm = told.regime.budget, told.storm
    if budget is not None and storm:
        yield "budget", min(budget, storm) / storm, told.budget


def _judged(deliberation: DebateRecord) -> AgentReport | None:
    """Return a manager's or a judge's report; UNJUDGED of one that failed, None without one."""
    told = deliberation.manager or deliberation.judge
    report = None if told is None else as_report(told)
    if told is None or report is None:
        failed = any(name in deliberation.failures for name in JUDGES)
        return panel.UNJUDGED if failed else None
    winner = cast("Winner", told.winner if told.winner in WINNERS else "")
    return replace(report, winner=winner, weights=thesis.weights(deliberation))


def _vector_checks(record: TickRecord, vector: str) -> Iterable[Check]:
    l1, agent = record.l1.get(vector), record.agents.get(vector)
    shift, debate = record.adjustments.get(vector), record.deliberation.debate.get(vector)
    multiplier = record.said_multiplier
    # in shadow L1 alone was blended, whatever the agents said
    blend = l1 if record.deliberation.in_shadow else agent
    if (
        str(record.source_type).startswith("AGENT")
        and debate is not None
        and multiplier is not None
    ):
        yield "adjustment", synthesis.clamp(debate * multiplier, ADJUSTMENT_BOUND), shift
    if l1 is not None and shift is not None:
        yield "agent score", synthesis.clamp(l1 + shift, 1.0), agent
    if l1 is not None and blend is not None:
        yield "blend", synthesis.blended(l1, blend), record.final(vector)


def _answers(deliberation: DebateRecord) -> list[synthesis.Answer]:
    """Return the stored opinions with their roles; none when an author is not in the registry."""
    answers = []
    for told in deliberation.reports:
        report, seat = as_report(told), AGENTS.get(told.author)
        if seat is not None and seat.role.kind not in OPINIONS:
            continue
        if report is None or seat is None:
            # the agent of a host has no role here: a sum without it would look like a fault
            return []
        answers.append(synthesis.Answer(seat.role, report))
    return answers


def _voices(deliberation: DebateRecord) -> list[Step]:
    """Return each agent's contribution to the debate, already times its trust."""
    rows, weighs = [], thesis.weights(deliberation)
    counts = swarm.trusted(deliberation.swarm)
    for told in deliberation.reports:
        weight, name = trust(told), told.author
        if weight is None or told.is_gate or name in ARBITERS:
            continue
        side = name in SIDES or name in JUDGE
        bound = RESEARCHER_BOUND if side else ADJUSTMENT_BOUND
        scaled = {v: _scaled(told.adjustments.get(v), weight, bound) for v in VECTORS}
        note = f"k a, k {figures.plain(weight, 3)}, "
        note += f"a within ±{bound:.2f}" if side else f"f {_focus(name)}"
        if name in weighs:
            note += f", weight {weighs[name]:.2f}"
        if name in counts:
            note += f", counts {counts[name]:.2f}"
        rows.append(
            _scores(figures.title(name), note, scaled, "voiced", "not scored by this agent")
        )
    return rows


def _focus(name: str) -> str:
    seat = AGENTS.get(name)
    if seat is None:
        return "of its role"
    weights = [FOCUS_WEIGHT[seat.role.focus[v]] if v in seat.role.focus else None for v in VECTORS]
    return " ".join(figures.plain(weight, 1) for weight in weights)


def _scaled(vote: float | None, weight: float, bound: float) -> float | None:
    return None if vote is None else weight * synthesis.clamp(vote, bound)


def _l1_source(record: TickRecord) -> str:
    own = record.hosted is not None and record.hosted.own_scores
    return "as your scorer gave it" if own else "from the bars alone"


def _scores(name: str, note: str, known: Scores, kind: str = "", missing: str = NO_AGENT) -> Step:
    decimals = figures.FULL_DECIMALS
    return {
        "name": name,
        "note": note,
        "kind": kind,
        "cells": [cell(known.get(vector), decimals, missing) for vector in VECTORS],
        "ath": cell(known.get("ath"), decimals) if "ath" in known else None,
    }


def _numbers(name: str, note: str, values: Scores) -> Step:
    def shown(key: str) -> Cell:
        return {"text": figures.plain(values.get(key), 3), "tone": "", "title": ""}

    return {
        "name": name,
        "note": note,
        "kind": "",
        "cells": [shown(vector) for vector in VECTORS],
        "ath": shown("ath") if "ath" in values else None,
    }


def _finals(record: TickRecord) -> dict[str, float | None]:
    return {**{vector: record.final(vector) for vector in VECTORS}, "ath": record.ath}


def contributions(record: TickRecord) -> dict[str, float | None]:
    """Return what each of the five scores gives to the composite; {} without weights."""
    total = _total(record.weights.values())
    if not total:
        return {}
    finals = _finals(record)
    return {name: _product(finals[name], record.weights.get(name), total) for name in finals}


def shares(record: TickRecord) -> dict[str, float | None]:
    """Return the contribution of each fresh timeframe to the consensus."""
    fresh: dict[str, Composite] = {n: one for n, one in record.composites.items() if one.fresh}
    total = _total([one.weight for one in fresh.values()])
    if not total:
        return {}
    return {name: _product(one.composite, one.weight, total) for name, one in fresh.items()}


def _product(value: float | None, weight: float | None, total: float) -> float | None:
    return None if value is None or weight is None else value * weight / total


def _total(values: Iterable[float | None]) -> float | None:
    known = list(values)
    # a sum that lacks a part would fail its check for no reason
    return sum(value for value in known if value) if known and None not in known else None


def _differs(expected: float | None, kept: float | None) -> bool:
    return expected is not None and kept is not None and abs(expected - kept) > TOLERANCE


def _pair(name: str, final: float | None, l1: float | None) -> DecisionStep:
    return {"name": name, "final": _full(final), "l1": _full(l1)}


def _full(value: float | None) -> str:
    return figures.signed(value, figures.FULL_DECIMALS)


def _thresholds(record: TickRecord) -> str:
    buy, sell = record.thresholds.buy, record.thresholds.sell
    low = figures.signed(None if sell is None else -sell, 2)
    return f"BUY ≥ {figures.signed(buy, 2)}, SELL ≤ {low}"
