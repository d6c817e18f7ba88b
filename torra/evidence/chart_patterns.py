"""Finds chart patterns in confirmed swings, each by a rule, and whether a close has completed it.

Half of the patterns are looked for here, in `UPWARD`; the other half are the same upside down
(`MIRROR`). Lengths are in bars, heights in ATR of the deciding bar:

    double_top          two newest highs within 0.5 of each other, 10 bars apart or more, 1.5 above
                        the lowest low between them, reached from below it; completed below that low
    head_shoulders      of the three newest highs the middle one 0.5 above the others, which lie
                        within 1 of each other; completed below the line through the lows between
    bull_flag           the newest high ends a rise of 4 or more within 20 bars; 5 to 25 bars since
                        gave back half of it at most; completed above the high
    ascending_triangle  two newest highs within 0.5 of each other, the two newest lows rise by 0.5
                        or more; completed above the highs
    rising_wedge        highs and lows rise by 0.25 or more, and the lines through them have come
                        together by 30 % or more; completed below the line of the lows

All of a pattern lies within 120 bars. One that price has left the wrong way, by 0.5 ATR, is none.
Pure; nothing raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from torra.evidence.expert_bars import Array, ExpertBars

PATTERN_BARS: Final = 120
LEAST_BARS: Final = 10
POLE_BARS: Final = 20
FLAG_BARS: Final = 25
EQUAL_ATR: Final = 0.5
"""Up to this far apart two swings count as equal; beyond it a line counts as left."""

SHOULDERS_ATR: Final = 1.0
HEIGHT_ATR: Final = 1.5
POLE_ATR: Final = 4.0
RISE_ATR: Final = 0.25
PULLBACK: Final = 0.5
NARROWED: Final = 0.7
"""Most width of a wedge beside the width at its beginning."""

MIRROR: Final[Mapping[str, str]] = {
    "double_top": "double_bottom",
    "head_shoulders": "inverse_head_shoulders",
    "bull_flag": "bear_flag",
    "ascending_triangle": "descending_triangle",
    "rising_wedge": "falling_wedge",
}
"""What each pattern is called upside down."""

NECKED: Final = frozenset(
    ("double_top", "double_bottom", "head_shoulders", "inverse_head_shoulders")
)
"""Patterns whose line is a neckline."""


class ChartPattern(NamedTuple):
    """A pattern: the price of its line at the deciding bar, its last swing, and whether it is done.

    `last` is the number of that swing's bar.
    """

    line: float
    last: int
    done: bool


Swings = list[int]


def find(bars: ExpertBars) -> dict[str, ChartPattern]:
    """Return the patterns of some bars by name; none in a market that does not move."""
    if not bars.atr > 0.0:
        return {}
    turned = bars.upside_down()
    highs, lows = bars.peaks(), turned.peaks()
    mirrored = _upward(turned, lows, highs)
    return _upward(bars, highs, lows) | {
        MIRROR[name]: pattern._replace(line=-pattern.line) for name, pattern in mirrored.items()
    }


def _upward(bars: ExpertBars, highs: Swings, lows: Swings) -> dict[str, ChartPattern]:
    patterns, close = {}, bars.close[-1]
    for name, (rule, tops, floors, within, below) in UPWARD.items():
        above, under = highs[-tops:], lows[len(lows) - floors :]
        swings = sorted([*above, *under])
        if len(highs) < tops or len(lows) < floors or bars.last - swings[0] > within:
            continue
        line = rule(bars, above, under)
        if line is not None:
            done = bool(close < line if below else close > line)
            patterns[name] = ChartPattern(line, swings[-1], done)
    return patterns


def _double_top(bars: ExpertBars, highs: Swings, _: Swings) -> float | None:
    first, last = highs
    tops = bars.high[highs]
    line = float(bars.low[first : last + 1].min())
    before = bars.low[max(0, first - PATTERN_BARS // 2) : first]
    fits = (
        last - first >= LEAST_BARS
        and np.ptp(tops) <= EQUAL_ATR * bars.atr
        and tops.min() - line >= HEIGHT_ATR * bars.atr
        and len(before) > 0
        and before.min() < line
        and _kept_below(bars, last, tops.max())
    )
    return line if fits else None


def _head_shoulders(bars: ExpertBars, highs: Swings, _: Swings) -> float | None:
    first, head, last = highs
    left, top, right = bars.high[highs]
    low = first + int(bars.low[first:head].argmin())
    # From the head on, so that the two are never one bar.
    later = head + int(bars.low[head : last + 1].argmin())
    fits = (
        top - max(left, right) >= EQUAL_ATR * bars.atr
        and abs(left - right) <= SHOULDERS_ATR * bars.atr
        and min(left, right) - max(bars.low[low], bars.low[later]) >= EQUAL_ATR * bars.atr
        and _kept_below(bars, last, right)
    )
    return _through(bars.low, low, later, bars.last) if fits else None


def _bull_flag(bars: ExpertBars, highs: Swings, _: Swings) -> float | None:
    last = highs[0]
    top = float(bars.high[last])
    pole = top - float(bars.low[max(0, last - POLE_BARS) : last + 1].min())
    fits = (
        pole >= POLE_ATR * bars.atr
        and top - bars.low[last + 1 :].min() <= PULLBACK * pole
        and _kept_below(bars, last, top)
    )
    return top if fits else None


def _ascending_triangle(bars: ExpertBars, highs: Swings, lows: Swings) -> float | None:
    (first, last), (low, later) = highs, lows
    tops, line = bars.high[highs], float(bars.high[highs].max())
    support = bars.low[later]
    fits = (
        _in_turn(first, last, low, later)
        and np.ptp(tops) <= EQUAL_ATR * bars.atr
        and support - bars.low[low] >= EQUAL_ATR * bars.atr
        and line - bars.low[low] >= HEIGHT_ATR * bars.atr
        and support - bars.low[later + 1 :].min() <= EQUAL_ATR * bars.atr
        and _kept_below(bars, last, line)
    )
    return line if fits else None


def _rising_wedge(bars: ExpertBars, highs: Swings, lows: Swings) -> float | None:
    (first, last), (low, later) = highs, lows
    begin = min(first, low)
    wide = _through(bars.high, first, last, begin) - _through(bars.low, low, later, begin)
    roof = _through(bars.high, first, last, bars.last)
    floor = _through(bars.low, low, later, bars.last)
    fits = (
        _in_turn(first, last, low, later)
        and bars.high[last] - bars.high[first] >= RISE_ATR * bars.atr
        and bars.low[later] - bars.low[low] >= RISE_ATR * bars.atr
        and 0.0 < roof - floor <= NARROWED * wide
        and abs(bars.close[-1] - floor) <= wide
        and bars.high[-1] <= roof + EQUAL_ATR * bars.atr
    )
    return floor if fits else None


def _kept_below(bars: ExpertBars, last: int, level: float) -> bool:
    """Tell whether no bar between a swing and the deciding one went beyond a level."""
    between = bars.high[last + 1 : -1]
    return bool(between.max(initial=level) <= level + EQUAL_ATR * bars.atr)


def _in_turn(first: int, last: int, low: int, later: int) -> bool:
    """Tell whether two highs and two lows follow each other in turn."""
    return first < low < last < later or low < first < later < last


def _through(values: Array, first: int, last: int, at: int) -> float:
    """Return a line through two values, at a bar."""
    begin, end = float(values[first]), float(values[last])
    return end + (end - begin) / (last - first) * (at - last)


Rule = Callable[[ExpertBars, Swings, Swings], float | None]
UPWARD: Final[Mapping[str, tuple[Rule, int, int, int, bool]]] = {
    "double_top": (_double_top, 2, 0, PATTERN_BARS, True),
    "head_shoulders": (_head_shoulders, 3, 0, PATTERN_BARS, True),
    "bull_flag": (_bull_flag, 1, 0, FLAG_BARS, False),
    "ascending_triangle": (_ascending_triangle, 2, 2, PATTERN_BARS, False),
    "rising_wedge": (_rising_wedge, 2, 2, PATTERN_BARS, True),
}
"""The patterns that are looked for upright.

A rule takes the bars and the newest highs and lows, and returns the line's price at the deciding
bar, None for no pattern. After it stand how many highs and lows it takes, within how many bars they
lie, and whether a close below its line completes it.
"""
