"""The invented sample of the demo: what no shipped bar holds, so that every seat has evidence.

It is no data of any market. Spreads, order flow, outside series, one companion and headlines are
arithmetic on bars and days that were closed at the moment asked for: the same bars give the same
numbers, without chance and without a look ahead. Nothing of it is stored. A tick that reads it says
`invented` in its record, and nothing that counts agents or teaches a lesson takes such a tick in.
A feed that fails raises DataUnavailable, as for the bars themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from torra.clock import duration, iso, parse
from torra.evidence import companion_readings, flow_readings, news_digest, outside_readings
from torra.evidence.outside_numbers import SeriesThen
from torra.market import spreads
from torra.market.bar_view import BarView

SOURCE: Final = "invented"
COMPANION: Final = "invented_index"
"""Own name of the companion, as agents and pages call it."""

SERIES: Final = {
    "DGS2": (0.5, 0.2),
    "DGS10": (1.5, 0.3),
    "yield_2y.EUR": (-0.6, 0.1),
    "DTWEXBGS": (115.0, -2.0),
    "NASDAQCOM": (15_500.0, 600.0),
    "VIXCLS": (19.0, -4.0),
    "fear_greed": (50.0, 30.0),
}
"""Middle and swing of each outside series, in its own unit."""

TURNS: Final = 20.0
"""Radians of a series' wave for a change of the close by a factor of e."""

DAYS: Final = timedelta(days=120)
"""How far back a series has days: enough for a change over 60 of them."""

LEAST_SPREAD: Final = 1e-4
"""Spread of a bar that does not move, as a share of its close."""

BACK: Final = 6
"""Bars over which a headline tells a move, and hours from one headline to the next."""

HEADLINE_BARS: Final = 72
MOST_HEADLINES: Final = 4


@dataclass(frozen=True, slots=True)
class InventedSample:
    """The invented numbers of a symbol, of the bars of its feed (torra.feeds.protocol.Feed.bars).

    `shortest` is its shortest timeframe, by whose bars headlines tell of moves.
    """

    feed_bars: Callable[..., pd.DataFrame]
    subject: news_digest.NewsSubject
    shortest: str

    def spreads(self, bars: BarView, *, by_hour: bool = False) -> spreads.SpreadView:
        """Return what the invented spreads of such bars tell (torra.market.spreads.spread_view)."""
        return spreads.spread_view(_shape(bars)[:, 2], bars.times if by_hour else None)

    def flow(self, timeframe: str, times: Sequence[datetime]) -> flow_readings.FlowThen:
        """Return the invented order flow of bars by their open times."""
        close = times[-1] + duration(timeframe)
        bars = BarView.of(self.feed_bars(self.subject.symbol, timeframe, close, len(times)))
        rows = {}
        shapes = zip(bars.newest_times(len(bars)), _shape(bars).tolist(), strict=True)
        for opened, (price, place, spread) in shapes:
            ticks = int(1e6 * spread / price)
            up = round(ticks * place)
            rows[opened] = flow_readings.FlowRow(
                opened, ticks, up, ticks - up, spread, 2.0 * spread, imbalance=place - 0.5
            )
        return flow_readings.FlowThen(rows, source=SOURCE)

    def outside(
        self, as_of: datetime, closes: outside_readings.ClosesOf
    ) -> outside_readings.OutsideView:
        """Return the invented outside numbers: waves over the symbol's own whole days.

        A day's value is known when the day is over.
        """
        days = closes(DAYS)
        ats = tuple(datetime.combine(day, time(), UTC) for day, _ in days)
        waves = [math.sin(TURNS * math.log(price)) for _, price in days]
        then = {
            name: SeriesThen(
                ats,
                tuple(middle + swing * wave for wave in waves),
                ats[-1] + timedelta(days=1),
                SOURCE,
            )
            for name, (middle, swing) in SERIES.items()
            if ats
        }
        return outside_readings.read(self.subject, then.get, as_of)

    def begin(self, timeframe: str, as_of: datetime) -> None:
        """Do nothing: the companion is made when it is asked for."""

    def known(self, timeframe: str, as_of: datetime, bars: BarView) -> outside_readings.OutsideView:
        """Return what is read of the invented companion, an index that goes with the symbol."""
        close, place, _ = _shape(bars).T
        index = close**0.4 * (1.0 + 0.002 * place)
        companion = companion_readings.CompanionBars(SOURCE, bars.times, index)
        return companion_readings.read({COMPANION: companion}, timeframe, as_of, bars)

    def news(self, as_of: datetime) -> news_digest.NewsView:
        """Return the invented headlines: each tells a move of the symbol's own bars."""
        symbol, names = self.subject.symbol, []
        bars = BarView.of(self.feed_bars(symbol, self.shortest, as_of, HEADLINE_BARS))
        closes = bars.newest("close", len(bars))
        for at, opened in enumerate(bars.newest_times(len(bars) - BACK)):
            closed = opened + duration(self.shortest)
            if closed.hour % BACK == closed.minute == 0:
                moved = 100.0 * (closes[at + BACK] / closes[at] - 1.0)
                names.append(f"Invented {iso(closed)} {symbol} moves {moved:+.2f} % in {BACK} bars")
        return news_digest.view(
            headlines(names),
            self.subject,
            as_of=as_of,
            status=news_digest.NewsStatus.AVAILABLE,
            max_age_hours=HEADLINE_BARS,
            half_life_hours=12.0,
            max_items=MOST_HEADLINES,
        )


def headlines(names: Iterable[str]) -> Iterator[news_digest.NewsItem]:
    """Yield invented headlines by their ids, which are their texts; other ids are left out.

    No store has them, so a record's ids are what is left of them.
    """
    for name in names:
        with suppress(ValueError):
            _, time_text, symbol, _, moved, *_ = name.split()
            moment, score = parse(time_text), math.tanh(float(moved))
            yield news_digest.NewsItem(
                name, SOURCE, SOURCE, name, moment, moment, score, tickers=(symbol,)
            )


def _shape(bars: BarView) -> NDArray[np.float64]:
    """Return a row for each bar: its close, the close's place in its range, a spread.

    The place lies from 0 (its low) to 1; the spread grows with the range.
    """
    high, low, close = (np.array(bars.newest(name, len(bars))) for name in ("high", "low", "close"))
    spread = LEAST_SPREAD * close + 0.02 * (high - low)
    place = (close - low + spread) / (high - low + 2.0 * spread)
    return np.column_stack((close, place, spread))
