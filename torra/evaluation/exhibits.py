"""The parts of a report that an evaluation makes: tables and plots, each with a plain sentence.

They are the parts of a document too (torra.exhibits.documents), so they hold for what a stranger's
file says as well: frozen, checked when they are made, and refused with a ValueError that names the
place: a number that is not finite, a row that is too short, points out of order. None stands for
what is not known.

An exhibit never shows a figure without its uncertainty. `says` is one or two plain sentences; if
the sample is too small to show anything, they say so and name the number that it would take. Values
only: torra.exhibits draws them, for a page, a file and the terminal alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from torra.evaluation.wording import interval_cell, percent_cell, rounded, share_cell

MOST_POINTS: Final = 2000
"""Most points of a plot's line."""

MOST_LETTERS: Final = 200
"""Most characters of a title, a head or a name."""

MOST_SAYS: Final = 2000
"""Most characters of what a table or a plot means."""

FURTHEST: Final = 1e15
"""Largest size of a number in a plot: beyond it a float has no fractions left."""

TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?")
"""A time, in a place where a category may stand as well: ISO 8601, and its zone is required."""

Word = Annotated[str, Field(min_length=1, max_length=MOST_LETTERS)]
Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")]


def _plain(value: Any) -> Any:
    """Return a number of numpy as Python's own."""
    return value.item() if hasattr(value, "item") else value


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
    value = _plain(value)
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
    value = _plain(value)
    if isinstance(value, bool):
        raise ValueError("the height of a point is a number")  # noqa: TRY004
    return _number(value) if isinstance(value, (int, float)) else value


Moment = Annotated[AwareDatetime, AfterValidator(_utc)]
X = Annotated[Moment | float | Word, BeforeValidator(_place)]
Y = Annotated[float | Word | None, BeforeValidator(_height)]
Bound = Annotated[float | None, BeforeValidator(_height)]
Cell = Annotated[str | int | float | bool | None, BeforeValidator(_plain)]
Figure = Annotated[float | None, BeforeValidator(_plain)]
Point = tuple[X, Y]
"""(x, y): x a moment, a number or a category; y a number, None for a gap, a category for bands."""


class Part(BaseModel):
    """A part of the document: frozen, finite numbers only, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ReportTable(Part):
    """Rows of words and numbers, all as long as the columns; null is what is not known.

    `says` is what it means in a sentence, `enough` is False where the sample is too small to show
    anything; plots name it by `name`. `figures` are its results by name, for programs.
    """

    title: Word
    name: Id | Literal[""] = ""
    says: str = Field("", max_length=MOST_SAYS)
    enough: bool = True
    figures: dict[Word, Figure] = Field({}, max_length=500)
    columns: tuple[Word, ...] = Field(min_length=1, max_length=24)
    rows: tuple[tuple[Cell, ...], ...] = Field(max_length=5000)

    @model_validator(mode="after")
    def _whole_rows(self) -> ReportTable:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row has not {len(self.columns)} cells as there are columns")
        return self


class PlotLine(Part):
    """One line, or set of bars or dots; `low` and `high` bound the interval of each point."""

    name: Word
    points: tuple[Point, ...] = Field(max_length=MOST_POINTS)
    low: tuple[Bound, ...] = ()
    high: tuple[Bound, ...] = ()

    @model_validator(mode="after")
    def _whole_bounds(self) -> PlotLine:
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
    x: str = Field("", max_length=MOST_LETTERS)
    y: str = Field("", max_length=MOST_LETTERS)
    says: str = Field("", max_length=MOST_SAYS)
    diagonal: bool = False
    lines: tuple[PlotLine, ...] = Field(max_length=24)

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


# --- what an evaluation makes ---------------------------------------------------------------------


class Exhibit(ReportTable):
    """A table with the plots that belong to it; `name` is unique in a report.

    Counts among its figures stay whole numbers; `table` has every figure as a float.
    """

    name: str  # an Id only in a document: `torra lookahead` ends it with a broker's symbol
    figures: dict[str, int | Figure] = {}
    plots: tuple[Plot, ...] = ()

    @property
    def table(self) -> ReportTable:
        """The table as a document has it, without the plots."""
        return ReportTable(**{name: getattr(self, name) for name in ReportTable.model_fields})


Read = Callable[[Any], Any]
"""Takes the cell or figure of a row out of the row's value."""

Columns = Mapping[str, str | Read]
"""The columns of a table by their heads: a dotted path in the row's value, or what makes a cell."""


def at(path: str) -> Read:
    """Return what reads a dotted path; None where a step of it is None."""

    def read(row: Any) -> Any:
        for name in path.split("."):
            row = None if row is None else getattr(row, name)
        return row

    return read


def number(path: str, digits: int) -> Read:
    """Return what makes a cell of a number."""
    return lambda row: rounded(at(path)(row), digits)


def interval(path: str, digits: int = 2) -> Read:
    """Return what makes a cell of what has an interval."""
    return lambda row: interval_cell(at(path)(row), digits)


def percentage(path: str, digits: int = 0) -> Read:
    """Return what makes a cell of a share in [0, 1]."""
    return lambda row: percent_cell(at(path)(row), digits)


def share_of(hits: str, size: str) -> Read:
    """Return what makes a cell of a count among a number of cases."""
    return lambda row: share_cell(at(hits)(row), at(size)(row))


def read_all(made: Columns, row: Any) -> dict[str, Any]:
    """Return what a row has of each name; a truth among it stays one."""
    return {name: (at(read) if isinstance(read, str) else read)(row) for name, read in made.items()}


def contents(
    columns: Columns, rows: Iterable[Any], figures: Columns | None = None, key: str = "arm"
) -> dict[str, Any]:
    """Return columns and rows of an exhibit, a row for each value, and its figures where given.

    The names of the figures begin with the row's `key`; a truth is 1.0 or 0.0 among them.
    """
    found = list(rows)
    made = tuple(tuple(read_all(columns, row).values()) for row in found)
    told: dict[str, Any] = {"columns": tuple(columns), "rows": made}
    if figures is None:
        return told
    return told | {
        "figures": {
            f"{at(key)(row)}.{name}": float(value) if isinstance(value, bool) else value
            for row in found
            for name, value in read_all(figures, row).items()
        }
    }


def by_arm(
    found: Iterable[tuple[str, Mapping[str, float | None]]],
) -> dict[str, float | None]:
    """Return the figures of several arms as one mapping: "arm.figure"."""
    return {f"{arm}.{name}": value for arm, figures in found for name, value in figures.items()}
