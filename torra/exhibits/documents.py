"""Replays and scorecards as files: the content of `TORRA_HOME/replays/NAME.json`, and its reading.

A replay or a scorecard is one JSON document (docs/replays.md): `kind` ("replay" or "scorecard"),
`name` (as the file's), `created_at`, `title`, `summary` (one sentence), `period` ({"from", "to"}),
`arms` (names of what was compared), `settings` (under what: bars, profile, thresholds), `tables`
(each with the sentence under it), `plots`, `series` and `warnings`. A program that makes one checks
it with `Document`; torra.exhibits.report makes them from exhibits.

Every file is checked before it is shown, and its words are a stranger's. A file that is no such
document is listed with the reason and never shown in part. Symbolic links, files over LARGEST bytes
and names that no profile could have are not read. Nothing here writes, and nothing raises for a bad
file.
"""

from __future__ import annotations

import json
import os
import re
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from pydantic import Field, ValidationError, model_validator

from torra.config import NAME
from torra.errors import in_words
from torra.evaluation.exhibits import Moment, Part, Plot, ReportTable, Word
from torra.exhibits import trade_file
from torra.exhibits.outcome import outcome

FOLDER: Final = "replays"
SUFFIX: Final = ".json"
LARGEST: Final = 5_000_000
"""Most bytes of a file that is read."""

MOST: Final = 200
"""Most files in the list; the newest are in it."""

MOST_SUMMARY: Final = 600
"""Most characters of a summary."""

DEVICES: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
"""Names that Windows keeps for devices, whatever follows their first dot."""


class Period(Part):
    """The time that was replayed or judged, UTC."""

    start: Moment = Field(alias="from")
    end: Moment = Field(alias="to")

    @model_validator(mode="after")
    def _in_order(self) -> Period:
        if self.end < self.start:
            raise ValueError("it ends before it begins")
        return self


class Document(Part):
    """One replay or scorecard."""

    kind: Literal["replay", "scorecard"]
    name: str = Field(pattern=f"^{NAME.pattern}$")
    created_at: Moment
    title: Word
    summary: str = Field(min_length=1, max_length=MOST_SUMMARY)
    period: Period
    arms: tuple[Word, ...] = Field((), max_length=48)
    settings: dict[Word, Word] = Field({}, max_length=24)
    tables: tuple[ReportTable, ...] = Field((), max_length=48)
    plots: tuple[Plot, ...] = Field((), max_length=48)
    warnings: tuple[str, ...] = Field((), max_length=100)

    @model_validator(mode="after")
    def _names_fit(self) -> Document:
        names = [table.name for table in self.tables if table.name]
        if len(set(names)) < len(names):
            raise ValueError("two tables have the same name")
        unknown = sorted({plot.of for plot in self.plots if plot.of} - set(names))
        if unknown:
            raise ValueError(f"a plot is of {unknown[0]}, and no table has that name")
        return self


class BrokenFile(NamedTuple):
    """A file of the folder that cannot be shown, and why."""

    name: str
    problem: str


Head = Document | BrokenFile
"""A file of the list: its document without tables and plots, its sentence as `summary`."""


class Broken(Exception):
    """A file is no document; the message is the reason."""


class ReplayShelf:
    """The replays of one home; the heads of unchanged files are read only once."""

    def __init__(self, home: Path) -> None:
        self.folder = home / FOLDER
        self._lock = threading.Lock()
        self._heads: dict[str, tuple[tuple[int, int], Head]] = {}

    def listed(self) -> tuple[list[Head], int]:
        """Return the newest files, newest first, and how many older ones are left out."""
        files = sorted(self._files(), key=lambda item: (-item[1].st_mtime_ns, item[0]))
        with self._lock:
            # only heads of files that are still there are kept
            known, self._heads = self._heads, {}
            heads = [self._head(name, status, known) for name, status in files[:MOST]]
        return heads, max(0, len(files) - MOST)

    def document(self, name: str) -> Head | None:
        """Return a document, or why it cannot be shown, or None if there is no such file."""
        if not allowed(name):
            return None
        try:
            # lstat: a link is judged as a link, wherever it leads
            status = (self.folder / f"{name}{SUFFIX}").lstat()
            return read(self.folder / f"{name}{SUFFIX}", name, status)
        except OSError:
            return None
        except Broken as error:
            return BrokenFile(name, str(error))

    def trades(self, name: str) -> str | None:
        """Return the text of a replay's file of trades; None where there is none to be read."""
        path = self.folder / name / trade_file.FILE
        try:
            # lstat: neither the folder nor the file may be a link, wherever it leads
            if not (
                allowed(name)
                and stat.S_ISDIR(path.parent.lstat().st_mode)
                and stat.S_ISREG(path.lstat().st_mode)
            ):
                return None
            with path.open("rb") as file:
                raw = file.read(LARGEST + 1)
            return raw.decode() if len(raw) <= LARGEST else None
        except (OSError, UnicodeDecodeError):
            return None

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        try:
            entries = list(os.scandir(self.folder))
        except OSError:
            return
        for entry in entries:
            if entry.name.endswith(SUFFIX):
                try:
                    yield entry.name.removesuffix(SUFFIX), entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # it went away meanwhile

    def _head(
        self, name: str, status: os.stat_result, known: dict[str, tuple[tuple[int, int], Head]]
    ) -> Head:
        mark = (status.st_mtime_ns, status.st_size)
        entry = known.get(name)
        if entry is None or entry[0] != mark:
            entry = (mark, self._read_head(name, status))
        self._heads[name] = entry
        return entry[1]

    def _read_head(self, name: str, status: os.stat_result) -> Head:
        if not allowed(name):
            return BrokenFile(name, "its name: use letters, digits, dot, dash and underscore")
        try:
            document = read(self.folder / f"{name}{SUFFIX}", name, status)
        except OSError as error:
            return BrokenFile(name, f"it cannot be read: {error.strerror}")
        except Broken as error:
            return BrokenFile(name, str(error))
        bare = {"summary": sentence(document), "tables": (), "plots": ()}
        return document.model_copy(update=bare)


def sentence(document: Document) -> str:
    """Return the one sentence of a document: its result in money where its tables tell it."""
    conclusion = outcome(document.tables, document.arms)
    return conclusion.sentence if conclusion else document.summary


def allowed(name: str) -> bool:
    """Return whether a file may have this name: as a profile, and no device of Windows."""
    plain = NAME.fullmatch(name) and not name.endswith(".")
    return bool(plain) and not DEVICES.fullmatch(name)


def read(path: Path, name: str, status: os.stat_result) -> Document:
    """Return the document of a file; raises Broken with the reason, OSError when it is gone."""
    if not stat.S_ISREG(status.st_mode):
        raise Broken("it is no plain file; put the file itself there, not a link")
    if status.st_size > LARGEST:
        raise Broken(f"it has {status.st_size:,} bytes, more than the {LARGEST:,} that are read")
    with path.open("rb") as file:
        # the size was looked up before: the file may have grown since
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise Broken(f"it has more than the {LARGEST:,} bytes that are read")
    try:
        # NaN and Infinity are refused: Python reads them, but they are no JSON
        values = json.loads(raw, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Broken(f"it is not JSON: {error}") from None
    return _checked(values, name)


def _checked(values: Any, name: str) -> Document:
    try:
        document = Document.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole file"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise Broken(f"{place}: {in_words(first)}{more}") from None
    if document.name != name:
        raise Broken(f"it calls itself {document.name}; the file must have that name")
    return document


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")
