"""Works of jobs that do as their parameters say, in the process of a job, and note what they did.

What a work did stands in HOME/works/NAME, a line for each step: `begin PID`, `end PID`, and `twice
PID` where another process was at the same work. So a test sees who ran, whatever was killed.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from torra.errors import Busy, ConfigError
from torra.jobs.kinds import JobKind, JobRequest, JobResult, Parameters, Tell

HOWS = ("done", "busy", "bad", "break", "hungry", "deaf", "die", "die once", "loud", "long once")


def note(home: Path, name: str, what: str) -> None:
    folder = home / "works"
    folder.mkdir(exist_ok=True)
    with (folder / name).open("a") as file:
        file.write(f"{what} {os.getpid()}\n")


def notes(home: Path, name: str, what: str = "") -> list[str]:
    """Return the lines about a work, or those that begin with a word."""
    path = home / "works" / name
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if line.startswith(what)]


def work(home: Path, parameters: Parameters, tell: Tell) -> JobResult:
    told: Any = parameters
    name, steps = told["name"], told["steps"]
    tell("begins", 0, steps)
    with (home / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            note(home, name, "twice")
        note(home, name, "begin")
        first = len(notes(home, name, "begin")) == 1
        _do(told["how"], first=first)
        seconds = told["seconds"] if first or told["how"] != "long once" else 0.0
        for step in range(steps):
            if told["how"] == "deaf":
                with suppress(KeyboardInterrupt):
                    time.sleep(seconds)
            else:
                time.sleep(seconds)
            tell("works", step + 1, steps)
        note(home, name, "end")
    return JobResult(f"{name} took {steps} steps.", name)


def _do(how: str, *, first: bool) -> None:
    if how == "busy":
        raise Busy("the folder is held by another process")
    if how == "bad":
        raise ConfigError("there is no such thing")
    if how == "break":
        raise ZeroDivisionError("by zero")
    if how == "hungry":
        bytearray(64 * 2**30)
    if how == "loud":
        print("a line that is no word of the protocol")
    if how == "die" or (how == "die once" and first):
        os.kill(os.getpid(), signal.SIGKILL)


def check(home: Path, asked: Parameters) -> JobRequest:
    told: Any = {"how": "done", "steps": 1, "seconds": 0.0, **asked}
    if told["how"] not in HOWS:
        raise ConfigError(f"how {told['how']}: one of {', '.join(HOWS)}")
    return JobRequest(told, told, str(told["name"]))


SCRIPTED = JobKind("scripted", "A scripted work", check, f"{__name__}:work")
LIGHT = tuple(replace(SCRIPTED, name=f"light {letter}", light=True) for letter in "abc")
"""Three kinds of the light lane."""
