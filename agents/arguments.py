"""Which side an argument is on, by the evidence and not by its words.

A report's own side is that of its numbers; an advocate's is that of its office. A point for it must
cite a fact that leans to that side, a point against it one that leans to the other. A point whose
fact leans the other way is moved to the other list and reworded from the registry. A point whose
fact is false or has no side is dropped. Prose is never read.

A claim that another agent of the same tick has made is flagged (`flag_repeated_claims`).

A falsifier is pending while it has not come and lies on the path of price: on the right side of the
close, and within FAR_ATR.

Pure functions; nothing raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from agent_config import FOCUS_WEIGHT

from .contracts import SCORE_DECIMALS, SIDES, AgentReport, Falsifier, Feature, Focus, Point, Role
from .evidence import citation_holds
from .features import Features, name_of, number, reading_of, sides

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


def report_side(role: Role, adjustments: Mapping[str, float | None]) -> int:
    """Return the side of a report: +1, -1, or 0 for none; an advocate's is its office."""
    return SIDES[role.id] if role.id in SIDES else net_side(adjustments, role.focus)


def net_side(adjustments: Mapping[str, float | None], focus: Mapping[str, Focus]) -> int:
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
    points_for: Iterable[Point],
    points_against: Iterable[Point],
    features: Features,
) -> tuple[tuple[Point, ...], tuple[Point, ...], bool]:
    """Return the points for and against a side, those in place first, and whether any was not."""
    kept: dict[int, list[Point]] = {1: [], -1: []}
    moved: dict[int, list[Point]] = {1: [], -1: []}
    dropped = False
    for field, points in ((1, points_for), (-1, points_against)):
        for point in points:
            holds = citation_holds(features.get(point.id), point.value)
            leans = sides(point.id, features) if holds else ()
            if not leans:
                dropped = True
            elif side == 0:
                # a report without a side has its points where it put them
                kept[field].append(point._replace(side=leans[0] if len(leans) == 1 else 0))
            elif side * field in leans:
                kept[field].append(point._replace(side=side * field))
            else:
                moved[-field].append(_reworded(point, leans[0], features[point.id], features))
    misplaced = dropped or any(moved.values())
    return (*kept[1], *moved[1])[:FOR], (*kept[-1], *moved[-1])[:AGAINST], misplaced


def flag_repeated_claims(reports: Iterable[AgentReport]) -> tuple[AgentReport, ...]:
    """Return the reports, those flagged whose claim a report before them has made."""
    claims: set[str] = set()
    flagged = []
    for report in reports:
        # in other punctuation or case it is the same claim, with another number it is not
        claim = " ".join(re.findall(r"[+−-]?\d+(?:[.,]\d+)*|\w+", report.claim)).casefold()
        if claim and claim in claims:
            report = replace(report, flags=(*report.flags, REPEATED))  # noqa: PLW2901
        claims.add(claim)
        flagged.append(report)
    return tuple(flagged)


def pending_falsifiers(
    falsifiers: Iterable[Falsifier], side: int, features: Features
) -> list[Falsifier]:
    """Return the falsifiers of a side that may still come; none can be judged without a close."""
    close, atr = number(features, CLOSE), number(features, ATR)
    if close is None or not side:
        return []
    far = FAR_ATR * atr if atr else FAR_SHARE * abs(close)
    near, form, pending = NEAREST_ATR * (atr or 0.0), _price_form(features), []
    for falsifier in falsifiers:
        right_way = (falsifier.close == "below") is (side > 0)
        # as it is written: rounded, it may lie on the other side of the close
        level = float(format(falsifier.level, form).replace(",", ""))
        on_path = level > 0.0 and near < side * (close - level) <= far
        if right_way and on_path and 0 < falsifier.bars <= LONGEST_BARS:
            pending.append(falsifier)
    return pending


def falsifier_text(falsifier: Falsifier, features: Features) -> str:
    """Return a falsifier in words."""
    price = format_price(falsifier.level, features)
    bars = "bar" if falsifier.bars == 1 else f"{falsifier.bars} bars"
    named = f", {falsifier.what}" if falsifier.what else ""
    return f"a close {falsifier.close} {price}{named}, in the next {bars}"


def format_price(price: float, features: Features) -> str:
    """Return a price with the decimals of the symbol; eight digits where these are not known."""
    return format(price, _price_form(features))


def _price_form(features: Features) -> str:
    quoted, atr = features.get(CLOSE), number(features, ATR)
    decimals = None if quoted is None else quoted.decimals
    if decimals is None:
        return ",.8g"
    # A bundle shows two decimals more than its symbol is quoted with, a host perhaps none more.
    step = FINEST * (atr or 0.0)  # 0 too for an ATR that no float can take a share of
    fine = math.ceil(-math.log10(step)) if step > 0.0 else decimals
    return f",.{min(decimals, max(0, decimals - 2, fine))}f"


def _reworded(point: Point, side: int, feature: Feature, features: Features) -> Point:
    """Return a point as the fact that it cites and what the registry says that this means."""
    value, name = feature.value, name_of(point.id)
    if isinstance(value, str):
        text = value.replace("_", " ").lower()
    elif value is None or feature.decimals is None:
        text = f"{value:.4g}"
    elif feature.unit in PLAIN_UNITS and name != point.id:
        text = format_price(value, features)
    else:
        text = f"{value:,.{max(0, feature.decimals)}f}"
    unit = "" if feature.unit in PLAIN_UNITS else f" {feature.unit}"
    says = f"{name[:1].upper()}{name[1:]} at {text}{unit}"
    return Point(says, point.id, point.value, reading_of(point.id, side), side)
