"""Synthesis: turns reports into four adjustments. Pure arithmetic; no prompt, no clock, no failure.

    f_i          focus weight of analyst i on the vector: primary 1.0, secondary 0.5; in a swarm
                 times the weight of the expert in this regime (agent_config.TRUST)
    k_i          trust of a report: confidence (high 1.0, medium 0.75, low 0.5; conceded at most
                 0.5), x 0.3 if ungrounded
    analyst_avg  sum(f_i k_i a_i) / sum(f_i) over the analysts that scored the vector, else 0
    debate       analyst_avg + (w_bull k_bull bull + w_bear k_bear bear) / 2, each side clamped to
                 +-0.15; w is an arbiter's weight of the case, in [0, 1], 1 without an arbiter
                 analyst_avg + k_judge judge, clamped to +-0.15, where a judge sits
    adjustment   clamp(debate x multiplier, -0.3, +0.3)

Trust is in the numerator only, so it shrinks an adjustment towards L1, also at a desk of one
analyst. A weight shrinks one case beside the other, and the weights of experts one word beside the
others, so they may move a sum either way, inside what was asked for. A researcher argues its own
side, and a judge the side that it takes: an adjustment against it is 0 by the time that it comes
here (agents.debate.replies). Abstainers and failures leave both sums. A missing side removes both
sides, and a researcher's null is a missing side on that vector. Only when a single opinion answered
at the whole desk is it used alone, times its trust, within its role's bound. Sums are exact (fsum),
so the order and the names of the agents change nothing. (docs/debate.md, "Synthesis".)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from agent_config import FOCUS_WEIGHT

from ..contracts import (
    ADJUSTMENT_BOUND,
    BLEND_WEIGHT,
    EMPTY,
    RESEARCHER_BOUND,
    SCORE_DECIMALS,
    SIDES,
    VECTORS,
    AgentReport,
    Kind,
    Role,
)
from ..evidence import trust


class CountedReport(NamedTuple):
    """A report that counts, with the role of its author."""

    role: Role
    report: AgentReport


class Debate(NamedTuple):
    """What the desk thinks of each vector, before the gate."""

    analyst_avg: dict[str, float]
    debate: dict[str, float]


def synthesise(
    answers: Iterable[CountedReport],
    weights: Mapping[str, float] = EMPTY,
    trusted: Mapping[str, float] = EMPTY,
) -> Debate:
    """Reconcile the reports of analysts, researchers and a judge; abstaining ones are left out.

    `weights` are an arbiter's, in [0, 1], by researcher; they count where both were heard.
    `trusted` says how much the focus of an analyst counts, in (0, 1], 1 for who is not named.
    """
    heard = [answer for answer in answers if not answer.report.abstained]
    analysts = [answer for answer in heard if answer.role.kind == "analyst"]
    sides = [answer for answer in heard if answer.role.kind == "researcher"]
    judges = [answer for answer in heard if answer.role.kind == "judge"]
    average = {vector: _average(analysts, vector, trusted) for vector in VECTORS}
    shift = {
        vector: _shift(sides, vector, weights, sole=len(heard) == 1) + _ruled(judges, vector)
        for vector in VECTORS
    }
    return Debate(average, {vector: average[vector] + shift[vector] for vector in VECTORS})


def adjust(debate: Mapping[str, float], multiplier: float) -> dict[str, float]:
    """Return the adjustment of each vector under a multiplier in [0, 1], rounded to 1e-8."""
    return {
        vector: round(clamp(debate[vector] * multiplier, ADJUSTMENT_BOUND), SCORE_DECIMALS)
        for vector in VECTORS
    }


def moved(l1: Mapping[str, float], adjustments: Mapping[str, float]) -> dict[str, float]:
    """Return L1 plus adjustment, within [-1, +1]; an adjustment of 0 leaves L1 bit for bit."""
    return {
        vector: round(clamp(l1[vector] + adjustments[vector], 1.0), SCORE_DECIMALS)
        if adjustments[vector]
        else l1[vector]
        for vector in VECTORS
    }


def blended(l1: float, agent_score: float) -> float:
    """Return 0.80 L1 + 0.20 agent score, rounded to 1e-8; L1 bit for bit where the two agree."""
    # The rounding below could move an L1 score whose agents said nothing.
    if agent_score == l1:
        return l1
    return round(l1 + BLEND_WEIGHT * (agent_score - l1), SCORE_DECIMALS)


def spread(answers: Iterable[CountedReport]) -> float:
    """Return how far the analysts lie apart: the widest range of a vector, 0 to 0.6."""
    return max(spreads(answers).values())


def spreads(answers: Iterable[CountedReport], kind: Kind = "analyst") -> dict[str, float]:
    """Return, per vector, the range of the adjustments of a kind; abstainers are left out."""
    heard = [
        answer.report.adjustments
        for answer in answers
        if answer.role.kind == kind and not answer.report.abstained
    ]
    return {vector: _range([given.get(vector) for given in heard]) for vector in VECTORS}


def clamp(value: float, bound: float) -> float:
    """Return a finite value within [-bound, +bound]."""
    return max(-bound, min(bound, value))


def _average(analysts: Sequence[CountedReport], vector: str, trusted: Mapping[str, float]) -> float:
    scored = [
        (FOCUS_WEIGHT[role.focus[vector]] * trusted.get(role.id, 1.0), trust(report), value)
        for role, report in analysts
        if (value := report.adjustments.get(vector)) is not None
    ]
    if not scored:
        return 0.0
    return fsum(f * k * a for f, k, a in scored) / fsum(f for f, _, _ in scored)


def _shift(
    sides: Sequence[CountedReport], vector: str, weights: Mapping[str, float], *, sole: bool
) -> float:
    words = {
        role.id: trust(report) * clamp(value, RESEARCHER_BOUND)
        for role, report in sides
        if (value := report.adjustments.get(vector)) is not None
    }
    # One side alone would push every score its own way.
    if len(words) == len(SIDES):
        return fsum(weights.get(name, 1.0) * word for name, word in words.items()) / len(SIDES)
    return next(iter(words.values())) if sole and words else 0.0


def _ruled(judges: Sequence[CountedReport], vector: str) -> float:
    """Return what a judge adds to the analysts' average of a vector."""
    return fsum(
        trust(report) * clamp(value, RESEARCHER_BOUND)
        for _, report in judges
        if (value := report.adjustments.get(vector)) is not None
    )


def _range(values: Sequence[float | None]) -> float:
    given = [value for value in values if value is not None]
    return max(given) - min(given) if given else 0.0
