"""Orders for the MetaTrader5 package, and a bridge on the fake of it with a clock set by hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.doubles.fake_metatrader5 import FakeMetaTrader5
from tests.doubles.hand_clock import START, HandClock
from tests.worlds.orders import Decided
from torra.bridges.mt5.bridge import Mt5Direct
from torra.bridges.mt5.terminal import Terminal
from torra.bridges.protocol import Order, OrderReport
from torra.config import Channel
from torra.errors import BridgeUnavailable

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
    return Decided(**values)  # type: ignore[arg-type]


def closing(ticket: str = "", sid: str = CLOSE, **more: Any) -> Order:
    return replace(
        order(), sid=sid, kind="close", side="SELL", closes=SID, ticket=ticket,
        entry=0.0, stop=0.0, target=0.0, **more,
    )  # fmt: skip


class World:
    """One terminal, one account, and a bridge that can be started anew."""

    def __init__(self, folder: Path, **broker: object) -> None:
        self.clock = HandClock()
        self.home = folder
        self.state = folder / "channels" / "main"
        self.package = FakeMetaTrader5(self.clock, **broker)  # type: ignore[arg-type]
        self.executed = self.package.opened
        calls = ("order_check", "order_send", "history_deals_get", "account_info")
        self.steps = ((os, "fsync"), *((self.package, name) for name in calls))
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

    def look(self, seconds: float = 0.5) -> list[OrderReport]:
        """Let time pass as the courier does, and return what is reported at the end."""
        end = self.clock.elapsed + seconds
        while True:
            reports = list(self.bridge.poll())
            if self.clock.elapsed >= end:
                return reports
            self.clock.sleep(0.25)

    def settled(self, seconds: float = 0.5) -> OrderReport:
        [report] = self.look(seconds)
        self.bridge.settle(report)
        return report

    def carry(self, item: Order) -> str:
        """Hand an order over on and on, as the courier does, until it has its end; return that."""
        status, left = "", 5
        while left and self.clock.elapsed < 70.0:
            if self.clock.now() < item.expires:
                with suppress(BridgeUnavailable):
                    self.bridge.submit(item)
            for report in self.bridge.poll():
                status = report.status
                self.bridge.settle(report)
            left -= status not in ("", "PLACED")
            self.clock.sleep(0.5)
        return status

    def halt(self, folder: Path | None = None) -> Path:
        """Put a HALT file down, the channel's own or that of another folder."""
        path = (folder or self.state) / "control" / "HALT"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a person\n")
        return path

    def opened(self, **changes: object) -> OrderReport:
        self.bridge.submit(order(**changes))  # type: ignore[arg-type]
        return self.settled()

    def close(self) -> None:
        for terminal in self.terminals:
            terminal.close()
