"""The series of numbers from beside the chart: their names, and what was known of one at a moment.

`SERIES` is the closed vocabulary: yields, the dollar, VIX, the Nasdaq, positions of the CFTC's
reports, and what only a file of one's own brings. A value has `at`, what it is about, and
`known_at`, when the public could know it; a desk has it from its own `first_seen`. A `RowHistory`
keeps all that was ever reported and returns what was known at a moment: of a value that was revised
the newest then known, and nothing that came later. The order in which rows are handed in does not
matter.

Pure values and functions; torra.store.series keeps the rows, torra.outside fetches them,
torra.evidence.outside_readings makes features of them.
"""

from __future__ import annotations

import math
import re
import threading
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache, partial
from operator import gt
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from agents.features import rows_of

Closes = Sequence[tuple[date, float]]
"""Closes of whole days, UTC, oldest first."""


class OutsideSeries(NamedTuple):
    """A series: its name for people, its unit, how long a value is valid, and who has it.

    A value that is older than `valid` at a moment counts as unknown then. `source` is fred, cftc or
    file. `own` is what a name may end in, after a dot: "symbol" (derivs.funding.BTCUSD), "currency"
    (yield_2y.EUR), or "" for nothing.
    """

    says: str
    unit: str
    valid: timedelta
    source: str
    own: str


class SeriesRow(NamedTuple):
    """One value as a source states it; times are aware and in UTC, `at` of a day is its midnight.

    `source` names who said it: fred, cftc, or the name of a file.
    """

    name: str
    at: datetime
    known_at: datetime
    value: float
    source: str


class FactRow(NamedTuple):
    """One figure of a company as it was reported: `begins` to `ends` is its period.

    Of a figure that holds at a day, as total assets do, both are that day. Times are UTC.
    """

    ticker: str
    figure: str
    begins: datetime
    ends: datetime
    known_at: datetime
    value: float
    unit: str
    source: str


Row = TypeVar("Row", SeriesRow, FactRow)
Then = TypeVar("Then")


class Stored(NamedTuple, Generic[Row]):
    """A row with the moment at which this desk saw it first, and its number in the store."""

    row: Row
    first_seen: datetime
    number: int = 0


StoredRow = Stored[SeriesRow]
StoredFact = Stored[FactRow]

MARKETS: Final = {row["name"]: row for row in rows_of(Path(__file__).with_name("markets.csv"))}
"""The markets of the CFTC's reports that are read, by name.

`says` names the kind of trader that is counted: it follows prices with borrowed money, of the S&P
500 it is the asset managers. `code` is the contract market code, `report` the table of the CFTC,
`sides` its columns of long and short positions. They are COMEX gold, NYMEX WTI, euro FX, E-mini S&P
500, Cboe VIX and CME Bitcoin.
"""

SERIES: Final[Mapping[str, OutsideSeries]] = {
    row["name"]: OutsideSeries(
        row["says"],
        row["unit"],
        timedelta(days=int(row["valid_days"])),
        row["source"],
        row["own"],
    )
    for row in rows_of(Path(__file__).with_name("series.csv"))
}
"""Every series by name: FRED's under its own, what a file alone brings under ours.

A daily value is valid for ten days: a long weekend, and a day until it is known. A weekly one for a
week, the days until it is known, and a late release.
"""

PUBLISHERS: Final = ("fred", "cftc")
"""Sources that are asked for series; a file is imported."""

EDGAR: Final = "edgar"
"""Who is asked for the figures of companies. Its rows name the filing: edgar 10-K 0000320193-…"""


def kind_of_source(source: str) -> str:
    """Return which source brought a row: fred, cftc, edgar or file.

    A filing's rows name its form and its number after the source, a file's rows have its name.
    """
    if source.partition(" ")[0] == EDGAR:
        return EDGAR
    return source if source in PUBLISHERS else "file"


FRED: Final = tuple(name for name, series in SERIES.items() if series.source == "fred")
CFTC: Final = tuple(name for name, series in SERIES.items() if series.source == "cftc")


OWN_NAMES: Final = {
    "symbol": re.compile(r"[A-Z0-9][A-Z0-9._-]{0,31}"),
    "currency": re.compile("(?!USD)[A-Z]{3}"),
}
"""What a name may end in; the dollar's own yield is published: DGS2."""


