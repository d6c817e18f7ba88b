"""The MetaTrader5 package itself: one that blocks, one that is missing, and its books."""

from __future__ import annotations

import sys
import threading
import types
from datetime import timedelta
from pathlib import Path

import pytest

from tests.doubles.fake_metatrader5 import NO_IPC
from tests.doubles.hand_clock import START
from tests.tries import until
from tests.worlds.mt5_package import MAGIC, World, order
from torra.bridges.mt5 import terminal as mt5_terminal
from torra.bridges.mt5.bridge import CONFIRM_SECONDS
from torra.bridges.mt5.terminal import Terminal, load_package
from torra.errors import BridgeUnavailable, ConfigError

# --- a package that blocks ------------------------------------------------------------------------


def test_a_blocked_terminal_is_dead_and_costs_one_thread(world: World) -> None:
    world.start(seconds=0.02)
    assert world.bridge.health().ok
    before = {*threading.enumerate()}
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
    assert {*threading.enumerate()} <= before
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
