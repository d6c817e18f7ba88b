"""The vote against an oracle in exact fractions, and what must hold of every state.

The oracle is written from docs/committee.md alone and shares no code with the program.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, permutations, product
from typing import Any

import pytest

from tests.conftest import Scale
from torra.committee.votes import (
    DECISIONS,
    SEATS,
    WEIGHTS,
    RiskProfile,
    SeatVote,
    VoteResult,
    count_votes,
)

PROFILES: tuple[RiskProfile, ...] = ("conservative", "balanced", "aggressive")
FAILED = SeatVote(None)
TRUSTS = ("low", "medium", "high")
VOTES = [
    SeatVote(stance, trust, grounded)  # type: ignore[arg-type]  # one of the three
    for stance, trust, grounded in product((-1, 0, 1), TRUSTS, (True, False))
]
ORDER = {"reduce": -1, "hold": 0, "buy": 1}

State = tuple[SeatVote | None, ...]
"""The votes in the order of SEATS; None abstains."""


def states() -> Iterator[tuple[State, RiskProfile]]:
    """Yield the 20,577 states in which no seat abstains."""
    for profile in PROFILES:
        for votes in product([*VOTES, FAILED], repeat=3):
            yield votes, profile


def came_to(state: State, profile: RiskProfile, *, is_avoided: bool = False) -> VoteResult | None:
    votes = {seat: vote for seat, vote in zip(SEATS, state, strict=True) if vote is not None}
    return count_votes(votes, profile, is_avoided=is_avoided)


# --- the oracle -----------------------------------------------------------------------------------

PERCENT = {"conservative": (50, 20, 30), "balanced": (35, 30, 35), "aggressive": (25, 45, 30)}
HUNDREDTHS = {"high": 100, "medium": 75, "low": 50}


def oracle(state: State, profile: str, is_avoided: bool) -> tuple[Any, ...] | None:
    seated = [(vote, PERCENT[profile][at]) for at, vote in enumerate(state) if vote is not None]
    if seated and not [vote for vote, _ in seated if vote.stance is not None]:
        return None
    total = sum(percent for _, percent in seated) or 1
    behind = {-1: Fraction(0), 0: Fraction(0), 1: Fraction(0)}
    for vote, percent in seated:
        if vote.stance is not None:
            behind[vote.stance] += Fraction(percent, total)
    most = max(behind.values())
    leaders = [stance for stance, share in behind.items() if share == most]
    lean = leaders[0] if len(leaders) == 1 else 0
    sure = Fraction(0)
    opposite = False
    for vote, percent in seated:
        share = Fraction(percent, total)
        if vote.stance is None:
            sure -= share
            continue
        trust = Fraction(HUNDREDTHS[vote.trust], 100) * (1 if vote.grounded else Fraction(3, 10))
        if vote.stance == lean:
            sure += share * trust
        elif lean != 0 and vote.stance == -lean:
            sure -= share * trust
            opposite = True
    sure = max(sure, Fraction(0))
    answered = [vote for vote, _ in seated if vote.stance is not None]
    for_it = [vote for vote in answered if vote.stance == lean]
    if len(answered) < 2:
        why = "NO_QUORUM"
    elif len(for_it) < 2 or most < Fraction(7, 10):
        why = "NO_CONSENSUS"
    elif sure < Fraction(6, 10):
        why = "LOW_CONFIDENCE"
    else:
        why = "AVOIDED" if lean == 1 and is_avoided else "NONE"
    word = {-1: "reduce", 0: "hold", 1: "buy"}[lean]
    return word, most, sure, word if why == "NONE" else "hold", why, opposite


def check(state: State, profile: RiskProfile, is_avoided: bool) -> None:
    found, wanted = (
        came_to(state, profile, is_avoided=is_avoided),
        oracle(state, profile, is_avoided),
    )
    if found is None or wanted is None:
        assert found is wanted
        return
    assert (found.lean, *found[3:]) == (wanted[0], *wanted[3:]), (state, profile)
    assert found.agreement == pytest.approx(float(wanted[1]), abs=1e-8)
    assert found.confidence == pytest.approx(float(wanted[2]), abs=1e-8)


def test_every_state_is_that_of_the_oracle(scaled: Scale) -> None:
    """All 20,577 at night, each seventh by day."""
    assert sum(1 for _ in states()) == 20_577
    for state, profile in islice(states(), 0, None, scaled(1, least=0) or 7):
        for is_avoided in (False, True):
            check(state, profile, is_avoided)


def test_states_with_seats_that_abstain_are_those_of_the_oracle(scaled: Scale) -> None:
    """10,000 drawn ones at night, all of them once by day."""
    chance = random.Random(70)
    choices = [*VOTES, FAILED, None, None, None, None]
    for _ in range(scaled(10_000, least=500)):
        state = tuple(chance.choices(choices, k=3))
        check(state, chance.choice(PROFILES), chance.random() < 0.5)
    for state in product((None, FAILED, VOTES[-2], VOTES[1], VOTES[8]), repeat=3):
        check(state, chance.choice(PROFILES), is_avoided=False)


# --- properties -----------------------------------------------------------------------------------


def changed(state: State, at: int, vote: SeatVote) -> State:
    return (*state[:at], vote, *state[at + 1 :])


def check_properties(state: State, profile: RiskProfile) -> None:
    before = came_to(state, profile)
    if before is None:
        return
    assert 0.0 <= before.confidence <= before.agreement + 1e-8
    for at, vote in enumerate(state):
        if vote is None or vote.stance is None:
            continue
        broken = came_to(changed(state, at, FAILED), profile)
        if broken is not None:
            if broken.lean == before.lean:
                assert broken.confidence <= before.confidence + 1e-8, "a failure makes it surer"
            if before.decision == "hold":
                assert broken.decision == "hold", "a failure makes a decision"
        if vote.trust != "high":
            surer = vote._replace(trust=TRUSTS[TRUSTS.index(vote.trust) + 1])  # type: ignore[arg-type]
            after = came_to(changed(state, at, surer), profile)
            assert after is not None and after.lean == before.lean
            agrees = DECISIONS[vote.stance] == before.lean
            way = after.confidence - before.confidence
            assert way >= -1e-8 if agrees else way <= 1e-8, "trust works the wrong way"
        if vote.stance < 1:
            after = came_to(changed(state, at, vote._replace(stance=vote.stance + 1)), profile)
            assert after is not None
            assert ORDER[after.decision] >= ORDER[before.decision], "a vote up lowers the decision"


def test_six_properties_hold_in_every_state(scaled: Scale) -> None:
    """In all 20,577 at night, in each seventh by day."""
    for state, profile in islice(states(), 0, None, scaled(1, least=0) or 7):
        check_properties(state, profile)


def test_the_order_of_seats_changes_nothing() -> None:
    chance = random.Random(7)
    for _ in range(500):
        votes = dict(zip(SEATS, chance.choices([*VOTES, FAILED], k=3), strict=True))
        profile = chance.choice(PROFILES)
        turned = {count_votes({seat: votes[seat] for seat in seats}, profile)
                  for seats in permutations(SEATS)}  # fmt: skip
        assert len(turned) == 1


# --- known answers --------------------------------------------------------------------------------


def votes_of(*stances: int | None, trust: str = "high") -> State:
    return tuple(SeatVote(one, trust) for one in stances)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "profile", "decision", "reason"),
    [
        # agreement: 0.70 decides, just below does not
        (votes_of(1, 0, 1), "balanced", "buy", "NONE"),  # 0.70
        (votes_of(-1, 0, -1), "balanced", "reduce", "NONE"),
        (votes_of(1, 1, 0), "balanced", "hold", "NO_CONSENSUS"),  # 0.65
        (votes_of(1, 1, 0), "conservative", "buy", "NONE"),  # 0.70
        (votes_of(1, 0, 1), "aggressive", "hold", "NO_CONSENSUS"),  # 0.55
        (votes_of(0, 1, 1), "aggressive", "buy", "NONE"),  # 0.75
        # confidence: 0.60 decides, just below does not
        ((SeatVote(1, "high"), SeatVote(0, "high"), SeatVote(1, "medium")), "conservative",
         "buy", "NONE"),  # 0.725
        ((SeatVote(1, "high"), SeatVote(1, "low"), SeatVote(0, "low")), "conservative",
         "buy", "NONE"),  # exactly 0.60
        ((SeatVote(1, "high"), SeatVote(1, "low", grounded=False), SeatVote(0, "low")),
         "conservative", "hold", "LOW_CONFIDENCE"),  # 0.53
        (votes_of(1, 1, 1, trust="low"), "balanced", "hold", "LOW_CONFIDENCE"),  # 0.50
        # a loud dissenter, and one that failed
        (votes_of(1, -1, 1), "conservative", "buy", "NONE"),  # exactly 0.60, contested
        (votes_of(1, None, 1), "balanced", "hold", "LOW_CONFIDENCE"),  # 0.70 - 0.30
    ],
)  # fmt: skip
def test_boundaries(state: State, profile: RiskProfile, decision: str, reason: str) -> None:
    found = came_to(state, profile)
    assert found is not None
    assert (found.decision, found.reason) == (decision, reason)
    assert found.consensus_reached == (reason == "NONE")


def test_a_seat_alone_decides_nothing_and_all_failed_is_no_outcome() -> None:
    alone = came_to((SeatVote(1, "high"), None, None), "balanced")
    assert alone is not None
    assert (alone.lean, alone.agreement, alone.decision, alone.reason) == (
        "buy", 1.0, "hold", "NO_QUORUM",
    )  # fmt: skip
    nobody = came_to((None, None, None), "balanced")
    assert nobody is not None and nobody.reason == "NO_QUORUM"
    assert came_to((FAILED, FAILED, None), "balanced") is None


def test_an_avoided_symbol_is_not_bought_but_reduced() -> None:
    bought = came_to(votes_of(1, 1, 1), "balanced", is_avoided=True)
    assert bought is not None
    assert (bought.lean, bought.decision, bought.reason) == ("buy", "hold", "AVOIDED")
    assert bought.consensus_reached
    reduced = came_to(votes_of(-1, -1, -1), "balanced", is_avoided=True)
    assert reduced is not None and reduced.decision == "reduce"


def test_a_dissent_is_contested_and_a_hold_is_not() -> None:
    assert came_to(votes_of(1, -1, 1), "balanced").contested
    assert not came_to(votes_of(1, 0, 1), "balanced").contested
    assert not came_to(votes_of(0, 1, 0), "balanced").contested


def test_weights_of_a_profile_are_whole() -> None:
    assert {round(sum(one.values()), 12) for one in WEIGHTS.values()} == {1.0}
