"""A halt wins wherever it comes: nothing goes out after it, whichever point the tick has reached.

One tick is prepared that opens a position at a bridge. It runs again and again, and each time the
file HALT is dropped at another of its points; what was not handed over before stays here (R4).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agent_framework
from instance_database import Database
from tests.doubles.scripted_bridge import ScriptedBridge
from tests.faults.lives import TRADING
from tests.worlds import desks
from torra.bridges.protocol import BrokerBooks
from torra.clock import Simulated
from torra.config import Instance, Profile
from torra.evidence import feature_bundle
from torra.home import HALT
from torra.tick import record as tick_record
from torra.trading import courier
from torra.trading.courier import Courier, RoutedInstance
from torra.trading.kill_switch import KillSwitch
from torra.verdict import risk_engine

BTC = Instance(symbol="BTCUSD", timeframes=("M15", "H1"), bridge="torra_files")

POINTS: dict[str, tuple[Any, str]] = {
    "claimed": (Database, "claim_tick"),
    "bars are there": (Database, "bar_revision"),
    "memory read": (Database, "memory_context"),
    "features built": (feature_bundle, "build"),
    "debated": (agent_framework, "blend"),
    "scores stored": (Database, "save_sentiment"),
    "account read": (Database, "exposure"),
    "decided": (risk_engine, "review"),
    "signal enqueued": (Database, "enqueue_signal"),
    "recorded": (tick_record, "build"),
    "done": (Database, "finish_tick"),
    "bridge looked at": (ScriptedBridge, "health"),
    "order made": (courier, "order_of"),
}


class Trading:
    """A desk whose next tick opens a position at a bridge."""

    def __init__(self, folder: Path) -> None:
        self.bridge = ScriptedBridge()
        self.file = folder / HALT
        found: list[Any] = []
        database = self.books = desks.open_database(folder)
        switch = KillSwitch({"desk": self.file}, database)
        people = [RoutedInstance(BTC, Profile(), "main")]
        self.courier = Courier(
            database, people, lambda: {"main": self.bridge}, switch, lambda: found[0].clock
        )
        self.courier.open()
        self.desk = desks.open_desk(
            folder, (BTC,), route=self.courier, kill_switch=switch,
            make_clock=lambda stood: Simulated(stood or TRADING),
        )  # fmt: skip
        found.append(self.desk)
        desks.open_for_work(self.desk)
        now = self.desk.clock.real_now()
        self.bridge.told_books = BrokerBooks((), (), now, now)
        self.courier.turn()

    def step(self) -> None:
        desks.step(self.desk)

    def close(self) -> None:
        self.courier.close()
        self.desk.database.close()
        self.books.close()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a desk just before the tick that sends its first signal."""
    folder = tmp_path_factory.mktemp("prepared")
    before = tmp_path_factory.mktemp("before") / "home"
    trading = Trading(folder)
    for _ in range(60):
        shutil.rmtree(before, ignore_errors=True)
        desk = trading.desk
        desk.database.show_life(desk.clock.now())
        desk.database.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copytree(folder, before)
        trading.step()
        if trading.bridge.sent:
            break
    assert trading.bridge.sent, "no tick of the sample sends a signal any more"
    trading.close()
    return before


def dropping(place: Any, name: str, drop: Callable[[], None]) -> Callable[..., Any]:
    whole = getattr(place, name)

    def reached(*words: Any, **named: Any) -> Any:
        result = whole(*words, **named)
        drop()
        return result

    return reached


@pytest.mark.parametrize("point", POINTS)
def test_nothing_goes_out_after_a_halt(
    point: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scaled: Any
) -> None:
    place, name = POINTS[point]
    for number in range(scaled(50, least=1)):
        folder = tmp_path / str(number)
        shutil.copytree(prepared, folder)
        trading = Trading(folder)
        dropped: list[int] = []

        def drop(trading: Trading = trading, dropped: list[int] = dropped) -> None:
            if not dropped:
                trading.file.parent.mkdir(parents=True, exist_ok=True)
                trading.file.touch()
                dropped.append(len(trading.bridge.sent))

        with monkeypatch.context() as patch:
            patch.setattr(place, name, dropping(place, name, drop))
            trading.step()
        assert dropped, f"the tick never came to {point}"
        trading.courier.turn()
        trading.courier.turn()
        assert len(trading.bridge.sent) == dropped[0], "something went out after the halt"
        assert trading.desk.database.trading_state() == "HALTED"
        assert trading.desk.database.signals(("PENDING", "WAITING")) == []
        trading.close()


def test_without_a_halt_the_same_tick_sends(prepared: Path, tmp_path: Path) -> None:
    """The control: the test above can fail."""
    folder = tmp_path / "home"
    shutil.copytree(prepared, folder)
    trading = Trading(folder)
    trading.step()
    assert len(trading.bridge.sent) == 1
    trading.close()
