"""All tables of a report at once: whole, repeatable, and total whatever is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.worlds.arm_trades import arm_of, coin, shows_no_gaps
from torra.evaluation.arm_tables import ReportInput, arm_exhibits
from torra.evaluation.criteria import Measured, Share
from torra.evaluation.gate_value import VetoResult
from torra.evaluation.observations import ArmObservation
from torra.evaluation.paired import ForwardReturns

NAMES = (
    "arms", "claims", "openings", "discordant", "paired-days", "placebos", "gate", "sharpe",
    "power",
)  # fmt: skip


def voiced(arm, seed, share=0.2):
    """Return an arm some of whose verdicts are BUY."""
    rng = np.random.default_rng(seed)
    ticks = (replace(t, verdict="BUY" if rng.random() < share else "HOLD") for t in arm.ticks)
    return replace(arm, ticks=tuple(ticks))


def compared(**changes: Any) -> ReportInput:
    market, noise = coin(1, 400), np.random.default_rng(2).normal(0.0, 0.2, (5, 400))
    arms = [
        voiced(arm_of(market + noise[seed] + lift, name, cost_usd=0.01), seed)
        for seed, (name, lift) in enumerate(
            [("l1", 0.0), ("legacy", 0.0), ("budget", 0.3), ("shuffled", 0.0), ("flipped", 0.0)]
        )
    ]
    given: dict[str, Any] = {
        "arms": arms,
        "placebos": {"budget": ("shuffled", "flipped", "not run")},
        "outcomes": {tick.key: ForwardReturns(0.1, -0.2) for tick in arms[0].ticks},
        "vetoed": {"budget": [VetoResult(t.key, "BUY", -1.0) for t in arms[2].ticks[::10]]},
        "horizon": 4,
    }
    return ReportInput(**(given | changes))


def test_a_report_has_every_table_and_each_is_whole() -> None:
    found = arm_exhibits(compared())
    assert [one.name for one in found] == [*NAMES, "criteria"]
    for one in found:
        shows_no_gaps(one)
        json.dumps([one.rows, dict(one.figures)], allow_nan=False)


@pytest.mark.journey
def test_an_arm_has_the_same_figures_whatever_else_is_in_the_table() -> None:
    whole = compared()
    few = replace(whole, arms=[whole.arms[0], whole.arms[2]])
    assert whole.arms[2].name == "budget"
    alone, among = arm_exhibits(few)[0], arm_exhibits(whole)[0]
    assert alone.figures["budget.low"] == among.figures["budget.low"]
    assert arm_exhibits(whole) == arm_exhibits(compared())


def test_placebos_are_compared_and_never_claimed() -> None:
    tables = {one.name: one for one in arm_exhibits(compared())}
    assert [row[0] for row in tables["claims"].rows] == ["l1", "legacy", "budget"]
    assert [row[0] for row in tables["arms"].rows] == [arm.name for arm in compared().arms]
    assert tables["placebos"].figures["budget.beaten"] == 1.0
    assert tables["placebos"].figures["l1.beaten"] is None
    assert tables["claims"].figures["budget.edge"] == 1.0
    assert tables["claims"].figures["l1.edge"] == 0.0


def test_the_same_arm_is_no_edge_without_placebos_or_after_many_trials() -> None:
    nothing: dict[str, Any] = {"placebos": {}}
    for changes in (nothing, {"trials": 100_000_000}):
        tables = {one.name: one for one in arm_exhibits(compared(**changes))}
        assert tables["claims"].figures["budget.edge"] == 0.0


def claimed(**changes):
    tables = {one.name: one for one in arm_exhibits(compared(**changes))}
    return tables["claims"], {row[0]: row[-1] for row in tables["claims"].rows}


@pytest.mark.journey
def test_random_entries_are_no_stand_in_for_the_placebos_of_agents() -> None:
    by_chance = {"l1": 0.001, "legacy": 0.001, "budget": 0.001}
    table, why = claimed(placebos={"legacy": ("shuffled",)}, by_chance=by_chance)
    assert why["budget"] == "no placebo of its own"
    assert table.figures["budget.edge"] == 0.0
    table, why = claimed(by_chance=by_chance)
    assert table.figures["budget.edge"] == 1.0
    assert "after costs and beyond its 2 placebos and random entries." in table.says
    _, why = claimed(by_chance={"budget": 0.5})
    assert why["budget"] == "not better than random entries"


@pytest.mark.journey
def test_the_control_is_held_against_random_entries_alone() -> None:
    given = {"control": "budget", "placebos": {}}
    table, why = claimed(**given, by_chance={"budget": 0.001})
    assert why["budget"] == "every rule holds"
    assert (
        "budget shows an edge on these bars, after costs and beyond random entries." in table.says
    )
    _, why = claimed(**given, by_chance={"budget": 0.2})
    assert why["budget"] == "not better than random entries"
    _, why = claimed(**given)
    assert why["budget"] == "no placebo of its own"


def test_the_criteria_take_what_the_arms_tell_and_leave_what_was_told() -> None:
    told = Measured(false_single=Share(7, 9), fallbacks=Share(5, 5), lost=0)
    rows = {row[0]: row for row in arm_exhibits(compared(measured=told))[-1].rows}
    assert "against 78 %" in rows["false signals"][2]
    assert rows["latency"][2] == "95 % of 401 ticks within 0.00 s"
    assert str(rows["gate"][2]).startswith("9 % (")
    assert rows["fallback"][3] == "met"


@pytest.mark.parametrize(
    "arms",
    [[], [ArmObservation("l1", (), ())], [arm_of([1.0], "budget")], [arm_of([], "l1")]],
    ids=["none", "nothing-seen", "no-control", "no-trade"],
)
def test_whatever_is_missing_there_is_a_report(arms: list[Any]) -> None:
    for one in arm_exhibits(ReportInput(arms)):
        shows_no_gaps(one)
        assert not one.enough or one.name == "criteria"
