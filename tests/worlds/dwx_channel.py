"""Orders for DWX Connect, and a bridge, a clock and an Expert Advisor around one folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.doubles.fake_dwx import START, FakeDwx, HandClock
from tests.worlds.orders import Decided
from torra.bridges.dwx.bridge import Dwx
from torra.bridges.protocol import Order, Report
from torra.config import Channel

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
    return Decided(**values)  # type: ignore[arg-type]


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
