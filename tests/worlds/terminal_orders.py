"""Orders for the bridges that ask a terminal themselves, and what the worlds of both share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.doubles.fake_dwx import START, HandClock
from tests.worlds.orders import Decided
from torra.bridges.protocol import Order, Report
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


def closing(opening: Order, ticket: str = "", sid: str = CLOSE, **more: Any) -> Order:
    return replace(
        opening, sid=sid, kind="close", side="SELL", closes=opening.sid, ticket=ticket,
        entry=0.0, stop=0.0, target=0.0, **more,
    )  # fmt: skip


class TerminalWorld:
    """A bridge, a clock set by hand, and the folders of a home.

    `lost` is how an order ends of which nobody knows that it was sent, `steps` are the calls each
    of which may be a process's last, `executed` what the broker did.
    """

    lost = "UNKNOWN"
    moment = 2.0
    bridge: Any
    steps: tuple[tuple[Any, str], ...]
    executed: list[str]

    def __init__(self, home: Path) -> None:
        self.clock = HandClock()
        self.home = home
        self.state = home / "channels" / "main"

    def start(self) -> Any:
        """Begin a new life of the bridge, as after a crash."""
        raise NotImplementedError

    def look(self, seconds: float = 0.5) -> list[Report]:
        """Let time pass as the courier does, and return what is reported at the end."""
        end = self.clock.elapsed + seconds
        while True:
            reports = list(self.bridge.poll())
            if self.clock.elapsed >= end:
                return reports
            self.clock.sleep(0.25)

    def settled(self, seconds: float | None = None) -> Report:
        [report] = self.look(self.moment if seconds is None else seconds)
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

    def whole(self) -> None:
        """Look that nothing lies about, and close."""
