"""What similar trades came to has words for people, and leans to the side of those trades."""

from __future__ import annotations

import pytest

from agents.contracts import Feature
from agents.features import sides

MEAN = "lessons.mean_r"


@pytest.mark.parametrize(
    ("side", "mean", "leans"),
    [
        ("LONG", 0.4, (1,)), ("LONG", -0.4, (-1,)), ("SHORT", 0.4, (-1,)), ("SHORT", -0.4, (1,)),
        ("LONG", 0.0, ()), ("LONG", None, ()),
    ],
)  # fmt: skip
def test_a_mean_leans_to_the_side_of_its_trades(
    side: str, mean: float | None, leans: tuple[int, ...]
) -> None:
    told = {"lessons.side": Feature("lessons.side", side), MEAN: Feature(MEAN, mean, "R")}
    assert sides(MEAN, told) == leans


def test_a_count_and_a_share_have_no_side() -> None:
    values: dict[str, float | str] = {
        "lessons.side": "LONG",
        "lessons.similar": 20.0,
        "lessons.win_share": 0.9,
    }
    told = {name: Feature(name, value) for name, value in values.items()}
    for name in told:
        assert sides(name, told) == ()
