"""What a budget tick costs with the rules provider: wall and CPU time, and where they go."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import technical_calculator
from benchmarks.rows import Part, Row, at_most, ready
from tests.worlds import desks
from torra.imports import settle

TICKS: Final = 60
TRIAL_TICKS: Final = 6
WARM: Final = 8
"""Ticks that are run first and not counted: imports, caches, first transactions."""


def measure(trial: bool) -> dict[str, float]:
    """Return medians in milliseconds over M15 ticks that run alone."""
    ticks = TRIAL_TICKS if trial else TICKS
    with tempfile.TemporaryDirectory() as folder:
        desk = desks.open_desk(Path(folder))
        desks.open_for_work(desk)
        desk.wake("BTCUSD")
        for _ in range(WARM):
            desks.step(desk)
        settle()  # as `torra run` does
        spent: dict[str, list[float]] = {"wall_ms": [], "cpu_ms": [], "l1_ms": []}
        score = technical_calculator.score_frame

        def timed(frame: Any) -> Any:
            begin = time.perf_counter()
            scored = score(frame)
            spent["l1_ms"].append((time.perf_counter() - begin) * 1e3)
            return scored

        technical_calculator.score_frame = timed  # type: ignore[assignment]
        try:
            while len(spent["wall_ms"]) < ticks:
                _one(desk, spent)
        finally:
            technical_calculator.score_frame = score
            desk.database.close()
        return {name: statistics.median(values) for name, values in spent.items()}


def _one(desk: Any, spent: dict[str, list[float]]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    moment = desks.step(desk)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if moment.minute:  # at the full hour two ticks run
        spent["wall_ms"].append(wall * 1e3)
        spent["cpu_ms"].append(cpu * 1e3)


PART: Final = Part(
    "tick",
    "A tick without a vendor",
    ready(measure),
    (
        Row("wall_ms", "budget tick, wall", "{:.1f} ms", at_most(60)),
        Row("cpu_ms", "budget tick, CPU", "{:.1f} ms", at_most(15)),
        Row("l1_ms", "of it L1 on 750 bars, wall", "{:.1f} ms"),
    ),
    "One M15 close of BTCUSD through `run_tick` with 750 bars, the four agents of the budget desk, "
    "the rules provider and the database with `synchronous=FULL`; ticks at the full hour, where H1 "
    "closes too, are left out. CPU is the processor time of the process, wall is elapsed time.",
)

if __name__ == "__main__":
    print(measure(trial=True))
