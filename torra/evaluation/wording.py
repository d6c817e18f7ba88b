"""Figures in words, as a trader reads them: +0.10 R, 1,600 trades, 0.21 to 0.48.

Pure functions. A minus is the true one (U+2212), as on every page. None is "not known" everywhere,
never a NaN and never an empty cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from torra.evaluation.intervals import wilson

UNKNOWN: Final = "not known"
MINUS: Final = "\N{MINUS SIGN}"


class Bounded(Protocol):
    """What has an interval, or None at both ends: an Interval, a Mean, an Estimate."""

    @property
    def low(self) -> float | None:
        """The lower end."""

    @property
    def high(self) -> float | None:
        """The upper end."""


def count(number: int, noun: str) -> str:
    """Return a count with its noun, in the plural where it must be: 1 trade, 1,600 trades."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def signed(value: float | None, digits: int = 2) -> str:
    """Return a number with its sign; 0 has none."""
    if value is None:
        return UNKNOWN
    told = f"{value:+.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"
    return told.replace("-", MINUS)


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share in [0, 1] in per cent."""
    return UNKNOWN if share is None else f"{100 * share:.{digits}f} %"


def span(low: float | None, high: float | None, digits: int = 2) -> str:
    """Return an interval of signed numbers."""
    if low is None or high is None:
        return UNKNOWN
    return f"{signed(low, digits)} to {signed(high, digits)}"


def percent_span(low: float | None, high: float | None) -> str:
    """Return an interval of shares in [0, 1] in per cent."""
    if low is None or high is None:
        return UNKNOWN
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def listed(names: Sequence[str]) -> str:
    """Return names in a row: a, b and c."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def rounded(value: float | None, digits: int) -> float | None:
    """Return a number as a cell shows it; -0.0 is 0.0."""
    return None if value is None else round(value, digits) + 0.0


def percent_cell(share: float | None, digits: int = 0) -> str | None:
    """Return a share in [0, 1] as a cell shows it; None where it is not known."""
    return None if share is None else percent(share, digits)


def interval_cell(one: Bounded | None, digits: int = 2) -> str | None:
    """Return an interval as a cell shows it; None where there is none."""
    return None if one is None or one.low is None else span(one.low, one.high, digits)


def share_cell(hits: int, size: int) -> str | None:
    """Return a share with its interval (Wilson 1927) as a cell shows it; None of nothing."""
    found = wilson(hits, size)
    if found is None:
        return None
    return f"{percent(hits / size)} ({percent_span(found.low, found.high)})"
