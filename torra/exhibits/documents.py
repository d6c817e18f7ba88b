"""Replays and scorecards as files: the content of `TORRA_HOME/replays/NAME.json`, and its reading.

A replay or a scorecard is one JSON document (docs/replays.md): `kind` ("replay" or "scorecard"),
`name` (as the file's), `created_at`, `title`, `summary` (one sentence), `period` ({"from", "to"}),
`arms` (names of what was compared), `tables` (each with the sentence under it), `plots`, `series`
and `warnings`. A program that makes one checks it with `Document`; torra.exhibits.report makes them
from exhibits.

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from torra.config import NAME

FOLDER: Final = "replays"
SUFFIX: Final = ".json"
LARGEST: Final = 5_000_000
"""Most bytes of a file that is read."""

MOST: Final = 200
"""Most files in the list; the newest are in it."""

DEVICES: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
"""Names that Windows keeps for devices, whatever follows their first dot."""

MOST_POINTS: Final = 2000
"""Most points of a plot's line."""

FURTHEST: Final = 1e15
"""Largest size of a number in a plot: beyond it a float has no fractions left."""

TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?")
"""A time, in a place where a category may stand as well: ISO 8601, and its zone is required."""

Word = Annotated[str, Field(min_length=1, max_length=200)]
Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")]
Cell = str | int | float | bool | None


def _utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("this time lies outside the years 1 to 9999 in UTC") from None


def _number(value: float) -> float:
    if abs(value) > FURTHEST:
        raise ValueError(f"{value:g} is beyond {FURTHEST:g}, too far for a plot")
    return float(value)


def _place(value: Any) -> Any:
    """Return x of a point: a time from ISO text, a number, or a category as it stands."""
    # bool is a kind of int: true would pass as the number 1
    if isinstance(value, bool):
        raise ValueError("a point lies at a time, a number or a category")  # noqa: TRY004
    if isinstance(value, str):
        found = TIME.fullmatch(value)
        if found and not found[3]:
            raise ValueError("a time needs its zone, such as a Z at its end")
        return datetime.fromisoformat(value) if found else value
    return _number(value) if isinstance(value, (int, float)) else value


def _height(value: Any) -> Any:
    """Return y of a point: a number, a category, or None for a gap."""
    if isinstance(value, bool):
        raise ValueError("the height of a point is a number")  # noqa: TRY004
    return _number(value) if isinstance(value, (int, float)) else value


Moment = Annotated[AwareDatetime, AfterValidator(_utc)]
X = Annotated[Moment | float | Word, BeforeValidator(_place)]
Y = Annotated[float | Word | None, BeforeValidator(_height)]
Bound = Annotated[float | None, BeforeValidator(_height)]


