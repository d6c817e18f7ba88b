"""A person's hand on a desk in a test: a desk on a channel or on paper, and the hand beside it.

`Market` is a desk whose clock and prices a test sets; `hand_on` is the reach of a person on any
desk; `live_home` is a home for the commands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import signal_bridge
from instance_database import Database, open_home
from tests.worlds.channels import ENVIRONMENT, EUR, Realtime, Stage
from tests.worlds.homes import desk_file
from tests.worlds.price_series import walk
from tests.worlds.stores import open_database
from torra.bridges.paper import Bar
from torra.clock import System
from torra.commands.command_line import main
from torra.config import Channel, DeskSettings, Instance, Profile
from torra.errors import ConfigError
from torra.tick import paper as paper_tick
from torra.trading import hand_close
from torra.trading.commanding import Actor, CommandContext
from torra.trading.courier import Courier, RoutedInstance
from torra.trading.kill_switch import KillSwitch
from torra.verdict.risk_engine import Levels, SignalDraft

SOMEBODY = Actor("somebody", "127.0.0.1")
LEVELS = Levels(1.1001, 1.09, 1.12, 0.005)
MINUTES = timedelta(minutes=15)
PAPER = Instance(symbol="EURUSD", timeframes=("M15",), feed="store")


def hand_on(
    database: Database,
    instances: Sequence[Instance],
    now: Callable[[], datetime],
    *,
    profile: Profile | None = None,
    kill_switch: KillSwitch | None = None,
    channel: Channel | None = None,
) -> CommandContext:
    """Return the reach of a person on a desk of these instances, which share a channel."""
    known, shared = profile or Profile(), channel or Channel(account=1001)
    channels = {item.channel: shared for item in instances if item.bridge != "paper"}
    settings = DeskSettings(instances=tuple(instances), channels=channels)
    return CommandContext(
        Path(database.path).parent,
        database,
        lambda: settings,
        profile=lambda _: known,
        now=now,
        environment=ENVIRONMENT,
        kill_switch=kill_switch or KillSwitch({}, database),
    )


def nudge(reach: CommandContext, name: str, price: float, share: float) -> str:
    """Move a stop by a share of its way to the price, in whole ticks; return the signal.

    Raises ConfigError as torra.trading.hand_close does.
    """
    instance = reach.settings.instance(name)
    held = reach.database.position(instance.id)
    if held is None:
        raise ConfigError(f"{name} holds nothing")
    spec = reach.profile(instance).symbol(held.symbol)
    ticks = round((held.stop + (price - held.stop) * share) / spec.tick_size)
    stop = round(ticks * spec.tick_size, spec.digits)
    return str(hand_close.stop(reach, SOMEBODY, name, price=stop).document["sid"])


@dataclass
class Market:
    """A desk on a channel with an Expert Advisor, and a person beside it."""

    folder: Path
    instance: Instance = EUR
    stage: Stage = field(init=False)
    database: Database = field(init=False)
    courier: Courier = field(init=False)

    def __post_init__(self) -> None:
        self.stage = Stage(self.folder, clock=Realtime())
        self.clock = self.stage.clock
        self.database = open_database(self.folder, self.clock.now)
        self.switch = KillSwitch({}, self.database)
        channel = None if self.instance.bridge == "paper" else "main"
        bridges = {} if channel is None else {"main": self.stage.bridge}
        self.courier = Courier(
            self.database, [RoutedInstance(self.instance, Profile(), channel)], lambda: bridges,
            self.switch, lambda: self.clock,
        )  # fmt: skip
        self.courier.open()
        self.hand = hand_on(
            self.database, [self.instance], self.clock.now, kill_switch=self.switch,
            channel=self.stage.channel,
        )  # fmt: skip
        self.look(8, seconds=2.5)

    def look(
        self, times: int = 1, *, advisor: bool = True, seconds: float = 1.0, bid: float = 1.1
    ) -> None:
        for _ in range(times):
            self.clock.pass_time(seconds)
            self.stage.ea.quote("EURUSD.m", bid, round(bid + 0.0001, 5), self.clock.now())
            if advisor:
                self.stage.advise()
            self.courier.turn()

    def open(self, lots: float = 0.1) -> str:
        """Decide an opening; return its id."""
        return self.decide(SignalDraft("open", "BUY", lots, LEVELS))

    def fill(self, lots: float = 0.1) -> str:
        """Decide an opening and let the broker fill it; return its id."""
        sid = self.open(lots)
        self.look(8, seconds=2.5)
        return sid

    def compare(self) -> None:
        """Let time pass until the books were compared."""
        self.look(18, seconds=5.0)

    def decide(self, draft: SignalDraft) -> str:
        now = self.clock.now()
        with self.database.transaction():
            row = signal_bridge.write_signal(
                self.database, draft, instance=self.instance.id, symbol="EURUSD", timeframe="M15",
                bar_time=now, created=now, expires=now + timedelta(seconds=120), authority="tick",
                bridge=self.instance.route,
            )  # fmt: skip
        return str(row["sid"])

    def close(self, name: str = "EURUSD") -> Any:
        return hand_close.close(self.hand, SOMEBODY, name).document["positions"]

    def row(self, sid: str) -> dict[str, Any]:
        row = self.database.signal(sid)
        assert row is not None
        return row

    def state(self, sid: str) -> str:
        return str(self.row(sid)["state"])

    def bar(self, price: float = 1.1) -> None:
        """Live through the next bar on paper."""
        spec = self.hand.profile(self.instance).symbol("EURUSD")
        cursor = self.database.paper_cursor(self.instance.id)
        begin = (cursor or self.clock.now().replace(minute=0, second=0)) + MINUTES
        self.clock.set(max(self.clock.now(), begin + MINUTES))
        if cursor is None:
            self.database.set_paper_cursor(self.instance.id, begin - MINUTES)
            cursor = begin - MINUTES
        bars = [Bar(begin, price, price + 0.001, price - 0.001, price)]
        assert spec.digits == 5
        with self.database.transaction():
            paper_tick.advance(
                self.instance, Profile(), self.database, bars, cursor, begin + MINUTES
            )

    def held(self) -> int:
        return len(self.stage.ea.positions())

    def quoted(self, bid: float = 1.1) -> None:
        """Let the desk know the price of now by a bar, as where no broker quotes."""
        frame = walk(300, 5)
        frame = frame / frame["close"].iloc[-1] * bid
        step = timedelta(minutes=15)
        end = self.clock.now().replace(minute=0, second=0, microsecond=0) - step
        frame.index = [end - step * back for back in reversed(range(len(frame)))]
        self.database.store_bars(self.instance.id, "M15", frame)


def live_home(folder: Path) -> Path:
    """Return a home whose euro is traded with real money through a channel."""
    (folder / "shared").mkdir()
    euro = {"symbol": "EURUSD", "feed": "store", "bridge": "torra_files"}
    channel = {"folder": str(folder / "shared"), "account": 1001, "live": True}
    return desk_file(folder, euro, channels={"main": channel})


def torra(home: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), *words], catch_exceptions=False)


def doctor_rows(home: Path, name: str) -> list[dict[str, str]]:
    """Return what `torra doctor` finds under a name."""
    checks = json.loads(torra(home, "doctor", "--json").stdout)["checks"]
    return [check for check in checks if check["name"] == name]


def held_at(home: Path) -> str:
    """Let the home hold a position; return the id of its opening."""
    database, now = open_home(home), System().now()
    with database.transaction():
        row = signal_bridge.write_signal(
            database, SignalDraft("open", "BUY", 0.1, LEVELS), instance="EURUSD", symbol="EURUSD",
            timeframe="M15", bar_time=now, created=now, expires=now + MINUTES, authority="tick",
            bridge="torra_files main",
        )  # fmt: skip
        for state in ("PUBLISHED", "FILLED"):
            database.move_signal(row["sid"], state)
    database.close()
    return str(row["sid"])
