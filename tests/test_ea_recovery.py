"""The Expert Advisor is killed, lied to and starved of disk, and sends one order at most.

Every test runs mql5/TorraBridge.mq5 itself against the simulated broker of tests/ea_shim, which
outlives it. What it writes is checked by tests.advisor_channel, byte for byte.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.advisor_channel import (
    ASK,
    BID,
    GOLD,
    KEY,
    MAGIC,
    NOW,
    OFFSET,
    AdvisorChannel,
    body_of,
    mac,
    seal,
)
from tests.compiled_ea import POINTS, CompiledEa, Died, compiled, needs_compiler

pytestmark = needs_compiler

PATIENCE = 15
"""Seconds of connected time that an order is looked for."""


@pytest.fixture(scope="module")
def program() -> Path:
    return compiled()


@pytest.fixture
def desk(tmp_path: Path, program: Path) -> Iterator[AdvisorChannel]:
    channel = AdvisorChannel(tmp_path, program=program)
    yield channel
    channel.ea.kill()


def empty(desk: AdvisorChannel) -> bool:
    return desk.names("inbox") == desk.names("work") == []


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
    assert len(desk.deals()) == 1
    assert empty(desk)


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
    assert empty(desk)


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
        assert empty(desk)
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


def opened(desk: AdvisorChannel) -> dict[str, Any]:
    return desk.order(sid="TOPENED")


def given(desk: AdvisorChannel, kind: str) -> str:
    """Write a signal of a kind, with a position for it to act on; return its name."""
    if kind == "open":
        return desk.drop()
    ref = opened(desk)["sid"]
    changes: dict[str, Any] = {
        "close": {"side": "SELL"},
        "modify": {"side": "", "sl": "2340.00"},
        "close_all": {"side": ""},
    }[kind]
    return desk.drop(kind=kind, ref=ref, **changes)


def live_on(desk: AdvisorChannel, point: str) -> None:
    """Run until the point kills the advisor, then start its next life."""
    with pytest.raises(Died):
        desk.ea.wait(PATIENCE + 2)
    desk.ea.restart(crash_at=point or None)


def executed(desk: AdvisorChannel, kind: str) -> int:
    state = desk.ea.broker_state()
    if kind == "modify":
        return int(state["positions"][0]["sl"] == 2340.0)
    return sum(deal["comment"] != "TOPENED" for deal in state["deals"])


@pytest.mark.parametrize("kind", ["open", "close", "modify", "close_all"])
@pytest.mark.parametrize("point", POINTS)
def test_one_kill_at_any_point(desk: AdvisorChannel, point: str, kind: str) -> None:
    name = given(desk, kind)
    before = desk.ea.broker_state()["sends"]
    desk.ea.crash_at(point)
    live_on(desk, "")
    desk.ea.wait(PATIENCE + 2)
    ack = desk.ack(name)
    assert ack["status"] == ENDS.get(point, "FILLED")
    assert executed(desk, kind) == (point not in ENDS)
    assert desk.ea.broker_state()["sends"] - before == (point not in ENDS)
    assert empty(desk)
    assert (desk.folder / "done" / name).read_bytes() == (desk.folder / "ack" / name).read_bytes()


def test_two_kills_at_any_points(tmp_path: Path, program: Path, scaled: Callable[..., int]) -> None:
    """The second point may not come any more; then the second life ends well."""
    runs = list(itertools.product(["open", "close", "modify", "close_all"], POINTS, POINTS))
    step = len(runs) // scaled(len(runs), least=6)
    for number, (kind, first, second) in enumerate(runs[::step]):
        desk = AdvisorChannel(tmp_path / str(number), program=program)
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
        assert ack["status"] in ("FILLED", "UNKNOWN_NOT_SENT"), (kind, first, second)
        assert (sends, executed(desk, kind)) == (not lost, not lost), (kind, first, second)
        assert empty(desk)
        desk.ea.kill()


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


# --- HALT and expiry ------------------------------------------------------------------------------


def test_halt_between_the_guards_and_the_order(desk: AdvisorChannel) -> None:
    """The simulated OrderCheck drops the file: after the guards, before OrderSend."""
    desk.ea.set(halt_on_check=1)
    ack = desk.order()
    assert (ack["status"], ack["reason"]) == ("REJECTED", "kill")
    assert desk.ea.broker_state()["sends"] == 0
    assert empty(desk)


@pytest.mark.parametrize("kind", ["open", "close", "close_all"])
def test_halt_between_the_claim_and_the_order(desk: AdvisorChannel, kind: str) -> None:
    name = given(desk, kind)
    before = desk.ea.broker_state()["sends"]
    desk.ea.crash_at("claimed")
    live_on(desk, "")
    desk.halt()
    desk.ea.run(1)
    assert (desk.ack(name)["status"], desk.ack(name)["reason"]) == ("REJECTED", "kill")
    desk.resume()
    desk.ea.run(1)
    assert desk.ea.broker_state()["sends"] == before


def test_halt_in_the_middle_of_close_all_stops_the_rest(desk: AdvisorChannel) -> None:
    for _ in range(3):
        desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC)
    name = desk.drop(kind="close_all", side="")
    desk.ea.fail(10004)
    desk.ea.timer()
    assert len(desk.positions()) == 1, "one was requoted, two went"
    desk.halt()
    desk.ea.timer()
    assert desk.ack(name)["reason"] == "kill"
    assert len(desk.positions()) == 1


def test_what_expired_while_the_advisor_was_dead_is_never_executed(desk: AdvisorChannel) -> None:
    claimed = desk.drop()
    desk.ea.crash_at("claimed")
    with pytest.raises(Died):
        desk.ea.timer()
    waiting = desk.drop(seq=2)
    desk.ea.restart()
    desk.ea.clock(NOW + 170)
    desk.ea.run(1)
    for name in (claimed, waiting):
        assert (desk.ack(name)["status"], desk.ack(name)["reason"]) == ("EXPIRED", "stale")
    assert desk.ea.broker_state()["sends"] == 0


# --- what brokers answer --------------------------------------------------------------------------

TRANSIENT = (10004, 10020, 10021, 10024, 10028)
UNCLEAR = (10011, 10012, 10031)
FINAL = (10006, 10007, 10013, 10014, 10015, 10016, 10017, 10018, 10019, 10026, 10027, 10030, 10034)


def test_a_requote_is_repeated_twice_at_most(desk: AdvisorChannel) -> None:
    for code in TRANSIENT:
        desk.ea.wipe()
        for _ in range(2):
            desk.ea.fail(code)
        name = desk.drop()
        desk.ea.run(1)
        assert desk.ack(name)["status"] == "FILLED"
        assert desk.ea.broker_state()["sends"] == 3
        for _ in range(3):
            desk.ea.fail(code)
        name = desk.drop(magic=MAGIC + 1)
        desk.ea.run(1)
        ack = desk.ack(name)
        assert (ack["status"], ack["reason"], ack["retcode"]) == ("REJECTED", "retcode", code)
        assert desk.ea.broker_state()["sends"] == 6
        assert len(desk.deals()) == 1
    assert empty(desk)


def test_a_repeat_asks_the_guards_again(desk: AdvisorChannel) -> None:
    changes: list[tuple[str, Callable[[], None]]] = [
        ("deviation", lambda: desk.ea.quote(GOLD, BID + 0.31, ASK + 0.31)),
        ("spread", lambda: desk.ea.quote(GOLD, BID - 0.21, ASK)),
        ("stale", lambda: desk.ea.clock(NOW + 170)),
        ("kill", desk.halt),
    ]
    for reason, change in changes:
        desk.ea.fail(10004)
        name = desk.drop()
        desk.ea.timer()
        assert not desk.answered(name)
        change()
        desk.ea.timer()
        assert desk.ack(name)["reason"] == reason
        desk.resume()
        desk.calm()
    assert desk.deals() == []


@pytest.mark.parametrize("code", UNCLEAR)
@pytest.mark.parametrize("kind", ["open", "close", "close_all"])
def test_an_unclear_answer_is_looked_up_and_never_repeated(
    desk: AdvisorChannel, code: int, kind: str
) -> None:
    name = given(desk, kind)
    before = desk.ea.broker_state()["sends"]
    desk.ea.fail(code, executed=1)
    desk.ea.timer()
    ack = desk.ack(name)
    assert (ack["status"], ack["adopted"], ack["retcode"]) == ("FILLED", True, code)
    assert ack["volume"] == 0.1
    desk.ea.wipe()
    desk.ea.fail(code, executed=0)
    if kind != "open":
        desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC, comment="TAGAIN")
    name = desk.drop(kind=kind, side="SELL" if kind == "close" else "BUY", ref="TAGAIN")
    desk.ea.wait(PATIENCE - 1)
    assert not desk.answered(name)
    desk.ea.run(2)
    ack = desk.ack(name)
    assert (ack["status"], ack["retcode"]) == ("UNKNOWN", code)
    assert desk.ea.broker_state()["sends"] == 1
    assert before <= 1


@pytest.mark.parametrize("code", [10008, 10012])
@pytest.mark.parametrize(("seconds", "status"), [(8, "FILLED"), (20, "UNKNOWN")])
def test_an_order_that_takes_its_time(
    desk: AdvisorChannel, code: int, seconds: int, status: str
) -> None:
    desk.ea.set(visible_after=seconds)
    desk.ea.fail(code, executed=1)
    name = desk.drop()
    desk.ea.timer()
    assert desk.answered(name) == (code == 10008)
    if code == 10008:
        assert desk.ack(name)["status"] == "PLACED"
        assert "done" not in desk.names("done")
        assert not (desk.folder / "done" / name).exists()
    desk.ea.wait(PATIENCE + 2)
    assert desk.ack(name)["status"] == status
    assert desk.ea.broker_state()["sends"] == 1


def test_an_order_left_waiting(desk: AdvisorChannel) -> None:
    for settles in (True, False):
        desk.ea.fail(10008, executed=2)
        name = desk.drop(magic=MAGIC + desk.seq)
        desk.ea.run(5)
        assert desk.ack(name)["status"] == "PLACED"
        (desk.folder / "ack" / name).unlink()  # as Torra does, into arch/
        if settles:
            desk.ea.settle()
        desk.ea.wait(PATIENCE - 4)
        assert desk.ack(name)["status"] == ("FILLED" if settles else "UNKNOWN")
    assert desk.ea.broker_state()["sends"] == 2


def test_an_order_of_which_a_part_is_executed_may_still_become_whole(desk: AdvisorChannel) -> None:
    for settles in (True, False):
        desk.ea.fail(10012, executed=2, volume=0.04)
        name = desk.drop(magic=MAGIC + desk.seq)
        desk.ea.wait(5)
        assert not desk.answered(name)
        if settles:
            desk.ea.settle()
        desk.ea.wait(PATIENCE - 3)
        ack = desk.ack(name)
        wanted = ("FILLED", 0.1) if settles else ("PARTIAL", 0.04)
        assert (ack["status"], ack["volume"]) == wanted
        assert ack["adopted"]


@pytest.mark.parametrize("code", [10008, 10012])
def test_a_restart_does_not_call_an_answered_order_not_sent(
    desk: AdvisorChannel, code: int
) -> None:
    desk.ea.fail(code, executed=0)
    name = desk.drop()
    desk.ea.timer()
    desk.ea.restart()
    desk.ea.wait(PATIENCE + 2)
    ack = desk.ack(name)
    assert (ack["status"], ack["retcode"]) == ("UNKNOWN", code)
    assert desk.ea.broker_state()["sends"] == 1


def test_a_final_answer_is_told_with_its_number(desk: AdvisorChannel) -> None:
    for code in FINAL:
        desk.ea.wipe()
        for refuse, sends in ((desk.ea.fail, 1), (desk.ea.fail_check, 1)):
            refuse(code)
            ack = desk.order()
            assert (ack["status"], ack["reason"]) == ("REJECTED", "retcode")
            assert ack["retcode"] == code
            assert desk.ea.broker_state()["sends"] == sends, "what OrderCheck refuses is not sent"
    assert empty(desk)


def test_a_partial_fill_is_told_as_one(desk: AdvisorChannel) -> None:
    desk.ea.fail(10010, executed=1, volume=0.04)
    ack = desk.order()
    assert (ack["status"], ack["retcode"], ack["volume"]) == ("PARTIAL", 10010, 0.04)
    desk.ea.fail(10012, executed=1, volume=0.03)
    ack = desk.order(magic=MAGIC + 1)
    assert (ack["status"], ack["volume"], ack["adopted"]) == ("PARTIAL", 0.03, True)


def test_a_bare_answer_is_filled_in_from_the_books(desk: AdvisorChannel) -> None:
    desk.ea.set(result="bare", slippage=3)
    ack = desk.order()
    assert (ack["status"], ack["price"], ack["volume"]) == ("FILLED", 2345.23, 0.1)


def test_real_refusals_of_the_broker_come_through(desk: AdvisorChannel) -> None:
    desk.ea.set(free_margin=10)
    assert desk.order()["retcode"] == 10019
    desk.ea.set(free_margin="")
    desk.ea.symbol(GOLD, filling=0)
    assert desk.order()["status"] == "FILLED"


def test_history_that_cannot_be_read_is_not_nothing_there(desk: AdvisorChannel) -> None:
    desk.ea.set(history=0)
    name = desk.drop()
    desk.ea.run(5)
    assert not desk.answered(name)
    desk.ea.set(history=1)
    desk.ea.run(1)
    assert desk.ack(name)["status"] == "FILLED"
    desk.ea.set(history=0)
    name = desk.drop(seq=7, magic=MAGIC + 1)
    desk.ea.clock(NOW + 170)
    desk.ea.timer()
    assert desk.ack(name)["reason"] == "stale"


def test_the_limits_count_an_opening_that_is_not_listed_yet(tmp_path: Path, program: Path) -> None:
    desk = AdvisorChannel(tmp_path, program=program, max_positions=1)
    desk.ea.set(visible_after=5)
    first, second = desk.drop(), desk.drop(magic=MAGIC + 1)
    desk.ea.run(2)
    assert desk.ack(first)["status"] == "FILLED"
    assert not desk.answered(second)
    desk.ea.run(4)
    assert desk.ack(second)["reason"] == "max_positions"
    assert desk.ea.broker_state()["sends"] == 1
    desk.ea.kill()


# --- disks and neighbours -------------------------------------------------------------------------

FILE_FAULTS = ("fail_writes", "short_writes", "fail_moves", "fail_deletes", "fail_reads")


@pytest.mark.parametrize("fault", FILE_FAULTS)
def test_a_disk_that_refuses_for_a_while(
    tmp_path: Path, program: Path, scaled: Callable[..., int], fault: str
) -> None:
    """For the next n file operations, and with a restart in the middle of it."""
    for count in range(1, 1 + scaled(40, least=4)):
        restarts = count % 2 == 0
        desk = AdvisorChannel(tmp_path / str(count), program=program)
        name = desk.drop()
        desk.ea.fail_files(**{fault: count})
        desk.ea.timer()
        if restarts:
            desk.ea.restart()
        desk.ea.wait(PATIENCE + 3)
        status = desk.ack(name)["status"]
        assert status == "FILLED" or (restarts and status == "UNKNOWN_NOT_SENT"), count
        assert len(desk.deals()) == (status == "FILLED"), count
        assert empty(desk)
        desk.ea.kill()


def test_a_file_that_stays_shut_is_refused_in_the_end(desk: AdvisorChannel) -> None:
    name = desk.drop()
    desk.ea.fail_files(fail_reads=10**6)
    desk.ea.run(9)
    assert not desk.answered(name)
    desk.ea.run(2)
    assert desk.ack(name)["reason"] == "auth"
    assert desk.ea.broker_state()["sends"] == 0


def test_two_advisors_on_one_channel(tmp_path: Path, program: Path) -> None:
    desk = AdvisorChannel(tmp_path, program=program)
    second = CompiledEa(desk.folder, key=KEY, broker=tmp_path / "other", program=program)
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
    assert desk.ack(name)["status"] == "FILLED", "the system lets go of a dead program's file"
    second.kill()


def test_files_that_torra_took_back_are_not_executed(desk: AdvisorChannel) -> None:
    name = desk.drop()
    (desk.folder / "cancelled").mkdir(exist_ok=True)
    (desk.folder / "inbox" / name).rename(desk.folder / "cancelled" / name)
    desk.ea.run(1)
    assert desk.names("ack") == []
    assert desk.ea.broker_state()["sends"] == 0


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


# --- what it tells of itself ----------------------------------------------------------------------


def test_the_heartbeat(desk: AdvisorChannel) -> None:
    beat = desk.state("ea")
    wanted = {"gmt": NOW, "server_offset_s": OFFSET, "account": 12345678, "trade_mode": "demo",
              "margin_mode": "hedging", "connected": True, "algo_allowed": True,
              "trade_allowed": True, "kill": False, "ea_version": "1.0", "last_seq": 0, "inbox": 0,
              "work": 0, "balance": 10_000.0, "leverage": 100, "currency": "USD",
              "channel": "main"}  # fmt: skip
    assert {key: beat[key] for key in wanted} == wanted
    numbers = []
    for _ in range(5):
        desk.ea.run(1)
        numbers.append(desk.state("ea")["n"])
    assert numbers == sorted(set(numbers)), "one a second, each with a number of its own"
    desk.ea.set(connected=0, algo=0, trade=0, margin_mode="exchange", trade_mode="contest")
    desk.halt()
    desk.order()
    desk.ea.restart()
    desk.ea.timer()
    beat = desk.state("ea")
    assert beat["n"] > numbers[-1], "also across a restart"
    shown = [beat[key] for key in ("connected", "algo_allowed", "trade_allowed", "kill")]
    assert shown == [False, False, False, True]
    assert (beat["margin_mode"], beat["trade_mode"]) == ("exchange", "contest")
    assert beat["last_seq"] == 1


def test_the_heart_beats_while_a_slow_broker_is_at_work(desk: AdvisorChannel) -> None:
    desk.ea.set(send_takes=2)
    for number in range(3):
        desk.drop(magic=MAGIC + number)
    desk.ea.wait(1)
    assert len(desk.deals()) == 3
    beat = desk.state("ea")
    assert beat["gmt"] >= NOW + 1 + 3 * 2, "one round of seven seconds, and still alive at its end"
    assert beat["work"] == 0


def test_the_offset_is_whole_quarters_whatever_the_seconds_say(desk: AdvisorChannel) -> None:
    for server, told in ((10_803, 10_800), (7_197, 7_200), (-12_601, -12_600), (19_800, 19_800)):
        desk.ea.set(server_offset=server)
        desk.ea.run(2)
        assert desk.state("ea")["server_offset_s"] == told


def test_positions_and_deals(desk: AdvisorChannel) -> None:
    mine = desk.order()
    manual = desk.ea.open_by_hand(GOLD, "SELL", 0.25, comment='by"hand|ü')
    desk.ea.timer()
    told = desk.state("positions")
    assert told["rows"] == [
        [str(mine["position"]), GOLD, "LONG", "0.10", "2345.20", "2338.40", "2361.20", str(MAGIC),
         mine["sid"], "-2.00", str(NOW)],
        [str(manual), GOLD, "SHORT", "0.25", "2345.00", "0.00", "0.00", "0", "by_hand___", "-5.00",
         str(NOW)],
    ]  # fmt: skip
    before = told["n"]
    desk.ea.run(1)
    assert desk.state("positions")["n"] == before, "unchanged"
    desk.ea.run(5)
    assert desk.state("positions")["n"] > before, "every five seconds"
    desk.ea.quote(GOLD, 2338.0, 2338.2)
    desk.ea.timer()
    assert [row[0] for row in desk.state("positions")["rows"]] == [str(manual)]
    deals = desk.state("deals")
    assert deals["since"] == deals["gmt"] - 7 * 86_400
    assert [row[3:5] + row[-1:] for row in deals["rows"]] == [
        ["in", "BUY", "expert"],
        ["out", "SELL", "sl"],
    ], "the stop's deal has no magic number, but its position is ours; the manual one is not"
    assert deals["rows"][1][1] == str(mine["position"])
    assert (deals["rows"][1][7], deals["rows"][1][8]) == ("-72.00", "0")


def test_deals_end_by_target_hand_and_stop_out(desk: AdvisorChannel) -> None:
    for number, (ends, word) in enumerate([("tp", "tp"), (0, "client"), (6, "stop_out")]):
        ack = desk.order(magic=MAGIC + number)
        if ends == "tp":
            desk.ea.quote(GOLD, 2361.3, 2361.5)
        else:
            desk.ea.close_by_hand(ack["position"], reason=int(ends))
        desk.calm()
        desk.ea.timer()
        assert desk.state("deals")["rows"][-1][-1] == word


def test_deals_older_than_a_week_belong_to_us_by_their_opening(desk: AdvisorChannel) -> None:
    mine = desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC)
    other = desk.ea.open_by_hand(GOLD, "BUY", 0.1)
    desk.ea.clock(NOW + 20 * 86_400)
    desk.ea.close_by_hand(mine)
    desk.ea.close_by_hand(other)
    desk.ea.timer()
    assert [row[1] for row in desk.state("deals")["rows"]] == [str(mine)]


def test_the_books_stay_below_their_limits(desk: AdvisorChannel) -> None:
    for _ in range(520):
        desk.ea.close_by_hand(desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=MAGIC))
    desk.ea.timer()
    deals = desk.state("deals")
    assert deals["count"] == 500
    assert deals["rows"][-1][0] == str(max(deal["ticket"] for deal in desk.deals()))


def test_symbols(desk: AdvisorChannel) -> None:
    euro = {"digits": 5, "tick_size": 0.00001, "contract": 100_000, "lot_step": 0.001}
    lots = {"lot_min": 0.001, "lot_max": 50}
    desk.ea.symbol("EURUSD.m", **euro, **lots, stops_level=12, mode="long_only")
    desk.ea.symbol("HIDDEN", watched=0)
    desk.ea.run(6)
    rows = desk.state("symbols")["rows"]
    assert rows == [
        ["EURUSD.m", "5", "0.00001", "1.00", "100000.00", "0.001", "0.001", "50.00", "12",
         "long_only", "USD", "0.00000", "0.00000", "0"],
        [GOLD, "2", "0.01", "1.00", "100.00", "0.01", "0.01", "100.00", "0", "full", "USD",
         "2345.00", "2345.20", str(NOW)],
    ]  # fmt: skip


def sheet(desk: AdvisorChannel, name: str) -> tuple[list[list[str]], int]:
    """Return rows and offset of a bars file, checked."""
    text = (desk.folder / "bars" / name).read_bytes().decode("ascii")
    head, _, last = text.rpartition("\n")
    end, count, offset, told = last.split(",")
    rows = [line.split(",") for line in head.split("\n")]
    assert rows[0] == ["time", "open", "high", "low", "close", "tick_volume", "spread"]
    assert (end, int(count), told) == ("end", len(rows) - 1, mac(head + "\n"))
    return rows[1:], int(offset)


def test_bars_are_closed_ones_and_rewritten_when_one_closes(desk: AdvisorChannel) -> None:
    start = NOW + OFFSET - 4 * 900  # NOW is a quarter
    for number in range(5):
        desk.ea.bar(GOLD, 900, start + 900 * number, (1, 2 + number, 0.5, 1.25), 10 + number, 20)
    desk.ea.run(1)
    rows, offset = sheet(desk, f"{GOLD}_M15.csv")
    assert [int(row[0]) for row in rows] == [start + 900 * number for number in range(4)]
    assert rows[3] == [str(start + 2700), "1.00", "5.00", "0.50", "1.25", "13", "20"]
    assert offset == OFFSET
    assert desk.names("bars") == [f"{GOLD}_M15.csv"], "no bars of H1, no file"
    written = (desk.folder / "bars" / f"{GOLD}_M15.csv").stat().st_mtime_ns
    desk.ea.run(3)
    assert (desk.folder / "bars" / f"{GOLD}_M15.csv").stat().st_mtime_ns == written
    desk.ea.clock(NOW + 908)
    desk.ea.run(1)
    assert len(sheet(desk, f"{GOLD}_M15.csv")[0]) == 4, "ten seconds of grace"
    desk.ea.run(2)
    assert len(sheet(desk, f"{GOLD}_M15.csv")[0]) == 5, "closed by the clock, without a next tick"
    desk.ea.bar(GOLD, 900, start + 4500, (1, 2, 1, 2), 1, 20)
    desk.ea.run(2)
    assert len(sheet(desk, f"{GOLD}_M15.csv")[0]) == 5, "the new one is forming"


def test_bars_keep_the_newest_thousand(desk: AdvisorChannel, scaled: Callable[..., int]) -> None:
    many = 1000 + 50
    first = NOW + OFFSET - 3600 * many
    for number in range(many):
        desk.ea.bar(GOLD, 3600, first + 3600 * number, (1, 2, 0.5, 1.5), 10, 20)
    desk.ea.clock(NOW + 20)
    desk.ea.run(1)
    rows, _ = sheet(desk, f"{GOLD}_H1.csv")
    assert len(rows) == 1000
    assert int(rows[-1][0]) == NOW + OFFSET - 3600


def test_torras_silence_is_shown_and_changes_nothing(desk: AdvisorChannel) -> None:
    path = desk.folder / "state" / "torra.json"
    assert "has not been heard of" in desk.ea.shown()
    for age, words in ((5, "alive"), (60, "alive"), (61, "silent for 61 s")):
        desk.ea.clock(NOW - 1, wall=True)
        beat = {"n": 1, "gmt": NOW - age, "state": "ACTIVE"}
        path.write_text(seal(body_of(beat, message="torra")), encoding="ascii")
        desk.ea.wait(1)
        assert words in desk.ea.shown()
    assert desk.order()["status"] == "FILLED"
    path.write_text("forged", encoding="ascii")
    desk.ea.run(1)
    assert "has not been heard of" in desk.ea.shown()


def test_the_key_stays_out_of_files_and_logs(desk: AdvisorChannel) -> None:
    desk.order()
    desk.put("forged", 9, "TFORGED")
    desk.ea.run(2)
    texts = [path.read_bytes() for path in desk.folder.rglob("*") if path.is_file()]
    assert len(texts) > 6
    assert not [text for text in texts if KEY.encode() in text]
    assert not [line for line in (*desk.ea.log(), desk.ea.shown()) if KEY in line]
