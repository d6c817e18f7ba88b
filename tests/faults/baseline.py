"""How many small changes of a room its tests notice, and what the tests of each room take.

`measured` draws the same mutants for a seed (`small_changes`), runs of each the files of tests that
execute its statement, and names those that survive. A line that only a process of its own executes
is seen in no file: then all files of the room run. docs/baseline.json keeps the newest run of each
room, and beside it the seconds of `make test` by room.
"""

from __future__ import annotations

import queue
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from coverage import CoverageData

from scripts.small_changes import Mutant, draw
from tests import ROOT
from tests.faults.planting import HUNG, Fault, Text, copied, planted, run
from torra.clock import System

ROOMS: Final = {
    "verdict": ("torra/verdict", "tests/verdict"),
    "trading": ("torra/trading", "tests/trading"),
    "store": ("torra/store", "tests/store"),
    "debate": ("agents/debate", "tests/agents"),
}
"""The folder of a room's modules and the folder of its tests."""

RECORDS: Final = (*ROOMS, "seconds")
"""The records in their order; the last one is what the tests of each room take."""

SEED: Final = 63
COUNT: Final = 50
"""Mutants of a room."""

FALL: Final = 0.05
"""By how much the share of all rooms together may fall: chance alone moves 50 mutants as far."""

UNDER_WAY: Final = ROOT / "build" / "small_changes"
"""Where a run notes the outcomes of a room until it has them all."""

PYTEST: Final = (
    *("-m", "pytest", "-x", "-q", "--tb=no", "-m", "not journey"),
    *("-p", "no:randomly", "-p", "no:cacheprovider"),
)

PATIENCE: Final = 10.0
"""How many times their usual seconds the tests of a mutant may take, a minute more for the start:
what takes longer hangs, which is noticed.
"""


Trees = queue.Queue[Path]
"""Copies of the tree that nobody uses."""


class Reach(NamedTuple):
    """What a file of tests takes, and which lines of the room it executes, by file."""

    seconds: float
    lines: dict[str, set[int]]


def measured(room: str, workers: int) -> dict[str, Any]:
    """Return the record of a room: its mutants, how many its tests noticed, who survived.

    A run that was broken off goes on behind its last mutant, and `seconds` are of the last run.
    ValueError says that the folder has nothing to change, or that none of its tests passes.
    """
    source, tests = ROOMS[room]
    began = System().monotonic()
    mutants = list(draw(ROOT, source, COUNT, SEED))
    if not mutants:
        raise ValueError(f"{source} has nothing to change: ROOMS needs the folder of today")
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / tests).rglob("test_*.py")]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as threads:
        free: Trees = queue.Queue()
        for number in range(workers):
            free.put(copied(Path(folder) / str(number)))
        notes = UNDER_WAY / f"{room}-{digest(Path(folder) / '0')}"
        reaches = zip(files, threads.map(lambda one: reach(free, one, source), files), strict=True)
        green = {file: one for file, one in reaches if one is not None}
        states = outcomes(
            notes, mutants, lambda rest: threads.map(lambda one: is_noticed(free, one, green), rest)
        )
    notes.unlink()
    survivors = [one for one, noticed in zip(mutants, states, strict=True) if not noticed]
    return {
        "date": System().real_now().date().isoformat(),
        "seed": SEED,
        "mutants": len(mutants),
        "killed": sum(states),
        "survived": len(survivors),
        "share": round(sum(states) / len(mutants), 3),
        "seconds": round(System().monotonic() - began),
        "survivors": [
            {"file": one.file, "function": one.function, "change": one.change}
            for one in sorted(survivors)
        ],
    }


def digest(tree: Path) -> str:
    """Return what tells the files of a tree from those of any other."""
    total = sha256()
    for path in sorted(tree.rglob("*")):
        if path.is_file():
            total.update(f"{path.relative_to(tree)}\0".encode() + path.read_bytes())
    return total.hexdigest()[:16]


def outcomes(
    notes: Path,
    mutants: Sequence[Mutant],
    attempt: Callable[[Sequence[Mutant]], Iterable[bool]],
) -> list[bool]:
    """Return whether each mutant is noticed; an outcome in the notes needs no attempt."""
    notes.parent.mkdir(parents=True, exist_ok=True)
    notes.touch()
    for noticed in attempt(mutants[len(notes.read_bytes()) :]):
        with notes.open("a", encoding="utf-8") as file:
            file.write(f"{noticed:d}")
    return [mark == "1" for mark in notes.read_text(encoding="utf-8")]


def share(records: Mapping[str, Any]) -> float:
    """Return the share of the mutants of all rooms on record that are noticed."""
    rooms = [records[room] for room in ROOMS if room in records]
    return sum(one["killed"] for one in rooms) / max(1, sum(one["mutants"] for one in rooms))


def reach(free: Trees, file: str, source: str) -> Reach | None:
    """Run a file of tests in a tree that nobody changed; None when it fails there."""
    clock = System()
    began = clock.monotonic()
    tree = free.get()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines"
        command = ("-m", "coverage", "run", f"--data-file={path}", f"--source={source}")
        code, words = run((sys.executable, *command, *PYTEST, file), tree, 1800)
        free.put(tree)
        if code:
            print(f"{file} fails as it is, and is left out: {words[-300:]}", flush=True)
            return None
        data = CoverageData(str(path))
        data.read()
        lines = {
            Path(name).relative_to(tree.resolve()).as_posix(): set(data.lines(name) or ())
            for name in data.measured_files()
        }
    return Reach(clock.monotonic() - began, lines)


def reaching(mutant: Mutant, reaches: dict[str, Reach]) -> list[str]:
    """Return the files of tests that execute a mutant's statement, the quickest first; all of them
    where none does.
    """
    by_seconds = sorted(reaches, key=lambda file: reaches[file].seconds)
    lines = {*mutant.lines}
    if not by_seconds:
        raise ValueError("no file of the room's tests passes in a tree that nobody changed")
    return [
        file for file in by_seconds if lines & reaches[file].lines.get(mutant.file, set())
    ] or by_seconds


def is_noticed(free: Trees, mutant: Mutant, reaches: dict[str, Reach]) -> bool:
    """Plant a mutant and run the files that reach it; a test that fails or hangs notices it.

    RuntimeError says that pytest came to another end: nothing was tried.
    """
    files = reaching(mutant, reaches)
    usual = sum(reaches[file].seconds for file in files)
    text = Text(mutant.file, mutant.before, mutant.after)
    tree = free.get()
    with planted(Fault("", "", mutant.change, (text,), ()), tree):
        code, words = run((sys.executable, *PYTEST, *files), tree, 60 + PATIENCE * usual)
    free.put(tree)
    if code not in (0, 1, HUNG):
        raise RuntimeError(
            f"{mutant.file} {mutant.change}: pytest ended with {code}, {words[-300:]}"
        )
    word = "noticed " if code else "SURVIVED"
    print(
        f"{word} {len(files):3} files  {mutant.file} {mutant.function} {mutant.change}", flush=True
    )
    return code != 0
