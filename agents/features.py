"""The registry of features: what each is called, its unit and decimals, and which way it leans.

`features.csv` has a row a feature, and everything that names a feature reads it from here. A new
feature is one row, and a value under its id in a block of torra.evidence. The half-sentences that
may be made of it are rows of `phrases`. The columns:

    feature         the id; a `*` stands for what a user, a host or a source names
    unit, decimals  no decimals: it is not rounded, or, of the unit price, as the symbol is quoted
    name            what a sentence calls it; {} is what the `*` stands for; none: the id
    high, low       what a high and a low value mean
    side            which way a value leans (`lean_of`); none: it has no side
    label           a short name for a chart, where the name is too long beside a line
    above           other features that it is also held against: it leans up while it is above them

Pure values and functions. A feature without a row may stand on either side.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from .contracts import Feature

UP: Final = 1
DOWN: Final = -1
EITHER: Final = (UP, DOWN)
NEAR_ATR: Final = 1.0
"""ATR up to which a support or a resistance is near: then it stands on its own side alone."""

WORD_SIDES: Final[Mapping[str, int]] = {
    **dict.fromkeys(("rising", "BULLISH", "STRONG_BULLISH", "trend_up"), UP),
    **dict.fromkeys(("falling", "BEARISH", "STRONG_BEARISH", "trend_down"), DOWN),
}
"""Words of the evidence that lean; all others have no side."""

PRICE: Final = "price"
"""The unit of what has as many decimals as the symbol's prices."""

Features = Mapping[str, Feature]


class Lean(NamedTuple):
    """Which way a value leans: +1, -1, 0 for neither, None where it cannot be decided.

    A `falling` feature leans down where it is high.
    """

    side: Callable[[float, Features], int | None]
    falling: bool = False


class FeatureRow(BaseModel, frozen=True):
    """A row of the registry; an empty cell is the default."""

    unit: str = ""
    decimals: int | None = None
    name: str = ""
    high: str = ""
    low: str = ""
    side: str = ""
    label: str = ""
    above: str = ""


def finite(value: Any) -> float | None:
    """Return a value as a finite number; None where it is none."""
    if type(value) is not float:  # nearly every one is
        # A bool would pass for 0 or 1.
        if value is None or isinstance(value, bool | str):
            return None
        try:
            value = float(value)
        except OverflowError:  # an integer that no float can hold
            return None
    return value if math.isfinite(value) else None


def number(features: Features, name: str) -> float | None:
    """Return a feature's value as a finite number; None when it is absent or no number."""
    feature = features.get(name)
    return None if feature is None else finite(feature.value)


def values_of(features: Features) -> tuple[dict[str, float], dict[str, str]]:
    """Return the features that are finite numbers, and those that are words, by id."""
    numbers, words = {}, {}
    for name, feature in features.items():
        value = feature.value
        if type(value) is float and math.isfinite(value):  # nearly every one
            numbers[name] = value
        elif isinstance(value, str):
            words[name] = value
        elif (real := finite(value)) is not None:
            numbers[name] = real
    return numbers, words


def _sign(value: float) -> int:
    return (value > 0.0) - (value < 0.0)


def _wick(rival: str, way: int) -> Lean:
    """Return the lean of a wick: its way while it is the longer of the two."""

    def side(value: float, features: Features) -> int:
        return way if value > 0.0 and value >= (number(features, rival) or 0.0) else 0

    return Lean(side, way == DOWN)


def _near(way: int) -> Lean:
    return Lean(lambda value, _: way if value <= NEAR_ATR else None, way == UP)


def _real_yield(value: float, features: Features) -> int | None:
    """Return the side of a change of the real yield: against gold, while its own fit holds."""
    relation = features.get("macro.real_yield_relation")
    return -_sign(value) if relation is not None and relation.value == "holds" else None


def _trades(value: float, features: Features) -> int | None:
    """Return the side of a result of trades: their own side if they won."""
    side = features.get("lessons.side")
    way = {"LONG": UP, "SHORT": DOWN}.get(str(side.value)) if side is not None else None
    return None if way is None else way * _sign(value)


ANY: Final = Lean(lambda *_: None)
"""The sense of the value is not known here: it may stand on either side, even without a value."""

BOTH: Final = Lean(lambda *_: None)
"""A value of either side, as strength is followed in a trend and faded in a range."""

LEANS: Final[Mapping[str, Lean | None]] = {
    "": None,
    "any": ANY,
    "both": BOTH,
    "floor": _near(UP),
    "ceiling": _near(DOWN),
    "upper wick": _wick("technical.lower_wick", DOWN),
    "lower wick": _wick("technical.upper_wick", UP),
    "real yield": Lean(_real_yield, falling=True),
    "of its trades": Lean(_trades),
}
"""Sides that only some features have."""


