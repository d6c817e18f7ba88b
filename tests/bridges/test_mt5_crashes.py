"""The bridge on the MetaTrader5 package sends an order once at most, whatever its disk does."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.faults import kills
from tests.worlds.mt5_package import CLOSE, SID, Scaled, World, closing, order
from torra.bridges.mt5.bridge import CONFIRM_SECONDS, JOURNAL
from torra.bridges.protocol import Recall
from torra.errors import BridgeUnavailable, ConfigError


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
        with kills.crash_at(dice.randrange(1, 60), *world.steps), suppress(BridgeUnavailable):
            world.bridge.submit(order())
        world.package.no_answer = False
        world.start()
        status = world.carry(order())
        ends[status] = ends.get(status, 0) + 1
        assert len(world.package.opened) <= 1
        assert len(world.package.requests) <= 3
        assert status in ("FILLED", "REJECTED", "UNKNOWN", "UNKNOWN_NOT_SENT")
        assert (status == "FILLED") == bool(world.package.opened)
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
