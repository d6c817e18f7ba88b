"""A number from beyond the chart as a row of a page: its parts, and how rank and day are written.

Pure values and functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from torra.exhibits import figures

Block = Literal["macro", "cot", "derivs", "company", "companion", "flow"]


@dataclass(frozen=True, slots=True)
class OutsideRow:
    """A number: its value, its change, its rank (100 is the highest), its origin.

    The rank is among three years; of what a price pays for a company among five, 100 is dearest.
    `day` is what it is about; `old` says that it was too old to count.
    """

    block: Block
    name: str
    value: str
    origin: str
    day: str
    change: str = figures.DASH
    rank: str = figures.DASH
    old: bool = False


class OutsideNumber(NamedTuple):
    """A number of the record: its features, the series that it is made of, and how it is written.

    `span` is the reach of its change in words, `decimals` those of its value; None: by its size.
    """

    block: Block
    name: str
    feature: str
    series: tuple[str, ...]
    change: str = ""
    span: str = ""
    rank: str = ""
    decimals: int | None = 2
    signed: bool = False
    in_a_line: bool = True


class OutsideShown(NamedTuple):
    """What was known: rows of numbers, sentences beside them, and how much it is in a few words."""

    rows: list[OutsideRow]
    notes: list[str]
    brief: str


def ranked(value: object) -> str:
    """Return a rank of 100; a dash where there is none."""
    text = figures.plain(value, 0)
    return text if text == figures.DASH else f"{text} of 100"


def day_of(at: object) -> str:
    """Return what a value is about: a day, or a moment of one."""
    return figures.moment(at).removesuffix(" 00:00 UTC")
