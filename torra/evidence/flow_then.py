"""The order flow of a replay: rows of each bar as values, each from the close of its bar.

`known` gives them to ticks as a live feed does, `older` makes the placebo of them and
`with_other_future` another future. torra.replay.outlook_then reads what a desk has stored. Pure
functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from numpy.random import Generator

from torra.clock import duration
from torra.evidence.flow_readings import LEFT_OUT, Flow, FlowRow, FlowThen
from torra.evidence.news_digest import NewsStatus

FlowRows = Mapping[str, tuple[FlowRow, ...]]
"""Rows by timeframe, oldest first."""

STORED: Final = "store"
"""The source of order flow that a desk has kept."""


def known(flow: FlowRows) -> Flow:
    """Return the function that gives the rows of bars by their open times."""
    by_time = {name: {row.bar_time: row for row in rows} for name, rows in flow.items()}

    def then(timeframe: str, times: Sequence[datetime]) -> FlowThen:
        stored = by_time.get(timeframe, {})
        rows = {time: stored[time] for time in times if time in stored}
        status = str(NewsStatus.AVAILABLE) if times[-1] in rows else LEFT_OUT
        return FlowThen(rows, status, STORED)

    return then


def name_of(timeframe: str) -> str:
    """Return what the order flow of a timeframe is called among the series."""
    return f"order flow of {timeframe}"


def older(flow: FlowRows, shift: timedelta, short: Sequence[str]) -> FlowRows:
    """Return each bar's row as that of the bar so much before; without those that are too short."""
    return {
        name: tuple(row._replace(bar_time=row.bar_time + shift) for row in rows)
        for name, rows in flow.items()
        if name_of(name) not in short
    }


def with_other_future(flow: FlowRows, as_of: datetime, rng: Generator) -> FlowRows:
    """Return it with other values for all bars that were not closed at a moment."""
    return {
        name: tuple(
            row if row.bar_time + duration(name) <= as_of else _other(row, rng) for row in rows
        )
        for name, rows in flow.items()
    }


def _other(row: FlowRow, rng: Generator) -> FlowRow:
    """Return another row of a bar; what has no book has none there either."""
    numbers: dict[str, Any] = {
        name: int(rng.integers(1, 1000)) if isinstance(value, int) else float(rng.uniform(1e-3, 1))
        for name, value in row._asdict().items()
        if isinstance(value, int | float)
    }
    return row._replace(**numbers)
