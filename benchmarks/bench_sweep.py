"""What a pass over thresholds on L1 alone costs, after the indicators: bars a second on one core.

The shipped BTCUSD M15 sample, repeated until it has 100,000 bars and stirred so that no stretch is
twice the same, with the whole H1 bars of it: 125,000 ticks. A configuration costs by its trades, so
the rate falls with the threshold. Processor time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pandas as pd

from benchmarks.histories import stirred
from benchmarks.rows import Part, Row, at_least, at_most, ready
from technical_calculator import score_frame
from torra.config import Instance, Profile, validate
from torra.market.longer_bars import aggregate
from torra.replay.l1.sweep import L1Backtest, sweep

BARS = 100_000
TRIAL_BARS = 9_000
GRID = tuple(round(0.30 + 0.05 * step, 2) for step in range(9))
TIMES = 3


def measure(trial: bool) -> dict[str, float]:
    """Return seconds of the pass over the bars, and bars a second of what follows it."""
    frames = history(TRIAL_BARS if trial else BARS)
    instance = Instance(symbol="BTCUSD", timeframes=tuple(frames))
    scored = {name: score_frame(frame) for name, frame in frames.items()}
    pass_s = taken(lambda: L1Backtest(instance, frames))
    grid = [profile(level) for level in GRID]
    first, whole = [], []
    for _ in range(TIMES):  # a new ground each: nothing is kept from one run to the next
        alone, together = (L1Backtest(instance, frames, scored=scored) for _ in range(2))
        first.append(taken(partial(alone.run, profile(0.5))))
        whole.append(taken(partial(all_of, together, grid)))
    return {
        "bars": alone.bars,
        "trades": len(alone.run(profile(0.5)).trades),
        "pass_s": pass_s,
        "bars_per_s": alone.bars / statistics.median(first),
        "grid_bars_per_s": alone.bars * len(GRID) / statistics.median(whole),
    }


def all_of(ground: L1Backtest, grid: list[Profile]) -> list[Any]:
    """Return what every profile of a grid does on one ground."""
    return list(sweep(ground, grid))


def history(bars: int) -> dict[str, pd.DataFrame]:
    """Return M15 and H1 bars made of the sample."""
    long = stirred("BTCUSD", "M15", bars, decimals=2)
    return {"M15": long, "H1": aggregate(long, "M15", "H1")}


def profile(level: float) -> Profile:
    """Return the default profile with another threshold."""
    return validate(Profile, {"thresholds": {"buy": level, "sell": level}}, "the benchmark")


def taken(work: Callable[[], Any]) -> float:
    """Return the processor time of one run in seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


PART: Final = Part(
    "sweep",
    "Sweeps on L1 alone",
    ready(measure),
    (
        Row(
            "bars_per_s",
            "sweep, one configuration at 0.50, CPU",
            "{:,.0f} bars/s",
            at_least(1_000_000),
        ),
        Row("trades", "its trades"),
        Row(
            "grid_bars_per_s",
            f"sweep, {len(GRID)} thresholds from {GRID[0]:.2f} to {GRID[-1]:.2f}, CPU",
            "{:,.0f} bars/s",
        ),
        Row(
            "pass_s",
            "its pass over the bars, once for all configurations, CPU",
            "{:.2f} s",
            at_most(0.4),
        ),
        Row("bars", "bars of it, M15 and H1"),
    ),
    "After the pass a configuration costs by its trades, so the rate falls with the threshold.",
)

if __name__ == "__main__":
    print(measure(trial=True))
