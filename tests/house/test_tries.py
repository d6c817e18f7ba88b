"""A statement about real seconds is tried again on a machine that stood still, and on no other."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from tests import ROOT, tries
from tests.tries import COUNT, EXCUSED, LOST, Tries, Witness


@pytest.fixture
def standing_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every witness say that the machine stood still; its thread ends with its try."""
    end = Witness.end
    monkeypatch.setattr(Witness, "end", lambda witness: max(end(witness), 2 * LOST))


def held_at(number: int, error: type[BaseException]) -> list[str]:
    """Try what holds at one number, and not before; return what was told of the others."""
    told: list[str] = []
    for attempt in Tries(told.append)():
        with attempt:
            if attempt.number < number:
                raise error("not in time")
    return told


@pytest.mark.usefixtures("standing_still")
@pytest.mark.parametrize("number", range(COUNT))
@pytest.mark.parametrize("error", tries.LATENESS)
def test_it_is_tried_until_it_holds(number: int, error: type[Exception]) -> None:
    assert held_at(number, error) == ["held up for 0.4 s: not in time"] * number


@pytest.mark.usefixtures("standing_still")
@pytest.mark.parametrize("error", tries.LATENESS)
def test_what_never_holds_is_excused_and_says_so(error: type[Exception]) -> None:
    told = f"{EXCUSED} in {COUNT} tries, last held up for 0.4 s: not in time"
    with pytest.raises(pytest.skip.Exception) as excused:
        held_at(COUNT, error)
    assert str(excused.value) == told


def test_the_summary_of_a_run_tells_what_was_excused(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("from tests.conftest import pytest_terminal_summary")
    pytester.makepyfile(
        f"""
        import pytest

        def test_busy(): pytest.skip("{EXCUSED} in 3 tries, last held up for 0.4 s: x")
        def test_other(): pytest.skip("no browser")
        """
    )
    told = pytester.runpytest_inprocess("-p", "no:randomly", "-p", "no:cacheprovider")
    told.stdout.fnmatch_lines(
        ["*1 excused*", "*::test_busy: in 3 tries, last held up for 0.4 s: x"]
    )
    told.stdout.no_fnmatch_line("*test_other:*")


@pytest.mark.usefixtures("standing_still")
@pytest.mark.parametrize(
    "error",
    [ValueError, KeyError, sqlite3.IntegrityError, KeyboardInterrupt, pytest.skip.Exception],
)
def test_what_no_late_machine_does_fails_at_once(error: type[BaseException]) -> None:
    with pytest.raises(error):
        held_at(1, error)


@pytest.mark.parametrize("error", tries.LATENESS)
def test_on_a_machine_that_runs_it_fails_at_once(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tries, "LOST", 60.0)
    with pytest.raises(error, match="not in time"):
        held_at(1, error)


STOPPED = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.tries import Witness
witness = Witness()
print("here", flush=True)
sys.stdin.readline()
print(witness.end(), flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no SIGSTOP")
def test_a_process_that_is_stopped_has_lost_the_time() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(ROOT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdout.readline()
        os.kill(child.pid, signal.SIGSTOP)
        time.sleep(2 * LOST)
        os.kill(child.pid, signal.SIGCONT)
        child.stdin.write("\n")
        child.stdin.flush()
        lost = float(child.stdout.readline())
    assert lost >= 1.5 * LOST


@pytest.mark.parametrize("how", ["waits", "works"])
def test_a_process_that_waits_or_works_has_lost_nothing_by_it(how: str) -> None:
    """Nothing but what it stood in the queue, behind others; the least of several tries."""
    lost = []
    for _ in range(COUNT):
        queue, witness = tries.Queue(), Witness()
        end = time.monotonic() + 1.5 * LOST
        if how == "waits":
            threading.Event().wait(1.5 * LOST)
        while time.monotonic() < end:
            pass
        told = witness.end()
        queue.look()
        lost.append(told - queue.stood())
    assert min(lost) < LOST / 2


def test_what_takes_for_ever_is_not_excused_by_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Witness, "end", lambda _: 2 * LOST)
    monkeypatch.setattr(tries, "SHARE", 1e9)
    with pytest.raises(AssertionError, match="not in time"):
        held_at(1, AssertionError)
