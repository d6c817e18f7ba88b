"""The decision card: what three seats think of a symbol, and what their votes come to.

The names of document 004 stand first; every field is required. Every sentence is code's, made of a
vote and of the facts that it cites: no words of a model stand on a card. A card opens nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, get_args

from torra.clock import iso
from torra.committee.evidence import CommitteeEvidence
from torra.committee.seats import (
    UNGROUNDED,
    SeatReport,
    falsifiers_of,
    feature_of,
    rows_for,
    statement_of,
)
from torra.committee.votes import (
    AGREE,
    DECISIONS,
    SEATS,
    SURE,
    VOTES,
    WEIGHTS,
    Decision,
    Reason,
    RiskProfile,
    Seat,
    SeatVote,
    Trust,
    VoteResult,
    count_votes,
)
from torra.store.connection import to_json
from torra.tools.contract import Fact, Value

SCHEMA_VERSION: Final = "1.1"
RUBRIC_VERSION: Final = "2"
"""Counts up with the limits of seats.csv and with what a seat is asked."""

VALID_FOR: Final = timedelta(days=7)
"""How long a card may be older than its evidence and still count."""

PROFILES: Final[tuple[RiskProfile, ...]] = get_args(RiskProfile)

SourceType = Literal["COMMITTEE", "PARTIAL", "RULES", "RULES_STOOD_IN", "NO_QUORUM"]

WHY: Final[Mapping[Reason, str]] = {
    "NONE": "",
    "NO_CONSENSUS": "the seats that agree are too few or weigh too little",
    "LOW_CONFIDENCE": "the seats are not sure enough",
    "NO_QUORUM": "fewer than two seats voted",
    "AVOIDED": "the symbol is on the avoid list",
}
"""Why a card says hold, for people."""


class CommitteeQuestion(NamedTuple):
    """Who is asked of some evidence, and how: VENDOR:MODEL of each seat, none where the rules vote.

    `again` counts how often it was asked anew; `hindsight`: of a past that the models may know;
    `stands_in`: the rules vote as no model could be asked.
    """

    models: tuple[str, ...] = ()
    rounds: int = 0
    order: str = ""
    again: int = 0
    hindsight: bool = False
    stands_in: bool = False


RULES: Final = CommitteeQuestion()
"""The rules are asked."""


class KeyMetrics(Value):
    """Four numbers of document 004; None is not known. `sentiment_score` is -1 to 1."""

    pe: float | None
    roe_pct: float | None
    debt_to_equity: float | None
    sentiment_score: float | None


class CardSeat(Value):
    """One seat of a card: its vote as it counted, and what it cites.

    `stance` is buy, hold or reduce, None of a seat that abstained or failed; `trust` is what its
    vote weighs, 0 to 1. `evidence` has the facts of its points, `falsifiers` says what would speak
    against the vote.
    """

    seat: Seat
    stance: Decision | None
    first_stance: Decision | None
    counted: bool
    answered: bool
    failed: bool
    confidence: Trust | None
    trust: float
    claim: str
    points_for: tuple[str, ...]
    points_against: tuple[str, ...]
    evidence: tuple[Fact, ...]
    falsifiers: tuple[str, ...]
    flags: tuple[str, ...]


class DecisionCard(Value):
    """What the committee says of a symbol; times are ISO with Z, shares 0 to 1.

    `weights` are those of the seats that did not abstain, scaled to 1. `models` are those that
    voted, `cost_usd` is what their votes cost; counted anew under another profile they cost nothing
    more.
    """

    ticker: str
    decision: Decision
    confidence: float
    consensus_reached: bool
    fundamental_summary: str
    sentiment_summary: str
    valuation_summary: str
    dissenting_opinions: tuple[str, ...]
    key_metrics: KeyMetrics
    sources: tuple[str, ...]
    timestamp: str
    schema_version: str
    card_id: str
    instance: str
    symbol: str
    asset: str
    evidence_until: str
    valid_until: str
    price: float | None
    lean: Decision
    why: Reason
    agreement: float
    contested: bool
    risk_profile: RiskProfile
    weights: dict[Seat, float]
    under_other_profiles: dict[RiskProfile, Decision]
    seats: tuple[CardSeat, ...]
    missing: tuple[str, ...]
    source_type: SourceType
    models: tuple[str, ...]
    cost_usd: float
    elapsed_ms: float
    flags: tuple[str, ...]
    evidence_hash: str
    rubric_version: str
    final_statement: str
    hindsight: bool

    @property
    def side(self) -> str:
        """Return the lean, for people: "no side" where no seat voted it."""
        return side_of(self.lean, [one.stance for one in self.seats])


def card_of(
    known: CommitteeEvidence,
    reports: Mapping[Seat, SeatReport | None],
    profile: RiskProfile,
    question: CommitteeQuestion = RULES,
    *,
    now: datetime,
    first: Mapping[Seat, SeatReport | None] | None = None,
    models: tuple[str, ...] = (),
    cost_usd: float = 0.0,
    elapsed_ms: float = 0.0,
) -> DecisionCard | None:
    """Return the card of some reports; None where every seat that was asked failed.

    `reports` has the seats that were asked, None of one that failed; others abstained. `first` has
    what they said in the first round where there were two, `models` who answered.
    """
    seats = tuple(_seat(seat, known, reports, first or reports) for seat in SEATS)
    name = f"{name_of_question(known, question)}-{question.again}"
    counted = _counted(seats, profile, known.symbol, name)
    if counted is None:
        return None
    source_type: SourceType = "COMMITTEE" if question.models else "RULES"
    if question.stands_in:
        source_type = "RULES_STOOD_IN"
    elif None in reports.values():
        source_type = "PARTIAL"
    return DecisionCard(
        ticker=known.symbol,
        **{f"{one.seat}_summary": one.claim for one in seats},
        key_metrics=KeyMetrics(
            pe=known.numbers.get("company.pe"),
            roe_pct=known.numbers.get("company.roe_pct"),
            debt_to_equity=known.numbers.get("company.debt_to_equity"),
            sentiment_score=known.numbers.get("news.score"),
        ),
        sources=known.sources,
        timestamp=iso(now.replace(microsecond=0)),
        schema_version=SCHEMA_VERSION,
        instance=known.instance,
        symbol=known.symbol,
        asset=known.asset,
        evidence_until=iso(known.until),
        valid_until=iso(known.until + VALID_FOR),
        price=known.price,
        seats=seats,
        missing=known.missing,
        source_type="NO_QUORUM" if counted["why"] == "NO_QUORUM" else source_type,
        models=models,
        cost_usd=cost_usd,
        elapsed_ms=elapsed_ms,
        evidence_hash=hash_of_evidence(known),
        rubric_version=RUBRIC_VERSION,
        hindsight=question.hindsight,
        **counted,
    )


def recount(card: DecisionCard, profile: RiskProfile) -> DecisionCard:
    """Return the card of the same votes under a risk profile: arithmetic, nothing is paid."""
    if profile == card.risk_profile:
        return card
    name = card.card_id.rpartition("-")[0]
    return card.model_copy(update=_counted(card.seats, profile, card.symbol, name))


def read_card(document: str) -> DecisionCard | None:
    """Return a stored card; None for one that was altered, or made by another version."""
    try:
        card = DecisionCard.model_validate_json(document)
    except ValueError:
        return None
    return card if card.schema_version == SCHEMA_VERSION else None


def _counted(
    seats: Sequence[CardSeat], profile: RiskProfile, symbol: str, name: str
) -> dict[str, Any] | None:
    """Return the fields of a card that a risk profile decides; None where all failed."""
    stances = {word: stance for stance, word in DECISIONS.items()}
    votes = {
        one.seat: SeatVote(
            stances[one.stance] if one.stance else None,
            one.confidence or "low",
            UNGROUNDED not in one.flags,
        )
        for one in seats
        if one.counted
    }
    results = {each: count_votes(votes, each) for each in PROFILES}
    result = results.pop(profile)
    if result is None:
        return None
    whole = sum(WEIGHTS[profile][seat] for seat in votes) or 1.0
    return {
        "decision": result.decision,
        "confidence": result.confidence,
        "consensus_reached": result.consensus_reached,
        "dissenting_opinions": tuple(
            one.claim for one in seats if one.stance not in (None, result.lean)
        ),
        "card_id": f"{name}-{profile[0]}",
        "lean": result.lean,
        "why": result.reason,
        "agreement": result.agreement,
        "contested": result.contested,
        "risk_profile": profile,
        "weights": {
            seat: round(WEIGHTS[profile][seat] / whole, 4) if seat in votes else 0.0
            for seat in SEATS
        },
        "under_other_profiles": {
            other: one.decision for other, one in results.items() if one is not None
        },
        "flags": ("contested",) if result.contested else (),
        "final_statement": statement(symbol, result, [one.stance for one in seats]),
    }


def hash_of_evidence(known: CommitteeEvidence) -> str:
    """Return the name of some evidence: the first half of the SHA-256 of all that seats read."""
    facts = [one.model_dump() for seat in SEATS for one in known.facts.get(seat, ())]
    told = [known.instance, known.symbol, iso(known.until), known.price, facts, [*known.sources]]
    text = to_json(told)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def name_of_question(known: CommitteeEvidence, question: CommitteeQuestion) -> str:
    """Return the name of what is asked of whom: the same one never asks a model twice."""
    identity = to_json([hash_of_evidence(known), RUBRIC_VERSION, question])
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


def statement(symbol: str, result: VoteResult, stances: Sequence[Decision | None]) -> str:
    """Return what votes of these stances come to in one or two sentences, from numbers alone."""
    agreement, confidence = f"{result.agreement:.2f}", f"{result.confidence:.2f}"
    if result.reason == "NO_QUORUM":
        return f"{symbol}: no quorum, {WHY[result.reason]}. Decision: hold."
    if result.reason == "NONE":
        return f"{symbol}: {result.decision} (agreement {agreement}, confidence {confidence})."
    missed = {
        "no two seats agree": stances.count(result.lean) < VOTES,
        f"agreement {agreement} is under {AGREE:.2f}": result.agreement < AGREE,
        f"confidence {confidence} is under {SURE:.2f}": result.confidence < SURE,
        WHY["AVOIDED"]: result.reason == "AVOIDED",
    }
    side, why = side_of(result.lean, stances), [words for words, holds in missed.items() if holds]
    return f"{symbol} leans to {side}. Decision: hold, as {' and '.join(why)}."


def side_of(lean: Decision, stances: Sequence[Decision | None]) -> str:
    """Return a lean for people: votes to buy and to reduce of one weight lean to no side."""
    return lean if lean in stances else "no side"


def voters(card: DecisionCard) -> str:
    """Return who voted, and what it cost."""
    if not card.models:
        if card.source_type != "RULES_STOOD_IN":
            return "The rules voted: free."
        return "The rules stood in for free: no model could be asked, and `torra doctor` says why."
    past = " They may know what came after: it counts for nothing." if card.hindsight else ""
    return f"{', '.join(card.models)} voted for {card.cost_usd:.4f} USD.{past}"


def _seat(
    seat: Seat,
    known: CommitteeEvidence,
    reports: Mapping[Seat, SeatReport | None],
    first: Mapping[Seat, SeatReport | None],
) -> CardSeat:
    report, before = reports.get(seat), first.get(seat)
    points = () if report is None else (*report.points_for, *report.points_against)
    if report is not None:
        claim = statement_of(report, known)
    elif seat in reports:
        claim = "No answer came."
    else:
        read = [row.feature in known.numbers for row in rows_for(seat, known.asset)]
        claim = f"Too little is known to vote: {sum(read)} of the {len(read)} numbers it reads."
    return CardSeat(
        seat=seat,
        stance=DECISIONS[report.stance] if report else None,
        first_stance=DECISIONS[before.stance] if before else None,
        counted=seat in reports,
        answered=report is not None,
        failed=seat in reports and report is None,
        confidence=report.trust if report else None,
        trust=round(report.vote.weight, 4) if report else 0.0,
        claim=claim,
        points_for=report.points_for if report else (),
        points_against=report.points_against if report else (),
        evidence=tuple(one for one in known.facts.get(seat, ()) if feature_of(one) in points),
        falsifiers=falsifiers_of(report, known) if report else (),
        flags=report.flags if report else (),
    )
