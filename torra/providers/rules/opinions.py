"""The rules provider's opinions on the scores: analysts, the two researchers, the single scorer.

Each role measures the same thing: how far a reading stands from the score that was computed, so
that 0 means that the score already says it. An analyst takes the weighted mean of those gaps. A
researcher argues one side: gaps on that side are its case, and gaps on the other side count half
against it. So bull and bear mirror each other, and an advocate without a case votes 0. Thin
evidence shrinks every word towards 0.

Mood and news lie over a score and do not measure it: they move it towards themselves, no further.

What a report says is made by `torra.providers.rules.argument`. The functions are pure; they return
the reply as an object, and `torra.providers.rules.provider` sends it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from agents.arguments import net_side
from agents.contracts import ADJUSTMENT_BOUND, SCORE_DECIMALS, SIDES, VECTORS, Request
from agents.evidence import trust
from torra.providers.rules.ahead import CASE_RISKS, horizon, risks
from torra.providers.rules.argument import Argument, RuleArgument, argue, falsifiers
from torra.providers.rules.others import LESSON_MEAN, analysts, at_a_firm, lessons
from torra.providers.rules.readings import (
    ADX,
    NAMED,
    RuleSignal,
    TrendStrength,
    common_readings,
    readable,
    readings,
    regime,
)
from torra.providers.rules.specialists import OVERLAYS, TABLES, ordinals

DECIMALS: Final = 4
"""Adjustments are rounded to this many decimals."""

FULL_WEIGHT: Final = 1.5
"""Summed weight of readings from which a vector is judged in full; with less, proportionally."""

COUNTER_WEIGHT: Final = 0.5
"""Weight of evidence for the other side in an advocate's case."""

REPORT_WEIGHT: Final = 0.6
"""Weight of the analysts' average among a researcher's readings."""

LESSON_WEIGHT: Final = 0.4
"""Weight of what similar trades came to among a researcher's readings. At a firm the research
manager reads them in its place.
"""

CONCESSION: Final = 0.25
"""Share of the gap to the other side's case that a researcher grants in a further round."""

AGREEMENT: Final = (("high", 0.75), ("medium", 0.45))
"""Share by which the evidence agrees, from which a confidence is used."""

CONVICTION: Final = (("high", 0.30), ("medium", 0.12))
"""Mean case of a researcher, 0 to 1, from which a confidence is used."""

CITED: Final = 20
"""Features that a report cites at most."""

LEAST_STRENGTH: Final = 0.10
"""Mean strength of the readings below which confidence is low whatever they agree on."""

Reply = dict[str, Any]


def analyst(request: Request) -> Reply:
    """Read the evidence anew in its regime and say how far it stands from each score."""
    now = regime(request.features)
    role = request.role
    heard = readings(request.features, now, focus(request), TABLES.get(role.id))
    reply = opinion(request, now, heard, overlay=role.id in OVERLAYS)
    news = role.id == "news" and not reply["abstained"]
    return reply | ({"ordinals": ordinals(request.features)} if news else {})


def opinion(
    request: Request,
    now: TrendStrength,
    heard: Mapping[str, Sequence[RuleSignal]],
    *,
    overlay: bool,
) -> Reply:
    """Return the report of what an analyst reads; `overlay`: it lies over the scores."""
    moves = {
        vector: _bounded(
            _overlaid(found, score) if overlay else _gap(found, score), request.role.bound
        )
        for vector, found in heard.items()
        for score in (_score(request, vector),)
    }
    if not moves:
        return _abstention(request, now)
    side = net_side(moves, request.role.focus)
    said = argue(request, heard, moves, side, base=0.0 if overlay else None)
    return _report(request, heard, moves, said, _agreement(heard)) | ahead(request, now)


