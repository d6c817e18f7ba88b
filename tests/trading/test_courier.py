"""The courier books, compares and sends for a whole desk, and nothing that fails ends it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.doubles.scripted_bridge import ScriptedBridge
from tests.worlds.stores import NOON, closing, open_database, opening
from torra.bridges.protocol import (
    BrokerBooks,
    BrokerDeal,
    BrokerPosition,
    Health,
    Quote,
    SymbolTerms,
)
from torra.clock import Simulated
from torra.config import Channel, Instance, Profile, validate
from torra.errors import StoreBroken, StoreUnavailable
from torra.home import HALT
from torra.store.trade import proposals_and_alarms as execution_table
from torra.trading.channels import taken
from torra.trading.courier import (
    RECONCILE_SECONDS,
    SHOWN_SECONDS,
    Courier,
    RoutedInstance,
    order_of,
)
from torra.trading.kill_switch import KillSwitch
from torra.verdict import order_seal
from torra.verdict.risk_engine import DenyReason

GOLD = Instance(
    symbol="XAUUSD", broker_symbol="XAUUSD.m", timeframes=("M15", "H1"), feed="store",
    bridge="torra_files",
)  # fmt: skip
PAPER = Instance(symbol="BTCUSD", feed="store")
ROW: dict[str, Any] = {"instance": "XAUUSD", "symbol": "XAUUSD", "entry": 2000.0, "stop": 1990.0}
ROW |= {"target": 2020.0, "lots": 0.1, "bridge": "torra_files"}
CLOSE = {name: ROW[name] for name in ("instance", "symbol", "lots", "bridge")}


class Walking(Simulated):
    """A clock of which a test moves the monotonic hand too."""

    def __init__(self) -> None:
        super().__init__(NOON)
        self.ticks = 0.0

    def monotonic(self) -> float:
        return self.ticks

    def real_now(self) -> datetime:
        return self.now()


class World:
    """One desk's courier with everything around it."""

    def __init__(self, folder: Path) -> None:
        self.database = open_database(folder)
        self.ours = True
        self.database.fence = lambda: self.ours
        self.clock = Walking()
        self.bridge = ScriptedBridge()
        self.bridge.told_books = self.books()
        self.bridge.books = self.fresh  # type: ignore[method-assign]
        self.file = folder / HALT
        self.switch = KillSwitch({"desk": self.file}, self.database)
        people = [RoutedInstance(GOLD, Profile(), "main"), RoutedInstance(PAPER, Profile(), None)]
        self.courier = Courier(
            self.database,
            people,
            lambda: {"main": self.bridge},
            self.switch,
            lambda: self.clock,
        )
        self.courier.open()

    def books(self, *held: BrokerPosition, deals: tuple[BrokerDeal, ...] = ()) -> BrokerBooks:
        return BrokerBooks(held, deals, self.clock.now(), NOON - timedelta(days=7))

    def fresh(self) -> BrokerBooks | None:
        """The books are written anew all the time."""
        told = self.bridge.told_books
        return None if told is None else replace(told, at=self.clock.now())

    def turn(self, seconds: float = 0.25) -> None:
        self.clock.ticks += seconds
        self.clock.sleep(seconds)
        self.courier.turn()

    def queue(self, sid: str = "T1", **more: Any) -> None:
        """Queue an opening for the channel."""
        self.database.enqueue_signal(opening(sid, **{**ROW, **more}))

    def queue_on_paper(self) -> None:
        self.database.enqueue_signal(opening("T2"))

    def queue_close(self, sid: str, opened: str, **more: Any) -> None:
        """Queue the close of an opening at the channel."""
        self.database.enqueue_signal(closing(sid, opened, **{**CLOSE, **more}))

    def send(self) -> None:
        """Queue an opening and let the courier take its turn."""
        self.queue()
        self.turn()

    def fill(self) -> None:
        """Send an opening, and let the broker and its books say that it is filled."""
        self.send()
        self.bridge.say("T1", "FILLED", NOON, price=2000.0, volume=0.1, position="77")
        self.bridge.told_books = self.books(position(entry=2000.0))
        self.turn()

    def row(self, sid: str = "T1") -> dict[str, Any]:
        row = self.database.signal(sid)
        assert row is not None
        return row

    def state(self, sid: str = "T1") -> str:
        return str(self.row(sid)["state"])

    def alarms(self) -> list[tuple[str, str]]:
        return [(row.kind, row.detail) for row in self.database.alarms()]


