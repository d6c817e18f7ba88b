"""Small drawings that are read at a glance: candles with what was done on them, lines.

Each is given as paths of an SVG. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from torra.exhibits import drawing

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

SPARK_WIDTH: Final = 120.0
SPARK_HEIGHT: Final = 24.0
"""Size of a line of scores."""


class GlanceCandle(NamedTuple):
    """One bar, by its prices."""

    open: float
    high: float
    low: float
    close: float


class CandlePaths(NamedTuple):
    """Bars that closed higher, those that closed lower, and marks above and below them."""

    up: str = ""
    down: str = ""
    bought: str = ""
    sold: str = ""
    left: str = ""


class MoneyPaths(NamedTuple):
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
    present = {at: bar for at, bar in enumerate(bars) if bar is not None}
    if not present:
        return CandlePaths()
    high = max(bar.high for bar in present.values())
    room = (high - min(bar.low for bar in present.values())) or 1.0

    def level(price: float) -> float:
        return MARGIN + (high - price) / room * TALL

    def candle(x: float, bar: GlanceCandle) -> str:
        top, bottom = level(max(bar.open, bar.close)), level(min(bar.open, bar.close))
        wick = _box(x - WICK / 2, level(bar.high), WICK, level(bar.low) - level(bar.high))
        return wick + _box(x - BODY / 2, top, BODY, max(1.0, bottom - top))

    def path(places: Iterable[int], shape: Callable[[float, GlanceCandle], str]) -> str:
        return "".join(shape((at + 0.5) * SLOT, present[at]) for at in places if at in present)

    rising = [at for at, bar in present.items() if bar.close >= bar.open]
    return CandlePaths(
        up=path(rising, candle),
        down=path([at for at in present if at not in rising], candle),
        bought=path(bought, lambda x, bar: f"M{x:.4g} {level(bar.low) + 2:.4g}l5 8h-10z"),
        sold=path(sold, lambda x, bar: f"M{x:.4g} {level(bar.high) - 2:.4g}l5 -8h-10z"),
        left=path(left, lambda x, bar: _box(x - 3, level(bar.close) - 3, 6, 6)),
    )


def _box(x: float, y: float, width: float, height: float) -> str:
    return f"M{x:.4g} {y:.4g}h{width:.3g}v{height:.4g}h-{width:.3g}z"


def line(
    values: Sequence[float | None],
    width: float,
    height: float,
    ends: tuple[float, float] | None = None,
) -> str:
    """Return the path of a line, oldest first, between `ends` or its lowest and highest value.

    A missing value leaves a gap.
    """
    amounts = [value for value in values if value is not None]
    if not amounts:
        return ""
    low, high = ends or (min(amounts), max(amounts))
    # a flat line has no range to be scaled to
    room = (high - low) or 1.0
    step = width / max(1, len(values) - 1)
    return drawing.polyline(
        None if value is None else (at * step, height - (value - low) / room * height)
        for at, value in enumerate(values)
    )


def spark(scores: Sequence[float | None]) -> str:
    """Return the path of a small line of scores, -1 to 1."""
    return line(scores, SPARK_WIDTH, SPARK_HEIGHT, (-1.0, 1.0))


def money_line(values: Sequence[float | None]) -> MoneyPaths | None:
    """Return the paths of a running result, oldest first; None without two known values.

    The drawing begins and ends at the first and last value, known or not; zero is always in it.
    """
    amounts = [value for value in values if value is not None]
    if len(amounts) < 2:
        return None
    low, high = min(0.0, *amounts), max(0.0, *amounts)
    room = (high - low) or 1.0
    step = WIDE / (len(values) - 1)

    def level(value: float) -> float:
        return round(HIGH - (value - low) / room * HIGH, 1)

    peak = -math.inf
    points: list[tuple[float, float, float] | None] = []
    for at, value in enumerate(values):
        if value is not None:
            peak = max(peak, value)
        points.append(None if value is None else (at * step, level(peak), level(value)))
    fell = any(point and point[2] > point[1] for point in points)
    return MoneyPaths(
        line=line(values, WIDE, HIGH, (low, high)),
        fall="".join(drawing.outlines(points)) if fell else "",
        zero=level(0.0),
        low=low,
        high=high,
        last=amounts[-1],
        end=level(amounts[-1]),
    )
