"""Disks, databases, vendors and forks: the call ends in time with L1, and the host goes on."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database
from tests import ROOT
from tests.tries import Tries, until
from tests.worlds import scorers
from tests.worlds.second_step import second_step
from torra.desk_lock import DeskLock
from torra.errors import ConfigError
from torra.overlay import Overlay
from torra.overlay.workers import MOST, Workers
from torra.store import migrations

DEADLINE = 1.0
GRACE = 0.5
PAID = {"provider": "anthropic"}
ROLES = ("technical", "bull_researcher", "bear_researcher", "risk_gate", "chart_scorer")


def quick(folder: Path, provider: Any = None, **more: Any) -> Overlay:
    """Return an overlay whose deadline is a second."""
    return scorers.overlay(folder, provider, agents={"timeout_seconds": DEADLINE}, **more)


def in_time(tries: Tries, ask: Callable[[], Any]) -> Any:
    """Return an answer, which must come by the deadline and its grace."""
    for attempt in tries():
        with attempt:
            began = time.monotonic()
            answer = ask()
            assert time.monotonic() - began < DEADLINE + GRACE
    return answer


def goes_on(tries: Tries, overlay: Overlay, bars: int = 400, **more: Any) -> None:
    """The desk is heard within the second, unless the machine stood still."""
    for attempt in tries():
        with attempt:
            assert scorers.asked(overlay, scorers.bars(bars), scores=scorers.L1, **more).debated


def l1_alone(tries: Tries, overlay: Overlay, reason: str = "", **more: Any) -> Any:
    answer = in_time(tries, lambda: scorers.asked(overlay, scores=scorers.L1, **more))
    assert scorers.numbers(answer.chart) == scorers.L1 and not answer.debated
    assert reason in answer.why and answer.why in answer.chart["composite_bias"]["note"]
    return answer


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_a_database_that_is_locked(tmp_path: Path, tries: Tries) -> None:
    overlay = quick(tmp_path)
    goes_on(tries, overlay, 399)
    with locked(tmp_path / "home" / "torra.db"):
        l1_alone(tries, overlay)
        fresh = quick(tmp_path)
        l1_alone(tries, fresh)
    goes_on(tries, overlay)


def test_a_database_that_is_full(
    tmp_path: Path, tries: Tries, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlay = quick(tmp_path)
    goes_on(tries, overlay, 399)

    def full(*_: Any, **__: Any) -> int:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "store_bars", full)
        answer = l1_alone(tries, overlay)
        assert answer.why
    assert scorers.count(tmp_path, "journal") == 1
    goes_on(tries, overlay)


def test_a_database_that_is_gone(tmp_path: Path, tries: Tries) -> None:
    overlay = quick(tmp_path)
    goes_on(tries, overlay, 399)
    kept = tmp_path / "kept"
    shutil.move(tmp_path / "home", kept)
    l1_alone(tries, overlay)
    (tmp_path / "home").mkdir()
    shutil.copytree(kept / "profiles", tmp_path / "home" / "profiles")
    (tmp_path / "home" / "lived.json").write_text((kept / "lived.json").read_text())
    l1_alone(tries, quick(tmp_path), "is gone or empty, and there was one")


def test_a_home_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "wall").write_text("")
    overlay = Overlay(tmp_path / "wall" / "home")
    answer = scorers.asked(overlay, scores=scorers.L1)
    assert scorers.numbers(answer.chart) == scorers.L1 and "cannot write to" in answer.why


def test_a_file_that_is_no_database(tmp_path: Path, tries: Tries) -> None:
    overlay = quick(tmp_path)
    (tmp_path / "home" / "torra.db").write_text("this is no database, but a text of some length")
    l1_alone(tries, overlay, "is not a database")


def test_a_disk_that_hangs(tmp_path: Path, tries: Tries, monkeypatch: pytest.MonkeyPatch) -> None:
    overlay = quick(tmp_path)
    free = threading.Event()
    opened = Database.open

    def hung(*words: Any, **more: Any) -> Any:
        free.wait(60)
        return opened(*words, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "open", hung)
        try:
            l1_alone(tries, overlay, "no answer within 1 s")
            # others wait for the same disk, and until their own deadline only
            l1_alone(tries, overlay)
            assert overlay.health()["busy"] >= 1
        finally:
            free.set()
    goes_on(tries, overlay)


def test_a_key_that_is_missing_is_a_reason_of_every_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    overlay = scorers.overlay(tmp_path, agents=PAID)
    for number in range(3):
        answer = scorers.asked(overlay, scores=scorers.L1)
        assert scorers.numbers(answer.chart) == scorers.L1 and not answer.debated
        assert "ANTHROPIC_API_KEY" in answer.why and answer.revision == number + 1
    assert overlay.health()["trouble"]["why"] == answer.why
    assert max(len(text) for text in caplog.text.splitlines() or [""]) < 1_000
    assert "Traceback" not in caplog.text
    strict = scorers.overlay(tmp_path, agents=PAID, strict=True)
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        scorers.asked(strict, scores=scorers.L1)


def test_without_a_key_the_hosts_own_scorer_is_asked(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, agents=PAID)
    told = {name: {"score": value, "note": ""} for name, value in scorers.L1.items()}
    told["momentum"]["score"] = 0.4
    answer = scorers.asked(overlay, scores=scorers.L1, fallback=lambda *_: told)
    assert answer.record["source_type"] == "LEGACY"
    assert answer.chart["momentum"]["score"] == 0.4


def test_an_older_database_is_not_migrated_under_a_desk_that_works(tmp_path: Path) -> None:
    path = tmp_path / "home" / "torra.db"
    path.parent.mkdir()
    desk = '{"instances": [{"symbol": "BTCUSD", "feed": "store"}]}'
    (path.parent / "desk.json").write_text(desk)
    scorers.stored(tmp_path).close()
    lock = DeskLock(path.parent)
    assert lock.acquire()
    before = path.read_bytes()
    with second_step():
        answer = scorers.asked(scorers.overlay(tmp_path), scores=scorers.L1)
        assert "a desk of an older version works on" in answer.why
        assert path.read_bytes() == before
        lock.release()
        assert scorers.asked(scorers.overlay(tmp_path), scores=scorers.L1).debated
        with closing(scorers.stored(tmp_path)) as database:
            assert migrations.schema(database.connection()) == migrations.NEWEST


def test_too_many_hung_calls_hold_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    free = threading.Event()
    workers = Workers()
    futures = [workers.run(free.wait) for _ in range(MOST)]
    assert all(futures) and workers.run(free.wait) is None and workers.busy == MOST
    free.set()
    for future in futures:
        assert future is not None and future.result(10)
    while workers.busy:
        time.sleep(0.01)
    again = workers.run(lambda: 7)
    assert again is not None and again.result(10) == 7


def test_idle_threads_end_and_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torra.overlay.workers.IDLE_SECONDS", 0.05)
    workers = Workers()
    for _ in range(5):
        future = workers.run(threading.get_ident)
        assert future is not None and future.result(10)
        until(lambda: workers._all == 0)
    assert workers.busy == 0


HUNG = """
import sys, threading, time
from pathlib import Path
from tests.doubles.scripted import Blocks, Scripted
from tests.worlds import scorers

