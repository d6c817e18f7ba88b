"""The three seats: what each says of its evidence, by rules or by a model's checked reply.

A seat's vote is a stance and a trust. Code reads both from fields of a reply, never from its
sentences, and a vote that cites nothing which leans its way is ungrounded. In the second round a
seat has seen the others: a changed vote, or a higher trust, counts with a new citation that leans
to the new side, else its first vote counts. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from agents.features import name_of, row_of, unit_of
from torra.committee.evidence import ROWS, CommitteeEvidence, SeatRow
from torra.committee.votes import Seat, SeatVote, Trust
from torra.exhibits.figures import format_any, sanitize
from torra.tools.contract import Fact, Value
from torra.words.badge import capital

CLEAR: Final = 1 / 3
"""Mean lean from which the rules vote to buy or to reduce."""

SURE: Final = 2 / 3
"""Mean lean from which they are sure of it; and up to 1 less it, that nothing is to be done."""

FEW: Final = 3
"""Facts below which the rules are never sure."""

MOST_POINTS: Final = 4
LONGEST_CLAIM: Final = 300
LONGEST_FALSIFIER: Final = 160
"""Points of each side of a report, and characters of its sentences."""

TRUSTS: Final[tuple[Trust, ...]] = get_args(Trust)
STANCES: Final = {-1: "reduce", 0: "hold", 1: "buy"}

SWAYED: Final = "swayed"
UNGROUNDED: Final = "ungrounded"
DROPPED: Final = "citation dropped"
NO_SECOND: Final = "no second answer"
FLAGS: Final = {
    SWAYED: "its first vote counts", UNGROUNDED: "it cites nothing for its vote",
    DROPPED: "a citation was false", NO_SECOND: "its first vote counts",
}  # fmt: skip
"""Flags of a report, each with what it means."""


class SeatReport(Value):
    """What a seat says: its vote, a claim, and the features that it cites for and against.

    A model's claim and falsifiers are read by the other seats alone; a card has code's sentence.
    `stance` is -1 reduce, 0 hold or 1 buy. The features are ids of the registry that the evidence
    holds, strongest first; `cited` has all that a reply named, the points some of them.
    """

    seat: Seat
    stance: int
    trust: Trust
    claim: str
    points_for: tuple[str, ...] = ()
    points_against: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()
    falsifiers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def vote(self) -> SeatVote:
        """Return its vote, with the trust of one that holds to nothing cut."""
        return SeatVote(self.stance, self.trust, UNGROUNDED not in self.flags)


def leans(seat: Seat, known: CommitteeEvidence) -> dict[str, float]:
    """Return how each known feature of a seat leans, -1 to 1, the strongest first."""
    rows = {row.feature: row for row in rows_for(seat, known.asset)}
    found = {
        feature: rows[feature].lean(float(one.value))
        for one in known.facts.get(seat, ())
        if (feature := feature_of(one)) in rows and one.value is not None
    }
    return dict(sorted(found.items(), key=lambda item: -abs(item[1])))


def rows_for(seat: Seat, asset: str) -> list[SeatRow]:
    """Return the rows that a seat reads of an asset class."""
    return [row for row in ROWS if row.seat == seat and row.asset == asset]


def feature_of(one: Fact) -> str:
    """Return the feature of a fact of the evidence."""
    return one.id.partition("/")[2]


# --- by rules -------------------------------------------------------------------------------------


def by_rules(seat: Seat, known: CommitteeEvidence) -> SeatReport | None:
    """Return what the rules say for a seat: the mean of its leans; None where it abstains."""
    found = leans(seat, known)
    if not found:
        return None
    mean = math.fsum(found.values()) / len(found)
    stance = (mean >= CLEAR) - (mean <= -CLEAR)
    is_clear = abs(mean) >= SURE if stance else abs(mean) <= CLEAR / 2
    trust: Trust = "high" if is_clear else "medium"
    if len(found) < FEW:
        trust = "low"
    for_it, against = _sorted(found, stance)
    return SeatReport(
        seat=seat,
        stance=stance,
        trust=trust,
        claim=claim_of(seat, stance, known, for_it or against),
        points_for=for_it,
        points_against=against,
    )


def _sorted(found: Mapping[str, float], stance: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the features for a stance and those against it; for a hold, those near the middle."""
    side = stance or 1
    if stance == 0:
        calm = sorted(found, key=lambda one: abs(found[one]))
        quiet = [one for one in calm if abs(found[one]) < CLEAR]
        return tuple(quiet[:MOST_POINTS]), tuple(
            one for one in found if one not in quiet
        )[:MOST_POINTS]  # fmt: skip
    return (
        tuple(one for one in found if found[one] * side > 0.0)[:MOST_POINTS],
        tuple(one for one in found if found[one] * side < 0.0)[:MOST_POINTS],
    )


