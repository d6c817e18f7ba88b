"""The vote of the committee's three seats: which way it leans, how surely, and what is decided.

Pure arithmetic over seats: the same replies under another risk profile are counted anew for
nothing. No seat can talk a decision up: a dissenter's trust never raises the confidence, a seat
that failed counts as an opponent at full trust, and where it could buy alone one seat buys nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Seat = Literal["fundamental", "sentiment", "valuation"]
Trust = Literal["high", "medium", "low"]
RiskProfile = Literal["conservative", "balanced", "aggressive"]
Decision = Literal["buy", "hold", "reduce"]
Reason = Literal["NONE", "NO_CONSENSUS", "LOW_CONFIDENCE", "NO_QUORUM", "AVOIDED"]

SEATS: Final[tuple[Seat, ...]] = ("fundamental", "sentiment", "valuation")

WEIGHTS: Final[Mapping[RiskProfile, Mapping[Seat, float]]] = {
    "conservative": {"fundamental": 0.50, "sentiment": 0.20, "valuation": 0.30},
    "balanced": {"fundamental": 0.35, "sentiment": 0.30, "valuation": 0.35},
    "aggressive": {"fundamental": 0.25, "sentiment": 0.45, "valuation": 0.30},
}
"""Share of each seat's vote; each profile's add up to 1."""

TRUST: Final[Mapping[Trust, float]] = {"high": 1.0, "medium": 0.75, "low": 0.5}

UNGROUNDED: Final = 0.3
"""Factor of the trust of a vote whose citations do not hold."""

AGREE: Final = 0.70
SURE: Final = 0.60
"""Least agreement, and least confidence, of a decision that is not to hold for want of them."""

VOTES: Final = 2
"""Seats that must have answered, and that must have voted for what is decided."""

DIGITS: Final = 8
"""Decimals to which shares are rounded before they are compared."""

DECISIONS: Final[Mapping[int, Decision]] = {1: "buy", 0: "hold", -1: "reduce"}


class SeatVote(NamedTuple):
    """What a seat voted: -1 reduce, 0 hold, 1 buy, and how sure it is of it.

    `stance` None: the seat failed. A seat that abstains, as nothing is known to it, has no vote.
    """

    stance: int | None
    trust: Trust = "low"
    grounded: bool = True

    @property
    def weight(self) -> float:
        """Return how much of its seat's weight speaks for the stance, 0 to 1."""
        return TRUST[self.trust] * (1.0 if self.grounded else UNGROUNDED)


class VoteResult(NamedTuple):
    """What the votes come to.

    `agreement` is the largest share of weight behind one stance, `confidence` what of it is left
    after doubt and opponents; both are 0 to 1. `contested`: a seat voted the opposite of the lean.
    """

    lean: Decision
    agreement: float
    confidence: float
    decision: Decision
    reason: Reason
    contested: bool

    @property
    def consensus_reached(self) -> bool:
        """Whether the seats agreed, surely enough, on what they lean to."""
        return self.reason in ("NONE", "AVOIDED")


def count_votes(
    votes: Mapping[Seat, SeatVote], profile: RiskProfile, *, is_avoided: bool = False
) -> VoteResult | None:
    """Return what the votes of the seats that did not abstain come to; None where all failed.

    Weights of the seats that voted or failed are scaled to 1. A tie leans to hold.
    """
    if votes and all(vote.stance is None for vote in votes.values()):
        return None
    whole = sum(WEIGHTS[profile][seat] for seat in votes)
    weights = {seat: WEIGHTS[profile][seat] / whole for seat in votes}
    share = {
        stance: round(sum(weights[seat] for seat in votes if votes[seat].stance == stance), DIGITS)
        for stance in DECISIONS
    }
    agreement = max(share.values())
    (lean, *others) = (stance for stance in share if share[stance] == agreement)
    lean = 0 if others else lean
    against = -lean if lean else None
    confidence = sum(weights[seat] * _side(vote, lean, against) for seat, vote in votes.items())
    confidence = max(0.0, round(confidence, DIGITS))
    answers = [vote.stance for vote in votes.values() if vote.stance is not None]
    reason: Reason = "NONE"
    if len(answers) < VOTES:
        reason = "NO_QUORUM"
    elif answers.count(lean) < VOTES or agreement < AGREE:
        reason = "NO_CONSENSUS"
    elif confidence < SURE:
        reason = "LOW_CONFIDENCE"
    elif lean == 1 and is_avoided:
        reason = "AVOIDED"
    return VoteResult(
        DECISIONS[lean],
        agreement,
        confidence,
        DECISIONS[lean] if reason == "NONE" else "hold",
        reason,
        contested=against in answers,
    )


def _side(vote: SeatVote, lean: int, against: int | None) -> float:
    """Return what a vote adds to the confidence by its weight: -1 to 1."""
    if vote.stance is None:
        return -1.0
    return vote.weight * ((vote.stance == lean) - (vote.stance == against))
