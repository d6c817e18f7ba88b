"""Yields, the dollar and the VIX from FRED's `fredgraph.csv`, a table of a day and a value each.

The file has no promise of shape. It is read by the names of its columns. A file that has other
columns than the day (`observation_date`, once `DATE`) and the series is refused as a whole. A value
of `.`, or an empty one, is a day without a value. `cosd` names the first day that is wanted; the
last is the newest there is.

FRED shows the newest value of each day: the dollar's index is revised, and its history here is that
of today.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from datetime import date, datetime
from functools import partial
from typing import Final

from torra.collecting.line import SourceError
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import FRED
from torra.outside.answers import SeriesAnswer, day_of, series_answer
from torra.outside.releases import fred_known_at

TOPICS: Final = {name: name for name in FRED}
"""Series -> its topic."""

DAYS: Final = {"observation_date", "DATE"}
MISSING: Final = ("", ".")
NUMBER: Final = re.compile(r"-?\d{1,9}(\.\d{1,9})?", re.ASCII)


def request(topic: str, first: date) -> tuple[str, Mapping[str, str]]:
    """Return path and query that ask for a series from a day on."""
    return "fredgraph.csv", {"id": topic, "cosd": first.isoformat()}


def read(name: str, body: bytes, now: datetime) -> SeriesAnswer:
    """Return the rows of a table; raises SourceError for another table than of this series."""
    try:
        first, *lines = body.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise SourceError(NewsStatus.BROKEN, "the reply is not UTF-8") from None
    columns = _cells(first)
    if len(columns) != 2 or name not in columns or not DAYS & {*columns}:
        raise SourceError(NewsStatus.BROKEN, f"the reply is not the table of a day and {name}")
    days = (
        (f"line {number}", partial(_row, name, columns, line))
        for number, line in enumerate(lines, 2)
        if line.strip()
    )
    return series_answer("fred", now, days, partial(fred_known_at, name))


def _row(name: str, columns: list[str], line: str) -> tuple[date, dict[str, float]]:
    cells = _cells(line)
    if len(cells) != 2:
        raise ValueError("not two columns")
    value = cells.pop(columns.index(name))
    day = day_of(cells[0], ascii(cells[0][:30]))
    if value in MISSING:
        return day, {}
    if not NUMBER.fullmatch(value):
        raise ValueError(f"{value[:30]!a} is no value")
    return day, {name: float(value)}


def _cells(line: str) -> list[str]:
    """Return the cells of one line: a stray quotation mark swallows no line after it."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True), [])]
    except csv.Error:
        return []
