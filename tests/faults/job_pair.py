"""A desk and the processes of its jobs, one in each lane, killed once or twice at any moment.

A process has the lock and works on jobs, as a desk does. After the kills a healthy one finishes.
Then every job has its end, no work was begun more often than a job may be tried, none ran beside
itself, and what is done was done to its end (promise D14).
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.doubles.job_works import LIGHT, SCRIPTED, notes
from tests.tries import MOMENT, until
from tests.worlds.jobs import FINAL, Office, alive, desk_process
from torra.jobs.kinds import ATTEMPTS
from torra.jobs.process import Bounds

RETRY = 0.8

PATIENCE = 60.0
"""Seconds in which a job must have come to its end: on a busy machine, too, a lost one is lost."""

BOUNDS = Bounds(patience=0.4)
"""The order of a real desk, in little: a child gives up before its job is tried again."""


def start(home: Path, bounds: Bounds = BOUNDS) -> int:
    return desk_process(home, retry_seconds=RETRY, bounds=bounds)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def worker_of(home: Path, name: str) -> int | None:
    """Return the process that began a work last, while it runs."""
    begun = notes(home, name, "begin")
    pid = int(begun[-1].split()[1]) if begun else None
    return pid if pid is not None and alive(pid) else None


class Jobs:
    """A home whose desks run a job in each lane."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.office, self.dice = Office(folder), dice
        self.kills, self.ends = Counter[str](), Counter[str]()

    def case(self, number: int) -> None:
        """Run a heavy and a light job through their kills and to their end."""
        home, dice = self.office.home, self.dice
        jobs = {
            f"w{number}-{kind.name[:5]}": self.office.ask(
                f"w{number}-{kind.name[:5]}", kind, steps=dice.randint(1, 6), seconds=0.05
            )
            for kind in (SCRIPTED, LIGHT[0])
        }
        desk = start(home)
        killed = False
        for _ in range(dice.randint(1, 2)):
            name = dice.choice([*jobs])
            if dice.random() < 0.7:  # else from the very beginning
                with suppress(AssertionError):
                    until(lambda: worker_of(home, name) or self.over(jobs[name]), 1.0)  # noqa: B023
            time.sleep(dice.uniform(0.0, 0.4))
            child = worker_of(home, name)
            if child is not None and dice.random() < 0.6:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                self.kills["child"] += 1
                killed = True
            if dice.random() < 0.6 or not killed:
                kill(desk)
                self.kills["desk"] += 1
                killed = True
                desk = start(home)
        for job in jobs.values():
            self.await_end(job)
        kill(desk)
        for name, job in jobs.items():
            self.check(name, str(self.office.row(job)["state"]))

    def await_end(self, job: int) -> None:
        """Wait for the end of a job, on the busiest machine no longer than PATIENCE."""
        late = time.monotonic() + PATIENCE
        while not self.over(job):
            assert time.monotonic() < late, f"lost: {self.office.row(job)}"
            time.sleep(MOMENT)

    def over(self, job: int) -> bool:
        """Whether a job has its end."""
        return self.office.row(job)["state"] in FINAL

    def check(self, name: str, state: str) -> None:
        """Look at what a work left behind."""
        home = self.office.home
        begun, ended, twice = (len(notes(home, name, what)) for what in ("begin", "end", "twice"))
        assert not twice and begun <= ATTEMPTS, f"{name} was begun {begun} times"
        assert state in ("done", "error")
        assert ended or state == "error", f"{name} is {state} and was never at its end"
        assert worker_of(home, name) is None
        self.ends[state] += 1

    def whole(self) -> None:
        """Close: each case has looked at its own job."""
        self.office.close()
