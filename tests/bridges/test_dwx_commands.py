"""DWX Connect's commands: one at a time, taken back, at most one order through random lives."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from tests.doubles.fake_dwx import START
from tests.faults import kills
from tests.worlds.dwx_channel import MAGIC, SID, Scaled, World, order
from torra import whole_files
from torra.bridges.at_most_once import CONFIRM_SECONDS
from torra.bridges.dwx import files as dwx_files
from torra.bridges.protocol import Recall
from torra.errors import BridgeUnavailable
from torra.time_limit import TimeLimit


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


# --- commands in their order ----------------------------------------------------------------------


def test_numbers_go_up_through_restarts_and_a_lost_file(world: World) -> None:
    for turn in range(6):
        world.bridge.submit(order(f"T{turn:012d}".replace("0", "A"), magic=MAGIC + turn,
                                  created=world.clock.now()))  # fmt: skip
        world.fake.positions.clear()
        world.look(2)
        if turn == 2:
            (world.state / dwx_files.NUMBER).unlink()
        if turn == 4:
            (world.state / dwx_files.NUMBER).write_bytes(b"\0\0\0")
        world.start()
    numbers = [int(text[2:].split("|")[0]) for text in world.fake.taken]
    assert numbers == sorted(set(numbers))
    assert max(numbers) < 2**31
    assert world.fake.repeated == []
    assert not [text for text in world.fake.taken if "RESET" in text]


def test_one_order_at_a_time(world: World) -> None:
    world.fake.running = False
    world.bridge.submit(order())
    other = order("TBBBBBBBBBBBB", magic=MAGIC + 1, broker_symbol="EURUSD")
    with pytest.raises(BridgeUnavailable, match="not confirmed yet"):
        world.bridge.submit(other)
    assert world.leftovers() == ["DWX_Commands_0.txt"]
    assert world.bridge.recall("TBBBBBBBBBBBB", 2) is Recall.NEVER_SENT


def test_the_next_order_waits_for_the_confirmation_not_only_for_the_command(world: World) -> None:
    world.fake.mute = True
    world.bridge.submit(order())
    world.clock.sleep(1)
    world.fake.deals.clear()
    assert world.leftovers() == []
    other = order("TBBBBBBBBBBBB", magic=MAGIC + 1, broker_symbol="EURUSD")
    with pytest.raises(BridgeUnavailable, match=f"{SID} is not confirmed yet"):
        world.bridge.submit(other)
    assert world.fake.opened == [SID]


@pytest.mark.journey
def test_a_strangers_command_is_neither_replaced_nor_removed(world: World) -> None:
    world.fake.running = False
    stranger = world.folder / "DWX_Commands_0.txt"
    stranger.write_text("<:7|OPEN_ORDER|EURUSD,buy,0.01,0,0,0,1,x,0:>")
    world.fake.check_commands = lambda: None  # type: ignore[method-assign]
    world.fake.running = True
    for _ in range(5):
        with pytest.raises(BridgeUnavailable, match="a command waits"):
            world.bridge.submit(order())
        world.look(1)
    assert "EURUSD,buy" in stranger.read_text()


def test_a_command_that_appears_in_between_is_not_replaced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def late(source: Path, target: Path) -> None:
        Path(target).write_text("<:7|CLOSE_ORDER|1,0.01:>")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(BridgeUnavailable, match="has not been taken yet"):
        world.bridge.submit(order())
    assert (world.folder / "DWX_Commands_0.txt").read_text() == "<:7|CLOSE_ORDER|1,0.01:>"
    assert world.bridge.recall(SID, 1) is Recall.NEVER_SENT
    assert world.leftovers() == ["DWX_Commands_0.txt"]


def test_a_question_that_nobody_takes_keeps_no_order_waiting(world: World) -> None:
    world.fake.killed()
    assert world.bridge.books() is None
    assert world.leftovers() == ["DWX_Commands_0.txt"]
    world.fake.running = True
    world.fake.check_orders()
    world.fake.running = False
    world.clock.pass_by(4)
    world.bridge.submit(order(created=world.clock.now()))
    assert "OPEN_ORDER" in (world.folder / "DWX_Commands_0.txt").read_text()


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.EPERM, errno.EXDEV])
def test_a_disk_without_second_names_is_told_and_nothing_is_sent(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuses(source: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuses)
    with pytest.raises(BridgeUnavailable, match="second name"):
        world.bridge.submit(order())
    monkeypatch.undo()
    assert world.leftovers() == []
    assert world.opened().status == "FILLED"


def test_an_error_of_a_share_passes_for_sent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def done_and_failed(source: Path, target: Path) -> None:
        link(source, target)
        raise OSError(errno.EIO, "lost the answer")

    monkeypatch.setattr(os, "link", done_and_failed)
    assert world.opened().status == "FILLED"
    world.bridge.submit(order())
    assert world.fake.opened == [SID]


def test_names_that_windows_keeps_busy_are_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, turns = whole_files.name_once, []

    def name_once(temporary: Path, target: Path) -> None:
        turns.append(target)
        if len(turns) < 5:
            raise PermissionError(errno.EACCES, "in use")
        busy(temporary, target)

    monkeypatch.setattr(dwx_files, "name_once", name_once)
    assert world.opened().status == "FILLED"
    assert len(turns) == 5
    turns.clear()
    world.fake.positions.clear()
    world.clock.sleep(1)
    monkeypatch.setattr(dwx_files, "SHARING", 3)
    with pytest.raises(BridgeUnavailable, match="cannot lay"):
        world.bridge.submit(order("TBBBBBBBBBBBB"))
    assert world.bridge.recall("TBBBBBBBBBBBB", 2) is Recall.NEVER_SENT


# --- expiry and recall ----------------------------------------------------------------------------


def test_an_order_that_nobody_takes_is_taken_away_at_its_expiry(world: World) -> None:
    world.fake.killed()
    world.bridge.submit(order(expires=START + timedelta(seconds=10)))
    world.look(6)
    assert world.leftovers() == ["DWX_Commands_0.txt"]
    world.look(3)
    assert world.leftovers() == []
    world.fake.init()
    assert world.settled(CONFIRM_SECONDS + 1).status == "UNKNOWN"
    assert world.fake.opened == []


def test_taking_an_order_away_is_no_proof_that_it_was_not_read(world: World) -> None:
    def read(text: str) -> None:
        if "OPEN_ORDER" in text:
            assert world.bridge.recall(SID, 1) is Recall.TAKEN
            assert world.leftovers() == []

    world.fake.on_read = read
    world.bridge.submit(order())
    assert world.settled().status == "FILLED"
    assert world.bridge.recall(SID, 1) is Recall.TAKEN


def test_a_recalled_order_that_was_not_read_ends_unknown(world: World) -> None:
    world.fake.running = False
    world.bridge.submit(order())
    assert world.bridge.recall(SID, 1) is Recall.TAKEN
    world.fake.running = True
    assert world.settled(CONFIRM_SECONDS + 1).status == "UNKNOWN"
    assert world.fake.opened == []


def test_an_advisor_that_starts_again_drops_the_command(world: World) -> None:
    world.fake.running = False
    world.bridge.submit(order())
    world.fake.init()
    assert world.settled(CONFIRM_SECONDS + 1).status == "UNKNOWN"
    world.bridge.submit(order())
    world.look(2)
    assert world.fake.opened == []


# --- the disk -------------------------------------------------------------------------------------


def full_at(number: int) -> Callable[[int], None]:
    """Return an fsync whose n-th call finds the disk full."""
    done, fsync = [0], os.fsync

    def full(handle: int) -> None:
        done[0] += 1
        if done[0] == number:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    return full


def test_a_full_disk_sends_nothing_and_recovers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 12):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full_at(number))
            try:
                world.bridge.submit(order())
            except BridgeUnavailable:
                assert world.bridge.recall(SID, 1) is Recall.NEVER_SENT
                assert world.leftovers() == []
                continue
        break
    else:
        pytest.fail("never sent")
    assert number > 3
    world.look(2)
    assert world.fake.opened == [SID]
    world.start()
    assert [report.status for report in world.bridge.poll()] == ["FILLED"]


def test_a_lost_journal_finds_the_position_instead_of_a_second_one(world: World) -> None:
    world.opened()
    (world.state / "dwx_orders.jsonl").unlink()
    world.start()
    world.bridge.submit(order())
    report = world.settled()
    assert (report.status, report.adopted) == ("FILLED", True)
    assert world.fake.opened == [SID]


NEVER = 10**6
"""No order takes so many steps."""

# --- random lives ---------------------------------------------------------------------------------


@pytest.mark.journey
def test_random_lives_never_trade_twice_and_always_end(
    tmp_path: Path, scaled: Scaled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Crashes, restarts, silence, refusals and lost comments in any order: 100 lives a night."""
    # This folder answers: a thread for each look at it would be nine tenths of the work.
    monkeypatch.setattr(TimeLimit, "run", lambda _, work: work())
    ends: dict[str, int] = {}
    for life in range(scaled(100)):
        dice = random.Random(life)
        world = World(tmp_path / str(life))
        for turn in range(4):
            status = one_decision(world, dice, f"T{'ABCDEFGHIJKL'[turn] * 12}", turn)
            ends[status] = ends.get(status, 0) + 1
        assert len(world.fake.opened) == len(set(world.fake.opened))
        assert world.fake.strays == set()
        assert world.fake.repeated == []
        assert not [name for name in world.leftovers() if name.endswith(".tmp")]
    assert ends.get("FILLED", 0) > 0


