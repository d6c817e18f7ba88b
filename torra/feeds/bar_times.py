"""Reads the times of a file of bars in the forms in which the world writes them.

A column of times has one form, found by its first cell: seconds, milliseconds, microseconds or
nanoseconds since 1970, a date with the year first, or last, or with a month's name, each with or
without a time of day, AM or PM, and a zone. Nothing is guessed: a date such as 03/04/2026 is read
only where another date of the column tells which number is the day.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

TIME_OF_DAY: Final = re.compile(r"\d{1,2}:\d\d(:\d\d(\.0+)?)?( ?[AaPp][Mm])?|\d{4}|\d{6}")
"""A cell beside that of the date."""

_REST: Final = (
    r"(?:(?:[T_]| +|(?<=\d{8}))(?P<H>\d\d?):?(?P<M>\d\d)(?::?(?P<S>\d\d)(?:[.,]0+)?)?)?"
    r"(?: ?(?P<half>[AaPp][Mm]))?"
    r"(?: *(?P<zone>Z|UTC|(?:UTC|GMT)?[+-]\d\d:?\d\d|GMT))?"
)
_MONTH: Final = r"(?P<month>[A-Za-z]{3})[a-z]{0,6}\.?"
ISO, DOTS, COMPACT, DAY_FIRST, EITHER, NAMED = (
    "ISO dates", "dates with dots", "compact dates", "dates with the day first",
    "dates with slashes", "dates with names of months",
)  # fmt: skip
FORMS: Final = {
    ISO: r"(?P<y>\d{4})-(?P<m>\d\d?)-(?P<d>\d\d?)",
    DOTS: r"(?P<y>\d{4})[./](?P<m>\d\d?)[./](?P<d>\d\d?)",
    COMPACT: r"(?P<y>\d{4})(?P<m>\d\d)(?P<d>\d\d)",
    DAY_FIRST: r"(?P<d>\d\d?)\.(?P<m>\d\d?)\.(?P<y>\d{4})",
    EITHER: r"(?P<d>\d\d?)[/-](?P<m>\d\d?)[/-](?P<y>\d{4})",
    NAMED: r"(?P<d>\d\d?)[ -]" + _MONTH + r"[ -](?P<y>\d{4})",
    f"{NAMED} ": _MONTH + r" (?P<d>\d\d?),? (?P<y>\d{4})",
}
"""Dates by the name of their form."""

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
EPOCH: Final = re.compile(r"(\d{9,10}|\d{13}|\d{16}|\d{19})(\.0+)?")
"""Seconds to nanoseconds since 1970; 12 and 14 digits are a date and a time of day."""

UNITS: Final = ("seconds", "milliseconds", "microseconds", "nanoseconds")
MICROSECONDS: Final = (1_000_000, 1_000, 1, 1)
PER_YEAR: Final = tuple(31_556_952.0 * 1_000**at for at in range(len(UNITS)))
"""Units since 1970, told by the number of digits, and how many of them a year has."""

SHOWN: Final = 40
"""Characters of a cell that an error shows."""

YEARS: Final = (1970, 2200)
"""First and last year of a bar."""

EXAMPLE: Final = "write it like 2024.01.31 13:45"
NO_BAR: Final = "the line has no bar: remove empty and padded lines"
"""Remedies of a cell that is no time, and of an empty one."""


class BadTime(ValueError):
    """A row whose time cannot be read: `row` counts from 0."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row = row


@dataclass(frozen=True, slots=True)
class BarTimes:
    """Times as they stand in a file, without their zones, and the form that they have.

    `zones` are as "+03:00" or "Z", "" where there is none. `epoch` says that they count from 1970.
    """

    wall: pd.DatetimeIndex
    zones: pd.Series[str]
    form: str
    epoch: bool = False


def parse(cells: pd.Series[str]) -> BarTimes:
    """Return the times of a column; raises BadTime, which names the first row that is none."""
    text = cells.str.strip()
    first = str(text.iloc[0])
    return _since_1970(text) if EPOCH.fullmatch(first) else _dates(text, first)


