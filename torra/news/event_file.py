"""Reads a calendar of scheduled events from a CSV or JSON file; docs/events.md has the format.

No line is skipped, and a time without a zone is refused rather than taken for UTC. What cannot be
read raises ConfigError with file, line, value and remedy. torra.news.watched_file reads a calendar
that changes; torra.evidence.scheduled_events decides what events mean for a symbol.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
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

PUBLIC: Final = "; a calendar of a public source: torra calendar FILE"

CalendarRow = tuple[str, Mapping[str, Any]]
"""The place of an event, as an error names it, and its values."""


def read_events(path: Path) -> tuple[ScheduledEvent, ...]:
    """Return the events of a file, oldest first, each once; raises ConfigError.

    It is torra.news.watched_file.Unreachable when it is not the content that is wrong.
    """
    text = decoded(path, raw_bytes(path))
    is_json = path.suffix.lower() == ".json"
    rows = _from_json(path, text) if is_json else table_rows(path, text, _header)
    events = set()
    for number, (place, values) in enumerate(rows, start=1):
        if number > MAX_EVENTS:
            raise ConfigError(
                f"{path} holds more than {MAX_EVENTS} events: cut off the years that are over"
            )
        events.add(_event(place, values))
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


def raw_bytes(path: Path) -> bytes:
    """Return the bytes of a calendar; raises ConfigError."""
    return read_bytes(path, MAX_BYTES, "write it, or name no calendar")


def table_rows(
    path: Path, text: str, header: Callable[[str, list[str]], list[str]], delimiter: str = ","
) -> Iterator[CalendarRow]:
    """Yield the rows of a table in CSV; `header` makes names of its first line.

    Raises ConfigError for a line that cannot be read.
    """
    # strict: else a stray quotation mark swallows the lines after it in silence.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    names: list[str] | None = None
    try:
        for raw in reader:
            place = f"{path}, line {reader.line_num}"
            cells = [cell.strip() for cell in raw]
            if not any(cells):
                continue
            if names is None:
                names = header(place, cells)
                continue
            if len(cells) != len(names):
                raise ConfigError(
                    f"{place}: {len(cells)} cells where the header has {len(names)};"
                    ' put a name with a comma in it between "quotes"'
                )
            yield place, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise ConfigError(f"{path}, line {reader.line_num}: {error}; mend the line") from error


def _header(place: str, cells: list[str]) -> list[str]:
    names = [cell.lower() for cell in cells]
    if sorted(names) != sorted(FIELDS):
        raise ConfigError(
            f"{place}: the header is {quote(','.join(cells))}; write {','.join(FIELDS)},"
            f" with commas between the cells{PUBLIC}"
        )
    return names


def json_document(path: Path, text: str) -> Any:
    """Return the document of a JSON text; raises ConfigError."""
    try:
        return json.loads(text, object_pairs_hook=no_key_twice)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}, line {error.lineno}: {error.msg}; mend the JSON") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no calendar in JSON: mend it") from error


def _from_json(path: Path, text: str) -> Iterator[CalendarRow]:
    document = json_document(path, text)
    if not isinstance(document, list):
        raise ConfigError(f"{path} holds no list: write a list of events{PUBLIC}")
    for number, entry in enumerate(document, start=1):
        place = f"{path}, event {number}"
        if not isinstance(entry, dict) or sorted(entry) != sorted(FIELDS):
            raise ConfigError(
                f"{place}: write an object with {', '.join(FIELDS)}, and only these{PUBLIC}"
            )
        yield place, entry


def _event(place: str, values: Mapping[str, Any]) -> ScheduledEvent:
    def refuse(name: str, value: object, remedy: str) -> ConfigError:
        return ConfigError(f"{place}: {name} is {quote(value)}; {remedy}")

    for name in FIELDS:
        if not isinstance(values[name], str):
            raise refuse(name, values[name], "write it as text")
    text, currency, impact, name = (values[name].strip() for name in FIELDS)
    if not CURRENCY.fullmatch(currency):
        raise refuse(
            "currency", currency, f"write three capitals, such as USD, or {EVERY_CURRENCY}"
        )
    if impact not in IMPACTS:
        raise refuse("impact", values["impact"], f"write {', '.join(IMPACTS)}")
    if not (name.isprintable() and 1 <= len(name) <= MAX_NAME):
        raise refuse("name", name, f"write 1 to {MAX_NAME} characters that can be printed")
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return ScheduledEvent(moment.astimezone(UTC), currency, impact, name)
    except (ValueError, OverflowError):
        raise refuse("time", text, "write it like 2021-11-05T12:30:00Z") from None
    raise refuse("time", text, "say which zone: write Z for UTC, or an offset such as -05:00")


def quote(value: object) -> str:
    """Return a wrong value as an error shows it: escaped and short."""
    # Escaped: an error must not carry control characters into a terminal.
    text = ascii(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