def claim_of(seat: Seat, stance: int, known: CommitteeEvidence, points: Sequence[str]) -> str:
    """Return a vote in sentences of code: the stance, and the two strongest facts behind it."""
    texts = {feature_of(one): one.sentence for one in known.facts.get(seat, ())}
    words = " ".join(texts[point] for point in points[:2])
    return f"{capital(seat)} leans to {STANCES[stance]}. {words}".strip()


def statement_of(report: SeatReport, known: CommitteeEvidence) -> str:
    """Return a report in sentences of code, whoever made it."""
    points = report.points_for or report.points_against
    return claim_of(report.seat, report.stance, known, points)


def falsifiers_of(report: SeatReport, known: CommitteeEvidence) -> tuple[str, ...]:
    """Return what would speak against a vote: where its two strongest points stop to lean its way.

    A point for a hold stops where it leans clearly to a side. The sentences are code's.
    """
    rows = {row.feature: row for row in rows_for(report.seat, known.asset)}
    found = leans(report.seat, known)
    sentences = []
    for point in report.points_for[:2]:
        edge = 0.0 if report.stance else math.copysign(CLEAR, found[point])
        limit, scale = rows[point].value_at(edge), 10.0 ** (row_of(point).decimals or 0)
        way, to = ("falls", math.floor) if limit < known.numbers[point] else ("rises", math.ceil)
        figure = f"{format_any(to(round(limit * scale, 6)) / scale)} {unit_of(point)}".strip()
        sentences.append(f"{capital(name_of(point))} {way} to {figure}.")
    return tuple(sentences)


# --- by a model's reply ---------------------------------------------------------------------------


def reply_schema(features: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of a seat's reply; every field is required."""
    cited = {"type": "array", "items": {"type": "string", "enum": [*features]}}
    fields = {
        "stance": {"type": "integer", "enum": [*STANCES]},
        "confidence": {"type": "string", "enum": [*TRUSTS]},
        "claim": {"type": "string"},
        "points_for": cited,
        "points_against": cited,
        "falsifiers": {"type": "array", "items": {"type": "string"}},
    }
    return {
        "type": "object",
        "properties": fields,
        "required": [*fields],
        "additionalProperties": False,
    }


def report_of(reply: Any, seat: Seat, known: CommitteeEvidence) -> SeatReport | None:
    """Return what a model's reply says for a seat; None for one that has no vote of this shape.

    A citation stands on the side to which its fact leans; one of a fact that is not known, or that
    leans nowhere, is dropped. A vote to buy or reduce without a citation that leans its way is
    ungrounded, and so is one to hold that cites nothing.
    """
    if not isinstance(reply, dict):
        return None
    stance, trust = reply.get("stance"), reply.get("confidence")
    if type(stance) is not int or stance not in STANCES or trust not in TRUSTS:
        return None
    found = leans(seat, known)
    named = [*_texts(reply.get("points_for")), *_texts(reply.get("points_against"))]
    cited = [one for one in dict.fromkeys(named) if one in found]
    flags = [DROPPED] if len(cited) < len(dict.fromkeys(named)) else []
    for_it, against = _sorted({one: found[one] for one in found if one in cited}, stance)
    if not (for_it if stance else cited):
        flags.append(UNGROUNDED)
    return SeatReport(
        seat=seat,
        stance=stance,
        trust=trust,
        claim=sanitize(reply.get("claim") or "", LONGEST_CLAIM),
        points_for=for_it,
        points_against=against,
        cited=tuple(cited),
        falsifiers=tuple(
            sanitize(one, LONGEST_FALSIFIER) for one in _texts(reply.get("falsifiers"))[:3]
        ),
        flags=tuple(flags),
    )


def vote_of(report: SeatReport) -> dict[str, Any]:
    """Return a report as a reply without a model's words: `report_of` reads the same vote of it."""
    return {
        "stance": report.stance, "confidence": report.trust, "points_for": [*report.cited],
        "points_against": ["?"] if DROPPED in report.flags else [],  # its name is a model's word
    }  # fmt: skip


def second_vote(first: SeatReport, second: SeatReport, known: CommitteeEvidence) -> SeatReport:
    """Return what counts after the second round: the second report, or the first one, swayed.

    A changed stance, or a higher trust, needs a citation that the first report did not have and
    that leans to the new side (of a hold: any that is new).
    """
    rises = TRUSTS.index(second.trust) < TRUSTS.index(first.trust)
    changes = second.stance != first.stance
    found = leans(second.seat, known)
    fresh = [
        one
        for one in second.cited
        if one not in first.cited and (second.stance == 0 or found[one] * second.stance > 0.0)
    ]
    if (changes or rises) and (not fresh or UNGROUNDED in second.flags):
        return first.model_copy(update={"flags": (*first.flags, SWAYED)})
    return second


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
