"""Torra's side of the channel: what is sent, what is believed and what is said about the rest."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.folder_steps import FaultyDisk, files, instead
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

SID = order().sid


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path)
    made.wake()
    return made


def name_of(number: int = 1) -> str:
    return file_name(number, order(number).sid)


def ack(number: int = 1, status: Any = "FILLED", **more: Any) -> bytes:
    told = {"channel": "main", "server_time": 1, "gmt": int(NOW.timestamp()), **more}
    return encode(Ack(sid=order(number).sid, seq=number, kind="open", status=status, **told), KEY)


def put(stage: Stage, where: str, data: bytes = b"x", number: int = 1) -> Path:
    """Write a file of a signal's name."""
    path = stage.folder / where / name_of(number)
    path.write_bytes(data)
    return path


def denied(stage: Stage) -> tuple[DenyReason | None, str]:
    health = stage.bridge.health()
    return health.deny, health.detail


def alarms(stage: Stage) -> tuple[object, str]:
    facts = stage.bridge.health().facts
    return facts["alarms"], str(facts["last_alarm"])


def refuses(stage: Stage, words: str, bridge: TorraFiles | None = None) -> None:
    """Look that an order is not sent, and why."""
    with pytest.raises(BridgeUnavailable, match=words):
        (bridge or stage.bridge).submit(order())
    assert stage.names("inbox") == []


def new_bridge(stage: Stage, **more: Any) -> TorraFiles:
    """Let a bridge take the place of the stage's, and see its Advisor alive."""
    stage.bridge = stage.new_bridge(**more)
    stage.wake()
    return stage.bridge


# --- set-up ---------------------------------------------------------------------------------------


def test_the_key_comes_from_the_named_variable_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    for environment in ({}, {"TORRA_CHANNEL_KEY": " "}):
        with pytest.raises(ConfigError, match="TORRA_CHANNEL_KEY is not set"):
            stage.new_bridge(environment=environment)
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


# --- submit and recall ----------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["inbox", "work", "ack", "done", "arch", "cancelled", "expired"])
def test_an_order_that_was_written_is_not_written_again(stage: Stage, where: str) -> None:
    stage.bridge.submit(order())
    (stage.folder / "inbox" / name_of()).replace(stage.folder / where / name_of())
    stage.bridge.submit(order())
    stage.new_bridge().submit(order())
    found = {name for name in files(stage.folder) if name_of() in name}
    assert found <= {f"{where}/{name_of()}", f"ack/{name_of()}"}
    assert where == "inbox" or f"inbox/{name_of()}" not in found


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

    bridge = new_bridge(stage, run=instead(flush_names=flush))
    with pytest.raises(BridgeUnavailable, match="look at its disk"):
        bridge.submit(order())
    bridge.submit(order())
    assert len(flushes) == 2
    assert stage.names("inbox") == [name_of()]


@pytest.mark.parametrize(("seconds", "where"), [(10, "cancelled"), (181, "expired")])
def test_a_recalled_order_cannot_be_executed(stage: Stage, seconds: float, where: str) -> None:
    stage.bridge.submit(order())
    stage.clock.pass_time(seconds)
    for _ in range(2):
        assert stage.bridge.recall(SID, 1) is Recall.RECALLED
    assert stage.names(where) == [name_of()]
    stage.wake()
    stage.bridge.submit(order())
    stage.tick()
    assert stage.ea.deals() == []


@pytest.mark.parametrize("where", ["work", "done", "ack", "arch"])
def test_an_order_that_the_advisor_has_is_taken(stage: Stage, where: str) -> None:
    assert stage.bridge.recall(SID, 1) is Recall.NEVER_SENT
    put(stage, where, ack())
    assert stage.bridge.recall(SID, 1) is Recall.TAKEN


# --- reports --------------------------------------------------------------------------------------


def test_a_claimed_order_is_reported_once_it_is_settled(stage: Stage) -> None:
    claim = put(stage, "work")
    claim.with_name(f"{claim.name}.sending").write_bytes(b"x")
    (first,) = stage.bridge.poll()
    stage.clock.pass_time(1)
    assert stage.bridge.poll() == [first] == [OrderReport(SID, "CLAIMED", first.at)]
    stage.bridge.settle(first)
    assert stage.bridge.poll() == []
    claim.unlink()
    stage.bridge.poll()
    put(stage, "work")
    assert len(stage.bridge.poll()) == 1


