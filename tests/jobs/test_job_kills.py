"""What becomes of a job and of its process when its desk is killed, at one moment that is chosen.

Random moments are a row of tests/faults/test_kills.py.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.doubles.job_works import LIGHT, SCRIPTED, notes
from tests.faults.job_pair import BOUNDS, kill, start, worker_of
from tests.tries import Tries, until
from tests.worlds.jobs import FINAL, Office, alive
from torra.jobs.kinds import JobKind
from torra.jobs.process import Bounds

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs fork and /proc")

OUTLIVES = 1.0
"""Seconds by which no child outlives its desk."""


LANES = pytest.mark.parametrize("kind", [SCRIPTED, LIGHT[0]], ids=["heavy", "light"])


@LANES
@pytest.mark.parametrize(
    ("how", "patience"), [(signal.SIGKILL, 3600.0), (signal.SIGSTOP, BOUNDS.patience)]
)
def test_no_child_outlives_its_desk(
    how: signal.Signals, patience: float, kind: JobKind, tmp_path: Path, tries: Tries
) -> None:
    """A pipe ends with a desk that dies; one that is stopped gives no sign, and is missed."""
    for attempt in tries():
        home = attempt.folder(tmp_path) / "home"
        office = Office(home)
        # One long step: a work that tells its progress would notice that nobody reads it.
        office.ask("a", kind, steps=1, seconds=600.0)
        desk = start(home, Bounds(patience=patience))
        until(lambda: worker_of(home, "a"))  # noqa: B023
        child = worker_of(home, "a")
        assert child is not None
        try:
            os.kill(desk, how)
            begun = time.monotonic()
            until(lambda: not alive(child))  # noqa: B023
            took = time.monotonic() - begun
        finally:
            kill(desk)
            with suppress(ProcessLookupError):  # one that outlives its desk would outlive this, too
                os.kill(child, signal.SIGKILL)
        office.close()
        with attempt:
            assert took <= OUTLIVES


@LANES
@pytest.mark.journey
def test_the_next_desk_runs_the_job_on_as_its_second_attempt(kind: JobKind, tmp_path: Path) -> None:
    home = tmp_path / "home"
    office = Office(home)
    number = office.ask("a", kind, how="long once", steps=20, seconds=0.5)
    first = start(home)
    until(lambda: notes(home, "a", "begin"))
    kill(first)
    second = start(home)
    until(lambda: office.row(number)["state"] in FINAL, 20.0)
    kill(second)
    row = office.row(number)
    assert (row["state"], row["attempt"]) == ("done", 2)
    assert [len(notes(home, "a", what)) for what in ("begin", "end", "twice")] == [2, 1, 0]
    office.close()


@LANES
def test_a_desk_that_dies_twice_with_a_job_ends_it(kind: JobKind, tmp_path: Path) -> None:
    home = tmp_path / "home"
    office = Office(home)
    number = office.ask("a", kind, steps=100_000, seconds=0.1)
    for times in (1, 2):
        desk = start(home)
        until(lambda: len(notes(home, "a", "begin")) == times, 20.0)  # noqa: B023
        kill(desk)
    last = start(home)
    until(lambda: office.row(number)["state"] in FINAL, 20.0)
    kill(last)
    row = office.row(number)
    assert row["says"] == "The desk that ran it is gone; it was tried 2 times."
    office.close()
