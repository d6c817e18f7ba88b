"""Figures in words: signs, spans and what is not known."""

from __future__ import annotations

import pytest

from tests.cases import cases
from torra.evaluation.intervals import Interval, Mean
from torra.evaluation.wording import (
    UNKNOWN,
    interval_cell,
    listed_within,
    percent_cell,
    share_cell,
    signed,
    span,
)


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.104, "+0.10"), (-0.104, "\N{MINUS SIGN}0.10"), (-0.001, "0.00"), (None, UNKNOWN)],
    ids=["above", "below", "nothing", "unknown"],
)
def test_a_minus_is_the_true_one(value: float | None, told: str) -> None:
    assert signed(value) == told


@cases(
    ("most", "told"),
    [(16, "one, two and six"), (15, "one and 2 more"), (13, "3 in all")],
)
def test_names_that_do_not_fit_are_counted(most: int, told: str) -> None:
    assert listed_within(["one", "two", "six"], most) == told


def test_a_span_has_it_at_both_ends() -> None:
    assert span(-0.5, -0.25) == "\N{MINUS SIGN}0.50 to \N{MINUS SIGN}0.25"
    assert span(None, 0.1) == UNKNOWN


def test_a_cell_of_what_is_not_known_is_empty() -> None:
    assert [percent_cell(None), interval_cell(None), interval_cell(Mean(1, 0.5))] == [None] * 3
    assert share_cell(0, 0) is None


def test_a_cell_has_what_the_words_have() -> None:
    assert percent_cell(0.125, 1) == "12.5 %"
    assert interval_cell(Interval(-0.1, 0.3), 1) == "\N{MINUS SIGN}0.1 to +0.3"
    assert share_cell(50, 100) == "50 % (40 to 60 %)"
