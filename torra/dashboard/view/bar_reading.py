"""Bars of a stream with the lines that arguments cite, as charts show them.

The lines are columns of `technical_calculator.score_frame`: the values that L1 and the agents saw.
They settle within SETTLED bars, so as many are read before those that are shown. They
are kept until the stream has another bar. Nothing is written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypedDict

from torra.dashboard.view.kept import Kept
from torra.dashboard.view.stream_reading import Json

if TYPE_CHECKING:
    from instance_database import Database

SETTLED: Final = 750
"""Bars from which every column is the same as from the whole history (bar_window)."""

MOST: Final = 2_000
"""Bars that are read for one answer."""

KEPT: Final = 32
"""Charts that are kept: those that people look at."""

COLUMNS: Final = (
    "ema20", "sma50", "sma200", "bb_lower", "bb_upper", "span_a", "span_b", "support",
    "resistance", "swing_low", "swing_high",
)  # fmt: skip
"""Columns of `score_frame` that are prices and can be drawn over a chart."""

MOST_OF_ALL: Final = 1e15
"""No price and no volume is more: what says so is no number."""

BAR: Final = ("open", "high", "low", "close", "volume")


class Drawn(TypedDict):
    """Bars, oldest first, and for each of them the price of each line."""

    bars: list[Json]
    columns: dict[str, list[float | None]]


class BarReading:
    """Reader of the bars of one database, with a cache of their lines."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._columns: Kept[dict[str, list[float | None]]] = Kept(KEPT)

    def read(self, instance: str, timeframe: str, as_of: datetime, limit: int) -> Drawn:
        """Return the newest `limit` bars that were closed at `as_of`, oldest first.

        {"bars": [{time, open, high, low, close, volume}], "columns": {name: [price or None]}}; a
        column has a value for each bar, None where it is not known.
        """
        wanted = min(limit, MOST)
        rows = self._database.newest_bars(instance, timeframe, as_of=as_of, limit=wanted)
        shown = tuple((row["bar_time"], row["revision"]) for row in rows)

        def made() -> dict[str, list[float | None]]:
            every = self._database.newest_bars(
                instance, timeframe, as_of=as_of, limit=wanted + SETTLED
            )
            return columns(every, len(rows))

        kept = self._columns.get((instance, timeframe, shown), made)
        bars: list[Json] = [
            {"time": row["bar_time"], **{name: row[name] for name in BAR}} for row in rows
        ]
        return {"bars": bars, "columns": kept}


def columns(rows: Sequence[Mapping[str, Any]], newest: int) -> dict[str, list[float | None]]:
    """Return COLUMNS of the `newest` of some bars, None where a value is not known."""
    # Here: a page alone must not load the indicators.
    import pandas as pd  # noqa: PLC0415

    from technical_calculator import WARM_UP, score_frame  # noqa: PLC0415

    # The feeds' door lets no other in; a file that somebody changed may have it all the same.
    whole = all(_is_price(row[name]) for row in rows for name in BAR[:-1])
    if len(rows) < WARM_UP or not whole or not all(_is_volume(row["volume"]) for row in rows):
        return {name: [None] * newest for name in COLUMNS}
    frame = score_frame(pd.DataFrame([{name: row[name] for name in BAR} for row in rows]))
    return {
        name: [value if math.isfinite(value) else None for value in frame[name].tolist()[-newest:]]
        for name in COLUMNS
    }


def _is_price(value: object) -> bool:
    return isinstance(value, float) and 0.0 < value <= MOST_OF_ALL


def _is_volume(value: object) -> bool:
    return isinstance(value, float) and 0.0 <= value <= MOST_OF_ALL