def _since_1970(text: pd.Series[str]) -> BarTimes:
    _refuse(~text.str.fullmatch(EPOCH.pattern), text)
    whole = text.str.partition(".")[0]
    # Of each row: a history that was put together may change its unit.
    digits = whole.str.len().to_numpy()
    unit = np.searchsorted([10, 13, 16], digits)
    _check_years(1970 + whole.astype(float) / np.take(PER_YEAR, unit), text)
    count = whole.astype(np.int64).to_numpy()
    wall = np.where(unit == len(UNITS) - 1, count // 1_000, count * np.take(MICROSECONDS, unit))
    index = pd.DatetimeIndex(wall.view("M8[us]"))
    form = f"Unix {UNITS[unit[0]]}"
    return BarTimes(index, pd.Series("", index=text.index), form, epoch=True)


def _dates(text: pd.Series[str], first: str) -> BarTimes:
    forms = (name for name, date in FORMS.items() if re.fullmatch(date + _REST, first))
    form = next(forms, ISO)
    parts = text.str.extract(f"^{FORMS[form]}{_REST}$")
    _refuse(parts["y"].isna(), text)
    if form == EITHER:
        parts = _day_first(parts, text)
    month = parts["m"] if "m" in parts else parts["month"].str.lower().map(_MONTH_NUMBERS)
    hour = pd.to_numeric(parts["H"]).fillna(0)
    half = parts["half"].str.lower()
    hour = hour.where(half.isna(), hour % 12 + 12 * (half == "pm"))
    columns = {"year": parts["y"], "month": month, "day": parts["d"], "hour": hour}
    columns |= {"minute": parts["M"].fillna("0"), "second": parts["S"].fillna("0")}
    numbers = pd.DataFrame({name: pd.to_numeric(column) for name, column in columns.items()})
    _refuse(numbers["hour"] > 23, text)
    _check_years(numbers["year"].astype(float), text)
    stamps = pd.to_datetime(numbers, errors="coerce")
    _refuse(stamps.isna(), text)
    return BarTimes(pd.DatetimeIndex(stamps).as_unit("us"), _zones(parts["zone"]), form.strip())


_MONTH_NUMBERS: Final = {name: at for at, name in enumerate(MONTHS, start=1)}


def _day_first(parts: pd.DataFrame, text: pd.Series[str]) -> pd.DataFrame:
    """Return dates with slashes whose day and month are told apart by one beyond 12."""
    one, other = (pd.to_numeric(parts[name]) for name in ("d", "m"))
    if (one > 12).any() == (other > 12).any():
        row = int((one > 12).to_numpy().argmax())
        raise BadTime(row, f"{text.iloc[row]!r} may have its day or its month first; {EXAMPLE}")
    return parts if (one > 12).any() else parts.rename(columns={"d": "m", "m": "d"})


def _check_years(years: pd.Series[float], text: pd.Series[str]) -> None:
    beyond = ((years < YEARS[0]) | (years >= YEARS[1] + 1)).to_numpy()
    if beyond.any():
        row = int(beyond.argmax())
        raise BadTime(
            row,
            f"{text.iloc[row][:SHOWN]!r} is of the year {int(years.iloc[row])}, and bars are of "
            f"{YEARS[0]} to {YEARS[1]}; mend or remove the line",
        )


def _zones(column: pd.Series[str]) -> pd.Series[str]:
    """Return zones as "+03:00", "Z" or ""."""
    plain = column.fillna("").str.replace(r"^(?:UTC|GMT)(?=[+-])", "", regex=True)
    plain = plain.replace({"UTC": "Z", "GMT": "Z"})
    return plain.str.replace(r"^([+-]\d\d):?(\d\d)$", r"\1:\2", regex=True)


def _refuse(broken: npt.ArrayLike, text: pd.Series[str]) -> None:
    flags = np.asarray(broken, dtype=bool)
    if flags.any():
        row = int(flags.argmax())
        cell = str(text.iloc[row])[:SHOWN]
        raise BadTime(row, f"{cell!r} is not a time; {EXAMPLE if cell else NO_BAR}")
