"""A process that stands still while it hands an order over: SIGSTOP, a computer that slept.

When it goes on the order may have expired, the market may have moved, and where the lock's file was
deleted another desk may have booked the order's end. So a bridge that sends for itself sends
nothing on a look at the market that is older than LOOK_SECONDS; the Expert Advisor of torra_files
looks at the expiry and at the id itself. What is left is the instant between the last look at the
clock and the call that sends: nothing on this side can close it (promises D4, T4 and R6).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.worlds import mt5_package
from tests.worlds.channels import ACCOUNT, ENVIRONMENT, EURO, new_advisor, order
from torra import failpoints
from torra.bridges.order_journal import OrderJournal
from torra.bridges.protocol import LOOK_SECONDS, Recall
from torra.bridges.torra.bridge import TorraFiles
from torra.clock import System
from torra.config import Channel
from torra.errors import BridgeUnavailable

STOPS = {"long": LOOK_SECONDS + 1.0, "past the expiry": 600.0}
"""Seconds: the look is too old in both, the order has expired in the second."""


def standing_still(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, clock: Any, seconds: float
) -> None:
    """Let a process stop for so long in the next call of something, as its clock sees it."""
    whole = getattr(owner, name)
    stops = iter([seconds])

    def stopped(*words: Any, **named: Any) -> Any:
        result = whole(*words, **named)
        passed = next(stops, 0.0)
        clock.moment += timedelta(seconds=passed)
        clock.elapsed += passed
        return result

    monkeypatch.setattr(owner, name, stopped)


# --- mt5_direct -----------------------------------------------------------------------------------


@pytest.fixture
def direct(tmp_path: Path) -> Iterator[mt5_package.World]:
    made = mt5_package.World(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("seconds", STOPS.values(), ids=STOPS)
@pytest.mark.parametrize(
    "where", ["account_info", "symbol_info", "positions_get", "order_check", "put"]
)
def test_mt5_direct_sends_nothing_on_an_old_look(
    direct: mt5_package.World, monkeypatch: pytest.MonkeyPatch, where: str, seconds: float
) -> None:
    owner = OrderJournal if where == "put" else direct.package
    standing_still(monkeypatch, owner, where, direct.clock, seconds)
    try:
        direct.bridge.submit(mt5_package.order())
    except BridgeUnavailable:
        assert direct.bridge.recall(mt5_package.SID, 1) is Recall.NEVER_SENT
    else:
        assert [report.status for report in direct.look()] == ["EXPIRED"]
    assert direct.package.requests == []


def test_mt5_direct_sends_at_the_next_turn(
    direct: mt5_package.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    standing_still(monkeypatch, direct.package, "order_check", direct.clock, STOPS["long"])
    with pytest.raises(BridgeUnavailable, match="stood still"):
        direct.bridge.submit(mt5_package.order())
    direct.bridge.submit(mt5_package.order())
    assert [report.status for report in direct.look()] == ["FILLED"]
    assert len(direct.package.requests) == 1


def test_mt5_direct_does_not_send_again_on_an_old_look(
    direct: mt5_package.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two sends of an order that the server does not accept now."""
    direct.package.retcodes = [10004]
    standing_still(monkeypatch, direct.clock, "sleep", direct.clock, STOPS["long"])
    direct.bridge.submit(mt5_package.order())
    assert len(direct.package.requests) == 1
    assert [report.status for report in direct.look()] == ["REJECTED"]


@pytest.mark.parametrize("seconds", [0.3, 2.9])
def test_mt5_direct_sends_through_a_slow_terminal(
    direct: mt5_package.World, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """Each call takes its time and nobody stood still: an opening, a close that is requoted."""
    whole = direct.package._ok

    def slow(name: str) -> bool:
        direct.clock.moment += timedelta(seconds=seconds)
        direct.clock.elapsed += seconds
        return whole(name)

    monkeypatch.setattr(direct.package, "_ok", slow)
    opening = direct.opened(expires=direct.clock.now() + timedelta(seconds=600))
    assert opening.status == "FILLED"
    direct.package.retcodes = [10004]
    until = direct.clock.now() + timedelta(seconds=600)
    direct.bridge.submit(mt5_package.closing(opening.position, expires=until))
    assert direct.settled().status == "FILLED"
    assert direct.package.held == {} and len(direct.package.requests) == 3


# --- torra_files: a real process, really stopped --------------------------------------------------


def stopped_at(point: str, work: Callable[[], None]) -> int:
    """Fork a process that stops itself at a point; return it when it stands still."""
    pid = os.fork()
    if pid == 0:
        os.environ[failpoints.VARIABLE] = point
        failpoints.strike = lambda: os.kill(os.getpid(), signal.SIGSTOP)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    return pid


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGSTOP")
@pytest.mark.parametrize("another", [False, True], ids=["alone", "taken over"])
def test_a_signal_that_comes_late_is_refused_and_one_that_comes_twice_is_done_once(
    tmp_path: Path, another: bool
) -> None:
    clock = System()
    channel = Channel(folder=str(tmp_path / "main"), account=ACCOUNT)
    bridge = TorraFiles("main", channel, clock, environment=ENVIRONMENT)
    advisor = new_advisor(tmp_path / "main")
    advisor.symbol("EURUSD.m", **EURO)
    advisor.quote("EURUSD.m", 1.1, 1.10012, clock.now())
    ticks = 0.0

    def step(ahead: float = 0.0) -> None:
        nonlocal ticks
        ticks += 1.0
        advisor.step(time.time() + ahead, ticks)

    other = TorraFiles("main", channel, clock, environment=ENVIRONMENT)
    for second in range(2):  # two signs of life: the Advisor lives
        step(float(second))
        assert [bridge.health().ok, other.health().ok] == [second == 1] * 2
    now = clock.now()
    sent = order(created=now, expires=now + timedelta(seconds=30))
    pid = stopped_at("tmp_done", lambda: bridge.submit(sent))
    try:
        if another:
            other.submit(sent)
            step(2.0)
    finally:
        os.kill(pid, signal.SIGCONT)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    for second in range(3):
        step(3.0 + second if another else 40.0 + second)  # alone it has expired by now
    assert len(advisor.deals(sent.sid)) == another
    assert not list((tmp_path / "main" / "inbox").iterdir())
