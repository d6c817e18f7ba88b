"""Histories that are wrong in a way that no door sees, each with words of the sentence about it.

A history is made of shipped bars: with a vendor's filler over weekends, an unadjusted split, or
prices of another scale. `BROKEN` is the table to which every door may be held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

import pandas as pd

from tests.worlds.price_series import sample

PRICES: Final = ["open", "high", "low", "close"]
SPLITS: Final = (2, 3, 4, 5, 7, 8, 10, 15, 20)
SCALES: Final = (20, 50, 100, 1_000)
MARKETS: Final = (("EURUSD", "H1"), ("BTCUSD", "H1"), ("BTCUSD", "M15"))
BARS: Final = 2_000


class Broken(NamedTuple):
    """A broken history: what breaks the bars of a market, and what a sentence about it says."""

    name: str
    symbol: str
    timeframe: str
    change: Callable[[pd.DataFrame], pd.DataFrame]
    says: str

    @property
    def bars(self) -> pd.DataFrame:
        """The broken bars, made anew."""
        return self.change(bars_of(self.symbol, self.timeframe))


def bars_of(symbol: str, timeframe: str) -> pd.DataFrame:
    """Return the newest shipped bars of a market."""
    return sample(f"{symbol}_{timeframe}").iloc[-BARS:]


def filled(bars: pd.DataFrame, volume: float = 0.0) -> pd.DataFrame:
    """Return bars whose every gap is filled with the last close, as some vendors do."""
    step = bars.index.to_series().diff().min()
    found = bars.reindex(pd.date_range(bars.index[0], bars.index[-1], freq=step, name="time"))
    empty = found["close"].isna().to_numpy()
    found["close"] = found["close"].ffill()
    for name in PRICES[:3]:
        found[name] = found[name].fillna(found["close"])
    found.loc[empty, "volume"] = volume
    return found


def split(bars: pd.DataFrame, factor: float, place: int | None = None) -> pd.DataFrame:
    """Return bars whose prices are divided by a factor from a place on, their middle by default."""
    found = bars.copy()
    later = found.index[len(found) // 2 if place is None else place] <= found.index
    found.loc[later, PRICES] /= factor
    return found


def scaled_by(bars: pd.DataFrame, factor: float) -> pd.DataFrame:
    """Return bars whose prices are all multiplied by a factor."""
    found = bars.copy()
    found[PRICES] *= factor
    return found


def _broken() -> Iterator[Broken]:
    yield Broken("filler", "EURUSD", "H1", filled, "Filler bars")
    with_volume = partial(filled, volume=1.0)
    yield Broken("filler-with-volume", "EURUSD", "H1", with_volume, "Filler bars")
    for symbol, timeframe in MARKETS:
        for factor in SPLITS:
            named = f"{symbol}-{timeframe}-{factor}"
            told = f"as in a split of {factor}:1"
            parted, merged = partial(split, factor=factor), partial(split, factor=1 / factor)
            yield Broken(f"split-{named}", symbol, timeframe, parted, told)
            yield Broken(f"merger-{named}", symbol, timeframe, merged, f"split of 1:{factor}")
        for factor in SCALES:
            for times in (factor, 1 / factor):
                name = f"scale-{symbol}-{timeframe}-{times:g}"
                wrong = partial(scaled_by, factor=times)
                yield Broken(name, symbol, timeframe, wrong, "is outside of the usual")


BROKEN: Final = tuple(_broken())
