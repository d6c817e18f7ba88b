"""Runs independent jobs on any `concurrent.futures` executor: this process, many, or a cluster.

A job is a name and a spec of plain JSON values; the work is a function of a module, so that its
name alone travels. Results are plain JSON too and come back in the order of the jobs: the executor,
the order in which jobs end and an interruption change nothing in them.

A job whose worker died runs again, and nothing else does. An error of the work itself is raised at
once, with the name of the job, and is not tried again. Finished results are kept when there is a
folder for them, one file a job, whole or not there. A kept result counts for the same work, spec
and program only: an interrupted run goes on where it was, one of another version starts afresh.

Executors of this machine are torra.replay.shards.executors', one of a cluster is
torra.replay.shards.cluster's: nothing here opens a network.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import platform
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from torra.clock import System
from torra.errors import ConfigError, TorraError
from torra.whole_files import write_whole

Work = Callable[[Mapping[str, Any]], Mapping[str, Any]]

TRIES: Final = 3
"""How often a job is started whose worker dies."""

TOLD_SECONDS: Final = 10.0
"""How often it is told how far a run is whose jobs take longer than that."""

BEAT_SECONDS: Final = 2.0
"""How often an executor with a `check` is asked whether it still has workers."""

LOST: Final = (
    BrokenExecutor,
    CancelledError,
    asyncio.CancelledError,
    ConnectionError,
    EOFError,
)
"""Exceptions of a dead worker, or of a broken way to it. The work's own errors come as values, so
none of them can be taken for one of these.
"""

ROOT: Final = Path(__file__).resolve().parents[3]
MACHINERY: Final = "distributed"
"""The package whose every exception is about workers and never about the work."""

PROGRAM: Final = (
    "agent_config",
    "agent_framework",
    "ath_calculator",
    "instance_database",
    "news_collector",
    "scoring_rubric",
    "signal_bridge",
    "technical_calculator",
    "torra_trader",
)
"""Torra's modules outside its packages."""

PACKAGES: Final = ("agents/**/*.py", "torra/*.py", "torra/[!_]*/**/*.py")
LIBRARIES: Final = ("numpy", "pandas", "pandas-ta-classic", "ta-lib")
"""Libraries whose versions can change a result."""


