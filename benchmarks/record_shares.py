"""How often L1 says BUY and SELL, upside down too: `python -m benchmarks.record_shares`.

Without arguments of the shipped bars; else `SYMBOL FILE...`, a file of bars (gzip or plain) for
each timeframe, named SYMBOL_TIMEFRAME... as those of sample_data. A lone M15 file is put together
to H1 too. Every valid tick is counted, with the shipped weights and thresholds, for each
`record_score`. docs/scores.md quotes it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ath_calculator import RecordScore
from benchmarks.desk_shares import plain
from torra.config import ROOT, Profile
from torra.feeds.csv_file import read_bars
from torra.market.longer_bars import aggregate
from torra.replay.l1.verdicts import BUY, SELL, composites, consensus, running, stream_of, verdicts

SHIPPED = {"BTCUSD": ("BTCUSD_M15", "BTCUSD_H1"), "EURUSD": ("EURUSD_H1",)}


class Shares(NamedTuple):
    """How many percent of the ticks say BUY and SELL."""

    buy: float
    sell: float


def shares(frames: Mapping[str, pd.DataFrame], form: RecordScore = "both") -> Shares:
    """Return the shares of an instance on these bars, by timeframe; L1 alone, shipped settings."""
    profile = Profile()
    ticks = running([stream_of(name, frame) for name, frame in frames.items()])
    told = consensus(
        ticks, composites(ticks, profile.sentiment_weights, form), profile.timeframe_weights
    )
    found = verdicts(told, profile.thresholds)
    return Shares(100 * float((found == BUY).mean()), 100 * float((found == SELL).mean()))


def upside_down(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the bars upside down, in the range of prices that they have; volumes stay."""
    axis = min(f["low"].min() for f in frames.values()) + max(
        f["high"].max() for f in frames.values()
    )
    turned = {}
    for name, bars in frames.items():
        prices = axis - bars[["open", "low", "high", "close"]]
        prices.columns = pd.Index(["open", "high", "low", "close"])
        turned[name] = prices.assign(volume=bars["volume"])
    return turned


def main() -> None:
    """Print a table."""
    told = {
        name: [ROOT / "sample_data" / f"{f}.csv" for f in files] for name, files in SHIPPED.items()
    }
    if len(sys.argv) > 2:
        told = {sys.argv[1].upper(): [Path(name) for name in sys.argv[2:]]}
    print("| instance | record_score | BUY | SELL | BUY upside down | SELL upside down |")
    print("|---|---|---|---|---|---|")
    for symbol, files in told.items():
        frames = read(files)
        turned = upside_down(frames)
        for form in ("both", "high"):
            one, other = shares(frames, form), shares(turned, form)
            cells = " | ".join(f"{value:.2f} %" for value in (*one, *other))
            print(f"| {symbol} ({' and '.join(frames)}) | {form} | {cells} |")


def read(files: list[Path]) -> dict[str, pd.DataFrame]:
    """Return the bars of files by timeframe, which stands second in a file's name."""
    with tempfile.TemporaryDirectory() as folder:
        frames = {
            path.name.removesuffix(".gz").removesuffix(".csv").split("_")[1]: read_bars(
                plain(path, Path(folder)), clock="utc"
            )
            for path in files
        }
    if list(frames) == ["M15"]:
        frames["H1"] = aggregate(frames["M15"], "M15", "H1")
    return frames


if __name__ == "__main__":
    main()
