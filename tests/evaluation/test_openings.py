"""Openings made and refused, by reason; the shares of BUY and SELL; lots that round to none."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.cases import cases
from tests.worlds.arm_trades import shows_no_gaps
from tests.worlds.observed import START, plain_tick, quiet_ticks
from torra.config import Profile, validate
from torra.evaluation.observations import ArmObservation, TickObservation
from torra.evaluation.openings import (
    LEAST_VERDICTS,
    RefusalCount,
    episodes,
    openings,
    openings_exhibit,
    rounding_warning,
    side_warning,
)
from torra.verdict.one_sided import leans
from torra.verdict.order_levels import Levels, levels
from torra.verdict.position_size import size

SMALL = validate(Profile, {"risk": {"capital": 1_000.0}}, "a test")


def told(*said: tuple[str, str, str], **fields: Any) -> tuple[TickObservation, ...]:
    """Return ticks one after the other, each with a verdict, an action and a reason."""
    return tuple(
        plain_tick(
            START + n * timedelta(minutes=15), verdict=verdict, action=action, reason=why, **fields
        )
        for n, (verdict, action, why) in enumerate(said)
    )


MIXED = told(
    ("BUY", "HOLD", "SIZE_ZERO"),
    ("BUY", "HOLD", "GATE_VETO"),
    ("BUY", "HOLD", "SIZE_ZERO"),
    ("BUY", "OPEN_BUY", "VERDICT"),
    ("BUY", "HOLD", "POSITION_HELD"),
    ("SELL", "CLOSE", "GATE_VETO"),
    ("HOLD", "HOLD", "THRESHOLD"),
    ("SELL", "HOLD", "SIZE_ZERO"),
    ("BUY", "HOLD", "SIZE_ZERO"),
    ("SELL", "REVERSE", "OPPOSITE_VERDICT"),
)


def test_an_opening_refused_tick_after_tick_counts_once_and_each_reason_once_in_it() -> None:
    found = openings(ArmObservation("l1", MIXED, ()))
    assert [len(row) for row in episodes(MIXED)] == [3, 1, 1, 1]
    assert (found.made, found.episodes, found.wanted) == (2, 4, 6)
    assert found.refused == {"SIZE_ZERO": RefusalCount(4, 3), "GATE_VETO": RefusalCount(2, 2)}
    assert found.share("SIZE_ZERO") == 0.5
    assert found.share("MARGIN") == 0.0


def test_every_instance_has_rows_of_its_own() -> None:
    gold = told(("BUY", "HOLD", "SIZE_ZERO"), ("BUY", "HOLD", "SIZE_ZERO"))
    euro = [replace(tick, instance="EURUSD", symbol="EURUSD") for tick in gold]
    mixed = [gold[0], euro[0], gold[1], euro[1]]
    assert sorted(len(row) for row in episodes(mixed)) == [2, 2]


def test_the_table_has_a_row_for_each_arm_with_reasons_and_the_shares_of_its_verdicts() -> None:
    found = openings_exhibit(
        [ArmObservation("l1", MIXED, ()), ArmObservation("full", quiet_ticks(3), ())]
    )
    shows_no_gaps(found)
    assert found.rows == (
        ("l1", "60.0 %", "30.0 %", 2, 4, "SIZE_ZERO 3 (4 ticks); GATE_VETO 2 (2 ticks)"),
        ("full", "0.0 %", "0.0 %", 0, 0, "none"),
    )
    assert found.columns[-1] == "openings refused, by reason"
    assert found.figures["l1.SIZE_ZERO.episodes"] == 3
    assert "full: BUY on 0.0 % of 3 ticks" in found.says
    assert (
        "full" not in openings_exhibit([ArmObservation("full", quiet_ticks(3), ())], {"full"}).says
    )
    assert found.says.startswith(
        "l1: BUY on 60.0 % of 10 ticks, SELL on 30.0 %; 2 openings made, 4 refused: SIZE_ZERO 3"
    )


def test_what_is_not_known_is_a_dash() -> None:
    """L1 beside a desk's own ticks has verdicts and no actions."""
    bare = [replace(tick, action="", reason="") for tick in MIXED]
    found = openings_exhibit(
        [ArmObservation("l1", tuple(bare), ()), ArmObservation("none", (), ())]
    )
    shows_no_gaps(found)
    assert found.rows == (
        ("l1", "60.0 %", "30.0 %", None, None, None),
        ("none", None, None, None, None, None),
    )


