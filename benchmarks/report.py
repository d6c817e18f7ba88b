"""`make bench`: measure everything and write the table of docs/performance.md."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

from benchmarks import (
    bench_chart,
    bench_debate,
    bench_desk,
    bench_pages,
    bench_replay,
    bench_scores,
    bench_shards,
    bench_streams,
    bench_sweep,
    bench_tick,
)

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
ROUNDS = 3

Row = tuple[str, str, str]


def score_rows() -> list[Row]:
    """Return the rows of L1; each figure is the median of several rounds."""
    rounds = [bench_scores.measure() for _ in range(ROUNDS)]
    found = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    share = found["library_ms"] / found["window_ms"]
    return [
        ("`score_frame`, 750 bars, CPU", f"{found['window_ms']:.1f} ms", ""),
        ("of it pandas-ta-classic", f"{found['library_ms']:.1f} ms ({share:.0%})", ""),
        ("`explain`, one row, CPU", f"{found['explain_ms']:.2f} ms", ""),
        ("`score_frame`, 100,000 bars, CPU", f"{found['long_s']:.2f} s", "<= 1.5 s"),
    ]


def tick_rows() -> list[Row]:
    """Return the rows of a tick, medians over rounds."""
    rounds = [bench_tick.measure() for _ in range(ROUNDS)]
    found = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    return bench_tick.rows(found)


def table(rows: Iterable[Row]) -> str:
    """Return a Markdown table."""
    lines = ["| what | measured (median) | target |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def machine() -> str:
    """Describe what was measured on."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "pandas"))
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {psutil.cpu_count()} cores, {memory:.0f} GiB, "
        f"{platform.system()}, Python {platform.python_version()}, {libraries}. The machine was "
        "shared: compare ratios, not milliseconds."
    )


def main() -> None:
    """Measure, print and write."""
    rows = [
        *tick_rows(),
        *score_rows(),
        *bench_debate.rows(bench_debate.measure()),
        *bench_chart.rows(bench_chart.measure()),
        *bench_desk.rows(bench_desk.measure()),
        *bench_pages.rows(bench_pages.measure()),
        *bench_streams.rows(bench_streams.measure()),
        *bench_replay.rows(bench_replay.measure()),
        *bench_sweep.rows(bench_sweep.measure()),
        *bench_shards.rows(bench_shards.measure()),
    ]
    text = DOCUMENT.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    measured = f"{machine()}\n\n{table(rows)}"
    DOCUMENT.write_text(f"{head}{BEGIN}\n{measured}\n{END}{tail}", encoding="utf-8")
    print(measured)


if __name__ == "__main__":
    main()
