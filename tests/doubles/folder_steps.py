"""Steps on the files of a channel's folder that fail, or are made in another way.

Each is a `run` of torra.bridges.torra.drop_folder.DropFolder.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from torra.time_limit import Run

WRITING = ("mkdir", "open", "write", "fsync", "give", "rename", "replace", "flush_names")
"""Steps that write, by the functions that make them."""


class FaultyDisk:
    """Makes the steps of a folder; of those that write number `fails` raises `error`.

    Of what is written half is taken at a time: that is how disks fill up.
    """

    def __init__(self, fails: int = 0, error: OSError | None = None, lasts: int = 1) -> None:
        self.steps = 0
        self.fails = range(fails, fails + lasts) if fails else range(0)
        self.error = error or OSError(errno.ENOSPC, "No space left on device")

    def __call__(self, step: Callable[[], Any]) -> Any:
        assert isinstance(step, partial)
        if step.func.__name__ in WRITING:
            self.steps += 1
            if self.steps in self.fails:
                raise self.error
        if step.func is os.write:
            handle, data = step.args
            return os.write(handle, data[: len(data) // 2 + 1])
        return step()


def instead(**calls: Callable[[partial[Any]], Any]) -> Run:
    """Return a way to make steps: those of a name are made by the call of that name."""

    def run(step: Callable[[], Any]) -> Any:
        assert isinstance(step, partial)
        call = calls.get(step.func.__name__)
        return call(step) if call else step()

    return run


def files(root: Path) -> list[str]:
    """Return every file below a folder, by its place."""
    found = [path for path in root.rglob("*") if path.is_file()]
    return sorted(path.relative_to(root).as_posix() for path in found)
