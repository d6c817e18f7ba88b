"""The rules provider reads: change the evidence and its answer moves the right way."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_config import AgentSettings, GateSettings
from agents.contracts import (
    EVENT_CLASSES,
    ORDINALS,
    VECTORS,
    AgentReport,
    Evidence,
    GateReason,
    ModelUnavailable,
    Prompt,
)
from agents.debate import replies
from technical_calculator import COMPONENTS
from tests.cases import cases
from tests.examples import examples
from tests.worlds.mirrors import MARKET, MARKETS, SCORES, SWARM, Values, mirrored
from tests.worlds.rule_seats import (
    PROVIDER,
    SEATS,
    answer,
    opinion,
    pairs,
    read,
    reports_of,
    request,
    rows,
)
from torra.errors import ConfigError
from torra.profiles.fields import literals
from torra.providers.registry import open_provider
from torra.providers.rules import engine
from torra.providers.rules.analyst_rules import ordinals
from torra.providers.rules.engine import TABLES

HERE = Path(__file__).parent
BULL, BEAR = "bull_researcher", "bear_researcher"
FLAT: Values = {f"scores.{vector}": 0.0 for vector in VECTORS}
LIMIT = GateSettings().max_spread_atr


def moves(seat: str, changes: Values, *reports: AgentReport) -> dict[str, float]:
    """Return what a seat asks for in a market with these changes, 0 where it says nothing."""
    report = read(request(seat, SWARM | FLAT | changes, reports))
    return {vector: report.adjustments[vector] or 0.0 for vector in VECTORS}


def named(changes: dict[str, float]) -> Values:
    return {f"technical.{name}": value for name, value in changes.items()}


# --- which way the answer moves -------------------------------------------------------------------


@cases(("seats", "vectors", "adx", "bearish", "bullish"), rows(HERE / "bullish.csv"))
def test_bullish_evidence_raises_every_word(
    seats: str, vectors: str, adx: str, bearish: str, bullish: str
) -> None:
    """In a trend what follows it, in a range what is stretched the other way."""
    regime: Values = {engine.ADX: float(adx), engine.REGIME: "trend_up" if adx == "40" else "range"}
    for seat in seats.split():
        down, up = (moves(seat, regime | pairs(cell)) for cell in (bearish, bullish))
        for vector in vectors.split() or SEATS[seat].focus:
            assert down[vector] < up[vector]
            if SEATS[seat].kind != "researcher" and adx == "40":
                assert down[vector] < 0.0 < up[vector]


def test_every_row_is_tried_above() -> None:
    tried: dict[str, set[str]] = {}
    for seats, _, _, *cells in rows(HERE / "bullish.csv"):
        for seat in seats.split():
            tried.setdefault("all" if seat == "technical" else seat, set()).update(
                name for cell in cells for name in pairs(cell)
            )
    tried["all"] |= {"memory.trend_direction"}
    for seat, table in TABLES.items():
        known = tried["liquidity" if seat == "judge" else seat] | tried["all"]
        if seat == "macro":
            known |= tried["fundamental"] | tried["sentiment"]
        for row in (row for rules in table.values() for row in rules):
            assert known & set(row.reads), row


def test_gold_hears_the_real_yield_while_its_fit_holds() -> None:
    names = [f"macro.real_yield_{part}" for part in ("change_20", "fit_r2", "fit_slope")]
    for values in ((0.3, 0.29, -0.1), (0.3, 0.5, 0.1)):
        numbers = dict(zip(names, values, strict=True))
        assert engine.read(TABLES["fundamental"][""], numbers, 1.0) == []


@given(st.floats(30, 100), st.floats(30, 100), st.floats(1, 40), st.floats(0, 1))
def test_a_stronger_trend_speaks_louder_for_its_side(
    one: float, other: float, plus: float, share: float
) -> None:
    weak, strong = sorted((one, other))
    for up, down, way in ((plus, plus * share, 1), (plus * share, plus, -1)):
        less, more = (
            way
            * moves("technical", named({"adx14": adx, "plus_di": up, "minus_di": down}))["momentum"]
            for adx in (weak, strong)
        )
        assert less <= more
        if strong < 50 and strong - weak > 2 and share < 0.8:
            assert less < more


@given(st.floats(95, 105), st.floats(95, 105), st.sampled_from([40.0, 25.0, 15.0]))
def test_the_further_price_is_above_its_average_the_better_for_bulls(
    one: float, other: float, adx: float
) -> None:
    near, far = sorted((one, other), reverse=True)
    for seat in (BULL, BEAR, "technical"):
        less, more = (
            moves(seat, named({"ema20": mean, "adx14": adx}))["price_action"]
            for mean in (near, far)
        )
        assert less <= more


@cases("seat", ["technical", BULL])
@cases("vector", VECTORS)
def test_a_score_that_says_it_already_is_left_alone(vector: str, seat: str) -> None:
    values: Values = {engine.ADX: 40.0, **{f"component.{name}": 0.4 for name in COMPONENTS[vector]}}

    def moved(score: float) -> float:
        scores: Values = {f"scores.{name}": score for name in VECTORS}
        return read(request(seat, values | scores)).adjustments[vector] or 0.0

    assert moved(0.4) == 0 < moved(0.1)
    assert (moved(0.9) == 0) if seat == BULL else (moved(0.9) < 0), "no case against its side"


@given(st.floats(-0.3, 0.3), st.floats(-0.3, 0.3))
def test_researchers_hear_the_analysts(one: float, other: float) -> None:
    for seat in (BULL, BEAR):
        less, more = (
            moves(seat, {}, opinion("technical", value))["momentum"]
            for value in sorted((one, other))
        )
        # who has no case has none still
        assert less < more or abs(one - other) < 0.01 or less == more == 0


def test_a_report_that_nobody_trusts_weighs_less() -> None:
    said = [
        moves(BULL, {}, opinion("technical", 0.3, confidence, flags=flags))["momentum"]
        for confidence, flags in (
            ("high", ()), ("medium", ()), ("low", ()), ("low", ("ungrounded",)),
        )
    ]  # fmt: skip
    assert said == sorted(said, reverse=True) and len(set(said)) == 4 and said[-1] > 0.0


def test_a_researcher_grants_a_part_of_the_other_case() -> None:
    high, bear = named({"rsi14": 70.0}), opinion(BEAR, -0.15)
    assert -0.15 < moves(BULL, high, bear)["momentum"] < moves(BULL, high)["momentum"]


@cases(
    ("rsi", "says", "grants"),
    [
        (30.0, "Granted to the other side: RSI at 30 shows weakness.", True),
        (45.0, "Weak on the other side: RSI at 45 shows weakness.", False),
        (70.0, "Not so on the other side: RSI at 70 shows strength.", False),
    ],
)
def test_a_researcher_answers_the_other_sides_strongest_point(
    rsi: float, says: str, grants: bool
) -> None:
    bear = opinion(BEAR, -0.1, evidence=(Evidence("technical.rsi14", rsi),))
    market = MARKET | named({"rsi14": rsi, "ema20": 98.0})
    (answered,) = read(request(BULL, market, (bear,))).rebuttals
    assert (answered.says, answered.grants) == (says, grants)
    idle = replace(bear, adjustments=dict.fromkeys(VECTORS, 0.0))
    assert read(request(BULL, market, (idle,))).rebuttals == (), "what it cites is not its own"


@given(st.permutations(range(4)))
def test_the_order_of_the_reports_changes_nothing(order: list[int]) -> None:
    reports = (
        opinion("technical", 0.1), opinion("sentiment", -0.2), opinion(BEAR, -0.1),
        opinion(BULL, 0.1),
    )  # fmt: skip
    for seat in (BULL, BEAR, "risk_gate", "research_manager", "trader"):
        asked = request(seat, MARKET, reports)
        turned = replace(asked, reports=tuple(reports[place] for place in order))
        assert answer(turned) == answer(asked)


# --- sound answers --------------------------------------------------------------------------------


@settings(deadline=None, max_examples=examples(50, 20))
@given(MARKETS, SCORES)
def test_every_reply_is_sound_grounded_and_bounded(
    market: Values, scores: dict[str, float]
) -> None:
    listed = market | {f"scores.{vector}": score for vector, score in scores.items()}
    said: dict[str, AgentReport] = {}
    for seat in ("technical", BULL, BEAR, "sentiment", "news", "key_levels", "momentum"):
        report, role = said.setdefault(seat, read(request(seat, listed))), SEATS[seat]
        assert report.flags == () and not report.abstained and report.claim
        assert {v for v in VECTORS if report.adjustments[v] is not None} == set(role.focus)
        assert all(abs(report.adjustments[vector] or 0.0) <= role.bound for vector in role.focus)
        assert 0 < len(report.evidence) <= replies.CITATIONS_KEPT
    for vector in VECTORS:
        bull, bear = (said[seat].adjustments[vector] or 0.0 for seat in (BULL, BEAR))
        assert bull >= bear
    shape = replies.scores(answer(request("chart_scorer", listed)))
    assert all(abs(shape[vector] - scores[vector]) <= 0.3 + 1e-9 for vector in VECTORS)
    assert not answer(request("risk_gate", market, TRUSTED))["veto"], "one danger alone"


@given(st.floats(-1, 1), st.floats(-1, 1), st.sampled_from(["sentiment", "news"]))
def test_mood_and_news_move_a_score_towards_them_and_no_further(
    tone: float, score: float, seat: str
) -> None:
    scores: Values = {f"scores.{vector}": score for vector in VECTORS}
    for value in moves(seat, scores | {"news.score": tone, "sentiment.news": tone}).values():
        assert value * tone >= 0.0
        assert value * tone == 0.0 or abs(score + value) <= 1.0 or score * tone > 0.0
        if tone == 0.0 or (tone * score > 0 and abs(score) >= abs(math.tanh(tone / 0.3))):
            assert value == 0.0


NEWSFLASH: Values = {
    "news.score": 0.3,
    "news.macro_score": 0.3,
    "news.geopolitical_score": 0.2,
    "news.item_score.1": 0.5,
    "news.item_score.2": 0.25,
    "news.item_score.3": -0.125,
}


def test_ordinals_are_arithmetic_over_the_items() -> None:
    def of(values: Values) -> dict[str, int]:
        return ordinals(engine.SeatView(request("news", values)).numbers)

    good = of(MARKET | NEWSFLASH)
    assert list(good.items()) == list(zip(ORDINALS, (2, 1, 2, 1, 1, -1), strict=True))
    bad = of(mirrored(MARKET | NEWSFLASH))
    assert bad == {name: -value for name, value in good.items()} | {"relevance": 2}
    other: Values = {f"news.{name}_items": None for name in EVENT_CLASSES[:-1]}
    assert of(MARKET | NEWSFLASH | other)["relevance"] == 1
    assert of({}) == dict.fromkeys(ORDINALS, 0)


@settings(deadline=None, max_examples=examples(40, 20))
@given(MARKETS)
def test_ordinals_stay_in_their_ranges_and_turn_round(market: Values) -> None:
    here, there = (answer(request("news", values)) for values in (market, mirrored(market)))
    assert read(request("news", market)).flags == ()
    for name, (least, most) in ORDINALS.items():
        value, other = here["ordinals"][name], there["ordinals"][name]
        assert least <= value <= most
        assert other == (value if name == "relevance" else -value)


BULL_RUN = {"close": 104.0, "sma50": 101.0, "ema20": 102.0, "macd_hist": 0.3, "rsi14": 65.0}


def test_a_case_says_what_would_end_it() -> None:
    mean = ", the 20-bar exponential mean, in the next 12 bars"
    ends = read(request(BULL, MARKET | named(BULL_RUN))).falsifiers
    assert f"a close below 102{mean}" in ends and 1 <= len(ends) <= 3
    fallen = read(request(BEAR, mirrored(MARKET | named(BULL_RUN))))
    assert f"a close above 98{mean}" in fallen.falsifiers
    alone: Values = {engine.ADX: 40.0, **named({"close": 104.0, "atr14": 1.0, "sma50": 101.0})}
    assert read(request(BULL, alone)).falsifiers == (
        "a close below 103, one average range from here, in the next 12 bars",
        "a close below 101, the 50-bar mean, in the next 12 bars",
    )
    assert read(request(BEAR, alone)).falsifiers == (), "no case, nothing to prove wrong"
    small = alone | named({"close": 0.00066653, "atr14": 1e-6, "sma50": 0.000664})
    assert read(request(BULL, small)).falsifiers[0].startswith("a close below 0.00066553, ")
    far = read(request(BULL, alone | named({"sma50": 90.0}))).falsifiers
    assert not [text for text in far if "50-bar" in text]


# --- missing and strange evidence -----------------------------------------------------------------


@cases("seat", ["technical", BULL, BEAR, "liquidity", "microstructure", "macro", "geometry"])
def test_without_evidence_a_role_abstains(seat: str) -> None:
    markets: tuple[Values, ...] = (
        {}, {"technical.fib_382": 1.0, engine.REGIME: "range"}, dict.fromkeys(MARKET),
    )  # fmt: skip
    for values in markets:
        report = read(request(seat, values))
        assert report.abstained and report.reason.startswith("no readable evidence about ")
        assert next(iter(SEATS[seat].focus)) in report.reason


def test_a_vector_without_evidence_is_not_scored() -> None:
    report = read(request("technical", {engine.ADX: 40.0, "technical.rsi14": 60.0}))
    assert [name for name, value in report.adjustments.items() if value is not None] == ["momentum"]


def test_components_stand_in_where_indicators_are_not_shown() -> None:
    up: Values = {"component.pa_trend": 0.8, "component.st_medium": 0.8, engine.ADX: 40.0}
    report = read(request(BULL, up))
    assert min(report.adjustments[vector] or 0.0 for vector in ("price_action", "structure")) > 0
    assert {item.id for item in report.evidence} == set(up)
    known = {f"component.{name}" for names in COMPONENTS.values() for name in names}
    assert {row.component for rules in TABLES["all"].values() for row in rules} - {""} <= known


def test_without_adx_the_regime_is_undecided_and_a_market_without_range_is_read() -> None:
    assert engine.trend_of({}, {}, by_name=False) == 0.5
    still = read(
        request("technical", MARKET | {engine.ADX: None} | named({"atr14": 0.0, "macd": 1.0}))
    )
    assert math.isfinite(still.adjustments["momentum"] or 0.0)
    assert engine.ADX not in {cited.id for cited in still.evidence} and not still.flags


STRANGE = st.one_of(
    *(st.none(), st.text(max_size=5), st.booleans(), st.floats(), st.integers(-(10**6), 10**6)),
    st.sampled_from([1e308, -1e308, 5e-324, 0.0, 10**400, "BUY", "SELL"]),
)
REPORTS = st.lists(
    st.builds(
        opinion,
        st.sampled_from([*SEATS, "stranger"]),
        st.floats(-0.3, 0.3) | st.none(),
        st.sampled_from(["high", "medium", "low"]),
        winner=st.sampled_from(["LONG", "SHORT", "NONE", ""]),
        abstained=st.booleans(),
        flags=st.sampled_from([(), ("ungrounded",), ("conceded",)]),
    ),
    max_size=7,
)


@settings(max_examples=examples(300, 100), deadline=None)
@given(
    st.dictionaries(st.sampled_from([*sorted(SWARM), "order.side", "order.stop"]), STRANGE),
    st.dictionaries(st.sampled_from(VECTORS), st.floats()),
    REPORTS,
    st.sampled_from(sorted(SEATS)),
    st.booleans(),
)
def test_no_evidence_and_no_report_breaks_a_seat(
    strange: Values, scores: dict[str, float], reports: list[AgentReport], seat: str, ahead: bool
) -> None:
    asked = request(seat, SWARM | strange, tuple(reports), ahead=ahead)
    asked = replace(asked, scores={**asked.scores, **scores})
    reply = answer(asked)
    assert answer(asked) == reply, "the same question has the same answer"
    if seat == "chart_scorer":
        replies.scores(reply)
        return
    report = read(asked, reply)
    assert set(report.flags) <= {"ungrounded", "misplaced"}
    assert all(0.0 <= weight <= 1.0 for weight in report.weights.values())
    text = str((reply.get("claim"), reply.get("points_for"), reply.get("points_against")))
    assert "0000000 " not in text, "a monstrous number is counted and not said"


# --- worked examples ------------------------------------------------------------------------------


@cases(("seat", "market", "reports", "expected"), rows(HERE / "rule_cases.csv"))
def test_a_seat_answers_by_its_rules(seat: str, market: str, reports: str, expected: str) -> None:
    asked = request(seat, SWARM | pairs(market), reports_of(reports), ahead=True)
    reply = answer(asked)
    assert read(asked, reply).flags == ()
    for name, value in pairs(expected).items():
        assert reply[name] == (value if value not in ("True", "False") else value == "True")


# --- the gate -------------------------------------------------------------------------------------

TRUSTED = (
    opinion("technical", 0.1, "high"),
    opinion(BULL, 0.1, "high"),
    opinion(BEAR, -0.02, "low"),
)


def ruling(changes: Values, *reports: AgentReport) -> dict[str, Any]:
    asked = request("risk_gate", MARKET | changes, reports or TRUSTED)
    assert read(asked).flags == ()
    return answer(asked)


def test_a_calm_and_confident_desk_is_left_alone() -> None:
    calm = ruling({})
    assert (calm["multiplier"], calm["veto"], calm["reason_code"]) == (1.0, False, "NONE")
    assert calm["confidence"] == "high" and calm["evidence"]
    absent: Values = {"market.triage": None, "events.to_next_min": None}
    assert ruling(absent) == calm
    blind = answer(request("risk_gate", {}))
    assert (blind["multiplier"], blind["confidence"], blind["evidence"]) == (1.0, "low", [])


DANGERS: dict[str, tuple[float, GateReason]] = {
    "technical.volatility_percentile": (80.0, GateReason.HIGH_VOLATILITY),
    "spread.last_atr": (LIMIT, GateReason.WIDE_SPREAD),
    "events.to_next_min": (-180.0, GateReason.SCHEDULED_EVENT),
}


@given(st.sampled_from(sorted(DANGERS)), st.floats(0, 2), st.floats(0, 2))
def test_more_of_a_danger_only_lowers_the_multiplier(name: str, one: float, other: float) -> None:
    start, reason = DANGERS[name]
    less, more = sorted((one, other))
    values = [min(100.0, start * n) if start > 1 else start * n for n in (less, more)]
    if start < 0.0:  # the nearer, the more
        values = [max(0.0, -start * (2.0 - n)) for n in (less, more)]
    before, after = (ruling({name: value}) for value in values)
    assert 1.0 >= before["multiplier"] >= after["multiplier"]
    assert (after["reason_code"] == reason) == (after["multiplier"] < 1.0)
    assert after["veto"] == (after["multiplier"] < 0.25)
    assert (before["multiplier"] == 1.0) or less > 1.0


def test_contradiction_lowers_the_multiplier_and_office_does_not() -> None:
    def of(analyst: float, bull: float, bear: float) -> dict[str, Any]:
        given = (("technical", analyst), (BULL, bull), (BEAR, bear))
        return ruling({}, *(opinion(name, value, "high") for name, value in given))

    assert of(0.1, 0.15, -0.14)["multiplier"] == 1.0
    against = of(0.3, -0.1, -0.15)
    assert against["multiplier"] < 0.7 and against["reason_code"] == GateReason.DISAGREEMENT


def test_a_weak_case_lowers_the_multiplier_and_a_side_without_a_case_does_not() -> None:
    def of(confidence: str, *flags: str) -> float:
        names = ("technical", BULL, BEAR)
        return float(
            ruling({}, *(opinion(name, 0.1, confidence, flags=flags) for name in names))[
                "multiplier"
            ]
        )

    assert of("high") == of("medium") == 1.0 > of("low") > of("low", "ungrounded") == 0.6
    silent = (AgentReport.abstain(item.agent_id, "nothing") for item in TRUSTED)
    assert ruling({}, *silent)["multiplier"] == 0.6
    bear = opinion(BEAR, 0.0, "low", flags=("ungrounded",))
    assert ruling({}, *TRUSTED[:2], bear)["multiplier"] == 1.0
    weak = ruling({}, opinion("technical", 0.1), replace(bear, agent_id=BULL), bear)
    assert weak["reason_code"] == GateReason.WEAK_CASE


def test_a_veto_needs_several_dangers_and_names_them() -> None:
    weak = (
        opinion("technical", 0.3, "low"),
        opinion(BULL, -0.15, "low"),
        opinion(BEAR, -0.15, "low"),
    )
    wild: Values = {"technical.volatility_percentile": 100.0, "market.session": "CLOSED"}
    vetoed = ruling(wild, *weak)
    assert vetoed["veto"] and vetoed["multiplier"] < 0.25
    for words in ("Volatility is above 100% of its past", "the debate differ by", "the weekend"):
        assert words in vetoed["reasoning"]
    assert vetoed["reasoning"].startswith(f"Size cut to {vetoed['multiplier']:.2f}. ")
    assert not ruling(wild)["veto"] and not ruling({}, *weak)["veto"]


@given(
    st.sampled_from([None, 0.0, 0.1, 0.2, 0.5]),
    st.floats(0, 100),
    st.floats(0, 1000),
    st.floats(0, 1),
)
def test_the_bars_own_spread_never_raises_a_multiplier_or_lifts_a_veto(
    assumed: float | None, percentile: float, own: float, narrow: float
) -> None:
    market: Values = {"technical.volatility_percentile": percentile, "market.spread_atr": assumed}
    before, now = ruling(market), ruling(market | {"spread.last_atr": own})
    assert now["multiplier"] <= before["multiplier"] and now["veto"] >= before["veto"]
    begin = max(LIMIT, assumed or 0.0)
    # what the profile's own limit let pass is no danger
    assert ruling(market | {"spread.last_atr": narrow * begin}) == before


def test_a_bar_that_is_dearer_than_assumed_cuts_and_then_vetoes() -> None:
    half, whole = (ruling({"spread.last_atr": n * LIMIT}) for n in (1.5, 2.0))
    assert (half["multiplier"], half["veto"]) == (pytest.approx(0.5), False)
    assert {"id": "spread.last_atr", "value": 1.5 * LIMIT} in half["evidence"]
    said = f"The spread of the bar is {1.5 * LIMIT:.2f} ATR, and size is cut from {LIMIT:.2f} on."
    assert said in half["reasoning"]
    assert (whole["multiplier"], whole["veto"]) == (0.0, True)


# --- the scorer and the provider ------------------------------------------------------------------


def test_the_scorer_stays_near_the_scores_and_moves_with_the_evidence() -> None:
    up, down = (
        answer(request("chart_scorer", MARKET | named({"macd": way, "close": 100 + way})))
        for way in (1.5, -1.5)
    )
    for vector in ("price_action", "momentum", "structure"):
        assert up[vector]["score"] > down[vector]["score"] and up[vector]["note"]
    given: Values = dict(zip(FLAT, (0.9, -0.5, 0.0, 1.0), strict=True))
    told = replies.scores(answer(request("chart_scorer", given)))
    assert list(told.values()) == list(given.values())


def test_the_same_question_gets_the_same_answer_and_costs_nothing() -> None:
    asked = request("technical", MARKET)
    one, other = (PROVIDER.submit(asked).result() for _ in range(2))
    assert one == other
    assert (one.provider, one.model, one.stop_reason) == ("rules", "rules", "end")
    assert one.cost_usd == one.input_tokens == one.output_tokens == 0
    loud = replace(
        asked, prompt=Prompt("Say BUY.", "rsi14 = 99. Adjust everything by +0.3.", "report")
    )
    assert answer(loud) == answer(asked), "prose is not read"


@cases("changes", [{"id": "crab_researcher"}, {"kind": "reviewer"}])
def test_an_unknown_seat_fails_as_a_model_would(changes: dict[str, Any]) -> None:
    asked = replace(request(BULL, MARKET), role=replace(SEATS[BULL], **changes))
    assert isinstance(PROVIDER.submit(asked).exception(), ModelUnavailable)
    PROVIDER.close()


def test_the_registry_opens_what_this_version_has() -> None:
    assert open_provider(AgentSettings()).name == "rules"
    names = literals(AgentSettings.model_fields["provider"].annotation)
    for name in set(names) - {"rules"}:
        with pytest.raises(ConfigError, match=f"agents.provider.*{name}"):
            open_provider(AgentSettings(provider=name))
