"""Reads a calendar of scheduled events from a CSV or JSON file; docs/events.md has the format.

The first reading raises ConfigError, naming file, line, value and remedy: a desk does not start
with a calendar that it cannot read. Later, `refresh` reads the file again whenever it has changed.
When the file is then missing or broken, the last good events stand, which is said and logged: a
slip in an editor must neither stop a desk nor lift the windows around events. Only `refresh`
touches the disk; `events` returns those of the last reading that ended.

No line is skipped, and a time without a zone is refused rather than taken for UTC.
torra.evidence.scheduled_events decides what events mean for a symbol.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

from torra.clock import iso
from torra.errors import ConfigError, no_key_twice
from torra.evidence.scheduled_events import EVERY_CURRENCY, Impact, ScheduledEvent
from torra.trading_terms import CURRENCY

log = logging.getLogger("torra")

FIELDS: Final = ("time", "currency", "impact", "name")
IN_ORDER: Final = attrgetter(*FIELDS)
IMPACTS: Final[tuple[Impact, ...]] = get_args(Impact)
Signature = tuple[int, int, int]
"""What changes when a file does: its time, its size, its place on the disk."""

MAX_NAME: Final = 80
"""Characters of an event's name."""

MAX_BYTES: Final = 4_000_000
MAX_EVENTS: Final = 20_000
"""A file above either is not a calendar, or needs its old years cut off."""

SHOWN: Final = 40
"""Characters of a wrong value that an error quotes."""

PUBLIC: Final = "; a calendar of a public source: torra calendar FILE"


class Unreachable(ConfigError):
    """The file could not be read; what stands in it may be good."""


class EventReading(NamedTuple):
    """The events of the last good reading, oldest first, and whether the file is broken now."""

    events: tuple[ScheduledEvent, ...]
    broken: bool


class CalendarFile:
    """The events of one file. Safe to share between threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reading = threading.Lock()
        self._seen: Signature | None = None
        self._held: EventReading | None = None
        self._trouble = ""

    def events(self) -> EventReading:
        """Return the last reading; waits for no disk once a reading has succeeded.

        Raises ConfigError while none has.
        """
        held = self._held
        return self.refresh() if held is None else held

    def refresh(self) -> EventReading:
        """Read the file again if it has changed, or could not be read to its end.

        Raises ConfigError while no reading has succeeded yet.
        """
        with self._reading:
            seen = signature(self.path)
            # A file that cannot be seen is tried each time, so that its return is noticed.
            if self._held is None or seen is None or seen != self._seen:
                self._held = self._read(self._held, seen)
            return self._held

    def _read(self, held: EventReading | None, seen: Signature | None) -> EventReading:
        """Return the file's events; those of before while it changes or cannot be read."""
        trouble: ConfigError | None = None
        events: tuple[ScheduledEvent, ...] = ()
        try:
            events = read_events(self.path)
        except ConfigError as error:
            trouble = error
        # A file that changed while it was read may be half of each version.
        whole = seen == signature(self.path)
        self._seen = seen if whole and not isinstance(trouble, Unreachable) else None
        if held is None:
            if trouble is not None:
                raise trouble
            return EventReading(events, broken=False)
        # Somebody is writing: nothing is wrong yet, the next look reads it.
        if not (whole or isinstance(trouble, Unreachable)):
            return held
        self._tell(trouble)
        return EventReading(held.events if trouble else events, broken=trouble is not None)

    def _tell(self, trouble: ConfigError | None) -> None:
        """Log what is wrong, once."""
        said, self._trouble = self._trouble, str(trouble or "")
        if trouble is not None and self._trouble != said:
            log.warning("the calendar of events stands as it was read last: %s", trouble)


def read_events(path: Path) -> tuple[ScheduledEvent, ...]:
    """Return the events of a file, oldest first, each once.

    Raises ConfigError: Unreachable when it is not the content that is wrong.
    """
    text = _text(path, raw_bytes(path))
    is_json = path.suffix.lower() == ".json"
    rows = _from_json(path, text) if is_json else table_rows(path, text, _header)
    events = set()
    for number, row in enumerate(rows, start=1):
        if number > MAX_EVENTS:
            raise ConfigError(
                f"{path} holds more than {MAX_EVENTS} events: cut off the years that are over"
            )
        events.add(_event(row))
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


class CalendarRow(NamedTuple):
    """The values of one event, and where they stand, as an error says it."""

    place: str
    values: Mapping[str, Any]


def signature(path: Path) -> Signature | None:
    """Return what changes when a file does; None when it cannot be seen."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def raw_bytes(path: Path) -> bytes:
    """Return what stands in a file; raises Unreachable, and ConfigError for one too large."""
    try:
        if not path.is_file():
            raise Unreachable(f"{path} is not there or no file: write it, or name no calendar")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise Unreachable(f"cannot read {path}: {error}") from error
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_BYTES // 1_000_000} MB: cut off old years")
    return raw


def _text(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8; save the file as UTF-8") from error


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
            yield CalendarRow(place, dict(zip(names, cells, strict=True)))
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
    """Return what a JSON text says; raises ConfigError."""
    try:
        return json.loads(text, object_pairs_hook=no_key_twice)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}, line {error.lineno}: {error.msg}; mend the JSON") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no calendar in JSON: mend it") from error


def _from_json(path: Path, text: str) -> Iterator[CalendarRow]:
    found = json_document(path, text)
    if not isinstance(found, list):
        raise ConfigError(f"{path} holds no list: write a list of events{PUBLIC}")
    for number, entry in enumerate(found, start=1):
        place = f"{path}, event {number}"
        if not isinstance(entry, dict) or sorted(entry) != sorted(FIELDS):
            raise ConfigError(
                f"{place}: write an object with {', '.join(FIELDS)}, and only these{PUBLIC}"
            )
        yield CalendarRow(place, entry)


def _event(row: CalendarRow) -> ScheduledEvent:
    values = {name: row.values[name] for name in FIELDS}
    for name, value in values.items():
        if not isinstance(value, str):
            raise _fault(row, name, value, "write it as text")
    currency, name = values["currency"].strip(), values["name"].strip()
    if not CURRENCY.fullmatch(currency):
        remedy = f"write three capitals, such as USD, or {EVERY_CURRENCY}"
        raise _fault(row, "currency", currency, remedy)
    impact = next((known for known in IMPACTS if known == values["impact"].strip()), None)
    if impact is None:
        raise _fault(row, "impact", values["impact"], f"write {', '.join(IMPACTS)}")
    if not (name.isprintable() and 1 <= len(name) <= MAX_NAME):
        remedy = f"write 1 to {MAX_NAME} characters that can be printed"
        raise _fault(row, "name", name, remedy)
    return ScheduledEvent(_moment(row, values["time"].strip()), currency, impact, name)


def _moment(row: CalendarRow, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise _fault(row, "time", text, "write it like 2021-11-05T12:30:00Z") from None
    raise _fault(row, "time", text, "say which zone: write Z for UTC, or an offset such as -05:00")


def _fault(row: CalendarRow, name: str, value: object, remedy: str) -> ConfigError:
    return ConfigError(f"{row.place}: {name} is {quote(value)}; {remedy}")


def quote(value: object) -> str:
    """Return a wrong value as an error shows it: escaped and short."""
    # Escaped: an error must not carry control characters into a terminal.
    text = ascii(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