class Part(BaseModel):
    """A part of the document: frozen, finite numbers only, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Period(Part):
    """The time that was replayed or judged, UTC."""

    start: Moment = Field(alias="from")
    end: Moment = Field(alias="to")

    @model_validator(mode="after")
    def _in_order(self) -> Period:
        if self.end < self.start:
            raise ValueError("it ends before it begins")
        return self


class Table(Part):
    """Rows of words and numbers, all as long as the columns; null is what is not known.

    `says` is what it means in a sentence, `enough` is False where the sample is too small to show
    anything; plots name it by `name`. `figures` are its results by name, for programs.
    """

    title: Word
    name: Id | Literal[""] = ""
    says: str = Field("", max_length=2000)
    enough: bool = True
    figures: dict[Word, float | None] = Field({}, max_length=500)
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
    points: tuple[tuple[Moment, float | None], ...] = Field(max_length=20_000)

    @model_validator(mode="after")
    def _in_order(self) -> Series:
        times = [moment for moment, _ in self.points]
        if times != sorted(times):
            raise ValueError("its points are not in the order of time")
        return self


class Line(Part):
    """One line, or set of bars or dots; `low` and `high` bound the interval of each point."""

    name: Word
    points: tuple[tuple[X, Y], ...] = Field(max_length=MOST_POINTS)
    low: tuple[Bound, ...] = ()
    high: tuple[Bound, ...] = ()

    @model_validator(mode="after")
    def _whole_bounds(self) -> Line:
        if {len(self.low), len(self.high)} - {0, len(self.points)}:
            raise ValueError(f"low and high have not {len(self.points)} bounds as there are points")
        if len(self.low) != len(self.high):
            raise ValueError("low and high go together")
        pairs = zip(self.low, self.high, strict=True)
        if any(low is not None and high is not None and low > high for low, high in pairs):
            raise ValueError("a low bound is above its high bound")
        return self


class Plot(Part):
    """One plot: a line or steps over x, bars, dots with intervals, or bands of states in time.

    Its x are all times, all numbers or all categories; its y are numbers, categories in bands.
    `of` is the name of the table that it belongs to, `diagonal` draws where y = x.
    """

    title: Word
    kind: Literal["line", "step", "bars", "dots", "bands"]
    of: Id | Literal[""] = ""
    x: str = Field("", max_length=200)
    y: str = Field("", max_length=200)
    says: str = Field("", max_length=2000)
    diagonal: bool = False
    lines: tuple[Line, ...] = Field(max_length=24)

    @property
    def axis(self) -> Literal["time", "number", "category"]:
        """What its x are; numbers where there is no point."""
        for line in self.lines:
            for place, _ in line.points:
                return _axis(place)
        return "number"

    @model_validator(mode="after")
    def _of_a_kind(self) -> Plot:
        axes = {_axis(place) for line in self.lines for place, _ in line.points}
        if len(axes) > 1:
            raise ValueError(f"its x are of more than one kind: {', '.join(sorted(axes))}")
        if "category" in axes and (self.diagonal or self.kind == "bands"):
            raise ValueError("bands and a diagonal need times or numbers as x")
        wanted = str if self.kind == "bands" else float
        heights = (y for line in self.lines for _, y in line.points)
        if any(y is not None and not isinstance(y, wanted) for y in heights):
            told = "categories" if self.kind == "bands" else "numbers"
            raise ValueError(f"the y of {self.kind} are {told}")
        ordered = self.kind in ("line", "step", "bands") and "category" not in axes
        if ordered and not all(_in_order(line.points) for line in self.lines):
            raise ValueError("its points are not in the order of x")
        return self


def _axis(place: datetime | float | str) -> Literal["time", "number", "category"]:
    if isinstance(place, datetime):
        return "time"
    return "category" if isinstance(place, str) else "number"


def _in_order(points: Sequence[tuple[Any, Any]]) -> bool:
    return all(one[0] <= next_one[0] for one, next_one in pairwise(points))


class Document(Part):
    """One replay or scorecard."""

    kind: Literal["replay", "scorecard"]
    name: str = Field(pattern=f"^{NAME.pattern}$")
    created_at: Moment
    title: Word
    summary: str = Field(min_length=1, max_length=600)
    period: Period
    arms: tuple[Word, ...] = Field((), max_length=48)
    tables: tuple[Table, ...] = Field((), max_length=48)
    plots: tuple[Plot, ...] = Field((), max_length=48)
    series: tuple[Series, ...] = Field((), max_length=24)
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
    period: Period | None = None
    arms: int = 0


class Broken(Exception):
    """A file is no document; the message is the reason."""


class ReplayShelf:
    """The replays of one home; the heads of unchanged files are read only once."""

    def __init__(self, home: Path) -> None:
        self.folder = home / FOLDER
        self._lock = threading.Lock()
        self._heads: dict[str, tuple[tuple[int, int], Listed]] = {}

    def listed(self) -> tuple[list[Listed], int]:
        """Return the newest files, newest first, and how many older ones are left out."""
        found = sorted(self._files(), key=lambda item: (-item[1].st_mtime_ns, item[0]))
        with self._lock:
            # only heads of files that are still there are kept
            known, self._heads = self._heads, {}
            heads = [self._head(name, status, known) for name, status in found[:MOST]]
        return heads, max(0, len(found) - MOST)

    def document(self, name: str) -> Document | Listed | None:
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
            name,
            kind=told.kind,
            title=told.title,
            summary=told.summary,
            created_at=told.created_at,
            warnings=len(told.warnings),
            period=told.period,
            arms=len(told.arms),
        )


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
