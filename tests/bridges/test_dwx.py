"""The DWX Connect adapter against an Expert Advisor that has all of DWX Connect's quirks."""

from __future__ import annotations

import errno
import os
import random
import re
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.fake_dwx import START, FakeDwx, HandClock
from torra import failpoints, whole_files
from torra.bridges.at_most_once import CONFIRM_SECONDS
from torra.bridges.dwx import files as dwx_files
from torra.bridges.dwx.bridge import Dwx
from torra.bridges.dwx.files import LastGood, parse_account
from torra.bridges.order_journal import OrderJournal
from torra.bridges.protocol import Order, Recall, Report
from torra.config import Channel
from torra.errors import BridgeUnavailable, ConfigError

MAGIC = 220_114_000
SID = "TAAAAAAAAAAAA"
Scaled = Callable[..., int]


def order(sid: str = SID, **changes: object) -> Order:
    values = {
        "sid": sid,
        "seq": 1,
        "kind": "open",
        "instance": "XAUUSD",
        "symbol": "XAUUSD",
        "broker_symbol": "XAUUSD.m",
        "timeframe": "M15",
        "bar_time": START - timedelta(minutes=15),
        "side": "BUY",
        "lots": 0.10,
        "entry": 2345.10,
        "stop": 2338.40,
        "target": 2361.20,
        "created": START,
        "expires": START + timedelta(seconds=180),
        "magic": MAGIC,
        "max_spread_pts": 40,
        "max_dev_pts": 30,
        "digits": 2,
        **changes,
    }
    return Order(**values)  # type: ignore[arg-type]


def closing(opening: Order, ticket: str = "", sid: str = "TCCCCCCCCCCCC", **more: Any) -> Order:
    return replace(
        opening, sid=sid, kind="close", side="SELL", closes=opening.sid, ticket=ticket,
        entry=0.0, stop=0.0, target=0.0, **more,
    )  # fmt: skip


class World:
    """One terminal, one folder, and a bridge that can be started anew."""

    def __init__(self, folder: Path) -> None:
        self.clock = HandClock()
        self.folder = folder / "MQL5" / "Files" / "DWX"
        self.home = folder / "home"
        self.state = self.home / "channels" / "main"
        self.fake = FakeDwx(self.folder, self.clock)
        self.clock.others.append(self.fake.step)
        self.channel = Channel(folder=str(self.folder), account=12345678, live=True)
        self.bridge = self.start()
        self.clock.pass_by(0.5)
        self.look(1.0)

    def start(self, **changes: object) -> Dwx:
        channel = self.channel.model_copy(update=changes)
        halts = (self.home / "control" / "HALT",)
        self.bridge = Dwx("main", channel, self.state, ["XAUUSD.m"], self.clock, halts=halts)
        return self.bridge

    def look(self, seconds: float) -> list[Report]:
        """Let time pass as the courier does, and return what is reported at the end."""
        end = self.clock.elapsed + seconds
        while True:
            found = list(self.bridge.poll())
            if self.clock.elapsed >= end:
                return found
            self.clock.sleep(0.25)

    def settled(self, seconds: float = 2.0) -> Report:
        [report] = self.look(seconds)
        self.bridge.settle(report)
        return report

    def opened(self, item: Order | None = None) -> Report:
        self.bridge.submit(item or order())
        return self.settled()

    def halt(self, folder: Path | None = None) -> Path:
        """Put a HALT file down, the channel's own or that of another folder."""
        path = (folder or self.state) / "control" / "HALT"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a person\n")
        return path

    def leftovers(self) -> list[str]:
        return sorted(
            p.name for p in self.folder.iterdir() if "Commands" in p.name or "tmp" in p.name
        )


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


# --- commands in their order ----------------------------------------------------------------------


def test_numbers_go_up_through_restarts_and_a_lost_file(world: World) -> None:
    for turn in range(6):
        world.bridge.submit(order(f"T{turn:012d}".replace("0", "A"), magic=MAGIC + turn,
                                  created=world.clock.now()))  # fmt: skip
        world.fake.positions.clear()
        world.look(2)
        if turn == 2:
            (world.state / dwx_files.NUMBER).unlink()
        if turn == 4:
            (world.state / dwx_files.NUMBER).write_bytes(b"\0\0\0")
        world.start()
    numbers = [int(text[2:].split("|")[0]) for text in world.fake.taken]
    assert numbers == sorted(set(numbers))
    assert max(numbers) < 2**31
    assert world.fake.repeated == []
    assert not [text for text in world.fake.taken if "RESET" in text]


