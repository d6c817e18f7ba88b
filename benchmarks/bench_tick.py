"""What a budget tick costs with the rules provider: wall and CPU time, and where they go."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import technical_calculator
from tests import desks

TICKS = 60
WARM = 8
"""Ticks that are run first and not counted: imports, caches, first transactions."""


def measure(ticks: int = TICKS) -> dict[str, float]:
    """Return medians in milliseconds over M15 ticks that run alone."""
    with tempfile.TemporaryDirectory() as folder:
        desk = desks.open_desk(Path(folder))
        desks.take_lease(desk)
        desk.wake("BTCUSD")
        for _ in range(WARM):
            desks.step(desk)
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


def rows(found: dict[str, float]) -> list[tuple[str, str, str]]:
    """Return table rows: what, measured, target."""
    return [
        ("budget tick, wall", f"{found['wall_ms']:.1f} ms", "<= 60 ms"),
        ("budget tick, CPU", f"{found['cpu_ms']:.1f} ms", "<= 45 ms"),
        ("of it L1 on 750 bars, wall", f"{found['l1_ms']:.1f} ms", ""),
    ]


Measure = Callable[[], dict[str, float]]

if __name__ == "__main__":
    for row in rows(measure()):
        print("{:<32}{:>12}   {}".format(*row))
