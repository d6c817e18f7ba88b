"""A desk's threads share one heap, unless the user has chosen himself."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from torra.config import ROOT
from torra.one_heap import CHOSEN

PROGRAM = """
import ctypes, sys, threading
from torra.one_heap import limit_malloc_arenas

print(limit_malloc_arenas())
held, met = [], threading.Barrier(9)

def work():
    met.wait()
    held.append([bytearray(5_000) for _ in range(200)])
    met.wait()

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
met.wait()
met.wait()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
told = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, told)
libc.fclose(told)
"""


def heaps(told: Path, **chosen: str) -> tuple[str, int]:
    """Return what the program says, and how many heaps it has."""
    clean = {name: value for name, value in os.environ.items() if name not in CHOSEN}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(told)],
        cwd=ROOT, env=clean | chosen, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip(), told.read_text(encoding="utf-8").count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_all_threads_share_the_heap_of_the_first(tmp_path: Path) -> None:
    assert heaps(tmp_path / "heaps") == ("True", 1)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_what_the_user_chose_stands(tmp_path: Path) -> None:
    said, count = heaps(tmp_path / "heaps", MALLOC_ARENA_MAX="4")
    assert said == "False" and 1 < count <= 4
