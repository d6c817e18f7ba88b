"""What a planted fault is, and how one is put into a copy of the program and taken out again.

A fault names a text that is in a file exactly once, what stands there instead, and the tests that
must then fail. `copied` makes the copy that is spoilt; the tree itself is never touched. Planting a
text that is not there, or there twice, is a ValueError: the table has rotted. Which faults there
are is left to `mutants`, running the tests to `mutate`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from tests import ROOT

HUNG: Final = -1
"""Exit code of a program that had to be ended."""


class Edit(NamedTuple):
    """One text of a file, and what stands there instead."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Fault:
    """A safeguard that is taken out, and the tests each of which must notice.

    `promise` is the id of the promise that it belongs to, `doors` for the doors of the dashboard;
    `options` are pytest's. `also` is changed with it, where one line guards another.
    """

    id: str
    promise: str
    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    options: tuple[str, ...] = ()
    also: tuple[Edit, ...] = ()

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Everything that is changed."""
        return (Edit(self.file, self.old, self.new), *self.also)


def copied(target: Path) -> Path:
    """Copy every file that is, or could be, under version control; return the copy's folder."""
    told = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in told.stdout.decode().split("\0"):
        source, place = ROOT / name, target / name
        if name and source.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)
    return target


@contextmanager
def planted(fault: Fault, tree: Path) -> Iterator[None]:
    """Spoil a copy of the tree, and mend it at the end."""
    before = {edit.file: (tree / edit.file).read_text(encoding="utf-8") for edit in fault.edits}
    after = dict(before)
    for edit in fault.edits:
        if after[edit.file].count(edit.old) != 1:
            raise ValueError(f"{fault.id}: {edit.file} has not exactly one {edit.old!r}")
        after[edit.file] = after[edit.file].replace(edit.old, edit.new)
    try:
        for name, text in after.items():
            _write(tree / name, text)
        yield
    finally:
        for name, text in before.items():
            _write(tree / name, text)


def run(command: Sequence[str], tree: Path, seconds: float) -> tuple[int, str]:
    """Run a program in a copy; return its exit code, HUNG when it had to be ended, and its words.

    What it started ends with it.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(
            command,
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = HUNG
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        return code, said.read()


def _write(path: Path, text: str) -> None:
    """Write a file so that it is seen to be another: Python compares whole seconds and sizes."""
    later = path.stat().st_mtime_ns + 2_000_000_000
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(later, later))
