"""Torra and the Expert Advisor, killed between verdict and acknowledgement, one of them or both.

Two processes share a real folder: one writes a decision and carries it, one is the Expert Advisor
with a broker whose books outlive it. Each case kills one or both, at a named point or at a random
moment, lets two healthy ones finish, and looks: never two orders for a decision, nothing without an
end, and nothing lost but what is reported UNKNOWN_NOT_SENT (promise D4, R6). Some of the decisions
are a person's: a close by hand, of a position or right behind an opening.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

import signal_bridge
from instance_database import Database
from tests.doubles.compiled_ea import POINTS as EA_POINTS
from tests.doubles.compiled_ea import VARIABLE as EA_VARIABLE
from tests.doubles.compiled_ea import CompiledEa, Died, compiled
from tests.faults import kills, mortal
from tests.tries import until
from tests.worlds.channels import ENVIRONMENT, EURO, KEY, new_advisor
from tests.worlds.stores import open_database
from torra.bridges.torra.bridge import TorraFiles
from torra.clock import System, floor
from torra.config import Channel, Instance, Profile
from torra.failpoints import ON_THE_WAY, VARIABLE, failpoint, strike
from torra.home import HALT
from torra.trading import courier as courier_module
from torra.trading import reconciliation
from torra.trading.courier import Courier, RoutedInstance
from torra.trading.kill_switch import KillSwitch
from torra.verdict import hand_orders
from torra.verdict.risk_engine import Levels, SignalDraft
from torra.verdict.signal_states import UNEXECUTED

NAMES = tuple(f"E{number}" for number in range(6))
FINAL = ("FILLED", "CLOSED", *UNEXECUTED)
HURRY = 100.0
"""How much faster the Advisor's timers run: it looks 0.15 s for an order whose marker it finds."""

LIFE = timedelta(seconds=120)

DOOM = 4.0
"""Seconds in which a child must have come to the point at which it dies."""

NEVER = 30.0
"""Seconds in which every case must have come to its end."""

RANDOM = "random"
ALONE = [*((point, "") for point in ON_THE_WAY), *(("", point) for point in EA_POINTS)]
CASES = [
    *ALONE,
    *product(ON_THE_WAY, EA_POINTS),
    *product((RANDOM, ""), (RANDOM,)),
    (RANDOM, ""),
]
"""Which point Torra and which point the Advisor dies at; "" = it lives."""


@dataclass(frozen=True)
class Decision:
    """What Torra is to write, and the signals that come of it; `leaves` is closed by a hand."""

    instance: str
    bar_time: datetime
    draft: SignalDraft | None
    leaves: str
    sids: tuple[str, ...]