def one_decision(world: World, dice: random.Random, sid: str, turn: int) -> str:
    fake, now = world.fake, world.clock.now()
    item = order(
        sid, seq=turn, magic=MAGIC + turn, created=now, expires=now + timedelta(seconds=20)
    )
    fake.positions.clear()
    fake.running = True
    fake.mute = dice.random() < 0.2
    fake.error = dice.choice([0, 0, 0, 4752, 4756])
    mangles: list[Callable[[str], str]] = [str, str, lambda comment: comment[:5], lambda _: ""]
    fake.mangle = dice.choice(mangles)
    fake.check_orders()
    before, status = len(fake.opened), "NEVER"
    for tick in range(280):
        event = dice.random() if tick < 200 else 1.0  # the end is quiet
        if event < 0.01:
            fake.init()
        elif event < 0.02:
            fake.running = not fake.running
        elif event < 0.03:
            world.start()
        elif event < 0.04:
            fake.mute = False
        if status == "NEVER" and world.clock.now() < item.expires:
            crash = dice.random() < 0.2
            nth = dice.randrange(1, 25) if crash else NEVER
            with kills.crash_at(nth, *world.steps) as doom, suppress(BridgeUnavailable):
                world.bridge.submit(item)
                status = "SENT"
            if doom.dead:
                status = "SENT"
            if crash:
                world.start()
        world.clock.sleep(0.25)
        for report in world.bridge.poll():
            status = report.status
            world.bridge.settle(report)
            assert report.sid == sid
    executed = len(fake.opened) - before
    assert executed <= 1
    if status == "SENT":
        assert world.bridge.recall(sid, turn) is Recall.NEVER_SENT
        assert executed == 0
        return "NEVER"
    assert status in ("NEVER", "FILLED", "REJECTED", "EXPIRED", "UNKNOWN")
    assert executed == (1 if status == "FILLED" else 0) or status == "UNKNOWN"
    return status
