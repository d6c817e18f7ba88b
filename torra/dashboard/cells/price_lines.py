"""The lines that a chart can draw over the price, and which of them a tick's arguments cite.

The values are those that L1 and the agents saw (torra.dashboard.view.bar_reading). Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from torra.tick.tick_record import TickRecord


class PriceLine(NamedTuple):
    """A choice of the chart: its word, the columns that it draws, and the components made of it."""

    word: str
    columns: tuple[str, ...]
    components: tuple[str, ...] = ()


LINES: Final[Mapping[str, PriceLine]] = {
    "mean20": PriceLine("20-bar exponential mean", ("ema20",), ("pa_trend", "pa_slope")),
    "mean50": PriceLine("50-bar mean", ("sma50",), ("st_medium", "st_long")),
    "mean200": PriceLine("200-bar mean", ("sma200",), ("st_long",)),
    "bollinger": PriceLine("Bollinger bands", ("bb_lower", "bb_upper"), ("kl_bollinger",)),
    "cloud": PriceLine("Cloud", ("span_a", "span_b"), ("kl_cloud",)),
    "levels": PriceLine("Support, resistance", ("support", "resistance"), ("kl_levels",)),
    "swings": PriceLine("Swings", ("swing_low", "swing_high"), ("st_swings", "st_break")),
}

NEAR: Final[Mapping[str, str]] = {
    "technical.support_distance_atr": "levels",
    "technical.resistance_distance_atr": "levels",
    "technical.bb_mid": "bollinger",
    "technical.prev_swing_high": "swings",
    "technical.prev_swing_low": "swings",
}
"""Features that are told by a line without being one of its columns."""

NAMED: Final[Mapping[str, str]] = {
    "the support": "levels",
    "the resistance": "levels",
    "the last swing": "swings",
}
"""Levels as the words of a close name them that would prove a case wrong."""

PART: Final = "component."
TECHNICAL: Final = "technical."


def cited(record: TickRecord, wrong: str = "") -> list[str]:
    """Return the lines that the arguments of a tick cite, in the order of LINES.

    `wrong` is the close that a page names as what proves it wrong: its level is cited too.
    """
    found = {line for name in _features(record) for line in _of(name)}
    found |= {line for level, line in NAMED.items() if level in wrong}
    return [name for name in LINES if name in found]


def _features(record: TickRecord) -> Iterator[str]:
    for report in record.deliberation.reports:
        yield from (one.id for one in (*report.points_for, *report.points_against))
        yield from (one.id for one in report.evidence)


def _of(feature: str) -> Iterator[str]:
    if feature in NEAR:
        yield NEAR[feature]
    for name, line in LINES.items():
        columns = {f"{TECHNICAL}{column}" for column in line.columns}
        parts = {f"{PART}{part}" for part in line.components}
        if feature in columns | parts:
            yield name
