"""A desk that sends through the folder of an Expert Advisor, with everything of it in one home.

    home/torra.db        the database
    home/control/HALT    the kill switch
    home/main/           the channel's folder

`prepare(home)` leaves the home just before the tick that sends its first order; a SendingDesk picks
it up there, with the Advisor alive on the other side and its broker beside the home. All
clocks are set by hand: between two calls no time passes.
"""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.faults.lives import TRADING
from tests.worlds import desks
from tests.worlds.channels import ACCOUNT, ENVIRONMENT, KEY, HandClock, new_advisor
from torra.bridges.torra.bridge import TorraFiles
from torra.bridges.torra.messages import DeskState, Signal, decode
from torra.config import Channel, Instance, Profile
from torra.desk.timers import next_close
from torra.home import HALT
from torra.trading.courier import Courier, RoutedInstance
from torra.trading.kill_switch import KillSwitch

BTC = Instance(symbol="BTCUSD", timeframes=("M15",), bridge="torra_files", channel="main")
MARKET = {"digits": 2, "tick_size": 0.01, "tick_value": 0.01, "contract": 1, "filling": 3}
SPREAD = 15.0
MOST_STEPS = 60


class DeskClock(HandClock):
    """A clock set by hand that takes its own time for real time: the advisor lives by it."""

    def real_now(self) -> datetime:
        return self.now()


class SendingDesk:
    """One desk, its channel, and the Expert Advisor on the other side, awake and ready."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "main"
        self.books = database = desks.open_database(home)
        self.clock = DeskClock(database.desk_time() or TRADING)
        channel = Channel(folder=str(self.folder), account=ACCOUNT)
        self.switch = KillSwitch(
            {"desk": home / HALT, "main": self.folder / "control" / "HALT"}, database
        )
        self.bridge = TorraFiles(
            "main", channel, self.clock, environment=ENVIRONMENT, sleep=lambda _: None
        )
        self.courier = Courier(
            database, [RoutedInstance(BTC, Profile(), "main")], lambda: {"main": self.bridge},
            self.switch, lambda: self.clock,
        )  # fmt: skip
        self.courier.open()
        self.desk = desks.open_desk(
            home,
            (BTC,),
            route=self.courier,
            kill_switch=self.switch,
            make_clock=lambda _: self.clock,
        )
        self.database = self.desk.database
        desks.open_for_work(self.desk)
        self.ea = new_advisor(self.folder, broker=home.with_name(f"{home.name}.broker"))
        self.ea.symbol("BTCUSD", **MARKET)
        self.live()

    def live(self, seconds: int = 3) -> None:
        """Let time pass for both sides, a second at a time."""
        for _ in range(seconds):
            self.clock.pass_time(1.0)
            self._advise()
            self.courier.turn()

    def come_to_close(self) -> None:
        """Move to the next close; the advisor has just given a sign of life."""
        moment = next_close(self.clock.now(), BTC.timeframes)
        self.clock.pass_time((moment - self.clock.now()).total_seconds())
        self._advise()

    def work(self) -> None:
        """Run what is due, and one turn of the courier: what a fault is to meet."""
        self.desk.wake("BTCUSD")
        self.courier.turn()

    def step(self) -> None:
        """Go through the next close."""
        self.come_to_close()
        self.work()

    def close(self) -> None:
        self.ea.kill()
        self.courier.close()
        self.books.close()
        self.database.close()

    def _advise(self) -> None:
        now = self.clock.now()
        price = float(desks.sample().bars("BTCUSD", "M15", now, 1)["close"].iloc[-1])
        self.ea.quote("BTCUSD", price, price + SPREAD, now)
        self.ea.step(now, self.clock.monotonic())

    # --- what is there ----------------------------------------------------------------------------

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.database.connection().execute(sql).fetchall()

    def done(self) -> int:
        """How many ticks are finished."""
        return int(self.rows("SELECT count(*) FROM ticks WHERE state = 'done'")[0][0])

    def handed_over(self) -> dict[str, Signal]:
        """Return by id what was ever put into the channel, each file whole and signed."""
        found = {}
        for place in ("inbox", "work", "cancelled", "expired"):
            for path in (self.folder / place).glob("*.json"):
                signal = decode(path.read_bytes(), Signal, KEY)
                found[signal.sid] = signal
        answers = [*(self.folder / "done").glob("*.json"), *(self.folder / "arch").glob("*.json")]
        return found | {path.stem.split("_")[1]: json.loads(path.read_bytes()) for path in answers}

    def half_files(self) -> list[str]:
        """Return what lies there that is not whole; the files that can be read are."""
        state = self.folder / "state" / "torra.json"
        if state.exists():
            decode(state.read_bytes(), DeskState, KEY)
        return [path.name for path in (self.folder / "tmp").iterdir() if path.is_file()]


def prepare(home: Path) -> None:
    """Make the home of a desk just before the tick that sends its first order."""
    home.mkdir(parents=True)
    before = home.with_name(f"{home.name}.before")
    desk = SendingDesk(home)
    for _ in range(MOST_STEPS):
        _keep(desk, before)
        desk.step()
        if desk.handed_over():
            break
        desk.live()
    else:
        raise AssertionError("no tick of the sample sends an order any more")
    desk.close()
    shutil.rmtree(home)
    before.rename(home)


def _keep(desk: SendingDesk, before: Path) -> None:
    """Copy the home with all of its log in the main file."""
    shutil.rmtree(before, ignore_errors=True)
    desk.database.show_life(desk.clock.now())
    desk.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copytree(desk.home, before)
