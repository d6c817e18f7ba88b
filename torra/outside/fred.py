"""Yields, the dollar and the VIX from FRED's `fredgraph.csv`, a table of a day and a value each.

The file has no promise of shape. It is read by the names of its columns, and what is not the day
(`observation_date`, once `DATE`) and the series is refused as a whole. A value of `.`, or none, is
a day without one. `cosd` names the first day that is wanted; the last is the newest there is.

FRED shows the newest value of each day: the dollar's index is revised, and its history here is that
of today.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import date, datetime
from functools import partial
from typing import Final

from torra.collecting.line import SourceError
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import FRED
from torra.outside.answers import RowCollector, SeriesAnswer
from torra.outside.publisher import Publisher
from torra.outside.releases import fred_known_at

DAYS: Final = frozenset(("observation_date", "DATE"))
MISSING: Final = frozenset(("", "."))
NUMBER: Final = re.compile(r"-?\d{1,9}(\.\d{1,9})?", re.ASCII)
DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class Fred(Publisher):
    """FRED's graphs as tables; a topic is a series."""

    name = "fred"

    def topic_of(self, name: str) -> str | None:
        """Return what to ask for a series; None when it is not FRED's."""
        return name if name in FRED else None

    def _asked(self, topic: str, now: datetime, seconds: float, first: date) -> SeriesAnswer:
        query = {"id": topic, "cosd": first.isoformat()}
        return read(topic, self._reply("fredgraph.csv", query, seconds).content, now)


def read(name: str, body: bytes, now: datetime) -> SeriesAnswer:
    """Return the rows of a table; raises Trouble for what is not the table of this series."""
    try:
        lines = body.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise SourceError(NewsStatus.BROKEN, "the reply is not UTF-8") from None
    columns = [column.strip() for column in _cells(lines[0]) or ()]
    if len(columns) != 2 or not (DAYS & {*columns}) or name not in columns:
        raise SourceError(NewsStatus.BROKEN, f"the reply is not the table of a day and {name}")
    reading = RowCollector("fred", now)
    for where, cells in _rows(lines):
        if cells is None or len(cells) != 2:
            reading.refuse(where, "not two columns")
            continue
        found = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
        value = found.pop(name)
        _take(reading, where, name, found.popitem()[1], value)
    return reading.answer()


def _take(reading: RowCollector, where: str, name: str, text: str, value: str) -> None:
    day = _day(text)
    if day is None:
        reading.refuse(where, f"{text[:30]!a} is no day")
    elif value in MISSING:
        return
    elif not NUMBER.fullmatch(value):
        reading.refuse(where, f"{value[:30]!a} is no value")
    else:
        reading.take(where, day, partial(fred_known_at, name), {name: float(value)})


def _rows(lines: list[str]) -> Iterator[tuple[str, list[str] | None]]:
    for number, line in enumerate(lines[1:], 2):
        if line.strip():
            yield f"line {number}", _cells(line)


def _cells(line: str) -> list[str] | None:
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error:
        return None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if DATE.fullmatch(text) else None
    except ValueError:
        return None