def test_a_report_stays_until_it_is_settled(stage: Stage) -> None:
    put(stage, "ack", ack())
    (report,) = stage.bridge.poll()
    assert stage.bridge.poll() == [report] == stage.new_bridge().poll()
    stage.new_bridge().settle(report)
    assert stage.bridge.poll() == []
    assert stage.names("arch") == [name_of()]
    stage.bridge.settle(report)


def test_reports_come_oldest_first(stage: Stage) -> None:
    for number in (11, 2, 30):
        put(stage, "ack", ack(number), number)
    put(stage, "work", number=7)
    found = [(report.sid[-2:], report.status) for report in stage.bridge.poll()]
    assert found == [("02", "FILLED"), ("07", "CLAIMED"), ("11", "FILLED"), ("30", "FILLED")]


def test_an_answer_that_arrives_while_the_older_one_is_settled_stays(stage: Stage) -> None:
    """The Advisor replaces the interim answer between our look and our rename."""
    put(stage, "ack", ack(status="PLACED"))
    (placed,) = stage.bridge.poll()

    def rename(step: partial[Any]) -> Any:
        put(stage, "ack", ack(status="FILLED"))
        return step()

    stage.new_bridge(run=instead(rename=rename)).settle(placed)
    (filled,) = stage.bridge.poll()
    assert (filled.status, stage.names("arch")) == ("FILLED", [])
    stage.bridge.settle(filled)
    assert stage.bridge.poll() == []


def test_the_newer_answer_does_not_push_the_older_one_away(stage: Stage) -> None:
    path = put(stage, "ack", ack())
    path.with_name(f"{path.name}.settling").write_bytes(ack(status="PLACED"))
    placed, filled = stage.bridge.poll()
    assert (placed.status, filled.status) == ("PLACED", "FILLED")
    stage.bridge.settle(filled)
    assert stage.bridge.poll() == [placed, filled]
    stage.bridge.settle(placed)
    stage.bridge.settle(filled)
    assert stage.bridge.poll() == []


def test_a_crash_while_settling_loses_no_report(stage: Stage) -> None:
    put(stage, "ack", ack())
    (report,) = stage.bridge.poll()

    class Crash(BaseException):
        pass

    def stop(_: partial[Any]) -> None:
        raise Crash

    with suppress(Crash):
        stage.new_bridge(run=instead(replace=stop)).settle(report)
    assert stage.names("ack") == [f"{name_of()}.settling"]
    again = stage.new_bridge()
    assert again.poll() == [report]
    again.settle(report)
    assert (stage.names("ack"), stage.names("arch")) == ([], [name_of()])


BODY = ack().decode()[:-TAIL_LENGTH]
AT_ONCE = {
    "forged": seal(BODY, "another key"),
    "for another signal": ack(2),
    "of another channel": ack(channel="second"),
    "changed": ack().replace(b'"FILLED"', b'"REJECTED"'),
}
SLOWLY = {
    "for a state file": encode(DeskState(n=1, gmt=1, channel="main", state="ACTIVE"), KEY),
    "truncated": ack()[:-1],
    "empty": b"",
    "a stream of zeros": b"\0" * 500,
    "oversized": b"x" * 100_000,
    "a key twice": seal(f'{BODY},"seq":1', KEY),
    "a signed word that is no status": seal(BODY.replace("FILLED", "FULFILLED"), KEY),
}
"""What may only be half written yet has ten seconds to become whole."""


@pytest.mark.parametrize("what", [*AT_ONCE, *SLOWLY])
def test_what_is_no_answer_is_never_taken_for_one(stage: Stage, what: str) -> None:
    put(stage, "ack", ack(3), 3)
    broken = {**AT_ONCE, **SLOWLY}[what]
    for seconds, aside in ((0, what in AT_ONCE), (9.9, what in AT_ONCE), (0.1, True)):
        stage.clock.pass_time(seconds)
        if not seconds:
            put(stage, "ack", broken)
        assert [report.sid for report in stage.bridge.poll()] == [order(3).sid]
        assert len(stage.names("bad")) == aside
    count, last = alarms(stage)
    assert count == 1 and name_of() in last
    elsewhere = "it is signed as channel second's, and this is main" in last
    assert elsewhere == (what == "of another channel")
    stage.bridge.poll()
    assert alarms(stage)[0] == 1
    put(stage, "ack", broken)
    stage.bridge.poll()
    stage.clock.pass_time(10)
    stage.bridge.poll()
    assert [path.read_bytes() for path in (stage.folder / "bad").iterdir()] == [broken] * 2


