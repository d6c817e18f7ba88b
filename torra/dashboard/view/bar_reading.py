"""Bars of a stream with the lines that arguments cite, as charts show them.

The lines are columns of `technical_calculator.score_frame`: the values that L1 and the agents saw.
They settle within SETTLED bars, so as many are read before those that are shown. They
are kept until the stream has another bar. Nothing is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from torra.dashboard.view.desk_values import PriceBar
from torra.dashboard.view.kept import LruCache
from torra.store import bars as bar_table

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

Columns = dict[str, list[float | None]]
"""Prices by the name of a column, one for each bar, None where it is not known."""


class BarReading:
    """Reader of the bars of one database, with a cache of their lines."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._columns: LruCache[Columns] = LruCache(KEPT)

    def read(
        self, instance: str, timeframe: str, as_of: datetime, limit: int
    ) -> tuple[list[PriceBar], Columns]:
        """Return the newest `limit` bars that were closed at `as_of`, oldest first, and COLUMNS."""
        wanted = min(limit, MOST)
        rows = bar_table.newest_bars(self._database, instance, timeframe, as_of=as_of, limit=wanted)
        shown = tuple((row["bar_time"], row["revision"]) for row in rows)

        def made() -> Columns:
            every = bar_table.newest_bars(
                self._database, instance, timeframe, as_of=as_of, limit=wanted + SETTLED
            )
            return columns(every, len(rows))

        return price_bars(rows), self._columns.get((instance, timeframe, shown), made)


def price_bars(rows: Iterable[Mapping[str, Any]]) -> list[PriceBar]:
    """Return bars by their rows; a price or volume that is no finite number is None."""
    return [PriceBar(row["bar_time"], *(_number(row[name]) for name in BAR)) for row in rows]


def columns(rows: Sequence[Mapping[str, Any]], newest: int) -> Columns:
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


def _number(value: object) -> float | None:
    return value if isinstance(value, float) and math.isfinite(value) else None


def _is_price(value: object) -> bool:
    return isinstance(value, float) and 0.0 < value <= MOST_OF_ALL


def _is_volume(value: object) -> bool:
    return isinstance(value, float) and 0.0 <= value <= MOST_OF_ALL