def position(sid: str = "T1", **more: Any) -> BrokerPosition:
    values: dict[str, Any] = {
        "ticket": "77", "broker_symbol": "XAUUSD.m", "side": "LONG", "lots": 0.1, "entry": 2000.1,
        "stop": 1990.0, "target": 2020.0, "magic": GOLD.magic, "comment": sid, "profit": 0.0,
        "opened_at": NOON + timedelta(seconds=1), **more,
    }  # fmt: skip
    return BrokerPosition(**values)


def deal(price: float, profit: float, **more: Any) -> BrokerDeal:
    values: dict[str, Any] = {
        "deal": "900", "position": "77", "broker_symbol": "XAUUSD.m", "entry": "out",
        "side": "SELL", "lots": 0.1, "price": price, "profit": profit, "magic": GOLD.magic,
        "comment": "", "time": NOON + timedelta(seconds=90), "reason": "sl", **more,
    }  # fmt: skip
    return BrokerDeal(**values)


def test_nothing_is_sent_before_the_books_were_compared(world: World) -> None:
    """A bridge that cannot tell its positions is not flat."""
    world.bridge.told_books = None
    world.send()
    world.courier.send("XAUUSD")
    assert world.bridge.sent == []
    world.bridge.told_books = world.books()
    world.turn()
    assert world.bridge.sids == ["T1"]


def test_the_books_are_compared_each_minute_and_after_every_report(world: World) -> None:
    looks: list[float] = []
    books = world.bridge.books

    def looked() -> BrokerBooks | None:
        looks.append(world.clock.ticks)
        return books()

    world.bridge.books = looked  # type: ignore[method-assign]
    for _ in range(int(RECONCILE_SECONDS * 2.5)):
        world.turn(1.0)
    again = 1.0 + SHOWN_SECONDS
    assert looks == [1.0, again, again + RECONCILE_SECONDS, again + 2 * RECONCILE_SECONDS]
    told = world.clock.ticks + 1.0
    world.bridge.say("T1", "REJECTED", NOON, reason="spread")
    for _ in range(9):
        world.turn(1.0)
    assert looks[4:] == [told + SHOWN_SECONDS], "once the books must show it"


@pytest.mark.parametrize("how", ["file", "database"])
def test_a_halt_takes_back_what_has_not_been_taken(how: str, world: World) -> None:
    world.send()
    world.queue_on_paper()  # on paper
    if how == "file":
        world.file.parent.mkdir()
        world.file.touch()
    else:
        world.database.halt("a person")
    world.turn()
    assert (world.state("T1"), world.state("T2")) == ("CANCELLED", "CANCELLED")
    assert world.database.trading_state() == "HALTED"
    assert world.file.exists()
    world.queue("T3")
    world.courier.send("XAUUSD")
    assert world.bridge.sids == ["T1"]
    assert world.state("T3") == "CANCELLED"


def test_a_stop_at_the_broker_ends_the_trade_with_its_profit(world: World) -> None:
    world.fill()
    world.clock.sleep(60)
    world.bridge.told_books = world.books(deals=(deal(1990.0, -101.5),))
    world.turn(RECONCILE_SECONDS)
    row = world.row()
    assert (row["state"], row["close_reason"], row["profit"]) == ("CLOSED", "STOPPED", -101.5)
    assert (row["outcome"], row["evolution"]) == ("loss", "Falsified")
    assert row["thesis"]


@pytest.mark.parametrize("seconds", [-31, 31])
def test_books_of_another_time_are_no_comparison(seconds: int, world: World) -> None:
    told = world.books()
    moved = replace(told, at=told.at + timedelta(seconds=seconds))
    world.bridge.books = lambda: moved  # type: ignore[method-assign]
    world.send()
    assert world.bridge.sent == []


def test_without_the_lock_nothing_is_touched(world: World) -> None:
    world.queue()
    world.queue_on_paper()
    world.turn()
    world.ours = False
    world.database.enqueue_signal(closing("C1", "T1", instance="XAUUSD", symbol="XAUUSD"))
    world.bridge.say("T1", "FILLED", NOON, price=2000.0, volume=0.1)
    world.turn()
    world.courier.send("XAUUSD")
    world.courier.settle("XAUUSD")
    assert world.bridge.sids == ["T1"]
    assert len(world.bridge.reports) == 1


