"""A channel to play on: a folder, a clock that is set by hand, Torra's bridge and an Advisor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.doubles.compiled_ea import CompiledEa
from tests.worlds.orders import Decided
from torra.bridges.protocol import Order, OrderReport
from torra.bridges.torra.bridge import TorraFiles
from torra.clock import Simulated
from torra.config import Channel, Instance

NOW = datetime(2026, 2, 13, 12, 0, tzinfo=UTC)
KEY = "a long random text of the channel"
ENVIRONMENT = {"TORRA_CHANNEL_KEY": KEY}
ACCOUNT = 1001
MAGIC = 220_114_000

ORDER = Decided(
    sid="T7K3Q9ZB2M4XA",
    seq=1042,
    kind="open",
    instance="EURUSD",
    symbol="EURUSD",
    broker_symbol="EURUSD.m",
    timeframe="M15",
    bar_time=NOW - timedelta(minutes=15),
    side="BUY",
    lots=0.1,
    entry=1.10012,
    stop=1.09512,
    target=1.11012,
    created=NOW,
    expires=NOW + timedelta(seconds=180),
    magic=MAGIC,
    max_spread_pts=40,
    max_dev_pts=30,
    digits=5,
)


EUR = Instance(
    symbol="EURUSD", broker_symbol="EURUSD.m", timeframes=("M15", "H1"), feed="store",
    bridge="torra_files",
)  # fmt: skip

EURO = {"digits": 5, "tick_size": 0.00001, "contract": 100_000, "lot_max": 50, "filling": 3}
"""The terms of a symbol, where its broker has them."""


def new_advisor(folder: Path, **inputs: object) -> CompiledEa:
    """Return an Expert Advisor without limits of its own, at a broker who quotes nothing yet."""
    free = {"max_lots": 0.0, "max_positions": 0, "max_trades_per_day": 0, "bar_symbols": ""}
    settings: dict[str, Any] = {"key": KEY, "account": ACCOUNT, **free, **inputs}
    advisor = CompiledEa(folder, **settings)
    advisor.set(account=ACCOUNT, free_margin=10_000.0, stop_fill="level")
    return advisor


class HandClock(Simulated):
    """Desk time and monotonic time, both set by hand."""

    def __init__(self, moment: datetime = NOW) -> None:
        super().__init__(moment)
        self.elapsed = 1000.0

    def monotonic(self) -> float:
        return self.elapsed

    def pass_time(self, seconds: float) -> None:
        self.set(self.now() + timedelta(seconds=seconds))
        self.elapsed += seconds

    def jump(self, seconds: float) -> None:
        """Let the wall clock jump, as a time server makes it."""
        self.set(self.now() + timedelta(seconds=seconds))


class Realtime(HandClock):
    """A clock whose real time is the one that is set by hand, too."""

    def real_now(self) -> datetime:
        return self.now()


def order(number: int = 1, **more: Any) -> Order:
    """Return an opening with an id and a magic number of its own."""
    named = {"sid": f"T{number:012d}", "seq": number, "magic": MAGIC + number}
    return replace(ORDER, **{**named, **more})


def closing(opened: Order, number: int = 2, **more: Any) -> Order:
    """Return the close of an opening."""
    side = "SELL" if opened.side == "BUY" else "BUY"
    named = {"sid": f"T{number:012d}", "seq": number, "kind": "close", "closes": opened.sid}
    levels = dict.fromkeys(("entry", "stop", "target"), 0.0)
    return replace(opened, **{**named, "side": side, **levels, **more})


@dataclass
class Stage:
    """Both sides of one channel."""

    root: Path
    clock: HandClock = field(default_factory=HandClock)
    channel: Channel = field(init=False)
    bridge: TorraFiles = field(init=False)
    ea: CompiledEa = field(init=False)

    def __post_init__(self) -> None:
        self.channel = Channel(folder=str(self.root / "main"), account=ACCOUNT)
        self.bridge = self.new_bridge()
        self.ea = new_advisor(self.folder)
        self.ea.symbol("EURUSD.m", **EURO)
        self.ea.quote("EURUSD.m", 1.1, 1.10012, self.clock.now())

    @property
    def folder(self) -> Path:
        return self.root / "main"

    def new_bridge(self, **more: Any) -> TorraFiles:
        given: dict[str, Any] = {"environment": ENVIRONMENT, "sleep": lambda _: None, **more}
        return TorraFiles("main", given.pop("channel", self.channel), self.clock, **given)

    def tick(self, seconds: float = 1.0) -> None:
        """Let time pass, and the Advisor work."""
        self.clock.pass_time(seconds)
        self.advise()

    def advise(self) -> None:
        """Let the Advisor work up to now."""
        self.ea.step(self.clock.now(), self.clock.monotonic())

    def wake(self) -> None:
        """Let both sides see each other alive."""
        for _ in range(2):
            self.tick()
            self.bridge.health()

    def names(self, folder: str) -> list[str]:
        return sorted(path.name for path in (self.folder / folder).iterdir())

    def reports(self) -> list[OrderReport]:
        """Poll and settle, as signal_bridge does."""
        reports = list(self.bridge.poll())
        for report in reports:
            self.bridge.settle(report)
        return reports

    def final(self, sid: str, seconds: int = 40) -> OrderReport:
        """Let both sides run until a signal has its last report."""
        for _ in range(seconds):
            self.tick()
            for report in self.reports():
                if report.sid == sid and report.status not in ("CLAIMED", "PLACED"):
                    return report
        raise AssertionError(f"no answer to {sid}: {self.bridge.health().detail}")

    def orders_of(self, sid: str) -> int:
        return len(self.ea.deals(sid))
