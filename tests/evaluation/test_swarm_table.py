"""What is told of a swarm: abstentions, vetoes by reason, sizes, what the judge's chance was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.cases import cases
from tests.worlds.arm_trades import trade
from tests.worlds.observed import quiet_ticks
from torra.evaluation.arm_tables import ReportInput, _gates
from torra.evaluation.gate_value import VetoResult, gate_exhibit
from torra.evaluation.observations import (
    AgentOpinion,
    ArmObservation,
    SwarmObservation,
    TickObservation,
)
from torra.evaluation.outcomes import Outcomes
from torra.evaluation.swarm.judge_chance import LEAST, chance_exhibit, said_and_came
from torra.evaluation.swarm.swarm_table import swarm_counts, swarm_exhibit
from torra.replay.vetoes import whose

LIQUIDITY = AgentOpinion("liquidity", "analyst", anomaly="stop_sweep")
SILENT = AgentOpinion("macro", "analyst", abstained=True)
GEOMETRY = AgentOpinion("geometry", "analyst", pattern="double_top")
JUDGE = AgentOpinion("judge", "judge", winner="LONG")
DESK = (LIQUIDITY, SILENT, GEOMETRY, JUDGE)
LONG = SwarmObservation(
    side="LONG", said=0.45, used=0.45, value_r=0.2, reader="range", first="geometry"
)
AGAINST = replace(LONG, vetoes="BUY", veto_sides=("BUY",), reasons=("NEGATIVE_EV",))


def ticks_of(count: int, **fields: Any) -> tuple[TickObservation, ...]:
    return quiet_ticks(count, **{"opinions": DESK, "swarm": LONG, "regime": "range"} | fields)


def test_everything_of_a_swarm_is_counted() -> None:
    sized = ticks_of(
        3, verdict="BUY", multiplier=0.8, conviction=0.5, swarm=replace(LONG, budget=0.5)
    )
    small = ticks_of(1, verdict="SELL", l1_verdict="SELL", reason="SIZE_ZERO", regime="quiet")
    held = ticks_of(2, swarm=AGAINST)
    thin = ticks_of(2, swarm=SwarmObservation(thin=True, reasons=("MACRO_PANIC",)))
    found = swarm_counts((*sized, *small, *held, *thin, *quiet_ticks(5)))
    assert (found.ticks, found.thin, found.vetoed, found.size_zero) == (8, 2, 2, 1)
    assert (found.asked["macro"], found.abstained["macro"], found.abstained["geometry"]) == (
        8, 8, 0
    )  # fmt: skip
    assert (found.odd["liquidity", "stop_sweep"], found.patterns["double_top"]) == (8, 8)
    assert (found.disputed, found.read, found.first["geometry"]) == (1, 6, 6)
    assert found.sizes == pytest.approx((0.2, 0.2, 0.2, 1.0))
    assert (found.changed, found.sides) == (3, 8)
    assert found.reasons == {"NEGATIVE_EV": 2, "MACRO_PANIC": 2}


def test_the_table_says_what_it_counts() -> None:
    told = swarm_exhibit(ticks_of(200, verdict="BUY", multiplier=0.5, reason="SIZE_ZERO"))
    assert told is not None and told.enough
    assert "Macro had nothing to read." in told.says
    assert "took a side on 100 % of them and vetoed 0 % of its sides" in told.says
    assert "where 2 % to 25 % is expected" in told.says
    assert "half leave 50 % of a size or less; 100.0 % of all ticks say SIZE_ZERO." in told.says
    rows = {row[0]: row[1] for row in told.rows}
    assert rows["MACRO_PANIC (lowers)"] == "0 % (0 to 2 %)"
    assert told.figures["judge.LONG"] == 1.0 and told.figures["size.half"] == 0.5


@cases(("vetoed", "expected"), [(0, False), (4, True), (50, True), (100, False)])
def test_a_judge_that_vetoes_too_seldom_or_too_often_is_told(vetoed: int, expected: bool) -> None:
    found = swarm_exhibit((*ticks_of(200 - vetoed), *ticks_of(vetoed, swarm=AGAINST)))
    assert found is not None and ("is expected" not in found.says) is expected


def test_a_desk_without_an_officer_has_no_such_table() -> None:
    assert swarm_exhibit(quiet_ticks(3, opinions=(LIQUIDITY,))) is None
    assert swarm_exhibit(quiet_ticks(3, swarm=LONG)) is None, "nobody was heard"


def test_in_shadow_no_budget_counts() -> None:
    (tick,) = ticks_of(1, swarm=SwarmObservation(budget=0.4))
    assert (tick.budget, replace(tick, shadow=True).budget) == (0.4, 1.0)


# --- vetoes by reason -----------------------------------------------------------------------------

VETOED = {"verdict": "BUY", "reason": "GATE_VETO"}
CROWD = SwarmObservation(veto_sides=("BUY",), reasons=("CROWDED",))
HOLD = SwarmObservation(reasons=("JUDGE_HOLD",))
GATE = AgentOpinion("risk_gate", "gate", veto=True)


@cases(
    ("fields", "by"),
    [
        ({"swarm": AGAINST}, "NEGATIVE_EV"),
        ({"swarm": CROWD}, "CROWDED"),
        ({"swarm": HOLD, "veto": True}, "JUDGE_HOLD"),
        ({"swarm": HOLD, "veto": True, "rule_veto": True}, "gate"),
        ({"swarm": HOLD, "veto": True, "opinions": (GATE,)}, "gate"),
        ({"swarm": AGAINST, "veto": True}, "gate"),
        ({"swarm": AGAINST, "reason": "GATE_CANNOT_OPEN"}, "gate"),
        ({"swarm": AGAINST, "reason": "TRADER_DECLINED"}, "trader"),
        ({"swarm": None, "veto": True}, "gate"),
    ],
)
def test_a_vetoed_opening_has_one_reason(fields: dict[str, Any], by: str) -> None:
    (tick,) = ticks_of(1, **VETOED | fields)
    assert whose([tick]) == {tick.key: by}


def test_a_veto_that_still_holds_has_the_reason_that_it_was_made_for() -> None:
    first, second = ticks_of(2, **VETOED)
    said = [replace(first, reason="", verdict="HOLD", swarm=AGAINST), second]
    assert whose(said) == {second.key: "NEGATIVE_EV"}
    said[1] = replace(second, verdict="SELL")
    assert whose(said) == {second.key: "gate"}, "the other side was never the judge's"


def test_each_reason_has_a_row_and_an_alarm_of_its_own() -> None:
    ticks = ticks_of(60, **VETOED, swarm=AGAINST)
    openings = [VetoResult(tick.key, "BUY", -1.0, "NEGATIVE_EV") for tick in ticks[:50]]
    openings += [VetoResult(tick.key, "BUY", 2.0, "CROWDED") for tick in ticks[50:55]]
    arm = ArmObservation("swarm", ticks, ())
    found = _gates(ReportInput((arm,), control="l1", vetoed={"swarm": tuple(openings)}))
    assert [(one.by, one.vetoed, one.net) for one in found] == [
        ("gate", 0, 0.0), ("NEGATIVE_EV", 50, 50.0), ("CROWDED", 5, -10.0)
    ]  # fmt: skip
    told = gate_exhibit(found)
    assert "the judge's chance (NEGATIVE_EV) blocks" in told.says
    assert told.figures["swarm.NEGATIVE_EV.net"] == 50.0
    assert told.figures["swarm.CROWDED.net"] == -10.0


# --- what the judge said, and what came -----------------------------------------------------------


def seen(count: int, forward: float, **fields: Any) -> tuple[ArmObservation, Outcomes]:
    import numpy as np  # noqa: PLC0415

    ticks = ticks_of(count, **fields)
    moves = np.full((count, 1), forward)
    return ArmObservation("swarm", ticks, ()), Outcomes((4,), moves, moves, -moves)


def test_calls_hit_where_the_price_lies_on_the_judges_side() -> None:
    arm, came = seen(8, 1.0)
    (tenth,) = said_and_came(arm, came)
    assert (tenth.tenth, tenth.ticks, tenth.hits, tenth.rate) == (4, 8, 8, 1.0)
    short = replace(LONG, side="SHORT", said=1.0)
    (tenth,) = said_and_came(*seen(8, 1.0, swarm=short))
    assert (tenth.tenth, tenth.hits, tenth.calls) == (9, 0, 8)
    (tenth,) = said_and_came(*seen(8, 0.0))
    assert (tenth.ticks, tenth.calls, tenth.rate) == (8, 0, None)


def test_only_trades_of_the_side_that_was_named_are_the_judges() -> None:
    arm, came = seen(LEAST, 1.0)
    trades = [
        trade(tick.close_time, 1.0 if at % 2 else -1.0, instance=tick.instance)
        for at, tick in enumerate(arm.ticks)
    ]
    told = chance_exhibit(replace(arm, trades=tuple(trades)), came)
    assert told is not None and "which is too few" in told.says and not told.enough
    assert told.figures["trades"] == LEAST and told.figures["won.4"] == 0.5
    assert "Of the closed trades of its side 50 % won" in told.says
    others = tuple(replace(one, side="SELL") for one in trades)
    less = chance_exhibit(replace(arm, trades=others), came)
    assert less is not None and less.figures["trades"] == 0 and not less.enough


def test_a_judge_that_never_takes_a_side_has_no_table() -> None:
    assert chance_exhibit(*seen(3, 1.0, swarm=SwarmObservation())) is None