@lru_cache(maxsize=4096)
def series_of(name: str) -> OutsideSeries | None:
    """Return the series of a name, also of one that ends in its own symbol or currency; or None."""
    if series := SERIES.get(name):
        return None if series.own == "currency" else series
    stem = max((known for known in SERIES if name.startswith(f"{known}.")), key=len, default="")
    series = SERIES.get(stem)
    own = OWN_NAMES.get(series.own) if series else None
    return series if own and own.fullmatch(name.removeprefix(f"{stem}.")) else None


READ_BACK: Final = timedelta(days=1500)
"""How far back the days of a series reach that anybody reads: a rank goes back three years, and a
change sixty days more.
"""


class SeriesThen(NamedTuple):
    """What was known of a series at a moment: its days, oldest first, and a value of each.

    They reach READ_BACK before the newest. `known_at` and `source` are those of the newest value.
    """

    ats: tuple[datetime, ...]
    values: tuple[float, ...]
    known_at: datetime
    source: str

    @property
    def at(self) -> datetime:
        """What the newest value is about."""
        return self.ats[-1]

    @property
    def value(self) -> float:
        """The newest value."""
        return self.values[-1]


class RowHistory(Generic[Row, Then]):
    """All that was ever reported of one thing; any thread may ask what was known at a moment.

    With `live` a row counts from its first sight too: this desk could not know it before. Without,
    as in a replay, its `known_at` alone counts.
    """

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._lock = threading.Lock()
        self._rows: list[tuple[Stored[Row], datetime]] = []
        self._moments: list[datetime] = []
        self._last: tuple[list[datetime], int, Then] = self._moments, 0, self._snapshot([])

    def add(self, rows: Iterable[Stored[Row]]) -> None:
        """Add rows; those that are there already may come again."""
        with self._lock:
            known = dict(self._rows)
            known.update((stored, self._moment(stored)) for stored in rows)
            if len(known) > len(self._rows):
                self._rows = sorted(known.items(), key=lambda pair: self._order(pair[0]))
                # Whole new lists: `then` needs no lock.
                self._moments = sorted(known.values())

    def then(self, as_of: datetime) -> Then:
        """Return what was known at `as_of`; the very same object while nothing new is."""
        moments, count, then = self._last
        now = self._moments
        known = bisect_right(now, as_of)
        if now is not moments or known != count:
            then = self._snapshot([stored.row for stored, at in self._rows if at <= as_of])
            self._last = now, known, then
        return then

    def _moment(self, stored: Stored[Row]) -> datetime:
        known = stored.row.known_at
        return max(known, stored.first_seen) if self._live else known

    def _order(self, stored: Stored[Row]) -> tuple[Any, ...]:
        """Return the order of the public's knowing; of one moment a file has the last word."""
        row = stored.row
        return row.known_at, kind_of_source(row.source) == "file", stored.number

    def _snapshot(self, rows: Sequence[Row]) -> Then:
        """Return what some rows, in their order, come to."""
        raise NotImplementedError


class SeriesHistory(RowHistory[SeriesRow, SeriesThen | None]):
    """All that was ever said of one series; nothing of it is None."""

    def _order(self, stored: StoredRow) -> tuple[Any, ...]:
        """Return the order of knowing; live, an older statement may be seen after a newer one."""
        known, *rest = super()._order(stored)
        return known, self._moment(stored), *rest, stored.row

    def _snapshot(self, rows: Sequence[SeriesRow]) -> SeriesThen | None:
        newest = {row.at: row for row in rows}
        if not newest:
            return None
        begin, last = max(newest) - READ_BACK, newest[max(newest)]
        days = sorted(at for at in newest if at > begin)
        values = tuple(newest[at].value for at in days)
        return SeriesThen(tuple(days), values, last.known_at, last.source)


def rank_of(value: float, values: Sequence[float]) -> float:
    """Return the rank of a value among some, of 100: 100 (below + equal / 2) / n."""
    below: int = sum(map(partial(gt, value), values))
    return 100.0 * (below + values.count(value) / 2.0) / len(values)


def deviations(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float, float]:
    """Return the sums of squares of two rows about their means, and of their products."""
    mean_x, mean_y = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    return (
        math.fsum((x - mean_x) ** 2 for x in xs),
        math.fsum((y - mean_y) ** 2 for y in ys),
        math.fsum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)),
    )
