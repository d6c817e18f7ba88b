"""A home, a channel, a broker, and the lives of a desk in it, all on a clock that is set by hand.

The desk, its database, courier, kill switch and bridge are the real ones, put together as
torra.desk.wiring does it but for the threads: whoever plays gives each its turn. The other side of
the channel is the Expert Advisor. A life ends politely (`stop`), killed (`Crash`), or it
freezes and thaws when another has taken over. Market and models play along; what must hold
meanwhile is desk_witness's.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agents.contracts import Completion, ModelUnavailable, Request
from tests.doubles import scripted
from tests.doubles.compiled_ea import CompiledEa, Died
from tests.faults.desk_market import OPENING, Feed, price_at
from tests.faults.mortal import STAGE, Crash, Doom, MortalDatabase, MortalDisk, open_mortal
from tests.worlds.channels import ENVIRONMENT, new_advisor
from tests.worlds.stores import open_database
from torra.bridges.torra.bridge import TorraFiles
from torra.clock import Simulated
from torra.config import SYMBOLS, Channel, Instance, Profile, validate
from torra.desk.roster import InstanceRuntime, ProfileReload
from torra.desk.schedule import Desk
from torra.home import HALT
from torra.services import Services
from torra.trading.courier import Courier, RoutedInstance
from torra.trading.kill_switch import KillSwitch
from torra_trader import TickOutcome

GOLD = Instance(symbol="XAUUSD", broker_symbol="XAUUSD.m", feed="store", bridge="torra_files")
EURO = Instance(
    symbol="EURUSD", broker_symbol="EURUSD.m", timeframes=("M15",), feed="store",
    bridge="torra_files",
)  # fmt: skip
COIN = Instance(symbol="BTCUSD", timeframes=("M15",), feed="store")
INSTANCES = {item.id: item for item in (GOLD, EURO, COIN)}
ON_CHANNEL = {item.id: item for item in (GOLD, EURO)}
ACCOUNT = 1001
AWAKE = 0.0


def profile(**changes: Any) -> Profile:
    """Return a profile that trades often: what is quick to turn decides alone."""
    values: dict[str, Any] = {
        "thresholds": {"buy": 0.05, "sell": 0.05},
        "sentiment_weights": {
            "price_action": 0.5, "momentum": 0.5, "key_levels": 0.0, "structure": 0.0, "ath": 0.0
        },
        **changes,
        # agents that lean against an opening leave little of it, so there has to be much
        "risk": {"capital": 100_000.0, **changes.get("risk", {})},
    }  # fmt: skip
    return validate(Profile, values, "a test")


PROFILES = {
    "plain": profile(risk={"daily_loss_cap_pct": 8.0}),
    "reverse": profile(on_opposite="reverse", risk={"daily_loss_cap_pct": 8.0}),
    "hold": profile(on_opposite="hold"),
    "approve": profile(execution="approve", on_opposite="reverse"),
    "off": profile(execution="off"),
    "one position": profile(risk={"max_positions": 1, "cooldown_bars": 2}),
    "few signals": profile(
        on_opposite="reverse", risk={"max_signals_per_hour": 2, "max_same_openings_per_hour": 1}
    ),
    "little money": profile(risk={"daily_loss_cap_pct": 0.4, "risk_per_trade_pct": 0.3}),
}
"""What a person may set, by name; the first is what the desk begins with."""

MOODS: dict[str, Callable[[Request], Any]] = {
    "honest": scripted.honest,
    "up": lambda request: turned(request, 0.3),
    "down": lambda request: turned(request, -0.3),
    "garbage": lambda request: "I would rather not say {",
    "huge": lambda request: turned(request, 1e300),
    "dead": lambda request: ModelUnavailable("error", "down", again=None),
    "veto": lambda request: (
        scripted.ruling(request, veto=True, reason_code="OTHER")
        if request.role.kind == "gate"
        else scripted.honest(request)
    ),
}
"""What a vendor may be like."""


def turned(request: Request, value: float) -> dict[str, Any]:
    """Return a reply that leans one way."""
    if request.role.kind == "gate":
        return scripted.ruling(request)
    return scripted.report(request, value=value)


class Clock(Simulated):
    """Wall clock and monotonic time of one host, set by hand; the wall clock may jump."""

    rate: float | None = 1.0  # type: ignore[assignment]
    elapsed = 1000.0

    def monotonic(self) -> float:
        return self.elapsed

    def real_now(self) -> datetime:
        return self.now()

    def real_time_of(self, moment: datetime) -> datetime:
        return moment

    def sleep(self, seconds: float) -> None:
        self.pass_by(seconds)

    def pass_by(self, seconds: float) -> None:
        self.elapsed += seconds
        self.set(self.now() + timedelta(seconds=seconds))


class Vendor:
    """Answers as its mood is, at once."""

    name = "scripted"

    def __init__(self) -> None:
        self.mood = "honest"
        self._voice = scripted.Scripted()

    def submit(self, request: Request) -> Future[Completion]:
        return self._voice._play(MOODS[self.mood](request), request)


class World:
    """Everything that outlives a desk."""

    def __init__(self, folder: Path, seen: Counter[str]) -> None:
        self.folder = folder
        self.seen = seen
        self.clock = Clock(OPENING)
        self.latest = OPENING
        self.feed, self.vendor = Feed(), Vendor()
        self.channel = Channel(folder=str(folder / "main"), account=ACCOUNT)
        self.files = {"desk": folder / HALT, "main": folder / "main" / HALT}
        self.letters: dict[str, bytes] = {}
        self.ea = self.new_ea()
        self.quote()
        self.asleep_until = AWAKE
        self.saved = "plain"
        self.done: Counter[str] = Counter()
        self.life: Life | None = None
        self.frozen: list[Life] = []
        self.observer = self._observe()

    # --- the other side ---------------------------------------------------------------------------

    def new_ea(self) -> CompiledEa:
        advisor = new_advisor(self.folder / "main")
        for item in INSTANCES.values():
            spec = SYMBOLS[item.symbol]
            terms = ("digits", "tick_size", "tick_value", "lot_min", "lot_step", "lot_max")
            advisor.symbol(
                item.broker_name, filling=3, **{term: getattr(spec, term) for term in terms}
            )
        return advisor

    def advise(self, seconds: float = 0.0) -> None:
        """Let the Advisor have its timer event, unless it sleeps."""
        if self.clock.monotonic() < self.asleep_until:
            return
        for path in (self.folder / "main" / "inbox").glob("*.json"):
            self.letters[path.name] = path.read_bytes()
        try:
            self.ea.step(self.clock.now(), self.clock.monotonic())
        except Died:
            self.seen["advisor dies"] += 1
            self.ea.restart()

    def quote(self) -> None:
        """Bring the broker's market to where the feed stands; stops and targets are met."""
        now = self.clock.now()
        for item in INSTANCES.values():
            spec, bid = SYMBOLS[item.symbol], price_at(item.symbol, now)
            self.ea.quote(item.broker_name, bid, round(bid + spec.spread, spec.digits), now)

    def pass_time(self, seconds: float) -> None:
        """Let time pass for everybody; the desk shows life."""
        self.clock.pass_by(seconds)
        self.latest = max(self.latest, self.clock.now())
        self.quote()
        self.advise()
        if self.life is not None:
            self.life.keep()

    # --- lives ------------------------------------------------------------------------------------

    def start(self) -> bool:
        """Begin a life; False when it did not come far enough to be one."""
        if self.life is None:
            self.life = Life(self)
            self.life.do(self.life.begin)
        return self.life is not None

    def bury(self, life: Life) -> None:
        """Let go of a desk that was killed."""
        if life is self.life:
            self.life = None
        if life in self.frozen:
            self.frozen.remove(life)
        if life.database is not None:
            life.database.doom = None
            life.desk.lock.release()
            life.database.close()  # the observer keeps the log from being folded in

    def freeze(self) -> None:
        """Let the process stand still, as a laptop's lid does."""
        assert self.life is not None
        self.frozen.append(self.life)
        self.life = None

    def another(self) -> MortalDatabase:
        """Open the database as another program does, which no doom hangs over."""
        return open_mortal(self.folder / "torra.db", self.clock.now, None)

    # --- looks ------------------------------------------------------------------------------------

    def _observe(self) -> sqlite3.Connection:
        open_database(self.folder, self.clock.now).close()
        connection = sqlite3.connect(self.folder / "torra.db", isolation_level=None)
        connection.row_factory = sqlite3.Row
        return connection

    def rows(self, sql: str, *values: object) -> list[sqlite3.Row]:
        return self.observer.execute(sql, values).fetchall()

    def published(self) -> set[str]:
        """Return the ids of all signals that were ever let out into the channel."""
        found = set()
        for place in ("inbox", "work", "done", "ack", "arch", "cancelled", "expired"):
            with suppress(FileNotFoundError):
                for path in (self.folder / "main" / place).iterdir():
                    found.add(path.name.split(".")[0].partition("_")[2])
        return found

    def halts(self) -> list[str]:
        """Return what halts the desk, as it lies in files and database."""
        found = [name for name, path in self.files.items() if path.exists()]
        if self.state() == "HALTED":
            found.append("database")
        if self.life is not None and self.life.switch is not None and self.life.switch._fault:
            found.append("process")
        return found

    def state(self) -> str:
        rows = self.rows("SELECT state FROM desk_state ORDER BY id DESC LIMIT 1")
        return str(rows[0]["state"]) if rows else "ACTIVE"

    def close(self) -> None:
        """End whatever lives, and let every file go."""
        for life in [*self.frozen, *([self.life] if self.life else [])]:
            self.bury(life)
        self.observer.close()
        self.ea.kill()