roles = ("technical", "bull_researcher", "bear_researcher", "risk_gate", "chart_scorer")
provider = Scripted(dict.fromkeys(roles, Blocks(threading.Event())))
overlay = scorers.overlay(Path(sys.argv[1]), provider, profile="mine")
print(scorers.numbers(scorers.asked(overlay, scores=scorers.L1).chart) == scorers.L1, flush=True)
"""


@pytest.mark.journey
def test_a_process_with_a_hung_call_ends_at_once(tmp_path: Path, tries: Tries) -> None:
    quick(tmp_path)
    for attempt in tries():
        with attempt, subprocess.Popen(
            [sys.executable, "-c", HUNG, str(tmp_path)],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stdout.readline() == "True\n"
            told = time.monotonic()
            assert process.wait(60) == 0
            assert time.monotonic() - told < 1.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("used", [False, True], ids=["unused", "used before"])
def test_a_fork_begins_anew(tmp_path: Path, *, used: bool) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    if used:
        assert scorers.asked(overlay, scorers.bars(398)).debated
    context = multiprocessing.get_context("fork")
    told = context.Queue()

    def child() -> None:
        answer = scorers.asked(overlay, scorers.bars(399), scores=scorers.L1)
        told.put((answer.debated, answer.why, overlay.health()["answers"]))

    process = context.Process(target=child)
    process.start()
    assert told.get(timeout=60) == (True, "", {"debated": 1})
    process.join(30)
    assert process.exitcode == 0
    answer = scorers.asked(overlay, scorers.bars(400), scores=scorers.L1)
    assert answer.debated and scorers.count(tmp_path, "journal") == 2 + used


def test_the_constructor_opens_nothing(tmp_path: Path) -> None:
    before = {*threading.enumerate()}
    overlay = scorers.overlay(tmp_path)
    assert {*threading.enumerate()} <= before and not (tmp_path / "home").exists()
    assert overlay.health()["opened"] is False and overlay.health()["answers"] == {}
    overlay.close()


def test_closed_it_opens_again(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    first = scorers.asked(overlay, scores=scorers.L1)
    overlay.close()
    assert overlay.health()["opened"] is False
    assert scorers.asked(overlay, scores=scorers.L1).chart == first.chart


def test_a_calendar_that_cannot_be_read_is_a_reason(tmp_path: Path) -> None:
    name = scorers.profile(tmp_path, events={"calendar": "none.csv"})
    overlay = scorers.overlay(tmp_path, profile=name)
    answer = scorers.asked(overlay, scores=scorers.L1)
    assert scorers.numbers(answer.chart) == scorers.L1 and "none.csv" in answer.why
    moment = scorers.closed_at(scorers.bars()) + timedelta(minutes=10)
    (tmp_path / "home" / "none.csv").write_text(
        f"time,currency,impact,name\n{moment:%Y-%m-%dT%H:%M:%SZ},USD,high,Payrolls\n"
    )
    answer = scorers.asked(overlay, scores=scorers.L1)
    assert answer.debated and answer.veto
    assert "SCHEDULED_EVENT" in answer.record["gate"]["reasons"]
    assert answer.record["events"]["ahead"] == 10.0


def test_strict_raises_what_failed(tmp_path: Path) -> None:
    (tmp_path / "wall").write_text("")
    overlay = Overlay(tmp_path / "wall" / "home", strict=True)
    with pytest.raises(ConfigError, match="cannot write to"):
        scorers.asked(overlay, scores=scorers.L1)