def test_one_order_at_a_time(world: World) -> None:
    world.fake.running = False
    world.bridge.submit(order())
    other = order("TBBBBBBBBBBBB", magic=MAGIC + 1, broker_symbol="EURUSD")
    with pytest.raises(BridgeUnavailable, match="not confirmed yet"):
        world.bridge.submit(other)
    assert world.leftovers() == ["DWX_Commands_0.txt"]
    assert world.bridge.recall("TBBBBBBBBBBBB", 2) is Recall.NEVER_SENT


def test_the_next_order_waits_for_the_confirmation_not_only_for_the_command(world: World) -> None:
    world.fake.mute = True
    world.bridge.submit(order())
    world.clock.sleep(1)
    world.fake.deals.clear()
    assert world.leftovers() == []
    other = order("TBBBBBBBBBBBB", magic=MAGIC + 1, broker_symbol="EURUSD")
    with pytest.raises(BridgeUnavailable, match=f"{SID} is not confirmed yet"):
        world.bridge.submit(other)
    assert world.fake.opened == [SID]


def test_a_strangers_command_is_neither_replaced_nor_removed(world: World) -> None:
    world.fake.running = False
    stranger = world.folder / "DWX_Commands_0.txt"
    stranger.write_text("<:7|OPEN_ORDER|EURUSD,buy,0.01,0,0,0,1,x,0:>")
    world.fake.check_commands = lambda: None  # type: ignore[method-assign]
    world.fake.running = True
    for _ in range(5):
        with pytest.raises(BridgeUnavailable, match="a command waits"):
            world.bridge.submit(order())
        world.look(1)
    assert "EURUSD,buy" in stranger.read_text()


def test_a_command_that_appears_in_between_is_not_replaced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def late(source: Path, target: Path) -> None:
        Path(target).write_text("<:7|CLOSE_ORDER|1,0.01:>")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(BridgeUnavailable, match="has not been taken yet"):
        world.bridge.submit(order())
    assert (world.folder / "DWX_Commands_0.txt").read_text() == "<:7|CLOSE_ORDER|1,0.01:>"
    assert world.bridge.recall(SID, 1) is Recall.NEVER_SENT
    assert world.leftovers() == ["DWX_Commands_0.txt"]


