"""The bridge on the MetaTrader5 package: every answer of the server, every silence, every crash."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.fake_dwx import START, HandClock
from tests.doubles.fake_metatrader5 import NO_IPC, FakeMetaTrader5
from tests.tries import until
from torra.bridges.at_most_once import CONFIRM_SECONDS
from torra.bridges.mt5 import terminal as mt5_terminal
from torra.bridges.mt5.bridge import JOURNAL, Mt5Direct
from torra.bridges.mt5.request import filling_of, lots_of, price_of, request_of
from torra.bridges.mt5.retcodes import AMBIGUOUS, TRANSIENT, WORDS, meaning
from torra.bridges.mt5.terminal import Terminal, load_package
from torra.bridges.order_journal import OrderEntry, OrderJournal
from torra.bridges.protocol import Order, Recall, Report
from torra.config import Channel
from torra.errors import BridgeUnavailable, ConfigError

MAGIC = 220_114_000
SID = "TAAAAAAAAAAAA"
CLOSE = "TCCCCCCCCCCCC"
Scaled = Callable[..., int]


def order(sid: str = SID, **changes: object) -> Order:
    values = {
        "sid": sid, "seq": 1, "kind": "open", "instance": "XAUUSD", "symbol": "XAUUSD",
        "broker_symbol": "XAUUSD.m", "timeframe": "M15",
        "bar_time": START - timedelta(minutes=15), "side": "BUY", "lots": 0.10,
        "entry": 2345.10, "stop": 2338.40, "target": 2361.20, "created": START,
        "expires": START + timedelta(seconds=180), "magic": MAGIC, "max_spread_pts": 40,
        "max_dev_pts": 30, "digits": 2, **changes,
    }  # fmt: skip
    return Order(**values)  # type: ignore[arg-type]


def closing(ticket: str = "", **more: Any) -> Order:
    return replace(
        order(), sid=CLOSE, kind="close", side="SELL", closes=SID, ticket=ticket, entry=0.0,
        stop=0.0, target=0.0, **more,
    )  # fmt: skip


class World:
    """One terminal, one account, and a bridge that can be started anew."""

    def __init__(self, folder: Path, **broker: object) -> None:
        self.clock = HandClock()
        self.package = FakeMetaTrader5(self.clock, **broker)  # type: ignore[arg-type]
        self.home = folder
        self.state = self.home / "channels" / "main"
        self.channel = Channel(account=12345678)
        self.terminals: list[Terminal] = []
        self.start()

    def start(self, seconds: float = 5.0, **changes: object) -> Mt5Direct:
        """Begin a new life of the bridge, as after a crash."""
        self.terminal = Terminal(self.package, seconds=seconds)
        self.terminals.append(self.terminal)
        channel = self.channel.model_copy(update=changes)
        halts = (self.home / "control" / "HALT",)
        self.bridge = Mt5Direct(
            "main", channel, self.state, ["XAUUSD.m"], self.clock, self.terminal, halts=halts
        )
        return self.bridge

    def look(self, seconds: float = 0.5) -> list[Report]:
        end = self.clock.elapsed + seconds
        while True:
            found = list(self.bridge.poll())
            if self.clock.elapsed >= end:
                return found
            self.clock.sleep(0.25)

    def settled(self, seconds: float = 0.5) -> Report:
        [report] = self.look(seconds)
        self.bridge.settle(report)
        return report

    def opened(self, **changes: object) -> Report:
        self.bridge.submit(order(**changes))  # type: ignore[arg-type]
        return self.settled()

    def halt(self, folder: Path | None = None) -> Path:
        """Put a HALT file down, the channel's own or that of another folder."""
        path = (folder or self.state) / "control" / "HALT"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a person\n")
        return path

    def close(self) -> None:
        for terminal in self.terminals:
            terminal.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


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


def test_a_partial_close_leaves_the_rest(world: World) -> None:
    opening = world.opened()
    world.bridge.submit(closing(opening.position, lots=0.04))
    report = world.settled()
    assert (report.status, report.volume) == ("FILLED", 0.04)
    assert world.package.held[int(opening.position)].volume == 0.06


@pytest.mark.parametrize("lots", [0.1, 0.11])
def test_a_close_that_fits_no_position_is_refused(world: World, lots: float) -> None:
    opening = world.opened()
    if lots == 0.1:
        world.package.stop_out(int(opening.position), 2338.4)
    world.bridge.submit(closing(opening.position, lots=lots))
    assert world.settled().reason == ("no_position" if lots == 0.1 else "volume")
    assert len(world.package.requests) == 1


