"""Each pattern is found in bars made to its rule, and not in bars that miss one part of it."""

from __future__ import annotations

import pytest

from agents.contracts import PATTERNS
from tests.worlds.expert_paths import REACH, bars, path, with_close
from torra.evidence.chart_patterns import MIRROR, UPWARD, find

MADE: dict[str, tuple[float, ...]] = {
    "double_top": (100.0, 110.0, 106.0, 110.2, 107.0),
    "head_shoulders": (100.0, 110.0, 106.0, 114.0, 106.5, 110.5, 108.0),
    "bull_flag": (100.0, 112.0, 109.0),
    "ascending_triangle": (104.0, 110.0, 102.0, 110.0, 106.0, 109.0),
    "rising_wedge": (100.0, 110.0, 104.0, 111.5, 108.5, 110.5),
}
"""Turns of each pattern before its line is crossed."""

DONE = dict(zip(MADE, (105.0, 105.0, 113.0, 111.0, 107.5), strict=True))
"""A last close beyond the line of each."""

MISSED: list[tuple[str, tuple[float, ...]]] = [
    ("double_top", (100.0, 110.0, 106.0, 110.7, 107.0)),
    ("double_top", (100.0, 110.0, 109.2, 110.2, 109.5)),
    ("double_top", (108.0, 110.0, 106.0, 110.2, 107.0)),
    ("head_shoulders", (100.0, 110.0, 106.0, 110.4, 106.5, 110.5, 108.0)),
    ("head_shoulders", (100.0, 110.0, 106.0, 114.0, 106.5, 111.5, 108.0)),
    ("bull_flag", (100.0, 103.0, 102.5)),
    ("bull_flag", (100.0, 112.0, 104.0)),
    ("ascending_triangle", (104.0, 110.0, 102.0, 111.0, 106.0, 109.0)),
    ("ascending_triangle", (104.0, 110.0, 106.0, 110.0, 106.2, 109.0)),
    ("rising_wedge", (100.0, 110.0, 104.0, 116.0, 108.5, 110.5)),
    ("rising_wedge", (100.0, 110.0, 104.0, 111.5, 103.5, 110.5)),
]
"""Turns that miss a part of the rule."""


def test_every_pattern_that_may_be_named_has_a_rule() -> None:
    assert {*UPWARD, *MIRROR.values()} == set(PATTERNS)
    assert set(MIRROR) == set(UPWARD) == set(MADE)


@pytest.mark.parametrize("name", MADE)
def test_a_pattern_is_found_upright_and_upside_down_and_done_by_a_close(name: str) -> None:
    made = bars(path(*MADE[name]))
    later = with_close(made, DONE[name])
    for upright, turned in ((name, False), (MIRROR[name], True)):
        before, after = (one.upside_down() if turned else one for one in (made, later))
        assert not find(before)[upright].done
        assert find(after)[upright].done
    line, other = find(made)[name].line, find(made.upside_down())[MIRROR[name]].line
    assert line == -other


@pytest.mark.parametrize(("name", "turns"), MISSED)
def test_a_part_that_is_missing_leaves_no_pattern(name: str, turns: tuple[float, ...]) -> None:
    assert name not in find(bars(path(*turns)))


def test_the_lines_are_those_of_the_rule() -> None:
    lines = {name: find(bars(path(*turns)))[name].line for name, turns in MADE.items()}
    assert lines["double_top"] == 106.0 - REACH
    assert lines["bull_flag"] == 112.0 + REACH
    assert lines["ascending_triangle"] == 110.0 + REACH
    # from 106 over 106.5, 24 bars on and 36 ago
    assert lines["head_shoulders"] == pytest.approx(106.5 - REACH + 24 * 0.5 / 24)
    assert lines["rising_wedge"] == pytest.approx(108.5 - REACH + 12 * 4.5 / 24)


@pytest.mark.parametrize("name", ["double_top", "head_shoulders", "bull_flag"])
def test_what_price_has_left_the_wrong_way_is_no_pattern(name: str) -> None:
    made = bars(path(*MADE[name]))
    left = with_close(with_close(made, made.high.max() + 2.0), made.close[-1])
    assert name in find(made) and name not in find(left)


def test_tops_less_than_ten_bars_apart_are_one_top() -> None:
    rise = path(100.0, 110.0)
    for leg, found in ((5, True), (4, False)):
        made = bars(rise + path(110.0, 106.0, 110.2, leg=leg)[1:] + path(110.2, 107.0)[1:])
        assert ("double_top" in find(made)) is found


@pytest.mark.parametrize(
    ("name", "close", "bars_held"), [("bull_flag", 109.0, 25), ("double_top", 107.0, 120)]
)
def test_a_pattern_is_forgotten_after_its_bars(name: str, close: float, bars_held: int) -> None:
    made = bars(path(*MADE[name]))
    age = made.last - made.peaks()[-len(MADE[name]) // 2 + 1 :][0]
    for bar in range(age + 1, bars_held + 2):
        made = with_close(made, close)
        assert (name in find(made)) is (bar <= bars_held)


def test_highs_and_lows_of_a_triangle_follow_each_other_in_turn() -> None:
    """Both lows come after both highs here, with no swing high between them."""
    fall = path(110.0, 102.0, leg=4)[1:] + path(102.0, 104.0, 102.6, leg=3)[1:]
    made = bars(path(104.0, 110.0, 106.0, 110.0) + fall + path(102.6, 107.0)[1:])
    assert made.upside_down().peaks()[-2] > made.peaks()[-1]
    assert "ascending_triangle" not in find(made)


@pytest.mark.parametrize(
    ("name", "close"),
    [("ascending_triangle", 105.0), ("rising_wedge", 115.0), ("rising_wedge", 100.0)],
)
def test_a_triangle_or_a_wedge_that_price_has_left_is_none(name: str, close: float) -> None:
    made = bars(path(*MADE[name]))
    assert name in find(made) and name not in find(with_close(made, close))