def test_a_question_that_nobody_takes_keeps_no_order_waiting(world: World) -> None:
    world.fake.killed()
    assert world.bridge.books() is None
    assert world.leftovers() == ["DWX_Commands_0.txt"]
    world.fake.running = True
    world.fake.check_orders()
    world.fake.running = False
    world.clock.pass_by(4)
    world.bridge.submit(order(created=world.clock.now()))
    assert "OPEN_ORDER" in (world.folder / "DWX_Commands_0.txt").read_text()


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.EPERM, errno.EXDEV])
def test_a_disk_without_second_names_is_told_and_nothing_is_sent(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuses(source: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuses)
    with pytest.raises(BridgeUnavailable, match="second name"):
        world.bridge.submit(order())
    monkeypatch.undo()
    assert world.leftovers() == []
    assert world.opened().status == "FILLED"


def test_an_error_of_a_share_passes_for_sent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def done_and_failed(source: Path, target: Path) -> None:
        link(source, target)
        raise OSError(errno.EIO, "lost the answer")

    monkeypatch.setattr(os, "link", done_and_failed)
    assert world.opened().status == "FILLED"
    world.bridge.submit(order())
    assert world.fake.opened == [SID]


def test_names_that_windows_keeps_busy_are_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, turns = whole_files.name_once, []

    def name_once(temporary: Path, target: Path) -> None:
        turns.append(target)
        if len(turns) < 5:
            raise PermissionError(errno.EACCES, "in use")
        busy(temporary, target)

    monkeypatch.setattr(dwx_files, "name_once", name_once)
    assert world.opened().status == "FILLED"
    assert len(turns) == 5
    turns.clear()
    world.fake.positions.clear()
    world.clock.sleep(1)
    monkeypatch.setattr(dwx_files, "SHARING", 3)
    with pytest.raises(BridgeUnavailable, match="cannot lay"):
        world.bridge.submit(order("TBBBBBBBBBBBB"))
    assert world.bridge.recall("TBBBBBBBBBBBB", 2) is Recall.NEVER_SENT


# --- expiry and recall ----------------------------------------------------------------------------


def test_an_order_that_nobody_takes_is_taken_away_at_its_expiry(world: World) -> None:
    world.fake.killed()
    world.bridge.submit(order(expires=START + timedelta(seconds=10)))
    world.look(6)
    assert world.leftovers() == ["DWX_Commands_0.txt"]
    world.look(3)
    assert world.leftovers() == []
    world.fake.init()
    assert world.settled(CONFIRM_SECONDS + 1).status == "UNKNOWN"
    assert world.fake.opened == []


def test_taking_an_order_away_is_no_proof_that_it_was_not_read(world: World) -> None:
    def read(text: str) -> None:
        if "OPEN_ORDER" in text:
            assert world.bridge.recall(SID, 1) is Recall.TAKEN
            assert world.leftovers() == []

    world.fake.on_read = read
    world.bridge.submit(order())
    assert world.settled().status == "FILLED"
    assert world.bridge.recall(SID, 1) is Recall.TAKEN


def test_a_recalled_order_that_was_not_read_ends_unknown(world: World) -> None:
    world.fake.running = False
    world.bridge.submit(order())
    assert world.bridge.recall(SID, 1) is Recall.TAKEN
    world.fake.running = True
    assert world.settled(CONFIRM_SECONDS + 1).status == "UNKNOWN"
    assert world.fake.opened == []


def test_an_advisor_that_starts_again_drops_the_command(world: World) -> None:
    world.fake.running = False
    world.bridge.submit(order())
    world.fake.init()
    assert world.settled(CONFIRM_SECONDS + 1).status == "UNKNOWN"
    world.bridge.submit(order())
    world.look(2)
    assert world.fake.opened == []


# --- crashes --------------------------------------------------------------------------------------


class Crash(BaseException):
    """The power is gone."""


def crash_at(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let the process end before or after its n-th step that touches the disk."""
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

    for owner, name in ((os, "fsync"), (os, "link"), (Path, "replace"), (Path, "unlink")):
        monkeypatch.setattr(owner, name, crashing(getattr(owner, name)))


@pytest.mark.parametrize("restarted", [False, True], ids=["advisor goes on", "advisor restarts"])
def test_a_crash_at_any_step_leads_to_one_order_at_most(
    tmp_path: Path, restarted: bool, scaled: Scaled
) -> None:
    ends = []
    for number in range(1, 60, 4 - scaled(3)):  # every third step by day
        world = World(tmp_path / str(number))
        with pytest.MonkeyPatch.context() as patch:
            crash_at(patch, number)
            try:
                world.bridge.submit(order())
                crashed = False
            except Crash:
                crashed = True
        if restarted:
            world.fake.init()
        world.start()
        reports: dict[str, Report] = {}
        for _ in range(60):
            world.clock.sleep(0.5)
            if world.clock.now() < order().expires and not world.bridge.health().deny:
                try:
                    world.bridge.submit(order())
                except BridgeUnavailable:
                    assert SID not in reports
            for report in world.bridge.poll():
                reports[report.sid] = report
                world.bridge.settle(report)
            if reports:
                world.bridge.submit(order())
                world.clock.pass_by(0.5)
                break
        assert len(world.fake.opened) <= 1
        assert reports[SID].status == ("FILLED" if world.fake.opened else "UNKNOWN")
        assert world.leftovers() == []
        assert world.fake.strays == set()
        ends.append(reports[SID].status)
        if not crashed:
            break
    assert not crashed, "the steps never ended"
    assert {"FILLED", "UNKNOWN"} <= set(ends)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize("point", ["tmp_half", "tmp_done", "renamed"])
def test_a_killed_process_leads_to_one_order_at_most(world: World, point: str) -> None:
    pid = os.fork()
    if pid == 0:
        os.environ[failpoints.VARIABLE] = point
        try:
            world.bridge.submit(order())
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
    world.start()
    world.bridge.submit(order())
    report = world.settled(CONFIRM_SECONDS + 2)
    assert report.status == ("FILLED" if point == "renamed" else "UNKNOWN")
    assert len(world.fake.opened) == (1 if point == "renamed" else 0)
    assert world.leftovers() == []


def full_at(number: int) -> Callable[[int], None]:
    """Return an fsync whose n-th call finds the disk full."""
    done, fsync = [0], os.fsync

    def full(handle: int) -> None:
        done[0] += 1
        if done[0] == number:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    return full


def test_a_full_disk_sends_nothing_and_recovers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 12):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full_at(number))
            try:
                world.bridge.submit(order())
            except BridgeUnavailable:
                assert world.bridge.recall(SID, 1) is Recall.NEVER_SENT
                assert world.leftovers() == []
                continue
        break
    else:
        pytest.fail("never sent")
    assert number > 3
    world.look(2)
    assert world.fake.opened == [SID]
    world.start()
    assert [report.status for report in world.bridge.poll()] == ["FILLED"]


def test_a_lost_journal_finds_the_position_instead_of_a_second_one(world: World) -> None:
    world.opened()
    (world.state / "dwx_orders.jsonl").unlink()
    world.start()
    world.bridge.submit(order())
    report = world.settled()
    assert (report.status, report.adopted) == ("FILLED", True)
    assert world.fake.opened == [SID]


# --- half-read files ------------------------------------------------------------------------------


def test_half_written_files_change_nothing(world: World, scaled: Scaled) -> None:
    looks = [0]

    def half() -> None:
        looks[0] += 1
        world.bridge.poll()
        health = world.bridge.health()
        assert health.ok, health.detail
        assert world.bridge.quote("XAUUSD.m")

    world.opened()
    world.fake.on_half = half
    wanted = scaled(10_000, least=150)
    turn = 0
    while looks[0] < wanted:
        turn += 1
        world.fake.prices["XAUUSD.m"] = (2345.0 + turn / 100, 2345.2 + turn / 100)
        world.fake.write("Messages", "{}")
        world.fake._written = -1e9
        world.clock.sleep(0.5)
    assert world.bridge.poll() == []
    assert looks[0] >= wanted


def test_no_reading_of_a_file_that_is_being_written_is_ever_wrong(
    tmp_path: Path, scaled: Scaled, record_property: Callable[..., None]
) -> None:
    path = tmp_path / "DWX_Orders.txt"
    row = (
        '"{0}": {{"magic": {0}, "symbol": "X", "lots": 0.1, "type": "buy", "open_price": 1.0, '
        '"open_time": "2026.03.04 12:00:00", "SL": 0, "TP": 0, "pnl": 0, "swap": 0, "comment": ""}}'
    )
    texts = [
        f'{{"account_info": {{"name": "x", "number": {count}, "currency": "USD", "leverage": 1, '
        '"free_margin": 1, "balance": 1, "equity": 1}, "orders": {'
        + ", ".join(row.format(n) for n in range(count))
        + "}}"
        for count in (1, 40, 200)
    ]
    ended = threading.Event()

    def write() -> None:
        while not ended.is_set():
            for text in texts:
                with path.open("w") as file:
                    for start in range(0, len(text), 4096):
                        file.write(text[start : start + 4096])
                        file.flush()
                ended.wait(0.0005)

    writer = threading.Thread(target=write)
    writer.start()
    good, cut, reads = LastGood(path, parse_account), 0, 0
    wanted = scaled(30_000, least=300)
    try:
        while reads < wanted or not cut or good.value is None:
            reads += 1
            good._seen = (0, 0)
            found = good.read()
            raw = path.read_text() if path.exists() else ""
            cut += not raw.endswith("}}")
            if found is not None:
                assert len(found.rows) == found.number
            assert reads < 100 * wanted
    finally:
        ended.set()
        writer.join()
    record_property("seen", f"{reads:,} readings, {cut:,} of them cut")


@pytest.mark.parametrize(
    "raw",
    [b"", b"\r\n", b"{", b"[]", b"{}", b"null", b"\0\0\0", b"\xff\xfe", b'{"account_info": 1}',
     b'{"account_info": {"number": "x"}, "orders": {}}', b"[" * 100_000,
     b'{"account_info": {"name": "", "number": 1, "currency": "USD", "leverage": 1, '
     b'"free_margin": NaN, "balance": 1, "equity": 1}, "orders": {}}'],
)  # fmt: skip
def test_a_broken_file_leaves_the_last_good_one(world: World, raw: bytes) -> None:
    for name in ("Orders", "Messages", "Market_Data", "Historic_Trades"):
        (world.folder / f"DWX_{name}.txt").write_bytes(raw)
    assert world.bridge.health().facts["account"] == 12345678
    assert world.bridge.poll() == []
    world.bridge.books()


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_names_in_any_code_page_are_read(tmp_path: Path, encoding: str) -> None:
    world = World(tmp_path)
    world.fake.encoding, world.fake.owner = encoding, "Jürgen Müller"
    world.fake.init()
    world.look(6)
    assert world.bridge.health().ok


def test_quotation_marks_in_foreign_comments_do_not_blind_it(world: World) -> None:
    world.fake.owner = 'Jane "J" Trader'
    world.fake.hold("EURUSD", comment='my "best" trade\\')
    world.clock.pass_by(1)
    assert world.bridge.health().ok
    assert world.opened().status == "FILLED"
    books = world.bridge.books()
    assert books is not None
    assert {position.comment for position in books.positions} == {SID, 'my "best" trade\\'}


# --- books ----------------------------------------------------------------------------------------


def test_the_books_tell_positions_and_deals_with_their_positions(world: World) -> None:
    foreign = world.fake.hold("EURUSD", "sell", 0.3)
    world.clock.sleep(2)
    first = world.opened()
    world.clock.sleep(60)
    world.fake.end(int(first.position), 2338.4, "[sl 2338.40]", MAGIC, 0.1)
    world.clock.sleep(60)
    second = world.opened(order("TBBBBBBBBBBBB", created=world.clock.now(), seq=2))
    books = world.bridge.books()
    assert books is not None
    assert [(p.ticket, p.side, p.lots, p.magic, p.comment) for p in books.positions] == [
        (second.position, "LONG", 0.1, MAGIC, "TBBBBBBBBBBBB"),
        (str(foreign), "SHORT", 0.3, 0, ""),
    ]
    assert [(d.position, d.entry, d.side, d.reason) for d in books.deals] == [
        (str(foreign), "in", "SELL", ""),
        (first.position, "in", "BUY", ""),
        (first.position, "out", "SELL", "sl"),
        (second.position, "in", "BUY", ""),
    ]
    out = books.deals[2]
    assert out.profit == pytest.approx((2338.4 - 2345.2) * 0.1 * 100 - 0.5)
    assert abs(out.time - START) < timedelta(minutes=3)
    assert books.positions[0].opened_at == books.deals[3].time
    assert books.since == books.at - timedelta(days=7)


@pytest.mark.parametrize("how", ["closed by us", "closed by hand"])
def test_a_deal_under_another_number_is_given_to_the_position_it_closed(
    world: World, how: str
) -> None:
    first = world.opened()
    other = order("TBBBBBBBBBBBB", magic=MAGIC + 1, broker_symbol="EURUSD", digits=5,
                  entry=1.1, stop=1.09, target=1.12, lots=0.2)  # fmt: skip
    with pytest.raises(BridgeUnavailable):
        world.bridge.submit(other)
    world.look(1)
    world.opened(other)
    if how == "closed by us":
        world.bridge.submit(closing(order(), first.position))
        assert world.settled().status == "FILLED"
    else:
        world.fake.end(int(first.position), 2347.0, "", 0, 0.1)
        world.clock.sleep(1)
    books = world.bridge.books()
    assert books is not None
    [out] = [deal for deal in books.deals if deal.entry == "out"]
    assert out.magic == (MAGIC + 1 if how == "closed by us" else 0)
    assert out.position == first.position


def test_what_may_be_two_closes_is_left_open(world: World) -> None:
    first = world.opened()
    world.clock.sleep(60)
    foreign = world.fake.hold("XAUUSD.m", "buy", 0.1)
    world.clock.sleep(60)
    world.fake.end(foreign, 2346.0, "", 0, 0.1)
    world.fake.end(int(first.position), 2346.0, "", 0, 0.1)
    world.clock.sleep(1)
    books = world.bridge.books()
    assert books is not None
    assert [deal.position for deal in books.deals if deal.entry == "out"] == ["", ""]


def test_a_link_that_was_sure_stays_when_another_deal_would_fit_too(world: World) -> None:
    first = world.opened()
    world.fake.end(int(first.position), 2346.0, "", 0, 0.1)
    world.clock.sleep(60)
    for _ in range(2):
        books = world.bridge.books()
        assert books is not None
        assert [deal.position for deal in books.deals[:2]] == [first.position] * 2
        world.fake.end(world.fake.hold("XAUUSD.m", "buy", 0.1), 2346.0, "", 0, 0.1)
        world.start()


def test_deals_are_still_linked_when_the_opening_is_older_than_the_history(world: World) -> None:
    first = world.opened()
    world.clock.moment += timedelta(days=9)
    world.clock.sleep(1)
    world.fake.end(int(first.position), 2361.2, "[tp 2361.20]", MAGIC, 0.1)
    world.clock.sleep(1)
    for _ in range(2):
        books = world.bridge.books()
        assert books is not None
        assert [(d.position, d.reason) for d in books.deals] == [(first.position, "tp")]
    world.clock.sleep(60)
    second = world.opened(order("TBBBBBBBBBBBB", created=world.clock.now(),
                                expires=world.clock.now() + timedelta(seconds=60)))  # fmt: skip
    world.fake.end(int(second.position), 2338.4, "[sl 2338.40]", MAGIC, 0.1)
    world.clock.sleep(1)
    books = world.bridge.books()
    assert books is not None
    assert [d.position for d in books.deals][-2:] == [second.position] * 2


def test_an_advisor_that_does_not_answer_has_no_books(world: World) -> None:
    world.fake.historic_trades = lambda content: None  # type: ignore[method-assign]
    assert world.bridge.books() is None


def test_old_answers_are_not_taken_for_new_ones(world: World) -> None:
    assert world.bridge.books() is not None
    world.fake.historic_trades = lambda content: None  # type: ignore[method-assign]
    assert world.bridge.books() is None


# --- random lives ---------------------------------------------------------------------------------


def test_random_lives_never_trade_twice_and_always_end(tmp_path: Path, scaled: Scaled) -> None:
    """Crashes, restarts, silence, refusals and lost comments in any order: 100 lives a night."""
    ends: dict[str, int] = {}
    for life in range(scaled(100, least=2)):
        dice = random.Random(life)
        world = World(tmp_path / str(life))
        for turn in range(4):
            status = one_decision(world, dice, f"T{'ABCDEFGHIJKL'[turn] * 12}", turn)
            ends[status] = ends.get(status, 0) + 1
        assert len(world.fake.opened) == len(set(world.fake.opened))
        assert world.fake.strays == set()
        assert world.fake.repeated == []
        assert not [name for name in world.leftovers() if name.endswith(".tmp")]
    assert ends.get("FILLED", 0) > 0


def one_decision(world: World, dice: random.Random, sid: str, turn: int) -> str:
    fake, now = world.fake, world.clock.now()
    item = order(
        sid, seq=turn, magic=MAGIC + turn, created=now, expires=now + timedelta(seconds=20)
    )
    fake.positions.clear()
    fake.running = True
    fake.mute = dice.random() < 0.2
    fake.error = dice.choice([0, 0, 0, 4752, 4756])
    mangles: list[Callable[[str], str]] = [str, str, lambda comment: comment[:5], lambda _: ""]
    fake.mangle = dice.choice(mangles)
    fake.check_orders()
    before, status = len(fake.opened), "NEVER"
    for tick in range(280):
        event = dice.random() if tick < 200 else 1.0  # the end is quiet
        if event < 0.01:
            fake.init()
        elif event < 0.02:
            fake.running = not fake.running
        elif event < 0.03:
            world.start()
        elif event < 0.04:
            fake.mute = False
        if status == "NEVER" and world.clock.now() < item.expires:
            crash = dice.random() < 0.2
            with pytest.MonkeyPatch.context() as patch:
                if crash:
                    crash_at(patch, dice.randrange(1, 25))
                try:
                    world.bridge.submit(item)
                    status = "SENT"
                except BridgeUnavailable:
                    pass
                except Crash:
                    status = "SENT"
            if crash:
                world.start()
        world.clock.sleep(0.25)
        for report in world.bridge.poll():
            status = report.status
            world.bridge.settle(report)
            assert report.sid == sid
    executed = len(fake.opened) - before
    assert executed <= 1
    if status == "SENT":
        assert world.bridge.recall(sid, turn) is Recall.NEVER_SENT
        assert executed == 0
        return "NEVER"
    assert status in ("NEVER", "FILLED", "REJECTED", "EXPIRED", "UNKNOWN")
    assert executed == (1 if status == "FILLED" else 0) or status == "UNKNOWN"
    return status