def test_without_the_lock_no_sign_of_life_is_given_to_a_terminal(world: World) -> None:
    """A terminal that hears a desk takes it for the one that works; the HALT files are its own."""
    world.turn(2.0)
    kept: list[None] = []
    world.switch.keep = lambda: kept.append(None)  # type: ignore[method-assign]
    world.ours, before = False, [*world.bridge.beats]
    world.turn(2.0)
    assert world.bridge.beats == before and before
    assert not kept


def test_its_bridges_are_opened_at_its_start_and_let_go_at_its_end(world: World) -> None:
    opened = ScriptedBridge()
    world.courier._open_bridges = lambda: {"main": opened}
    world.courier.start()
    assert list(world.courier._lines) == ["main"] and not opened.closed
    world.courier.close()
    world.queue()
    world.courier.send("XAUUSD")
    assert opened.closed and opened.sent == []


def test_reducing_takes_openings_back_everywhere(world: World) -> None:
    world.queue()
    world.queue_on_paper()
    world.turn()
    world.database.reduce("a person")
    world.turn()
    assert (world.state("T1"), world.state("T2")) == ("CANCELLED", "CANCELLED")
    assert world.bridge.recalled == ["T1"]


def test_a_halt_and_an_expiry_count_before_the_books_were_compared(world: World) -> None:
    world.bridge.told_books = None
    world.send()
    row = world.row()
    assert row["detail"].startswith("BRIDGE_DEAD: its positions and deals were not compared yet")
    world.clock.sleep(180)
    world.turn()
    assert world.state("T1") == "EXPIRED"


def test_a_late_execution_that_is_over_is_told_once(world: World) -> None:
    world.queue()
    world.clock.sleep(200)
    world.turn()
    assert world.state("T1") == "EXPIRED"
    entry = deal(2000.0, 0.0, deal="899", entry="in", side="BUY", comment="T1", reason="expert")
    world.clock.sleep(600)
    world.bridge.told_books = world.books(deals=(entry, deal(1990.0, -100.0)))
    world.turn(RECONCILE_SECONDS)
    assert world.database.trading_state() == "REDUCING"
    world.database.set_trading_state("ACTIVE", "a person")
    execution_table.end_alarms(world.database)
    for _ in range(3):
        world.turn(RECONCILE_SECONDS)
    assert world.database.trading_state() == "ACTIVE"
    assert world.database.alarms() == []


def test_what_the_broker_says_comes_into_the_checks(world: World) -> None:
    quote = Quote(2000.0, 2000.3, world.clock.now())
    terms = SymbolTerms("XAUUSD.m", 2, 0.01, 1.0, 100.0, 0.01, 0.01, 50.0, 10, "full", "USD", quote)
    world.bridge.terms = lambda: {"XAUUSD.m": terms}  # type: ignore[method-assign]
    facts = {"free_margin": 900.0, "leverage": 30, "balance": 1000.0}
    world.bridge.told = Health(None, "", facts)
    assert world.courier.figures("XAUUSD") == {
        "clock_ok": True, "free_margin": 900.0, "leverage": 30.0, "market_open": True,
        "last_price": 2000.0, "live_spread": 0.3,
    }  # fmt: skip
    world.clock.sleep(60)
    world.bridge.told = Health(DenyReason.CLOCK_SKEW, "", {})
    terms = replace(terms, trade_mode="close_only")
    assert world.courier.figures("XAUUSD") == {"clock_ok": False, "market_open": False}
    assert world.courier.figures("BTCUSD") == {}


@cases(
    ("sides", "mode", "left"),
    [
        ("both", "full", {}),
        ("both", "long_only", {"sides": "long_only"}),
        ("short_only", "", {"sides": "short_only"}),
        ("long_only", "long_only", {"sides": "long_only"}),
        ("long_only", "short_only", {"sides": "neither"}),
    ],
)
def test_what_channel_and_broker_take_comes_into_the_checks(
    sides: Any, mode: str, left: dict[str, str]
) -> None:
    assert taken(Channel(account=1, sides=sides), mode) == left
    more = {"most_notional": 2_000.0, "most_leverage": 3.0}
    venue = Channel(account=1, sides=sides, max_notional=2_000.0, leverage=3.0)
    assert taken(venue, mode) == left | more


def test_what_a_channel_takes_holds_before_its_bridge_is_open(world: World) -> None:
    venue = Channel(account=1, sides="long_only", max_notional=2_000.0)
    known = world.courier._addressees["XAUUSD"]
    world.courier._addressees = {"XAUUSD": replace(known, channel="not_open", venue=venue)}
    told = {"sides": "long_only", "most_notional": 2_000.0}
    assert world.courier.figures("XAUUSD") == told