@cases(
    ("buys", "sells", "warned"),
    [
        pytest.param(20, 1, True, id="one-in-twenty"),
        pytest.param(20, 2, False, id="a-tenth-is-no-less-than-a-tenth"),
        pytest.param(0, 1_962, True, id="a-side-that-never-came"),
        pytest.param(19, 0, False, id="too-few-to-tell"),
        pytest.param(0, 0, False, id="no-verdicts"),
    ],
)
def test_a_side_under_a_tenth_of_the_other_is_warned_of(
    buys: int, sells: int, warned: bool
) -> None:
    assert leans(buys, sells, LEAST_VERDICTS) is warned
    assert leans(sells, buys, LEAST_VERDICTS) is warned
    ticks = told(*[("BUY", "HOLD", "POSITION_HELD")] * buys, *[("SELL", "HOLD", "")] * sells)
    said = side_warning([ArmObservation("l1", ticks, ())])
    assert bool(said) is warned
    assert not warned or re.search(
        r"the bars alone \(BUY on [\d.]+ % of ticks, SELL on [\d.]+ %\)", said
    )


def refusing(zero: int, made: int, **fields: Any) -> ArmObservation:
    """Return an arm with so many openings refused for their size, and made."""
    rows = [("BUY", "HOLD", "SIZE_ZERO"), ("HOLD", "HOLD", "THRESHOLD")] * zero
    rows += [("BUY", "OPEN_BUY", "VERDICT")] * made
    return ArmObservation("l1", told(*rows, close=4_500.0, atr=15.0, **fields), ())


def test_lot_rounding_is_warned_of_above_a_tenth_of_the_openings_wanted() -> None:
    assert not rounding_warning([refusing(1, 9)], SMALL)
    said = rounding_warning([refusing(2, 9)], SMALL)
    assert "it refused 2 of 11 openings that the bars alone wanted (18 %)" in said
    assert "Differences between them" not in said
    assert "Differences between them may be rounding." in rounding_warning(
        [refusing(2, 9), replace(refusing(0, 9), name="full")], SMALL
    )


def test_the_capital_and_the_lot_step_that_are_named_would_have_opened() -> None:
    said = rounding_warning([refusing(5, 5, multiplier=0.75)], SMALL)
    found = re.search(r"a capital of ([\d,]+), or lots in steps of ([\d.]+),", said)
    assert found, said
    assert "1,000 in account currency" in said
    capital, step = float(found[1].replace(",", "")), float(found[2])
    risk, spec = SMALL.risk, SMALL.symbol("XAUUSD")
    planned = levels("BUY", 4_500.0, 15.0, spec)
    assert isinstance(planned, Levels)
    assert size(planned, spec, risk, 0.75) == 0.0
    assert size(planned, spec, risk.model_copy(update={"capital": capital}), 0.75) > 0
    # Not much more than it takes, either: rounded up to two figures.
    less = risk.model_copy(update={"capital": 0.9 * capital})
    assert size(planned, spec, less, 0.75) == 0.0
    finer = spec.model_copy(update={"lot_step": step, "lot_min": step})
    assert size(planned, finer, risk, 0.75) > 0


def test_where_the_gate_left_nothing_of_the_size_no_capital_is_named() -> None:
    said = rounding_warning([refusing(5, 5, conviction=0.0)], SMALL)
    assert said.endswith("no capital helps.")