def test_a_partial_fill_is_told(world: World) -> None:
    world.package.part = 0.5
    report = world.opened()
    assert (report.status, report.retcode, report.volume) == ("PARTIAL", 10010, 0.05)


# --- what the server says -------------------------------------------------------------------------

FINAL = sorted({*WORDS, 10099} - AMBIGUOUS - TRANSIENT - {10008, 10009, 10010})


@pytest.mark.parametrize("retcode", FINAL)
def test_a_final_answer_is_a_refusal(world: World, retcode: int) -> None:
    world.package.retcodes = [retcode]
    report = world.opened()
    assert (report.status, report.reason, report.retcode) == ("REJECTED", "retcode", retcode)
    assert len(world.package.requests) == 1
    world.bridge.submit(order())
    assert world.look(20) == []
    assert len(world.package.requests) == 1


@pytest.mark.parametrize("retcode", sorted(TRANSIENT))
@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_is_not_accepted_now_is_sent_three_times_at_most(
    world: World, retcode: int, times: int
) -> None:
    world.package.retcodes = [retcode] * times
    report = world.opened()
    assert len(world.package.requests) == min(3, times + 1)
    if times < 3:
        assert report.status == "FILLED"
    else:
        assert (report.status, report.reason, report.retcode) == ("REJECTED", "retcode", retcode)
    assert len(world.package.opened) == (times < 3)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda world: world.package.quotes.update({"XAUUSD.m": (2344.7, 2345.11)}), "spread"),
        (lambda world: world.package.quotes.update({"XAUUSD.m": (2345.3, 2345.41)}), "deviation"),
        (lambda world: world.halt(), "kill"),
        (lambda world: world.clock.pass_by(200), "stale"),
        (lambda world: setattr(world.package, "connected", False), "not_connected"),
        (lambda world: setattr(world.package, "trade_allowed", False), "autotrading_off"),
        (lambda world: setattr(world.package, "trade_mode", 2), "live"),
        (lambda world: world.package.hold("XAUUSD.m", MAGIC), "policy"),
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


@pytest.mark.parametrize("retcode", [*sorted(AMBIGUOUS), None])
@pytest.mark.parametrize("arrives", [True, False])
def test_an_answer_that_says_nothing_lets_the_account_speak(
    world: World, retcode: int | None, arrives: bool
) -> None:
    world.package.arrives = arrives
    world.package.no_answer = retcode is None
    said = 10031 if retcode is None else retcode
    world.package.retcodes = [] if arrives and retcode is None else [said]
    world.bridge.submit(order())
    world.package.no_answer = False
    if arrives:
        report = world.settled(0)
        assert (report.status, report.adopted, report.price) == ("FILLED", True, 2345.2)
    else:
        assert world.look(CONFIRM_SECONDS - 0.5) == []
        report = world.settled(1)
        assert (report.status, report.retcode) == ("UNKNOWN", retcode or 0)
    assert len(world.package.requests) == 1
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
    world.package.mangle = lambda comment: ""
    world.package.no_answer = True
    world.bridge.submit(order())
    assert world.settled(0).status == "FILLED"
    world.package.no_answer = False
    for changes in ({"reason": 4}, {"magic": 1}, {"time": 0}, {"comment": "TBBBBBBBBBBBB"}):
        other = World(world.state / str(changes))
        other.package.retcodes = [10012]
        other.bridge.submit(order())
        row = world.package.deals[0]._replace(**changes)
        other.package.deals.append(row)
        assert other.look(1) == [], changes
        other.package.deals.append(world.package.deals[0])
        assert len(other.look(0)) == 1
        other.close()


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


def test_a_close_that_never_showed_is_unknown_while_the_position_is_open(world: World) -> None:
    opening = world.opened()
    world.package.retcodes = [10012]
    world.bridge.submit(closing(opening.position))
    assert world.settled(CONFIRM_SECONDS + 1).status == "UNKNOWN"


def test_what_order_check_refuses_is_never_sent(world: World) -> None:
    world.package.check = 10019
    report = world.opened()
    assert (report.status, report.reason, report.retcode) == ("REJECTED", "retcode", 10019)
    assert world.package.requests == []


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


