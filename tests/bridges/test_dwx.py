"""The DWX Connect adapter against an Expert Advisor that has all of DWX Connect's quirks."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.fake_dwx import START
from tests.worlds.dwx_channel import MAGIC, SID, World, closing, order
from torra.bridges.at_most_once import CONFIRM_SECONDS
from torra.bridges.order_journal import OrderJournal
from torra.bridges.protocol import Recall
from torra.errors import BridgeUnavailable, ConfigError


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


# --- the life of an order -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("side", "stop", "target"), [("BUY", 2338.4, 2361.2), ("SELL", 2351, 2330)]
)
def test_an_opening_is_filled_and_reported_until_it_is_settled(
    world: World, side: str, stop: float, target: float
) -> None:
    world.bridge.submit(order(side=side, stop=stop, target=target, entry=2345.05))
    price = 2345.20 if side == "BUY" else 2345.00
    [report] = world.look(1)
    assert (report.status, report.price, report.volume, report.adopted) == (
        "FILLED",
        price,
        0.1,
        False,
    )
    assert report.position == report.ticket == str(next(iter(world.fake.positions)))
    assert abs(report.at - START) < timedelta(seconds=5)
    assert world.look(1) == [report]
    world.bridge.settle(report)
    world.bridge.settle(report)
    assert world.look(1) == []
    row = next(iter(world.fake.positions.values()))
    assert (row.kind, row.stop, row.target, row.magic, row.comment) == (
        side.lower(), stop, target, MAGIC, SID,
    )  # fmt: skip
    assert world.fake.strays == set()
    assert world.leftovers() == []


def test_a_command_looks_as_dwx_connect_wants_it(world: World) -> None:
    world.opened()
    orders = [text for text in world.fake.taken if "OPEN_ORDER" in text]
    assert len(orders) == 1
    assert re.fullmatch(
        rf"<:\d+\|OPEN_ORDER\|XAUUSD\.m,buy,0\.10,0,2338\.40,2361\.20,{MAGIC},{SID},0:>", orders[0]
    )


def test_the_same_order_again_is_sent_once_in_this_life_and_the_next(world: World) -> None:
    for _ in range(3):
        world.bridge.submit(order())
        world.look(1)
    world.start()
    world.fake.init()
    world.clock.pass_by(1)
    for _ in range(3):
        world.bridge.submit(order())
        world.look(1)
    assert world.fake.opened == [SID]
    assert [report.status for report in world.bridge.poll()] == ["FILLED"]


def test_a_partial_fill_is_told(world: World) -> None:
    world.fake.fill = 0.5
    report = world.opened()
    assert (report.status, report.volume) == ("PARTIAL", 0.05)


def test_a_close_names_the_ticket_and_the_lots_and_reports_the_price(world: World) -> None:
    opening = world.opened()
    world.fake.prices["XAUUSD.m"] = (2350.00, 2350.20)
    world.bridge.submit(closing(order(), opening.position))
    report = world.settled()
    assert (report.status, report.price, report.volume) == ("FILLED", 2350.00, 0.1)
    assert report.position == opening.position
    assert report.deal
    assert world.fake.closed == [int(opening.position)]
    closes = [text for text in world.fake.taken if "CLOSE" in text]
    assert len(closes) == 1
    assert f"|CLOSE_ORDER|{opening.position},0.10:>" in closes[0]
    assert not [text for text in world.fake.taken if "CLOSE_ALL" in text or "CLOSE_ORDERS" in text]


def test_a_close_finds_its_position_by_the_openings_id(world: World) -> None:
    opening = world.opened()
    world.bridge.submit(closing(order()))
    assert world.settled().position == opening.position


def test_a_partial_close_leaves_the_rest(world: World) -> None:
    opening = world.opened()
    world.bridge.submit(closing(order(), opening.position, lots=0.04))
    report = world.settled(3)
    assert (report.status, report.volume) == ("FILLED", 0.04)
    assert world.fake.positions[int(opening.position)].lots == 0.06


def test_a_close_of_nothing_is_refused_before_it_is_sent(world: World) -> None:
    world.bridge.submit(closing(order(), "999"))
    report = world.settled()
    assert (report.status, report.reason) == ("REJECTED", "no_position")
    assert not [text for text in world.fake.taken if "CLOSE" in text]


def test_a_stop_within_the_second_is_found_in_the_history(world: World) -> None:
    def stopped() -> None:
        for ticket, row in list(world.fake.positions.items()):
            world.fake.end(ticket, 2338.4, "[sl 2338.40]", row.magic, row.lots)

    world.fake.on_read = lambda text: None
    world.fake.mute = True
    world.bridge.submit(order())
    world.clock.sleep(0.02)
    stopped()
    world.fake.mute = False
    report = world.settled(4)
    assert (report.status, report.price, report.volume) == ("FILLED", 2345.2, 0.1)
    assert report.position == f"d{report.deal}"
    books = world.bridge.books()
    assert books is not None
    assert [(d.entry, d.position, d.reason) for d in books.deals] == [
        ("in", report.position, ""),
        ("out", report.position, "sl"),
    ]
    assert books.positions == ()


@pytest.mark.journey
def test_an_order_that_never_shows_is_unknown_and_filled_when_it_does(world: World) -> None:
    world.fake.mute = True
    world.fake.deals = []
    world.bridge.submit(order())
    world.clock.sleep(0.02)
    world.fake.deals.clear()
    assert CONFIRM_SECONDS == 15
    assert world.look(14) == []
    report = world.settled(3)
    assert report.status == "UNKNOWN"
    assert world.look(30) == []
    world.fake.mute = False
    later = world.settled(2)
    assert (later.status, later.sid) == ("FILLED", SID)
    assert world.fake.opened == [SID]


def test_an_order_of_a_mangled_comment_is_known_by_what_is_new(world: World) -> None:
    world.fake.mangle = lambda comment: "from #4711"
    world.fake.hold("EURUSD", magic=MAGIC + 1, comment="from #4000")
    world.clock.sleep(1)
    report = world.opened()
    assert (report.status, report.price) == ("FILLED", 2345.2)
    books = world.bridge.books()
    assert books is not None
    assert [deal.position for deal in books.deals if deal.magic == MAGIC] == [report.position]


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"max_spread_pts": 19}, "spread"),
        ({"max_spread_pts": 20}, ""),
        ({"max_dev_pts": 9}, "deviation"),
        ({"max_dev_pts": 10}, ""),
        ({"stop": 2345.20}, "side"),
        ({"target": 2345.20}, "side"),
        ({"lots": 0.105}, "volume"),
        ({"lots": 0.0}, "volume"),
        ({"created": START + timedelta(seconds=60)}, "clock"),
        ({"expires": START + timedelta(seconds=1)}, "stale"),
        ({"sid": "T,A"}, "schema"),
        ({"sid": 'T"A'}, "schema"),
        ({"sid": "T|A"}, "schema"),
        ({"broker_symbol": "XAU,USD"}, "schema"),
    ],
)
def test_the_guards_are_asked_here(world: World, changes: dict[str, Any], reason: str) -> None:
    if changes.get("broker_symbol"):
        world.bridge._questions.refused.add("XAU,USD")
    world.bridge.submit(order(**{"sid": SID, **changes}))
    report = world.settled()
    expected = {"": "FILLED", "stale": "EXPIRED"}.get(reason, "REJECTED")
    assert (report.status, report.reason) == (expected, reason)
    assert world.fake.opened == ([] if reason else [SID])


@pytest.mark.parametrize("magic", [MAGIC, 0])
def test_a_position_of_the_symbol_stands_in_the_way(world: World, magic: int) -> None:
    world.fake.hold("XAUUSD.m", magic=magic)
    world.clock.sleep(1)
    assert world.opened().reason == "policy"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"maximum_orders": 0}, "max_positions"),
        ({"maximum_lots": 0.05}, "max_lots"),
        ({"error": 4752}, "autotrading_off"),
    ],
)
def test_what_the_advisor_refuses_before_sending_is_rejected(
    world: World, fault: dict[str, object], reason: str
) -> None:
    for name, value in fault.items():
        setattr(world.fake, name, value)
    world.bridge.submit(order())
    report = world.settled(3)
    assert (report.status, report.reason) == ("REJECTED", reason)
    assert world.fake.opened == []


def test_the_refusal_of_an_earlier_order_is_none_of_this_one(world: World) -> None:
    world.fake.maximum_orders = 0
    world.bridge.submit(order())
    assert world.settled(3).reason == "max_positions"
    world.fake.open_order = lambda content: None  # type: ignore[method-assign]
    world.bridge.submit(order("TBBBBBBBBBBBB"))
    assert world.settled(CONFIRM_SECONDS + 2).status == "UNKNOWN"


def test_a_failed_send_is_unknown_because_it_may_have_arrived(world: World) -> None:
    world.fake.error = 4756
    world.bridge.submit(order())
    assert world.settled(CONFIRM_SECONDS + 2).status == "UNKNOWN"


def test_a_close_that_came_too_late_is_refused_by_the_advisor(world: World) -> None:
    opening = world.opened()
    ticket = int(opening.position)

    def stopped(text: str) -> None:
        if "CLOSE_ORDER" in text:
            world.fake.end(ticket, 2338.4, "[sl 2338.40]", MAGIC, 0.1)

    world.fake.on_read = stopped
    world.bridge.submit(closing(order(), opening.position))
    report = world.settled(5)
    assert (report.status, report.reason) == ("REJECTED", "no_position")


def test_the_refusal_of_somebody_elses_ticket_is_none_of_ours(world: World) -> None:
    opening = world.opened()
    world.fake.error = 4756
    world.bridge.submit(closing(order(), opening.position))
    world.fake.fail("CLOSE_ORDER_SELECT_TICKET", "Could not select order with ticket: 1")
    assert world.settled(CONFIRM_SECONDS + 2).status == "UNKNOWN"
    world.fake.end(int(opening.position), 2350.0, "", 0, 0.1)
    assert world.bridge.books() is not None
    assert world.settled().status == "FILLED"


def test_a_close_whose_deal_is_not_told_has_no_price(world: World) -> None:
    opening = world.opened()
    world.bridge.submit(closing(order(), opening.position))
    world.clock.sleep(0.02)
    world.fake.deals.clear()
    report = world.settled(CONFIRM_SECONDS + 2)
    assert (report.status, report.price, report.volume) == ("FILLED", 0.0, 0.1)


# --- health ---------------------------------------------------------------------------------------


def dead(world: World) -> str:
    health = world.bridge.health()
    assert health.deny is not None
    with pytest.raises(BridgeUnavailable):
        world.bridge.submit(order())
    assert world.bridge.recall(SID, 1) is Recall.NEVER_SENT
    return f"{health.deny}: {health.detail}"


def test_a_living_bridge_says_what_it_knows(world: World) -> None:
    health = world.bridge.health()
    assert health.ok
    assert health.facts["account"] == 12345678
    assert (health.facts["free_margin"], health.facts["leverage"]) == (9900.0, 100)
    assert health.facts["delivery"] == "at-most-once, no server receipt"
    assert health.facts["quotes"] == ["XAUUSD.m"]
    assert world.bridge.name == "dwx main"
    assert world.bridge.terms() == {}
    quote = world.bridge.quote("XAUUSD.m")
    assert quote is not None
    assert (quote.bid, quote.ask) == (2345.0, 2345.2)
    world.bridge.heartbeat("ACTIVE")
    world.bridge.close()


def test_an_advisor_that_is_gone_or_silent_gets_nothing(world: World) -> None:
    world.fake.killed()
    world.fake.touch(world.folder / "DWX_Orders.txt")
    world.clock.pass_by(5.0)
    assert world.bridge.health().ok
    world.clock.pass_by(0.25)
    assert "silent" in dead(world)
    assert world.bridge.books() is None
    assert world.bridge.quote("XAUUSD.m") is None
    world.fake.deinit()
    assert "does not run" in dead(world)
    assert "BRIDGE_DEAD" in dead(world)


def test_a_file_from_the_future_is_no_sign_of_life(world: World) -> None:
    world.fake.killed()
    later = world.clock.now().timestamp() + 6
    os.utime(world.folder / "DWX_Orders.txt", (later, later))
    assert "ahead" in dead(world)


def test_a_file_that_is_never_whole_is_no_sign_of_life(world: World) -> None:
    world.fake.killed()
    for _ in range(24):
        world.clock.sleep(0.25)
        (world.folder / "DWX_Orders.txt").write_text('{"account_info": {"na')
        world.fake.touch(world.folder / "DWX_Orders.txt")
    assert "cannot be read" in dead(world)


def test_another_account_gets_nothing(world: World) -> None:
    world.fake.account = 999
    world.clock.pass_by(1)
    assert "999, not 12345678" in dead(world)
    assert world.bridge.books() is None


def test_without_live_nothing_is_sent(world: World) -> None:
    world.start(live=False)
    assert "cannot tell a demo account" in dead(world)
    assert world.bridge.books() is not None


def test_halt_stops_it_and_its_absence_lets_it_go_on(world: World) -> None:
    path = world.halt()
    assert "TRADING_HALTED" in dead(world)
    path.unlink()
    assert world.opened().status == "FILLED"


@pytest.mark.parametrize("whose", ["channel", "desk"])
def test_halt_between_the_guards_and_the_command_stops_it(
    whose: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = OrderJournal.put

    def halted(journal: OrderJournal, entry: object) -> None:
        put(journal, entry)  # type: ignore[arg-type]
        world.halt(world.home if whose == "desk" else None)

    monkeypatch.setattr(OrderJournal, "put", halted)
    with pytest.raises(BridgeUnavailable, match="HALT"):
        world.bridge.submit(order())
    world.clock.pass_by(1)
    assert world.fake.opened == []
    assert world.bridge.recall(SID, 1) is Recall.NEVER_SENT


def test_a_channel_without_a_folder_is_a_mistake(world: World) -> None:
    with pytest.raises(ConfigError, match=r"channels\.main\.folder"):
        world.start(folder="")


# --- quotes ---------------------------------------------------------------------------------------


def test_quotes_are_asked_for_again_after_the_advisor_starts_again(world: World) -> None:
    world.fake.init()
    world.clock.pass_by(1)
    with pytest.raises(BridgeUnavailable, match="no quote of XAUUSD"):
        world.bridge.submit(order())
    world.look(6)
    world.bridge.submit(order(created=world.clock.now()))
    assert world.settled().status == "FILLED"


def test_a_symbol_that_nobody_named_is_asked_for(world: World) -> None:
    item = order(
        broker_symbol="EURUSD", digits=5, entry=1.1001, stop=1.09, target=1.12, max_dev_pts=30
    )
    with pytest.raises(BridgeUnavailable, match="no quote of EURUSD"):
        world.bridge.submit(item)
    world.look(1)
    world.bridge.submit(item)
    assert world.settled().status == "FILLED"


def test_a_symbol_that_the_broker_does_not_have_is_left_out(world: World) -> None:
    with pytest.raises(BridgeUnavailable):
        world.bridge.submit(order(broker_symbol="XAUUSD"))
    world.look(1)
    world.bridge.submit(order(broker_symbol="XAUUSD"))
    assert world.settled().reason == "symbol"
    assert world.bridge.health().facts["symbols_refused"] == ["XAUUSD"]
    assert world.fake.subscribed == ["XAUUSD.m"]
    assert "XAUUSD," not in [text for text in world.fake.taken if "SUBSCRIBE" in text][-1]
