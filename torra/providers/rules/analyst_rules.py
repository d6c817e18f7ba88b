"""The rules in the seats that judge the scores: analysts, experts, researchers, the single scorer.

Each measures the same thing: how far a signal lies from the score that was computed, so that 0
means that the score already says it. An analyst takes the weighted mean of those gaps. A researcher
argues one side: gaps on that side are its case, and gaps on the other side count half against it.
So bull and bear mirror each other, and an advocate without a case votes 0. Thin evidence shrinks
every word towards 0.

What lies over a score does not measure it: it moves the score towards itself, never
past itself, and never back because it is weaker than the score is. The ordinals of the news are
arithmetic over the items' scores, ages and classes; no headline is read.

An expert's `bias` is its side; without one, because the scores have said it already, the way in
which its evidence leans on the whole by `LEANS` or more. An anomaly is named where the evidence has
it, and what shows it is cited. A pattern is named only where code found it, a level only as code
has it. Where trading is dear for its hour, the microstructure expert is sure of nothing.

Reverse every score and the evidence, and every word and ordinal is reversed; relevance alone stays.
Pure functions; nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from agent_config import EXPERTS
from agents.arguments import CLAIM_WORDS, net_side
from agents.contracts import (
    ADJUSTMENT_BOUND,
    ANOMALIES,
    EVENT_CLASSES,
    NO_ANOMALY,
    SCORE_DECIMALS,
    SIDES,
    VECTORS,
    Request,
)
from agents.swarm.anomalies import PATTERN, ROWS, patterns, shown_by
from torra.providers.rules.argument import (
    BIAS,
    DECIMALS,
    Argument,
    Reply,
    argue,
    citation,
    cite,
    falsifiers,
    horizon,
    level,
    report,
    risks,
    towards,
)
from torra.providers.rules.engine import (
    ADX,
    CLOSE,
    LESSON_MEAN,
    REGIME,
    Numbers,
    SeatView,
    mean_lean,
    side_of,
    tanh_of,
)

FULL_WEIGHT: Final = 1.5
"""Summed weight of signals from which a vector is judged in full; with less, proportionally."""

COUNTER_WEIGHT: Final = 0.5
"""Weight of evidence for the other side in an advocate's case."""

REPORT_WEIGHT: Final = 0.6
"""Weight of the analysts' average among a researcher's signals."""

LESSON_WEIGHT: Final = 0.4
"""Weight of what similar trades came to among a researcher's signals. At a firm the research
manager reads them in its place.
"""

CONCESSION: Final = 0.25
"""Share of the gap to the other side's case that a researcher grants in a further round."""

AGREEMENT: Final = {"high": 0.75, "medium": 0.45}
"""Share by which the evidence agrees, from which a confidence is used."""

CONVICTION: Final = {"high": 0.30, "medium": 0.12}
"""Mean case of a researcher, 0 to 1, from which a confidence is used."""

CITED: Final = 20
"""Features that a report cites at most."""

LEAST_STRENGTH: Final = 0.10
"""Mean strength of the signals below which confidence is low whatever they agree on."""

CASE_RISKS: Final = 2
"""Risks that a case names at most."""

LEANS: Final = 0.1
"""Mean lean from which an expert's evidence leans at all."""

LEVELS: Final = 4
"""Levels that are named."""

NOTHING: Final = Argument(0, "")
"""The argument of who read nothing."""

RISKY: Final = ("regulatory", "macro", "geopolitical")
"""Classes of event whose bad news makes a market riskier and not only cheaper."""

TONE: Final = 0.3
"""Score of the news that counts as a clear tone; the word lists seldom reach more."""

CLEAR: Final = 0.05
"""Score from which the tone of the news, or its turn, is one at all."""


def analyst(request: Request) -> Reply:
    """Read the evidence in its regime and say how far it lies from each score."""
    view, role = SeatView(request), request.role
    moves = {vector: round(role.bound * _gap(view, vector), DECIMALS) for vector in view.signals}
    argument = argue(view, moves, net_side(moves, role.focus)) if moves else NOTHING
    reply = _report(view, argument, moves, _agreement(view))
    if role.id in EXPERTS:
        return reply | _finding(view, reply)
    return reply | ({"ordinals": ordinals(view.numbers)} if moves and role.id == "news" else {})