@dataclass(frozen=True, slots=True)
class Job:
    """One part of a run: `spec` is JSON, names everything the work needs, and holds no secret.

    It begins when the job that is named by `after` has ended; "" where it waits for none.
    """

    name: str
    spec: Mapping[str, Any]
    after: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run: `name` has just ended, "" where it only goes on.

    `kept` results are from an earlier run. `left_s` estimates the seconds that remain, None until
    one job has been timed, and `gone_s` has passed.
    """

    done: int
    total: int
    kept: int
    name: str
    left_s: float | None
    gone_s: float = 0.0

    def line(self) -> str:
        """Return the progress as a line for a terminal."""
        if not self.name:
            return f"{self.done} of {self.total} done after {duration_text(self.gone_s)}"
        if self.left_s is None or self.done == self.total:
            return f"{self.done}/{self.total} {self.name}"
        left = f", about {duration_text(self.left_s)} left"
        return f"{self.done}/{self.total} {self.name}{left}"


class JobFailed(TorraError):
    """A job raised, or killed every worker that it was given to."""


def run_all(
    jobs: Sequence[Job],
    work: Work,
    executor: Executor,
    *,
    on_done: Callable[[Progress], None] = lambda _: None,
    on_wait: Callable[[Progress], None] = lambda _: None,
    tries: int = TRIES,
    keep: Path | None = None,
    now: Callable[[], float] | None = None,
) -> list[Mapping[str, Any]]:
    """Return the result of every job, in the order of the jobs, in which they begin too.

    `on_done` hears of every job that ended, `on_wait` every TOLD_SECONDS that some go on. `keep` is
    a folder for finished results. Raises JobFailed with the job's name (ConfigError where
    the work raised that), ValueError for a spec that is not JSON. `now` is a clock in seconds, for
    tests.
    """
    clock = now or System().monotonic
    run = _Run(jobs, work, executor, on_done, on_wait, tries, keep, clock)
    try:
        run.until_done()
    finally:
        run.give_up()
    return [run.results[number] for number in range(len(jobs))]


def duration_text(seconds: float) -> str:
    """Return a number of seconds in words that a person reads at a glance."""
    if seconds < 90:
        return f"{max(1, math.ceil(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


# --- the run --------------------------------------------------------------------------------------


@dataclass
class _Run:
    """The state of one `run_all`."""

    jobs: Sequence[Job]
    work: Work
    executor: Executor
    on_done: Callable[[Progress], None]
    on_wait: Callable[[Progress], None]
    tries: int
    keep: Path | None
    now: Callable[[], float]
    results: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    running: dict[Future[str], int] = field(default_factory=dict)
    started: dict[int, int] = field(default_factory=dict)
    kept: int = 0
    begin: float = 0.0
    beaten: float = 0.0
    told: float = 0.0

    def until_done(self) -> None:
        self.begin = self.beaten = self.told = self.now()
        self.specs = [_text(job) for job in self.jobs]
        self._take_kept()
        waiting = deque(number for number in range(len(self.jobs)) if number not in self.results)
        while waiting or self.running:
            if not self.running and self._due(waiting) is None:
                job = self.jobs[waiting[0]]
                raise ValueError(f"{job.name} waits for {job.after}, which never ends")
            while len(self.running) < self._room() and (due := self._due(waiting)) is not None:
                waiting.remove(due)
                self._start(due, waiting)
            self._harvest(waiting)

    def _due(self, waiting: Iterable[int]) -> int | None:
        """Return the first job that waits for no other one."""
        ended = {self.jobs[number].name for number in self.results}
        return next((one for one in waiting if self.jobs[one].after in ("", *ended)), None)

    def give_up(self) -> None:
        """Cancel whatever has not begun; nothing is left of a run that is done."""
        for future in self.running:
            future.cancel()

    def _room(self) -> int:
        """Return how many jobs may be out: one for each worker, so a dead one takes one along."""
        return int(getattr(self.executor, "workers", 0) or os.cpu_count() or 1)

    def _start(self, number: int, waiting: deque[int]) -> None:
        self.started[number] = self.started.get(number, 0) + 1
        # Processes of ours run our program; a worker of a cluster may be older.
        code = program()["code"] if getattr(self.executor, "elsewhere", False) else None
        try:
            future = self.executor.submit(_told, self.work, self.specs[number], code)
        except Exception as error:
            if not is_loss(error):
                raise
            self._lost(number, error, waiting)
        else:
            self.running[future] = number

    def _harvest(self, waiting: deque[int]) -> None:
        # With an end: a cluster that has lost its workers finishes no job, and `_beat` must see it.
        done, _ = wait(self.running, timeout=BEAT_SECONDS, return_when=FIRST_COMPLETED)
        self._beat()
        # In the order of the jobs: of several errors the same one is raised every time.
        for future in sorted(done, key=self.running.__getitem__):
            number = self.running.pop(future)
            try:
                answer = future.result()
            # CancelledError of asyncio is no Exception.
            except BaseException as error:
                if not is_loss(error):
                    raise
                self._lost(number, error, waiting)
            else:
                self._finish(number, _result(self.jobs[number].name, answer))

    def _beat(self) -> None:
        if self.now() - self.beaten < BEAT_SECONDS:
            return
        self.beaten = self.now()
        if self.beaten - self.told >= TOLD_SECONDS:
            self.told = self.beaten
            gone = self.beaten - self.begin
            self.on_wait(Progress(len(self.results), len(self.jobs), self.kept, "", None, gone))
        if callable(check := getattr(self.executor, "check", None)):
            check()

    def _lost(self, number: int, error: BaseException, waiting: deque[int]) -> None:
        if self.started[number] >= self.tries:
            raise JobFailed(
                f"{self.jobs[number].name}: its worker died {self.tries} times "
                f"({type(error).__name__}: {error})"
            ) from error
        waiting.appendleft(number)

    def _finish(self, number: int, result: Mapping[str, Any]) -> None:
        self.results[number] = result
        if self.keep is not None:
            _write(self.keep, self._stamp(number), self.jobs[number].name, result)
        self._tell(number)

    def _tell(self, number: int) -> None:
        done, fresh = len(self.results), len(self.results) - self.kept
        left = None
        # Kept jobs took no time, and would make the rest look quick.
        if fresh:
            left = (self.now() - self.begin) / fresh * (len(self.jobs) - done)
        name = self.jobs[number].name
        self.on_done(Progress(done, len(self.jobs), self.kept, name, left))

    def _take_kept(self) -> None:
        if self.keep is None:
            return
        for number in range(len(self.jobs)):
            result = _read(self.keep, self._stamp(number))
            if result is not None:
                self.results[number] = result
                self.kept += 1
        if self.kept:
            self._tell(max(self.results))

    def _stamp(self, number: int) -> str:
        return stamp(self.work, self.specs[number])


def is_loss(error: BaseException) -> bool:
    """Return whether an error says that a worker was lost, and nothing about the work."""
    family = type(error).__mro__
    return isinstance(error, LOST) or any(
        kind.__module__.split(".")[0] == MACHINERY for kind in family
    )


def _text(job: Job) -> str:
    try:
        return json.dumps(job.spec, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"the spec of {job.name} is not JSON: {error}") from error


def _told(work: Work, spec: str, code: str | None) -> str:
    """Do a job in the worker; return the result as JSON, an error as a value.

    `code` names the program that a worker of another machine must run, whenever it was started.
    An exception would have to be pickled, which not every one can be, and could be taken for the
    death of the worker.
    """
    if code not in (None, here := program()["code"]):
        said = f"a worker runs another program ({here}, not {code}): install the same one"
        return json.dumps({"failed": said, "mistake": True})
    try:
        return json.dumps({"result": work(json.loads(spec))}, allow_nan=False)
    except Exception as error:  # noqa: BLE001 - told to whoever asked
        mistake = isinstance(error, ConfigError)
        said = str(error) if isinstance(error, TorraError) else f"{type(error).__name__}: {error}"
        return json.dumps({"failed": said, "mistake": mistake})


def _result(name: str, answer: str) -> Mapping[str, Any]:
    told: dict[str, Any] = json.loads(answer)
    if "failed" in told:
        raise (ConfigError if told["mistake"] else JobFailed)(f"{name}: {told['failed']}")
    found: Mapping[str, Any] = told["result"]
    return found


# --- what is kept ---------------------------------------------------------------------------------


def stamp(work: Work, spec: str) -> str:
    """Return the name of a result: a hash of the work, the spec and the program."""
    parts = (work.__module__, work.__qualname__, json.dumps(program(), sort_keys=True), spec)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _write(folder: Path, name: str, job: str, result: Mapping[str, Any]) -> None:
    text = json.dumps(result, allow_nan=False)
    document = {"job": job, "stamp": name, "digest": _digest(text), "result": text}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{name}.json", json.dumps(document).encode())
    except OSError as error:
        raise ConfigError(f"cannot keep results in {folder}: {error.strerror or error}") from error


def _read(folder: Path, name: str) -> Mapping[str, Any] | None:
    """Return a kept result; None where there is none, or the file is not what was written."""
    try:
        document = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        text = document["result"]
        whole = document["stamp"] == name and document["digest"] == _digest(text)
        found: Mapping[str, Any] | None = json.loads(text) if whole else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def program() -> Mapping[str, str]:
    """Return the versions that a result depends on: Python, libraries, a hash of our code."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    from technical_calculator import c_versions  # noqa: PLC0415

    found = {"python": platform.python_version(), "code": _code()}
    for library in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[library] = version(library)
    return {**found, **c_versions()}


def sources() -> list[Path]:
    """Return the files of the program, whatever room they are in."""
    files = [ROOT / f"{name}.py" for name in PROGRAM]
    return sorted({*files, *(path for pattern in PACKAGES for path in ROOT.glob(pattern))})


def _code() -> str:
    digest = hashlib.sha256()
    for path in sources():
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
