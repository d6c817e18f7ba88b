"""The judge's expected value: equal to exact fractions, borders at 0, and a veto of its own side.

`standing` is what the host tells of earlier chances: standing.win_share_K by tenths of what was
said.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from agents.contracts import AgentReport, Feature
from agents.debate.scoring import DIRECTIONS, UNJUDGED
from agents.debate.swarm import bin_of, expected_value
from tests.doubles import scripted
from tests.doubles.scripted import SWARM_FEATURES, Scripted, a_report, context, debate, settings
from torra.evaluation.standing.past_calls import bin_of as bin_of_host

Scaled = Callable[..., int]
OWN: Final = {"LONG": "BUY", "SHORT": "SELL"}
OTHER: Final = {"LONG": "SELL", "SHORT": "BUY"}


def judge(side: str, said: float) -> AgentReport:
    return a_report("judge", winner=side, win_share=said)


def stakes(reward: Any, cost: Any, standing: Mapping[int, Any] | None = None) -> dict[str, Feature]:
    told = {
        "stakes.reward_r": reward,
        "stakes.cost_r": cost,
        **{f"standing.win_share_{k}": value for k, value in (standing or {}).items()},
    }
    return {name: Feature(name, value) for name, value in told.items()}


def exactly(number: float) -> Fraction:
    """Return a number as it is written, which is what the oracle reckons with."""
    return Fraction(repr(number))


def test_it_equals_exact_fractions(scaled: Scaled) -> None:
    rng, met = random.Random(13), Counter[str]()
    for _ in range(scaled(100_000, 4_000)):
        said, reward = rng.randint(0, 1_000) / 1_000, rng.randint(0, 4_000) / 1_000
        cost = rng.randint(0, 1_000) / 1_000
        if rng.random() < 0.3:  # at the border, or a millionth to either side of it
            border = exactly(said) * (1 + exactly(reward)) - 1
            cost = float(border + Fraction(rng.choice([-1, 0, 1]), 10**6))
        if cost < 0.0:
            continue
        standing = {k: rng.choice([None, rng.randint(0, 10_000) / 10_000]) for k in range(10)}
        if rng.random() < 0.5:
            standing = {}
        side = rng.choice(["LONG", "SHORT"])
        worth = expected_value(judge(side, said), stakes(reward, cost, standing))
        assert worth is not None
        known = standing.get(min(9, int(exactly(said) * 10)))
        used = exactly(said) if known is None else min(exactly(said), exactly(known))
        value = used * exactly(reward) - (1 - used) - exactly(cost)
        assert (worth.side, worth.said, worth.calibrated) == (side, said, known)
        assert exactly(worth.used) == used
        assert worth.value_r is not None and abs(exactly(worth.value_r) - value) <= Fraction(
            1, 10**8
        )
        assert (worth.value_r > 0.0) == (value > 0), (said, known, reward, cost)
        assert worth.vetoes == ("" if value > 0 else OWN[side])
        met["vetoed" if worth.vetoes else "not"] += 1
        met["border"] += value == 0
        met["lowered"] += known is not None and known < said
    assert min(met[one] for one in ("vetoed", "not", "border", "lowered")) > 20, met


def test_the_host_counts_chances_by_the_same_tenths() -> None:
    for thousandths in range(1_001):
        said = thousandths / 1_000
        assert bin_of(said) == bin_of_host(said) == min(9, thousandths // 100), said


def test_what_is_not_known_vetoes_nothing() -> None:
    for reward, cost in [(None, 0.1), (2.0, None), ("2", 0.1), (2.0, float("nan")), (True, 0.1)]:
        worth = expected_value(judge("LONG", 0.0), stakes(reward, cost))
        assert worth is not None and (worth.value_r, worth.vetoes) == (None, "")
    no_words = [None, UNJUDGED, AgentReport.abstain("judge", "thin"), judge("NONE", 0.0)]
    assert all(expected_value(told, stakes(2.0, 0.1)) is None for told in no_words)


def test_a_tick_on_which_it_is_negative_opens_nothing_of_that_side_alone() -> None:
    """Without the judge's chance and with it: the other side has not a bit more or less."""
    for side, hold in [(a, b) for a in OWN for b in ("size", "veto")]:
        told = {}
        for said in (0.9, 0.1):
            script = {"judge": lambda request, s=side, p=said: scripted.decision(
                request, side=s, win_share=p
            )}  # fmt: skip
            told[said] = debate(
                Scripted(script),
                about=context(features=SWARM_FEATURES),
                config=settings(mode="swarm", judge_hold=hold),
            )
        good, bad = told[0.9], told[0.1]
        assert not any(map(good.vetoes, DIRECTIONS)) and good.scores == bad.scores
        assert bad.vetoes(OWN[side]) and not bad.vetoes(OTHER[side]) and not bad.veto
        assert bad.size_share(OTHER[side]) == good.size_share(OTHER[side])
        assert bad.ruling.reasons == (*good.ruling.reasons, "NEGATIVE_EV")
        assert bad.as_json()["swarm"]["judgement"]["vetoes"] == OWN[side]