def researcher(request: Request, side: int) -> Reply:
    """Argue for higher (side 1) or lower (side -1) prices than the scores and reports say."""
    now = regime(request.features)
    heard = common_readings(request.features, now)
    moves, cases, given_up = {}, [], False
    firm = at_a_firm(request)
    learnt = None if firm else lessons(request)
    said_before = [(trust(report), report.adjustments) for report in analysts(request)]
    for vector in focus(request):
        found = heard.get(vector)
        if not found:
            continue
        case = _case(found, _score(request, vector), side, _mean(said_before, vector), learnt)
        # never -0.0: bull and bear without a case say the same nothing
        own = side * _bounded(max(0.0, case), request.role.bound) + 0.0
        cases.append(case)
        moves[vector] = _conceded(request, vector, own, side)
        given_up = given_up or bool(own)
    if not moves:
        silent = _abstention(request, now) | {"rebuttals": [], "falsifiers": []}
        return silent | ({"risks": []} if firm else {})
    read = {vector: heard[vector] for vector in moves}
    said = argue(request, read, moves, side, given_up=given_up)
    confidence = _conviction(cases) if any(moves.values()) else "low"
    reply = _report(request, read, moves, said, confidence) | ahead(request, now)
    if firm:
        reply["risks"] = risks(request, read, said, CASE_RISKS)
    return reply | {
        "rebuttals": _rebuttals(request, said),
        "falsifiers": [end._asdict() for end in falsifiers(request, said)],
    }


def scorer(request: Request) -> Reply:
    """Score the four vectors anew, each within an analyst's bound of the computed score."""
    now = regime(request.features)
    heard = readings(request.features, now, VECTORS)
    reply: Reply = {"symbol": request.symbol}
    for vector in VECTORS:
        score = _score(request, vector)
        found = heard.get(vector, [])
        move = _bounded(_gap(found, score), ADJUSTMENT_BOUND)
        note = "no evidence beyond the score"
        if found:
            alone = {vector: move}
            note = argue(
                request, {vector: found}, alone, net_side(alone, {vector: "primary"})
            ).claim
        moved = max(-1.0, min(1.0, score + move))
        reply[vector] = {"score": round(moved, SCORE_DECIMALS), "note": note}
    mean = sum(reply[vector]["score"] for vector in VECTORS) / len(VECTORS)
    reply["summary"] = f"The four scores average {mean:+.2f}."
    return reply


# --- numbers --------------------------------------------------------------------------------------


def focus(request: Request) -> list[str]:
    """Return the vectors that a role may touch, in their order."""
    return [vector for vector in VECTORS if vector in request.role.focus]


def _score(request: Request, vector: str) -> float:
    value = request.scores.get(vector, 0.0)
    # No evidence may raise here; a score that is no number counts as 0.
    return value if math.isfinite(value) else 0.0


def _gap(heard: Sequence[RuleSignal], score: float) -> float:
    """Return how far the weighted mean of the leans stands from the score, in [-1, +1]."""
    weight = sum(reading.weight for reading in heard)
    if weight <= 0.0:
        return 0.0
    mean = sum(reading.weight * reading.lean for reading in heard) / weight
    return max(-1.0, min(1.0, mean - score)) * min(1.0, weight / FULL_WEIGHT)


def _overlaid(heard: Sequence[RuleSignal], score: float) -> float:
    """Return the gap to an overlay: at most the overlay itself, and never against its own sign."""
    weight = sum(reading.weight for reading in heard)
    mean = sum(reading.weight * reading.lean for reading in heard) / weight
    gap = max(min(0.0, mean), min(max(0.0, mean), mean - score))
    return gap * min(1.0, weight / FULL_WEIGHT)


def _case(
    heard: Sequence[RuleSignal],
    score: float,
    side: int,
    reported: float | None,
    learnt: float | None,
) -> float:
    """Return the case for a side, less half of what stands against it, in [-1, +1]."""
    gaps = [(reading.weight, side * (reading.lean - score)) for reading in heard]
    if reported is not None:
        gaps.append((REPORT_WEIGHT, side * reported / ADJUSTMENT_BOUND))
    if learnt is not None:
        gaps.append((LESSON_WEIGHT, side * learnt))
    weight = sum(share for share, _ in gaps)
    own = sum(share * gap for share, gap in gaps if gap > 0) / weight
    counter = -sum(share * gap for share, gap in gaps if gap < 0) / weight
    case = max(-1.0, min(1.0, own - COUNTER_WEIGHT * counter))
    return case * min(1.0, weight / FULL_WEIGHT)


def _mean(reports: Iterable[tuple[float, Mapping[str, float | None]]], vector: str) -> float | None:
    """Return the analysts' average adjustment of a vector by trust; None when none scored it."""
    said = [
        (share, value)
        for share, adjustments in reports
        if (value := adjustments.get(vector)) is not None
    ]
    # By their number, not their trust: a report with little trust must weigh less.
    return sum(share * value for share, value in said) / len(said) if said else None


