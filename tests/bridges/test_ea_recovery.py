"""The Expert Advisor is killed, sees signals twice and lacks disk, and sends one order at most.

Every test runs mql5/TorraBridge.mq5 itself against the simulated broker of tests/doubles/ea_shim,
which outlives it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.doubles.advisor_channel import (
    ASK,
    BID,
    GOLD,
    KEY,
    MAGIC,
    NOW,
    PATIENCE,
    AdvisorChannel,
    body_of,
    given,
    live_on,
    seal,
)
from tests.doubles.compiled_ea import (
    POINTS,
    CompiledEa,
    Died,
)

# --- the same signal again ------------------------------------------------------------------------


def test_a_signal_that_comes_again_gets_the_same_ack(desk: AdvisorChannel) -> None:
    name = desk.drop()
    desk.ea.timer()
    first = (desk.folder / "ack" / name).read_bytes()
    sid = desk.ack(name)["sid"]
    (desk.folder / "ack" / name).unlink()

    desk.drop(seq=1, sid=sid)
    desk.ea.run(1)
    assert (desk.folder / "ack" / name).read_bytes() == first
    (desk.folder / "ack" / name).unlink()

    desk.drop(seq=9, sid=sid)
    desk.ea.run(1)
    assert (desk.folder / "ack" / name).read_bytes() == first, "the same sid under a new number"
    assert desk.names("ack") == [name]

    desk.put(seal("{", "forged"), 1, sid)
    desk.ea.run(1)
    assert (desk.folder / "ack" / name).read_bytes() == first, "a forgery under a used name"
    (desk.folder / "ack" / name).unlink()

    (desk.folder / "work" / name).write_text(seal(body_of(desk.fields(seq=1, sid=sid))))
    desk.ea.run(1)
    assert (desk.folder / "ack" / name).read_bytes() == first, "as if it were claimed already"
    assert len(desk.deals()) == 1
    assert desk.empty()


@pytest.mark.parametrize("kind", ["open", "close"])
def test_two_files_of_one_sid_wait_for_each_other(desk: AdvisorChannel, kind: str) -> None:
    if kind == "close":
        desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC, comment="TREF")
    desk.ea.fail(10012, executed=0)
    for seq in (1, 2):
        side = "SELL" if kind == "close" else "BUY"
        desk.drop(kind=kind, side=side, ref="TREF", seq=seq, sid="TWIN")
    desk.ea.wait(PATIENCE - 2)
    assert desk.ea.broker_state()["sends"] == 1
    assert len([name for name in desk.names("work") if name.endswith(".json")]) == 2
    desk.ea.wait(4)
    assert desk.ack("0000000001_TWIN.json")["status"] == "UNKNOWN"
    assert desk.ea.broker_state()["sends"] == 1
    assert desk.empty()


def test_a_damaged_journal_is_not_taken_for_no_journal(desk: AdvisorChannel) -> None:
    name = desk.drop()
    desk.ea.timer()
    sid = desk.ack(name)["sid"]
    for books, status in ((True, "FILLED"), (False, "UNKNOWN")):
        (desk.folder / "done" / name).write_text("half", encoding="ascii")
        (desk.folder / "ack" / name).unlink()
        if not books:
            desk.ea.wipe()
        desk.drop(seq=1, sid=sid)
        desk.ea.wait(PATIENCE + 1)
        assert desk.ack(name)["status"] == status
        assert desk.empty()
    assert desk.deals() == []


@pytest.mark.parametrize("comment", ["{}", "{} [broker]", "{}."])
def test_an_order_that_is_at_the_broker_is_adopted(desk: AdvisorChannel, comment: str) -> None:
    sid = "TADOPTED"
    shown = comment.format(sid).replace(" ", "|")
    ticket = desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC, comment=shown)
    ack = desk.order(sid=sid)
    assert (ack["status"], ack["adopted"], ack["position"]) == ("FILLED", True, ticket)
    assert (ack["price"], ack["volume"], ack["ticket"]) == (ASK, 0.1, ticket)
    assert desk.ea.broker_state()["sends"] == 0


def test_what_only_looks_alike_is_not_adopted(desk: AdvisorChannel) -> None:
    desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC + 1, comment="TALIKE")
    ack = desk.order(sid="TALIKE")
    assert (ack["status"], ack["adopted"]) == ("FILLED", False)
    assert desk.ea.broker_state()["sends"] == 1
    longer = desk.order(sid="TALI", seq=50)
    assert (longer["status"], longer["reason"]) == ("REJECTED", "policy"), "TALIKE is not TALI"


# --- kill -9 --------------------------------------------------------------------------------------

ENDS = {"intent": "UNKNOWN_NOT_SENT", "before_send": "UNKNOWN_NOT_SENT"}
"""What a kill at a point leads to; everywhere else the order is executed once."""


KINDS = ("open", "close", "modify", "close_all")


def executed(desk: AdvisorChannel, kind: str) -> int:
    state = desk.ea.broker_state()
    if kind == "modify":
        return int(state["positions"][0]["sl"] == 2340.0)
    return sum(deal["comment"] != "TOPENED" for deal in state["deals"])


def dies(desk: AdvisorChannel, kind: str, first: str, second: str = "") -> str:
    """Kill the advisor at two points, of which the second may not come; return the order's end."""
    name = given(desk, kind)
    before = desk.ea.broker_state()["sends"]
    desk.ea.crash_at(first)
    live_on(desk, second)
    try:
        desk.ea.wait(PATIENCE + 2)
    except Died:
        desk.ea.restart()
        desk.ea.wait(PATIENCE + 2)
    ack = desk.ack(name)
    sends = desk.ea.broker_state()["sends"] - before
    lost = ack["status"] == "UNKNOWN_NOT_SENT"
    assert (sends, executed(desk, kind)) == (not lost, not lost), (kind, first, second)
    assert desk.empty()
    assert (desk.folder / "done" / name).read_bytes() == (desk.folder / "ack" / name).read_bytes()
    return str(ack["status"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point", POINTS)
def test_one_kill_at_any_point(desk: AdvisorChannel, point: str, kind: str) -> None:
    assert dies(desk, kind, point) == ENDS.get(point, "FILLED")


def test_two_kills_at_any_points(tmp_path: Path, scaled: Callable[..., int]) -> None:
    runs = list(itertools.product(KINDS, POINTS, POINTS))
    step = len(runs) // scaled(len(runs), least=6)
    for number, (kind, first, second) in enumerate(runs[::step]):
        with AdvisorChannel(tmp_path / str(number)) as desk:
            assert dies(desk, kind, first, second) in ("FILLED", "UNKNOWN_NOT_SENT")


def test_a_kill_in_the_middle_of_close_all(desk: AdvisorChannel) -> None:
    for _ in range(3):
        desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC)
    name = desk.drop(kind="close_all", side="")
    desk.ea.crash_at("before_send", nth=2)
    live_on(desk, "")
    desk.ea.wait(PATIENCE + 2)
    ack = desk.ack(name)
    assert (ack["status"], ack["volume"], ack["adopted"]) == ("PARTIAL", 0.1, True)
    assert len(desk.positions()) == 2
    assert desk.ea.broker_state()["sends"] == 1
    assert desk.empty()


def test_the_wait_counts_only_connected_time_on_the_right_account(desk: AdvisorChannel) -> None:
    name = desk.drop()
    desk.ea.crash_at("intent")
    live_on(desk, "")
    for setting, away, home in (("connected", 0, 1), ("account", 99, 12345678)):
        desk.ea.set(**{setting: away})
        desk.ea.wait(PATIENCE + 10)
        assert not desk.answered(name), setting
        desk.ea.set(**{setting: home})
    desk.ea.timer(10, step=60.0)
    assert not desk.answered(name), "a gap between two rounds is not watching"
    desk.ea.run(4)
    assert not desk.answered(name)
    desk.ea.run(2)
    assert desk.ack(name)["status"] == "UNKNOWN_NOT_SENT"
    assert desk.ea.broker_state()["sends"] == 0


def test_an_order_that_shows_up_late_is_adopted_and_not_repeated(desk: AdvisorChannel) -> None:
    desk.ea.set(visible_after=12)
    name = desk.drop()
    desk.ea.crash_at("after_send")
    live_on(desk, "")
    desk.ea.run(11)
    assert not desk.answered(name)
    desk.ea.run(2)
    assert (desk.ack(name)["status"], desk.ack(name)["adopted"]) == ("FILLED", True)
    assert len(desk.deals()) == 1


@pytest.mark.parametrize("mangle", ["replace", "cut"])
def test_an_order_without_its_comment_is_never_called_not_sent(
    desk: AdvisorChannel, mangle: str
) -> None:
    desk.ea.set(mangle=mangle)
    name = desk.drop()
    desk.ea.crash_at("after_send")
    live_on(desk, "")
    desk.ea.wait(PATIENCE + 2)
    assert desk.ack(name)["status"] == "UNKNOWN"
    assert len(desk.deals()) == 1
    other = desk.order(sid="TSECOND", magic=MAGIC + 1, seq=50)
    assert other["status"] == "FILLED", "of another magic number: nothing to do with it"
    back = desk.order(kind="close", side="SELL", magic=MAGIC + 1, ref="TSECOND", seq=60)
    assert (back["status"], back["position"]) == ("FILLED", other["position"])


def test_a_signal_spoilt_after_the_marker_is_still_looked_for(desk: AdvisorChannel) -> None:
    for point, status in (("after_send", "FILLED"), ("before_send", "UNKNOWN_NOT_SENT")):
        name = desk.drop(seq=desk.seq + 1, magic=MAGIC + desk.seq)
        desk.ea.crash_at(point)
        live_on(desk, "")
        (desk.folder / "work" / name).write_text("spoilt", encoding="ascii")
        desk.ea.wait(PATIENCE + 2)
        assert (desk.ack(name)["status"], desk.ack(name)["kind"]) == (status, "")
    assert len(desk.deals()) == 1


# --- disks and neighbours -------------------------------------------------------------------------

FILE_FAULTS = ("fail_writes", "short_writes", "fail_moves", "fail_deletes", "fail_reads")


@pytest.mark.parametrize("fault", FILE_FAULTS)
def test_a_disk_that_refuses_for_a_while(
    tmp_path: Path, scaled: Callable[..., int], fault: str
) -> None:
    """For the next n file operations, and with a restart in the middle of it."""
    for count in range(1, 1 + scaled(40, least=4)):
        restarts = count % 2 == 0
        with AdvisorChannel(tmp_path / str(count)) as desk:
            name = desk.drop()
            desk.ea.fail_files(**{fault: count})
            desk.ea.timer()
            if restarts:
                desk.ea.restart()
            desk.ea.wait(PATIENCE + 3 + count)
            ack = desk.ack(name)
            ends = {("FILLED", "")}
            if restarts:
                ends.add(("UNKNOWN_NOT_SENT", ""))
            if fault == "fail_reads" and count > 10:
                ends.add(("REJECTED", "auth"))  # shut for too long
            assert (ack["status"], ack["reason"]) in ends, count
            assert len(desk.deals()) == (ack["status"] == "FILLED"), count
            assert desk.empty()


def test_a_file_that_stays_shut_is_refused_in_the_end(desk: AdvisorChannel) -> None:
    name = desk.drop()
    desk.ea.fail_files(fail_reads=10**6)
    desk.ea.run(9)
    assert not desk.answered(name)
    desk.ea.run(2)
    assert desk.ack(name)["reason"] == "auth"
    assert desk.ea.broker_state()["sends"] == 0


def test_two_advisors_on_one_channel(desk: AdvisorChannel, tmp_path: Path) -> None:
    with CompiledEa(desk.folder, key=KEY, broker=tmp_path / "other") as second:
        second.clock(NOW)
        second.symbol(GOLD, digits=2)
        second.quote(GOLD, BID, ASK)
        second.run(2)
        assert "another advisor" in second.shown()
        name = desk.drop()
        second.run(2)
        assert desk.names("inbox") == [name]
        desk.ea.kill()
        second.run(1)
        assert desk.ack(name)["status"] == "FILLED", "a dead program holds no file"


def test_the_journal_forgets_after_thirty_days(desk: AdvisorChannel) -> None:
    old = desk.drop(kind="ping")
    desk.ea.timer()
    later = NOW + 15 * 86_400
    desk.ea.clock(later)
    young = desk.drop(kind="ping", created=later, expires=later + 99)
    desk.ea.timer()
    (desk.folder / "done" / "0000000000_TBAD.json").write_text("bad", encoding="ascii")
    desk.ea.clock(NOW + 30 * 86_400)
    desk.ea.timer()
    assert old in desk.names("done"), "once an hour, and at the start"
    desk.ea.clock(NOW + 30 * 86_400 + 1)
    desk.ea.restart()
    desk.ea.timer()
    assert desk.names("done") == ["0000000000_TBAD.json", young]
