"""Torra's side of the channel: what is sent, what is believed and what is said about the rest."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.bridges.test_drop_folder import FaultyDisk, files, instead
from tests.worlds.channels import ACCOUNT, KEY, NOW, Stage, closing, order
from torra.advisor_protocol import PROTOCOL
from torra.bridges.protocol import OrderReport, Recall
from torra.bridges.torra import bridge as torra_files
from torra.bridges.torra.bridge import TorraFiles
from torra.bridges.torra.drop_folder import file_name
from torra.bridges.torra.messages import (
    TAIL_LENGTH,
    Ack,
    DeskState,
    Heartbeat,
    MessageError,
    decode,
    encode,
    seal,
    signal_of,
)
from torra.bridges.torra.place import folder_of
from torra.config import Channel
from torra.errors import BridgeUnavailable, ConfigError
from torra.verdict.risk_engine import DenyReason


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path)
    made.wake()
    return made


def name_of(number: int = 1) -> str:
    return file_name(number, order(number).sid)


def ack(number: int = 1, status: Any = "FILLED", **more: Any) -> bytes:
    told = {"reason": "", "channel": "main", "server_time": 1, "gmt": int(NOW.timestamp()), **more}
    return encode(Ack(sid=order(number).sid, seq=number, kind="open", status=status, **told), KEY)


def denied(stage: Stage) -> tuple[DenyReason | None, str]:
    health = stage.bridge.health()
    return health.deny, health.detail


# --- set-up ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("environment", [{}, {"TORRA_CHANNEL_KEY": " "}])
def test_a_channel_without_a_key_does_not_start(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    channel = Channel(folder=str(tmp_path / "main"), account=1)
    with pytest.raises(ConfigError, match="TORRA_CHANNEL_KEY is not set"):
        TorraFiles("main", channel, Stage(tmp_path).clock, environment=environment)


def test_the_key_comes_from_the_named_variable_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    other = stage.channel.model_copy(update={"key_variable": "OTHER_KEY"})
    with pytest.raises(ConfigError, match="OTHER_KEY"):
        stage.new_bridge(channel=other)
    monkeypatch.setenv("OTHER_KEY", KEY)
    bridge = stage.new_bridge(channel=other, environment=None)
    assert KEY not in str(bridge.health()) + repr(bridge)


def test_the_folder_has_a_default_where_windows_names_one(tmp_path: Path) -> None:
    channel = Channel(account=1)
    found = folder_of("main", channel, {"APPDATA": str(tmp_path)})
    assert found == tmp_path / "MetaQuotes/Terminal/Common/Files/Torra/main"
    with pytest.raises(ConfigError, match=r"channels\.main\.folder is empty"):
        folder_of("main", channel, {})


# --- submit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["inbox", "work", "ack", "done", "arch", "cancelled", "expired"])
def test_an_order_that_was_written_is_not_written_again(stage: Stage, where: str) -> None:
    stage.bridge.submit(order())
    (stage.folder / "inbox" / name_of()).replace(stage.folder / where / name_of())
    stage.bridge.submit(order())
    stage.new_bridge().submit(order())
    found = [name for name in files(stage.folder) if name_of() in name]
    assert {*found} <= {f"{where}/{name_of()}", f"ack/{name_of()}"}
    assert f"inbox/{name_of()}" not in found or where == "inbox"


def test_an_order_that_is_there_needs_no_living_advisor(stage: Stage) -> None:
    stage.bridge.submit(order())
    stage.clock.pass_time(60)
    assert not stage.bridge.health().ok
    stage.bridge.submit(order())
    with pytest.raises(BridgeUnavailable, match="no sign of life"):
        stage.bridge.submit(order(2))


@pytest.mark.parametrize("wrong", [{"stop": float("nan")}, {"broker_symbol": 'EUR"'}, {"sid": "é"}])
def test_an_order_that_no_message_can_say_is_not_sent(stage: Stage, wrong: dict[str, Any]) -> None:
    with pytest.raises((MessageError, ValueError), match=r"schema|no name"):
        stage.bridge.submit(order(**wrong))
    assert stage.names("inbox") == []


def test_a_folder_that_could_not_be_flushed_is_flushed_again(stage: Stage) -> None:
    flushes: list[bool] = []

    def flush(_: partial[Any]) -> None:
        flushes.append(True)
        if len(flushes) == 1:
            raise OSError(errno.EIO, "Input/output error")

    bridge = stage.new_bridge(run=instead(flush_names=flush))
    for _ in range(2):
        stage.tick()
        bridge.health()
    with pytest.raises(BridgeUnavailable, match="look at its disk"):
        bridge.submit(order())
    bridge.submit(order())
    assert len(flushes) == 2
    assert stage.names("inbox") == [name_of()]


# --- recall ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "where"), [(10, "cancelled"), (181, "expired")])
def test_a_recalled_order_cannot_be_executed(stage: Stage, seconds: float, where: str) -> None:
    stage.bridge.submit(order())
    stage.clock.pass_time(seconds)
    assert stage.bridge.recall(order().sid, 1) is Recall.RECALLED
    assert stage.bridge.recall(order().sid, 1) is Recall.RECALLED
    assert stage.names(where) == [name_of()]
    stage.wake()
    stage.bridge.submit(order())
    stage.tick()
    assert stage.ea.deals() == []


@pytest.mark.parametrize("where", ["work", "done", "ack", "arch"])
def test_an_order_that_the_advisor_has_is_taken(stage: Stage, where: str) -> None:
    assert stage.bridge.recall(order().sid, 1) is Recall.NEVER_SENT
    (stage.folder / where / name_of()).write_bytes(ack())
    assert stage.bridge.recall(order().sid, 1) is Recall.TAKEN


# --- reports --------------------------------------------------------------------------------------


def test_a_claimed_order_is_reported_once_it_is_settled(stage: Stage) -> None:
    (stage.folder / "work" / name_of()).write_bytes(b"x")
    (stage.folder / "work" / f"{name_of()}.sending").write_bytes(b"x")
    (first,) = stage.bridge.poll()
    stage.clock.pass_time(1)
    assert stage.bridge.poll() == [first] == [OrderReport(order().sid, "CLAIMED", first.at)]
    stage.bridge.settle(first)
    assert stage.bridge.poll() == []
    (stage.folder / "work" / name_of()).unlink()
    stage.bridge.poll()
    (stage.folder / "work" / name_of()).write_bytes(b"x")
    assert len(stage.bridge.poll()) == 1


def test_a_report_stays_until_it_is_settled(stage: Stage) -> None:
    (stage.folder / "ack" / name_of()).write_bytes(ack())
    (report,) = stage.bridge.poll()
    assert stage.bridge.poll() == [report] == stage.new_bridge().poll()
    stage.new_bridge().settle(report)
    assert stage.bridge.poll() == []
    assert stage.names("arch") == [name_of()]
    stage.bridge.settle(report)


def test_reports_come_oldest_first(stage: Stage) -> None:
    for number in (11, 2, 30):
        (stage.folder / "ack" / name_of(number)).write_bytes(ack(number))
    (stage.folder / "work" / name_of(7)).write_bytes(b"x")
    found = [(report.sid[-2:], report.status) for report in stage.bridge.poll()]
    assert found == [("02", "FILLED"), ("07", "CLAIMED"), ("11", "FILLED"), ("30", "FILLED")]


def test_an_answer_that_arrives_while_the_older_one_is_settled_stays(stage: Stage) -> None:
    """The Advisor replaces the interim answer between our look and our rename."""
    path = stage.folder / "ack" / name_of()
    path.write_bytes(ack(status="PLACED"))
    (placed,) = stage.bridge.poll()

    def rename(step: partial[Any]) -> Any:
        path.write_bytes(ack(status="FILLED"))
        return step()

    stage.new_bridge(run=instead(rename=rename)).settle(placed)
    (filled,) = stage.bridge.poll()
    assert (filled.status, stage.names("arch")) == ("FILLED", [])
    stage.bridge.settle(filled)
    assert stage.bridge.poll() == []


def test_the_newer_answer_does_not_push_the_older_one_away(stage: Stage) -> None:
    (stage.folder / "ack" / f"{name_of()}.settling").write_bytes(ack(status="PLACED"))
    (stage.folder / "ack" / name_of()).write_bytes(ack())
    placed, filled = stage.bridge.poll()
    assert (placed.status, filled.status) == ("PLACED", "FILLED")
    stage.bridge.settle(filled)
    assert stage.bridge.poll() == [placed, filled]
    stage.bridge.settle(placed)
    stage.bridge.settle(filled)
    assert stage.bridge.poll() == []


def test_a_crash_while_settling_loses_no_report(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.folder / "ack" / name_of()).write_bytes(ack())
    (report,) = stage.bridge.poll()

    class Crash(BaseException):
        pass

    def stop(_: partial[Any]) -> None:
        raise Crash

    with pytest.raises(Crash):
        stage.new_bridge(run=instead(replace=stop)).settle(report)
    assert stage.names("ack") == [f"{name_of()}.settling"]
    again = stage.new_bridge()
    assert again.poll() == [report]
    again.settle(report)
    assert (stage.names("ack"), stage.names("arch")) == ([], [name_of()])


BROKEN = {
    "forged": seal(ack().decode()[:-TAIL_LENGTH], "another key"),
    "for another signal": ack(2),
    "of another channel": ack(channel="second"),
    "for a state file": encode(DeskState(n=1, gmt=1, channel="main", state="ACTIVE"), KEY),
    "changed": ack().replace(b'"FILLED"', b'"REJECTED"'),
}
SLOWLY = {
    "truncated": ack()[:-1],
    "empty": b"",
    "a stream of zeros": b"\0" * 500,
    "oversized": b"x" * 100_000,
    "a key twice": seal(ack().decode()[:-TAIL_LENGTH] + ',"seq":1', KEY),
    "a signed word that is no status": seal(
        ack().decode()[:-TAIL_LENGTH].replace("FILLED", "FULFILLED"), KEY
    ),
}


@pytest.mark.parametrize("what", [*BROKEN, *SLOWLY])
def test_what_is_no_answer_is_never_taken_for_one(stage: Stage, what: str) -> None:
    (stage.folder / "ack" / name_of()).write_bytes({**BROKEN, **SLOWLY}[what])
    (stage.folder / "ack" / name_of(3)).write_bytes(ack(3))
    assert [report.sid for report in stage.bridge.poll()] == [order(3).sid]
    at_once = what in ("forged", "for another signal", "of another channel", "changed")
    assert (stage.names("bad") != []) == at_once
    stage.clock.pass_time(10)
    assert [report.sid for report in stage.bridge.poll()] == [order(3).sid]
    assert len(stage.names("bad")) == 1
    facts = stage.bridge.health().facts
    assert facts["alarms"] == 1
    assert name_of() in str(facts["last_alarm"])
    elsewhere = "it is signed as channel second's, and this is main" in str(facts["last_alarm"])
    assert elsewhere == (what == "of another channel")
    stage.bridge.poll()
    assert stage.bridge.health().facts["alarms"] == 1


def test_a_newer_versions_answer_is_kept_for_a_newer_torra(stage: Stage) -> None:
    newer = seal(ack().decode()[:-TAIL_LENGTH].replace('"v":2', '"v":3'), KEY)
    (stage.folder / "ack" / name_of()).write_bytes(newer)
    for _ in range(3):
        assert stage.bridge.poll() == []
        stage.clock.pass_time(60)
    assert stage.names("ack") == [name_of()]
    assert stage.bridge.health().facts["unread"] == (name_of(),)


def test_an_answer_that_somebody_lost_is_read_from_the_journal(stage: Stage) -> None:
    stage.bridge.submit(order())
    stage.tick()
    for path in (stage.folder / "ack").iterdir():
        path.unlink()
    assert stage.bridge.poll() == []
    stage.clock.pass_time(200)
    assert stage.bridge.recall(order().sid, 1) is Recall.TAKEN
    assert [report.status for report in stage.reports()] == ["FILLED"]
    assert stage.bridge.recall(order().sid, 1) is Recall.TAKEN
    assert stage.reports() == []
    shutil.rmtree(stage.folder / "arch")
    (stage.folder / "arch").mkdir()
    stage.wake()
    stage.bridge.submit(order())
    assert [report.status for report in stage.reports()] == ["FILLED"]


def test_an_answer_seen_twice_is_the_same_report(stage: Stage) -> None:
    stage.bridge.submit(order())
    stage.tick()
    (first,) = stage.bridge.poll()
    raw = (stage.folder / "ack" / name_of()).read_bytes()
    stage.bridge.settle(first)
    for _ in range(3):
        (stage.folder / "ack" / name_of()).write_bytes(raw)
        assert stage.reports() == [first]
    assert stage.orders_of(order().sid) == 1


# --- health ---------------------------------------------------------------------------------------


def test_a_living_advisor_is_seen_within_seconds(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    assert "there is no heartbeat" in denied(stage)[1]
    stage.tick()
    assert "has not advanced since" in denied(stage)[1]
    stage.tick()
    assert denied(stage) == (None, "")
    facts = stage.bridge.health().facts
    assert (facts["account"], facts["server_offset_s"], facts["ea_version"]) == (1001, 10800, "2.2")
    assert (facts["balance"], facts["leverage"], facts["currency"]) == (10_000.0, 100, "USD")
    assert (facts["alarms"], facts["heartbeat_age_s"]) == (0, 0.0)


def test_polling_and_the_own_heartbeat_look_at_the_advisor_too(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.tick()
    stage.bridge.poll()
    stage.tick()
    stage.bridge.heartbeat("ACTIVE")
    assert stage.bridge.health().ok


def test_a_dead_advisor_is_seen_by_our_own_clock(stage: Stage) -> None:
    stage.clock.pass_time(4.9)
    assert stage.bridge.health().ok
    stage.clock.pass_time(0.2)
    assert denied(stage)[0] is DenyReason.BRIDGE_DEAD
    assert "no sign of life from the Advisor for 5 s" in denied(stage)[1]
    os.utime(stage.folder / "state" / "ea.json")
    assert not stage.bridge.health().ok
    stage.tick()
    assert stage.bridge.health().ok


def test_heartbeats_that_are_put_back_are_no_life(stage: Stage) -> None:
    path = stage.folder / "state" / "ea.json"
    kept = []
    for _ in range(8):
        stage.tick()
        stage.bridge.health()
        kept.append(path.read_bytes())
    for number in range(20):
        stage.clock.pass_time(1)
        path.write_bytes(kept[number % 8])
        health = stage.bridge.health()
        assert health.ok == (number < 5)
    assert int(str(stage.bridge.health().facts["alarms"])) > 10
    assert "older copy" in str(stage.bridge.health().facts["last_alarm"])


def heartbeat(stage: Stage, key: str = KEY, **changes: Any) -> bytes:
    """Return the last heartbeat of the Advisor, with changes and as of now."""
    text = (stage.folder / "state" / "ea.json").read_bytes()
    fields = {"gmt": int(stage.clock.now().timestamp()), **changes}
    return encode(replace(decode(text, Heartbeat, KEY), **fields), key)


def test_a_heartbeat_of_an_advisor_that_counts_from_one_again_counts(stage: Stage) -> None:
    path = stage.folder / "state" / "ea.json"
    for number in (1, 2, 3):
        stage.clock.pass_time(1)
        path.write_bytes(heartbeat(stage, n=number))
        assert stage.bridge.health().ok
    assert stage.bridge.health().facts["alarms"] == 0
    assert stage.bridge.health().facts["n"] == 3


def test_a_forged_heartbeat_is_no_life(stage: Stage) -> None:
    path = stage.folder / "state" / "ea.json"
    good = path.read_bytes()
    for number in range(8):
        path.write_bytes(good)
        stage.clock.pass_time(1)
        path.write_bytes(heartbeat(stage, "another key", n=10**12 + number))
        health = stage.bridge.health()
        assert health.ok == (number < 5)
    assert "channel_key and TORRA_CHANNEL_KEY" in health.detail
    assert health.facts["alarms"] == 8


def test_a_slow_writer_of_the_heartbeat_does_no_harm(stage: Stage) -> None:
    path = stage.folder / "state" / "ea.json"
    for _ in range(12):
        stage.tick()
        whole = path.read_bytes()
        for length in (0, 10, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:length])
            assert stage.bridge.health().ok
        path.write_bytes(whole)
        assert stage.bridge.health().ok
    path.write_bytes(b"")
    stage.clock.pass_time(6)
    assert "not legible" in denied(stage)[1]
    assert stage.bridge.health().facts["alarms"] == 0


DENIALS: dict[str, tuple[object, str]] = {
    "account": (77, "is on account 77, not 1001: log in"),
    "trade_mode": ("real", "holds real money: set channels.main.live"),
    "connected": (0, "no connection to the broker"),
    "algo": (0, "press Algo Trading"),
    "trade": (0, "see the Advisor's input"),
}


@pytest.mark.parametrize("what", DENIALS)
def test_what_the_advisor_cannot_do_is_not_asked_of_it(stage: Stage, what: str) -> None:
    value, words = DENIALS[what]
    stage.ea.set(**{what: value})
    stage.tick()
    assert denied(stage)[0] is DenyReason.BRIDGE_DEAD
    assert words in denied(stage)[1]
    with pytest.raises(BridgeUnavailable, match=r".+"):
        stage.bridge.submit(order())
    assert stage.names("inbox") == []


def test_a_channel_that_is_live_takes_real_money(stage: Stage) -> None:
    stage.ea.set(trade_mode="real")
    live = stage.new_bridge(channel=stage.channel.model_copy(update={"live": True}))
    for _ in range(2):
        stage.tick()
        live.health()
    assert live.health().ok


def test_another_channels_advisor_is_not_ours(stage: Stage) -> None:
    stage.ea.inputs["channel"] = "other"
    stage.ea.restart()
    for _ in range(2):
        stage.tick()
    assert "serves channel other, not main" in denied(stage)[1]


@pytest.mark.parametrize("seconds", [3600, -3600, 7, -7, 4, -4])
def test_clocks_that_differ_are_not_traded_on(stage: Stage, seconds: float) -> None:
    """The two machines' clocks are so far apart; both run."""
    for _ in range(3):
        stage.clock.pass_time(1)
        stage.ea.step(stage.clock.now().timestamp() + seconds, stage.clock.monotonic())
        stage.bridge.health()
    if abs(seconds) < 5:
        assert stage.bridge.health().ok
        return
    deny, detail = denied(stage)
    assert deny is DenyReason.CLOCK_SKEW
    assert f"{seconds:+.0f} s off" in detail
    assert "time server" in detail


