"""When a process looks for garbage: never while it imports, a desk never among its own parts."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from torra.config import ROOT
from torra.imports import YOUNG
from torra.replay.shards import executors

BEGIN = """
import gc
from torra.imports import importing, settle

plain = gc.get_threshold()
"""

PROGRAMS = {
    "nothing-stays-frozen": (
        "with importing(): made = [[] for _ in range(5000)]; assert not gc.isenabled()\n"
        "assert gc.isenabled() and not gc.get_freeze_count() and gc.get_threshold() == plain\n"
        "assert gc.get_count()[0] < 5000"
    ),
    "a-host-that-collects-none": (
        "gc.disable()\nwith importing(): pass\nassert not gc.isenabled()"
    ),
    "a-host-that-froze-some": (
        "gc.freeze(); frozen = gc.get_freeze_count()\n"
        "with importing(): made = [[] for _ in range(5000)]\n"
        "assert frozen - 100 < gc.get_freeze_count() <= frozen"
    ),
    "a-desk-that-stands": (
        "made = [[] for _ in range(5000)]; settle(); frozen = gc.get_freeze_count()\n"
        f"assert frozen > 5000 and gc.get_threshold() == ({YOUNG}, *plain[1:])\n"
        "with importing(): sdk = [[] for _ in range(5000)]\n"
        "assert gc.isenabled() and gc.get_freeze_count() >= frozen + 5000"
    ),
    "garbage-of-a-desk-is-collected-first": (
        "settle(); frozen = gc.get_freeze_count()\n"
        "for _ in range(5000): ring = []; ring.append(ring)\n"
        "with importing(): pass\n"
        "assert gc.get_freeze_count() < frozen + 1000"
    ),
    "an-import-that-failed-keeps-nothing": (
        "settle(); frozen = gc.get_freeze_count()\n"
        "try:\n"
        "    with importing(): made = [[] for _ in range(5000)]; raise ImportError\n"
        "except ImportError: pass\n"
        "assert gc.isenabled() and gc.get_freeze_count() < frozen + 1000"
    ),
    "who-chose-that-nobody-looks": (
        "gc.set_threshold(0); settle(); assert gc.get_threshold()[0] == 0"
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_process_looks_for_garbage_as_it_should(name: str) -> None:
    subprocess.run([sys.executable, "-c", BEGIN + PROGRAMS[name]], cwd=ROOT, check=True)


def test_a_worker_of_a_replay_looks_seldom() -> None:
    with executors.processes(1) as workers:
        assert workers.submit(gc.get_threshold).result(60)[0] == YOUNG