def _conceded(request: Request, vector: str, own: float, side: int) -> float:
    """Move a further round's word towards the other side's last one."""
    for report in request.reports:
        other = report.adjustments.get(vector)
        if SIDES.get(report.agent_id) == -side and other is not None:
            granted = round(own + CONCESSION * (other - own), DECIMALS)
            return granted if granted * side > 0.0 else 0.0
    return own


def _bounded(share: float, bound: float) -> float:
    return round(bound * share, DECIMALS)


# --- words ----------------------------------------------------------------------------------------


def _agreement(heard: Mapping[str, Sequence[RuleSignal]]) -> str:
    """Return the confidence of an analyst: how far its readings agree, vector by vector."""
    agreed = strength = weight = 0.0
    for found in heard.values():
        agreed += abs(sum(r.weight * r.lean for r in found))
        strength += sum(r.weight * abs(r.lean) for r in found)
        weight += sum(r.weight for r in found)
    if strength < LEAST_STRENGTH * weight or weight < FULL_WEIGHT:
        return "low"
    return level(agreed / strength, AGREEMENT)


def _conviction(cases: Iterable[float]) -> str:
    """Return the confidence of a researcher: how strong its case is on the whole."""
    made = list(cases)
    return level(sum(made) / len(made), CONVICTION) if made else "low"


def level(value: float, levels: Iterable[tuple[str, float]]) -> str:
    """Return the confidence whose least value a value reaches first, "low" below all of them."""
    return next((name for name, least in levels if value >= least), "low")


def _report(
    request: Request,
    heard: Mapping[str, Sequence[RuleSignal]],
    moves: Mapping[str, float],
    said: Argument,
    confidence: str,
) -> Reply:
    return {
        "symbol": request.symbol,
        "claim": said.claim,
        "points_for": point_replies(request, said.points_for),
        "points_against": point_replies(request, said.points_against),
        "adjustments": dict.fromkeys(VECTORS) | dict(moves),
        "confidence": confidence,
        "evidence": _cited(request, said, heard),
        "flags": [],
        "abstained": False,
        "abstain_reason": "",
    }


def point_replies(request: Request, points: Iterable[RuleArgument]) -> list[Reply]:
    """Return points as a reply has them."""
    return [
        {
            "id": point.id,
            "value": value_of(request, point.id),
            "says": f"{point.half[:1].upper()}{point.half[1:]}",
            "why": point.why,
        }
        for point in points
    ]


def value_of(request: Request, name: str) -> float | str | None:
    """Return the value of a feature as it is cited; None without one."""
    feature = request.features.get(name)
    return None if feature is None else feature.value


def _rebuttals(request: Request, said: Argument) -> list[Reply]:
    if said.answer is None:
        return []
    cited = {"id": said.answer.point.id, "value": value_of(request, said.answer.point.id)}
    return [cited | {"says": f"{said.answer.says}.", "grants": said.answer.grants}]


def _abstention(request: Request, now: TrendStrength) -> Reply:
    return {
        "symbol": request.symbol,
        "claim": "",
        "points_for": [],
        "points_against": [],
        "adjustments": dict.fromkeys(VECTORS),
        "confidence": "low",
        "evidence": [],
        "flags": [],
        "abstained": True,
        "abstain_reason": f"no readable evidence about {', '.join(focus(request)) or 'any score'}",
        **ahead(request, now),
    }


def ahead(request: Request, now: TrendStrength) -> Reply:
    """Return the time that a firm's report speaks for; nothing elsewhere."""
    return {"horizon": horizon(request, now)} if at_a_firm(request) else {}


def _cited(
    request: Request, said: Argument, heard: Mapping[str, Sequence[RuleSignal]]
) -> list[dict[str, Any]]:
    """Return what else its points read, and the features that name the regime.

    An argument that makes no point rests on all that was read.
    """
    made = said.reads() if said.points_for else (r.main for one in heard.values() for r in one)
    names = (
        *islice(made, CITED),
        ADX,
        NAMED,
        *((LESSON_MEAN,) if request.role.id in SIDES and not at_a_firm(request) else ()),
    )
    return cite(request, names)


def cite(request: Request, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the citations of those features that are there, each with its value."""
    cited = ((name, request.features.get(name)) for name in names)
    return [
        {"id": name, "value": feature.value}
        for name, feature in cited
        if feature is not None and readable(feature.value)
    ]
