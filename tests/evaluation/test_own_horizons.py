"""Reports of a firm are judged over the time that they speak for, and after four bars beside it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.cases import cases
from tests.worlds.observed import START, plain_tick
from torra.evaluation.firm.own_horizons import OwnHorizon, horizons_exhibit, own_horizons
from torra.evaluation.observations import AgentOpinion, TickObservation

ONE = (1.0, 1.0, 1.0, 1.0)


def says(horizon: str | None, value: float = 0.1, **more: Any) -> AgentOpinion:
    return AgentOpinion("technical", "analyst", (value,) * 4, ONE, 1.0, horizon=horizon, **more)


def day(prices: list[float], said: dict[int, AgentOpinion], **fields: Any) -> list[TickObservation]:
    """Return quarters of an hour with these closes, and what was said on some of them."""
    return [
        plain_tick(
            START + timedelta(minutes=15 * (row + 1)),
            close=price,
            opinions=(said[row],) if row in said else (),
            **fields,
        )
        for row, price in enumerate(prices)
    ]


def only(ticks: list[TickObservation]) -> OwnHorizon:
    (found,) = own_horizons(ticks)
    return found


def path(**at: float) -> list[float]:
    """Return a flat price of two days that changes at some rows, as r4=101."""
    found = [100.0] * 200
    for name, price in at.items():
        found[int(name[1:])] = price
    return found


@cases(
    ("horizon", "row"),
    [("bars_4", 4), ("bars_16", 16), ("session", 95), ("days", 96)],
)
def test_a_call_is_judged_by_the_close_that_ends_its_time(horizon: str, row: int) -> None:
    for price, hit in ((101.0, 1.0), (99.0, 0.0)):
        found = only(day(path(**{f"r{row}": price}), {0: says(horizon)}))
        assert (found.horizon, found.calls, found.rate) == (horizon, 1, hit)
        against = only(day(path(**{f"r{row}": price}), {0: says(horizon, -0.1)}))
        assert against.rate == 1.0 - hit
    assert own_horizons(day(path(), {0: says(horizon)}))[0].calls == 0, "a price that stood still"


def test_the_same_calls_are_judged_after_four_bars_too() -> None:
    found = only(day(path(r4=99.0, r16=101.0), {0: says("bars_16")}))
    assert (found.rate, found.usual) == (1.0, 0.0)


@cases(("horizon", "row"), [("bars_4", 196), ("bars_16", 184), ("session", 192), ("days", 104)])
def test_a_time_that_has_not_come_is_no_call(horizon: str, row: int) -> None:
    assert own_horizons(day(path(), {row: says(horizon)})) == ()


def test_who_names_no_time_does_not_lean_or_does_not_speak_is_no_call() -> None:
    for quiet in (
        says(None), says("bars_4", 0.0), says("bars_4", answered=False),
        says("bars_4", abstained=True),
    ):  # fmt: skip
        assert own_horizons(day(path(r4=101.0), {0: quiet})) == ()
        assert horizons_exhibit(day(path(), {0: quiet})) is None


@cases(("winner", "rate"), [("LONG", 1.0), ("SHORT", 0.0)])
def test_a_managers_call_is_the_side_that_it_names(winner: str, rate: float) -> None:
    named = AgentOpinion("research_manager", "arbiter", winner=winner, horizon="bars_4")
    assert only(day(path(r4=101.0), {0: named})).rate == rate


def test_a_manager_that_names_nobody_makes_no_call() -> None:
    named = AgentOpinion("research_manager", "arbiter", winner="NONE", horizon="bars_4")
    assert own_horizons(day(path(r4=101.0), {0: named})) == ()


def test_streams_are_judged_by_their_own_closes() -> None:
    one = day(path(r4=101.0), {0: says("bars_4")})
    other = day(path(r4=99.0), {0: says("bars_4")}, instance="EURUSD")
    assert only([*one, *other]).rate == 0.5


def test_the_table_says_what_is_beyond_chance_and_what_it_takes() -> None:
    prices = [100.0 + row for row in range(400)]
    sure = horizons_exhibit(day(prices, dict.fromkeys(range(400), says("bars_4"))))
    assert sure is not None and "over 4 bars 100.0 % hit" in sure.says
    assert sure.rows[0][:2] == ("4 bars", 396)
    few = horizons_exhibit(day(prices[:8], {0: says("bars_4")}))
    assert few is not None and not few.enough
    assert "do hits differ from a coin" in few.says
    assert few.figures["rate.bars_4"] == pytest.approx(1.0)