class Life:
    """One process: a desk with its courier, from its start to its end."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.doom = Doom(world.seen)
        self.database: MortalDatabase | None = None
        self.switch: KillSwitch | None = None
        self._walking = False

    def do(self, work: Callable[[], Any]) -> bool:
        """Let the process act; False when it died of it."""
        try:
            with STAGE.of(self.doom):
                work()
        except Crash:
            self.world.bury(self)
            return False
        return True

    def begin(self) -> None:
        """Open everything as torra.desk.wiring does, and take the lock."""
        world = self.world
        self.database = open_mortal(world.folder / "torra.db", world.clock.now, self.doom)
        self.switch = KillSwitch(world.files, self.database)
        settings = PROFILES[world.saved]
        self.courier = Courier(
            self.database,
            [
                RoutedInstance(item, settings, "main" if item.id in ON_CHANNEL else None)
                for item in INSTANCES.values()
            ],
            self._bridges,
            self.switch,
            lambda: world.clock,
        )
        self.desk = Desk(
            self.database,
            [self._setup(item, settings) for item in INSTANCES.values()],
            lambda _: world.clock,
            route=self.courier,
            kill_switch=self.switch,
        )
        self.desk.services = Services(self.courier)
        self.desk.roster.refit = ProfileReload(
            lambda old, new: replace(old, profile=new),
            lambda setup: self.courier.adopt(setup.instance.id, setup.profile),
        )
        if not self.desk.lock.acquire(0.0):
            raise Crash("refused")  # as `torra run` ends it
        self.desk._take_up()
        self.courier.open()
        self._walking = True

    def _bridges(self) -> dict[str, TorraFiles]:
        bridge = TorraFiles(
            "main", self.world.channel, self.world.clock, environment=ENVIRONMENT,
            run=MortalDisk(self.doom), sleep=lambda _: None, halts=(self.world.files["desk"],),
        )  # fmt: skip
        return {"main": bridge}

    def _setup(self, item: Instance, settings: Profile) -> InstanceRuntime:
        vendor: Any = self.world.vendor
        return InstanceRuntime(item, settings, self.world.feed, vendor, threading.Lock())

    # --- what a process does by itself ------------------------------------------------------------

    def keep(self) -> bool:
        """Let the thread look after the desk that shows its life; one that lost its lock ends."""
        return self.do(self._keep)

    def _keep(self) -> None:
        self.desk.keep()
        if self._walking and not self.desk.active:
            self.courier.close()
            self._walking = False

    def turn(self) -> bool:
        """Let the courier walk once."""
        return self.do(self._turn)

    def _turn(self) -> None:
        if self._walking:
            self.courier.turn()

    def wake(self, names: Iterable[str]) -> bool:
        """Let the timers of these instances fire."""
        return self.do(lambda: self._wake(names))

    def _wake(self, names: Iterable[str]) -> None:
        for name in names:
            for outcome in self.desk.wake(name):
                self._told(outcome)

    def _told(self, outcome: TickOutcome) -> None:
        self.world.seen[f"tick {outcome.state}"] += 1
        if outcome.state == "done":
            self.world.done[outcome.key.text] += 1

    def stop(self) -> None:
        """End politely, as a terminate signal makes it."""
        if self.do(self.desk.close):
            self.world.bury(self)
