"""What is left behind: threads of readers, forks, replaced locks, plug-ins that were slow."""

from __future__ import annotations

import gc
import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.tries import until
from tests.worlds import desks
from torra import whole_files
from torra.desk_lock import DeskLock, is_locked
from torra.evidence.flow_readings import FlowThen
from torra.evidence.news_digest import NewsSubject
from torra.feeds.limited import LimitedFlow
from torra.news.plug_in import PlugInSource
from torra.time_limit import TimeLimit

posix = pytest.mark.skipif(os.name != "posix", reason="elsewhere no open file can be replaced")


class Flow:
    def flow(self, *_: Any) -> FlowThen:
        return FlowThen({})


def test_a_feed_that_is_let_go_leaves_no_thread_behind() -> None:
    """A trial from the pages opens a feed of its own, in the desk's process."""

    def threads() -> int:
        gc.collect()
        return sum(thread.name == "order flow" for thread in threading.enumerate())

    before = threads()
    for _ in range(5):
        LimitedFlow(Flow()).begin("EURUSD", "M15", [datetime(2024, 1, 2, tzinfo=UTC)])()
    until(lambda: threads() == before, 5, "their threads have ended")


@posix
def test_a_look_at_a_lock_that_was_replaced_ends_no_desk(tmp_path: Path) -> None:
    """Health and the doctor hold a shared lock for a moment: that is no other desk."""
    desk = desks.working_desk(tmp_path, (desks.EUR,))
    desk.lock.path.unlink()
    desk.lock.path.touch()
    with desk.lock.path.open("rb+") as look:
        assert whole_files.locked(look, shared=True)
        threading.Timer(0.1, look.close).start()
        desk.keep()
    desk.keep()
    assert desk.active and not desk.lost
    assert desk.close()


@posix
def test_a_fork_does_not_keep_the_lock_of_a_desk_that_was_killed(tmp_path: Path) -> None:
    """A plug-in may use multiprocessing, which forks on Linux before Python 3.14."""
    told = tmp_path / "child"
    pid = os.fork()
    if pid == 0:
        lock = DeskLock(tmp_path)
        lock.acquire()
        child = os.fork()
        if child == 0:
            time.sleep(60.0)
            os._exit(0)
        told.write_text(str(child))
        time.sleep(0.2)
        os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)
    try:
        assert not is_locked(tmp_path)
    finally:
        os.kill(int(told.read_text()), 9)


class SlowOnce:
    """A plug-in whose first answer takes longer than its limit, as a log in may."""

    spacing = 1.0

    def __init__(self) -> None:
        self.ready = threading.Event()

    def topics(self, subject: NewsSubject) -> list[str]:
        self.ready.wait(10)
        return [subject.symbol]

    def every(self, _: str) -> float:
        return 60.0

    def fetch(self, *_: Any) -> list[Any]:
        return []


def test_a_plug_in_that_was_slow_once_is_asked_again_for_its_topics() -> None:
    plug_in = SlowOnce()
    source = PlugInSource(plug_in, "slow:news")
    source._limit = TimeLimit("slow", 0.05)
    euro, gold = NewsSubject(symbol="EURUSD"), NewsSubject(symbol="XAUUSD")
    assert source.topics(euro) == source.topics(gold) == ()
    plug_in.ready.set()
    assert source.topics(euro) == (), "no tick asks it again"
    until(lambda: source.ask_again() and source.topics(euro) == ("EURUSD",), 3, "it answers")
    assert source.topics(gold) == ("XAUUSD",) and not source.ask_again()