@pytest.mark.parametrize(
    ("broker", "changes", "reason"),
    [
        ({}, {"created": START + timedelta(seconds=6)}, "clock"),
        ({}, {"expires": START}, "stale"),
        ({"symbol_mode": 0}, {}, "symbol"),
        ({"symbol_mode": 2}, {}, "symbol"),
        ({"symbol_mode": 3}, {}, "symbol"),
        ({"symbol_mode": 9}, {}, "symbol"),
        ({"symbol_mode": 1}, {}, ""),
        ({"quotes": {"XAUUSD.m": (0.0, 0.0)}}, {}, "quote"),
        ({}, {"max_spread_pts": 19}, "spread"),
        ({}, {"max_spread_pts": 20}, ""),
        ({}, {"max_dev_pts": 9}, "deviation"),
        ({}, {"max_dev_pts": 10}, ""),
        ({}, {"stop": 2345.2}, "side"),
        ({"stops_level": 661}, {}, "stops"),
        ({"stops_level": 660}, {}, ""),
        ({}, {"lots": 0.105}, "volume"),
        ({}, {"lots": 0.005}, "volume"),
        ({}, {"lots": 50.01}, "volume"),
    ],
)
def test_the_guards_are_asked_in_their_order(
    tmp_path: Path, broker: dict[str, object], changes: dict[str, object], reason: str
) -> None:
    world = World(tmp_path, **broker)
    report = world.opened(**changes)
    expected = {"": "FILLED", "stale": "EXPIRED"}.get(reason, "REJECTED")
    assert (report.status, report.reason) == (expected, reason)
    assert len(world.package.requests) == (not reason)
    world.close()


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


@pytest.mark.parametrize(("mask", "filling"), [(0, 2), (1, 0), (2, 1), (3, 0)])
def test_the_filling_comes_from_the_mask(world: World, mask: int, filling: int) -> None:
    world.package.filling_mode = mask
    assert world.opened().status == "FILLED"
    assert world.package.requests[0]["type_filling"] == filling
    assert filling_of(types.SimpleNamespace(filling_mode=mask)) == filling


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
    with pytest.raises(ValueError, match="no position to close"):
        request_of(closing("1"), market)


def test_every_answer_has_a_meaning() -> None:
    assert {meaning(code) for code in WORDS} == {
        "done", "partial", "placed", "ambiguous", "transient", "final",
    }  # fmt: skip
    assert {code for code in WORDS if meaning(code) == "ambiguous"} == {10011, 10012, 10031}
    assert {code for code in WORDS if meaning(code) == "transient"} == {
        10004, 10020, 10021, 10024, 10028,
    }  # fmt: skip
    assert meaning(99_999) == "final"


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


def test_the_name_and_what_it_does_not_do(world: World) -> None:
    assert world.bridge.name == "mt5_direct main"
    world.bridge.heartbeat("ACTIVE")
    assert world.package.calls == []
    world.bridge.health()
    world.bridge.close()
    assert not world.package.initialized


# --- a package that blocks ------------------------------------------------------------------------


def test_a_blocked_terminal_is_dead_and_costs_one_thread(world: World) -> None:
    world.start(seconds=0.02)
    assert world.bridge.health().ok
    before = threading.active_count()
    released = threading.Event()
    world.package.blocked["account_info"] = released
    for _ in range(5):
        health = world.bridge.health()
        assert health.deny == "BRIDGE_DEAD"
        assert "has not returned from account_info" in health.detail
        assert world.bridge.books() is None
        assert world.bridge.terms() == {}
        with pytest.raises(BridgeUnavailable):
            world.bridge.submit(order())
    assert threading.active_count() == before
    assert world.package.calls.count("account_info") == 2
    released.set()
    world.package.blocked.clear()
    until(lambda: world.bridge.health().ok)
    assert len(world.package.threads) == 1


@pytest.mark.parametrize("arrives", [True, False])
def test_an_order_in_a_blocked_terminal_is_looked_up_when_it_comes_back(
    world: World, arrives: bool
) -> None:
    world.start(seconds=0.05)
    released = threading.Event()
    world.package.blocked["order_send"] = released
    world.package.retcodes = [] if arrives else [10031]
    world.bridge.submit(order())
    assert world.look(60) == []
    assert world.bridge.health().deny == "BRIDGE_DEAD"
    world.bridge.submit(order())
    released.set()
    world.package.blocked.clear()
    until(lambda: world.bridge.health().ok)
    assert world.settled(CONFIRM_SECONDS + 1).status == ("FILLED" if arrives else "UNKNOWN")
    assert len(world.package.requests) == 1


