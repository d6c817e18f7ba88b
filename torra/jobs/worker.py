"""The worker of a desk: it runs the jobs that were asked for, one after the other.

It walks four times a second beside the courier. Each turn it
looks after the job that runs, or begins the oldest one that is due. The work is done in a process
of its own (torra.jobs.process), which dies with its desk. Every change of a job is one transaction
of the desk: a worker whose desk has lost its lock writes nothing and ends its process.

A job that another desk left running is tried again, at most ATTEMPTS times altogether, and no
sooner than the process of that desk can be gone: no job runs twice at the same time. Nothing that
fails here ends the worker: it is logged, and the next turn tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from instance_database import Database
from torra.clock import System
from torra.errors import StoreUnavailable
from torra.jobs import states
from torra.jobs.kinds import THE_DESK, JobKind, parameters_of
from torra.jobs.process import Bounds, ChildMessage, JobProcess
from torra.services import Service
from torra.store import jobs as job_table

TURN_SECONDS: Final = 0.25
"""Real seconds between two turns."""

STOP_SECONDS: Final = 1.0
"""Real seconds that a process has to stop when it is asked to; then it is killed."""

NOTE_SECONDS: Final = 1.0
"""Real seconds between two notes about the progress of one stage."""

KEEP_UP_SECONDS: Final = 60.0
"""How often kinds of jobs are asked whether they want one of their own accord."""

RETRY_SECONDS: Final = 5.0
"""Real seconds until a job is tried again: longer than a child can outlive a desk."""

STOPPED: Final = "The desk was stopped; the job goes on where one runs."
LEFT: Final = "The desk that ran it is gone"
CANCELLED: Final = "Cancelled by a person."

CLOCK: Final = System()

log = logging.getLogger("torra")


@dataclass(slots=True)
class _Run:
    """The job that runs in this desk's process, and what is known of it (monotonic seconds)."""

    number: int
    attempt: int
    process: JobProcess
    last: ChildMessage | None = None
    progress: ChildMessage | None = None
    noted_stage: str | None = None
    noted: float = 0.0
    kill_at: float | None = None


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
        self._run: _Run | None = None
        self._due: dict[int, float] = {}
        self._kept_up = CLOCK.monotonic()

    @property
    def child(self) -> int | None:
        """The process of the job that runs; None where none does."""
        run = self._run
        return run.process.number if run else None

    def shut(self) -> None:
        """End the process of the job that runs.

        Where this desk still has its lock the job is laid back, and this attempt does not count.
        """
        self._try(self._lay_down)

    # --- a turn -----------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Do everything once. Without the desk's lock only the process is ended."""
        if not self._database.fence():
            self._let_go()
            return
        self._take_up_left()
        if self._run is None:
            self._keep_up()
            self._begin()
        else:
            self._look(self._run)

    def _keep_up(self) -> None:
        """Let each kind ask for a job of its own accord, now and then."""
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
            if self._run is None or self._run.number != row["id"]:
                with self._fenced():
                    self._failed(row["id"], row["attempt"], LEFT)

    def _begin(self) -> None:
        row = self._next()
        if row is None:
            return
        number, attempt = int(row["id"]), int(row["attempt"]) + 1
        with self._fenced():
            states.check_transition(row["state"], "running")
            if not job_table.begin_job(self._database, number, row["state"]):
                return  # it was cancelled at this moment
        self._say(number, "running")
        self._due.pop(number, None)
        kind = self._kinds.get(row["kind"])
        if kind is None:
            with self._fenced():
                told = f"This program knows no job of the kind {row['kind']}."
                self._end(number, "error", told)
            return
        parameters = parameters_of(row)
        if parameters is None:
            with self._fenced():
                self._end(number, "error", "What it was asked for with cannot be read.")
            return
        try:
            process = JobProcess(self._home, kind.work, parameters, self._bounds)
        except OSError as error:
            with self._fenced():
                self._failed(number, attempt, f"No process could be started: {error}")
            return
        self._run = _Run(number, attempt, process)

    def _next(self) -> dict[str, Any] | None:
        """Return the oldest job that is due; what the desk itself asked for comes last."""
        now = CLOCK.monotonic()
        waiting = [
            row
            for row in job_table.jobs_in(self._database, "retrying")
            if now >= self._due.setdefault(row["id"], now + self._retry_seconds)
        ]
        waiting += job_table.jobs_in(self._database, "queued")
        return min(waiting, key=lambda row: (row["asked_by"] == THE_DESK, row["id"]), default=None)

    def _look(self, run: _Run) -> None:
        """Look after the job that runs."""
        run.process.show_life()
        ended = run.process.ended  # first: what it said before is taken then
        for word in run.process.words():
            if word.last:
                run.last = word
            elif word.stage is not None:
                run.progress = word
        if ended:
            self._conclude(run)
            return
        row = job_table.job(self._database, run.number)
        if row is not None and row["cancel"]:
            self._stop(run)
        self._note(run)

    def _stop(self, run: _Run) -> None:
        """Ask a process to stop, and kill it when it does not."""
        if run.kill_at is None:
            run.kill_at = CLOCK.monotonic() + STOP_SECONDS
            run.process.stop()
        elif CLOCK.monotonic() >= run.kill_at:
            run.process.kill(STOP_SECONDS)

    def _note(self, run: _Run) -> None:
        """Note how far the work is, at once for a new stage and else once in a while."""
        word, now = run.progress, CLOCK.monotonic()
        if word is None or word.stage is None:
            return
        if word.stage == run.noted_stage and now - run.noted < NOTE_SECONDS:
            return
        with self._fenced():
            job_table.note_progress(self._database, run.number, word.stage, word.done, word.total)
        run.noted_stage, run.noted, run.progress = word.stage, now, None
        self._say(
            run.number, "running", stage=word.stage, done=str(word.done), total=str(word.total)
        )

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
            elif word is not None and not word.again:
                self._end(run.number, "error", _sentence(word.failed or ""))
            else:
                why = (word and word.failed) or f"Its process {run.process.exit}"
                self._failed(run.number, run.attempt, why)
        self._run = None

    def _failed(self, number: int, attempt: int, why: str) -> None:
        """Let a job be tried again, or end it where it was tried often enough."""
        row = job_table.job(self._database, number)
        if row is not None and row["cancel"]:
            self._end(number, "cancelled", CANCELLED)
        elif states.after_failure(attempt) == "retrying":
            states.check_transition("running", "retrying")
            job_table.lay_job_back(self._database, number, _sentence(f"{why}; it is tried again"))
            # Counted from here: whoever ran it may be at its end just now.
            self._due[number] = CLOCK.monotonic() + self._retry_seconds
            self._say(number, "retrying")
        else:
            self._end(number, "error", _sentence(f"{why}; it was tried {attempt} times"))

    def _end(self, number: int, state: str, says: str, made: str = "") -> None:
        states.check_transition("running", state)
        job_table.end_job(self._database, number, "running", state, says, made)
        self._say(number, state)

    def _say(self, number: int, state: str, **more: str) -> None:
        self._tell(job=str(number), state=state, **more)

    # --- letting go -------------------------------------------------------------------------------

    def _let_go(self) -> None:
        """End the process at once and write nothing: the job is another desk's."""
        run, self._run = self._run, None
        if run is not None:
            run.process.kill(STOP_SECONDS)

    def _lay_down(self) -> None:
        """End the process in order, and let the job go on where a desk works again."""
        run = self._run
        if run is None:
            return
        try:
            if self._database.fence():
                run.process.stop()
                if run.process.wait(STOP_SECONDS):
                    self._look_a_last_time(run)
                    return
                run.process.kill(STOP_SECONDS)
                self._laid_back(run)
        finally:
            self._let_go()

    def _look_a_last_time(self, run: _Run) -> None:
        words = [word for word in run.process.words() if word.last]
        if words and words[-1].says is not None:
            run.last = words[-1]
            self._conclude(run)
        else:
            self._laid_back(run)

    def _laid_back(self, run: _Run) -> None:
        with self._fenced():
            row = job_table.job(self._database, run.number)
            if row is not None and row["cancel"]:
                self._end(run.number, "cancelled", CANCELLED)
            else:
                job_table.lay_job_back(self._database, run.number, STOPPED, given_back=True)
                self._say(run.number, "retrying")

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
