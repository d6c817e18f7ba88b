"""Replays and scorecards as files: what `TORRA_HOME/replays/NAME.json` holds, and how it is read.

A replay or a scorecard is one JSON document (docs/replays.md): `kind` ("replay" or "scorecard"),
`name` (as the file's), `created_at`, `title`, `summary` (one sentence), `period` ({"from", "to"}),
`arms` (names of what was compared), `tables` ({"title", "columns", "rows"}), `series` ({"title",
"points": [[time, number or null]]}) and `warnings`. Whoever makes one checks it with `Document`.

A file is checked at the door and its words are a stranger's: what is not such a document is listed
with the reason and never shown in part. Symbolic links, files over LARGEST bytes and names that no
profile could have are not read. Nothing here writes, and nothing raises for a bad file.
"""

from __future__ import annotations

import json
import os
import re
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from torra.config import NAME

FOLDER: Final = "replays"
SUFFIX: Final = ".json"
LARGEST: Final = 5_000_000
"""Bytes of a file that is read."""

MOST: Final = 200
"""Files that are listed, the newest ones."""

DEVICES: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
"""Names that Windows keeps for devices, whatever follows their first dot."""

Word = Annotated[str, Field(min_length=1, max_length=200)]
Cell = str | int | float | bool | None


class Part(BaseModel):
    """A part of the document: frozen, finite numbers only, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Period(Part):
    """The time that was replayed or judged, UTC."""

    start: AwareDatetime = Field(alias="from")
    end: AwareDatetime = Field(alias="to")

    @model_validator(mode="after")
    def _in_order(self) -> Period:
        if self.end < self.start:
            raise ValueError("it ends before it begins")
        return self


class Table(Part):
    """Rows of words and numbers, all as long as the columns; null is what is not known."""

    title: Word
    columns: tuple[Word, ...] = Field(min_length=1, max_length=24)
    rows: tuple[tuple[Cell, ...], ...] = Field(max_length=5000)

    @model_validator(mode="after")
    def _whole_rows(self) -> Table:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row has not {len(self.columns)} cells as there are columns")
        return self


class Series(Part):
    """A line: times in order, each with a number, or null where there is none."""

    title: Word
    points: tuple[tuple[AwareDatetime, float | None], ...] = Field(max_length=20_000)

    @model_validator(mode="after")
    def _in_order(self) -> Series:
        times = [moment for moment, _ in self.points]
        if times != sorted(times):
            raise ValueError("its points are not in the order of time")
        return self


class Document(Part):
    """One replay or scorecard."""

    kind: Literal["replay", "scorecard"]
    name: str = Field(pattern=f"^{NAME.pattern}$")
    created_at: AwareDatetime
    title: Word
    summary: str = Field(min_length=1, max_length=600)
    period: Period
    arms: tuple[Word, ...] = Field((), max_length=24)
    tables: tuple[Table, ...] = Field((), max_length=24)
    series: tuple[Series, ...] = Field((), max_length=24)
    warnings: tuple[str, ...] = Field((), max_length=100)


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of the folder: its document's head, or in `problem` why it cannot be shown."""

    name: str
    problem: str = ""
    kind: str = ""
    title: str = ""
    summary: str = ""
    created_at: datetime | None = None
    warnings: int = 0


class Broken(Exception):
    """Why a file is no document."""


class Shelf:
    """The replays of one home; heads of files that did not change are read once."""

    def __init__(self, home: Path) -> None:
        self.folder = home / FOLDER
        self._lock = threading.Lock()
        self._heads: dict[str, tuple[tuple[int, int], Listed]] = {}

    def listed(self) -> tuple[list[Listed], int]:
        """Return the newest files, newest first, and how many older ones are left out."""
        found = sorted(self._files(), key=lambda item: (-item[1].st_mtime_ns, item[0]))
        with self._lock:
            known, self._heads = self._heads, {}
            heads = [self._head(name, status, known) for name, status in found[:MOST]]
        return heads, max(0, len(found) - MOST)

    def document(self, name: str) -> Document | Listed | None:
        """Return a document, the reason why it is none, or None where there is no such file."""
        if not allowed(name):
            return None
        try:
            status = (self.folder / f"{name}{SUFFIX}").lstat()
            return read(self.folder / f"{name}{SUFFIX}", name, status)
        except OSError:
            return None
        except Broken as error:
            return Listed(name, str(error))

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
        self, name: str, status: os.stat_result, known: dict[str, tuple[tuple[int, int], Listed]]
    ) -> Listed:
        mark = (status.st_mtime_ns, status.st_size)
        held = known.get(name)
        if held is None or held[0] != mark:
            held = (mark, self._read_head(name, status))
        self._heads[name] = held
        return held[1]

    def _read_head(self, name: str, status: os.stat_result) -> Listed:
        if not allowed(name):
            return Listed(name, "its name: use letters, digits, dot, dash and underscore")
        try:
            told = read(self.folder / f"{name}{SUFFIX}", name, status)
        except OSError as error:
            return Listed(name, f"it cannot be read: {error.strerror}")
        except Broken as error:
            return Listed(name, str(error))
        return Listed(
            name, "", told.kind, told.title, told.summary, told.created_at, len(told.warnings)
        )


def allowed(name: str) -> bool:
    """Return whether a file may be called so: as a profile, and no device of Windows."""
    plain = NAME.fullmatch(name) and not name.endswith(".")
    return bool(plain) and not DEVICES.fullmatch(name)


def read(path: Path, name: str, status: os.stat_result) -> Document:
    """Return the document of a file; raises Broken with the reason, OSError when it is gone."""
    if not stat.S_ISREG(status.st_mode):
        raise Broken("it is no plain file; put the file itself there, not a link")
    if status.st_size > LARGEST:
        raise Broken(f"it has {status.st_size:,} bytes, more than the {LARGEST:,} that are read")
    with path.open("rb") as file:
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise Broken(f"it has more than the {LARGEST:,} bytes that are read")
    try:
        told = json.loads(raw, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Broken(f"it is not JSON: {error}") from None
    return _checked(told, name)


def _checked(told: Any, name: str) -> Document:
    try:
        document = Document.model_validate(told)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole file"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        said = first["msg"].removeprefix("Value error, ")
        raise Broken(f"{place}: {said}{more}") from None
    if document.name != name:
        raise Broken(f"it calls itself {document.name}; the file must have that name")
    return document


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")
