"""What a closed trade came to: outcome, R, evolution of the thesis, plan beside result."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.cases import cases
from torra.bridges.paper import Bar, PaperPosition, advance
from torra.clock import iso
from torra.config import SYMBOLS
from torra.verdict.trade_outcome import (
    SCRATCH_R,
    evolution_of,
    judge,
    outcome_of,
    r_of,
)

NOON = datetime(2026, 2, 13, 12, tzinfo=UTC)


def opening(**more: Any) -> dict[str, Any]:
    """A long decided at 2000 with its stop 10 away, filled 0.5 higher."""
    row = {"side": "BUY", "entry": 2000.0, "stop": 1990.0, "target": 2020.0, "lots": 0.1}
    fill = {"price": 2000.5, "opened_at": iso(NOON), "decided_at": iso(NOON - timedelta(hours=9))}
    return {**row, **fill, **more}


def short(**more: Any) -> dict[str, Any]:
    return opening(**{"side": "SELL", "stop": 2010.0, "target": 1980.0, "price": 1999.5, **more})


def ended(row: dict[str, Any], price: float, profit: float | None = None, **more: Any):
    gain = price - row["price"] if row["side"] == "BUY" else row["price"] - price
    told = {"closed_at": NOON + timedelta(hours=2.5), "reason": "CLOSED", **more}
    return judge(row, exit_price=price, profit=gain * 10 if profit is None else profit, **told)


@cases(
    ("row", "price", "r", "outcome", "evolution"),
    [
        (opening(), 2020.0, 1.95, "win", "Realized"),
        (opening(), 1990.0, -1.05, "loss", "Falsified"),
        (opening(), 2001.4, 0.09, "scratch", "Weakened"),
        (opening(), 2001.5, 0.1, "win", "Realized"),
        (opening(), 1999.6, -0.09, "scratch", "Weakened"),
        (opening(), 1999.5, -0.1, "loss", "Falsified"),
        (opening(), 2000.5, 0.0, "scratch", "Weakened"),
        (short(), 1980.0, 1.95, "win", "Realized"),
    ],
)
def test_a_trade_is_judged_by_its_result(
    row: dict[str, float | str], price: float, r: float, outcome: str, evolution: str
) -> None:
    found = ended(row, price)
    assert (found.r_multiple, found.outcome, found.evolution) == (r, outcome, evolution)


@cases(
    ("r", "profit", "outcome"),
    [
        (0.5, 20.0, "win"),
        (0.5, -3.0, "loss"),
        (-0.5, 3.0, "win"),
        (0.5, 0.0, "win"),
        (-0.5, 0.0, "loss"),
        (-0.5, None, "loss"),
        (0.5, None, "win"),
        (SCRATCH_R, -1.0, "loss"),
        (0.0999, -500.0, "scratch"),
        (-0.0999, None, "scratch"),
    ],
)
def test_costs_count_and_outside_a_scratch_the_account_decides(
    r: float, profit: float | None, outcome: str
) -> None:
    assert outcome_of(r, profit) == outcome


def test_the_thesis_stands_beside_the_result() -> None:
    found = ended(opening(), 2012.5, reason="CLOSED")
    assert found.as_dict() == {
        "side": "LONG",
        "outcome": "win",
        "evolution": "Realized",
        "reason": "CLOSED",
        "r_multiple": 1.2,
        "planned_r": 2.0,
        "slipped_r": 0.05,
        "planned_stop_pct": -0.5,
        "planned_target_pct": 1.0,
        "realized_pct": 0.5999,
        "hours_held": 2.5,
        "profit": 120.0,
    }
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False)) == found.as_dict()
    with pytest.raises(AttributeError):
        found.profit = 1.0


def test_a_shorts_percentages_are_gains_of_the_trade_too() -> None:
    found = ended(short(), 2010.0)
    assert (found.planned_stop_pct, found.planned_target_pct) == (-0.5, 1.0)
    assert (found.realized_pct, found.slipped_r, found.side) == (-0.5251, 0.05, "SHORT")
    assert ended(short(price=2000.5), 1990.0).slipped_r == -0.05


def test_without_a_fill_the_decision_stands_for_it() -> None:
    row = opening(price=None, opened_at=None)
    found = judge(row, exit_price=2010.0, closed_at=NOON, profit=100.0, reason="CLOSED")
    assert (found.r_multiple, found.slipped_r, found.hours_held) == (1.0, 0.0, 9.0)
    assert evolution_of(row, 2015.0) == "Unknown"


def test_clocks_that_disagree_make_no_negative_time() -> None:
    assert ended(opening(), 2001.0, closed_at=NOON - timedelta(seconds=3)).hours_held == 0.0


def test_where_no_risk_was_planned_nothing_is_said() -> None:
    row = opening(stop=2000.0, target=2000.0)
    found = ended(row, 2010.0)
    assert (found.r_multiple, found.outcome, found.evolution) == (0.0, "scratch", "Unknown")
    assert found.planned_r == 0.0
    assert evolution_of(row, 2010.0) == "Unknown"


@cases(
    ("row", "price", "evolution"),
    [
        (opening(), 2010.5, "Strengthened"),
        (opening(), 2010.4, "Unknown"),
        (opening(), 1995.5, "Weakened"),
        (opening(), 1995.6, "Unknown"),
        (opening(), None, "Unknown"),
        (short(), 1989.5, "Strengthened"),
        (short(), 2004.5, "Weakened"),
        (short(), 2000.0, "Unknown"),
    ],
)
def test_the_thesis_of_an_open_trade_by_half_the_way(
    row: dict[str, float | str], price: float | None, evolution: str
) -> None:
    assert evolution_of(row, price) == evolution


@cases("broken", [math.nan, math.inf, -math.inf, True, "7", None])
def test_a_broken_number_is_never_remembered(broken) -> None:
    told: dict[str, Any] = {
        "exit_price": 2010.0,
        "closed_at": NOON,
        "profit": 1.0,
        "reason": "CLOSED",
    }
    for name in ("exit_price", "profit"):
        with pytest.raises(ValueError, match=f"{name} must be a finite number"):
            judge(opening(), **{**told, name: broken})
    for name in ("entry", "stop", "target") + (() if broken is None else ("price",)):
        with pytest.raises(ValueError, match=f"{name} must be a finite number"):
            judge(opening(**{name: broken}), **told)
    for name in ("entry", "stop", "target", "price"):
        with pytest.raises(ValueError, match=f"{name} must be a positive price"):
            judge(opening(**{name: 0.0}), **told)
    with pytest.raises(ValueError, match="r_multiple must be a finite number"):
        outcome_of(broken, 1.0)
    if broken is not None:
        with pytest.raises(ValueError, match="profit must be a finite number"):
            outcome_of(1.0, broken)


ticks = st.integers(100_000, 300_000).map(lambda cents: cents / 100)


def test_paper_and_judge_agree_on_r(scaled: Callable[..., int]) -> None:
    """What the paper bridge books is what is judged, to the last digit."""
    spec = SYMBOLS["XAUUSD"]

    @settings(max_examples=scaled(5_000, least=40), suppress_health_check=list(HealthCheck))
    @given(ticks, ticks, ticks, st.sampled_from(["LONG", "SHORT"]), ticks)
    def check(entry, near, far, side, opened) -> None:
        stop, target = (near, far) if side == "LONG" else (far, near)
        assume(near < far)
        held = PaperPosition("T", side, 0.1, entry, stop, target, NOON)
        bar = Bar(NOON, opened, opened, opened, opened)
        for event in advance((), held, bar, 0.25, spec).events:
            assert event.r_multiple == r_of(side, entry, event.price, stop, target)
            row = opening(
                side="BUY" if side == "LONG" else "SELL", stop=stop, target=target, price=entry
            )
            found = judge(
                row, exit_price=event.price, closed_at=NOON, profit=event.profit, reason=event.kind
            )
            assert found.r_multiple == event.r_multiple
            assert found.outcome == outcome_of(event.r_multiple, event.profit)

    check()
