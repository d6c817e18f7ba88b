"""Small drawings that are read at a glance: candles with what was done on them, a line of money.

Each is given as paths of an SVG, which the page's script can write anew. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

SLOT: Final = 10.0
"""Width of a candle's place."""

BODY: Final = 6.0
WICK: Final = 1.2

TALL: Final = 96.0
"""Height of the candles."""

MARGIN: Final = 12.0
"""Above and below the candles, for marks."""

WIDE: Final = 640.0
HIGH: Final = 180.0
"""Size of a line of money."""


Level = Callable[[float], float]
"""Returns the height at which a price is drawn."""


class GlanceCandle(NamedTuple):
    """One bar, by its prices."""

    open: float
    high: float
    low: float
    close: float


@dataclass(frozen=True, slots=True)
class CandlePaths:
    """Bars that closed higher, those that closed lower, and marks above and below them."""

    up: str = ""
    down: str = ""
    bought: str = ""
    sold: str = ""
    left: str = ""


@dataclass(frozen=True, slots=True)
class MoneyPaths:
    """A line, how far it lay below its highest point before, and where zero is.

    `low` and `high` are the amounts at the drawing's bottom and top, `last` that at the line's end,
    which lies at the height `end`.
    """

    line: str
    fall: str
    zero: float
    low: float
    high: float
    last: float
    end: float


def candles(
    bars: Sequence[GlanceCandle | None],
    bought: Iterable[int] = (),
    sold: Iterable[int] = (),
    left: Iterable[int] = (),
) -> CandlePaths:
    """Return the paths of bars, oldest first; None leaves its place empty.

    `bought`, `sold` and `left` are places of bars at which a position was opened or left.
    """
    known = [bar for bar in bars if bar is not None]
    if not known:
        return CandlePaths()
    low, high = min(bar.low for bar in known), max(bar.high for bar in known)
    room = (high - low) or 1.0

    def level(price: float) -> float:
        return MARGIN + (high - price) / room * TALL

    def marks(places: Iterable[int], shape: Callable[[float, GlanceCandle], str]) -> str:
        known = ((place * SLOT, bars[place]) for place in places)
        return "".join(shape(x, bar) for x, bar in known if bar is not None)

    places = range(len(bars))
    return CandlePaths(
        marks(places, lambda x, bar: _candle(x, bar, level) if bar.close >= bar.open else ""),
        marks(places, lambda x, bar: _candle(x, bar, level) if bar.close < bar.open else ""),
        marks(bought, lambda x, bar: f"M{x + SLOT / 2:.4g} {level(bar.low) + 2:.4g}l5 8h-10z"),
        marks(sold, lambda x, bar: f"M{x + SLOT / 2:.4g} {level(bar.high) - 2:.4g}l5 -8h-10z"),
        marks(left, lambda x, bar: _box(x + 2, level(bar.close) - 3, 6, 6)),
    )


def money_line(values: Sequence[float | None]) -> MoneyPaths | None:
    """Return the paths of a running result, oldest first; None without two known values.

    The drawing begins and ends at the first and last value, known or not; zero is always in it.
    """
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    low, high = min(0.0, *known), max(0.0, *known)
    room = (high - low) or 1.0
    step = WIDE / (len(values) - 1)

    def level(value: float) -> float:
        return round(HIGH - (value - low) / room * HIGH, 1)

    line, falls, peak, pen = [], [], -math.inf, "M"
    path: list[tuple[float, float, float]] = []
    for place, value in enumerate(values):
        if value is None:
            pen = "M"
            falls.append(_fall(path))
            path = []
            continue
        peak = max(peak, value)
        x = round(place * step, 1)
        line.append(f"{pen}{x:g} {level(value):g}")
        path.append((x, level(value), level(peak)))
        pen = "L"
    falls.append(_fall(path))
    last = known[-1]
    return MoneyPaths("".join(line), "".join(falls), level(0.0), low, high, last, level(last))


def _fall(path: Sequence[tuple[float, float, float]]) -> str:
    """Return the area between a line and its highest point before; "" where it never fell."""
    if not any(y > top for _, y, top in path):
        return ""
    there = "L".join(f"{x:g} {top:g}" for x, _, top in path)
    back = "L".join(f"{x:g} {y:g}" for x, y, _ in reversed(path))
    return f"M{there}L{back}Z"


def _candle(x: float, bar: GlanceCandle, level: Level) -> str:
    middle = x + SLOT / 2
    top, bottom = level(max(bar.open, bar.close)), level(min(bar.open, bar.close))
    wick = _box(middle - WICK / 2, level(bar.high), WICK, level(bar.low) - level(bar.high))
    return wick + _box(middle - BODY / 2, top, BODY, max(1.0, bottom - top))


def _box(x: float, y: float, width: float, height: float) -> str:
    return f"M{x:.4g} {y:.4g}h{width:.3g}v{height:.4g}h-{width:.3g}z"
