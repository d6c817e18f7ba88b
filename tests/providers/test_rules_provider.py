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
    ORDINALS,
    VECTORS,
    AgentReport,
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
    part_of,
    read,
    reports_of,
    request,
    rows,
)
from torra.errors import ConfigError
from torra.profiles.fields import names_of
from torra.providers.registry import open_provider
from torra.providers.rules import engine
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


@cases("seat", ["technical", BULL])
@cases("vector", VECTORS)
def test_a_score_that_says_it_already_is_left_alone(vector: str, seat: str) -> None:
    values: Values = {engine.ADX: 40.0, **{f"component.{name}": 0.4 for name in COMPONENTS[vector]}}

    def moved(score: float) -> float:
        scores: Values = {f"scores.{name}": score for name in VECTORS}
        return read(request(seat, values | scores)).adjustments[vector] or 0.0

    assert moved(0.4) == 0 < moved(0.1)
    assert (moved(0.9) == 0) if seat == BULL else (moved(0.9) < 0), "no case against its side"


def test_a_report_that_nobody_trusts_weighs_less() -> None:
    said = [
        moves(BULL, {}, opinion("technical", 0.3, confidence, flags=flags))["momentum"]
        for confidence, flags in (
            ("high", ()), ("medium", ()), ("low", ()), ("low", ("ungrounded",)),
        )
    ]  # fmt: skip
    assert said == sorted(said, reverse=True) and len(set(said)) == 4 and said[-1] > 0.0


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


@settings(deadline=None, max_examples=examples(40, 20))
@given(MARKETS)
def test_ordinals_stay_in_their_ranges_and_turn_round(market: Values) -> None:
    here, there = (answer(request("news", values)) for values in (market, mirrored(market)))
    assert read(request("news", market)).flags == ()
    for name, (least, most) in ORDINALS.items():
        value, other = here["ordinals"][name], there["ordinals"][name]
        assert least <= value <= most
        assert other == (value if name == "relevance" else -value)


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
    values = SWARM | pairs(market)
    asked = request(seat, values, reports_of(reports, values), ahead=True)
    reply = answer(asked)
    assert read(asked, reply).flags == ()
    for place, value in pairs(expected).items():
        found = part_of(reply, place)
        if isinstance(found, str):  # as much of a text as the table has
            assert found.startswith(str(value)), (place, found)
        else:
            assert str(found) == value if isinstance(found, bool) else found == value


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
    names = names_of(AgentSettings.model_json_schema()["properties"]["provider"])
    for name in set(names) - {"rules"}:
        with pytest.raises(ConfigError, match=f"agents.provider.*{name}"):
            open_provider(AgentSettings(provider=name))
