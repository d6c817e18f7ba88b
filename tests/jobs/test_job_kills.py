"""Desks and the processes of their jobs are killed at random moments: no job is lost or run twice.

A process holds the lease and works on jobs, as a desk does. Each case asks for a job, kills the
desk, the child or both once or twice, and lets a healthy desk finish. Then every job has its end,
no work was begun more often than a job may be tried, none ran beside itself, and what is done was
done to its end.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.job_works import noted
from tests.tries import Tries, until
from tests.worlds.jobs import FINAL, Office, alive, desk_process
from torra.jobs import states
from torra.jobs.process import Bounds

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs fork and /proc")

LEASE = 0.5
"""Seconds of a lease here: a killed desk is followed soon."""

RETRY = 0.8
BOUNDS = Bounds(patience=0.4)
"""The order of a real desk, in little: a child gives up before the lease does, and a job is tried
again later than both."""

ROWS = 4

OUTLIVES = 1.0
"""Seconds by which no child outlives its desk."""


def start(home: Path, bounds: Bounds = BOUNDS) -> int:
    return desk_process(home, lease_seconds=LEASE, retry_seconds=RETRY, bounds=bounds)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def worker_of(home: Path, name: str) -> int | None:
    """Return the process that began a work last, while it runs."""
    begun = noted(home, name, "begin")
    pid = int(begun[-1].split()[1]) if begun else None
    return pid if pid is not None and alive(pid) else None


@pytest.mark.parametrize(
    ("how", "patience"), [(signal.SIGKILL, 3600.0), (signal.SIGSTOP, BOUNDS.patience)]
)
def test_no_child_outlives_its_desk(
    how: signal.Signals, patience: float, tmp_path: Path, tries: Tries
) -> None:
    """A pipe ends with a desk that dies; one that is stopped loses its lease, and is missed."""
    for attempt in tries():
        home = attempt.folder(tmp_path) / "home"
        office = Office(home)
        # One long step: a work that tells its progress would notice that nobody reads it.
        office.ask("a", steps=1, seconds=600.0)
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


@pytest.mark.journey
def test_the_next_desk_runs_the_job_on_as_its_second_attempt(tmp_path: Path) -> None:
    home = tmp_path / "home"
    office = Office(home)
    number = office.ask("a", how="long once", steps=20, seconds=0.5)
    first = start(home)
    until(lambda: noted(home, "a", "begin"))
    kill(first)
    second = start(home)
    until(lambda: office.row(number)["state"] in FINAL, 20.0)
    kill(second)
    row = office.row(number)
    assert (row["state"], row["attempt"], row["epoch"]) == ("done", 2, 2)
    assert [len(noted(home, "a", what)) for what in ("begin", "end", "twice")] == [2, 1, 0]
    office.close()


def test_a_desk_that_dies_twice_with_a_job_ends_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    office = Office(home)
    number = office.ask("a", steps=100_000, seconds=0.1)
    for times in (1, 2):
        desk = start(home)
        until(lambda: len(noted(home, "a", "begin")) == times, 20.0)  # noqa: B023
        kill(desk)
    last = start(home)
    until(lambda: office.row(number)["state"] in FINAL, 20.0)
    kill(last)
    row = office.row(number)
    assert row["says"] == "The desk that ran it is gone; it was tried 2 times."
    office.close()


def case(office: Office, number: int, dice: random.Random) -> tuple[str, Counter[str]]:
    """Run one job through its kills and to its end; return its state, and who was killed."""
    home, name, killed = office.home, f"w{number}", Counter[str]()
    job = office.ask(name, steps=dice.randint(1, 6), seconds=0.05)
    desk = start(home)
    for _ in range(dice.randint(1, 2)):
        if dice.random() < 0.7:  # else from the very beginning
            with suppress(AssertionError):
                until(lambda: worker_of(home, name) or office.row(job)["state"] in FINAL, 1.0)
        time.sleep(dice.uniform(0.0, 0.4))
        child = worker_of(home, name)
        if child is not None and dice.random() < 0.6:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            killed["child"] += 1
        if dice.random() < 0.6 or not killed:
            kill(desk)
            killed["desk"] += 1
            desk = start(home)
    until(lambda: office.row(job)["state"] in FINAL, 30.0, f"the end of {office.row(job)}")
    kill(desk)
    return str(office.row(job)["state"]), killed


@dataclass
class Seen:
    """What one row of cases came to; `failed` is the traceback of the one that ended it."""

    kills: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    failed: str = ""


def row_of_cases(part: int, home: Path, wanted: int, seen: Connection) -> None:
    """Run cases one after the other until there are as many kills, and tell what was seen."""
    told = Seen()
    try:
        dice, office = random.Random(20261125 + part), Office(home)
        number = 0
        while told.kills.total() < wanted:
            state, killed = case(office, number, dice)
            name = f"w{number}"
            begun = len(noted(office.home, name, "begin"))
            ended = len(noted(office.home, name, "end"))
            assert noted(office.home, name, "twice") == []
            assert begun <= states.ATTEMPTS, f"{name} was begun {begun} times"
            assert state in ("done", "error")
            assert ended >= 1 or state == "error", f"{name} is {state} and was never at its end"
            assert worker_of(office.home, name) is None
            told.kills.update(killed)
            told.ends[state] += 1
            number += 1
        office.close()
    except BaseException:  # noqa: BLE001  whatever it is, it is told where the others end
        told.failed = traceback.format_exc()
    seen.send(told)


def test_no_kill_loses_a_job_or_runs_it_twice(
    tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    """Four desks side by side, each on a home of its own: mostly they wait."""
    wanted = scaled(1_000, least=8)
    forked = multiprocessing.get_context("fork")
    rows = []
    for part in range(ROWS):
        hears, tells = forked.Pipe(duplex=False)
        home = tmp_path / f"home{part}"
        row = forked.Process(target=row_of_cases, args=(part, home, -(-wanted // ROWS), tells))
        row.start()
        tells.close()
        rows.append((row, hears))
    found = []
    for row, hears in rows:
        try:
            found.append(hears.recv())
        except EOFError:
            found.append(Seen(failed="the process of these cases is gone"))
        row.join()
    assert [one.failed for one in found if one.failed] == []
    kills: Counter[str] = sum((one.kills for one in found), Counter())
    ends: Counter[str] = sum((one.ends for one in found), Counter())
    assert ends["done"], "no job was done: the kills prove nothing"
    told = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    record_property("seen", f"{kills['desk']} kills of desks, {kills['child']} of children: {told}")