@pytest.mark.parametrize("seconds", [3600, -3600, -90])
def test_a_clock_that_is_put_right_on_both_sides_does_no_harm(stage: Stage, seconds: float) -> None:
    """Life is told by monotonic time, so a step of the wall clock is neither death nor life."""
    stage.clock.jump(seconds)
    stage.tick()
    assert stage.bridge.health().ok
    stage.clock.jump(seconds)
    stage.clock.pass_time(5.1)
    assert "no sign of life" in denied(stage)[1]


def test_a_halt_stops_everything(stage: Stage) -> None:
    stage.bridge.set_halt("enough")
    assert stage.bridge.halted()
    assert denied(stage)[0] is DenyReason.TRADING_HALTED
    with pytest.raises(BridgeUnavailable, match="HALT is there"):
        stage.bridge.submit(order())
    assert stage.names("inbox") == []
    stage.tick()
    stage.bridge.health()
    (stage.folder / "control" / "HALT").unlink()
    assert denied(stage) == (
        DenyReason.TRADING_HALTED,
        "the Advisor says that control/HALT is there: `torra resume` lets orders go again",
    )
    stage.tick()
    assert stage.bridge.health().ok
    stage.bridge.set_halt(None)
    assert not stage.bridge.halted()


def test_a_halt_between_publishing_and_the_claim_stops_the_order(stage: Stage) -> None:
    stage.bridge.submit(order())
    stage.bridge.set_halt("now")
    report = stage.final(order().sid)
    assert (report.status, report.reason) == ("REJECTED", "kill")
    assert stage.ea.deals() == []


