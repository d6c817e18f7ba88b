"""A section of a report has one verdict: its label and its sentence come of the same rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.cases import cases
from tests.evaluation.test_gate_value import by_lot, rng
from tests.evaluation.test_paired import with_worth
from torra.evaluation.calibration import CalibratedWord, Calibration, calibration_exhibit
from torra.evaluation.dependence import Estimate
from torra.evaluation.exhibits import Exhibit
from torra.evaluation.firm.own_horizons import OwnHorizon, _show
from torra.evaluation.gate_value import gate_exhibit, gate_value
from torra.evaluation.information import Coefficient, groups_exhibit, information_exhibit
from torra.evaluation.intervals import Interval, Mean
from torra.evaluation.memory_worth import MemoryWorth, memory_exhibit
from torra.evaluation.paired import flips_exhibit
from torra.evaluation.power import LARGER, PowerSentence, finding, trades_finding
from torra.evaluation.walk_forward import _show as walked

SURE, UNSURE = Estimate(0.2, 0.01, 0.1, 0.3, 0.001), Estimate(0.2, 0.2, -0.1, 0.5, 0.4)
FEW = "which is too few."


def flips(sure: bool) -> Exhibit:
    return flips_exhibit([with_worth([0.5] * (20 if sure else 11) + [-0.5] * (3 if sure else 9))])


def gate(sure: bool) -> Exhibit:
    found = gate_value("full", by_lot(1), rng())
    return gate_exhibit([replace(found, by_lot=1.0, p=0.01 if sure else 0.6)])


def known(sure: bool) -> Coefficient:
    q = 0.01 if sure else 0.6
    return Coefficient("macro", "all", 4, 700, SURE if sure else UNSURE, q=q, group="trend")


def memory(sure: bool) -> Exhibit:
    ends = Interval(0.1, 0.4) if sure else Interval(-0.1, 0.4)
    return memory_exhibit([MemoryWorth("full", 40, (), 0.2, ends)])


def words(sure: bool) -> Exhibit:
    gain = SURE if sure else UNSURE
    one = Calibration("macro", 4, (CalibratedWord("high", 60, 0.9),), 15, 0.1, 0.25, gain)
    return calibration_exhibit([one])


def horizons(sure: bool) -> PowerSentence:
    ends = Interval(0.6, 0.9) if sure else Interval(0.4, 0.9)
    return _show([OwnHorizon("bars_4", 40, 0.7, ends, 0.5, 10)])


def folds(sure: bool) -> PowerSentence:
    low = 0.1 if sure else -0.1
    return walked([], Mean(40, 0.3, low=low, high=0.5), 0.4)


@cases(
    "make",
    [
        flips, gate, memory, words, horizons, folds,
        lambda sure: information_exhibit([known(sure)]),
        lambda sure: groups_exhibit([known(sure)], "regime"),
    ],
    ids=["flips", "gate", "memory", "words", "horizons", "folds", "information", "by group"],
)  # fmt: skip
def test_what_is_beyond_chance_is_not_called_too_few_to_tell(make: Any) -> None:
    sure, unsure = make(True), make(False)
    assert sure.enough and f"{FEW}{LARGER}" in sure.says
    assert not unsure.enough and FEW in unsure.says and LARGER not in unsure.says


@pytest.mark.parametrize("have", [0, 99, 100, 5_000])
@pytest.mark.parametrize("shown", [False, True])
def test_label_and_sentence_are_of_one_rule(have: int, shown: bool) -> None:
    found = finding("A.", 100, have, "tick", "a coefficient", shown=shown)
    few = FEW in found.says and LARGER not in found.says
    assert found.enough == (not few)
    assert found.says.startswith("A. Seeing a coefficient takes about 100 ticks;")
    assert not finding("A.", None, have, "tick", "it").enough
    assert trades_finding("A.", have).enough == (have == 5_000)
