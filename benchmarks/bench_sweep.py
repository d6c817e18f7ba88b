"""What a pass over thresholds on L1 alone costs, after the indicators: bars a second on one core.

The shipped BTCUSD M15 sample, repeated until it has 100,000 bars and stirred so that no stretch is
twice the same, with the whole H1 bars of it: 125,000 ticks. A configuration costs by its trades, so
the rate falls with the threshold. Processor time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from technical_calculator import score_frame
from torra.config import ROOT, Instance, Profile, validate
from torra.l1_sweep import Ground, sweep
from torra.replay.history import aggregate, load

BARS = 100_000
SEED = 7
STIRRED = 2e-4
"""Standard deviation of what a bar's prices are moved by, as a share of them, added up."""

GRID = tuple(round(0.30 + 0.05 * step, 2) for step in range(9))
RUNS = 3


def measure() -> dict[str, float]:
    """Return seconds of the pass over the bars, and bars a second of what follows it."""
    frames = history(BARS)
    instance = Instance(symbol="BTCUSD", timeframes=tuple(frames))
    scored = {name: score_frame(frame) for name, frame in frames.items()}
    pass_s = taken(lambda: Ground(instance, frames))
    grid = [profile(level) for level in GRID]
    first, whole = [], []
    for _ in range(RUNS):  # a new ground each: nothing is kept from one run to the next
        alone, together = (Ground(instance, frames, scored=scored) for _ in range(2))
        first.append(taken(lambda ground=alone: ground.run(profile(0.5))))
        whole.append(taken(lambda ground=together: list(sweep(ground, grid))))
    return {
        "bars": alone.bars,
        "trades": len(alone.run(profile(0.5)).trades),
        "pass_s": pass_s,
        "bars_per_s": alone.bars / statistics.median(first),
        "grid_bars_per_s": alone.bars * len(GRID) / statistics.median(whole),
    }


def history(bars: int) -> dict[str, pd.DataFrame]:
    """Return M15 and H1 bars made of the sample."""
    file = str(ROOT / "sample_data" / "BTCUSD_M15.csv")
    frame = load(Path("nowhere"), "BTCUSD", [file]).frames["M15"]
    long = pd.concat([frame] * (bars // len(frame) + 1)).iloc[:bars]
    rng = np.random.default_rng(SEED)
    stirred = np.exp(np.cumsum(rng.normal(0.0, STIRRED, bars)))
    prices = ["open", "high", "low", "close"]
    long[prices] = long[prices].mul(stirred, axis=0).round(2)
    long["high"], long["low"] = long[prices].max(axis=1), long[prices].min(axis=1)
    long.index = pd.date_range(
        frame.index[0].floor("h"), periods=bars, freq="15min", name=frame.index.name
    )
    return {"M15": long, "H1": aggregate(long, "M15", "H1")}


def profile(level: float) -> Profile:
    """Return the default profile with another threshold."""
    return validate(Profile, {"thresholds": {"buy": level, "sell": level}}, "the benchmark")


def taken(work: Callable[[], Any]) -> float:
    """Return the processor time of one run in seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def rows(found: dict[str, float]) -> list[tuple[str, str, str]]:
    """Return table rows: what, measured, target."""
    return [
        (
            f"sweep, one configuration at 0.50 ({found['trades']:,.0f} trades), CPU",
            f"{found['bars_per_s']:,.0f} bars/s",
            ">= 500,000",
        ),
        (
            f"sweep, {len(GRID)} thresholds from {GRID[0]:.2f} to {GRID[-1]:.2f}, CPU",
            f"{found['grid_bars_per_s']:,.0f} bars/s",
            "",
        ),
        (f"its pass over {found['bars']:,.0f} bars", f"{found['pass_s']:.2f} s", ""),
    ]


if __name__ == "__main__":
    for what, value, target in rows(measure()):
        print(f"{what:<62}{value:>20}  {target}")