def test_a_halt_that_comes_while_an_order_is_written_stops_it(stage: Stage) -> None:
    bridge = stage.new_bridge(run=instead(fsync=lambda _: stage.bridge.set_halt("now")))
    for _ in range(2):
        stage.tick()
        bridge.health()
    with pytest.raises(BridgeUnavailable, match="HALT is there"):
        bridge.submit(order())
    assert stage.names("inbox") == stage.names("tmp") == []


@pytest.mark.parametrize("torra", [1, 2, 3])
def test_mixed_versions_refuse_to_talk(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, torra: int
) -> None:
    """Promise R8, from both sides: neither publishes to nor executes for another version."""
    monkeypatch.setattr(torra_files, "PROTOCOL", torra)
    bridge = stage.bridge = stage.new_bridge()
    stage.wake()
    if torra == PROTOCOL:
        bridge.submit(order())
        assert stage.final(order().sid).status == "FILLED"
        return
    assert denied(stage)[0] is DenyReason.VERSION_MISMATCH
    told = f"the Expert Advisor on channel main speaks protocol {PROTOCOL}, this Torra {torra}: "
    older = "compile and attach mql5/TorraBridge.mq5 anew"
    remedy = older if torra > PROTOCOL else "update Torra"
    assert denied(stage)[1].startswith(told + remedy)
    with pytest.raises(BridgeUnavailable, match=r"TorraBridge\.mq5"):
        bridge.submit(order())
    forced = signal_of(order(), channel="main", account=ACCOUNT)
    (stage.folder / "inbox" / name_of()).write_bytes(encode(forced, KEY, version=torra))
    stage.tick()
    assert stage.ea.deals() == []
    answer = decode((stage.folder / "ack" / name_of()).read_bytes(), Ack, KEY)
    assert (answer.status, answer.reason) == ("REJECTED", "version")
    assert bridge.poll() == []
    assert stage.names("bad") == []


