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

from torra.evidence.expert_bars import Array, ExpertBars

PATTERN_BARS: Final = 120
APART_BARS: Final = 10
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


class Turns(NamedTuple):
    """Bars with the numbers of their swing highs and lows, oldest first."""

    bars: ExpertBars
    highs: list[int]
    lows: list[int]

    def recent(self, *bars: int) -> bool:
        """Tell whether some bars lie within the length of a pattern."""
        return self.bars.last - min(bars) <= PATTERN_BARS


def find(bars: ExpertBars) -> dict[str, ChartPattern]:
    """Return the patterns of some bars by name; none in a market that does not move."""
    if not bars.atr > 0.0:
        return {}
    turned = bars.upside_down()
    highs, lows = bars.peaks(), turned.peaks()
    upright = _upward(Turns(bars, highs, lows))
    mirrored = _upward(Turns(turned, lows, highs))
    return upright | {MIRROR[name]: one._replace(line=-one.line) for name, one in mirrored.items()}


def _upward(turns: Turns) -> dict[str, ChartPattern]:
    found = {name: rule(turns) for name, rule in UPWARD.items()}
    return {name: one for name, one in found.items() if one is not None}


def _double_top(turns: Turns) -> ChartPattern | None:
    bars = turns.bars
    if len(turns.highs) < 2:
        return None
    first, last = turns.highs[-2:]
    one, other = float(bars.high[first]), float(bars.high[last])
    line = float(bars.low[first : last + 1].min())
    before = bars.low[max(0, first - PATTERN_BARS // 2) : first]
    fits = (
        turns.recent(first)
        and last - first >= APART_BARS
        and abs(one - other) <= EQUAL_ATR * bars.atr
        and min(one, other) - line >= HEIGHT_ATR * bars.atr
        and len(before) > 0
        and before.min() < line
        and _kept_below(bars, last, max(one, other))
    )
    return ChartPattern(line, last, bool(bars.close[-1] < line)) if fits else None


def _head_shoulders(turns: Turns) -> ChartPattern | None:
    bars = turns.bars
    if len(turns.highs) < 3:
        return None
    first, head, last = turns.highs[-3:]
    left, top, right = (float(bars.high[at]) for at in (first, head, last))
    low = first + int(bars.low[first:head].argmin())
    # From the head on, so that the two are never one bar.
    later = head + int(bars.low[head : last + 1].argmin())
    line = _through(bars.low, low, later, bars.last)
    fits = (
        turns.recent(first)
        and top - max(left, right) >= EQUAL_ATR * bars.atr
        and abs(left - right) <= SHOULDERS_ATR * bars.atr
        and min(left, right) - max(bars.low[low], bars.low[later]) >= EQUAL_ATR * bars.atr
        and _kept_below(bars, last, right)
    )
    return ChartPattern(line, last, bool(bars.close[-1] < line)) if fits else None


def _bull_flag(turns: Turns) -> ChartPattern | None:
    bars = turns.bars
    if not turns.highs or bars.last - turns.highs[-1] > FLAG_BARS:
        return None
    last = turns.highs[-1]
    top = float(bars.high[last])
    pole = top - float(bars.low[max(0, last - POLE_BARS) : last + 1].min())
    fits = (
        pole >= POLE_ATR * bars.atr
        and top - bars.low[last + 1 :].min() <= PULLBACK * pole
        and _kept_below(bars, last, top)
    )
    return ChartPattern(top, last, bool(bars.close[-1] > top)) if fits else None


def _ascending_triangle(turns: Turns) -> ChartPattern | None:
    bars = turns.bars
    if len(turns.highs) < 2 or len(turns.lows) < 2:
        return None
    (first, last), (low, later) = turns.highs[-2:], turns.lows[-2:]
    line = float(max(bars.high[first], bars.high[last]))
    support = float(bars.low[later])
    fits = (
        turns.recent(first, low)
        and _in_turn(first, last, low, later)
        and abs(bars.high[first] - bars.high[last]) <= EQUAL_ATR * bars.atr
        and support - bars.low[low] >= EQUAL_ATR * bars.atr
        and line - bars.low[low] >= HEIGHT_ATR * bars.atr
        and support - bars.low[later + 1 :].min() <= EQUAL_ATR * bars.atr
        and _kept_below(bars, last, line)
    )
    return ChartPattern(line, max(last, later), bool(bars.close[-1] > line)) if fits else None


def _rising_wedge(turns: Turns) -> ChartPattern | None:
    bars = turns.bars
    if len(turns.highs) < 2 or len(turns.lows) < 2:
        return None
    (first, last), (low, later) = turns.highs[-2:], turns.lows[-2:]
    upper, lower = (
        [_through(*line, at) for at in (min(first, low), bars.last)]
        for line in ((bars.high, first, last), (bars.low, low, later))
    )
    fits = (
        turns.recent(first, low)
        and _in_turn(first, last, low, later)
        and bars.high[last] - bars.high[first] >= RISE_ATR * bars.atr
        and bars.low[later] - bars.low[low] >= RISE_ATR * bars.atr
        and 0.0 < upper[1] - lower[1] <= NARROWED * (upper[0] - lower[0])
        and abs(bars.close[-1] - lower[1]) <= upper[0] - lower[0]
        and bars.high[-1] <= upper[1] + EQUAL_ATR * bars.atr
    )
    done = bool(bars.close[-1] < lower[1])
    return ChartPattern(lower[1], max(last, later), done) if fits else None


def _kept_below(bars: ExpertBars, last: int, level: float) -> bool:
    """Tell whether no bar between a swing and the deciding one went beyond a level."""
    between = bars.high[last + 1 : -1]
    return bool(between.max(initial=level) <= level + EQUAL_ATR * bars.atr)


def _in_turn(first: int, last: int, low: int, later: int) -> bool:
    """Tell whether two highs and two lows follow each other in turn."""
    return first < low < last < later or low < first < later < last


def _through(values: Array, first: int, last: int, at: int) -> float:
    """Return a line through two values, at a bar."""
    one, other = float(values[first]), float(values[last])
    return other + (other - one) / (last - first) * (at - last)


UPWARD: Final[Mapping[str, Callable[[Turns], ChartPattern | None]]] = {
    "double_top": _double_top,
    "head_shoulders": _head_shoulders,
    "bull_flag": _bull_flag,
    "ascending_triangle": _ascending_triangle,
    "rising_wedge": _rising_wedge,
}
"""The rules of the patterns that are looked for upright."""
