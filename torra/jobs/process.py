"""A job's process as its worker sees it: started, kept alive by signs of life, stopped, heard.

The pipe to the child is its lifeline (torra.jobs.child): it closes with this process, however that
ends. What the child says is read on a thread of its own and taken when the worker looks. A child
that says what cannot be read counts as one that has said nothing. Starting may raise OSError.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from torra.config import CHECKOUT
from torra.jobs.kinds import Parameters
from torra.jobs.priority import NICENESS
from torra.services import in_background

MEMORY_BYTES: Final = 2 * 2**30
"""Memory that a child may take for its data (RLIMIT_DATA)."""

PATIENCE_SECONDS: Final = 4.0
"""Silence after which a child ends itself, whatever became of its desk: shorter than the wait of
the next desk before it tries the job again (torra.jobs.worker)."""

LONGEST_LINE: Final = 8192
"""Bytes of one word of a child."""

ALONE: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that keep libraries of arithmetic to one thread."""


class ChildMessage(BaseModel):
    """One line of a child: progress, or how it ended."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    stage: str | None = None
    done: int = 0
    total: int = 0
    says: str | None = None
    made: str = ""
    failed: str | None = None
    again: bool = False

    @property
    def last(self) -> bool:
        """Whether it tells the end."""
        return self.says is not None or self.failed is not None


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a child may take, and how long it waits for a sign of its desk in seconds."""

    niceness: int = NICENESS
    memory: int = MEMORY_BYTES
    patience: float = PATIENCE_SECONDS


class JobProcess:
    """The process of one attempt at a job."""

    def __init__(self, home: Path, work: str, parameters: Parameters, bounds: Bounds) -> None:
        self._words: queue.SimpleQueue[ChildMessage] = queue.SimpleQueue()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "torra.jobs.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            # Ctrl-C at the desk's terminal is for the desk, which decides about its jobs.
            start_new_session=True,
        )
        job = {
            "home": str(home.absolute()),
            "work": work,
            "parameters": dict(parameters),
            "niceness": bounds.niceness,
            "memory": bounds.memory,
            "patience": bounds.patience,
        }
        self._write(json.dumps(job).encode() + b"\n")
        self._reader = in_background("job", partial(self._read, self._process.stdout))

    @property
    def number(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it is gone and everything that it said can be taken."""
        return self._process.poll() is not None and not self._reader.is_alive()

    @property
    def exit(self) -> str:
        """How it ended, for a sentence."""
        code = self._process.poll()
        if code is not None and code < 0:
            return f"was ended by the signal {-code}"
        return f"ended with code {code}"

    def words(self) -> list[ChildMessage]:
        """Take what it has said since it was last asked."""
        messages = []
        with suppress(queue.Empty):
            while True:
                messages.append(self._words.get_nowait())
        return messages

    def show_life(self) -> None:
        """Let it know that its desk works."""
        self._write(b"\n")

    def stop(self) -> None:
        """Ask it to stop as Ctrl-C would."""
        self._process.terminate()

    def kill(self, within: float) -> None:
        """End it now, and wait for that so many seconds at most."""
        self._process.kill()
        self.wait(within)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not self._reader.is_alive():
                with suppress(OSError):
                    pipe.close()

    def wait(self, seconds: float) -> bool:
        """Wait for its end, so many seconds at most; return whether it came."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            self._reader.join(seconds)
        return self.ended

    def _write(self, line: bytes) -> None:
        # A child that is gone is found out by its end.
        with suppress(OSError, ValueError):
            pipe: IO[bytes] | None = self._process.stdin
            if pipe is not None:
                pipe.write(line)
                pipe.flush()

    def _read(self, out: IO[bytes] | None) -> None:
        with suppress(OSError, ValueError):
            while out and (line := out.readline(LONGEST_LINE)):
                with suppress(ValidationError):
                    self._words.put(ChildMessage.model_validate_json(line))


def _environment() -> dict[str, Any]:
    """Return the child's environment: its own program first, and one thread for arithmetic."""
    path = os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH", ""))))
    return {**os.environ, **dict.fromkeys(ALONE, "1"), "PYTHONPATH": path}
