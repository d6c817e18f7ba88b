"""The lines that a chart can draw over the price, and which of them a tick's arguments cite.

The values are those that L1 and the agents saw (torra.dashboard.view.bar_reading). Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from torra.tick.tick_record import TickRecord


class PriceLine(NamedTuple):
    """A choice of the chart: its word, the columns that it draws, and what else cites it.

    `features` are those that speak of the line without being one of its columns, `levels` its words
    in a close that would prove a case wrong.
    """

    word: str
    columns: tuple[str, ...]
    features: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()


LINES: Final[Mapping[str, PriceLine]] = {
    "mean20": PriceLine(
        "20-bar exponential mean", ("ema20",), ("component.pa_trend", "component.pa_slope")
    ),
    "mean50": PriceLine("50-bar mean", ("sma50",), ("component.st_medium", "component.st_long")),
    "mean200": PriceLine("200-bar mean", ("sma200",), ("component.st_long",)),
    "bollinger": PriceLine(
        "Bollinger bands", ("bb_lower", "bb_upper"), ("component.kl_bollinger", "technical.bb_mid")
    ),
    "cloud": PriceLine("Cloud", ("span_a", "span_b"), ("component.kl_cloud",)),
    "levels": PriceLine(
        "Support, resistance",
        ("support", "resistance"),
        (
            "component.kl_levels",
            "technical.support_distance_atr",
            "technical.resistance_distance_atr",
        ),
        ("the support", "the resistance"),
    ),
    "swings": PriceLine(
        "Swings",
        ("swing_low", "swing_high"),
        (
            "component.st_swings",
            "component.st_break",
            "technical.prev_swing_high",
            "technical.prev_swing_low",
        ),
        ("the last swing",),
    ),
}


def cited(record: TickRecord, wrong: str = "") -> list[str]:
    """Return the lines that the arguments of a tick cite, in the order of LINES.

    `wrong` is the close that a page names as what proves it wrong: its level is cited too.
    """
    features = {
        point.id
        for report in record.deliberation.reports
        for points in (report.points_for, report.points_against, report.evidence)
        for point in points
    }
    return [
        name
        for name, line in LINES.items()
        if any(f"technical.{column}" in features for column in line.columns)
        or not features.isdisjoint(line.features)
        or any(level in wrong for level in line.levels)
    ]