def test_the_equity_is_told_where_a_leverage_cap_asks_for_it(world: World) -> None:
    for equity, told in ((900.0, 900.0), (0.0, 0.0), (-5.5, -5.5), (None, None)):
        world.bridge.told = Health(None, "", {"equity": equity})
        assert "equity" not in world.courier.figures("XAUUSD")
        known = world.courier._addressees["XAUUSD"]
        capped = validate(Profile, {"risk": {"leverage_caps": {"M15": 3.0}}}, "a test")
        world.courier.adopt("XAUUSD", capped)
        assert world.courier.figures("XAUUSD").get("equity") == told
        world.courier.adopt("XAUUSD", known.profile)


def test_a_strange_position_stops_openings_and_raises_one_alarm(world: World) -> None:
    world.turn()
    for _ in range(2):
        world.clock.sleep(60)
        world.bridge.told_books = world.books(position("BYHAND", ticket="5"))
        world.turn(RECONCILE_SECONDS)
    assert world.database.trading_state() == "REDUCING"
    (alarm,) = world.database.alarms()
    assert alarm.kind == "EXTERNAL"


def test_a_bridge_that_is_not_well_is_on_record(world: World) -> None:
    world.bridge.deny(DenyReason.BRIDGE_DEAD, "no heartbeat for 12 s: start the Expert Advisor")
    world.send()
    (row,) = world.database.bridges()
    assert (row.name, row.deny) == ("scripted main", "BRIDGE_DEAD")
    assert "Expert Advisor" in row.detail
    assert "Expert Advisor" in world.database.signal("T1")["detail"]
    world.bridge.told = ScriptedBridge().told
    world.turn()
    assert world.database.bridges()[0].deny == ""


def test_proposals_expire(world: World) -> None:
    world.database.propose(
        {
            "sid": "P1", "torra_key": "k", "instance": "XAUUSD", "symbol": "XAUUSD",
            "timeframe": "M15", "bar_time": NOON, "verdict": "BUY", "action": "OPEN_BUY",
            "drafts": [], "price": 1.0, "atr": 1.0, "multiplier": 1.0, "created_at": NOON,
            "expires": NOON + timedelta(seconds=1),
        }
    )  # fmt: skip
    world.turn(0.5)
    assert len(world.database.proposals()) == 1
    world.turn(0.5)
    assert world.database.proposals() == []


@pytest.mark.parametrize("error", [RuntimeError("a defect"), StoreUnavailable("locked")])
def test_nothing_that_fails_ends_the_courier(
    error: Exception, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(world.bridge, "poll", broken)
        world.queue_on_paper()
        world.turn()
        assert world.state("T2") == "PUBLISHED", "the others go on"
    world.send()
    assert world.bridge.sids == ["T1"]
    assert world.database.trading_state() == "ACTIVE"


def test_a_broken_database_halts_the_desk(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> Any:
        raise StoreBroken("database or disk is full")

    world.queue()
    with monkeypatch.context() as patch:
        patch.setattr(world.database, "move_signal", full)
        patch.setattr(world.database, "halt", full)
        world.turn()
        assert world.switch.engaged().startswith("store: ")
        sent = len(world.bridge.sent)
        world.turn()
        assert len(world.bridge.sent) == sent
    world.turn()
    assert world.database.trading_state() == "HALTED"


def test_the_other_side_hears_from_us_each_second(world: World) -> None:
    for _ in range(12):
        world.turn(0.25)
    assert world.bridge.beats == ["ACTIVE"] * 3


def test_an_order_says_in_points_how_far_the_market_may_be() -> None:
    row = {
        **opening("T1", **ROW), "seq": 7, "closes": None, "atr": 5.0,
        "bar_time": "2026-02-13T11:45:00Z", "decided_at": "2026-02-13T12:00:00Z",
        "expires": "2026-02-13T12:03:00Z", "after": None, "bridge": "torra_files",
    }  # fmt: skip
    row["seal"] = order_seal.of_row(row)
    order = order_of(row, GOLD, Profile())
    assert order.as_decided
    assert (order.max_spread_pts, order.max_dev_pts) == (75, 125)  # 0.15 and 0.25 x 5.00
    assert (order.digits, order.seq, order.expires - order.created) == (
        2, 7, timedelta(seconds=180),
    )  # fmt: skip
