"""Figures in words: signs, spans and what is not known."""

from __future__ import annotations

import pytest

from torra.evaluation.wording import UNKNOWN, signed, span


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.104, "+0.10"), (-0.104, "\N{MINUS SIGN}0.10"), (-0.001, "0.00"), (None, UNKNOWN)],
    ids=["above", "below", "nothing", "unknown"],
)
def test_a_minus_is_the_true_one(value: float | None, told: str) -> None:
    assert signed(value) == told


def test_a_span_has_it_at_both_ends() -> None:
    assert span(-0.5, -0.25) == "\N{MINUS SIGN}0.50 to \N{MINUS SIGN}0.25"
    assert span(None, 0.1) == UNKNOWN
