"""What the Expert Advisor does with a good signal, whatever the broker answers.

The broker is that of tests/doubles/ea_shim: it fills, requotes, stays silent or refuses as it is
told.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.doubles.advisor_channel import (
    ASK,
    BID,
    GOLD,
    LEVELS,
    MAGIC,
    NOW,
    PATIENCE,
    AdvisorChannel,
    given,
    live_on,
)
from tests.doubles.compiled_ea import (
    Died,
)

# --- what it does ---------------------------------------------------------------------------------


@pytest.mark.parametrize("margin_mode", ["hedging", "netting"])
@pytest.mark.parametrize("side", ["BUY", "SELL"])
def test_opens_modifies_and_closes(desk: AdvisorChannel, side: str, margin_mode: str) -> None:
    desk.ea.set(margin_mode=margin_mode)
    opened = desk.order(side=side)
    (position,) = desk.positions()
    ticket, (_, stop, target) = position["ticket"], LEVELS[side]
    wanted = {
        "status": "FILLED", "kind": "open", "retcode": 10009, "volume": 0.1, "adopted": False,
        "price": ASK if side == "BUY" else BID, "bid": BID, "ask": ASK, "gmt": NOW,
        "server_time": NOW + 10_800, "position": ticket, "ticket": ticket,
    }  # fmt: skip
    assert opened.items() >= wanted.items()
    levels = {"sl": float(stop), "tp": float(target), "magic": MAGIC, "comment": opened["sid"]}
    assert position.items() >= levels.items()

    unused = {"side": "", "lots": "0.00", "entry": "0.00"}
    far = "2300.014" if side == "SELL" else "2400.016"
    moved = desk.order(kind="modify", sl=stop, tp=far, ref=opened["sid"], **unused)
    assert (moved["status"], moved["position"]) == ("FILLED", ticket)
    assert desk.positions()[0]["tp"] == (2400.02 if side == "BUY" else 2300.01), "whole ticks"

    back = "SELL" if side == "BUY" else "BUY"
    for lots, named in (("0.04", {"ref": opened["sid"]}), ("0.06", {"ticket": ticket})):
        closed = desk.order(kind="close", side=back, lots=lots, **named)
        assert (closed["status"], closed["volume"]) == ("FILLED", float(lots))
        assert closed["position"] == ticket
    assert desk.positions() == []
    assert [deal["entry"] for deal in desk.deals()] == ["in", "out", "out"]
    again = desk.order(kind="close", side=back, lots="0.06", ticket=ticket)
    assert (again["status"], again["reason"]) == ("REJECTED", "no_position")
    assert desk.empty()


def test_levels_are_rounded_to_the_tick(desk: AdvisorChannel) -> None:
    """A tick may be coarser than the digits of a price."""
    desk.ea.symbol("EURUSD", digits=5, tick_size=0.00025, contract=100_000)
    desk.ea.quote("EURUSD", 1.1, 1.1001)
    euro = {"symbol": "EURUSD", "broker_symbol": "EURUSD", "entry": "1.10010"}
    assert desk.order(sl="1.09512", tp="1.11012", **euro)["status"] == "FILLED"
    assert [(p["sl"], p["tp"]) for p in desk.positions()] == [(1.095, 1.11)]


def test_a_modify_of_zero_leaves_the_level_as_it_is(desk: AdvisorChannel) -> None:
    opened = desk.order()
    desk.order(kind="modify", sl="2340.00", tp="0.00", ref=opened["sid"])
    assert [(p["sl"], p["tp"]) for p in desk.positions()] == [(2340.0, 2361.2)]
    desk.order(kind="modify", sl="0.00", tp="2362.00", ref=opened["sid"])
    assert [(p["sl"], p["tp"]) for p in desk.positions()] == [(2340.0, 2362.0)]
    sends = desk.ea.broker_state()["sends"]
    same = desk.order(kind="modify", sl="2340.00", tp="2362.00", ref=opened["sid"])
    assert (same["status"], same["adopted"]) == ("FILLED", True)
    assert desk.ea.broker_state()["sends"] == sends, "nothing to change, nothing sent"


def test_close_all_takes_every_position_of_its_magic_and_no_other(desk: AdvisorChannel) -> None:
    mine = [desk.ea.open_by_hand(GOLD, side, 0.1, magic=MAGIC) for side in ("BUY", "SELL", "BUY")]
    other = desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC + 1)
    ack = desk.order(kind="close_all", side="", entry="0.00", sl="0.00", tp="0.00", lots="0.00")
    assert (ack["status"], ack["volume"], ack["retcode"]) == ("FILLED", 0.3, 10009)
    assert [position["ticket"] for position in desk.positions()] == [other]
    assert {deal["position"] for deal in desk.deals(ack["sid"])} == set(mine)
    empty = desk.order(kind="close_all", side="", symbol="", broker_symbol="")
    assert (empty["status"], empty["volume"], empty["retcode"]) == ("FILLED", 0.0, 0)


def test_close_all_goes_on_when_one_is_refused(desk: AdvisorChannel) -> None:
    for fault, status, left in ((10006, "PARTIAL", 1), (10012, "UNKNOWN", 1), (10004, "FILLED", 0)):
        for _ in range(3):
            desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC)
        desk.ea.fail(fault)
        name = desk.drop(kind="close_all", side="")
        desk.ea.wait(18)
        ack = desk.ack(name)
        assert (ack["status"], len(desk.positions())) == (status, left), ack
        assert ack["retcode"] == (10009 if status == "FILLED" else fault)
        assert ack["volume"] == (0.3 if left == 0 else 0.2)
        assert desk.ea.broker_state()["sends"] == (4 if fault == 10004 else 3)
        desk.ea.wipe()


def test_close_all_sends_nothing_twice_while_the_list_is_slow(desk: AdvisorChannel) -> None:
    tickets = [desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC) for _ in range(3)]
    desk.ea.set(visible_after=5)
    desk.ea.fail(10004)
    name = desk.drop(kind="close_all", side="")
    desk.ea.run(1)
    ack = desk.ack(name)
    assert (ack["status"], ack["volume"]) == ("FILLED", 0.3)
    assert desk.ea.broker_state()["sends"] == len(tickets) + 1


def test_ping_is_answered_and_moves_nothing(desk: AdvisorChannel) -> None:
    desk.halt()
    desk.ea.set(connected=0, algo=0, trade_mode="real")
    ack = desk.order(kind="ping", side="", comment="", magic=0, broker_symbol="")
    figures = [ack[key] for key in ("retcode", "ticket", "deal", "position", "price", "volume")]
    assert (ack["status"], ack["reason"], figures) == ("FILLED", "", [0] * 6)
    assert desk.ea.broker_state()["sends"] == 0


def test_closes_find_their_position_and_touch_no_other(desk: AdvisorChannel) -> None:
    stranger = desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=0, comment="T000000000001")
    other = desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC + 1)
    for target in ({"ticket": stranger}, {"ticket": other}, {"ref": "T000000000001"}, {}):
        ack = desk.order(kind="close", side="SELL", seq=desk.seq + 10, **target)
        assert ack["reason"] == "no_position", target
    mine = desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC, comment="T000000000001")
    wrong_way = desk.order(kind="close", side="BUY", ticket=mine)
    assert wrong_way["reason"] == "no_position", "a BUY would add to a long"
    more = desk.order(kind="close", side="SELL", lots="0.11", ticket=mine)
    assert more["reason"] == "volume", "a close of more than there is would open the rest"
    assert desk.order(kind="close", side="SELL", ref="T000000000001")["position"] == mine


# --- what brokers answer --------------------------------------------------------------------------


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


@pytest.mark.parametrize("settles", [True, False])
@pytest.mark.parametrize(
    ("code", "part", "left"), [(10008, 0.0, "UNKNOWN"), (10012, 0.04, "PARTIAL")]
)
def test_an_order_that_waits_ends_as_the_broker_settles_it(
    desk: AdvisorChannel, code: int, part: float, left: str, settles: bool
) -> None:
    desk.ea.fail(code, executed=2, volume=part)
    name = desk.drop()
    desk.ea.wait(5)
    assert desk.answered(name) == (code == 10008)
    if code == 10008:
        assert desk.ack(name)["status"] == "PLACED"
        (desk.folder / "ack" / name).unlink()  # as Torra does, into arch/
    if settles:
        desk.ea.settle()
    desk.ea.wait(PATIENCE - 3)
    ack = desk.ack(name)
    assert (ack["status"], ack["volume"]) == (("FILLED", 0.1) if settles else (left, part))
    assert desk.ea.broker_state()["sends"] == 1


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


def test_a_bare_answer_is_filled_in_from_the_books(desk: AdvisorChannel) -> None:
    desk.ea.set(result="bare", slippage=3)
    ack = desk.order()
    assert (ack["status"], ack["price"], ack["volume"]) == ("FILLED", 2345.23, 0.1)


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


def test_the_limits_count_an_opening_that_is_not_listed_yet(tmp_path: Path) -> None:
    with AdvisorChannel(tmp_path, max_positions=1) as desk:
        desk.ea.set(visible_after=5)
        first, second = desk.drop(), desk.drop(magic=MAGIC + 1)
        desk.ea.run(2)
        assert desk.ack(first)["status"] == "FILLED"
        assert not desk.answered(second)
        desk.ea.run(4)
        assert desk.ack(second)["reason"] == "max_positions"
        assert desk.ea.broker_state()["sends"] == 1


# --- HALT and expiry ------------------------------------------------------------------------------


def test_halt_between_the_guards_and_the_order(desk: AdvisorChannel) -> None:
    """The simulated OrderCheck drops the file: after the guards, before OrderSend."""
    desk.ea.set(halt_on_check=1)
    ack = desk.order()
    assert (ack["status"], ack["reason"]) == ("REJECTED", "kill")
    assert desk.ea.broker_state()["sends"] == 0
    assert desk.empty()


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
