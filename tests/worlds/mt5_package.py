"""Orders for the MetaTrader5 package, and a bridge on the fake of it with a clock set by hand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.doubles.fake_metatrader5 import FakeMetaTrader5
from tests.worlds import terminal_orders
from tests.worlds.terminal_orders import CLOSE, MAGIC, SID, Scaled, TerminalWorld, order
from torra.bridges.mt5.bridge import Mt5Direct
from torra.bridges.mt5.terminal import Terminal
from torra.bridges.protocol import Order, Report
from torra.config import Channel

__all__ = ["CLOSE", "MAGIC", "SID", "Scaled", "World", "closing", "order"]


def closing(ticket: str = "", **more: Any) -> Order:
    return terminal_orders.closing(order(), ticket, **more)


class World(TerminalWorld):
    """One terminal, one account, and a bridge that can be started anew."""

    lost = "UNKNOWN_NOT_SENT"
    moment = 0.5

    def __init__(self, folder: Path, **broker: object) -> None:
        super().__init__(folder)
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

    def opened(self, **changes: object) -> Report:
        self.bridge.submit(order(**changes))  # type: ignore[arg-type]
        return self.settled()

    def whole(self) -> None:
        """Close, for it has threads."""
        self.close()

    def close(self) -> None:
        for terminal in self.terminals:
            terminal.close()