def test_a_terminal_that_blocks_to_the_end_lets_the_desk_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mt5_terminal, "GOODBYE_SECONDS", 0.02)
    world = World(tmp_path)
    world.start(seconds=0.02)
    released = threading.Event()
    world.package.blocked["terminal_info"] = released
    assert world.bridge.health().deny == "BRIDGE_DEAD"
    world.bridge.close()
    world.bridge.close()
    assert world.bridge.health().deny == "BRIDGE_DEAD"
    released.set()
    until(lambda: not world.package.initialized)


def test_an_exception_of_the_package_is_no_answer(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks() -> None:
        raise SystemError("<built-in function account_info> returned NULL")

    world.package.account_info = breaks  # type: ignore[method-assign]
    assert "returned NULL" in world.bridge.health().detail
    assert "MetaTrader5.account_info" in caplog.text


def test_many_threads_share_one_worker(world: World) -> None:
    def ask() -> None:
        for _ in range(20):
            assert world.bridge.health().ok
            assert world.terminal.ask("symbol_info_tick", "XAUUSD.m").value

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(world.package.threads) == 1
    assert world.package.starts == 1


# --- the package ----------------------------------------------------------------------------------


def test_without_the_package_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "MetaTrader5", None)
    with pytest.raises(ConfigError, match=r"torra\[mt5\].*torra_files"):
        load_package()
    module = types.ModuleType("MetaTrader5")
    monkeypatch.setitem(sys.modules, "MetaTrader5", module)
    assert load_package() is module
    with pytest.raises(ConfigError, match="TIMEFRAME_M15"):
        Terminal(module).number("TIMEFRAME_M15")


def test_the_terminals_path_is_handed_over() -> None:
    asked: list[tuple[str, ...]] = []

    class Package:
        def initialize(self, *path: str) -> bool:
            asked.append(path)
            return True

        def shutdown(self) -> None:
            asked.append(("shutdown",))

        def version(self) -> tuple[int, int, str]:
            return (5, 5231, "1 Nov 2025")

    for path in ("", "C:/MT5/terminal64.exe"):
        terminal = Terminal(Package(), path=path)
        assert terminal.ask("version").value[1] == 5231
        terminal.close()
    assert asked == [(), ("shutdown",), ("C:/MT5/terminal64.exe",), ("shutdown",)]


# --- books and terms ------------------------------------------------------------------------------


def test_the_books_tell_positions_and_deals(world: World) -> None:
    foreign = world.package.hold("EURUSD")
    first = world.opened()
    world.clock.moment = START + timedelta(seconds=60)
    world.package.stop_out(int(first.position), 2338.4)
    second = world.opened(sid="TBBBBBBBBBBBB", created=world.clock.now(), side="SELL", stop=2351.0,
                          target=2330.0, entry=2345.0)  # fmt: skip
    books = world.bridge.books()
    assert books is not None
    assert [(p.ticket, p.side, p.lots, p.magic, p.comment) for p in books.positions] == [
        (str(foreign), "LONG", 0.3, 0, ""),
        (second.position, "SHORT", 0.1, MAGIC, "TBBBBBBBBBBBB"),
    ]
    ours = books.positions[1]
    assert (ours.stop, ours.target, ours.entry, ours.profit) == (2351.0, 2330.0, 2345.0, 1.0)
    assert ours.opened_at == START + timedelta(seconds=60)
    assert [(d.position, d.entry, d.side, d.reason) for d in books.deals] == [
        (first.position, "in", "BUY", "expert"),
        (first.position, "out", "SELL", "sl"),
        (second.position, "in", "SELL", "expert"),
    ]
    assert books.deals[1].profit == pytest.approx(-68.0 - 0.5 - 0.2 - 0.1)
    assert books.since == books.at - timedelta(days=7)


@pytest.mark.parametrize("reason", [(0, "client"), (5, "tp"), (6, "stop_out"), (9, "")])
def test_a_deal_tells_why(world: World, reason: tuple[int, str]) -> None:
    first = world.opened()
    world.package.stop_out(int(first.position), 2361.2, reason[0])
    books = world.bridge.books()
    assert books is not None
    assert books.deals[-1].reason == reason[1]


@pytest.mark.parametrize("gone", ["positions_get", "history_deals_get", "account_info"])
def test_a_question_without_an_answer_is_never_flat(world: World, gone: str) -> None:
    world.opened()
    world.package.silent[gone] = NO_IPC
    assert world.bridge.books() is None
    world.package.silent.clear()
    world.package.login = 7
    assert world.bridge.books() is None


