"""The brain's arithmetic: composite, consensus, verdict, the gate's shadow, the veto's latch."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.contracts import VECTORS
from tests.cases import cases
from torra.config import Profile, SentimentWeights, Thresholds
from torra.verdict import sentiment_rules as rules

T = datetime(2021, 12, 1, 12, tzinfo=UTC)
WEIGHTS = Profile().timeframe_weights
THRESHOLDS = Thresholds()

scores = st.floats(-1, 1, allow_nan=False)
vectors = st.fixed_dictionaries(dict.fromkeys(VECTORS, scores))
weight = st.floats(0, 10, allow_subnormal=False)
weights = st.builds(
    SentimentWeights, price_action=weight, key_levels=weight, momentum=weight, structure=weight,
    ath=st.floats(0.01, 10),
)  # fmt: skip


@given(vectors, scores, weights, st.sampled_from((*VECTORS, "ath")), scores)
def test_raising_a_vector_never_lowers_the_composite(
    vector: dict[str, float], ath: float, weights: SentimentWeights, name: str, other: float
) -> None:
    raised = {**vector, "ath": ath}
    raised[name] = max(raised[name], other)
    higher = raised.pop("ath")
    assert rules.composite(raised, higher, weights) >= rules.composite(vector, ath, weights)


@given(scores, scores, scores)
def test_raising_a_composite_never_lowers_consensus_or_verdict(
    low: float, high: float, hour: float
) -> None:
    low, high = sorted((low, high))
    rank = {"SELL": -1, "HOLD": 0, "BUY": 1}
    below, above = (
        rules.consensus({"M15": (T, value), "H1": (T, hour)}, WEIGHTS, T) for value in (low, high)
    )
    assert below <= above
    assert rank[rules.verdict(below, THRESHOLDS)] <= rank[rules.verdict(above, THRESHOLDS)]


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_a_broken_score_is_never_a_neutral_one(broken: float) -> None:
    vector = {**dict.fromkeys(VECTORS, 0.1), "momentum": broken}
    with pytest.raises(ValueError, match="finite"):
        rules.composite(vector, 0.0, SentimentWeights())
    with pytest.raises(ValueError, match="finite"):
        rules.consensus({"M15": (T, broken)}, WEIGHTS, T)
    with pytest.raises(ValueError, match="finite"):
        rules.verdict(broken, THRESHOLDS)


@pytest.mark.parametrize("entry", [{"score": 0.5}, 0.5])
def test_scores_are_read_as_numbers_or_as_entries_of_a_chart(entry: Any) -> None:
    assert rules.numbers(dict.fromkeys(VECTORS, entry)) == dict.fromkeys(VECTORS, 0.5)


@cases(
    ("score", "words"),
    [
        (-1.5, "the score of momentum is outside"),
        (1.0000001, "the score of momentum is outside"),
        ({"score": 2}, "the score of momentum is outside"),
        (math.nan, "the score of momentum is not a number"),
        (True, "the score of momentum is not a number"),
        ("0.5", "the score of momentum is not a number"),
    ],
)
def test_what_is_no_score_is_refused(score: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rules.numbers({**dict.fromkeys(VECTORS, 0.1), "momentum": score})


@cases(
    ("age", "timeframe", "counts"),
    [
        (timedelta(0), "M15", True),
        (timedelta(minutes=30), "M15", True),
        (timedelta(minutes=30, seconds=1), "M15", False),
        (timedelta(hours=2), "H1", True),
        (timedelta(hours=2, seconds=1), "H1", False),
        (timedelta(seconds=-1), "H1", False),  # from after as_of: not visible
    ],
)
def test_only_fresh_composites_count(age: timedelta, timeframe: str, counts: bool) -> None:
    other = "H1" if timeframe == "M15" else "M15"
    composites = {timeframe: (T - age, 1.0), other: (T, 0.0)}
    expected = WEIGHTS[timeframe] / sum(WEIGHTS.values()) if counts else 0.0
    assert rules.consensus(composites, WEIGHTS, T) == pytest.approx(expected, abs=1e-9)
    assert rules.is_fresh(T - age, timeframe, T) is counts


def test_a_timeframe_without_weight_is_ignored_and_nothing_left_is_a_hold() -> None:
    assert rules.consensus({"H1": (T, 0.6), "H4": (T, -1.0)}, WEIGHTS, T) == 0.6
    assert rules.consensus({"H4": (T, -1.0)}, WEIGHTS, T) == 0.0
    assert rules.verdict(rules.consensus({}, WEIGHTS, T), THRESHOLDS) == "HOLD"


def test_verdict_at_its_two_thresholds() -> None:
    thresholds = Thresholds(buy=0.6, sell=0.3)
    values = (0.59999999, 0.6, -0.29999999, -0.3)
    assert [rules.verdict(value, thresholds) for value in values] == [
        "HOLD", "BUY", "HOLD", "SELL",
    ]  # fmt: skip


@cases(
    ("verdict", "low", "high", "stands"),
    [
        ("BUY", 0.5, 0.9, True),
        ("BUY", 0.49999999, 0.9, False),
        ("SELL", -0.9, -0.5, True),
        ("SELL", -0.9, -0.49999999, False),
        ("HOLD", 0.9, 0.9, False),
    ],
)
def test_an_opening_stands_without_the_gates_help(
    verdict: str, low: float, high: float, stands: bool
) -> None:
    assert rules.opening_stands(verdict, low, high, THRESHOLDS) is stands


@given(vectors, vectors)
def test_low_and_high_enclose_both_blends(
    gated: dict[str, float], ungated: dict[str, float]
) -> None:
    low, high = rules.low_high(gated, ungated)
    for vector in VECTORS:
        assert {low[vector], high[vector]} == {gated[vector], ungated[vector]}
        assert low[vector] <= high[vector]


BOTH, FREE = frozenset(rules.SIDES), frozenset[str]()


def latch(held, low: float, high: float, veto: bool, openings=BOTH):
    return rules.veto_latch(
        held, (low, high), THRESHOLDS, vetoes=rules.SIDES if veto else (), openings=openings
    )


def test_a_veto_latches_until_the_outer_consensus_is_inside_its_threshold() -> None:
    held = latch(FREE, 0.4, 0.6, veto=True)
    assert held == {"BUY"}
    assert latch(held, 0.3, 0.5, veto=False) == held
    assert latch(held, 0.3, 0.49999999, veto=False) == FREE


def test_the_other_side_keeps_its_own_latch() -> None:
    flipped = latch({"BUY"}, -0.7, -0.6, veto=True)
    assert flipped == {"SELL"}
    assert rules.release_latch(flipped, (-0.5, 0.0), THRESHOLDS) == flipped
    assert rules.release_latch(flipped, (-0.4, 0.0), THRESHOLDS) == FREE


def test_no_veto_and_no_opening_latch_nothing() -> None:
    assert latch(FREE, 0.6, 0.6, veto=False) == FREE
    assert latch(FREE, 0.1, 0.1, veto=True) == FREE
    assert latch(FREE, 0.6, 0.6, veto=True, openings=FREE) == FREE


def test_a_lower_multiplier_frees_no_opening_through_the_latch() -> None:
    """Three ticks, the first vetoed, at every pair of multipliers: lower ones open no more."""

    def opens(first: float, second: float) -> bool:
        held = FREE
        for multiplier, veto in ((first, True), (second, False), (1.0, False)):
            l1, move = 0.47, 0.06
            final = l1 + move * multiplier
            held = latch(held, min(final, l1 + move), max(final, l1 + move), veto=veto)
        return "BUY" not in held

    steps = (0.0, 0.1, 0.5, 0.9, 1.0)
    for first in steps:
        for second in steps:
            lower = [opens(a, b) for a in steps for b in steps if a <= first and b <= second]
            assert opens(first, second) or not any(lower)
