"""How the scores of two versions of Torra differ on the same bars: values, and verdicts.

`python -m benchmarks.score_changes OTHER FILE...` compares this checkout with that in the folder
OTHER. A file has bars as `sample_data/` does, also packed, and its name begins SYMBOL_TIMEFRAME_.
Each version scores in a process of its own. Files of one symbol are one instance, so their
consensus gives verdicts, at every threshold of GRID.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

GRID: Final = tuple(round(0.30 + 0.05 * step, 2) for step in range(9))
"""Thresholds of BUY and, turned round, of SELL."""

EDGE: Final = 1.01e-8
"""One unit of the last decimal of a score: where a rounded value may tip over."""

Found = dict[str, NDArray[np.float64]]


def write(target: Path, files: list[str]) -> None:
    """Score the files with the Torra that is found first, and store what came of it."""
    from agents.contracts import VECTORS  # noqa: PLC0415
    from technical_calculator import COMPONENTS, score_frame  # noqa: PLC0415
    from torra.config import Instance, Profile, Thresholds  # noqa: PLC0415
    from torra.replay.l1.sweep import L1Backtest  # noqa: PLC0415
    from torra.replay.l1.verdicts import composites, consensus, verdicts  # noqa: PLC0415

    components = [name for weights in COMPONENTS.values() for name in weights]
    found: Found = {}
    grouped: dict[str, dict[str, pd.DataFrame]] = {}
    for file in files:
        symbol, timeframe = Path(file).name.split(".")[0].split("_")[:2]
        bars = pd.read_csv(file, index_col=0, parse_dates=True).astype(float)
        grouped.setdefault(symbol, {})[timeframe] = bars
        scored = score_frame(bars)
        scored = scored[scored["valid"]]
        found[f"components of {symbol} {timeframe}"] = scored[components].to_numpy()
        found[f"scores of {symbol} {timeframe}"] = scored[list(VECTORS)].to_numpy()
    profile = Profile()
    for symbol, frames in grouped.items():
        ticks = L1Backtest(Instance(symbol=symbol, timeframes=tuple(frames)), frames).ticks
        agreed = consensus(
            ticks, composites(ticks, profile.sentiment_weights), profile.timeframe_weights
        )
        levels = [verdicts(agreed, Thresholds(buy=level, sell=level)) for level in GRID]
        found[f"verdicts of {symbol}"] = np.array(levels, dtype=float)
    np.savez(target, allow_pickle=False, **found)


def of(checkout: Path, files: list[str]) -> Found:
    """Return what a checkout makes of the files."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "found.npz"
        told = {**os.environ, "PYTHONPATH": str(checkout)}
        command = [sys.executable, __file__, "--write", str(target), *files]
        subprocess.run(command, check=True, cwd=checkout, env=told)
        with np.load(target) as found:
            return dict(found)


def compared(one: Found, other: Found) -> Iterator[str]:
    """Yield a line for each part: how many values differ, and by how much."""
    for name, values in one.items():
        apart = np.abs(values - other[name])
        differ, more = np.count_nonzero(apart), np.count_nonzero(apart > EDGE)
        yield (
            f"{name}: {differ:,} of {apart.size:,} differ, the farthest by {apart.max():.2e}; "
            f"{more:,} by more than an edge of rounding"
        )


def main(told: list[str]) -> None:
    """Write for one version, or compare two."""
    if told[0] == "--write":
        write(Path(told[1]), told[2:])
        return
    files = [str(Path(file).resolve()) for file in told[1:]]
    here, there = (of(place.resolve(), files) for place in (Path(), Path(told[0])))
    print("\n".join(compared(here, there)))


if __name__ == "__main__":
    main(sys.argv[1:])
