"""What a job beside a desk costs its ticks: the same ticks alone and beside a replay that runs.

The replay is a real job of a real worker, in its own process. A few ticks run beside it, then it
stands still (SIGSTOP) for as many, and so on in turns: what else the machine does meets both alike.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.rows import Part, Row, at_most, ready
from tests.tries import until
from tests.worlds import desks
from torra.jobs.process import Bounds
from torra.jobs.worker import Worker
from torra.replay import job_kinds
from torra.store import jobs as job_table

TICKS: Final = 60
TRIAL_TICKS: Final = 6
WARM: Final = 8
IN_TURN: Final = 6
"""Closes of one turn."""

STANDS: Final = Bounds(patience=3600.0)
"""A child that is made to stand still must not take its desk for gone."""

REPLAY: Final = {"symbol": "BTCUSD", "bars": "sample", "arms": "l1,budget,full,placebo"}


def measure(trial: bool) -> dict[str, float]:
    """Return medians in milliseconds over M15 ticks alone and beside a job, and their ratio."""
    ticks = TRIAL_TICKS if trial else TICKS
    spent: dict[bool, list[float]] = {True: [], False: []}
    with (
        tempfile.TemporaryDirectory() as folder,
        _desk(Path(folder)) as desk,
        _job(desk, Path(folder)) as child,
    ):
        beside = True
        while min(map(len, spent.values())) < ticks:
            os.kill(child, signal.SIGCONT if beside else signal.SIGSTOP)
            for _ in range(IN_TURN):
                _one(desk, spent[beside])
            beside = not beside
        os.kill(child, signal.SIGCONT)
    alone, with_job = (statistics.median(spent[beside]) for beside in (False, True))
    return {"alone_ms": alone, "beside_ms": with_job, "ratio": with_job / alone}


@contextmanager
def _desk(folder: Path) -> Iterator[Any]:
    desk = desks.open_desk(folder)
    desks.open_for_work(desk)
    desk.wake("BTCUSD")
    for _ in range(WARM):
        desks.step(desk)
    try:
        yield desk
    finally:
        desk.database.close()


@contextmanager
def _job(desk: Any, home: Path) -> Iterator[int]:
    """Start a replay as a job; yield its process once it runs ticks."""
    asked = job_kinds.check(home, REPLAY)
    row, _ = job_table.queue_job(
        desk.database,
        "replay",
        "k",
        title=asked.title,
        parameters=json.dumps(asked.parameters),
        actor="bench",
    )
    worker = Worker(desk.database, home, job_kinds.KINDS, bounds=STANDS)
    worker.start()
    try:
        until(
            lambda: (job_table.job(desk.database, row["id"]) or {})["stage"] == "runs the ticks",
            60.0,
        )
        children = worker.children
        if not children:
            raise RuntimeError(f"the job runs no more: {job_table.job(desk.database, row['id'])}")
        yield children[0]
        if worker.children != children:
            raise RuntimeError("the job ended before the ticks did")
    finally:
        worker.close()


def _one(desk: Any, spent: list[float]) -> None:
    wall = time.perf_counter()
    moment = desks.step(desk)
    wall = time.perf_counter() - wall
    if moment.minute:  # at the full hour two ticks run
        spent.append(wall * 1e3)


PART: Final = Part(
    "jobs",
    "A tick beside a job",
    ready(measure),
    (
        Row("ratio", "tick beside a job, to one alone", "{:.2f} x", at_most(1.2)),
        Row("beside_ms", "budget tick beside a replay", "{:.1f} ms"),
        Row("alone_ms", "budget tick alone", "{:.1f} ms"),
    ),
    "The same M15 closes as above with the rules provider, while a replay of six arms runs as a "
    "job at the lowest priority. In turns of six closes the job runs and stands still, so that "
    "what else the machine does meets both alike.",
)

if __name__ == "__main__":
    print(measure(trial=True))