def test_a_read_only_folder_is_red_and_quiet(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    disk = FaultyDisk()
    bridge = stage.bridge = stage.new_bridge(run=disk)
    stage.wake()
    disk.fails = range(1, 10_000)
    disk.error = OSError(errno.EROFS, "Read-only file system")
    for _ in range(5):
        stage.tick()
        bridge.heartbeat("ACTIVE")
        assert bridge.poll() == []
        deny, detail = denied(stage)
        assert deny is DenyReason.BRIDGE_DEAD
        assert "cannot be written: let this user write there" in detail
    with pytest.raises(BridgeUnavailable, match="cannot be written"):
        bridge.submit(order())
    disk.fails = range(0)
    bridge.heartbeat("ACTIVE")
    assert bridge.health().ok


def test_a_vanished_folder_is_red_and_quiet(stage: Stage) -> None:
    stage.bridge.submit(order())
    stage.folder.rename(stage.root / "away")
    for ask in (lambda: stage.bridge.recall(order().sid, 1), lambda: stage.bridge.submit(order(2))):
        with pytest.raises(BridgeUnavailable, match="is not there"):
            ask()
    for _ in range(5):
        stage.clock.pass_time(1)
        stage.bridge.heartbeat("ACTIVE")
        assert stage.bridge.poll() == []
        assert "is not there: mount the share" in denied(stage)[1]
        assert stage.bridge.books() is None or stage.bridge.books()
        assert not stage.bridge.halted()
    assert not stage.folder.exists()
    (stage.root / "away").rename(stage.folder)
    stage.tick()
    stage.bridge.heartbeat("ACTIVE")
    stage.bridge.poll()
    assert stage.bridge.health().ok


def test_a_folder_that_comes_later_is_taken_then(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    channel = stage.channel.model_copy(update={"folder": str(tmp_path / "share" / "main")})
    bridge = stage.new_bridge(channel=channel)
    assert "mount the share" in bridge.health().detail
    (tmp_path / "share").mkdir()
    assert "there is no heartbeat" in bridge.health().detail
    assert (tmp_path / "share" / "main" / "inbox").is_dir()


# --- promise R6: outages --------------------------------------------------------------------------


def test_nothing_is_sent_to_a_dead_advisor_and_nothing_fires_late(
    tmp_path: Path, scaled: Callable[..., int], record_property: Any
) -> None:
    """Random outages: silent for more than ALIVE_SECONDS means no publishing, back means more."""
    dice = random.Random(7)
    stage = Stage(tmp_path)
    stage.wake()
    outages = scaled(1_000, 8)
    refused = number = expired = 0
    for _ in range(outages):
        silent = 0.0
        number += 1
        late = order(number, created=stage.clock.now(), expires=in_seconds(stage, 10))
        if dice.random() < 0.5:
            stage.bridge.submit(late)
        length = dice.uniform(0, 30)
        while silent < length:
            step = dice.uniform(0.2, 3)
            stage.clock.pass_time(step)
            silent += step
            number += 1
            fresh = order(number, created=stage.clock.now(), expires=in_seconds(stage, 10))
            if silent > 5.01:
                with pytest.raises(BridgeUnavailable, match="no sign of life"):
                    stage.bridge.submit(fresh)
                refused += 1
        for _ in range(2):
            stage.tick()
            stage.bridge.health()
        for report in stage.reports():
            expired += report.status == "EXPIRED"
        assert stage.bridge.health().ok
    sends = [deal["comment"] for deal in stage.ea.deals()]
    assert len(sends) == len(set(sends))
    assert refused > outages / 2
    assert expired
    told = f"{outages:,} outages, {refused:,} refusals, {expired:,} expired, 0 fired late"
    record_property("seen", told)


def in_seconds(stage: Stage, seconds: float) -> Any:
    return stage.clock.now() + timedelta(seconds=seconds)


# --- books ----------------------------------------------------------------------------------------


def test_the_books_are_the_brokers(stage: Stage) -> None:
    opened = order()
    stage.bridge.submit(opened)
    filled = stage.final(opened.sid)
    books = stage.bridge.books()
    assert books is not None
    (position,) = books.positions
    assert (position.ticket, position.comment) == (filled.position, opened.sid)
    assert (position.side, position.lots, position.stop) == ("LONG", 0.1, 1.09512)
    assert [(deal.entry, deal.reason) for deal in books.deals] == [("in", "expert")]
    times = {"created": stage.clock.now(), "expires": in_seconds(stage, 100)}
    stage.bridge.submit(closing(opened, ticket=position.ticket, **times))
    stage.final(order(2).sid)
    books = stage.bridge.books()
    assert books is not None
    assert books.positions == ()
    assert [(deal.entry, deal.side) for deal in books.deals] == [("in", "BUY"), ("out", "SELL")]
    assert books.deals[1].profit == pytest.approx(-1.2)


@pytest.mark.parametrize("name", ["positions.json", "deals.json"])
@pytest.mark.parametrize(
    "what", ["missing", "forged", "half", "another channel", "another account", "bad row"]
)
def test_missing_books_are_not_flat(tmp_path: Path, name: str, what: str) -> None:
    stage = Stage(tmp_path)
    stage.wake()
    path = stage.folder / "state" / name
    raw = path.read_bytes()
    body = raw.decode()[:-TAIL_LENGTH]
    prefix = name[0]
    path.unlink()
    if what != "missing":
        path.write_bytes(
            {
                "forged": seal(body, "no"),
                "half": raw[: len(raw) // 2],
                "another channel": seal(
                    body.replace('"channel":"main"', '"channel":"second"'), KEY
                ),
                "another account": seal(body.replace('"account":1001', '"account":7'), KEY),
                "bad row": seal(body.replace('"count":0', f'"count":1,"{prefix}0":"x|y"'), KEY),
            }[what]
        )
    assert stage.bridge.books() is None
    suspicious = what in ("forged", "another channel", "bad row")
    assert stage.bridge.health().facts["alarms"] == suspicious
    path.write_bytes(raw)
    if what == "another account":
        stage.tick(5)
    assert stage.bridge.books() is not None


@pytest.mark.parametrize("name", ["positions.json", "deals.json"])
@pytest.mark.parametrize("half", [True, False])
def test_books_stand_for_thirty_seconds(stage: Stage, name: str, half: bool) -> None:
    """One of the two is written by half, or is the old one again and again."""
    path = stage.folder / "state" / name
    raw = path.read_bytes()
    assert stage.bridge.books() is not None
    for seconds in (29, 2):
        stage.tick(seconds)
        path.write_bytes(raw[:9] if half else raw)
        assert (stage.bridge.books() is None) == (seconds == 2)


def test_the_terms_are_the_brokers(stage: Stage) -> None:
    terms = stage.bridge.terms()["EURUSD.m"]
    assert (terms.digits, terms.tick_size, terms.lot_step) == (5, 0.00001, 0.01)
    assert terms.quote is not None
    assert (terms.quote.bid, terms.quote.ask) == (1.1, 1.10012)
    stage.clock.pass_time(31)
    assert stage.bridge.terms()["EURUSD.m"].quote is None
    path = stage.folder / "state" / "symbols.json"
    raw = path.read_text(encoding="ascii")
    path.unlink()
    assert stage.bridge.terms()["EURUSD.m"].digits == 5
    assert stage.new_bridge().terms() == {}
    other = raw[:-TAIL_LENGTH].replace('"account":1001', '"account":7')
    path.write_bytes(seal(other, KEY))
    assert stage.new_bridge().terms() == {}, "another account's are not ours"


def test_the_own_heartbeat_is_written(stage: Stage) -> None:
    for number, state in enumerate(("ACTIVE", "REDUCING", "HALTED"), 1):
        stage.bridge.heartbeat(state)  # type: ignore[arg-type]
        raw = (stage.folder / "state" / "torra.json").read_bytes()
        told = decode(raw, DeskState, KEY)
        assert (told.n, told.state, told.gmt) == (number, state, int(stage.clock.now().timestamp()))


def test_old_files_are_removed_once_a_day(stage: Stage) -> None:
    def put_old() -> Path:
        path = stage.folder / "arch" / "old.json"
        path.write_bytes(b"x")
        age = NOW.timestamp() - 31 * 86_400
        os.utime(path, (age, age))
        return path

    old = put_old()
    stage.bridge.heartbeat("ACTIVE")
    assert not old.exists()
    old = put_old()
    stage.clock.pass_time(86_000)
    stage.bridge.heartbeat("ACTIVE")
    assert old.exists()
    stage.clock.pass_time(500)
    stage.bridge.heartbeat("ACTIVE")
    assert not old.exists()
