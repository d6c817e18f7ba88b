"""After retcode 10030, and nothing else, an order goes out once with each other filling mode.

One table for the bridge on the MetaTrader5 package and for the Expert Advisor. A mode is its
ORDER_FILLING_*: 0 fill or kill, 1 immediate or cancel, 2 return. The mask of the symbol says what
comes first; the server takes what it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.advisor_channel import GOLD, MAGIC, PATIENCE, AdvisorChannel
from tests.worlds.mt5_package import SID, World, closing, order
from torra.bridges.mt5.bridge import SENDS

INVALID_FILL, TIME_OUT = 10030, 10012

ORDERS = {
    # mask: the modes in the order in which they are tried
    0: [2, 0, 1],
    1: [0, 2, 1],
    2: [1, 2, 0],
    3: [0, 1, 2],
}
TABLE = [(mask, taken) for mask in ORDERS for taken in (0, 1, 2)]


# --- the package ----------------------------------------------------------------------------------


def modes(world: World) -> list[int]:
    return [request["type_filling"] for request in world.package.requests]


@pytest.mark.parametrize(("mask", "taken"), TABLE)
@pytest.mark.parametrize("checked", [True, False], ids=["order_check", "order_send"])
def test_the_package_opens_and_closes_with_the_mode_that_is_taken(
    world: World, mask: int, taken: int, checked: bool
) -> None:
    world.package.filling_mode, world.package.fillings = mask, {taken}
    world.package.check_knows_fillings = checked
    sent = [taken] if checked else ORDERS[mask][: ORDERS[mask].index(taken) + 1]
    position = world.opened().position
    for sid, lots in (("TCCCCCCCCCCCC", 0.04), ("TDDDDDDDDDDDD", 0.06)):
        world.bridge.submit(closing(position, sid, lots=lots))
        assert world.settled(1).status == "FILLED"
    assert world.package.held == {}
    assert modes(world) == sent * 3
    requests = world.package.requests
    assert {request["comment"] for request in requests[: len(sent)]} == {SID}
    assert all(request["position"] for request in requests[len(sent) :])


@pytest.mark.parametrize("checked", [True, False], ids=["order_check", "order_send"])
def test_where_no_mode_is_taken_the_package_refuses_with_the_number(
    world: World, checked: bool
) -> None:
    world.package.fillings, world.package.check_knows_fillings = set(), checked
    report = world.opened()
    assert (report.status, report.reason, report.retcode) == ("REJECTED", "retcode", INVALID_FILL)
    assert modes(world) == ([] if checked else ORDERS[1])
    assert world.package.held == {}


@pytest.mark.parametrize("retcode", [10006, 10011, TIME_OUT, 10013, 10031, 10035])
def test_the_package_tries_no_other_mode_after_any_other_answer(world: World, retcode: int) -> None:
    world.package.retcodes = [retcode]
    world.bridge.submit(order())
    world.look(20)
    assert modes(world) == [0]


def test_another_mode_is_no_repeat_and_a_repeat_no_other_mode(world: World) -> None:
    world.package.fillings = {0, 1, 2}
    world.package.retcodes = [10004, INVALID_FILL, 10004, INVALID_FILL, 10004]
    report = world.opened()
    assert (report.status, report.retcode) == ("REJECTED", 10004)
    assert modes(world) == [0, 0, 2, 2, 1]
    assert SENDS == 3


def test_the_guards_are_asked_before_another_mode(world: World) -> None:
    world.package.retcodes = [INVALID_FILL]
    world.package.after_send = world.halt
    report = world.opened()
    assert (report.status, report.reason) == ("REJECTED", "kill")
    assert modes(world) == [0]


# --- the Expert Advisor ---------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[AdvisorChannel]:
    with AdvisorChannel(tmp_path, max_trades_per_day=0) as channel:
        yield channel


def answer(desk: AdvisorChannel, **changes: object) -> dict[str, object]:
    name = desk.drop(**changes)
    desk.ea.run(2)
    return desk.ack(name)


def test_the_advisor_opens_and_closes_with_the_mode_that_is_taken(desk: AdvisorChannel) -> None:
    for mask, taken in TABLE:
        desk.ea.symbol(GOLD, filling=mask, fills=taken)
        opened = answer(desk)
        assert opened["status"] == "FILLED", (mask, taken)
        for lots in ("0.04", "0.06"):
            done = answer(desk, kind="close", side="SELL", lots=lots, ticket=opened["position"])
            assert done["status"] == "FILLED", (mask, taken, lots)
        assert desk.positions() == []


def test_the_advisor_sends_once_with_each_mode_after_10030_alone(desk: AdvisorChannel) -> None:
    # The check passes, the server refuses: only sends are counted.
    desk.ea.symbol(GOLD, filling=3, fills="012")
    table = {(INVALID_FILL,) * 2: 3, (INVALID_FILL,) * 3: 3, (TIME_OUT,): 1, (10006,): 1}
    for codes, sends in table.items():
        desk.ea.wipe()
        for code in codes:
            desk.ea.fail(code)
        name = desk.drop()
        desk.ea.wait(PATIENCE + 2)
        ack = desk.ack(name)
        assert desk.ea.broker_state()["sends"] == sends, codes
        assert (ack["status"] == "FILLED") == (len(codes) == 2), codes
        assert len(desk.positions()) == (len(codes) == 2)


def test_close_all_finds_the_mode_of_each_symbol(desk: AdvisorChannel) -> None:
    desk.ea.symbol("EURUSD", digits=5, tick_size=0.00001, filling=3, fills=2)
    desk.ea.quote("EURUSD", 1.1, 1.1001)
    desk.ea.symbol(GOLD, filling=1, fills=1)
    for symbol in (GOLD, GOLD, "EURUSD", GOLD):
        desk.ea.open_by_hand(symbol, "BUY", 0.1, magic=MAGIC)
    ack = answer(desk, kind="close_all", side="")
    assert (ack["status"], ack["volume"], desk.positions()) == ("FILLED", 0.4, [])


def test_close_all_says_so_where_no_mode_is_taken(desk: AdvisorChannel) -> None:
    desk.ea.symbol(GOLD, filling=3, fills="none")
    for _ in range(4):
        desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC)
    ack = answer(desk, kind="close_all", side="")
    told = (ack["status"], ack["reason"], ack["retcode"])
    assert told == ("REJECTED", "retcode", INVALID_FILL)
    assert len(desk.positions()) == 4


def test_a_halt_between_two_modes_stops_the_advisor(desk: AdvisorChannel) -> None:
    desk.ea.symbol(GOLD, filling=3, fills="012")
    desk.ea.fail(INVALID_FILL)
    name = desk.drop()
    desk.ea.timer()
    desk.halt()
    desk.ea.run(1)
    ack = desk.ack(name)
    assert (ack["status"], ack["reason"]) == ("REJECTED", "kill")
    assert desk.ea.broker_state()["sends"] == 1
