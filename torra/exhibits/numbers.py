"""Numbers of a report as text: few digits, the same decimals down a column, a true minus.

Numbers to compare stand in one column and get the same number of decimals. A column that spans many
magnitudes gets three significant digits each. The full figures are in the document. An unknown
number is a dash. Pure functions; nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from torra.exhibits import figures

DIGITS: Final = 3
"""Significant digits that a reader compares."""

LEAST_DECIMALS, MOST_DECIMALS = 2, 8
SPREAD: Final = 1e4
"""Ratio of the largest to the smallest number beyond which a column has no common decimals."""

TINY, HUGE = 1e-6, 1e15
"""Smaller and larger numbers are written with a power of ten."""

UNITS: Final = ((1e12, "tn"), (1e9, "bn"), (1e6, "M"))


def short(value: Any) -> str:
    """Write one number with about three significant digits; whole numbers in full."""
    known = figures.number(value)
    if known is None:
        return figures.DASH
    size = abs(known)
    if size and not TINY <= size < HUGE:
        return f"{known:.2e}".replace("-", figures.MINUS)
    if known.is_integer():
        return figures.plain(known, 0)
    return figures.plain(known, _needed([known], _cap(size)))


def column(values: Sequence[Any]) -> list[str]:
    """Write the cells of a column: numbers alike, words as they are, truth as yes and no."""
    # floats only: counts have no decimals to agree on
    measures = [value for value in values if isinstance(value, float) and math.isfinite(value)]
    sizes = [abs(value) for value in measures if value]
    is_wide = bool(sizes) and max(sizes) / min(sizes) > SPREAD
    decimals = _needed(measures, _cap(max(sizes))) if sizes else 0
    return [_cell(value, decimals, is_wide) for value in values]


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return rows as lines of a terminal, the cells of the columns `right` at their right ends."""
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    places = ["><"[at not in right] + str(size) for at, size in enumerate(sizes)]
    return ["  ".join(map(format, row, places)).rstrip() for row in rows]


def tick(value: float, step: float) -> str:
    """Write a number of an axis whose ticks are `step` apart."""
    if not value:
        return "0"
    for unit, sign in UNITS:
        if abs(value) >= unit and step >= unit / 1000:
            return f"{figures.plain(value / unit, _decimals(step / unit))}\u00a0{sign}"
    if step < TINY:
        return f"{value:.3g}".replace("-", figures.MINUS)
    return figures.plain(value, _decimals(step))


def _cell(value: Any, decimals: int, is_wide: bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    known = figures.number(value)
    if known is None:
        return figures.format_any(value)
    if isinstance(value, int):
        return figures.plain(value, 0)  # a count among measures stays one
    text = figures.plain(known, decimals)
    # a small number among large ones must not read as a zero
    vanished = known and not float(text.replace(",", "").replace(figures.MINUS, "-"))
    if vanished:
        return _first_digit(known)
    return short(known) if is_wide or abs(known) >= HUGE else text


def _first_digit(value: float) -> str:
    """Write a number that its column's decimals would make a zero."""
    decimals = -math.floor(math.log10(abs(value)))
    return figures.plain(value, decimals) if decimals <= MOST_DECIMALS else short(value)


def _cap(size: float) -> int:
    """Return the decimals that show DIGITS significant digits of a number of this size."""
    if size >= 1000:
        return 0 if size >= 100_000 else 2
    places = DIGITS - 1 - (math.floor(math.log10(size)) if size else 0)
    return min(MOST_DECIMALS, max(LEAST_DECIMALS, places))


def _needed(values: Iterable[float], cap: int) -> int:
    """Return how many of `cap` decimals are not zeros at the end of every value."""
    written = [f"{value:.{cap}f}".rstrip("0") for value in values] if cap else []
    return max((len(text.partition(".")[2]) for text in written), default=0)


def _decimals(step: float) -> int:
    # 1e-9: log10 of a power of ten may fall a hair below the whole number
    return min(MOST_DECIMALS, max(0, -math.floor(math.log10(step) + 1e-9)))
