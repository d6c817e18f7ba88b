"""What the four scores cost: one live window of 750 bars, and one pass over 100,000 bars.

Processor time, so that a busy machine does not blur it; median of several runs. Run it with
`python benchmarks/bench_scores.py` from the repository's root.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pandas as pd  # noqa: E402

import technical_calculator  # noqa: E402
from technical_calculator import BAR_COLUMNS, HISTORY, explain, score_frame  # noqa: E402

LONG = 100_000
RUNS, LONG_RUNS = 40, 3


def measure() -> dict[str, float]:
    """Return medians: a pass over 750 bars, the library's share of it and our own, one explanation
    (ms of processor time), and a pass over 100,000 bars (s).
    """
    bars = pd.read_csv(ROOT / "sample_data" / "EURUSD_H1.csv", index_col="time", parse_dates=True)
    bars = bars.astype(float)
    window = bars.iloc[-HISTORY:]
    plain = window[list(BAR_COLUMNS)].reset_index(drop=True)
    row = score_frame(window).iloc[-1]
    long = pd.concat([bars] * (LONG // len(bars) + 1)).iloc[:LONG]
    library = technical_calculator._from_library  # noqa: SLF001 (its share is what is asked here)
    pairs = [
        (taken(lambda: score_frame(window)), taken(lambda: library(plain))) for _ in range(RUNS)
    ]
    return {
        "window_ms": 1e3 * statistics.median(whole for whole, _ in pairs),
        "library_ms": 1e3 * statistics.median(part for _, part in pairs),
        "own_ms": 1e3 * statistics.median(whole - part for whole, part in pairs),
        "explain_ms": 1e3 * statistics.median(taken(lambda: explain(row)) for _ in range(RUNS)),
        "long_s": statistics.median(taken(lambda: score_frame(long)) for _ in range(LONG_RUNS)),
    }


def taken(work: Callable[[], object]) -> float:
    """Return the processor time of one run in seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    labels = {
        "window_ms": f"one pass over {HISTORY} bars, ms",
        "library_ms": "  of which the indicator library, ms",
        "own_ms": "  of which Torra, ms",
        "explain_ms": "evidence of one row, ms",
        "long_s": f"one pass over {LONG:,} bars, s",
    }
    for name, value in measure().items():
        print(f"{labels[name]:<40}{value:>10.2f}")
