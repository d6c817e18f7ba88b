"""What a picture of the chart costs: time, processor time and bytes, once matplotlib is loaded.

Medians over many places of the shipped series; the largest picture.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Any, Final

import pandas as pd

from benchmarks.rows import Part, Row, at_most, ready
from technical_calculator import HISTORY, score_frame
from torra.chart.renderer import check_available, render
from torra.config import ROOT

LOAD: Final = (
    "import time; begin = time.perf_counter(); from torra.chart.renderer import check_available; "
    "half = time.perf_counter(); check_available(); print(time.perf_counter() - half)"
)
"""Loads matplotlib in a new process and tells the seconds of it."""

SERIES = {"BTCUSD_M15": 2, "BTCUSD_H1": 2, "EURUSD_H1": 5}
"""Shipped series and the decimals of their prices."""

PLACES: Final = 20
TRIAL_PLACES: Final = 2


def measure(trial: bool) -> dict[str, float]:
    """Return medians of wall and processor time of a picture in ms, of the processor time when its
    score_frame is handed in, the time to load matplotlib, and the largest picture in kB.
    """
    places = TRIAL_PLACES if trial else PLACES
    load = float(subprocess.check_output([sys.executable, "-c", LOAD], cwd=ROOT, text=True))
    check_available()
    walls, works, drawings, sizes = [], [], [], []
    for name, digits in SERIES.items():
        symbol, timeframe = name.split("_")
        bars = pd.read_csv(ROOT / "sample_data" / f"{name}.csv", index_col="time", parse_dates=True)
        bars = bars.astype(float)
        for place in range(places):
            end = HISTORY + place * (len(bars) - HISTORY) // places
            window = bars.iloc[end - HISTORY : end]
            about: dict[str, Any] = {"symbol": symbol, "timeframe": timeframe, "digits": digits}
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


PART: Final = Part(
    "chart",
    "The picture of the chart",
    ready(measure),
    (
        Row("wall_ms", "picture of the chart, wall", "{:.0f} ms", at_most(250)),
        Row("cpu_ms", "picture of the chart, CPU", "{:.0f} ms"),
        Row("drawn_ms", "of it drawing", "{:.0f} ms"),
        Row("largest_kb", "largest picture", "{:.0f} kB", at_most(120)),
        Row("load_ms", "loading matplotlib, once", "{:.0f} ms"),
    ),
)

if __name__ == "__main__":
    print(measure(trial=True))
