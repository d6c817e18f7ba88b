"""The series of numbers from beside the chart: their names, and what was known of one at a moment.

`SERIES` is the closed vocabulary: yields, the dollar, VIX, the Nasdaq, positions of the CFTC's
reports, and what only a file of one's own brings. A value has `at`, what it is about, and
`known_at`, when the public could know it; a desk has it from its own `first_seen`. `SeriesHistory`
keeps all that was ever said of one series and returns what was known at a moment: of a value that
was revised the newest then known, and nothing that came later. The order in which rows are handed
in does not matter.

Pure values and functions; torra.store.series keeps the rows, torra.outside fetches them,
torra.evidence.outside_readings makes features of them.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, Literal, NamedTuple

SeriesSource = Literal["fred", "cftc", "edgar", "file"]

DAILY: Final = timedelta(days=10)
"""Validity of a daily value: a long weekend, and a day until it is known."""

WEEKLY: Final = timedelta(days=21)
"""Validity of a weekly value: a week, the days until it is known, and a late release."""

MONTHLY: Final = timedelta(days=70)


@dataclass(frozen=True, slots=True)
class OutsideSeries:
    """A series: its name for people, its unit, how long a value is valid, and who has it.

    A value that is older than `valid` at a moment counts as unknown then. `own` is what a name may
    end in, after a dot: a symbol (derivs.funding.BTCUSD) or a currency (yield_2y.EUR).
    """

    says: str
    unit: str
    valid: timedelta
    source: SeriesSource
    own: Literal["", "symbol", "currency"] = ""


class SeriesRow(NamedTuple):
    """One value as a source states it; times are aware and in UTC, `at` of a day is its midnight.

    `source` names who said it: fred, cftc, or the name of a file.
    """

    name: str
    at: datetime
    known_at: datetime
    value: float
    source: str


class StoredRow(NamedTuple):
    """A row with the moment at which this desk saw it first, and its number in the store."""

    row: SeriesRow
    first_seen: datetime
    number: int = 0


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


MARKETS: Final[Mapping[str, str]] = {
    "gold": "managed money in gold",
    "oil": "managed money in crude oil",
    "eur": "leveraged funds in the euro",
    "sp500": "asset managers in the S&P 500",
    "vix": "leveraged funds in VIX futures",
    "btc": "leveraged funds in bitcoin",
}
"""The markets of the CFTC's reports that are read, with the kind of trader that is counted."""

SERIES: Final[Mapping[str, OutsideSeries]] = {
    "DGS2": OutsideSeries("the 2-year US yield", "%", DAILY, "fred"),
    "DGS10": OutsideSeries("the 10-year US yield", "%", DAILY, "fred"),
    "DFII10": OutsideSeries("the 10-year US real yield", "%", DAILY, "fred"),
    "T10YIE": OutsideSeries("the 10-year US breakeven inflation", "%", DAILY, "fred"),
    "VIXCLS": OutsideSeries("VIX", "points", DAILY, "fred"),
    "NASDAQCOM": OutsideSeries("the Nasdaq Composite", "points", DAILY, "fred"),
    "DTWEXBGS": OutsideSeries("the broad dollar index", "points", WEEKLY, "fred"),
    **{
        f"cot.{market}.{part}": OutsideSeries(f"{says}: {what}", "contracts", WEEKLY, "cftc")
        for market, says in MARKETS.items()
        for part, what in (
            ("long", "long positions"),
            ("short", "short positions"),
            ("open_interest", "open interest of the whole market"),
        )
    },
    "yield_2y": OutsideSeries("the 2-year yield of a currency", "%", DAILY, "file", "currency"),
    "inventories": OutsideSeries("the stocks of crude oil", "million barrels", WEEKLY, "file"),
    "fear_greed": OutsideSeries("the fear and greed index", "of 100", DAILY, "file", "symbol"),
    "index_earnings_yield": OutsideSeries("the earnings yield of the index", "%", MONTHLY, "file"),
    "derivs.funding": OutsideSeries("the funding rate", "%", DAILY, "file", "symbol"),
    "derivs.open_interest": OutsideSeries(
        "the open interest", "contracts", DAILY, "file", "symbol"
    ),
    "derivs.long_liquidations": OutsideSeries(
        "the longs liquidated", "USD", DAILY, "file", "symbol"
    ),
    "derivs.short_liquidations": OutsideSeries(
        "the shorts liquidated", "USD", DAILY, "file", "symbol"
    ),
    "derivs.dvol": OutsideSeries("the implied volatility", "%", DAILY, "file", "symbol"),
    "derivs.put_call": OutsideSeries("puts for a call", "x", DAILY, "file", "symbol"),
    "derivs.iv_slope": OutsideSeries(
        "far less near implied volatility", "pp", DAILY, "file", "symbol"
    ),
    "derivs.skew_25d": OutsideSeries("the 25-delta skew", "pp", DAILY, "file", "symbol"),
}
"""Every series by name: FRED's under its own, what a file alone brings under ours."""


