"""Orders for DWX Connect, and a bridge, a clock and an Expert Advisor around one folder."""

from __future__ import annotations

import os
from pathlib import Path

from tests.doubles.fake_dwx import FakeDwx
from tests.worlds.terminal_orders import MAGIC, SID, Scaled, TerminalWorld, closing, order
from torra.bridges.dwx.bridge import Dwx
from torra.bridges.protocol import Order, Report
from torra.config import Channel

__all__ = ["MAGIC", "SID", "Scaled", "World", "closing", "order"]


class World(TerminalWorld):
    """One terminal, one folder, and a bridge that can be started anew."""

    steps = ((os, "fsync"), (os, "link"), (Path, "replace"), (Path, "unlink"))

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "home")
        self.folder = folder / "MQL5" / "Files" / "DWX"
        self.fake = FakeDwx(self.folder, self.clock)
        self.executed = self.fake.opened
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

    def opened(self, item: Order | None = None) -> Report:
        self.bridge.submit(item or order())
        return self.settled()

    def leftovers(self) -> list[str]:
        return sorted(
            p.name for p in self.folder.iterdir() if "Commands" in p.name or "tmp" in p.name
        )

    def whole(self) -> None:
        """Look that nothing lies about, and that the Advisor was told everything once."""
        assert self.leftovers() == [] == self.fake.repeated
        assert self.fake.strays == set()
