"""A desk that is told to stop is gone within 2 s, even while a provider never answers."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tries import Tries
from tests.worlds import desks
from torra.config import ROOT
from torra.store import connection

STOPPED = 2.0

SCRIPT = """
import sys
from concurrent.futures import Future
from pathlib import Path
from torra.commands import run as running
from torra.desk import wiring

class Silent:
    name = "silent"
    def submit(self, request):
        print("asked", flush=True)
        return Future()
    def close(self): ...

if sys.argv[2] == "silent":
    wiring.open_provider = lambda *_, **__: Silent()
    running.warm_up = lambda *words: None
running.run(Path(sys.argv[1]), running.PagesAddress("127.0.0.1", 0), pages=False, say=print)
"""


@pytest.mark.parametrize("provider", ["silent", pytest.param("rules", marks=pytest.mark.nightly)])
def test_a_stopped_desk_is_gone_within_two_seconds(
    tmp_path: Path, provider: str, tries: Tries
) -> None:
    """By day a desk of the rules ends in the test below."""
    for attempt in tries():
        took = seconds_of_an_end(attempt.folder(tmp_path), provider, signal.SIGTERM)
        with attempt:
            assert took <= STOPPED


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no SIGSTOP")
def test_a_desk_that_is_ended_while_it_is_suspended_ends_when_it_wakes(
    tmp_path: Path, tries: Tries
) -> None:
    """The system then hands the signal to any of its threads, seldom to the one that waits for it.

    One end alone would not notice a main thread that waits without looking.
    """
    for attempt in tries():
        folder = attempt.folder(tmp_path)
        took = [
            seconds_of_an_end(folder, "rules", signal.SIGSTOP, signal.SIGTERM, signal.SIGCONT)
            for _ in range(3)
        ]
        with attempt:
            assert max(took) <= STOPPED


def seconds_of_an_end(folder: Path, provider: str, *signals: signal.Signals) -> float:
    """Start a desk and end it; what it leaves is whole."""
    desk = subprocess.Popen(
        [sys.executable, "-u", "-c", SCRIPT, str(folder), provider],
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
        for number in signals:
            time.sleep(0.05)
            began = time.monotonic()  # of the last: a desk that is suspended cannot end
            desk.send_signal(number)
        assert desk.wait(20) == 0
        took = time.monotonic() - began
    finally:
        desk.kill()
        desk.communicate()
    database = desks.open_database(folder)
    assert connection.quick_check(database) == "ok"
    database.close()
    return took
