"""The worker of a desk: it runs the jobs that were asked for, in two lanes.

It walks four times a second beside the courier. Each turn it looks after the jobs that run, and
begins the oldest one that is due in a lane with room: the heavy lane does one job after the other,
the light lane two of different kinds at a time, each within LIGHT_SECONDS. The work is done
in a process of its own (torra.jobs.process), which dies with its desk. Every change of a job is one
transaction of the desk: a worker whose desk has lost its lock writes nothing and ends its
processes.

A job that another desk left running is tried again, at most ATTEMPTS times altogether, and no
sooner than the process of that desk can be gone: no job runs twice at the same time. Nothing that
fails here ends the worker: it is logged, and the next turn tries again.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from instance_database import Database
from torra.clock import System
from torra.errors import StoreUnavailable
from torra.jobs.kinds import ATTEMPTS, JobKind, parameters_of
from torra.jobs.process import Bounds, ChildMessage, JobProcess
from torra.services import Service
from torra.store import jobs as job_table
from torra.store.connection import RowDict

TURN_SECONDS: Final = 0.25
"""Real seconds between two turns."""

STOP_SECONDS: Final = 1.0
"""Real seconds that a process has to stop when it is asked to; then it is killed."""

NOTE_SECONDS: Final = 1.0
"""Real seconds between two notes about the progress of one stage."""

KEEP_UP_SECONDS: Final = 5.0
"""How often kinds of jobs are asked whether they want one by themselves, from the start on."""

RETRY_SECONDS: Final = 5.0
"""Real seconds until a job is tried again: longer than a child can outlive a desk."""

LANES: Final = {job_table.LIGHT: 2, "heavy": 1}
"""How many jobs run at the same time in each lane, no two of one kind."""

LIGHT_SECONDS: Final = 150.0
"""Real seconds that a light job may run; then it is stopped."""

STOPPED: Final = "The desk was stopped; the job goes on where one runs."
LEFT: Final = "The desk that ran it is gone"
CANCELLED: Final = "Cancelled by a person."
TOO_LONG: Final = "It was stopped after {:.0f} seconds, the most that such a job may take."
UNREADABLE: Final = "What it was asked for with cannot be read."

CLOCK: Final = System()

log = logging.getLogger("torra")


@dataclass(slots=True)
class _Run:
    """A job that runs in a process of this desk, and what is known of it (monotonic seconds)."""

    number: int
    attempt: int
    kind: str
    lane: str
    process: JobProcess
    begun: float
    last: ChildMessage | None = None
    progress: ChildMessage | None = None
    noted_stage: str | None = None
    noted: float = 0.0
    kill_at: float | None = None

    def take_messages(self) -> None:
        """Take what the process has said since it was last asked."""
        for message in self.process.words():
            if message.last:
                self.last = message
            elif message.stage is not None:
                self.progress = message


class Worker(Service):
    """Runs the jobs of one desk.

    `tell` hears of every change, as text by name.
    """

    def __init__(
        self,
        database: Database,
        home: Path,
        kinds: Mapping[str, JobKind],
        *,
        tell: Callable[..., None] = lambda **_: None,
        bounds: Bounds | None = None,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        super().__init__("jobs", TURN_SECONDS, self._turn)
        self._database = database
        self._home = home
        self._kinds = kinds
        self._tell = tell
        self._bounds = bounds or Bounds()
        self._retry_seconds = retry_seconds
        self._runs: dict[int, _Run] = {}
        self._due: dict[int, float] = {}
        self._kept_up = -math.inf

    @property
    def children(self) -> list[int]:
        """The processes of the jobs that run."""
        return [run.process.number for run in self._runs.values()]

    def shut(self) -> None:
        """End the processes of the jobs that run.

        Where this desk still has its lock each is laid back, and this attempt does not count.
        """
        self._try(self._lay_down)

    # --- a turn -----------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Do everything once. Without the desk's lock only the processes are ended."""
        if not self._database.fence():
            self._let_go()
            return
        self._take_up_left()
        for run in [*self._runs.values()]:
            self._look(run)
        self._keep_up()
        for row in self._waiting():
            running = [run.kind for run in self._runs.values() if run.lane == row["lane"]]
            if len(running) < LANES[row["lane"]] and row["kind"] not in running:
                self._begin(row)

    def _keep_up(self) -> None:
        """Let each kind ask for a job by itself, now and then."""
        now = CLOCK.monotonic()
        if now < self._kept_up + KEEP_UP_SECONDS:
            return
        self._kept_up = now
        for kind in self._kinds.values():
            if kind.keep_up is not None:
                self._try(partial(kind.keep_up, self._database))

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except StoreUnavailable as error:
            log.warning("jobs: %s", error)
        except Exception:
            log.exception("jobs: the next turn tries again")

    def _take_up_left(self) -> None:
        """Lay back, or end, the jobs that run as the database says, but not in this process."""
        for row in job_table.jobs_in(self._database, "running"):
            if row["id"] not in self._runs:
                with self._fenced():
                    self._failed(row["id"], row["attempt"], LEFT)

    def _begin(self, row: RowDict) -> None:
        number, attempt = int(row["id"]), int(row["attempt"]) + 1
        with self._fenced():
            if not job_table.begin_job(self._database, number, row["state"]):
                return  # it was cancelled at this moment
        self._say(number, "running")
        self._due.pop(number, None)
        kind, parameters = self._kinds.get(row["kind"]), parameters_of(row)
        if kind is None or parameters is None:
            unknown = f"This program knows no job of the kind {row['kind']}."
            with self._fenced():
                self._end(number, "error", unknown if kind is None else UNREADABLE)
            return
        try:
            process = JobProcess(self._home, kind.work, parameters, self._bounds)
        except OSError as error:
            with self._fenced():
                self._failed(number, attempt, f"No process could be started: {error}")
            return
        self._runs[number] = _Run(
            number, attempt, kind.name, row["lane"], process, CLOCK.monotonic()
        )

    def _waiting(self) -> list[RowDict]:
        """Return the jobs that are due, the oldest first and what the desk asked for last."""
        now = CLOCK.monotonic()
        due = [
            row
            for row in job_table.jobs_in(self._database, "retrying")
            if now >= self._due.setdefault(row["id"], now + self._retry_seconds)
        ]
        due += job_table.jobs_in(self._database, "queued")
        return sorted(due, key=lambda row: (row["asked_by"] == job_table.THE_DESK, row["id"]))

    def _look(self, run: _Run) -> None:
        """Look after a job that runs."""
        run.process.show_life()
        ended = run.process.ended  # first: what it said before is taken then
        run.take_messages()
        if ended:
            self._conclude(run)
            return
        row, now = job_table.job(self._database, run.number), CLOCK.monotonic()
        late = run.lane == job_table.LIGHT and now >= run.begun + LIGHT_SECONDS
        if late or (row is not None and row["cancel"]):
            if run.kill_at is None:
                run.kill_at = now + STOP_SECONDS
                run.process.stop()
            elif now >= run.kill_at:  # it does not stop when it is asked to
                run.process.kill(0.0)  # no other job waits for its end
        message = run.progress
        # A new stage is noted at once, how far it is once in a while.
        if (
            message is None
            or message.stage is None
            or (message.stage == run.noted_stage and now - run.noted < NOTE_SECONDS)
        ):
            return
        stage, done, total = message.stage, message.done, message.total
        with self._fenced():
            job_table.note_progress(self._database, run.number, stage, done, total)
        run.noted_stage, run.noted, run.progress = stage, now, None
        self._say(run.number, "running", stage=stage, done=str(done), total=str(total))

    def _conclude(self, run: _Run) -> None:
        """Write how a process ended that is gone."""
        run.process.kill(0.0)  # closes its pipes
        word = run.last
        with self._fenced():
            row = job_table.job(self._database, run.number)
            if word is not None and word.says is not None:
                self._end(run.number, "done", word.says, word.made)
            elif row is not None and row["cancel"]:
                self._end(run.number, "cancelled", CANCELLED)
            elif run.kill_at is not None:
                self._end(run.number, "error", TOO_LONG.format(LIGHT_SECONDS), code="TIMEOUT")
            elif word is not None and not word.again:
                self._end(run.number, "error", _sentence(word.failed or ""))
            else:
                why = (word and word.failed) or f"Its process {run.process.exit}"
                self._failed(run.number, run.attempt, why)
        del self._runs[run.number]

    def _failed(self, number: int, attempt: int, why: str, *, given_back: bool = False) -> None:
        """Let a job be tried again, or end it where it was tried often enough.

        `given_back`: this attempt does not count.
        """
        row = job_table.job(self._database, number)
        if row is not None and row["cancel"]:
            self._end(number, "cancelled", CANCELLED)
        elif given_back or attempt < ATTEMPTS:
            says = why if given_back else _sentence(f"{why}; it is tried again")
            job_table.lay_job_back(self._database, number, says, given_back=given_back)
            # Counted from here: whoever ran it may be at its end just now.
            self._due[number] = CLOCK.monotonic() + self._retry_seconds
            self._say(number, "retrying")
        else:
            says = _sentence(f"{why}; it was tried {attempt} times")
            self._end(number, "error", says, code="LOST")

    def _end(self, number: int, state: str, says: str, made: str = "", code: str = "") -> None:
        job_table.end_job(self._database, number, "running", state, says, made, code)
        self._say(number, state)

    def _say(self, number: int, state: str, **more: str) -> None:
        self._tell(job=str(number), state=state, **more)

    # --- letting go -------------------------------------------------------------------------------

    def _let_go(self) -> None:
        """End the processes at once and write nothing: the jobs are another desk's."""
        runs, self._runs = self._runs, {}
        for run in runs.values():
            run.process.kill(STOP_SECONDS)

    def _lay_down(self) -> None:
        """End the processes in order, and let the jobs go on where a desk works again."""
        runs, end = [*self._runs.values()], CLOCK.monotonic() + STOP_SECONDS
        try:
            if not runs or not self._database.fence():
                return
            for run in runs:
                run.process.stop()
            for run in runs:
                if not run.process.wait(max(0.0, end - CLOCK.monotonic())):
                    run.process.kill(STOP_SECONDS)
                run.take_messages()
                if run.last is not None and run.last.says is not None:
                    self._conclude(run)
                    continue
                with self._fenced():
                    self._failed(run.number, run.attempt, STOPPED, given_back=True)
        finally:
            self._let_go()

    @contextmanager
    def _fenced(self) -> Iterator[None]:
        """Begin a transaction of the desk; raises StoreUnavailable without its lock."""
        with self._database.transaction():
            self._database.require_desk()
            yield


def _sentence(text: str) -> str:
    """Return a text as a sentence: with a capital letter and an end."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