def test_a_time_that_never_was_gives_no_books(world: World) -> None:
    first = world.opened()
    world.package.held[int(first.position)] = world.package.held[int(first.position)]._replace(
        time=1_772_961_300  # 2026-03-08 09:15 on a server of New York + 7 h
    )
    assert world.bridge.books() is None


def test_terms_tell_the_symbols_of_market_watch(world: World) -> None:
    terms = world.bridge.terms()
    assert set(terms) == {"XAUUSD.m"}
    gold = terms["XAUUSD.m"]
    assert (gold.digits, gold.tick_size, gold.contract_size, gold.lot_max) == (2, 0.01, 100.0, 50.0)
    assert (gold.trade_mode, gold.currency, gold.stops_level) == ("full", "USD", 0)
    assert gold.quote is not None
    assert (gold.quote.bid, gold.quote.ask, gold.quote.at) == (2345.0, 2345.2, START)
    world.package.silent["symbols_get"] = NO_IPC
    assert world.bridge.terms() == {}


# --- crashes --------------------------------------------------------------------------------------


class Crash(BaseException):
    """The power is gone."""


def crash_at(patch: pytest.MonkeyPatch, package: FakeMetaTrader5, number: int) -> None:
    """Let the process end before or after its n-th call of the package or write to the disk."""
    done = [0]

    def crashing(original: Callable[..., object]) -> Callable[..., object]:
        def step(*args: object, **kwargs: object) -> object:
            done[0] += 1
            if done[0] == number:
                raise Crash
            answer = original(*args, **kwargs)
            done[0] += 1
            if done[0] == number:
                raise Crash
            return answer

        return step

    patch.setattr(os, "fsync", crashing(os.fsync))
    for name in ("order_check", "order_send", "history_deals_get", "account_info"):
        patch.setattr(package, name, crashing(getattr(package, name)))


def recovered(world: World, item: Order) -> Report:
    """Live on as the courier does until the order has its end."""
    world.start()
    last = None
    for _ in range(70):
        if world.clock.now() < item.expires:
            world.bridge.submit(item)
        for report in world.bridge.poll():
            last = report
            world.bridge.settle(report)
        world.clock.sleep(0.25)
    assert last is not None
    return last


def test_a_crash_at_any_step_leads_to_one_order_at_most(tmp_path: Path) -> None:
    ends = []
    for number in range(1, 80):
        world = World(tmp_path / str(number))
        with pytest.MonkeyPatch.context() as patch:
            crash_at(patch, world.package, number)
            try:
                world.bridge.submit(order())
                crashed = False
            except Crash:
                crashed = True
        report = recovered(world, order())
        assert len(world.package.opened) <= 1
        assert report.status == ("FILLED" if world.package.opened else "UNKNOWN_NOT_SENT")
        ends.append(report.status)
        world.close()
        if not crashed:
            break
    assert not crashed, "the steps never ended"
    assert set(ends) == {"FILLED", "UNKNOWN_NOT_SENT"}
    assert ends.count("UNKNOWN_NOT_SENT") <= 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize("moment", ["before_send", "after_send"])
def test_a_killed_process_leads_to_one_order_at_most(world: World, moment: str) -> None:
    pid = os.fork()
    if pid == 0:
        setattr(world.package, moment, lambda: os.kill(os.getpid(), signal.SIGKILL))
        try:
            world.bridge.submit(order())
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)
    if moment == "after_send":  # the broker lives on in another house
        world.package._work({**REQUEST_OF_THE_CHILD})
    report = recovered(world, order())
    assert report.status == ("FILLED" if moment == "after_send" else "UNKNOWN_NOT_SENT")
    assert len(world.package.opened) == (moment == "after_send")


REQUEST_OF_THE_CHILD = {
    "action": 1, "symbol": "XAUUSD.m", "volume": 0.1, "type": 0, "price": 2345.2, "deviation": 30,
    "magic": MAGIC, "comment": SID, "type_time": 0, "type_filling": 0, "sl": 2338.4, "tp": 2361.2,
}  # fmt: skip


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
        with pytest.MonkeyPatch.context() as patch:
            crash_at(patch, world.package, dice.randrange(1, 60))
            with contextlib.suppress(Crash, BridgeUnavailable):
                world.bridge.submit(order())
        world.package.no_answer = False
        report = recovered(world, order())
        ends[report.status] = ends.get(report.status, 0) + 1
        assert len(world.package.opened) <= 1
        assert len(world.package.requests) <= 3
        assert report.status in ("FILLED", "REJECTED", "UNKNOWN", "UNKNOWN_NOT_SENT")
        assert (report.status == "FILLED") == bool(world.package.opened)
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
