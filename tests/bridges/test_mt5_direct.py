"""The bridge on the MetaTrader5 package: every answer of the server, every silence, every guard."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.fake_metatrader5 import NO_IPC
from tests.doubles.hand_clock import START
from tests.worlds.mt5_package import CLOSE, MAGIC, SID, World, closing, order
from torra.bridges.mt5.bridge import CONFIRM_SECONDS, JOURNAL
from torra.bridges.mt5.request import lots_of, price_of, request_of
from torra.bridges.order_journal import OrderEntry, OrderJournal
from torra.bridges.protocol import Recall
from torra.errors import BridgeUnavailable

# --- the life of an order -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("side", "stop", "target"), [("BUY", 2338.4, 2361.2), ("SELL", 2351, 2330)]
)
@pytest.mark.parametrize("margin_mode", [0, 1, 2], ids=["netting", "exchange", "hedging"])
def test_an_opening_is_filled_and_reported_until_it_is_settled(
    world: World, side: str, stop: float, target: float, margin_mode: int
) -> None:
    world.package.margin_mode = margin_mode
    world.bridge.submit(order(side=side, stop=stop, target=target, entry=2345.05))
    [report] = world.look()
    assert (report.status, report.retcode, report.volume) == ("FILLED", 10009, 0.1)
    assert report.price == (2345.2 if side == "BUY" else 2345.0)
    [(ticket, position)] = world.package.held.items()
    assert report.position == str(ticket)
    assert report.deal == str(world.package.deals[0].ticket)
    assert not report.adopted
    assert report.at == START
    assert world.look(20) == [report]
    world.bridge.settle(report)
    assert world.look() == []
    assert (position.type, position.sl, position.tp, position.magic, position.comment) == (
        0 if side == "BUY" else 1, stop, target, MAGIC, SID,
    )  # fmt: skip


def test_a_request_says_what_is_wanted(world: World) -> None:
    opening = world.opened()
    world.bridge.submit(closing(opening.position))
    assert world.package.requests == [
        {
            "action": 1, "symbol": "XAUUSD.m", "volume": 0.1, "type": 0, "price": 2345.2,
            "deviation": 30, "magic": MAGIC, "comment": SID, "type_time": 0, "type_filling": 0,
            "sl": 2338.4, "tp": 2361.2,
        },
        {
            "action": 1, "symbol": "XAUUSD.m", "volume": 0.1, "type": 1, "price": 2345.0,
            "deviation": 30, "magic": MAGIC, "comment": CLOSE, "type_time": 0, "type_filling": 0,
            "position": int(opening.position),
        },
    ]  # fmt: skip


def test_the_same_order_again_is_sent_once_in_this_life_and_the_next(world: World) -> None:
    for _ in range(3):
        world.bridge.submit(order())
    world.start()
    world.bridge.submit(order())
    assert world.package.opened == [SID]
    assert world.settled().status == "FILLED"
    assert world.bridge.recall(SID, 1) is Recall.TAKEN
    assert world.bridge.recall("TBBBBBBBBBBBB", 2) is Recall.NEVER_SENT


@pytest.mark.parametrize("how", ["ticket", "opening", "comment"])
def test_a_close_always_names_its_position(world: World, how: str) -> None:
    opening = world.opened()
    if how == "comment":
        (world.state / JOURNAL).unlink()
        world.start()
    world.package.quotes["XAUUSD.m"] = (2350.0, 2350.2)
    world.bridge.submit(closing(opening.position if how == "ticket" else ""))
    report = world.settled()
    assert (report.status, report.price, report.position) == ("FILLED", 2350.0, opening.position)
    assert world.package.requests[-1]["position"] == int(opening.position)
    assert world.package.held == {}


@pytest.mark.parametrize("lots", [0.1, 0.11])
def test_a_close_that_fits_no_position_is_refused(world: World, lots: float) -> None:
    opening = world.opened()
    if lots == 0.1:
        world.package.stop_out(int(opening.position), 2338.4)
    world.bridge.submit(closing(opening.position, lots=lots))
    assert world.settled().reason == ("no_position" if lots == 0.1 else "volume")
    assert len(world.package.requests) == 1


# --- what the server says -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda world: world.package.quotes.update({"XAUUSD.m": (2345.3, 2345.41)}), "deviation"),
        (lambda world: world.halt(), "kill"),
        (lambda world: world.clock.pass_by(200), "stale"),
        (lambda world: setattr(world.package, "connected", False), "not_connected"),
        (lambda world: setattr(world.package, "trade_allowed", False), "autotrading_off"),
        (lambda world: setattr(world.package, "trade_mode", 2), "live"),
        (lambda world: world.package.silent.update({"account_info": NO_IPC}), "retcode"),
    ],
)
def test_the_guards_are_asked_again_before_another_send(
    world: World, change: Callable[[World], object], reason: str
) -> None:
    world.package.retcodes = [10004]
    world.package.after_send = lambda: change(world)
    world.bridge.submit(order())
    world.package.after_send = None
    [report] = world.bridge.poll()
    expected = "EXPIRED" if reason == "stale" else "REJECTED"
    assert (report.status, report.reason, report.retcode) == (expected, reason, 10004)
    assert len(world.package.requests) == 1


def test_another_send_goes_at_the_new_price(world: World) -> None:
    world.package.retcodes = [10004]
    world.package.after_send = lambda: world.package.quotes.update({"XAUUSD.m": (2345.1, 2345.3)})
    assert world.opened().price == 2345.3
    assert [request["price"] for request in world.package.requests] == [2345.2, 2345.3]


@pytest.mark.parametrize("arrives", [True, False])
def test_no_answer_lets_the_account_speak(world: World, arrives: bool) -> None:
    world.package.arrives, world.package.no_answer = arrives, True
    world.package.retcodes = [] if arrives else [10031]
    world.bridge.submit(order())
    world.package.no_answer = False
    report = world.settled(CONFIRM_SECONDS + 1)
    assert (report.status, report.adopted, report.retcode) == (
        "FILLED" if arrives else "UNKNOWN", arrives, 0,
    )  # fmt: skip
    world.bridge.submit(order())
    assert len(world.package.requests) == 1


def test_an_unknown_order_that_shows_later_is_filled(world: World) -> None:
    world.package.retcodes, world.package.arrives, world.package.hidden = [10012], True, True
    world.bridge.submit(order())
    assert world.settled(CONFIRM_SECONDS + 0.5).status == "UNKNOWN"
    world.start()
    assert world.look(30) == []
    world.package.hidden = False
    report = world.settled(6)
    assert (report.status, report.adopted) == ("FILLED", True)
    assert world.look(20) == []


def test_only_connected_time_counts(world: World) -> None:
    world.package.retcodes = [10031]
    world.bridge.submit(order())
    world.look(10)
    for fault in ("connected", "login"):
        kept = getattr(world.package, fault)
        setattr(world.package, fault, 0)
        assert world.look(60) == []
        setattr(world.package, fault, kept)
    assert world.look(4) == []
    world.package.silent["history_deals_get"] = NO_IPC
    assert world.look(60) == []
    world.package.silent.clear()
    assert world.look(0.5) == []
    assert world.settled(2).status == "UNKNOWN"


def test_a_placed_order_is_told_and_then_filled_or_unknown(world: World) -> None:
    world.package.retcodes, world.package.arrives, world.package.hidden = [10008], True, True
    world.bridge.submit(order())
    assert world.settled().status == "PLACED"
    world.package.hidden = False
    assert world.settled().status == "FILLED"
    world.package.stop_out(next(iter(world.package.held)), 2338.4)
    world.package.retcodes, world.package.arrives = [10008], False
    world.bridge.submit(order("TBBBBBBBBBBBB"))
    assert world.settled().status == "PLACED"
    assert world.look(CONFIRM_SECONDS - 2) == []
    assert world.settled(3).status == "UNKNOWN"


def test_a_bare_success_is_looked_up(world: World) -> None:
    world.package.bare = True
    world.bridge.submit(order())
    report = world.settled(0)
    assert (report.status, report.price, report.volume) == ("FILLED", 2345.2, 0.1)


def test_an_order_that_the_server_rejected_afterwards_is_rejected(world: World) -> None:
    world.package.retcodes = [10008]
    world.bridge.submit(order())
    world.package._past(777, 0, world.package.requests[0], SID, state=5)
    report = world.settled(0)
    assert (report.status, report.reason, report.ticket) == ("REJECTED", "retcode", "777")


def test_a_rewritten_comment_is_known_by_number_and_time(world: World) -> None:
    """By which time and whose marks is for test_order_marks."""
    world.package.mangle = lambda comment: ""
    world.package.no_answer = True
    world.bridge.submit(order())
    assert world.settled(0).status == "FILLED"


def test_a_close_without_an_answer_is_found_by_its_deal(world: World) -> None:
    opening = world.opened()
    world.package.no_answer = True
    world.package.mangle = lambda comment: "x"
    world.bridge.submit(closing(opening.position))
    report = world.settled(0)
    assert (report.status, report.adopted, report.position) == ("FILLED", True, opening.position)


def test_a_close_that_a_stop_overtook_ends_without_a_position(world: World) -> None:
    opening = world.opened()
    world.package.retcodes = [10012]
    world.package.after_send = lambda: world.package.stop_out(int(opening.position), 2338.4)
    world.bridge.submit(closing(opening.position))
    report = world.settled(CONFIRM_SECONDS + 1)
    assert (report.status, report.reason) == ("REJECTED", "no_position")


@pytest.mark.parametrize(
    "function",
    ["terminal_info", "account_info", "order_check", "positions_get", "orders_get",
     "history_orders_get", "history_deals_get", "initialize"],
)  # fmt: skip
@pytest.mark.parametrize("fault", [NO_IPC, (-8, "AutoTrading disabled"), (-2, "Invalid params")])
def test_none_before_the_order_leaves_it_pending(
    world: World, function: str, fault: tuple[int, str]
) -> None:
    world.package.silent[function] = fault
    with pytest.raises(BridgeUnavailable, match=fault[1]):
        world.bridge.submit(order())
    assert world.bridge.recall(SID, 1) is Recall.NEVER_SENT
    world.package.silent.clear()
    assert world.opened().status == "FILLED"


def test_a_lost_connection_is_made_anew(world: World) -> None:
    assert world.bridge.health().ok
    world.package.initialized = False
    health = world.bridge.health()
    assert "No IPC connection (-10004)" in health.detail
    assert world.bridge.health().ok
    assert world.package.starts == 2


@pytest.mark.parametrize("gone", ["symbol_info", "symbol_info_tick"])
def test_without_symbol_or_quote_an_opening_is_refused(world: World, gone: str) -> None:
    world.package.silent[gone] = (-4, "Terminal: Not found")
    assert world.opened().reason == ("symbol" if gone == "symbol_info" else "quote")


def test_a_symbol_outside_market_watch_is_selected(world: World) -> None:
    report = world.opened(
        broker_symbol="EURUSD", digits=5, entry=1.1001, stop=1.09, target=1.12, lots=0.2
    )
    assert report.status == "FILLED"
    assert "EURUSD" in world.package.selected


# --- guards ---------------------------------------------------------------------------------------


def test_a_mode_that_is_not_known_trades_nothing(world: World) -> None:
    world.package.symbol_mode = 9
    assert world.opened().reason == "symbol"


@pytest.mark.parametrize(
    ("margin_mode", "magic", "reason"),
    [(2, MAGIC, "policy"), (2, 0, ""), (0, 0, "policy"), (1, 0, "policy")],
)
def test_the_policy_knows_netting_from_hedging(
    world: World, margin_mode: int, magic: int, reason: str
) -> None:
    world.package.margin_mode = margin_mode
    world.package.hold("XAUUSD.m", magic)
    assert world.opened().reason == reason


@given(
    st.floats(0.001, 500), st.sampled_from([0.01, 0.1, 1.0, 0.001, 0.25]), st.floats(0.01, 99_999),
    st.sampled_from([(0.01, 2), (0.25, 2), (0.00001, 5), (1.0, 0), (0.5, 1)]),
)  # fmt: skip
def test_lots_are_never_raised_and_prices_are_whole_ticks(
    lots: float, step: float, price: float, tick: tuple[float, int]
) -> None:
    symbol = types.SimpleNamespace(volume_step=step, trade_tick_size=tick[0], digits=tick[1])
    rounded = lots_of(lots, symbol)
    assert lots - step < rounded + 1e-9
    assert rounded <= lots + step * 2e-6
    assert abs(rounded / step - round(rounded / step)) < 1e-6
    whole = price_of(price, symbol)
    assert abs(whole - price) <= tick[0] / 2 + 1e-9
    assert abs(whole / tick[0] - round(whole / tick[0])) < 1e-4


def test_a_close_without_a_position_is_no_request(world: World) -> None:
    market = world.bridge._market(closing("1"))
    with pytest.raises(ValueError, match="no quote or no position"):
        request_of(closing("1"), market)


# --- health ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broker", "channel", "deny", "words"),
    [
        ({}, {}, None, "account 12345678"),
        ({"connected": False}, {}, "BRIDGE_DEAD", "no connection to the broker"),
        ({"login": 1}, {}, "BRIDGE_DEAD", "account 1, not 12345678"),
        ({"trade_mode": 2}, {}, "BRIDGE_DEAD", "is a real one"),
        ({"trade_mode": 2}, {"live": True}, None, ""),
        ({"trade_mode": 1}, {}, None, ""),
        ({"trade_allowed": False}, {}, "BRIDGE_DEAD", "algo trading is off"),
        ({"tradeapi_disabled": True}, {}, "BRIDGE_DEAD", "algo trading is off"),
        ({"trade_expert": False}, {}, "BRIDGE_DEAD", "no algo trading"),
        ({"quote_ahead": 61}, {}, "CLOCK_SKEW", "server_clock"),
        ({"quote_ahead": 60}, {}, None, ""),
        ({"quote_ahead": -86_400}, {}, None, ""),
        ({}, {"server_clock": "utc"}, "CLOCK_SKEW", "7200 s in the future"),
    ],
)
def test_health_says_what_stands_in_the_way(
    tmp_path: Path, broker: dict[str, Any], channel: dict[str, Any], deny: str, words: str
) -> None:
    world = World(tmp_path, **broker)
    world.start(**channel)
    health = world.bridge.health()
    assert health.deny == deny
    assert words in health.detail
    if deny:
        with pytest.raises(BridgeUnavailable):
            world.bridge.submit(order())
        assert world.package.requests == []
    else:
        assert health.facts["margin_mode"] == "hedging"
        world.bridge.submit(order())
        assert len(world.package.requests) == 1
    world.close()


@pytest.mark.parametrize("whose", ["channel", "desk"])
def test_halt_stops_it_at_every_point(
    whose: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = world.home if whose == "desk" else None
    path = world.halt(where)
    assert world.bridge.health().deny == "TRADING_HALTED"
    with pytest.raises(BridgeUnavailable, match="HALT"):
        world.bridge.submit(order())
    path.unlink()
    put = OrderJournal.put

    def halted(journal: OrderJournal, entry: OrderEntry) -> None:
        put(journal, entry)
        world.halt(where)

    monkeypatch.setattr(OrderJournal, "put", halted)
    with pytest.raises(BridgeUnavailable, match="HALT"):
        world.bridge.submit(order())
    assert world.package.requests == []
    assert world.bridge.recall(SID, 1) is Recall.NEVER_SENT
