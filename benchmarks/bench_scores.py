"""What the four scores cost: one live window of 750 bars, and one pass over 100,000 bars.

Processor time, so that a busy machine does not blur it; medians of several passes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Final

import pandas as pd

from benchmarks.rows import Part, Row, at_most, ready
from technical_calculator import BAR_COLUMNS, HISTORY, explain, score_frame
from torra.config import ROOT
from torra.market import library

LONG: Final = 100_000
PASSES, LONG_PASSES = 40, 3


def measure(trial: bool) -> dict[str, float]:
    """Return medians: a pass over 750 bars, the library's part of it, one explanation (ms of
    processor time), and a pass over 100,000 bars (s).
    """
    passes, long_passes = (4, 1) if trial else (PASSES, LONG_PASSES)
    bars = pd.read_csv(ROOT / "sample_data" / "EURUSD_H1.csv", index_col="time", parse_dates=True)
    bars = bars.astype(float)
    window = bars.iloc[-HISTORY:]
    plain = {name: window[name].to_numpy() for name in BAR_COLUMNS}
    row = score_frame(window).iloc[-1]
    long = pd.concat([bars] * (LONG // len(bars) + 1)).iloc[:LONG]
    pairs = [
        (taken(lambda: score_frame(window)), taken(lambda: library.columns(plain)))
        for _ in range(passes)
    ]
    return {
        "window_ms": 1e3 * statistics.median(whole for whole, _ in pairs),
        "library_ms": 1e3 * statistics.median(part for _, part in pairs),
        "explain_ms": 1e3
        * statistics.median(taken(lambda: dict(explain(row))) for _ in range(passes)),
        "long_s": statistics.median(taken(lambda: score_frame(long)) for _ in range(long_passes)),
    }


def taken(work: Callable[[], object]) -> float:
    """Return the processor time of one run in seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


PART: Final = Part(
    "scores",
    "The four scores",
    ready(measure),
    (
        Row("window_ms", f"`score_frame`, {HISTORY} bars, CPU", "{:.2f} ms", at_most(5.0)),
        Row("library_ms", "of it pandas-ta-classic and TA-Lib", "{:.2f} ms"),
        Row("explain_ms", "`explain`, one row, CPU", "{:.2f} ms"),
        Row("long_s", f"`score_frame`, {LONG:,} bars, CPU", "{:.2f} s", at_most(0.25)),
    ),
)

if __name__ == "__main__":
    print(measure(trial=True))
