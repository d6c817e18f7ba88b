"""A disk that fails at any step of a tick that sends halts the desk and damages nothing (D6).

test_full_disk fills a real disk up, page by page. Here each single step that changes a file of the
home fails once (EIO), or with all that follow it (ENOSPC): the log's writes and syncs, its copying
into the main file, the order's file from its opening to the sync of its folder, the desk's sign of
life. The steps of the same tick on a good disk also show that nothing is told before it is on the
disk, which is what a power cut would find out (D2).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.compiled_ea import COMPILER, REQUIRED, _shelf
from torra.config import ROOT

SOURCE = Path(__file__).with_name("disk_shim.cpp")
FLAGS = ("-shared", "-fPIC", "-O1", "-std=c++17", "-Wall", "-Wextra", "-Werror")
LOG, MAIN, INBOX, SCRATCH = "torra.db-wal", "torra.db", "main/inbox", "main/tmp/"

PATIENCE = 1800
"""Real seconds in which all faults must have been met, on a machine that does much else."""

pytestmark = [
    pytest.mark.timeout(PATIENCE),
    pytest.mark.skipif(
        COMPILER is None and not os.environ.get(REQUIRED),
        reason="the failing disk is compiled with g++ on Linux, which is not here: apt install g++",
    ),
]


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The failing disk, compiled once for each text of its source."""
    assert COMPILER is not None, f"{REQUIRED} is set and g++ is not there"
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    kept = _shelf() / f"disk-{digest}.so"
    if not kept.exists():
        made = tmp_path_factory.mktemp("shim") / kept.name
        subprocess.run([COMPILER, *FLAGS, "-o", made, SOURCE, "-ldl"], check=True)
        shutil.copy(made, kept.with_suffix(f".{os.getpid()}"))
        kept.with_suffix(f".{os.getpid()}").replace(kept)
    return kept


@pytest.fixture(scope="module")
def told(shim: Path, tmp_path_factory: pytest.TempPathFactory, scaled: Any) -> list[dict[str, Any]]:
    """The steps of the tick, then what came of each fault."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.faults.failing_disk",
         tmp_path_factory.mktemp("failing"), str(scaled(500))],
        check=False, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "LD_PRELOAD": str(shim), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    broke = [line for line in lines if "broke" in line]
    assert not broke, f"{broke[:10]}\n{ran.stderr[-4000:]}"
    return lines


@pytest.mark.journey
def test_a_disk_that_fails_at_any_step_halves_nothing(
    told: list[dict[str, Any]], record_property: Any
) -> None:
    faults = told[1:]
    met = Counter(line["met"].split(" ")[0] for line in faults)
    halted = sum(line["halted"] for line in faults)
    for line in faults:
        if line["met"] == f"write {LOG}":
            assert line["halted"], f"{line}: the log could not be written, and nobody said so"
    assert {"open", "write", "sync", "link", "rename"} <= set(met)
    assert any(line["met"] == f"write {MAIN}" for line in faults), "nothing was copied"
    assert 0 < halted < len(faults), "a bridge that fails halts nothing"
    steps = ", ".join(f"{number} {step}" for step, number in sorted(met.items()))
    record_property(
        "seen",
        f"{len(faults):,} faults over the {len(told[0]['steps']):,} steps of a tick ({steps}): "
        f"{halted:,} halted the desk, 0 halves, 0 ends of the process",
    )


def unsynced(steps: list[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield each step with the files that were written and not synced when it began."""
    dirty: set[str] = set()
    for step in steps:
        what, path = step.split(" ", 1)
        yield step, set(dirty)
        if what == "write":
            dirty.add(path)
        elif what == "sync":
            dirty.discard(path)


@pytest.mark.journey
def test_an_order_is_on_the_disk_before_it_is_told(told: list[dict[str, Any]]) -> None:
    """When its file gets its name, the books that know it and its own text are synced; then the
    folder is.
    """
    steps = told[0]["steps"]
    (at,) = [number for number, step in enumerate(steps) if step.startswith(f"link {INBOX}/")]
    dirty = [dirty for _, dirty in unsynced(steps)][at]
    assert LOG not in dirty, "the order goes out before the tick is on the disk"
    assert not [path for path in dirty if path.startswith(SCRATCH)], "its text is not on the disk"
    assert steps[at + 1] == f"sync {INBOX}"
    written = {step.split(" ", 1)[1] for step in steps[:at] if step.startswith("write ")}
    assert LOG in written and any(path.startswith(SCRATCH) for path in written)


def test_every_commit_is_synced(told: list[dict[str, Any]]) -> None:
    """The log is never left unsynced, nor copied into the main file before it is."""
    last: set[str] = set()
    for step, dirty in unsynced(told[0]["steps"]):
        if step == f"write {MAIN}" or f" {LOG}" not in step:
            assert LOG not in dirty, f"{step} while the log is not on the disk"
        last = dirty
    assert LOG not in last
