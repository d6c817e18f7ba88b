"""The success criteria: met only where that was measured and beyond chance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.cases import cases
from tests.worlds.arm_trades import shows_no_gaps
from tests.worlds.observed import quiet_ticks
from torra.evaluation.criteria import (
    CANNOT_TELL,
    MET,
    NOT_MEASURED,
    NOT_MET,
    Measured,
    Share,
    criteria,
    criteria_exhibit,
    seconds_of,
)
from torra.evaluation.intervals import Interval

ALL = Measured(
    false_agents=Share(100, 400),
    false_single=Share(200, 400),
    seconds=3.2,
    timed=400,
    simulated=False,
    spread=0.03,
    flips=Share(1, 100),
    gated=Share(80, 400),
    gate_worth=0.12,
    gate_interval=Interval(-0.1, 0.3),
    fallbacks=Share(50, 50),
    lost=0,
)


def met(measured, name):
    return {one.name: one.met for one in criteria(measured)}[name]


def test_everything_measured() -> None:
    found = criteria_exhibit(ALL)
    shows_no_gaps(found)
    assert [row[3] for row in found.rows] == [MET] * 5
    assert "worth +0.12 R a veto (\N{MINUS SIGN}0.10 to +0.30)" in found.rows[3][2]
    assert "earn their cost" in found.says


@cases(
    ("name", "change", "told"),
    [
        ("false signals", {"false_agents": Share(45, 100)}, CANNOT_TELL),
        ("false signals", {"false_agents": Share(300, 400)}, NOT_MET),
        ("false signals", {"false_agents": Share(0, 0)}, NOT_MEASURED),
        ("latency", {"seconds": 10.0}, NOT_MET),
        ("latency", {"simulated": True}, CANNOT_TELL),
        ("latency", {"simulated": True, "seconds": 12.0}, NOT_MET),
        ("consistency", {"spread": 0.051}, NOT_MET),
        ("consistency", {"spread": 0.0, "flips": None}, MET),
        ("gate", {"gated": Share(12, 100)}, CANNOT_TELL),
        ("gate", {"gated": Share(4, 400)}, NOT_MET),
        ("gate", {"gated": Share(29, 29)}, CANNOT_TELL),
        ("gate", {"gated": Share(30, 30)}, MET),
        ("fallback", {"fallbacks": Share(49, 50)}, NOT_MET),
        ("fallback", {"lost": 1}, NOT_MET),
        ("fallback", {"lost": None}, CANNOT_TELL),
    ],
)
def test_a_criterion_is_met_only_beyond_doubt(name: str, change: dict[str, Any], told: str) -> None:
    assert met(replace(ALL, **change), name) == told
    shows_no_gaps(criteria_exhibit(replace(ALL, **change)))


def test_the_remark_says_what_the_counts_would_have_to_be() -> None:
    found = criteria(replace(ALL, false_agents=Share(45, 100), false_single=Share(55, 100)))
    assert "these two take about 389 signals each" in found[0].remark
    same = criteria(replace(ALL, false_agents=Share(45, 100), false_single=Share(45, 100)))
    assert "these two shares are equal" in same[0].remark


def test_seconds_are_those_within_which_95_of_100_ticks_were_done() -> None:
    ticks = [replace(t, elapsed_ms=1_000.0 * (n + 1)) for n, t in enumerate(quiet_ticks(100))]
    assert seconds_of(ticks) == 95.0
    assert seconds_of(ticks[:1]) == 1.0
    assert seconds_of([]) is None
