"""Reads calendars of events as public sources write them: one table of shapes, told by columns.

A shape is taken when the file has all of its columns; others may stand beside them. What the file
is, which clock its times have and what was left out stands in the answer. Rows without a time of
day ("All Day", "Tentative"), without an impact (holidays) and of countries whose currency is not
known are no events that a window could stand around: they are left out and counted. A time without
a zone needs a clock from the user. Anything else that cannot be read raises ConfigError with the
row and its value, and nothing is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final

from agents.features import rows_of
from torra.clock import EPOCH
from torra.errors import ConfigError
from torra.evidence.scheduled_events import Impact, ScheduledEvent
from torra.market.broker_clock import KNOWN, ServerClock
from torra.news.event_file import MAX_NAME, CalendarRow, calendar_rows, quote
from torra.trading_terms import CURRENCY

HERE: Final = Path(__file__)
COUNTRIES: Final = HERE.with_name("countries.csv")
HOUR_ONLY: Final = ":"
"""What a cell with a time of day has, and "All Day", "Tentative" and "Day 1" have not."""

NO_TIME: Final = "no time of day, such as All Day"
NO_IMPACT: Final = "no impact, such as a holiday"
NO_CURRENCY: Final = "a country whose currency is not known"

COLUMNS: Final = ("moment", "currency", "impact", "title", "beside")
IMPACTS: Final[Mapping[str, Impact | None]] = {
    "high": "high", "medium": "medium", "moderate": "medium", "low": "low",
    "3": "high", "2": "medium", "1": "low",
    "0": None, "": None, "none": None, "holiday": None, "non-economic": None,
}  # fmt: skip
"""The words of impact, in small letters; None for a row that is no event."""


Shape = Mapping[str, str]
"""A line of calendar_shapes.csv, by its columns: how one source writes events.

The columns of `moment` are one text with a space between; of `currency` the first that names one
counts. `forms` are those of a time that is not ISO 8601, `clock` the zone that the source documents
for times without one. `beside` are further columns by which the source is known.
"""


@cache
def shapes() -> tuple[Shape, ...]:
    """Return the known shapes; the first that fits a file counts."""
    return tuple(rows_of(HERE.with_name("calendar_shapes.csv")))


def _fits(shape: Shape, columns: frozenset[str]) -> bool:
    own = "|".join(shape[name] for name in COLUMNS)
    return {*own.strip("|").split("|")} <= columns


def read(path: Path, clock: str = "") -> PublicCalendar:
    """Return the events of a file of any shape; raises ConfigError."""
    rows = calendar_rows(path)
    columns = frozenset(rows[0][1]) if rows else frozenset()
    shape = next((shape for shape in shapes() if _fits(shape, columns)), None)
    if shape is None:
        raise ConfigError(
            f"{path} has the columns {quote(', '.join(sorted(columns)))}, which no calendar here "
            f"has: {', '.join(shape['name'] for shape in shapes())} are read (docs/events.md)"
        )
    calendar = PublicCalendar(shape, clock or shape["clock"])
    calendar.events.update(filter(None, map(calendar.event, rows)))
    if not calendar.events:
        raise ConfigError(
            f"{path} is a calendar of {calendar.name} without an event that has a time"
        )
    return calendar


class PublicCalendar:
    """What a file holds: its shape's name, its events and how many rows were left out, and why.

    `clock` is that of its times; "" where every time names its own zone.
    """

    def __init__(self, shape: Shape, clock: str) -> None:
        self._shape, self.name = shape, shape["name"]
        self._clock = ServerClock.parse(clock) if clock else None
        self.clock = ""
        self.events = set[ScheduledEvent]()
        self.omissions = Counter[str]()

    def event(self, row: CalendarRow) -> ScheduledEvent | None:
        """Return the event of a row, None for one that is left out; raises ConfigError."""
        place, cells = row

        def texts(column: str) -> list[str]:
            names = self._shape[column].split("|")
            return [str(cells.get(name) or "").strip() for name in names]

        (impact,), (title,), times = texts("impact"), texts("title"), texts("moment")
        if impact.lower() not in IMPACTS:
            column = self._shape["impact"]
            raise ConfigError(f"{place}: {column} is {quote(impact.lower())}; no known impact")
        level = IMPACTS[impact.lower()]
        currency = next(filter(None, map(currency_of, texts("currency"))), "")
        timed = HOUR_ONLY in times[-1]
        if level is None or not timed or not currency:
            self.omissions[NO_IMPACT if level is None else NO_CURRENCY if timed else NO_TIME] += 1
            return None
        title = "".join(filter(str.isprintable, title))[:MAX_NAME].strip()
        moment = self._moment(place, " ".join(times))
        return ScheduledEvent(moment, currency, level, title or "event")

    def _moment(self, place: str, text: str) -> datetime:
        try:
            moment = _time(text, self._shape["forms"].split("|"))
            if moment.tzinfo is not None:
                return moment.astimezone(UTC)
            if self._clock is not None:
                self.clock = self._clock.name
                return self._clock.to_utc(
                    (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(seconds=1)
                )
        except (ValueError, OverflowError) as error:
            raise ConfigError(f"{place}: the time {quote(text)} cannot be read: {error}") from error
        raise ConfigError(
            f"{place}: the time {quote(text)} of {self.name} has no zone: say with "
            f"--clock which clock the file has ({KNOWN})"
        )


def _time(text: str, forms: Iterable[str]) -> datetime:
    for form in forms:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007  the clock follows
        except ValueError:
            continue
    return datetime.fromisoformat(text)


@cache
def _currencies() -> Mapping[str, str]:
    """Return {code or name of a country in small letters: its currency}."""
    return {
        name.lower(): row["currency"]
        for row in rows_of(COUNTRIES)
        for name in (row["code"], *row["names"].split(";"))
    }


def currency_of(text: str) -> str:
    """Return the currency that a code or a country names, "" for none."""
    known = _currencies().get(text.lower())
    return known or (text if CURRENCY.fullmatch(text) else "")
