"""Reads a calendar of scheduled events from a CSV or JSON file; docs/events.md has the format.

No line is skipped, and a time without a zone is refused rather than taken for UTC. What cannot be
read raises ConfigError with file, line, value and remedy. torra.news.watched_file reads a calendar
that changes; torra.evidence.scheduled_events decides what events mean for a symbol.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, get_args

from torra.clock import iso
from torra.errors import ConfigError, no_key_twice
from torra.evidence.scheduled_events import EVERY_CURRENCY, Impact, ScheduledEvent
from torra.news.watched_file import decoded, read_bytes
from torra.trading_terms import CURRENCY

FIELDS: Final = ("time", "currency", "impact", "name")
IN_ORDER: Final = attrgetter(*FIELDS)
IMPACTS: Final[tuple[Impact, ...]] = get_args(Impact)

MAX_NAME: Final = 80
"""Characters of an event's name."""

MAX_BYTES: Final = 4_000_000
MAX_EVENTS: Final = 20_000
"""A file above either is not a calendar, or needs its old years cut off."""

SHOWN: Final = 40
"""Characters of a wrong value that an error quotes."""

CalendarRow = tuple[str, Mapping[str, Any]]
"""The place of an event, as an error names it, and its values by columns in small letters."""


def read_events(path: Path) -> tuple[ScheduledEvent, ...]:
    """Return the events of a file, oldest first, each once; raises ConfigError.

    It is torra.news.watched_file.Unreachable when it is not the content that is wrong.
    """
    events = {_event(*row) for row in calendar_rows(path)}
    if not events:
        raise ConfigError(f"{path} holds no events: add some, or name no calendar")
    return tuple(sorted(events, key=IN_ORDER))


def table(events: Iterable[ScheduledEvent]) -> str:
    """Return events as the text of a calendar in CSV, oldest first."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(FIELDS)
    rows.writerows(
        (iso(event.time), *IN_ORDER(event)[1:]) for event in sorted(events, key=IN_ORDER)
    )
    return text.getvalue()


def calendar_rows(path: Path) -> list[CalendarRow]:
    """Return the rows of a table in CSV or of a list in JSON, whatever their columns are.

    Raises ConfigError for what cannot be read and for more than MAX_EVENTS rows.
    """
    text = decoded(path, read_bytes(path, MAX_BYTES, "write it, or name no calendar"))
    head = text.lstrip()[:1]
    if head == "<":
        raise ConfigError(f"{path} is XML or a page of the web: save the calendar as CSV or JSON")
    read = _json_rows if head in {"[", "{"} else _table_rows
    rows = [*islice(read(path, text), MAX_EVENTS + 1)]
    if len(rows) > MAX_EVENTS:
        raise ConfigError(
            f"{path} holds more than {MAX_EVENTS} events: cut off the years that are over"
        )
    return rows


def _table_rows(path: Path, text: str) -> Iterator[CalendarRow]:
    delimiter = max(",;\t", key=text.lstrip().partition("\n")[0].count)
    # strict: else a stray quotation mark swallows the lines after it in silence.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    names: list[str] = []
    try:
        for raw in reader:
            place = f"{path}, line {reader.line_num}"
            cells = [cell.strip() for cell in raw]
            if not any(cells):
                continue
            if not names:
                names = [cell.lower() for cell in cells]
                named = [name for name in names if name]  # a table may end in empty columns
                if len({*named}) < len(named):
                    raise ConfigError(f"{place}: a column stands twice in {quote(','.join(names))}")
            elif len(cells) == len(names):
                yield place, dict(zip(names, cells, strict=True))
            else:
                raise ConfigError(
                    f"{place}: {len(cells)} cells where the header has {len(names)};"
                    ' put a name with a comma in it between "quotes"'
                )
    except csv.Error as error:
        raise ConfigError(f"{path}, line {reader.line_num}: {error}; mend the line") from error


def _json_rows(path: Path, text: str) -> Iterator[CalendarRow]:
    try:
        document = json.loads(text, object_pairs_hook=no_key_twice)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}, line {error.lineno}: {error.msg}; mend the JSON") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no calendar in JSON: mend it") from error
    if isinstance(document, dict):  # Finnhub's list stands under a name
        lists = [part for part in document.values() if isinstance(part, list)]
        document = lists[0] if len(lists) == 1 else None
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise ConfigError(f"{path} holds no list of events")
    for number, row in enumerate(document, start=1):
        place, cells = f"{path}, event {number}", {name.lower(): row[name] for name in row}
        if len(cells) < len(row):
            raise ConfigError(f"{place}: a name stands twice in {quote(','.join(row))}")
        yield place, cells


def _event(place: str, cells: Mapping[str, Any]) -> ScheduledEvent:
    def refusal(name: str, remedy: str) -> ConfigError:
        return ConfigError(f"{place}: {name} is {quote(cells[name])}; {remedy}")

    if sorted(cells) != sorted(FIELDS):
        raise ConfigError(
            f"{place}: the columns are {quote(','.join(cells))}; write {','.join(FIELDS)}, and "
            "only these; a calendar of a public source: torra calendar FILE"
        )
    for name in FIELDS:
        if not isinstance(cells[name], str):
            raise refusal(name, "write it as text")
    text, currency, impact, name = (cells[name].strip() for name in FIELDS)
    if not CURRENCY.fullmatch(currency):
        raise refusal("currency", f"write three capitals, such as USD, or {EVERY_CURRENCY}")
    if impact not in IMPACTS:
        raise refusal("impact", f"write {', '.join(IMPACTS)}")
    if not (name.isprintable() and 1 <= len(name) <= MAX_NAME):
        raise refusal("name", f"write 1 to {MAX_NAME} characters that can be printed")
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return ScheduledEvent(moment.astimezone(UTC), currency, impact, name)
    except (ValueError, OverflowError):
        raise refusal("time", "write it like 2021-11-05T12:30:00Z") from None
    raise refusal("time", "say which zone: write Z for UTC, or an offset such as -05:00")


def quote(value: object) -> str:
    """Return a wrong value as an error shows it: escaped and short."""
    # Escaped: an error must not carry control characters into a terminal.
    text = ascii(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
