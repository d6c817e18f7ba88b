"""The process in which a job's work runs: `python -m torra.jobs.child`, started by a desk's worker.

The first line on standard input is the job as JSON: home, work, parameters, niceness, memory and
patience. Every later line is a sign of life of the desk. Where the input ends, as it does when the
desk dies however it dies, or stays silent for longer than the patience, this process ends itself
within a second, in the middle of whatever it does: no work outlives its desk. SIGTERM stops the
work as Ctrl-C would.

Standard output has one JSON object a line: {stage, done, total} for progress, and at the end {says,
made} or {failed, again}. What a work prints goes nowhere. It runs at the lowest priority and with
bounded memory where the system knows such bounds, so that no tick of the desk waits for it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

from torra.clock import System
from torra.errors import Busy, StoreUnavailable, TorraError, bounded
from torra.imports import freeze_gc
from torra.jobs.kinds import JobResult, Parameters, Work
from torra.jobs.priority import step_back
from torra.services import in_background

if sys.platform != "win32":
    import resource

ORPHANED: Final = 4
"""Exit code of a child whose desk is gone."""

LOOK_SECONDS: Final = 0.25
"""Time between two looks at how long the desk has been silent."""

TELL_SECONDS: Final = 0.2
"""Least time between two words about the same stage."""

CLOCK: Final = System()


class ParentPipe:
    """The desk at the other end of the pipe: ends this process when it is gone or silent."""

    def __init__(
        self, line: IO[bytes], patience: float, end: Callable[[int], object] = os._exit
    ) -> None:
        self._line = line
        self._patience = patience
        self._end = end
        self._received_at = CLOCK.monotonic()

    def watch(self) -> None:
        """Watch from now on, whatever the main thread does."""
        for work in (self._listen, self._look):
            in_background("desk", work)

    def _listen(self) -> None:
        while self._line.readline():
            self._received_at = CLOCK.monotonic()
        self._end(ORPHANED)

    def _look(self) -> None:
        while CLOCK.monotonic() - self._received_at <= self._patience:
            CLOCK.sleep(LOOK_SECONDS)
        self._end(ORPHANED)


class ProgressWriter:
    """Writes what becomes of the work, one JSON object a line."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._stage = ""
        self._written_at = -TELL_SECONDS

    def progress(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Tell how far the work is; of many words about one stage few are passed on."""
        now = CLOCK.monotonic()
        if stage == self._stage and done < total and now - self._written_at < TELL_SECONDS:
            return
        self._stage, self._written_at = stage, now
        self.write({"stage": bounded(stage), "done": int(done), "total": int(total)})

    def write(self, message: dict[str, Any]) -> None:
        """Write one object."""
        self._out.write(json.dumps(message).encode() + b"\n")
        self._out.flush()


def main() -> int:
    """Run the job that standard input names; return the exit code, 0 where the work is done."""
    report = ProgressWriter(os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
    # Whatever a work or a library prints would be read as a word of ours.
    sys.stdout = sys.stderr
    job = json.loads(sys.stdin.buffer.readline())
    ParentPipe(sys.stdin.buffer, job["patience"]).watch()
    signal.signal(signal.SIGTERM, _stop)
    step_back(job["niceness"])
    if sys.platform != "win32":
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = job["memory"] if most == resource.RLIM_INFINITY else min(job["memory"], most)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))
    freeze_gc()
    try:
        result = work_of(job["work"])(Path(job["home"]), job["parameters"], report.progress)
        report.write({"says": bounded(result.says), "made": result.made})
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 - a defect is told as well
        report.write(_failure(error, job["memory"]))
        return 1
    return 0


def _failure(error: BaseException, memory: int) -> dict[str, Any]:
    """Return what is told of a work that failed, and whether trying again may mend it."""
    detail = str(error)
    if isinstance(error, KeyboardInterrupt):
        detail = "it was stopped"
    elif isinstance(error, MemoryError):
        detail = f"it needs more memory than a job may have, {memory / 2**30:.1f} GB: ask for less"
    elif not isinstance(error, TorraError):
        detail = f"it broke: {type(error).__name__}: {error}"
    again = isinstance(error, (KeyboardInterrupt, Busy, StoreUnavailable))
    return {"failed": bounded(detail), "again": again}


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def work_of(dotted: str) -> Work:
    """Return the function that a dotted name MODULE:NAME names."""
    module, _, name = dotted.partition(":")
    work: Callable[[Path, Parameters, Any], JobResult] = getattr(
        importlib.import_module(module), name
    )
    return work


if __name__ == "__main__":
    # Not sys.exit: Python would wait in vain for the thread that listens to the desk, and abort.
    os._exit(main())
