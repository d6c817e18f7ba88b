"""What a picture of the chart costs: time, processor time and bytes, once matplotlib is loaded.

Medians over many places of the shipped series; the largest picture. Run it with
`python benchmarks/bench_chart.py` from the repository's root.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pandas as pd  # noqa: E402

from technical_calculator import HISTORY, score_frame  # noqa: E402
from torra.chart_renderer import check_available, render  # noqa: E402

SERIES = {"BTCUSD_M15": 2, "BTCUSD_H1": 2, "EURUSD_H1": 5}
"""Shipped series and the decimals of their prices."""

RUNS = 20


def measure() -> dict[str, float]:
    """Return medians of wall and processor time of a picture in ms, of the processor time when its
    score_frame is handed in, the time to load matplotlib, and the largest picture in kB.
    """
    started = time.perf_counter()
    check_available()
    load = time.perf_counter() - started
    walls, works, drawings, sizes = [], [], [], []
    for name, digits in SERIES.items():
        symbol, timeframe = name.split("_")
        bars = pd.read_csv(ROOT / "sample_data" / f"{name}.csv", index_col="time", parse_dates=True)
        bars = bars.astype(float)
        for run in range(RUNS):
            end = HISTORY + run * (len(bars) - HISTORY) // RUNS
            window = bars.iloc[end - HISTORY : end]
            about = {"symbol": symbol, "timeframe": timeframe, "digits": digits}
            wall, work = time.perf_counter(), time.process_time()
            png = render(window, **about)
            walls.append(time.perf_counter() - wall)
            works.append(time.process_time() - work)
            sizes.append(len(png))
            scored = score_frame(window)
            work = time.process_time()
            render(window, **about, scored=scored)
            drawings.append(time.process_time() - work)
    return {
        "wall_ms": 1e3 * statistics.median(walls),
        "cpu_ms": 1e3 * statistics.median(works),
        "drawn_ms": 1e3 * statistics.median(drawings),
        "load_ms": 1e3 * load,
        "largest_kb": max(sizes) / 1e3,
    }


def rows(found: dict[str, float]) -> list[tuple[str, str, str]]:
    """Return the rows of the table."""
    return [
        ("picture of the chart, wall", f"{found['wall_ms']:.0f} ms", "<= 250 ms"),
        ("picture of the chart, CPU", f"{found['cpu_ms']:.0f} ms", ""),
        ("of it drawing", f"{found['drawn_ms']:.0f} ms", ""),
        ("largest picture", f"{found['largest_kb']:.0f} kB", "<= 120 kB"),
        ("loading matplotlib, once", f"{found['load_ms']:.0f} ms", ""),
    ]


if __name__ == "__main__":
    for what, figure, target in rows(measure()):
        print(f"{what:<32}{figure:>10}  {target}")
