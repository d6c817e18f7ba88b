"""The bridge on the MetaTrader5 package sends an order at most once, whatever crashes."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.doubles.fake_metatrader5 import FakeMetaTrader5
from tests.worlds.mt5_package import CLOSE, MAGIC, SID, Scaled, World, closing, order
from torra.bridges.at_most_once import CONFIRM_SECONDS
from torra.bridges.mt5.bridge import JOURNAL
from torra.bridges.protocol import Order, Recall, Report
from torra.errors import BridgeUnavailable, ConfigError


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


# --- crashes --------------------------------------------------------------------------------------


class Crash(BaseException):
    """The power is gone."""


def crash_at(patch: pytest.MonkeyPatch, package: FakeMetaTrader5, number: int) -> None:
    """Let the process end before or after its n-th call of the package or write to the disk."""
    done = [0]

    def crashing(original: Callable[..., object]) -> Callable[..., object]:
        def step(*args: object, **kwargs: object) -> object:
            done[0] += 1
            if done[0] == number:
                raise Crash
            answer = original(*args, **kwargs)
            done[0] += 1
            if done[0] == number:
                raise Crash
            return answer

        return step

    patch.setattr(os, "fsync", crashing(os.fsync))
    for name in ("order_check", "order_send", "history_deals_get", "account_info"):
        patch.setattr(package, name, crashing(getattr(package, name)))


def recovered(world: World, item: Order) -> Report:
    """Live on as the courier does until the order has its end."""
    world.start()
    last = None
    for _ in range(70):
        if world.clock.now() < item.expires:
            world.bridge.submit(item)
        for report in world.bridge.poll():
            last = report
            world.bridge.settle(report)
        world.clock.sleep(0.25)
    assert last is not None
    return last


@pytest.mark.parametrize(
    ("fillings", "unknown"),
    [pytest.param(None, 5, id="first-filling"), pytest.param({2}, 9, id="third-filling")],
)
def test_a_crash_at_any_step_leads_to_one_order_at_most(
    tmp_path: Path, fillings: set[int] | None, unknown: int
) -> None:
    ends = []
    for number in range(1, 80):
        world = World(tmp_path / str(number))
        if fillings is not None:
            world.package.fillings, world.package.check_knows_fillings = fillings, False
        with pytest.MonkeyPatch.context() as patch:
            crash_at(patch, world.package, number)
            try:
                world.bridge.submit(order())
                crashed = False
            except Crash:
                crashed = True
        report = recovered(world, order())
        assert len(world.package.opened) <= 1
        assert report.status == ("FILLED" if world.package.opened else "UNKNOWN_NOT_SENT")
        ends.append(report.status)
        world.close()
        if not crashed:
            break
    assert not crashed, "the steps never ended"
    assert set(ends) == {"FILLED", "UNKNOWN_NOT_SENT"}
    assert 0 < ends.count("UNKNOWN_NOT_SENT") <= unknown


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize("moment", ["before_send", "after_send"])
def test_a_killed_process_leads_to_one_order_at_most(world: World, moment: str) -> None:
    pid = os.fork()
    if pid == 0:
        setattr(world.package, moment, lambda: os.kill(os.getpid(), signal.SIGKILL))
        try:
            world.bridge.submit(order())
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)
    if moment == "after_send":  # the broker lives on in another house
        world.package._work({**REQUEST_OF_THE_CHILD})
    report = recovered(world, order())
    assert report.status == ("FILLED" if moment == "after_send" else "UNKNOWN_NOT_SENT")
    assert len(world.package.opened) == (moment == "after_send")


REQUEST_OF_THE_CHILD = {
    "action": 1, "symbol": "XAUUSD.m", "volume": 0.1, "type": 0, "price": 2345.2, "deviation": 30,
    "magic": MAGIC, "comment": SID, "type_time": 0, "type_filling": 0, "sl": 2338.4, "tp": 2361.2,
}  # fmt: skip


def test_a_lost_journal_finds_the_order_instead_of_a_second_one(world: World) -> None:
    opening = world.opened()
    world.package.stop_out(int(opening.position), 2338.4)
    (world.state / JOURNAL).unlink()
    world.start()
    report = world.opened()
    assert (report.status, report.adopted, report.position) == ("FILLED", True, opening.position)
    assert world.package.opened == [SID]


def test_random_lives_never_trade_twice_and_always_end(tmp_path: Path, scaled: Scaled) -> None:
    """Crashes, refusals, lost answers and silence in any order: 1,000 lives a night."""
    ends: dict[str, int] = {}
    for life in range(scaled(1_000, least=8)):
        dice = random.Random(life)
        world = World(tmp_path / str(life))
        world.package.retcodes = [
            dice.choice([10004, 10006, 10008, 10012, 10018, 10020, 10031])
            for _ in range(dice.randrange(3))
        ]
        world.package.arrives = False
        world.package.no_answer = dice.random() < 0.3
        mangles: list[Callable[[str], str]] = [str, str, lambda comment: ""]
        world.package.mangle = dice.choice(mangles)
        with pytest.MonkeyPatch.context() as patch:
            crash_at(patch, world.package, dice.randrange(1, 60))
            with contextlib.suppress(Crash, BridgeUnavailable):
                world.bridge.submit(order())
        world.package.no_answer = False
        report = recovered(world, order())
        ends[report.status] = ends.get(report.status, 0) + 1
        assert len(world.package.opened) <= 1
        assert len(world.package.requests) <= 3
        assert report.status in ("FILLED", "REJECTED", "UNKNOWN", "UNKNOWN_NOT_SENT")
        assert (report.status == "FILLED") == bool(world.package.opened)
        world.close()
    assert ends.get("FILLED", 0) > 0


# --- the journal ----------------------------------------------------------------------------------


def test_a_disk_that_is_full_before_the_order_sends_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(BridgeUnavailable, match="No space left"):
            world.bridge.submit(order())
    assert world.package.requests == []
    assert world.opened().status == "FILLED"
    world.start()
    assert world.bridge.recall(SID, 1) is Recall.TAKEN


def test_a_disk_that_fills_up_afterwards_is_told_and_mended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        world.package.after_send = lambda: patch.setattr(os, "fsync", full)
        world.bridge.submit(order())
        assert [report.status for report in world.bridge.poll()] == ["FILLED"]
        health = world.bridge.health()
        assert health.deny == "BRIDGE_DEAD"
        assert "No space left" in health.detail
    assert world.bridge.health().ok
    world.start()
    assert [report.status for report in world.bridge.poll()] == ["FILLED"]


@pytest.mark.parametrize("torn", [b'{"order":{"sid"', b"\0\0\0\0", b"\0\0\0\n"])
def test_a_torn_last_line_is_cut_off(world: World, torn: bytes) -> None:
    world.opened()
    path = world.state / JOURNAL
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    world.start()
    world.bridge.submit(order())
    assert world.package.opened == [SID]
    world.bridge.submit(closing())
    world.start()
    assert path.read_bytes().startswith(whole + b"{")
    assert len(world.bridge._journal.entries) == 2


def test_any_other_damage_is_for_a_person(world: World) -> None:
    world.opened()
    path = world.state / JOURNAL
    path.write_bytes(b"x" + path.read_bytes())
    with pytest.raises(ConfigError, match="damaged in line 1"):
        world.start()


def test_a_journal_that_cannot_be_kept_is_a_mistake(world: World, tmp_path: Path) -> None:
    world.state = tmp_path / "file" / "main"
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ConfigError, match="cannot keep the journal"):
        world.start()


def test_what_is_over_is_forgotten_and_what_is_open_is_not(world: World) -> None:
    world.opened()
    world.package.retcodes = [10012]
    world.package.held.clear()
    world.bridge.submit(order("TBBBBBBBBBBBB"))
    world.settled(CONFIRM_SECONDS + 1)
    world.clock.moment += timedelta(days=29)
    assert len(world.start()._journal.entries) == 2
    world.clock.moment += timedelta(days=2)
    assert [item.order.sid for item in world.start()._journal.entries] == ["TBBBBBBBBBBBB"]
    assert len((world.state / JOURNAL).read_bytes().splitlines()) == 1


def test_a_journal_that_is_taken_away_is_written_anew(world: World) -> None:
    world.opened()
    (world.state / JOURNAL).unlink()
    world.bridge.submit(closing())
    world.start()
    assert [item.order.sid for item in world.bridge._journal.entries] == [SID, CLOSE]


def test_a_late_settlement_of_an_older_report_changes_nothing(world: World) -> None:
    world.package.retcodes, world.package.arrives, world.package.hidden = [10008], True, True
    world.bridge.submit(order())
    [placed] = world.look()
    world.package.hidden = False
    [filled] = world.look()
    world.bridge.settle(placed)
    world.bridge.settle(replace(placed, sid="TZZZZZZZZZZZZ"))
    assert world.look() == [filled]
