"""The rules in a firm's seats: the time ahead, the research manager's judgement, the thesis."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agents.arguments import FAR_ATR
from agents.contracts import (
    HORIZON_BARS,
    SIDES,
    VECTORS,
    WINNERS,
    AgentReport,
    Confidence,
    Evidence,
    Feature,
    GateReason,
    Horizon,
    Request,
    Role,
    Shape,
    Winner,
)
from agents.debate import replies
from agents.debate.replies import schema
from agents.phrases import mirrored as in_mirrored_words
from agents.registry import AGENTS, TRADER
from tests.cases import cases
from tests.conftest import Scale
from tests.examples import examples
from tests.providers import test_rules_provider as plain
from tests.providers.test_arguments import check_words, ids_of, listen
from tests.providers.test_rules_provider import answer
from tests.worlds.mirrors import MARKET, MARKETS, Values, mirrored
from torra.providers.rules.manager_rules import UNBACKED
from torra.providers.rules.trader_rules import EVENT_MINUTES, HOLDS

MANAGER = AGENTS["research_manager"].role
BULL, BEAR, GATE = (AGENTS[name].role for name in (*SIDES, "risk_gate"))
TWINS = {"bull_researcher": "bear_researcher", "bear_researcher": "bull_researcher"}
HEADS = {"Long": "LONG", "Short": "SHORT", "No winner": "NONE"}
NUMBER = re.compile(r"\d")
UP_MARKET = MARKET | {"technical.close": 102.0, "technical.macd": 0.5, "technical.rsi14": 62.0}


def shape_of(role: Role, *, ahead: bool = True) -> Shape:
    kinds: Mapping[str, Shape] = {"arbiter": "judgement", "trader": "thesis", "gate": "ruling"}
    if role.kind in kinds:
        return kinds[role.kind]
    plain = {"researcher": "case"}.get(role.kind, "news" if role.id == "news" else "report")
    shapes: dict[str, Shape] = {"report": "report_ahead", "case": "case_ahead"}
    return shapes.get(plain, "news_ahead") if ahead else plain  # type: ignore[return-value]


def request(
    role: Role, values: Values, reports: tuple[AgentReport, ...] = (), *, ahead: bool = True
) -> Request:
    listed = {f"scores.{vector}": 0.125 for vector in VECTORS} | values
    asked_for = schema(shape_of(role, ahead=ahead))
    return plain.request(role, listed, reports=reports, schema=asked_for)


def read(asked: Request, reply: dict[str, Any] | None = None) -> AgentReport:
    """Return the answer as the framework reads it; anything malformed raises."""
    shape = shape_of(asked.role, ahead="horizon" in asked.schema["properties"])
    return replies.read(shape, reply or answer(asked), asked.role, asked.features)


def opinion(
    agent: str, value: float, confidence: Confidence = "medium", **changes: Any
) -> AgentReport:
    told = {"evidence": (Evidence("technical.rsi14", 62.0),), **changes}
    return AgentReport(agent, dict.fromkeys(VECTORS, value), confidence, **told)


def desk(bull: float, bear: float, *analysts: float) -> tuple[AgentReport, ...]:
    names = ("technical", "sentiment", "news", "fundamental")
    return (
        *(opinion(name, value) for name, value in zip(names, analysts, strict=False)),
        opinion("bull_researcher", bull),
        opinion("bear_researcher", bear),
    )


def judged(*given: float, values: Values = UP_MARKET, **changes: Any) -> AgentReport:
    reports = tuple(replace(one, **changes.get(one.agent_id, {})) for one in desk(*given))
    return read(request(MANAGER, values, reports))


def order(side: str, values: Values = UP_MARKET, **changes: float | str | None) -> Values:
    close, way = float(values["technical.close"] or 0.0), 1.0 if side == "BUY" else -1.0
    told: Values = {
        "order.side": side,
        "order.entry": close,
        "order.stop": close - 1.5 * way,
        "order.target": close + 3.0 * way,
        "order.conviction": 0.5,
    }
    return {**values, **told, **{f"order.{name}": value for name, value in changes.items()}}


# --- on the shipped sample ------------------------------------------------------------------------


@pytest.mark.journey
def test_what_a_firm_says_on_the_shipped_sample(scaled: Scale, record_property: Any) -> None:
    """Each reply fits its shape and stands as it was said; no id, no code, no claim twice."""
    heard = listen("firm", scaled(5_000) if scaled.whole else 6)
    seen: Counter[str] = Counter()
    claims: dict[tuple[str, ...], list[str]] = {}
    for asked, reply in heard:
        if asked.role.kind in ("gate", "trader"):
            continue
        told = read(asked, reply)
        assert told.flags == ()
        place = (asked.symbol, asked.timeframe, asked.bar_time)
        if asked.role.kind == "arbiter":
            check_judgement(asked, reply, told)
            seen[told.winner] += 1
            for side in ("BUY", "SELL"):
                seen["declined"] += check_thesis(asked, told, side)
        elif not told.abstained:
            check_ahead(reply, told)
        if (not told.abstained and asked.round == 2) or asked.role.kind != "researcher":
            claims.setdefault(place, []).append(told.claim)
    for tick, said in claims.items():
        made = [claim for claim in said if claim]
        assert len(set(made)) == len(made), (tick, made)
    assert min(seen["LONG"] + seen["SHORT"], seen["NONE"]) > 0, seen
    record_property("seen", f"{len(claims)} ticks: {dict(seen)}")


def check_sentence(text: str) -> None:
    check_words(text)
    assert NUMBER.search(text) and text.endswith("."), text


def check_ahead(reply: dict[str, Any], told: AgentReport) -> None:
    assert told.horizon == reply["horizon"]
    risks = reply.get("risks", [])
    assert told.risks == tuple(risks) and len(risks) <= 2
    assert not {f"{one['says']}, {one['why']}." for one in reply["points_against"]} & set(risks)
    for risk in risks:
        check_sentence(risk)
        assert ids_of(risk), risk


def check_judgement(asked: Request, reply: dict[str, Any], told: AgentReport) -> None:
    head = told.claim.split(":")[0]
    assert HEADS[head] == told.winner == reply["winner"]
    check_sentence(told.claim)
    assert told.weights == reply["weights"] and set(told.weights) == set(SIDES)
    assert all(0.0 <= weight <= 1.0 for weight in told.weights.values())
    assert told.horizon in get_args(Horizon) and not told.risks
    assert told.points_for
    assert WINNERS[told.winner] or told.points_against, told.winner
    check_points(told, WINNERS[told.winner] if told.winner else 0)
    assert not any(told.adjustments.values()) and asked.role.focus == {}


def check_points(told: AgentReport, side: int) -> None:
    for points, way in ((told.points_for, side), (told.points_against, -side)):
        for point in points:
            assert point.side == way or not side
            text = f"{point.says}, {point.why}."
            check_sentence(text)
            assert any(point.id in reads for reads in ids_of(text)), point


def check_thesis(asked: Request, manager: AgentReport, side: str) -> bool:
    """What the trader says of an opening on this tick; returns whether it declines it."""
    way = 1 if side == "BUY" else -1
    close, atr = (asked.features[f"technical.{name}"].value for name in ("close", "atr14"))
    assert isinstance(close, float) and isinstance(atr, float)
    given: Values = {"side": side, "stop": close - 1.5 * way * atr, "conviction": 0.5}
    named = {f"order.{name}": Feature(f"order.{name}", value) for name, value in given.items()}
    about = replace(
        asked,
        role=TRADER.role,
        schema=schema("thesis"),
        features={**asked.features, **named},
        reports=(*asked.reports, manager),
    )
    reply = answer(about)
    told = read(about, reply)
    assert told.flags == ()
    check_sentence(told.claim)
    declines = told.declined
    assert told.claim.startswith(f"Not this {side.lower()}: " if declines else side.capitalize())
    check_points(told, -way if declines else way)
    assert HORIZON_BARS[0] <= told.horizon_bars <= HORIZON_BARS[1]
    assert told.risks == tuple(reply["risks"]) and len(told.risks) <= 3
    for risk in told.risks:
        check_sentence(risk)
    assert len(told.falsifiers) == len(reply["invalidation"]) <= 3
    for end in reply["invalidation"]:
        assert 0.0 < way * (close - end["level"]) < 1.5 * atr <= FAR_ATR * atr
        check_words(end["what"])
    return declines


# --- the time ahead -------------------------------------------------------------------------------


@cases(
    ("agent", "changes", "horizon"),
    [
        ("technical", {}, "bars_16"),
        ("technical", {"technical.adx14": 15.0}, "bars_4"),
        ("technical", {"market.session": "CLOSED"}, "session"),
        ("technical", {"market.day_of_week": "Friday", "market.session": "NEW_YORK"}, "session"),
        ("momentum", {}, "bars_4"),
        ("sentiment", {}, "session"),
        ("news", {}, "session"),
        ("fundamental", {"macro.vix_change_20": 5.0}, "days"),
        ("fundamental", {}, "days"),
        ("bull_researcher", {"technical.adx14": 15.0}, "bars_4"),
        ("research_manager", {}, "bars_16"),
    ],
)
def test_each_seat_speaks_for_a_time_by_a_fixed_rule(
    agent: str, changes: Values, horizon: str
) -> None:
    assert answer(request(AGENTS[agent].role, MARKET | changes))["horizon"] == horizon


def test_a_case_risks_what_backs_it_and_is_stretched_and_what_it_did_not_grant() -> None:
    stretched = UP_MARKET | {"technical.rsi14": 75.0, "technical.ema20": 99.0}
    told = read(request(BULL, stretched))
    assert told.risks[0] == "RSI at 75 is stretched upwards, and such stretches often snap back."
    granted = {f"{point.says}, {point.why}." for point in told.points_against}
    assert not granted & set(told.risks)
    low = stretched | {f"scores.{vector}": -0.9 for vector in VECTORS}
    bear = read(request(BEAR, low))
    assert (bear.claim[:7], bear.risks) == ("No case", ())
    assert read(request(BULL, {})).risks == ()


def test_outside_a_firm_nothing_of_it_is_said() -> None:
    for agent in AGENTS.values():
        if agent.role.kind in ("analyst", "researcher"):
            plain = answer(request(agent.role, UP_MARKET, ahead=False))
            firm = answer(request(agent.role, UP_MARKET))
            more = {"horizon", "risks"} if agent.role.kind == "researcher" else {"horizon"}
            assert firm.keys() - plain.keys() == more
            assert {name: firm[name] for name in plain} == plain


# --- the judgement --------------------------------------------------------------------------------


@cases(
    ("given", "winner"),
    [
        ((0.15, 0.0, 0.2, 0.1), "LONG"),
        ((0.0, -0.15, -0.2, -0.1), "SHORT"),
        ((0.15, -0.15), "NONE"),
        ((0.0, 0.0, 0.0), "NONE"),
        ((0.15, 0.0, -0.2, -0.1), "NONE"),
        ((0.02, 0.0, 0.01), "NONE"),
        ((0.15, 0.0), "LONG"),
        ((0.0, 0.0, 0.3, 0.3), "NONE"),
    ],
)
def test_a_winner_is_named_where_cases_and_analysts_clearly_agree(
    given: tuple[float, ...], winner: str
) -> None:
    assert judged(*given).winner == winner


def test_cases_that_come_to_the_same_are_not_told_as_of_equal_weight() -> None:
    told = judged(0.15, -0.15)
    assert told.claim.startswith("No winner: the 2 cases come out even")
    assert "weigh" not in told.claim


def test_nobody_wins_without_a_case_and_the_judge_says_so() -> None:
    told = judged(0.0, 0.0, 0.0)
    assert told.claim.startswith("No winner: neither of 2 cases")
    assert told.weights == {"bull_researcher": 0.0, "bear_researcher": 0.0}
    assert (len(told.points_for), len(told.points_against), told.flags) == (1, 1, ())
    assert read(request(MANAGER, UP_MARKET)).winner == "NONE"


def test_a_winner_that_no_reading_backs_points_at_the_score_that_is_off() -> None:
    high: Values = {"technical.adx14": 40.0, **{f"scores.{vector}": 0.9 for vector in VECTORS}}
    told = judged(0.0, -0.1, -0.2, values=high)
    assert (told.winner, told.flags) == ("SHORT", ())
    assert [point.id for point in told.points_for] == ["scores.price_action"]
    assert told.points_for[0].side == -1


def test_what_a_case_grants_leaves_less_of_it() -> None:
    own = Evidence("technical.macd", 0.5)
    granted = Evidence("technical.kijun", 104.0)
    values = UP_MARKET | {"technical.kijun": 104.0}

    def weight(*cited: Evidence, flags: tuple[str, ...] = (), analyst: float = 0.1) -> float:
        changes = {"bull_researcher": {"evidence": cited, "flags": flags}}
        return judged(0.1, -0.02, analyst, values=values, **changes).weights["bull_researcher"]

    assert weight(own) == 1.0
    assert weight(own, granted) == 0.5
    assert weight(granted) == 0.0
    assert weight(own, analyst=-0.1) == UNBACKED
    assert weight(own, flags=("ungrounded",)) == pytest.approx(0.3)


@hypothesis_settings(deadline=None, max_examples=examples(200, 40))
@given(
    MARKETS,
    st.lists(st.integers(-64, 64).map(lambda n: n / 256), min_size=0, max_size=4),
    st.integers(0, 38).map(lambda n: n / 256),
    st.integers(0, 38).map(lambda n: n / 256),
    st.sampled_from(["high", "medium", "low"]),
    st.sampled_from([None, -1.5, -0.25, 0.5]),
)
def test_the_mirrored_market_is_judged_the_other_way_exactly(
    market: Values,
    analysts: list[float],
    bull: float,
    bear: float,
    sure: Confidence,
    mean_r: float | None,
) -> None:
    """Bull and bear change places, every sign turns: each number is the same."""

    def told(values: Values, way: int, longs: float, shorts: float, side: str) -> dict[str, Any]:
        given = desk(longs, -shorts, *(way * value for value in analysts))
        cited = {name: Evidence(name, values[name]) for name in CITED}
        reports = tuple(
            replace(one, confidence=sure, evidence=tuple(cited.values())) for one in given
        )
        listed = {f"scores.{vector}": way * 0.125 for vector in VECTORS}
        learnt: Values = {"lessons.mean_r": mean_r, "lessons.side": side}
        return answer(request(MANAGER, {**values, **listed, **learnt}, reports))

    here = told(market, 1, bull, bear, "LONG")
    there = told(mirrored(market), -1, bear, bull, "SHORT")
    assert WINNERS[here["winner"]] == -WINNERS[there["winner"]]
    assert (here["confidence"], here["horizon"]) == (there["confidence"], there["horizon"])
    assert {TWINS[name]: weight for name, weight in here["weights"].items()} == there["weights"]
    assert _turned(here["claim"]) == LEVELS.sub(_upside_down, there["claim"])
    fields = ("points_for", "points_against")
    for field, facing in zip(fields, fields[:: 1 if WINNERS[here["winner"]] else -1], strict=True):
        for one, other in zip(here[field], there[facing], strict=True):
            assert _bare(in_mirrored_words(one["says"])) == _bare(other["says"])


CITED = ("technical.ema20", "technical.sma50", "technical.macd", "technical.trend_state")


LEVELS = re.compile(r"outside ([\d.,]+) to ([\d.,]+)|(?<=a close )(above|below) ([\d.,]+)")


def _upside_down(found: re.Match[str]) -> str:
    """Levels of the mirrored market as those of the market, whose price is 100."""
    low, high, way, alone = found.groups()
    if way:
        return f"{way} {200.0 - float(alone):.8g}"
    return f"outside {200.0 - float(high):.8g} to {200.0 - float(low):.8g}"


def _turned(claim: str) -> str:
    swap = {"Long": "Short", "bull": "bear"}
    swap |= {other: one for one, other in swap.items()}
    return re.sub(r"Long|Short|bull|bear", lambda word: swap[word[0]], in_mirrored_words(claim))


def _bare(text: str) -> str:
    return re.sub(r"[+−-]?\d[\d,.]*%?", "#", text).lower()


def test_at_a_firm_the_manager_reads_the_lessons_and_the_researchers_do_not() -> None:
    lost: Values = {"lessons.mean_r": -1.0, "lessons.side": "LONG"}
    for role in (BULL, BEAR):
        plain, told = (
            answer(request(role, values, ahead=False)) for values in (UP_MARKET, UP_MARKET | lost)
        )
        assert plain["adjustments"] != told["adjustments"] or role is BEAR
        assert {"id": "lessons.mean_r", "value": -1.0} in told["evidence"]
        assert answer(request(role, UP_MARKET | lost)) == answer(request(role, UP_MARKET))
    given = (0.03, 0.0, 0.03)
    assert judged(*given).winner == "LONG"
    assert judged(*given, values=UP_MARKET | lost).winner == "NONE"
    assert "lessons.mean_r" in {one.id for one in judged(*given, values=UP_MARKET | lost).evidence}


@cases("role", [BULL, BEAR, GATE, MANAGER], ids=lambda role: role.id)
def test_a_manager_a_gate_and_a_trader_are_no_analysts(role: Role) -> None:
    reports = desk(0.1, -0.1, 0.2, -0.05)
    others = (
        AgentReport("research_manager", dict.fromkeys(VECTORS), "high", winner="SHORT"),
        AgentReport("risk_gate", dict.fromkeys(VECTORS), "low"),
        AgentReport("trader", dict.fromkeys(VECTORS), "low"),
    )
    alone = answer(request(role, UP_MARKET, reports))
    beside = answer(request(role, UP_MARKET, (*others, *reports)))
    if role is GATE:  # it says how many reports there are
        alone, beside = ({**one, "reasoning": ""} for one in (alone, beside))
    assert alone == beside


# --- the thesis -----------------------------------------------------------------------------------


def thesis(values: Values, *reports: AgentReport) -> AgentReport:
    return read(request(TRADER.role, values, reports))


def test_a_thesis_says_why_what_ends_it_and_for_how_long() -> None:
    trend = UP_MARKET | {"technical.ema20": 101.0, "market.regime": "trend_up"}
    told = thesis(order("BUY", trend))
    assert told.claim.startswith("Buy: ") and not told.declined
    assert "a close below 101, the 20-bar exponential mean, in the next 32 bars" in told.falsifiers
    assert all(point.side == 1 for point in told.points_for)
    assert told.horizon_bars == HOLDS["trend_up"]
    assert thesis(order("BUY", trend, stop=101.5)).falsifiers == (), "they lie beyond the stop"
    assert thesis(order("SELL", trend)).claim.startswith("Sell: ")


MANAGED = AgentReport("research_manager", dict.fromkeys(VECTORS), "high", winner="SHORT")


def test_what_is_not_told_of_an_order_is_coped_with() -> None:
    alone = thesis({**UP_MARKET, "order.side": "BUY"})
    assert alone.claim.startswith("Buy: ") and alone.falsifiers and alone.confidence == "low"
    nothing = thesis(UP_MARKET)
    assert (nothing.declined, nothing.points_for, nothing.falsifiers) == (False, (), ())
    bare = thesis({"order.side": "SELL"})
    assert bare.claim == "Sell: the 4 scores alone carry it."


@cases(
    ("reports", "minutes", "reason"),
    [
        ((MANAGED, *desk(0.0, -0.1, -0.2, -0.1)), None, GateReason.WEAK_CASE),
        ((MANAGED, *desk(0.0, -0.1, -0.2, -0.1, 0.0)), None, GateReason.WEAK_CASE),
        ((MANAGED, *desk(0.0, -0.1, -0.2, 0.01)), None, None),
        ((MANAGED, *desk(0.0, -0.1, -0.2)), None, None),
        ((replace(MANAGED, confidence="medium"), *desk(0.0, -0.1, -0.2, -0.1)), None, None),
        ((replace(MANAGED, winner="NONE"), *desk(0.0, -0.1, -0.2, -0.1)), None, None),
        ((replace(MANAGED, winner="LONG"), *desk(0.0, -0.1, -0.2, -0.1)), None, None),
        (desk(0.0, -0.1, -0.2, -0.1), None, None),
        ((), EVENT_MINUTES - 1.0, GateReason.SCHEDULED_EVENT),
        ((), EVENT_MINUTES, None),
        ((), -5.0, None),
    ],
)
def test_an_opening_is_declined_in_two_narrow_cases(
    reports: tuple[AgentReport, ...], minutes: float | None, reason: GateReason | None
) -> None:
    for side, way in (("BUY", 1), ("SELL", -1)):
        turned = tuple(replace(one) if way > 0 else _opposite(one) for one in reports)
        told = thesis(order(side) | {"events.to_next_min": minutes}, *turned)
        assert told.declined is (reason is not None)
        assert told.decline_code == (str(reason) if reason else "")
        assert told.flags == ()
        assert {point.side for point in told.points_for} <= {-way if reason else way}
        if reason:
            assert told.claim.startswith(f"Not this {side.lower()}: ")
            assert (told.falsifiers, told.risks) == ((), ())


def _opposite(report: AgentReport) -> AgentReport:
    other: dict[str, Winner] = {"LONG": "SHORT", "SHORT": "LONG"}
    winner = other.get(report.winner, report.winner)
    moves = {name: value and -value for name, value in report.adjustments.items()}
    name = TWINS.get(report.agent_id, report.agent_id)
    return replace(report, agent_id=name, adjustments=moves, winner=winner)


# --- whatever is there ----------------------------------------------------------------------------


def test_an_event_within_hours_is_a_risk() -> None:
    told = thesis(order("BUY") | {"events.to_next_min": 95.0})
    assert told.risks[0] == "A scheduled event comes in 95 minutes."
    assert not any("event" in risk for risk in thesis(order("BUY")).risks)


@hypothesis_settings(max_examples=examples(200, 50), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*sorted(MARKET), *(f"order.{name}" for name in ("side", "stop"))]),
        st.one_of(
            *(st.none(), st.text(max_size=5), st.booleans(), st.floats()),
            st.sampled_from([1e308, -1e308, 5e-324, 10**400, "BUY", "SELL"]),
        ),
        max_size=30,
    ),
    st.lists(
        st.builds(
            opinion,
            st.sampled_from([*AGENTS, "trader", "stranger"]),
            st.floats(-0.3, 0.3) | st.none(),
            st.sampled_from(["high", "medium", "low"]),
            winner=st.sampled_from(["LONG", "SHORT", "NONE", ""]),
            abstained=st.booleans(),
            flags=st.sampled_from([(), ("ungrounded",), ("conceded",)]),
        ),
        max_size=7,
    ),
    st.sampled_from([MANAGER, TRADER.role, BULL, BEAR]),
)
def test_no_evidence_and_no_report_breaks_a_seat(
    strange: Values, reports: list[AgentReport], role: Role
) -> None:
    asked = request(role, MARKET | strange, tuple(reports))
    one, other = answer(asked), answer(asked)
    assert one == other, "the same question has the same answer"
    told = read(asked, one)
    assert set(told.flags) <= {"ungrounded", "misplaced"}
    assert all(0.0 <= weight <= 1.0 for weight in told.weights.values())
    assert told.winner in ("", *WINNERS)