def researcher(request: Request) -> Reply:
    """Argue for higher or lower prices, by the seat's office, than the scores and reports say."""
    view, side = SeatView(request), SIDES[request.role.id]
    cases = {vector: _case(view, vector, side) for vector in view.signals}
    own = {vector: towards(view, side, case) for vector, case in cases.items()}
    other = view.cases[-side].report.adjustments
    moves = {vector: _conceded(value, other.get(vector), side) for vector, value in own.items()}
    argument = argue(view, moves, side, given_up=any(own.values())) if moves else NOTHING
    sure = any(moves.values()) and level(sum(cases.values()) / len(cases), CONVICTION)
    ahead = {"risks": risks(view, argument, CASE_RISKS)} if view.ahead else {}
    ends = {
        "rebuttals": [
            citation(view, answer.id) | {"says": f"{answer.half}.", "grants": answer.grants}
            for answer in argument.answers
        ],
        "falsifiers": falsifiers(view, side, argument.points_for),
    }
    return _report(view, argument, moves, sure or "low") | ahead | ends


def scorer(request: Request) -> Reply:
    """Score the four vectors anew, each within an analyst's bound of the computed score."""
    view, reply = SeatView(request), Reply()
    for vector, score in view.scores.items():
        move, note = 0.0, "no evidence beyond the score"
        if vector in view.signals:
            move = round(ADJUSTMENT_BOUND * _gap(view, vector), DECIMALS)
            alone = view.with_signals({vector: view.signals[vector]})
            note = argue(alone, {vector: move}, side_of(move)).claim
        moved = max(-1.0, min(1.0, score + move))
        reply[vector] = {"score": round(moved, SCORE_DECIMALS), "note": note}
    mean = sum(reply[vector]["score"] for vector in VECTORS) / len(VECTORS)
    return reply | {"summary": f"The four scores average {mean:+.2f}."}


# --- numbers --------------------------------------------------------------------------------------


def _gap(view: SeatView, vector: str) -> float:
    """Return how far the mean lean lies from the score, in [-1, +1], less where evidence is thin.

    What lies over a score moves it by the lean itself at most, and never against the lean's sign.
    """
    signals = view.signals[vector]
    weight, mean = sum(signal.weight for signal in signals), mean_lean(signals)
    low, high = (-1.0, 1.0) if view.gaps else (min(0.0, mean), max(0.0, mean))
    return max(low, min(high, mean - view.scores[vector])) * min(1.0, weight / FULL_WEIGHT)


def _case(view: SeatView, vector: str, side: int) -> float:
    """Return the case for a side, less half of what speaks against it, in [-1, +1]."""
    score = view.scores[vector]
    gaps = [(signal.weight, side * (signal.lean - score)) for signal in view.signals[vector]]
    others = (
        (REPORT_WEIGHT, view.mean_adjustment(vector)),
        (LESSON_WEIGHT, None if view.ahead else view.lessons()),
    )
    gaps += [(share, side * lean) for share, lean in others if lean is not None]
    weight = sum(share for share, _ in gaps)
    own = sum(share * gap for share, gap in gaps if gap > 0) / weight
    counter = -sum(share * gap for share, gap in gaps if gap < 0) / weight
    case = max(-1.0, min(1.0, own - COUNTER_WEIGHT * counter))
    return case * min(1.0, weight / FULL_WEIGHT)


def _conceded(own: float, other: float | None, side: int) -> float:
    """Move a further round's word towards the other side's last one."""
    if other is None:
        return own
    granted = round(own + CONCESSION * (other - own), DECIMALS)
    return granted if granted * side > 0.0 else 0.0


def _agreement(view: SeatView) -> str:
    """Return the confidence of an analyst: how far its signals agree, vector by vector."""
    agreed = strength = weight = 0.0
    for signals in view.signals.values():
        pulls = [signal.weight * signal.lean for signal in signals]
        agreed += abs(sum(pulls))
        strength += sum(map(abs, pulls))
        weight += sum(signal.weight for signal in signals)
    if strength < LEAST_STRENGTH * weight or weight < FULL_WEIGHT:
        return "low"
    return level(agreed / strength, AGREEMENT)