PUBLISHERS: Final[Mapping[str, SeriesSource]] = {"fred": "fred", "cftc": "cftc"}
"""Sources that are asked for series; a file is imported."""

EDGAR: Final = "edgar"
"""Who is asked for the figures of companies. Its rows name the filing: edgar 10-K 0000320193-…"""


def kind_of_source(source: str) -> SeriesSource:
    """Return which of the sources brought a row; a file's rows have its name.

    A filing's rows name its form and its number after the source.
    """
    if source.partition(" ")[0] == EDGAR:
        return "edgar"
    return PUBLISHERS.get(source, "file")


FRED: Final = tuple(name for name, series in SERIES.items() if series.source == "fred")
CFTC: Final = tuple(name for name, series in SERIES.items() if series.source == "cftc")


OWN_NAME: Final = re.compile(r"[A-Z0-9][A-Z0-9._-]{0,31}")
CURRENCY: Final = re.compile("[A-Z]{3}")


@lru_cache(maxsize=4096)
def series_of(name: str) -> OutsideSeries | None:
    """Return the series of a name, also of one that ends in its own symbol or currency; or None."""
    if found := SERIES.get(name):
        return None if found.own == "currency" else found
    stem = max((one for one in SERIES if name.startswith(f"{one}.")), key=len, default="")
    found, own = SERIES.get(stem), name.removeprefix(f"{stem}.")
    if found is None or not OWN_NAME.fullmatch(own):
        return None
    if found.own == "currency":
        # The dollar's is published: DGS2.
        return found if CURRENCY.fullmatch(own) and own != "USD" else None
    return found if found.own == "symbol" else None


READ_BACK: Final = timedelta(days=1500)
"""How far back the days of a series reach that anybody reads: a rank goes back three years, and a
change sixty days more.
"""


class SeriesThen(NamedTuple):
    """What was known of a series at a moment: its days, oldest first, and a value of each.

    They reach READ_BACK before the newest.

    `known_at` and `source` are those of the newest day's value.
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


_Statement = tuple[datetime, datetime, bool, int, SeriesRow]
"""A row in the order of knowing: from when it counts, its stamp, a file's last of one stamp."""


class SeriesHistory:
    """All that was ever said of one series; any thread may ask what was known at a moment.

    With `live` a row counts from its first sight too: this desk could not know it before. Without,
    as in a replay, its `known_at` alone counts.
    """

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._lock = threading.Lock()
        self._rows: list[_Statement] = []
        self._moments: list[datetime] = []
        self._counted = 0
        self._ats: list[datetime] = []
        self._newest: list[SeriesRow] = []
        self._values: list[float] = []
        self._then: SeriesThen | None = None

    def add(self, rows: Iterable[StoredRow]) -> None:
        """Add rows; those that are there already may come again."""
        with self._lock:
            known = set(self._rows)
            fresh = {self._moment(one) for one in rows} - known
            if not fresh:
                return
            self._rows = sorted(known | fresh)
            self._moments = [row[0] for row in self._rows]
            self._forget()

    def _moment(self, one: StoredRow) -> _Statement:
        row = one.row
        moment = max(row.known_at, one.first_seen) if self._live else row.known_at
        return moment, row.known_at, kind_of_source(row.source) == "file", one.number, row

    def then(self, as_of: datetime) -> SeriesThen | None:
        """Return what was known at `as_of`; None while nothing was."""
        # Of most series a desk has nothing. Without the lock: `add` puts a whole new list there.
        if not self._moments:
            return None
        with self._lock:
            count = bisect_right(self._moments, as_of)
            if count < self._counted:
                self._forget()
            elif count == self._counted and (self._then is not None or not count):
                return self._then
            for *_, row in self._rows[self._counted : count]:
                self._hear(row)
            self._counted = count
            self._then = self._told()
            return self._then

    def _forget(self) -> None:
        self._counted, self._then = 0, None
        self._ats, self._newest, self._values = [], [], []

    def _hear(self, row: SeriesRow) -> None:
        """Let a row stand for its day, unless a newer statement does already.

        Live, an older one may be seen after a newer one.
        """
        place = bisect_left(self._ats, row.at)
        if place == len(self._ats) or self._ats[place] != row.at:
            self._ats.insert(place, row.at)
            self._newest.insert(place, row)
            self._values.insert(place, row.value)
        elif self._newest[place].known_at <= row.known_at:
            self._newest[place], self._values[place] = row, row.value

    def _told(self) -> SeriesThen | None:
        if not self._ats:
            return None
        begin = bisect_right(self._ats, self._ats[-1] - READ_BACK)
        last = self._newest[-1]
        return SeriesThen(
            tuple(self._ats[begin:]), tuple(self._values[begin:]), last.known_at, last.source
        )
