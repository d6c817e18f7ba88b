"""A desk that is told to stop is gone within 2 s, even while a provider never answers."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import desks
from torra.config import ROOT

STOPPED = 2.0

SCRIPT = """
import sys
from concurrent.futures import Future
from pathlib import Path
from torra import running, wiring

class Silent:
    name = "silent"
    def submit(self, request):
        print("asked", flush=True)
        return Future()
    def close(self): ...

if sys.argv[2] == "silent":
    wiring.open_provider = lambda *_: Silent()
    running.warm_up = lambda *words: None
running.run(Path(sys.argv[1]), running.Address("127.0.0.1", 0), pages=False, say=print)
"""


@pytest.mark.parametrize("provider", ["silent", "rules"])
def test_a_stopped_desk_is_gone_within_two_seconds(tmp_path: Path, provider: str) -> None:
    desk = subprocess.Popen(
        [sys.executable, "-u", "-c", SCRIPT, str(tmp_path), provider],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert desk.stdout is not None
        first = desk.stdout.readline()
        assert first, "the desk ended by itself"
        time.sleep(0.3)
        began = time.monotonic()
        desk.send_signal(signal.SIGTERM)
        assert desk.wait(20) == 0
        assert time.monotonic() - began <= STOPPED
    finally:
        desk.kill()
        desk.communicate()
    database = desks.open_database(tmp_path)
    assert database.quick_check() == "ok"
    database.close()