def test_an_answer_that_became_whole_has_its_time_anew(stage: Stage) -> None:
    for data, seconds in ((b"half", 9), (ack(), 5), (b"half", 9)):
        put(stage, "ack", data)
        stage.bridge.poll()
        stage.clock.pass_time(seconds)
        stage.bridge.poll()
    assert stage.names("ack") == [name_of()]


def test_a_newer_versions_answer_is_kept_for_a_newer_torra(stage: Stage) -> None:
    put(stage, "ack", seal(BODY.replace('"v":2', '"v":3'), KEY))
    for _ in range(3):
        assert stage.bridge.poll() == []
        stage.clock.pass_time(60)
    assert stage.names("ack") == [name_of()]
    assert stage.bridge.health().facts["unread"] == (name_of(),)


def test_an_answer_that_somebody_lost_is_read_from_the_journal(stage: Stage) -> None:
    stage.bridge.submit(order())
    stage.tick()
    (stage.folder / "ack" / name_of()).unlink()
    assert stage.bridge.poll() == []
    stage.clock.pass_time(200)
    for found in (["FILLED"], []):
        assert stage.bridge.recall(SID, 1) is Recall.TAKEN
        assert [report.status for report in stage.reports()] == found
    shutil.rmtree(stage.folder / "arch")
    (stage.folder / "arch").mkdir()
    stage.wake()
    stage.bridge.submit(order())
    assert [report.status for report in stage.reports()] == ["FILLED"]


# --- health ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", ["health", "poll", "heartbeat"])
def test_a_living_advisor_is_seen_within_seconds(tmp_path: Path, look: str) -> None:
    stage = Stage(tmp_path)
    assert "there is no heartbeat" in denied(stage)[1]
    looks: dict[str, Callable[[], object]] = {
        "health": stage.bridge.health,
        "poll": stage.bridge.poll,
        "heartbeat": partial(stage.bridge.heartbeat, "ACTIVE"),
    }
    stage.tick()
    looks[look]()
    assert "has not advanced since" in denied(stage)[1]
    stage.tick()
    looks[look]()
    assert denied(stage) == (None, "")
    facts = stage.bridge.health().facts
    assert (facts["account"], facts["server_offset_s"], facts["ea_version"]) == (1001, 10800, "2.2")
    assert (facts["balance"], facts["leverage"], facts["currency"]) == (10_000.0, 100, "USD")
    assert (facts["alarms"], facts["heartbeat_age_s"]) == (0, 0.0)


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
        assert stage.bridge.health().ok == (number < 5)
    count, last = alarms(stage)
    assert int(str(count)) > 10 and "older copy" in last


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
    assert alarms(stage)[0] == 0 and stage.bridge.health().facts["n"] == 3


def test_a_forged_heartbeat_is_no_life(stage: Stage) -> None:
    path = stage.folder / "state" / "ea.json"
    good = path.read_bytes()
    for number in range(8):
        path.write_bytes(good)
        stage.clock.pass_time(1)
        path.write_bytes(heartbeat(stage, "another key", n=10**12 + number))
        assert stage.bridge.health().ok == (number < 5)
    assert "channel_key and TORRA_CHANNEL_KEY" in denied(stage)[1]
    assert alarms(stage)[0] == 8