@cache
def lean_of(side: str) -> Lean | None:
    """Return the lean that a cell of the table names: a key of LEANS, or which way, and from where.

    `up` and `down` are from 0, `up from 4.5` is from a number, `down over technical.close` is from
    another feature.
    """
    if side in LEANS:
        return LEANS[side]
    way, _, middle = side.partition(" from ")
    way, _, rival = way.partition(" over ")
    sign, fixed = {"up": UP, "down": DOWN}[way], float(middle or 0.0)

    def leans(value: float, features: Features) -> int | None:
        other = number(features, rival) if rival else fixed
        return None if other is None else sign * _sign(value - other)

    return Lean(leans, sign == DOWN)


def rows_of(table: Path) -> list[dict[str, str]]:
    """Return the rows of a table, CSV in UTF-8, by the names of its columns, "" for a short row."""
    with table.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, restval=""))


ROWS: Final[Mapping[str, FeatureRow]] = {
    row["feature"]: FeatureRow.model_validate({name: cell for name, cell in row.items() if cell})
    for row in rows_of(Path(__file__).with_name("features.csv"))
}
"""Every row by its id."""

_ORDERED: Final = [(feature, other) for feature in ROWS for other in ROWS[feature].above.split()]
_ORDERED_WITH: Final = {
    feature: [pair for pair in _ORDERED if feature in pair] for pair in _ORDERED for feature in pair
}

FEATURES: Final = {feature: row for feature, row in ROWS.items() if row.name and "*" not in feature}
"""The rows that have a name for people and a fixed id."""

COMPONENTS: Final = {
    feature.partition(".")[2]: row.name
    for feature, row in ROWS.items()
    if feature.startswith("component.")
}
"""The parts of the four scores, by name; each lies between -1 and +1 and leans as its sign."""

_FAMILIES: Final = [
    (begin, end, row)
    for feature, row in ROWS.items()
    for begin, star, end in [feature.partition("*")]
    if star
]

UNKNOWN: Final = FeatureRow(side="any")
"""What is known of a feature without a row."""


@lru_cache(maxsize=4096)
def row_of(feature: str) -> FeatureRow:
    """Return the row of a feature, UNKNOWN without one; a family's has the feature's own name."""
    if feature in ROWS:
        return ROWS[feature]
    for begin, end, row in _FAMILIES:
        if feature.startswith(begin) and feature.endswith(end):
            own = feature[len(begin) : len(feature) - len(end)]
            return row.model_copy(update={"name": row.name.format(own)})
    return UNKNOWN


def unit_of(feature: str) -> str:
    """Return the unit of a feature, "" where it has none."""
    return row_of(feature).unit


@cache
def ids_of(block: str) -> list[str]:
    """Return the fixed ids of a block, in the order of the table."""
    return [feature for feature in ROWS if feature.startswith(f"{block}.") and "*" not in feature]


def name_of(feature: str) -> str:
    """Return the name of a feature for people; its id where the table has none."""
    return row_of(feature).name or feature


def label_of(feature: str) -> str:
    """Return the short name of a feature for a chart: its own, or its name without the article."""
    return row_of(feature).label or name_of(feature).removeprefix("the ")


def meaning_of(feature: str) -> str:
    """Return what a high and a low value of a feature mean; "" where it is a word, or unknown."""
    row = row_of(feature)
    return f"high: {row.high}; low: {row.low}" if row.name and row.high else ""


def reading_of(feature: str, side: int) -> str:
    """Return what a value that leans to a side means; "" where the table does not say."""
    row = row_of(feature)
    lean = lean_of(row.side)
    if not row.name or lean is None or lean is BOTH:
        return ""
    return row.high if (side > 0) is not lean.falling else row.low


def sides(feature: str, features: Features) -> tuple[int, ...]:
    """Return the sides for which a feature may be cited as a point; () when it has none.

    A feature without a row may stand for either, and so may one that leans one way by itself and
    the other way in its pair.
    """
    lean, here = lean_of(row_of(feature).side), features.get(feature)
    if lean is ANY:
        return EITHER
    value = None if here is None else here.value
    if lean is None or value is None or isinstance(value, bool):
        return ()
    if lean is BOTH:
        return EITHER
    if isinstance(value, str):
        side: int | None = WORD_SIDES.get(value, 0)
    else:
        side = 0 if finite(value) is None else lean.side(value, features)
    if side is None:
        return EITHER
    leans = {side}
    for high, low in _ORDERED_WITH.get(feature, ()):
        first, second = number(features, high), number(features, low)
        if first is not None and second is not None:
            leans.add(_sign(first - second))
    return tuple(way for way in EITHER if way in leans)