# --- replies --------------------------------------------------------------------------------------


def _report(view: SeatView, argument: Argument, moves: Numbers, confidence: str) -> Reply:
    """Return a report that cites what else its points read, and what names the regime.

    An argument that makes no point rests on all that was read.
    """
    names = argument.reads() if argument.points_for else [signal.main for signal in view.all()]
    names = [*names[:CITED], ADX, REGIME]
    if view.role.id in SIDES and not view.ahead:
        names.append(LESSON_MEAN)
    reply = report(view, argument, moves, confidence, names)
    return reply | ({"horizon": horizon(view)} if view.ahead else {})


def _finding(view: SeatView, reply: Reply) -> Reply:
    """Return what an expert's finding has beside a report; cites in the reply what is odd."""
    features, seat = view.features, view.role.id
    side, odd = 0, NO_ANOMALY
    if not reply["abstained"]:
        if seat == "microstructure" and shown_by("fragile", features):
            reply["confidence"] = "low"
        lean = side_of(mean_lean(next(iter(view.signals.values()))), LEANS)
        side = net_side(reply["adjustments"], view.role.focus) or lean
        shown = {name: shown_by(name, features) for name in ROWS if name in ANOMALIES[seat]}
        odd = next((name for name in shown if shown[name]), NO_ANOMALY)
        cited = {citation["id"] for citation in reply["evidence"]}
        reply["evidence"] += cite(view, (n for n in shown.get(odd, ()) if n not in cited))
        if odd != NO_ANOMALY:
            reply["claim"] = _with_odd(reply["claim"], odd)
    finding: Reply = {"anomaly": odd, "bias": BIAS[side]}
    if seat == "geometry":
        drawn = patterns(features)
        # the pattern of the expert's own side, else the only one
        named = [name for name in drawn if drawn[name] == side or len(drawn) == 1]
        pattern = named[0].removeprefix(PATTERN) if named else NO_ANOMALY
        finding |= {"pattern": pattern, "levels": _levels(view.numbers)}
    return finding


def _with_odd(claim: str, odd: str) -> str:
    """Return a claim that ends in what is odd; its last points go where it would be too long."""
    body, ending = claim.removesuffix("."), f"; odd: {odd.replace('_', ' ')}."
    while len(f"{body}{ending}".split()) > CLAIM_WORDS and " and " in body:
        body = body.rpartition(" and ")[0]
    return f"{body}{ending}"


def _levels(numbers: Numbers) -> list[float]:
    """Return the prices of the nearest levels, nearest first."""
    names = sorted(numbers)
    prices = dict.fromkeys(numbers[name] for name in names if name.startswith("geometry.level."))
    # without a close they keep their order
    close = numbers.get(CLOSE, math.inf)
    return sorted(prices, key=lambda price: abs(price - close))[:LEVELS]


def ordinals(numbers: Numbers) -> dict[str, int]:
    """Return what the news amounts to, in the whole numbers of ORDINALS."""
    tone = numbers.get("news.score", 0.0)
    # By age, then by id: items of one moment keep one order.
    items = sorted(
        (numbers[age], name, score)
        for name, score in numbers.items()
        if name.startswith("news.item_score.")
        if (age := name.replace("score", "age_h", 1)) in numbers
    )
    scores, half = [score for *_, score in items], len(items) // 2
    turn = _mean(scores[:half]) - _mean(scores[half:]) if half else 0.0
    classed = any(numbers.get(f"news.{name}_items") for name in EVENT_CLASSES[:-1])
    risky = [numbers[name] for kind in RISKY if (name := f"news.{kind}_score") in numbers]
    return {
        "relevance": 2 if classed else int(bool(items or numbers.get("news.items"))),
        "sentiment": side_of(tone, CLEAR),
        "price_impact": round(3 * tanh_of(tone, TONE)),
        "trend": side_of(turn, CLEAR),
        "investor_confidence": round(3 * _mean([side_of(score) for score in scores])),
        # Bad news, which is negative, is more risk.
        "risk_profile_change": -round(2 * tanh_of(_mean(risky), TONE)),
    }


def _mean(scores: Sequence[float]) -> float:
    return math.fsum(scores) / len(scores) if scores else 0.0
