"""Which side an argument stands on, by the evidence and not by its words.

A report's own side is that of its numbers, an advocate's that of its office. A point for it must
cite a fact that leans to that side, a point against it one that leans to the other. One that stands
in the wrong field moves to the other one, in the table's words instead of its own, which argued the
wrong way; one whose fact is not true, or has no side, goes. Prose is never read.

A claim that says the same as another agent's of the same tick is not a claim (`distinct`).

A falsifier stands while it does not hold yet and lies on the path of price: on the right side of
the close, and not further off than `FAR_ATR`.

Pure functions; nothing raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from agent_config import FOCUS_WEIGHT

from .contracts import (
    SCORE_DECIMALS,
    SIDES,
    AgentReport,
    Falsifier,
    Feature,
    Focus,
    Point,
    Role,
)
from .evidence import citation_holds
from .features import name_of, number, reading_of, sides

CLAIM_WORDS: Final = 25
"""Most words of a claim; what is longer is cut."""

FOR: Final = 4
"""Points for a report."""

AGAINST: Final = 2
"""Points that a report grants."""

FALSIFIERS: Final = 3
"""Falsifiers of a case."""

LONGEST_BARS: Final = 96
"""Bars within which a falsifier may come true: a day of 15 minutes."""

FAR_ATR: Final = 4.0
FAR_SHARE: Final = 0.05
"""ATR beyond which a level is not on the path of price; share of the close without an ATR."""

NEAREST_ATR: Final = 0.1
"""ATR up to which a level is where price is: passing it proves nothing."""

FINEST: Final = 0.05
"""Share of an ATR that a price has to show."""

REPEATED: Final = "repeated"
"""Flag of a report whose claim another one of the same tick had made."""

CLOSE: Final = "technical.close"
ATR: Final = "technical.atr14"
PLAIN_UNITS: Final = frozenset({"", "price"})


class SortedPoints(NamedTuple):
    """The points of a report on their sides, and whether any stood on a wrong one or on none."""

    points_for: tuple[Point, ...]
    points_against: tuple[Point, ...]
    misplaced: bool


def leaning(role: Role, adjustments: Mapping[str, float | None]) -> int:
    """Return the side of a report: +1, -1, or 0 for none; an advocate's is its office."""
    return SIDES[role.id] if role.id in SIDES else way(adjustments, role.focus)


def way(adjustments: Mapping[str, float | None], focus: Mapping[str, Focus]) -> int:
    """Return which way adjustments push on the whole: +1, -1, 0 for nowhere."""
    push = math.fsum(
        FOCUS_WEIGHT[focus[vector]] * value
        for vector, value in adjustments.items()
        if value is not None and vector in focus
    )
    # Moves have so few decimals that what is left of a balance is the machine's.
    push = round(push, SCORE_DECIMALS)
    return (push > 0.0) - (push < 0.0)


def sort_points(
    side: int,
    told_for: Iterable[Point],
    told_against: Iterable[Point],
    features: Mapping[str, Feature],
) -> SortedPoints:
    """Return the points of a report of a side, each in its field; those in place come first."""
    fields: dict[int, list[Point]] = {1: [], -1: []}
    moved: dict[int, list[Point]] = {1: [], -1: []}
    dropped = False
    for field, told in ((1, told_for), (-1, told_against)):
        for point in told:
            leans = _leans(point, features)
            if not leans:
                dropped = True
            elif side == 0:
                # a report without a side has its points where it put them
                fields[field].append(_on_side(point, leans[0] if len(leans) == 1 else 0))
            elif side * field in leans:
                fields[field].append(_on_side(point, side * field))
            else:
                moved[-field].append(_in_plain_words(point, leans[0], features))
    return SortedPoints(
        (*fields[1], *moved[1])[:FOR],
        (*fields[-1], *moved[-1])[:AGAINST],
        misplaced=dropped or any(moved.values()),
    )


def flag_repeated_claims(reports: Iterable[AgentReport]) -> tuple[AgentReport, ...]:
    """Return the reports, those flagged whose claim one before them has made."""
    made: set[str] = set()
    told = []
    for report in reports:
        # in other punctuation or case it is the same claim, with another number it is not
        words = " ".join(re.findall(r"[+−-]?\d+(?:[.,]\d+)*|\w+", report.claim)).casefold()
        if words and words in made:
            told.append(replace(report, flags=(*report.flags, REPEATED)))
        else:
            made.add(words)
            told.append(report)
    return tuple(told)


def standing(
    told: Iterable[Falsifier], side: int, features: Mapping[str, Feature]
) -> Iterator[Falsifier]:
    """Yield the falsifiers of a case for a side that have not come and may come.

    None of them can be judged without a close.
    """
    close, atr = number(features, CLOSE), number(features, ATR)
    if close is None or not side:
        return
    near = FAR_ATR * atr if atr else FAR_SHARE * abs(close)
    for one in told:
        if (one.close == "below") is not (side > 0) or not 0 < one.bars <= LONGEST_BARS:
            continue
        # as it is written: rounded, it may lie on the other side of the close
        written = float(format_price(one.level, features).replace(",", ""))
        if written > 0.0 and (NEAREST_ATR * atr if atr else 0.0) < side * (close - written) <= near:
            yield one


def ending(one: Falsifier, features: Mapping[str, Feature]) -> str:
    """Return a falsifier in words."""
    price = format_price(one.level, features)
    bars = "bar" if one.bars == 1 else f"{one.bars} bars"
    named = f", {one.what}" if one.what else ""
    return f"a close {one.close} {price}{named}, in the next {bars}"


def format_price(price: float, features: Mapping[str, Feature]) -> str:
    """Return a price with the decimals of the symbol; eight digits where these are not known."""
    quoted, atr = features.get(CLOSE), number(features, ATR)
    decimals = None if quoted is None else quoted.decimals
    if decimals is None:
        return f"{price:,.8g}"
    # A bundle shows two decimals more than its symbol is quoted with, a host perhaps none more.
    step = FINEST * (atr or 0.0)  # 0 too for an ATR that no float can take a share of
    fine = math.ceil(-math.log10(step)) if step > 0.0 else decimals
    return f"{price:,.{min(decimals, max(0, decimals - 2, fine))}f}"


def _leans(point: Point, features: Mapping[str, Feature]) -> tuple[int, ...]:
    """Return the sides that a point may stand on; () for none, or when its fact is not true."""
    if not citation_holds(features.get(point.id), point.value):
        return ()
    return sides(point.id, features)


def _on_side(point: Point, side: int) -> Point:
    return Point(point.says, point.id, point.value, point.why, side)


def _in_plain_words(point: Point, side: int, features: Mapping[str, Feature]) -> Point:
    """Return a point as the fact that it cites and what the table says that this means."""
    feature, name = features[point.id], name_of(point.id)
    value = feature.value
    if isinstance(value, str):
        told = value.replace("_", " ").lower()
    elif value is None or feature.decimals is None:
        told = f"{value:.4g}"
    elif feature.unit in PLAIN_UNITS and name_of(point.id) != point.id:
        told = format_price(value, features)
    else:
        told = f"{value:,.{max(0, feature.decimals)}f}"
    unit = "" if feature.unit in PLAIN_UNITS else f" {feature.unit}"
    says = f"{name[:1].upper()}{name[1:]} at {told}{unit}"
    return Point(says, point.id, point.value, reading_of(point.id, side), side)
