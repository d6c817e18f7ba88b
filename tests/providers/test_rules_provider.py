"""The rules provider reads: change the evidence and its answer moves the right way."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agent_framework
from agent_config import MODES, OUTPUT_TOKENS, AgentSettings, DebateSettings
from agents.contracts import (
    EVENT_CLASSES,
    ORDINALS,
    VECTORS,
    AgentReport,
    Confidence,
    DebateContext,
    Feature,
    GateReason,
    ModelUnavailable,
    Request,
    Role,
    Shape,
)
from agents.debate import replies
from agents.registry import AGENTS, SCORER
from agents.texts import door
from technical_calculator import COMPONENTS, score_frame
from tests.cases import cases
from tests.examples import examples
from tests.worlds.mirrors import MARKET, MARKETS, SCORES, STEP, Values, mirrored
from tests.worlds.price_series import row_of, sample
from torra.errors import ConfigError
from torra.evidence.feature_bundle import build
from torra.profiles.fields import literals
from torra.providers.registry import PROVIDERS, open_provider
from torra.providers.rules.analyst_rules import ordinals
from torra.providers.rules.provider import RulesProvider
from torra.providers.rules.rule import ADX, trend_of
from torra.providers.rules.tables import COMMON_RULES

PROVIDER = RulesProvider()
TECHNICAL, BULL, BEAR, GATE = (
    AGENTS[name].role for name in ("technical", "bull_researcher", "bear_researcher", "risk_gate")
)
SENTIMENT, NEWS, LEVELS, MOMENTUM = (
    AGENTS[name].role for name in ("sentiment", "news", "key_levels", "momentum")
)
SPECIALISTS = (SENTIMENT, NEWS, LEVELS, MOMENTUM)
TREND, RANGE = 40.0, 15.0


def features(values: Mapping[str, float | str | None]) -> dict[str, Feature]:
    return {name: Feature(name, value) for name, value in values.items()}


def request(
    role: Role,
    values: Mapping[str, float | str | None],
    scores: Mapping[str, float] | None = None,
    reports: tuple[AgentReport, ...] = (),
    stage: int = 1,
    schema: Mapping[str, Any] | None = None,
) -> Request:
    """Return a question; its scores are those of the values, 0 where none is there."""
    return Request(
        role=role,
        round=stage,
        attempt=1,
        symbol="BTCUSD",
        timeframe="M15",
        bar_time="2021-11-01T10:00:00Z",
        model="rules",
        system="",
        user="",
        schema=schema or {},
        features=features(values),
        reports=reports,
        scores=scores
        or {vector: float(values.get(f"scores.{vector}") or 0.0) for vector in VECTORS},
        max_output_tokens=OUTPUT_TOKENS["quick"],
        limit_s=5.0,
    )


def answer(asked: Request) -> dict[str, Any]:
    future = PROVIDER.submit(asked)
    assert future.done()
    reply: dict[str, Any] = json.loads(future.result().text)
    return reply


def said(asked: Request) -> AgentReport:
    """Return the answer as the framework reads it; anything malformed raises."""
    text = PROVIDER.submit(asked).result().text
    kinds: dict[str, Shape] = {"gate": "ruling", "researcher": "case"}
    shape = kinds.get(asked.role.kind, "news" if asked.role.id == "news" else "report")
    return replies.read(shape, door.load(text, asked.symbol), asked.role, asked.features)


def adjustment(role: Role, vector: str, **changes: float | str | None) -> float:
    value = said(request(role, MARKET | named(changes))).adjustments[vector]
    assert value is not None
    return value


def named(changes: Mapping[str, float | str | None]) -> Values:
    """Turn keyword names into feature ids: technical by default, others as block__name."""
    return {
        name.replace("__", ".") if "__" in name else f"technical.{name}": value
        for name, value in changes.items()
    }


def report(agent: str, confidence: Confidence = "medium", **adjustments: float) -> AgentReport:
    return AgentReport(agent, dict.fromkeys(VECTORS) | adjustments, confidence)


# --- which way the answer moves -------------------------------------------------------------------

UP_IN_TREND: dict[str, dict[str, Any]] = {
    "price_action": {
        "close": (99.0, 101.0),
        "body_atr": (-1.0, 1.0),
        "engulfing": (-1.0, 1.0),
        "hammer": (-1.0, 1.0),
        "lower_wick": (0.1, 0.6),
        "forecast__drift_pct": (-0.5, 0.5),
    },
    "key_levels": {
        "close": (97.0, 103.0),
        "tenkan": (99.0, 101.0),
        "support_distance_atr": (2.0, 0.2),
        "resistance_distance_atr": (0.2, 2.0),
    },
    "momentum": {
        "plus_di": (15.0, 25.0),
        "macd_hist": (-0.1, 0.1),
        "macd": (-0.5, 0.5),
        "rsi14": (40.0, 60.0),
        "cci20": (-80.0, 80.0),
        "memory__trend_direction": ("falling", "rising"),
    },
    "structure": {
        "trend_state": (-1.0, 1.0),
        "bos": (-1.0, 1.0),
        "close": (98.0, 102.0),
        "sma200": (101.0, 99.0),
        "memory__next_bullish": (0.2, 0.6),
    },
}
CASES = [
    pytest.param(vector, name, *ends, id=f"{vector} {name}")
    for vector, rows in UP_IN_TREND.items()
    for name, ends in rows.items()
]


@cases("role", [TECHNICAL, BULL, BEAR], ids=lambda role: role.id)
@cases(("vector", "name", "bearish", "bullish"), CASES)
def test_in_a_trend_bullish_evidence_raises_every_word(
    role: Role, vector: str, name: str, bearish: float, bullish: float
) -> None:
    down = adjustment(role, vector, **{name: bearish})
    up = adjustment(role, vector, **{name: bullish})
    assert down < 0 < up or role.kind == "researcher"
    assert down < up


OWN_IN_TREND: dict[str, dict[str, dict[str, tuple[float, float]]]] = {
    "sentiment": {
        vector: {
            "sentiment__news": (-0.3, 0.3),
            "sentiment__up_bars": (0.4, 0.6),
            "sentiment__up_volume": (0.4, 0.6),
            "sentiment__streak": (-3.0, 3.0),
            "cot__net_change_4w": (-4.0, 4.0),
            "cot__rank": (20.0, 80.0),
            "positioning__fear_greed": (20.0, 80.0),
            "derivs__funding_rank": (20.0, 80.0),
        }
        for vector in VECTORS
    },
    "fundamental": {
        vector: {
            "macro__breakeven_change_20": (-0.2, 0.2),
            "macro__dollar_change_20": (2.0, -2.0),
            "macro__nasdaq_change_20": (-5.0, 5.0),
            "macro__yield_10y_change_20": (0.3, -0.3),
            "macro__vix_change_20": (5.0, -5.0),
            "macro__rate_gap_change_20": (-0.2, 0.2),
            "macro__inventories_change_20": (3.0, -3.0),
            "fundamentals__revenue_growth_pct": (-20.0, 20.0),
            "company__revenue_growth_pct": (-20.0, 20.0),
            "company__f_score": (2.0, 8.0),
            "company__accruals_pct": (10.0, -10.0),
            "company__dilution_pct": (5.0, -5.0),
            "company__valuation_rank": (90.0, 10.0),
        }
        for vector in VECTORS
    },
    "news": {
        vector: {
            "news__score": (-0.3, 0.3),
            **{f"news__{name}_score": (-0.3, 0.3) for name in EVENT_CLASSES[:-1]},
        }
        for vector in VECTORS
    },
    "key_levels": {
        "key_levels": {
            **UP_IN_TREND["key_levels"],
            "fib_500": (101.0, 99.0),
        },
        "structure": {"kijun": (101.0, 99.0), "close": (98.0, 102.0)},
    },
    "momentum": {
        "momentum": {
            **{name: ends for name, ends in UP_IN_TREND["momentum"].items() if "__" not in name},
            "stoch_d": (60.0, 40.0),
            "macd_signal": (0.3, -0.3),
        },
        "structure": {"plus_di": (15.0, 25.0), "macd": (-0.5, 0.5)},
    },
}
OWN_CASES = [
    pytest.param(AGENTS[role].role, vector, name, *ends, id=f"{role} {vector} {name}")
    for role, vectors in OWN_IN_TREND.items()
    for vector, rows in vectors.items()
    for name, ends in rows.items()
]


@cases(("role", "vector", "name", "bearish", "bullish"), OWN_CASES)
def test_a_specialist_hears_what_only_it_is_shown(
    role: Role, vector: str, name: str, bearish: float, bullish: float
) -> None:
    down = adjustment(role, vector, **{name: bearish})
    up = adjustment(role, vector, **{name: bullish})
    assert down < 0 < up


@pytest.mark.parametrize(
    ("r2", "slope", "heard"), [(0.5, -0.1, True), (0.29, -0.1, False), (0.5, 0.1, False)]
)
def test_gold_hears_the_real_yield_while_its_fit_holds(
    r2: float, slope: float, heard: bool
) -> None:
    role = AGENTS["fundamental"].role
    fit = {"macro__real_yield_fit_r2": r2, "macro__real_yield_fit_slope": slope}
    for change in (-0.3, 0.3):
        report = said(request(role, MARKET | named({"macro__real_yield_change_20": change, **fit})))
        assert report.abstained is not heard
        if heard:
            moved = report.adjustments["momentum"]
            assert moved is not None
            assert moved * change < 0.0


@pytest.mark.parametrize(
    ("vector", "name", "low", "high"),
    [
        ("momentum", "rsi14", 25.0, 75.0),
        ("momentum", "stoch_k", 10.0, 90.0),
        ("momentum", "cci20", -150.0, 150.0),
        ("key_levels", "close", 98.2, 101.8),
    ],
)
def test_in_a_range_extremes_are_faded(vector: str, name: str, low: float, high: float) -> None:
    stretched = adjustment(TECHNICAL, vector, **{name: high, "adx14": RANGE})
    washed_out = adjustment(TECHNICAL, vector, **{name: low, "adx14": RANGE})
    assert stretched < washed_out
    narrow = replace(TECHNICAL, focus={vector: "primary"})
    high_up = request(narrow, MARKET | named({name: high, "adx14": RANGE}))
    faded = answer(replace(high_up, scores=dict.fromkeys(VECTORS, 0.9)))["points_for"]
    assert any("such stretches often snap back" in point["why"] for point in faded)


@given(st.floats(30, 100), st.floats(30, 100), st.floats(1, 40), st.floats(0, 1))
def test_a_stronger_trend_speaks_louder_for_its_side(
    one: float, other: float, plus: float, share: float
) -> None:
    weak, strong = sorted((one, other))
    minus = plus * share

    def momentum(adx: float, up: float, down: float) -> float:
        return adjustment(TECHNICAL, "momentum", adx14=adx, plus_di=up, minus_di=down)

    assert momentum(weak, plus, minus) <= momentum(strong, plus, minus)
    assert momentum(weak, minus, plus) >= momentum(strong, minus, plus)
    if strong < 50 and strong - weak > 2 and share < 0.8:
        assert momentum(weak, plus, minus) < momentum(strong, plus, minus)


@given(st.floats(95, 105), st.floats(95, 105), st.sampled_from([TREND, 25.0, RANGE]))
def test_the_further_price_is_above_its_average_the_better_for_bulls(
    one: float, other: float, adx: float
) -> None:
    near, far = sorted((one, other), reverse=True)
    for role in (BULL, BEAR, TECHNICAL):
        less = adjustment(role, "price_action", ema20=near, adx14=adx)
        more = adjustment(role, "price_action", ema20=far, adx14=adx)
        assert less <= more


def test_bull_and_bear_hear_the_same_news_differently() -> None:
    up = MARKET | named({"close": 102.0})
    bull, bear = (answer(request(role, up)) for role in (BULL, BEAR))
    assert bull["adjustments"]["price_action"] > 0
    assert bear["adjustments"]["price_action"] == 0, "no case: the bear votes 0"
    assert bear["confidence"] == "low"


@cases("role", [TECHNICAL, BULL], ids=lambda role: role.id)
@cases("vector", VECTORS)
def test_a_score_that_says_it_already_is_left_alone(vector: str, role: Role) -> None:
    level = 0.4
    values = {f"component.{name}": level for name in COMPONENTS[vector]} | {ADX: TREND}
    told = request(role, values, dict.fromkeys(VECTORS, level))
    assert said(told).adjustments[vector] == 0
    modest = request(role, values, dict.fromkeys(VECTORS, 0.1))
    assert said(modest).adjustments[vector] > 0
    proud = request(role, values, dict.fromkeys(VECTORS, 0.9))
    left = said(proud).adjustments[vector]
    assert (left == 0) if role is BULL else (left < 0), "a bull has no case against its side"


@given(st.floats(-0.3, 0.3), st.floats(-0.3, 0.3))
def test_researchers_hear_the_analysts(one: float, other: float) -> None:
    low, high = sorted((one, other))
    for role in (BULL, BEAR):
        heard = [
            said(request(role, MARKET, reports=(report("technical", momentum=value),)))
            for value in (low, high)
        ]
        less, more = (item.adjustments["momentum"] for item in heard)
        assert less <= more
        # who has no case has none still
        assert less < more or high - low < 0.01 or less == more == 0


def test_a_report_that_nobody_trusts_weighs_less() -> None:
    def bull(confidence: Confidence, *flags: str) -> float:
        analyst = replace(report("technical", confidence, momentum=0.3), flags=flags)
        value = said(request(BULL, MARKET, reports=(analyst,))).adjustments["momentum"]
        assert value is not None
        return value

    assert bull("high") > bull("medium") > bull("low") > bull("low", "ungrounded") > 0


def test_a_researcher_grants_a_part_of_the_other_case() -> None:
    first = said(request(BULL, MARKET | named({"rsi14": 70.0}))).adjustments["momentum"]
    bear = report("bear_researcher", momentum=-0.15)
    second = said(request(BULL, MARKET | named({"rsi14": 70.0}), reports=(bear,), stage=2))
    assert -0.15 < second.adjustments["momentum"] < first


def test_the_order_of_the_reports_changes_nothing() -> None:
    reports = tuple(
        report(name, momentum=value, structure=-value)
        for name, value in (("technical", 0.1), ("sentiment", -0.2), ("bear_researcher", -0.1))
    )
    for role in (BULL, BEAR, GATE):
        one, other = (
            answer(request(role, MARKET, reports=told)) for told in (reports, reports[::-1])
        )
        assert one == other


# --- mirror images --------------------------------------------------------------------------------


@settings(deadline=None, max_examples=examples(50, 20))
@given(MARKETS, SCORES, STEP)
def test_the_desk_mirrors_a_mirrored_market(
    market: Values, scores: dict[str, float], leaning: int
) -> None:
    analyst = report("technical", momentum=leaning / 256, structure=-leaning / 512)
    other = report("technical", momentum=-leaning / 256, structure=leaning / 512)
    below = {vector: -score for vector, score in scores.items()}
    for role, twin in ((TECHNICAL, TECHNICAL), (BULL, BEAR), (BEAR, BULL)):
        here = said(request(role, market, scores, (analyst,)))
        there = said(request(twin, mirrored(market), below, (other,)))
        assert here.confidence == there.confidence
        for vector in VECTORS:
            assert here.adjustments[vector] == pytest.approx(
                -there.adjustments[vector],
                abs=1.5e-4,
            )


@settings(deadline=None, max_examples=examples(50, 20))
@given(MARKETS, SCORES)
def test_every_reply_is_sound_grounded_and_bounded(
    market: Values, scores: dict[str, float]
) -> None:
    listed = market | {f"scores.{vector}": score for vector, score in scores.items()}
    for role in (TECHNICAL, BULL, BEAR, *SPECIALISTS):
        told = said(request(role, listed, scores))
        assert told.flags == ()
        assert not told.abstained
        assert {v for v in VECTORS if told.adjustments[v] is not None} == set(role.focus)
        assert all(abs(told.adjustments[vector]) <= role.bound for vector in role.focus)
        assert 0 < len(told.evidence) <= replies.CITATIONS_KEPT
        assert len(told.points_for) <= 4 and len(told.points_against) <= 2
        assert told.claim
    shape = replies.scores(answer(request(SCORER, market, scores)))
    assert all(abs(shape[vector] - scores[vector]) <= 0.3 + 1e-9 for vector in VECTORS)


@settings(deadline=None, max_examples=examples(50, 20))
@given(MARKETS)
def test_the_bull_never_says_less_than_the_bear(market: Values) -> None:
    bull = said(request(BULL, market))
    bear = said(request(BEAR, market))
    for vector in VECTORS:
        assert bull.adjustments[vector] >= bear.adjustments[vector]


# --- overlays, ordinals, falsifiers ---------------------------------------------------------------


@given(st.floats(-1, 1), st.floats(-1, 1), st.sampled_from([SENTIMENT, NEWS]))
def test_mood_and_news_move_a_score_towards_them_and_no_further(
    tone: float, score: float, role: Role
) -> None:
    values = MARKET | {"news.score": tone, "sentiment.news": tone}
    told = said(request(role, values, dict.fromkeys(VECTORS, score)))
    for value in told.adjustments.values():
        assert value is not None
        assert value * tone >= 0.0
        assert value * tone == 0.0 or abs(score + value) <= 1.0 or score * tone > 0.0
        if tone * score > 0 and abs(score) >= abs(math.tanh(tone / 0.3)):
            assert value == 0.0


NEWSFLASH: Values = {
    "news.score": 0.3,
    "news.macro_score": 0.3,
    "news.geopolitical_score": 0.2,
    "news.item_score.1": 0.5,
    "news.item_score.2": 0.25,
    "news.item_score.3": -0.125,
}


def test_news_without_a_tone_speaks_against_no_score() -> None:
    for role in (SENTIMENT, NEWS):
        told = said(request(role, MARKET, dict.fromkeys(VECTORS, 0.8)))
        assert set(told.adjustments.values()) == {0.0}


def test_ordinals_are_arithmetic_over_the_items() -> None:
    good = ordinals(features(MARKET | NEWSFLASH))
    assert good == {
        "relevance": 2,
        "sentiment": 1,
        "price_impact": 2,
        "trend": 1,
        "investor_confidence": 1,
        "risk_profile_change": -1,
    }
    bad = ordinals(features(mirrored(MARKET | NEWSFLASH)))
    assert bad == {name: -value for name, value in good.items()} | {"relevance": 2}
    other = {f"news.{name}_items": None for name in EVENT_CLASSES[:-1]}
    assert ordinals(features(MARKET | NEWSFLASH | other))["relevance"] == 1
    assert ordinals({}) == dict.fromkeys(ORDINALS, 0)


@settings(deadline=None, max_examples=examples(40, 20))
@given(MARKETS)
def test_ordinals_stay_in_their_ranges_and_turn_round(market: Values) -> None:
    here, there = (ordinals(features(values)) for values in (market, mirrored(market)))
    for name, (least, most) in ORDINALS.items():
        assert type(here[name]) is int
        assert least <= here[name] <= most
        assert there[name] == (here[name] if name == "relevance" else -here[name])
    told = said(request(NEWS, market))
    assert told.ordinals == here
    assert told.flags == ()


BULL_RUN = {"close": 104.0, "sma50": 101.0, "ema20": 102.0, "macd_hist": 0.3, "rsi14": 65.0}


def test_a_case_says_what_would_end_it() -> None:
    bull = said(request(BULL, MARKET | named(BULL_RUN)))
    given = answer(request(BULL, MARKET | named(BULL_RUN)))["falsifiers"]
    assert len(bull.falsifiers) == len(given), "each of them stands as it was said"
    line = "a close below 102, the 20-bar exponential mean, in the next 12 bars"
    assert line in bull.falsifiers
    assert 1 <= len(bull.falsifiers) <= 3
    fallen = mirrored(MARKET | named(BULL_RUN))
    bear = said(request(BEAR, fallen))
    line = "a close above 98, the 20-bar exponential mean, in the next 12 bars"
    assert line in bear.falsifiers
    alone = {ADX: TREND, "technical.close": 104.0, "technical.atr14": 1.0, "technical.sma50": 101.0}
    assert said(request(BULL, alone)).falsifiers == (
        "a close below 103, one average range from here, in the next 12 bars",
        "a close below 101, the 50-bar mean, in the next 12 bars",
    )
    assert said(request(BEAR, alone)).falsifiers == (), "no case, nothing to prove wrong"
    small = {**alone, "technical.close": 0.00066653, "technical.atr14": 1e-6}
    (line, *_) = said(request(BULL, {**small, "technical.sma50": 0.000664})).falsifiers
    assert line.startswith("a close below 0.00066553, "), "not 0.00, which no close can be below"
    far = {**alone, "technical.sma50": 90.0}
    assert not [text for text in said(request(BULL, far)).falsifiers if "50-bar" in text]


def test_a_monstrous_number_is_counted_and_not_said() -> None:
    for value in (1e300, 10**400, -(10**400), float("inf")):
        features: Values = MARKET | {"technical.macd": value, "component.kl_cloud": value}
        for role in (TECHNICAL, BULL, BEAR, *SPECIALISTS):
            told = answer(request(role, features))
            text = told["claim"] + json.dumps(told["points_for"] + told["points_against"])
            assert " inf" not in text and "0000000 " not in text


# --- honesty --------------------------------------------------------------------------------------


# --- missing evidence -----------------------------------------------------------------------------


def test_without_evidence_a_role_abstains() -> None:
    for role in (TECHNICAL, BULL, BEAR):
        for values in ({}, {"technical.fib_382": 1.0}, dict.fromkeys(MARKET)):
            told = said(request(role, values))
            assert told.abstained
            assert "price_action" in told.reason


def test_a_vector_without_evidence_is_not_scored() -> None:
    told = said(request(TECHNICAL, {ADX: TREND, "technical.rsi14": 60.0}))
    assert told.adjustments["momentum"] is not None
    assert [v for v in VECTORS if told.adjustments[v] is None] == [
        vector for vector in VECTORS if vector != "momentum"
    ]


def test_components_stand_in_where_indicators_are_not_shown() -> None:
    up = {"component.pa_trend": 0.8, "component.st_medium": 0.8, ADX: TREND}
    told = said(request(BULL, up))
    assert told.adjustments["price_action"] > 0
    assert told.adjustments["structure"] > 0
    assert {item.id for item in told.evidence} == set(up)
    known = {f"component.{name}" for names in COMPONENTS.values() for name in names}
    parts = [rule.component for rules in COMMON_RULES.values() for rule in rules]
    assert {name for part in parts if part for name in part.reads} <= known


def test_without_adx_the_regime_is_undecided() -> None:
    assert trend_of({}) == 0.5
    values = {name: value for name, value in MARKET.items() if name != ADX}
    listed = {f"scores.{vector}": 0.0 for vector in VECTORS}
    told = said(request(TECHNICAL, values | listed | named({"rsi14": 80.0})))
    assert ADX not in {cited.id for cited in told.evidence}
    assert not told.flags


@settings(max_examples=examples(150, 50), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(sorted(MARKET)),
        st.one_of(
            st.none(),
            st.text(max_size=5),
            st.booleans(),
            st.floats(),
            st.integers(-(10**6), 10**6),
            st.sampled_from([1e308, -1e308, 5e-324, 0.0]),
        ),
        max_size=40,
    ),
    st.dictionaries(st.sampled_from(VECTORS), st.floats()),
    st.sampled_from([TECHNICAL, *SPECIALISTS, BULL, BEAR, GATE, SCORER]),
)
def test_no_evidence_breaks_the_reader(
    strange: Values, scores: dict[str, float], role: Role
) -> None:
    asked = request(role, MARKET | strange, scores)
    text = PROVIDER.submit(asked).result().text
    reply = door.load(text, "BTCUSD")
    if role.kind == "scorer":
        replies.scores(reply)
    else:
        told = said(asked)
        # nothing is listed of the scores here: a point about one of them cites nothing
        assert set(told.flags) <= {"ungrounded", "misplaced"}


# --- the gate -------------------------------------------------------------------------------------

CALM = MARKET
TRUSTED = (
    report("technical", "high", momentum=0.1),
    report("bull_researcher", "high", momentum=0.1),
    report("bear_researcher", "low", momentum=-0.02),
)


def ruling(values: Values, reports: tuple[AgentReport, ...] = TRUSTED) -> dict[str, Any]:
    asked = request(GATE, values, reports=reports)
    said(asked)
    return answer(asked)


def test_a_calm_and_confident_desk_is_left_alone() -> None:
    told = ruling(CALM)
    assert (told["multiplier"], told["veto"], told["reason_code"]) == (1.0, False, "NONE")
    assert told["confidence"] == "high"
    assert told["evidence"]


@given(st.floats(0, 100), st.floats(0, 100))
def test_volatility_only_lowers_the_multiplier(one: float, other: float) -> None:
    calm, wild = sorted((one, other))
    name = "technical.volatility_percentile"
    before, after = (ruling(CALM | {name: value}) for value in (calm, wild))
    assert before["multiplier"] >= after["multiplier"]
    assert (after["reason_code"] == GateReason.HIGH_VOLATILITY) == (wild > 80)


def test_contradiction_lowers_the_multiplier_and_office_does_not() -> None:
    office = (
        report("technical", "high", momentum=0.1),
        report("bull_researcher", "high", momentum=0.15),
        report("bear_researcher", "high", momentum=-0.14),
    )
    assert ruling(CALM, office)["multiplier"] == 1.0
    against = (
        report("technical", "high", momentum=0.3),
        report("bull_researcher", "high", momentum=-0.1),
        report("bear_researcher", "high", momentum=-0.15),
    )
    told = ruling(CALM, against)
    assert told["multiplier"] < 0.7
    assert told["reason_code"] == GateReason.DISAGREEMENT


def test_a_weak_case_lowers_the_multiplier() -> None:
    def multiplier(confidence: Confidence, *flags: str) -> float:
        told = ruling(
            CALM,
            tuple(
                replace(report(name, confidence, momentum=0.1), flags=flags)
                for name in ("technical", "bull_researcher", "bear_researcher")
            ),
        )
        assert told["reason_code"] == (GateReason.WEAK_CASE if told["multiplier"] < 1 else "NONE")
        return float(told["multiplier"])

    assert multiplier("high") == multiplier("medium") == 1.0
    assert 1.0 > multiplier("low") > multiplier("low", "ungrounded") == 0.6
    silent = tuple(AgentReport.abstain(item.agent_id, "nothing") for item in TRUSTED)
    assert ruling(CALM, silent)["multiplier"] == 0.6


def test_a_side_without_a_case_is_no_weakness() -> None:
    bear = replace(report("bear_researcher", "low", momentum=0.0), flags=("ungrounded",))
    assert ruling(CALM, (TRUSTED[0], TRUSTED[1], bear))["multiplier"] == 1.0
    bull = replace(bear, agent_id="bull_researcher")
    told = ruling(CALM, (report("technical", "medium", momentum=0.1), bull, bear))
    assert told["reason_code"] == GateReason.WEAK_CASE


@pytest.mark.parametrize(
    ("day", "session", "late"),
    [
        ("Friday", "NEW_YORK", True),
        ("Thursday", "NEW_YORK", False),
        ("Friday", "LONDON", False),
        ("Saturday", "CLOSED", True),
    ],
)
def test_late_hours_lower_the_multiplier(day: str, session: str, late: bool) -> None:
    told = ruling(CALM | {"market.day_of_week": day, "market.session": session})
    assert (told["multiplier"] < 1.0) == late
    assert told["reason_code"] == (GateReason.SESSION_END if late else GateReason.NONE)
    # some symbols trade at weekends: nobody calls their market closed
    assert ("Saturday, the weekend" in told["reasoning"]) == (session == "CLOSED")
    assert "closed" not in told["reasoning"]


def test_a_veto_needs_several_dangers_and_names_them() -> None:
    weak = (
        report("technical", "low", **dict.fromkeys(VECTORS, 0.3)),
        report("bull_researcher", "low", **dict.fromkeys(VECTORS, -0.15)),
        report("bear_researcher", "low", **dict.fromkeys(VECTORS, -0.15)),
    )
    wild = CALM | {"technical.volatility_percentile": 100.0, "market.session": "CLOSED"}
    told = ruling(wild, weak)
    assert told["veto"]
    assert told["multiplier"] < 0.25
    assert "Volatility is above 100% of its past" in told["reasoning"]
    assert told["reasoning"].startswith(f"Size cut to {told['multiplier']:.2f}. ")
    assert "the debate differ by" in told["reasoning"]
    assert not ruling(wild)["veto"]
    assert not ruling(CALM, weak)["veto"]


@settings(deadline=None, max_examples=examples(50, 20))
@given(MARKETS)
def test_no_single_danger_vetoes(market: Values) -> None:
    told = ruling(market)
    assert 0.25 <= told["multiplier"] <= 1.0
    assert not told["veto"]


@cases(
    ("flags", "multiplier"),
    [
        ("range_spike", 0.9),
        ("gap", 0.9),
        ("range_spike volume_spike gap stale", 0.9),
        ("volume_spike", 1.0),
        ("stale", 1.0),
        (None, 1.0),
        ("", 1.0),
    ],
)
def test_an_odd_bar_is_a_mild_caution(flags: str | None, multiplier: float) -> None:
    told = ruling(CALM | {"market.triage": flags})
    assert (told["multiplier"], told["veto"]) == (multiplier, False)
    odd = multiplier < 1.0
    assert told["reason_code"] == (GateReason.HIGH_VOLATILITY if odd else GateReason.NONE)
    assert ({"id": "market.triage", "value": flags} in told["evidence"]) == odd
    assert told["confidence"] == "high"


@given(st.floats(0, 1440), st.floats(0, 1440))
def test_the_nearer_an_event_the_more_caution(one: float, other: float) -> None:
    near, far = sorted((one, other))
    first, then = (ruling(CALM | {"events.to_next_min": value}) for value in (near, far))
    assert 0.8 <= first["multiplier"] <= then["multiplier"] <= 1.0
    assert (then["multiplier"] == 1.0) == (then["reason_code"] == GateReason.NONE)
    if far > 180:
        assert then == ruling(CALM)
    if near < 150:
        assert first["reason_code"] == GateReason.SCHEDULED_EVENT
        assert not first["veto"]


def test_what_is_not_there_is_no_caution() -> None:
    absent = {"market.triage": None, "events.to_next_min": None, "events.since_last_min": None}
    assert ruling(CALM | absent) == ruling(CALM)


def test_a_gate_that_sees_nothing_rules_nothing() -> None:
    told = ruling({}, ())
    assert (told["multiplier"], told["veto"], told["reason_code"]) == (1.0, False, "NONE")
    assert told["confidence"] == "low"
    assert told["evidence"] == []


# --- the scorer -----------------------------------------------------------------------------------


def test_the_scorer_stays_near_the_scores_and_moves_with_the_evidence() -> None:
    scores = dict.fromkeys(VECTORS, 0.2)
    up, down = (
        answer(request(SCORER, MARKET | named({"macd": way, "close": 100 + way}), scores))
        for way in (1.5, -1.5)
    )
    for vector in ("price_action", "momentum", "structure"):
        assert up[vector]["score"] > down[vector]["score"]
        assert abs(up[vector]["score"] - 0.2) <= 0.3
        assert up[vector]["note"]


# --- the provider ---------------------------------------------------------------------------------


def test_the_scorer_without_evidence_gives_the_scores_back() -> None:
    scores = {"price_action": 0.9, "key_levels": -0.5, "momentum": 0.0, "structure": 1.0}
    told = replies.scores(answer(request(SCORER, {}, scores)))
    assert told == scores


def test_the_same_question_gets_the_same_answer_and_costs_nothing() -> None:
    one, other = (PROVIDER.submit(request(TECHNICAL, MARKET)).result() for _ in range(2))
    assert one == other
    assert (one.provider, one.model, one.stop_reason) == ("rules", "rules", "end")
    assert one.cost_usd == one.input_tokens == one.output_tokens == 0


def test_prose_is_not_read() -> None:
    asked = request(TECHNICAL, MARKET)
    loud = replace(asked, system="Say BUY.", user="rsi14 = 99. Adjust everything by +0.3.")
    assert answer(loud) == answer(asked)


def test_an_unknown_seat_fails_as_a_model_would() -> None:
    stranger = replace(BULL, id="crab_researcher")
    future = PROVIDER.submit(request(stranger, MARKET))
    assert isinstance(future.exception(), ModelUnavailable)
    PROVIDER.close()


def test_the_registry_opens_what_this_version_has() -> None:
    assert open_provider(AgentSettings()).name == "rules"
    names = literals(AgentSettings.model_fields["provider"].annotation)
    assert set(PROVIDERS) == set(names)
    for name in set(names) - {"rules"}:
        with pytest.raises(ConfigError, match=f"agents.provider.*{name}"):
            open_provider(AgentSettings(provider=name))


# --- at the desk, on real bars --------------------------------------------------------------------


def context(name: str, at: int) -> DebateContext:
    bars = sample(name).iloc[at - 750 : at]
    timeframe = name.split("_")[1]
    opened = bars.index[-1].to_pydatetime()
    closed = opened + timedelta(minutes={"M15": 15, "H1": 60}[timeframe])
    made = build(
        symbol=name[:6],
        timeframe=timeframe,
        bar_time=opened,
        as_of=closed,
        row=row_of(score_frame(bars).iloc[-1]),
        spread=1e-4,
        bars_held=750,
        bar_age=0.0,
        memory={"session": "LONDON", "day_of_week": "Tuesday"},
    )
    return DebateContext(
        made.symbol,
        timeframe,
        str(opened),
        str(closed),
        made.scores,
        made.notes,
        made.features,
        nonce="0123456789abcdef",
    )


@pytest.mark.journey
@pytest.mark.parametrize("name", ["BTCUSD_M15", "EURUSD_H1"])
def test_a_whole_desk_deliberates_on_real_bars(name: str, scaled: Callable[..., int]) -> None:
    for at in range(800, 6000, 5200 // scaled(250, 5)):
        told = agent_framework.deliberate(
            context(name, at),
            DebateSettings(),
            PROVIDER.submit,
            monotonic=time.monotonic,
            deadline=time.monotonic() + 30,
        )
        assert str(told.source_type) == "AGENT_BUDGET"
        assert [item.agent_id for item in told.reports] == list(MODES["budget"].seats)
        assert not any(item.flags for item in told.reports)
        assert not any(item.abstained for item in told.reports)
        assert told.cost_usd == 0
        assert any(value != 0 for value in told.adjustments.values())


def test_a_market_without_range_is_read_without_dividing_by_it() -> None:
    assert math.isfinite(adjustment(TECHNICAL, "momentum", atr14=0.0, macd=1.0))
