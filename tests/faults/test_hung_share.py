"""A channel's folder that stops answering stops its channel and nothing else (L3, T5).

Not the other instances, not the sign of life, not a person who halts, not the desk that closes:
whoever touches the folder waits a limited time once, and those after them are refused at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.faults.hung_share import Share
from tests.tries import DiskWitness, Tries, until
from tests.worlds import channels as stages
from tests.worlds import desks
from tests.worlds.channels import ENVIRONMENT, Stage, order
from torra.clock import System, parse
from torra.desk import wiring
from torra.desk.schedule import Desk
from torra.errors import BridgeUnavailable
from torra.home import HALT
from torra.store import tick_queries
from torra.store import ticks as claim_table
from torra.time_limit import TimeLimit
from torra.trading import channels, kill_switch
from torra.trading.kill_switch import KillSwitch
from torra.verdict.risk_engine import DenyReason

LIMIT = 0.2


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A channel's folder has a short time limit for once."""
    limits = cache(lambda folder: TimeLimit(str(folder), LIMIT))
    for module in (channels, kill_switch):
        monkeypatch.setattr(module, "of_folder", limits)


@pytest.fixture
def share(tmp_path: Path, short: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Share]:
    """The channel's folder."""
    with monkeypatch.context() as patch:
        found = Share(tmp_path / "share", patch)
        yield found
        found.heal()


@pytest.fixture
def check_within(tries: Tries) -> Callable[..., None]:
    """What looks that some work takes less than some seconds."""

    def check(limit: float, work: Callable[[], Any], why: str = "") -> None:
        for attempt in tries():
            begin = System().monotonic()
            work()
            took = System().monotonic() - begin
            with attempt:
                assert took < limit, why

    return check


def test_a_bridge_whose_folder_hangs_says_so_in_time_and_comes_back(
    tmp_path: Path, share: Share, check_within: Callable[..., None]
) -> None:
    """(R6) Every question is answered, no order goes out, and after it all is as before."""
    (tmp_path / "share").mkdir()
    stage = Stage(tmp_path / "share")
    bridge = stage.bridge = stage.new_bridge(run=TimeLimit("share", LIMIT).run)
    stage.wake()
    assert bridge.health().ok
    share.hang()

    def ask_everything() -> None:
        assert bridge.health().deny is DenyReason.BRIDGE_DEAD
        assert "no answer within" in bridge.health().detail
        for question in (
            lambda: bridge.submit(order()),
            lambda: bridge.recall(order().sid, order().seq),
        ):
            with pytest.raises(BridgeUnavailable):
                question()
        assert list(bridge.poll()) == []
        assert not bridge.halted()
        assert bridge.terms() == {} or bridge.terms()
        bridge.heartbeat("ACTIVE")

    check_within(10 * LIMIT, ask_everything)
    check_within(LIMIT, ask_everything, "who comes later does not wait")
    assert share.most == 1
    share.heal()
    for _ in range(3):
        stage.wake()
        bridge.poll()
        bridge.heartbeat("ACTIVE")
    assert bridge.health().ok
    bridge.submit(order())
    assert stage.final(order().sid).status == "FILLED"
    assert stage.orders_of(order().sid) == 1


def test_a_person_can_halt_while_a_channel_hangs(
    tmp_path: Path, share: Share, check_within: Callable[..., None]
) -> None:
    """(R4) The database and the other files have it at once; the share is named as what failed."""
    home, away = tmp_path / "home", tmp_path / "share" / "main"
    for folder in (home, away):
        (folder / "control").mkdir(parents=True)
    files = {name: folder / HALT for name, folder in (("desk", home), ("main", away))}
    database = desks.open_database(tmp_path)
    switch = KillSwitch(files, database)
    assert switch.engaged() == ""
    share.hang()
    check_within(5 * LIMIT, switch.engaged)
    assert switch.engaged() == ""
    failed: list[str] = []

    def halt() -> None:
        failed[:] = switch.halt("a person")

    check_within(10 * LIMIT, halt)
    assert len(failed) == 1 and failed[0].startswith("main: ") and "no answer" in failed[0]
    assert database.trading_state() == "HALTED" and files["desk"].exists()
    assert switch.engaged()
    check_within(LIMIT, switch.engaged)
    with pytest.raises(OSError, match="no answer"):
        switch.resume("a person", sleep=lambda _: None)
    assert database.trading_state() == "HALTED", "what cannot be ended everywhere ends nowhere"
    share.heal()
    switch.keep()
    assert files["main"].exists()
    switch.resume("a person", sleep=lambda _: None)
    assert switch.engaged() == ""
    database.close()


def home_with_a_channel(folder: Path, share: Path) -> Path:
    """Two instances of one symbol, one on paper, one on a channel."""
    folder.mkdir()
    for name in ("main", "main/state"):
        (share / name).mkdir(parents=True)
    instance = {"symbol": "BTCUSD", "timeframes": ["M15"], "feed": "store"}
    desk = {
        "instances": [
            {**instance, "name": "PAPER"},
            {**instance, "name": "LIVE", "bridge": "torra_files", "channel": "main"},
        ],
        "channels": {"main": {"folder": str(share / "main"), "account": stages.ACCOUNT}},
    }
    (folder / "desk.json").write_text(json.dumps(desk))
    return folder


def bars_of_the_sample(instances: Any, *_: Any) -> dict[str, Any]:
    """Stand for live feeds: a desk on the sample by its settings may not trade on a channel."""
    return {item.id: desks.sample() for item in instances}


@pytest.mark.journey
def test_a_desk_whose_channel_hangs_ticks_on_keeps_its_lease_and_closes(
    tmp_path: Path, short: None, tries: Tries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(L3) Its instance on the channel too: its ticks are stored, only its orders wait."""
    monkeypatch.setenv("TORRA_CHANNEL_KEY", ENVIRONMENT["TORRA_CHANNEL_KEY"])
    monkeypatch.setattr(wiring, "SAMPLE_RATE", 1200.0)
    monkeypatch.setattr(wiring, "open_feeds", bars_of_the_sample)
    for attempt in tries():
        folder = attempt.folder(tmp_path)
        with monkeypatch.context() as patch, DiskWitness(folder) as disk:
            share = Share(folder / "share", patch)
            desk, _ = wiring.open_desk(home_with_a_channel(folder / "home", folder / "share"))
            try:
                with attempt:
                    try:
                        lives_through(desk, share)
                    finally:
                        attempt.lost_before = disk.lost
                assert share.most >= 1, "nobody touched the share: this shows nothing"
            finally:
                share.heal()
                desk.close(within=5)


def lives_through(desk: Desk, share: Share) -> None:
    """Tick before the share hangs and while it does, then close in time."""
    desk.open()
    desk.start()

    def done(name: str) -> int:
        found = tick_queries.tick_states(desk.database, name, "M15", 1000)
        return sum(row["state"] == "done" for row in found)

    def ticks_until(name: str, count: int) -> None:
        until(lambda: done(name) >= count, 30, f"{name} ticks")

    ticks_until("PAPER", 1)
    ticks_until("LIVE", 1)
    share.hang()
    before = {name: done(name) for name in ("PAPER", "LIVE")}
    for name, count in before.items():
        ticks_until(name, count + 2)
    hung = System().real_now()
    until(
        lambda: parse((claim_table.desk_run(desk.database) or {})["seen_at"]) > hung,
        10,
        "a sign of life",
    )
    begin = System().monotonic()
    desk.close(within=5)
    assert System().monotonic() - begin < 15
