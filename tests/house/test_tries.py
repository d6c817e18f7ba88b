"""A statement about real seconds is tried again on a machine that stood still, and on no other."""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests import ROOT, tries
from tests.tries import COUNT, EXCUSED, LOST, DiskWitness, Tries, Witness, without_full_collections


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


@pytest.mark.usefixtures("standing_still")
def test_each_try_has_a_folder_of_its_own(tmp_path: Path) -> None:
    names = []
    for attempt in Tries(lambda _: None)():
        names.append(attempt.folder(tmp_path).name)
        with attempt:
            assert attempt.number == COUNT - 1
    assert names == [f"try-{number}" for number in range(COUNT)]


def test_a_try_that_nobody_enters_is_no_try() -> None:
    with pytest.raises(RuntimeError, match="says nothing"):
        list(Tries(lambda _: None)())


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


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="only Linux tells")
def test_a_process_that_stands_in_the_queue_has_lost_the_time() -> None:
    """More processes that work than there are processors: each of them waits for the others."""
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * (os.cpu_count() or 1))
    ]
    try:
        witness = Witness()
        until = time.monotonic() + 4 * LOST
        while time.monotonic() < until:
            pass
        assert witness.end() > LOST
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_what_takes_for_ever_is_not_excused_by_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Witness, "end", lambda _: 2 * LOST)
    monkeypatch.setattr(tries, "SHARE", 1e9)
    with pytest.raises(AssertionError, match="not in time"):
        held_at(1, AssertionError)


@pytest.mark.parametrize(("load", "turns"), [(0.0, 1), (3.0, 3), (1000.0, 10)])
def test_a_wait_is_longer_on_a_busy_machine(
    load: float, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    begun = time.monotonic()
    with pytest.raises(AssertionError, match=r"not within .+ s: the end"):
        tries.until(lambda: False, 0.05, "the end")
    assert time.monotonic() - begun >= 0.05 * turns
    assert tries.until(lambda: True, 0.0) < 30


def test_a_disk_that_stands_still_is_told_of_and_one_that_works_is_not(tmp_path: Path) -> None:
    synced = threading.Event()

    def slow(handle: int) -> None:
        os.fsync(handle)
        synced.wait(2 * LOST)
        synced.set()

    with DiskWitness(tmp_path / "slow", slow) as stood:
        assert synced.wait(30)
    with DiskWitness(tmp_path / "quick", lambda _: synced.set()) as ran:
        synced.clear()
        assert synced.wait(30)
    assert ran.lost < LOST < stood.lost


def test_no_full_collection_falls_into_a_try(tries: Tries) -> None:
    """A million lists make one elsewhere: a quarter of what is old has to be new."""
    for attempt in tries():
        with attempt:
            before = gc.get_stats()[2]["collections"]
            made: list[list[int]] = [[] for _ in range(1_000_000)]
            assert len(made) == 1_000_000
            assert gc.get_stats()[2]["collections"] == before


def test_the_collector_is_as_it_was_afterwards() -> None:
    before = gc.get_threshold()
    with pytest.raises(AssertionError), without_full_collections():
        assert gc.get_threshold() == before
    assert gc.get_threshold() == before


def test_the_collected_tests_are_out_of_its_sight(request: pytest.FixtureRequest) -> None:
    assert gc.get_freeze_count() > len(request.session.items)
    assert not any(seen is request.node for seen in gc.get_objects(generation=2))
