"""The small drawings: candles with their marks, and the line of a running result."""

from __future__ import annotations

import math
import random
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torra.exhibits import glances
from torra.exhibits.glances import HIGH, WIDE, GlanceCandle

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def boxes(path: str) -> list[tuple[float, float, float, float]]:
    """Return x, y, width and height of each box of a path."""
    found = re.findall(r"M(\S+) (\S+?)h(\S+?)v(\S+?)h-\S+?z", path)
    return [tuple(map(float, one)) for one in found]  # type: ignore[misc]


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.-]+) ([\d.-]+)", path)]


def test_bars_without_a_range_and_places_without_a_bar_draw_nothing_odd() -> None:
    flat = glances.candles([GlanceCandle(2, 2, 2, 2), None])
    assert all(math.isfinite(value) for box in boxes(flat.up) for value in box)
    assert flat.down == ""
    assert glances.candles([None, None], bought=[0]) == glances.CandlePaths()
    assert glances.candles([]) == glances.CandlePaths()


@pytest.mark.parametrize("seed", range(20))
def test_the_line_of_money_is_its_values(seed: int) -> None:
    dice = random.Random(seed)
    values = [None if dice.random() < 0.1 else dice.uniform(-50, 80) for _ in range(60)]
    found = glances.money_line(values)
    assert found is not None
    known = [value for value in values if value is not None]
    assert (found.low, found.high, found.last) == (min(0.0, *known), max(0.0, *known), known[-1])
    drawn = points(found.line)
    assert len(drawn) == len(known)
    assert drawn[-1][0] <= WIDE
    for (_, y), value in zip(drawn, known, strict=True):
        share = (value - found.low) / (found.high - found.low)
        assert y == pytest.approx(HIGH * (1 - share), abs=0.06)
    assert found.end == drawn[-1][1]
    assert found.zero == pytest.approx(HIGH * found.high / (found.high - found.low), abs=0.06)
    # the area below the highest point before: its upper edge never falls
    for area in found.fall.split("z"):
        upper = points(area)[: len(points(area)) // 2]
        assert all(later[1] <= before[1] for before, later in pairwise(upper))


@given(st.lists(st.floats(-1, 1) | st.none(), max_size=60))
def test_a_small_line_shows_every_known_value_and_leaves_gaps(values: list[Any]) -> None:
    path = glances.spark(values)
    assert len(re.findall(r"[ML]", path)) == sum(value is not None for value in values)
    gaps = sum(
        value is not None and (index == 0 or values[index - 1] is None)
        for index, value in enumerate(values)
    )
    assert path.count("M") == gaps
    for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path):
        assert 0 <= float(x) <= glances.SPARK_WIDTH
        assert 0 <= float(y) <= glances.SPARK_HEIGHT


def test_a_line_uses_its_whole_height() -> None:
    assert glances.line([1.0, 3.0, 2.0], 100, 50) == "M0.0 50.0L50.0 0.0L100.0 25.0"
    assert glances.line([], 100, 50) == glances.line([None], 100, 50) == ""
    assert glances.line([2.0, 2.0], 100, 50) == "M0.0 50.0L100.0 50.0"


def test_a_line_needs_two_values_and_one_that_never_fell_has_no_area() -> None:
    assert glances.money_line([]) is None
    assert glances.money_line([None, 4.0]) is None
    rising = glances.money_line([0.0, 1.0, 1.0, 3.0])
    assert rising is not None
    assert rising.fall == ""
    even = glances.money_line([0.0, 0.0])
    assert even is not None
    assert all(NUMBER.fullmatch(part) for part in re.findall(r"[\d.e+-]+", even.line))
