"""The rules in a firm's seats: the time ahead, the research manager's judgement, the thesis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.contracts import SIDES, VECTORS, AgentReport, Confidence, Evidence
from tests.cases import cases
from tests.examples import examples
from tests.providers.test_swarm_rules import TWINS, check_mirrored
from tests.worlds.mirrors import MARKET, MARKETS, WORD_TWINS, Values, mirrored_swarm
from tests.worlds.rule_seats import SEATS, answer, desk, opinion, read, request

MANAGER, BULL, BEAR = "research_manager", *SIDES
UP_MARKET = MARKET | {"technical.close": 102.0, "technical.macd": 0.5, "technical.rsi14": 62.0}
CITED = ("technical.ema20", "technical.sma50", "technical.macd", "technical.trend_state")
MANAGED = opinion(MANAGER, None, "high", winner="SHORT")


def order(side: str, **changes: float | None) -> Values:
    stop = 102.0 - 1.5 * (1.0 if side == "BUY" else -1.0)
    given: Values = {"side": side, "stop": stop, "conviction": 0.5, **changes}
    return {f"order.{name}": value for name, value in given.items()}


# --- the mirrored market --------------------------------------------------------------------------


@pytest.mark.journey
@settings(deadline=None, max_examples=examples(200, 30))
@given(
    MARKETS,
    st.lists(st.integers(-64, 64).map(lambda n: n / 256), max_size=4),
    st.integers(0, 38).map(lambda n: n / 256),
    st.integers(0, 38).map(lambda n: n / 256),
    st.sampled_from(["high", "medium", "low"]),
    st.sampled_from([None, -1.5, -0.25, 0.5]),
    st.sampled_from(["LONG", "SHORT", "NONE"]),
)
def test_the_mirrored_market_is_judged_the_other_way_exactly(
    market: Values,
    analysts: list[float],
    bull: float,
    bear: float,
    sure: Confidence,
    mean_r: float | None,
    winner: Any,
) -> None:
    """Bull and bear change places, every sign turns: each number and word is mirrored."""
    lessons: Values = {"lessons.mean_r": mean_r, "lessons.side": "LONG"}
    scores: Values = {f"scores.{vector}": -0.125 for vector in VECTORS}
    here = market | lessons | order("BUY")
    there = mirrored_swarm(here) | scores
    twin: Any = WORD_TWINS.get(winner, winner)

    def reports(
        values: Values, given: tuple[AgentReport, ...], named: Any
    ) -> tuple[AgentReport, ...]:
        cited = tuple(Evidence(name, values[name]) for name in CITED)
        made = (replace(one, confidence=sure, evidence=cited) for one in given)
        return *made, replace(MANAGED, winner=named)

    told = reports(here, desk(bull, -bear, *analysts), winner)
    other = reports(there, desk(bear, -bull, *(-value for value in analysts)), twin)
    for seat, role in SEATS.items():
        if role.kind in ("analyst", "researcher", "arbiter", "trader"):
            check_mirrored(
                answer(request(seat, here, told, ahead=True)),
                answer(request(TWINS.get(seat, seat), there, other, ahead=True)),
            )


# --- the time ahead -------------------------------------------------------------------------------


def test_outside_a_firm_nothing_of_it_is_said() -> None:
    for seat in ("technical", "sentiment", "news", "fundamental", "momentum", *SIDES):
        plain, firm = (answer(request(seat, UP_MARKET, ahead=ahead)) for ahead in (False, True))
        assert firm.keys() - plain.keys() == {"horizon"} | ({"risks"} if seat in SIDES else set())
        assert {name: firm[name] for name in plain} == plain


# --- the judgement --------------------------------------------------------------------------------


def test_a_winner_that_no_reading_backs_points_at_the_score_that_is_off() -> None:
    high: Values = {"technical.adx14": 40.0, **{f"scores.{vector}": 0.9 for vector in VECTORS}}
    told = read(request(MANAGER, high, desk(0.0, -0.1, -0.2)))
    assert (told.winner, told.flags) == ("SHORT", ())
    assert [(point.id, point.side) for point in told.points_for] == [("scores.price_action", -1)]


def test_at_a_firm_the_manager_reads_the_lessons_and_the_researchers_do_not() -> None:
    lost = UP_MARKET | {"lessons.mean_r": -1.0, "lessons.side": "LONG"}
    plain, told = (answer(request(BULL, values)) for values in (UP_MARKET, lost))
    assert plain["adjustments"] != told["adjustments"]
    assert {"id": "lessons.mean_r", "value": -1.0} in told["evidence"]
    for seat in SIDES:
        firm = (answer(request(seat, values, ahead=True)) for values in (UP_MARKET, lost))
        assert len({str(reply) for reply in firm}) == 1
    judged = read(request(MANAGER, lost, desk(0.03, 0.0, 0.03)))
    assert "lessons.mean_r" in {item.id for item in judged.evidence}


@cases("seat", [BULL, BEAR, "risk_gate", MANAGER])
def test_a_manager_a_gate_and_a_trader_are_no_analysts(seat: str) -> None:
    reports = desk(0.1, -0.1, 0.2, -0.05)
    others = (MANAGED, opinion("risk_gate", None, "low"), opinion("trader", None, "low"))
    alone, beside = (answer(request(seat, UP_MARKET, (*more, *reports))) for more in ((), others))
    if seat == "risk_gate":  # it says how many reports there are
        alone["reasoning"] = beside["reasoning"]
    assert alone == beside


# --- the thesis -----------------------------------------------------------------------------------
