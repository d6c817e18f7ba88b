"""The policy `pivotal`: a skipped tick could not have changed its verdict, whoever had spoken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_framework import blend
from agents.contracts import ADJUSTMENT_BOUND, VECTORS
from torra.clock import duration
from torra.config import Profile, SentimentWeights, Thresholds
from torra.store.connection import TickKey
from torra.store.memory import MemoryStore
from torra.verdict import sentiment_rules as rules
from torra.verdict.call_policy import largest_shift, pivotal, sampled

OWN = "M15"
T = datetime(2021, 12, 1, 12, tzinfo=UTC)
score = st.floats(-1, 1, allow_nan=False).map(lambda value: round(value, 8))
vectors = st.fixed_dictionaries(dict.fromkeys(VECTORS, score))
adjustment = st.floats(-ADJUSTMENT_BOUND, ADJUSTMENT_BOUND, allow_nan=False)
adjustments = st.fixed_dictionaries(dict.fromkeys(VECTORS, adjustment))
weight = st.floats(0, 10, allow_subnormal=False)
weights = st.builds(
    SentimentWeights, price_action=weight, key_levels=weight, momentum=weight, structure=weight,
    ath=st.floats(0.01, 10),
)  # fmt: skip
limit = st.floats(0.05, 1)
thresholds = st.builds(Thresholds, buy=limit, sell=limit)
frames = st.dictionaries(st.sampled_from(("M15", "H1", "H4")), st.floats(0.01, 5), min_size=1)


def chart(scores, moves):
    moved = {v: max(-1.0, min(1.0, scores[v] + moves[v])) for v in VECTORS}
    entries = {v: {"score": moved[v], "note": ""} for v in VECTORS}
    return {**entries, "composite_bias": {"score": 0.0, "note": ""}}


@given(vectors, adjustments, score, weights, thresholds, frames, score, score)
@example(
    dict.fromkeys(VECTORS, 0.44), dict.fromkeys(VECTORS, 0.3), 0.44, SentimentWeights(),
    Thresholds(), {"H1": 1.0}, 0.0, 0.0,
)  # fmt: skip
def test_no_skipped_tick_could_have_changed_its_verdict(
    l1: dict[str, float],
    moves: dict[str, float],
    ath: float,
    weight_of: SentimentWeights,
    limits: Thresholds,
    timeframe_weights: dict[str, float],
    other_l1: float,
    other_final: float,
) -> None:
    """Any other composites of the chains, any adjustments within the bound, any weights."""
    own, *others = sorted(timeframe_weights)
    plain = rules.composite(l1, ath, weight_of)

    def consensus(mine, other):
        table = {own: (T, mine), **{name: (T - timedelta(minutes=1), other) for name in others}}
        return rules.consensus(table, timeframe_weights, T)

    quiet = (consensus(plain, other_l1), consensus(plain, other_final))
    if pivotal([quiet], weight_of, limits):
        return
    blended = {v: blend(l1, chart(l1, moves))[v]["score"] for v in VECTORS}
    told = consensus(rules.composite(blended, ath, weight_of), other_final)
    assert rules.verdict(told, limits) == "HOLD"
    assert [rules.verdict(value, limits) for value in quiet] == ["HOLD", "HOLD"]


moment = st.sampled_from(("never", "before", "with it"))


class Sibling(NamedTuple):
    """A timeframe beside the tick's: when it closed, its scores, and what its agents made of them.

    `stored` is whether it was, when the tick is; `final` is the older composite of one that closed
    before.
    """

    closed: str
    scores: dict[str, float]
    moves: dict[str, float]
    final: dict[str, float]
    stored: bool


siblings = st.dictionaries(
    st.sampled_from(("M30", "H1", "H4")),
    st.builds(Sibling, moment, vectors, adjustments, vectors, st.booleans()),
    min_size=1,
)


def keep(store: MemoryStore, name: str, close: datetime, l1, scores, profile: Profile) -> str:
    """Save a tick as its desk would; return its verdict."""
    with store.transaction():
        saved = store.save_sentiment(
            scores, key=TickKey("BTCUSD", name, close - duration(name)), close_time=close, ath=0.1,
            l1=l1, ungated=scores, source_type="L1_ONLY", profile=profile, deliberation=None,
            timeframes=(OWN, "M30", "H1", "H4"),
        )  # fmt: skip
    return saved.verdict


HIGH, LOW, STILL = (dict.fromkeys(VECTORS, value) for value in (0.9, -0.9, 0.0))


@given(vectors, adjustments, siblings, thresholds)
# Its sibling holds it back, and is not stored; or drives it on, and is.
@example(HIGH, STILL, {"H1": Sibling("with it", LOW, STILL, STILL, False)}, Thresholds())
@example(STILL, STILL, {"H1": Sibling("with it", HIGH, STILL, STILL, True)}, Thresholds())
def test_no_skipped_tick_could_have_changed_its_verdict_whatever_closed_with_it(
    l1: dict[str, float],
    moves: dict[str, float],
    others: dict[str, Sibling],
    limits: Thresholds,
) -> None:
    """Whether a sibling is stored before it, after it or never, and whatever its agents say."""
    profile = Profile().model_copy(
        update={
            "thresholds": limits,
            "timeframe_weights": {OWN: 0.3, "M30": 0.4, "H1": 0.6, "H4": 0.5},
        }
    )
    store, weight_of = MemoryStore(), profile.sentiment_weights
    for name, one in others.items():
        if one.closed == "before":
            keep(store, name, T - timedelta(minutes=15), one.scores, one.final, profile)
    together = {
        name: rules.composite(one.scores, 0.1, weight_of)
        for name, one in others.items()
        if one.closed == "with it"
    }
    foreseen = store.foresee(
        TickKey("BTCUSD", OWN, T - duration(OWN)), T, l1=l1, ath=0.1, profile=profile,
        timeframes=(OWN, "M30", "H1", "H4"), together=together,
    )  # fmt: skip
    if pivotal(foreseen, weight_of, limits):
        return
    for name in together:
        one = others[name]
        if one.stored:
            keep(
                store, name, T, one.scores, blend(one.scores, chart(one.scores, one.moves)), profile
            )
    told = keep(store, OWN, T, l1, blend(l1, chart(l1, moves)), profile)
    assert told == "HOLD"


def test_the_policy_skips_quiet_ticks_and_asks_near_a_threshold() -> None:
    shipped = SentimentWeights()
    assert largest_shift(shipped) == pytest.approx(0.054)
    assert not pivotal([(0.0, 0.0)], shipped, Thresholds())
    assert not pivotal([(0.44, -0.44)], shipped, Thresholds())
    assert pivotal([(0.447, 0.0)], shipped, Thresholds())
    assert pivotal([(0.0, -0.447)], shipped, Thresholds())
    assert pivotal([(0.0, 0.0), (0.45, 0.0)], shipped, Thresholds()), "every way counts"
    assert pivotal([(0.9, 0.9)], shipped, Thresholds()), "an opening always meets the whole desk"


def test_the_bound_is_tight() -> None:
    """All four vectors at the bound reach the shift exactly: a smaller one would miss verdicts."""
    l1 = dict.fromkeys(VECTORS, 0.2)
    told = blend(l1, chart(l1, dict.fromkeys(VECTORS, ADJUSTMENT_BOUND)))
    before = rules.composite(l1, 0.1, SentimentWeights())
    after = rules.composite({v: told[v]["score"] for v in VECTORS}, 0.1, SentimentWeights())
    assert after - before == pytest.approx(largest_shift(SentimentWeights()), abs=1e-7)


def test_the_sample_is_fixed_by_the_tick_and_has_its_share() -> None:
    keys = [f"BTCUSD|M15|{number}" for number in range(20_000)]
    drawn = [key for key in keys if sampled(key, 0.05)]
    assert drawn == [key for key in keys if sampled(key, 0.05)]
    assert 850 < len(drawn) < 1150
    assert set(drawn) <= {key for key in keys if sampled(key, 0.1)}
    assert not any(sampled(key, 0.0) for key in keys)
    assert all(sampled(key, 1.0) for key in keys)
