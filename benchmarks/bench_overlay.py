"""What a hosted question costs beside a desk's debated tick: CPU, alternating in one process."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import torra_trader
from benchmarks.rows import Part, Row, at_most, ready
from tests.worlds import desks, scorers
from torra.clock import duration
from torra.tick.bar_window import LiveWindow

TICKS: Final = 120
TRIAL_TICKS: Final = 6
WARM: Final = 8
HANDED: Final = 1_000
"""Bars that the host hands over with each question."""


def measure(trial: bool) -> dict[str, float]:
    """Return medians in milliseconds of CPU over the same M15 closes."""
    ticks = TRIAL_TICKS if trial else TICKS
    spent: dict[str, list[float]] = {"desk_ms": [], "hosted_ms": [], "again_ms": []}
    with tempfile.TemporaryDirectory() as folder:
        desk = desks.open_desk(Path(folder) / "desk")
        desks.open_for_work(desk)
        overlay = scorers.overlay(Path(folder), strict=True)
        bars = desks.sample().bars("BTCUSD", "M15", desks.START + timedelta(days=40), None)
        first = len(bars[bars.index <= desks.START])
        try:
            for at in range(first, first + WARM + ticks):
                _one(desk, overlay, bars.iloc[at + 1 - HANDED : at + 1], spent)
        finally:
            desk.database.close()
            overlay.close()
    found = {name: statistics.median(values[WARM:]) for name, values in spent.items()}
    return {**found, "more_ms": found["hosted_ms"] - found["desk_ms"]}


def _one(desk: Any, overlay: Any, handed: Any, spent: dict[str, list[float]]) -> None:
    setup = desk.setups["BTCUSD"]
    opened = handed.index[-1].to_pydatetime()
    close = opened + duration("M15")
    desks.clock_of(desk).set(close)
    edges = desk._edges(setup, LiveWindow(setup.instance, setup.feed, desk.database))  # noqa: SLF001 - the tick of this bar alone
    bar = torra_trader.ClosedBar("M15", opened, desk.clock.monotonic(), setup.profile)

    def tick() -> None:
        torra_trader.run_close(setup.instance, [bar], edges=edges)

    def ask() -> None:
        overlay.deliberate("BTCUSD", "M15", handed, as_of=close)

    # The second time it is answered from the record.
    for name, work in (("desk_ms", tick), ("hosted_ms", ask), ("again_ms", ask)):
        spent[name].append(_cpu(work))


def _cpu(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e3


PART: Final = Part(
    "overlay",
    "A question of another scorer",
    ready(measure),
    (
        Row("desk_ms", "a desk's debated tick, CPU", "{:.1f} ms"),
        Row("hosted_ms", "a hosted question, CPU", "{:.1f} ms"),
        Row("more_ms", "more than the desk's tick", "{:.1f} ms", at_most(5)),
        Row("again_ms", "asked again, from the record", "{:.1f} ms"),
    ),
    "The same M15 closes of BTCUSD, first as ticks of a desk, then as questions of a host that "
    "hands over 1,000 bars, and at once the same question again; the budget desk, the rules "
    "provider, a database with `synchronous=FULL` each. CPU is the processor time of the process.",
)

if __name__ == "__main__":
    print(measure(trial=True))