class Orders:
    """One channel folder, one database, one account, and what became of each signal."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.dice, self.program = folder, dice, compiled()
        self.channel = Channel(folder=str(folder / "channel"), account=1001)
        self.states: dict[str, str] = {}
        self.taken_back: set[str] = set()
        self.kills, self.ends, self.reached = Counter[str](), Counter[str](), Counter[str]()
        self.left: list[tuple[str, str]] = []

    def database(self) -> Database:
        return open_database(self.folder, System().real_now)

    def terminal(self, key: str = KEY) -> CompiledEa:
        """Return the Advisor and its broker; without a key it does nothing."""
        terminal = new_advisor(self.folder / "channel", key=key, program=self.program)
        terminal.symbol("EURUSD", **EURO)
        terminal.quote("EURUSD", 1.1, 1.1001, time.time())
        return terminal

    def torra(self, decision: Decision, *, healthy: bool) -> None:
        """Write the decision unless it is written, then carry until killed."""
        if healthy:
            mortal.watch_points(pytest.MonkeyPatch(), self.note)
        reconciliation.SETTLE_SECONDS = 0.0  # type: ignore[misc]  # the broker shows all at once
        courier_module.RECONCILE_SECONDS = 1.0  # type: ignore[misc]  # a minute is long here
        database = self.database()
        switch = KillSwitch({"desk": self.folder / HALT}, database)
        bridge = TorraFiles("main", self.channel, System(), environment=ENVIRONMENT)
        people = [
            RoutedInstance(
                Instance(
                    name=name, symbol="EURUSD", timeframes=("M15",), feed="store",
                    bridge="torra_files",
                ),
                Profile(),
                "main",
            )
            for name in NAMES
        ]  # fmt: skip
        courier = Courier(database, people, lambda: {"main": bridge}, switch, System)
        courier.open()
        if database.signal(decision.sids[0]) is None:
            with database.transaction():
                write(database, decision)
            failpoint("committed")
        while True:
            courier.turn()
            time.sleep(0.01)

    def note(self, point: str) -> None:
        """Remember across processes that a point was passed."""
        (self.folder / f"{point}.passed").touch()

    def advisor(self) -> None:
        """Be the Expert Advisor until killed."""
        with suppress(Died):  # at its point it kills itself
            terminal = self.terminal()
            while True:
                terminal.step(time.time(), time.monotonic() * HURRY)
                time.sleep(0.01)
        strike()

    def case(self, number: int) -> None:
        """Run one decision through the next kills of all, in an order that is drawn."""
        self.left = self.left or self.dice.sample(CASES, len(CASES))
        self.dies(number, *self.left.pop())

    def dies(self, number: int, ours: str, theirs: str) -> None:
        """Run one decision through its kills and to its end.

        Who is killed comes back, and who is not lives on.
        """
        database = self.database()
        decision = self.decide(database, number)
        points = {"torra": ours, "advisor": theirs}
        torra = partial(self.torra, decision, healthy=not ours)
        lives = {
            "torra": kills.begin(torra, name_of(ours), VARIABLE),
            "advisor": kills.begin(self.advisor, name_of(theirs), EA_VARIABLE),
        }
        doomed = [name for name, point in points.items() if point]
        if RANDOM in points.values():
            time.sleep(self.dice.uniform(0.0, 0.8))
        else:  # the death of one may keep the other from its point
            for name in doomed:
                lives[name].join(DOOM / len(doomed))
        self.reached.update(points[name] for name in doomed if not lives[name].is_alive())
        self.kills.update(doomed)
        for name in doomed:
            end(lives[name])
        if ours:
            lives["torra"] = kills.begin(partial(self.torra, decision, healthy=True))
        if theirs:
            lives["advisor"] = kills.begin(self.advisor)
        until(lambda: all(over(database, sid) for sid in decision.sids), NEVER, f"ends of {points}")
        for process in lives.values():
            end(process)
        rows = [database.signal(sid) for sid in decision.sids]
        self.states |= {row["sid"]: row["state"] for row in rows if row}
        database.close()

    def decide(self, database: Database, number: int) -> Decision:
        """Open where nothing is held, close where something is: the next decision of an instance.

        Every second close is a person's, and every third opening is left before its end is known.
        """
        name = NAMES[number % len(NAMES)]
        position = database.position(name)
        bar_time = floor(System().now(), "M15") - timedelta(minutes=15 * (number + 1))
        draft: SignalDraft | None = None
        leaves, sids = "", []
        if position is None:
            draft = SignalDraft("open", "BUY", 0.1, Levels(1.1001, 1.09, 1.12, 0.005))
        elif number // len(NAMES) % 2:
            draft = SignalDraft("close", "SELL", position.lots, closes=position.signal_id)
        else:
            leaves = position.signal_id
        if draft is not None:
            sids.append(
                signal_bridge.signal_id(
                    name, "EURUSD", "M15", bar_time, kind=draft.kind, side=draft.side
                )
            )
        if position is None and number % 3 == 1:
            leaves = sids[0]
            self.taken_back.add(leaves)
        if leaves:
            closes = database.closes_of(name, leaves)
            before = [row for row in closes if row["authority"] == "person"]
            sids.append(hand_orders.manual_order_id(leaves, "close", 1 + len(before)))
            self.taken_back.add(sids[-1])
        return Decision(name, bar_time, draft, leaves, tuple(sids))

    def whole(self) -> None:
        """Compare every decision with what the broker executed."""
        with self.terminal(key="") as terminal:
            executed = Counter(deal["comment"] for deal in terminal.deals() if deal["comment"])
        for sid, state in self.states.items():
            orders = executed[sid]
            assert orders <= 1, f"{sid} was executed {orders} times"
            assert orders == (state in ("FILLED", "CLOSED")), f"{sid} ended {state}"
            if not orders:
                allowed = {"UNKNOWN_NOT_SENT", *(["CANCELLED"] if sid in self.taken_back else [])}
                assert state in allowed, f"{sid} was lost: {state}"
        self.ends.update(self.states.values())
        database = self.database()
        assert database.trading_state() == "ACTIVE", database.alarms()
        database.close()
        passed = {path.stem for path in self.folder.glob("*.passed")}
        assert passed <= set(ON_THE_WAY), f"Torra passes {passed - set(ON_THE_WAY)} too"


def name_of(point: str) -> str:
    return point if point != RANDOM else ""


def end(process: BaseProcess) -> None:
    """Kill a process, if it has not killed itself, and see that it did not fail."""
    process.kill()
    assert kills.await_end(process), "a child ended by itself"


def over(database: Database, sid: str) -> bool:
    """Return whether a signal has its end and, where it closed something, the books agree."""
    row = database.signal(sid)
    if row is None or row["state"] not in FINAL:
        return False
    if row["kind"] != "close" or row["state"] != "FILLED":
        return True
    opening = database.signal(row["closes"])
    return opening is None or opening["state"] == "CLOSED"


def write(database: Database, decision: Decision) -> None:
    now = System().now()
    if decision.draft is not None:
        signal_bridge.write_signal(
            database, decision.draft, instance=decision.instance, symbol="EURUSD",
            timeframe="M15", bar_time=decision.bar_time, created=now,
            expires=now + LIFE, authority="tick", bridge="torra_files",
        )  # fmt: skip
    if decision.leaves:
        row = database.signal(decision.leaves)
        assert row is not None
        hand_orders.write_hand_close(database, row, now=now, life=LIFE)