def test_a_slow_writer_of_the_heartbeat_does_no_harm(stage: Stage) -> None:
    path = stage.folder / "state" / "ea.json"
    for _ in range(12):
        stage.tick()
        whole = path.read_bytes()
        for length in (0, 10, len(whole) // 2, len(whole) - 1, len(whole)):
            path.write_bytes(whole[:length])
            assert stage.bridge.health().ok
    path.write_bytes(b"")
    stage.clock.pass_time(6)
    assert "not legible" in denied(stage)[1]
    assert alarms(stage)[0] == 0


DENIALS: dict[str, tuple[object, str]] = {
    "account": (77, "is on account 77, not 1001: log in"),
    "trade_mode": ("real", "holds real money: set channels.main.live"),
    "connected": (0, "no connection to the broker"),
    "algo": (0, "press Algo Trading"),
    "trade": (0, "see the Advisor's input"),
    "channel": ("other", "serves channel other, not main"),
}


@pytest.mark.parametrize("what", DENIALS)
def test_what_the_advisor_cannot_do_is_not_asked_of_it(stage: Stage, what: str) -> None:
    value, words = DENIALS[what]
    if what == "channel":
        stage.ea.inputs["channel"] = value
        stage.ea.restart()
    else:
        stage.ea.set(**{what: value})
    stage.wake()
    assert denied(stage)[0] is DenyReason.BRIDGE_DEAD
    assert words in denied(stage)[1]
    refuses(stage, r".+")


def test_a_channel_that_is_live_takes_real_money(stage: Stage) -> None:
    stage.ea.set(trade_mode="real")
    live = stage.channel.model_copy(update={"live": True})
    assert new_bridge(stage, channel=live).health().ok


@pytest.mark.parametrize("seconds", [3600, -3600, 7, -7, 4, -4])
def test_clocks_that_differ_are_not_traded_on(stage: Stage, seconds: float) -> None:
    """The two machines' clocks are so far apart; both run."""
    for _ in range(3):
        stage.clock.pass_time(1)
        stage.ea.step(stage.clock.now().timestamp() + seconds, stage.clock.monotonic())
        stage.bridge.health()
    deny, detail = denied(stage)
    assert (deny is DenyReason.CLOCK_SKEW) == (abs(seconds) > 5) == (not stage.bridge.health().ok)
    assert deny is None or (f"{seconds:+.0f} s off" in detail and "time server" in detail)


@pytest.mark.parametrize("seconds", [3600, -3600, -90])
def test_a_clock_that_is_put_right_on_both_sides_does_no_harm(stage: Stage, seconds: float) -> None:
    """Life is told by monotonic time, so a step of the wall clock is neither death nor life."""
    stage.clock.jump(seconds)
    stage.tick()
    assert stage.bridge.health().ok
    stage.clock.jump(seconds)
    stage.clock.pass_time(5.1)
    assert "no sign of life" in denied(stage)[1]


# --- the kill switch and versions -----------------------------------------------------------------


def test_a_halt_stops_everything(stage: Stage) -> None:
    stage.bridge.set_halt("enough")
    assert stage.bridge.halted()
    assert denied(stage)[0] is DenyReason.TRADING_HALTED
    refuses(stage, "HALT is there")
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
    report = stage.final(SID)
    assert (report.status, report.reason) == ("REJECTED", "kill")
    assert stage.ea.deals() == []


def test_a_halt_that_comes_while_an_order_is_written_stops_it(stage: Stage) -> None:
    halt = stage.bridge.set_halt
    bridge = new_bridge(stage, run=instead(fsync=lambda _: halt("now")))
    refuses(stage, "HALT is there", bridge)
    assert stage.names("tmp") == []


@pytest.mark.parametrize("torra", [1, 2, 3])
def test_mixed_versions_refuse_to_talk(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, torra: int
) -> None:
    """Promise R8, from both sides: neither publishes to nor executes for another version."""
    monkeypatch.setattr(torra_files, "PROTOCOL", torra)
    bridge = new_bridge(stage)
    if torra == PROTOCOL:
        bridge.submit(order())
        assert stage.final(SID).status == "FILLED"
        return
    assert denied(stage)[0] is DenyReason.VERSION_MISMATCH
    told = f"the Expert Advisor on channel main speaks protocol {PROTOCOL}, this Torra {torra}: "
    older = "compile and attach mql5/TorraBridge.mq5 anew"
    assert denied(stage)[1].startswith(told + (older if torra > PROTOCOL else "update Torra"))
    refuses(stage, r"TorraBridge\.mq5")
    forced = signal_of(order(), channel="main", account=ACCOUNT)
    put(stage, "inbox", encode(forced, KEY, version=torra))
    stage.tick()
    assert stage.ea.deals() == []
    answer = decode((stage.folder / "ack" / name_of()).read_bytes(), Ack, KEY)
    assert (answer.status, answer.reason) == ("REJECTED", "version")
    assert bridge.poll() == [] == stage.names("bad")


# --- a folder that fails --------------------------------------------------------------------------


def test_a_read_only_folder_is_red_and_quiet(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    disk = FaultyDisk()
    bridge = new_bridge(stage, run=disk)
    disk.fails = range(1, 10_000)
    disk.error = OSError(errno.EROFS, "Read-only file system")
    for _ in range(5):
        stage.tick()
        bridge.heartbeat("ACTIVE")
        assert bridge.poll() == []
        deny, detail = denied(stage)
        assert deny is DenyReason.BRIDGE_DEAD
        assert "cannot be written: let this user write there" in detail
    refuses(stage, "cannot be written")
    disk.fails = range(0)
    bridge.heartbeat("ACTIVE")
    assert bridge.health().ok


def test_a_vanished_folder_is_red_and_quiet(stage: Stage) -> None:
    stage.bridge.submit(order())
    stage.folder.rename(stage.root / "away")
    for ask in (lambda: stage.bridge.recall(SID, 1), lambda: stage.bridge.submit(order(2))):
        with pytest.raises(BridgeUnavailable, match="is not there"):
            ask()
    for _ in range(5):
        stage.clock.pass_time(1)
        stage.bridge.heartbeat("ACTIVE")
        assert stage.bridge.poll() == []
        assert "is not there: mount the share" in denied(stage)[1]
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
    assert not (tmp_path / "share").exists()
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
        if dice.random() < 0.5:
            stage.bridge.submit(order(number, **living(stage, 10)))
        length = dice.uniform(0, 30)
        while silent < length:
            step = dice.uniform(0.2, 3)
            stage.clock.pass_time(step)
            silent += step
            number += 1
            if silent > 5.01:
                with pytest.raises(BridgeUnavailable, match="no sign of life"):
                    stage.bridge.submit(order(number, **living(stage, 10)))
                refused += 1
        stage.wake()
        expired += sum(report.status == "EXPIRED" for report in stage.reports())
        assert stage.bridge.health().ok
    sends = [deal["comment"] for deal in stage.ea.deals()]
    assert len(sends) == len(set(sends))
    assert refused > outages / 2
    assert expired
    told = f"{outages:,} outages, {refused:,} refusals, {expired:,} expired, 0 fired late"
    record_property("seen", told)


def living(stage: Stage, seconds: float) -> dict[str, Any]:
    """Return the times of an order that is decided now and lives so long."""
    now = stage.clock.now()
    return {"created": now, "expires": now + timedelta(seconds=seconds)}


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
    stage.bridge.submit(closing(opened, ticket=position.ticket, **living(stage, 100)))
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
    path.unlink()
    if what != "missing":
        path.write_bytes(
            {
                "forged": seal(body, "no"),
                "half": raw[: len(raw) // 2],
                "another channel": seal(body.replace(':"main"', ':"second"'), KEY),
                "another account": seal(body.replace('"account":1001', '"account":7'), KEY),
                "bad row": seal(body.replace('"count":0', f'"count":1,"{name[0]}0":"x|y"'), KEY),
            }[what]
        )
    assert stage.bridge.books() is None
    assert alarms(stage)[0] == (what in ("forged", "another channel", "bad row"))
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
    body = path.read_text(encoding="ascii")[:-TAIL_LENGTH]
    path.unlink()
    assert stage.bridge.terms()["EURUSD.m"].digits == 5
    assert stage.new_bridge().terms() == {}
    path.write_bytes(seal(body.replace('"account":1001', '"account":7'), KEY))
    assert stage.new_bridge().terms() == {}, "another account's are not ours"


def test_the_own_heartbeat_is_written(stage: Stage) -> None:
    for number, state in enumerate(("ACTIVE", "REDUCING", "HALTED"), 1):
        stage.bridge.heartbeat(state)  # type: ignore[arg-type]
        told = decode((stage.folder / "state" / "torra.json").read_bytes(), DeskState, KEY)
        assert (told.n, told.state, told.gmt) == (number, state, int(stage.clock.now().timestamp()))


def test_old_files_are_removed_once_a_day(stage: Stage) -> None:
    old = stage.folder / "arch" / "old.json"
    age = NOW.timestamp() - 31 * 86_400
    for seconds, stays in ((0, False), (86_000, True), (500, False)):
        old.write_bytes(b"x")
        os.utime(old, (age, age))
        stage.clock.pass_time(seconds)
        stage.bridge.heartbeat("ACTIVE")
        assert old.exists() == stays
