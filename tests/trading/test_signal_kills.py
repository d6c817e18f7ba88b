"""Torra and the Expert Advisor are killed, alone and together, between verdict and acknowledgement.

Two child processes share a real folder: one writes a decision and carries it, one drives the
Expert Advisor, which dies with it, at a broker whose books outlive both. Each case kills one or
both, at a named point or at a random moment, lets two healthy ones finish, and looks: never two
orders for a decision, nothing without an end, and nothing lost but what is reported
UNKNOWN_NOT_SENT (promise D4, R6).
Some of the decisions are a person's: a close by hand, of a position or right behind an opening.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import signal_bridge
from instance_database import Database
from tests.doubles.compiled_ea import POINTS as EA_POINTS
from tests.doubles.compiled_ea import VARIABLE as EA_VARIABLE
from tests.doubles.compiled_ea import CompiledEa, Died, compiled
from tests.worlds.channels import ENVIRONMENT, EURO, KEY, new_advisor
from tests.worlds.stores import open_database
from torra.bridges.torra.bridge import TorraFiles
from torra.clock import System, floor
from torra.config import Channel, Instance, Profile
from torra.failpoints import ON_THE_WAY, VARIABLE, failpoint
from torra.home import HALT
from torra.trading import courier as courier_module
from torra.trading import reconciliation
from torra.trading.courier import Addressee, Courier
from torra.trading.kill_switch import KillSwitch
from torra.verdict.risk_engine import Levels, SignalDraft
from torra.verdict.signal_states import UNEXECUTED

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

POINTS = ON_THE_WAY
NAMES = tuple(f"E{number}" for number in range(6))
INSTANCES = {
    name: Instance(
        name=name, symbol="EURUSD", timeframes=("M15",), feed="store", bridge="torra_files"
    )
    for name in NAMES
}
FINAL = ("FILLED", "CLOSED", *UNEXECUTED)
HURRY = 100.0
"""How much faster the Advisor's timers run: it looks 0.15 s for an order whose marker it finds."""

LIFE = timedelta(seconds=120)

DOOM = 1.5
"""Seconds in which a child must have come to the point at which it dies."""

NEVER = 30.0
"""Seconds in which every case must have come to its end."""


@dataclass
class World:
    """One channel folder, one database, one account, and what was decided."""

    folder: Path
    decided: list[str] = field(default_factory=list)
    taken_back: set[str] = field(default_factory=set)
    kills: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    program: Path = field(default_factory=compiled)

    @property
    def channel(self) -> Channel:
        return Channel(folder=str(self.folder / "channel"), account=1001)

    def database(self) -> Database:
        return open_database(self.folder, System().real_now)

    def terminal(self, key: str = KEY) -> CompiledEa:
        """Return the Advisor and its broker; without a key it does nothing."""
        terminal = new_advisor(self.folder / "channel", key=key, program=self.program)
        terminal.symbol("EURUSD", **EURO)
        terminal.quote("EURUSD", 1.1, 1.1001, time.time())
        return terminal

    def torra(self, decision: dict[str, Any]) -> None:
        """Write the decision unless it is written, then carry until killed."""
        reconciliation.SETTLE_SECONDS = 0.0  # type: ignore[misc]  # the broker shows all at once
        courier_module.RECONCILE_SECONDS = 1.0  # type: ignore[misc]  # a minute is long here
        database = self.database()
        switch = KillSwitch({"desk": self.folder / HALT}, database)
        bridge = TorraFiles("main", self.channel, System(), environment=ENVIRONMENT)
        people = [Addressee(item, Profile(), "main") for item in INSTANCES.values()]
        courier = Courier(database, people, lambda: {"main": bridge}, switch, System)
        courier.open()
        if database.signal(decision["sid"]) is None:
            with database.transaction():
                write(database, decision)
            failpoint("committed")
        asked = asked_to_stop()
        while not asked:
            courier.turn()
            time.sleep(0.01)
        end_here()

    def advisor(self) -> None:
        asked = asked_to_stop()
        with suppress(Died):  # at its point it kills itself
            terminal = self.terminal()
            while not asked:
                terminal.step(time.time(), time.monotonic() * HURRY)
                time.sleep(0.01)
        end_here()


def write(database: Database, decision: dict[str, Any]) -> None:
    now = System().now()
    if decision["draft"] is not None:
        signal_bridge.write_signal(
            database, decision["draft"], instance=decision["instance"], symbol="EURUSD",
            timeframe="M15", bar_time=decision["bar_time"], created=now,
            expires=now + LIFE, authority="tick", bridge="torra_files",
        )  # fmt: skip
    if decision["leaves"]:
        row = database.signal(decision["leaves"])
        assert row is not None
        signal_bridge.write_hand_close(database, row, now=now, life=LIFE)


def start(work: Callable[[], None], variable: str = "", point: str = "") -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        if point:
            os.environ[variable] = point
        work()
    finally:
        os._exit(3)


def asked_to_stop() -> list[int]:
    """Return a list that is filled when this child is asked to stop between two steps."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    return asked


def end_here() -> None:
    """End this child as all of them end."""
    os.kill(os.getpid(), signal.SIGKILL)


def stop(pid: int, *, within_a_step: bool = True) -> None:
    """Kill a child, if it has not killed itself, and see that it did not fail."""
    os.kill(pid, signal.SIGKILL if within_a_step else signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "a child ended by itself"


def ended_within(pids: list[int], seconds: float) -> list[int]:
    """Wait until all children are dead; return those that are not."""
    end = time.monotonic() + seconds
    left = list(pids)
    while left and time.monotonic() < end:
        left = [pid for pid in left if not dead(pid)]
        time.sleep(0.005)
    return left


def dead(pid: int) -> bool:
    """Return whether a child is dead, and leave it to be waited for."""
    return os.waitid(os.P_PID, pid, HOW) is not None


HOW = getattr(os, "WEXITED", 0) | getattr(os, "WNOHANG", 0) | getattr(os, "WNOWAIT", 0)


def decide(world: World, database: Database, number: int) -> dict[str, Any]:
    """Open where nothing is held, close where something is: the next decision of an instance.

    Every second close is a person's, and every third opening is left before its end is known.
    """
    name = NAMES[number % len(NAMES)]
    held = database.position(name)
    bar_time = floor(System().now(), "M15") - timedelta(minutes=15 * (number + 1))
    draft: SignalDraft | None
    if held is None:
        draft = SignalDraft("open", "BUY", 0.1, Levels(1.1001, 1.09, 1.12, 0.005))
    elif number // len(NAMES) % 2:
        draft = SignalDraft("close", "SELL", held.lots, closes=held.signal_id)
    else:
        draft = None
    leaves, sids = "", []
    if draft is not None:
        sids.append(
            signal_bridge.signal_id(
                name, "EURUSD", "M15", bar_time, kind=draft.kind, side=draft.side
            )
        )
    if draft is None and held is not None:
        leaves = held.signal_id
    elif held is None and number % 3 == 1:
        leaves = sids[0]
        world.taken_back.add(leaves)
    if leaves:
        before = [row for row in database.closes_of(name, leaves) if row["authority"] == "person"]
        sids.append(signal_bridge.hand_id(leaves, "close", 1 + len(before)))
        world.taken_back.add(sids[-1])
    world.decided += sids
    about = {"instance": name, "bar_time": bar_time, "draft": draft, "leaves": leaves}
    return {"sid": sids[0], "sids": sids, **about}


def case(world: World, number: int, ours: str, theirs: str, dice: random.Random) -> dict[str, str]:
    """Run one decision through its kills and to its end; return what its signals came to."""
    database = world.database()
    decision = decide(world, database, number)
    doomed = []
    for side, point in (("torra", ours), ("ea", theirs)):
        work = (lambda: world.torra(decision)) if side == "torra" else world.advisor
        variable = VARIABLE if side == "torra" else EA_VARIABLE
        named = point if point != "random" else ""
        doomed.append(start(work, variable, named))
    waiting = [pid for pid, point in zip(doomed, (ours, theirs), strict=True) if point in NAMED]
    if "random" in (ours, theirs):
        time.sleep(dice.uniform(0.0, 0.8))
    elif len(waiting) == 2:  # the death of one keeps the other from its point
        ended_within(waiting[:1], DOOM / 2)
        ended_within(waiting, DOOM / 2)
    else:
        ended_within(waiting, DOOM)
    world.reached.update(
        point
        for pid, point in zip(doomed, (ours, theirs), strict=True)
        if pid in waiting and dead(pid)
    )
    for pid, point in zip(doomed, (ours, theirs), strict=True):
        stop(pid, within_a_step=bool(point))  # who lives is not killed in the middle of an order
    world.kills["torra"] += bool(ours)
    world.kills["ea"] += bool(theirs)
    healthy = [start(lambda: world.torra(decision)), start(world.advisor)]
    ends = {sid: await_end(database, sid) for sid in reversed(decision["sids"])}
    for pid in healthy:
        stop(pid)
    database.close()
    return ends


NAMED = frozenset((*POINTS, *EA_POINTS))


def await_end(database: Database, sid: str) -> str:
    """Wait until a signal has its end and, where it closed something, the books agree."""
    end = time.monotonic() + NEVER
    state = ""
    while time.monotonic() < end:
        row = database.signal(sid)
        state = row["state"] if row else ""
        opening = database.signal(row["closes"]) if row and row["kind"] == "close" else None
        open_still = opening is not None and state == "FILLED" and opening["state"] != "CLOSED"
        if state in FINAL and not open_still:
            return str(state)
        time.sleep(0.01)
    return f"no end: {state or 'not written'}"


def check(world: World, ends: dict[str, str]) -> None:
    """Compare every decision with what the broker executed."""
    with world.terminal(key="") as terminal:
        executed = Counter(deal["comment"] for deal in terminal.deals() if deal["comment"])
    for sid in world.decided:
        orders = executed[sid]
        state = ends[sid]
        assert orders <= 1, f"{sid} was executed {orders} times"
        assert state in FINAL, f"{sid}: {state}"
        if state in ("FILLED", "CLOSED"):
            assert orders == 1, f"{sid} is {state}, and the broker knows nothing of it"
        else:
            assert orders == 0, f"{sid} ended {state}, and the broker executed it"
            allowed = {"UNKNOWN_NOT_SENT"} | ({"CANCELLED"} if sid in world.taken_back else set())
            assert state in allowed, f"{sid} was lost: {state}"
    database = world.database()
    assert database.trading_state() == "ACTIVE", database.alarms()
    database.close()


CASES = [
    *((point, "") for point in POINTS),
    *(("", point) for point in EA_POINTS),
    *product(POINTS, EA_POINTS),
    *product(("random", ""), ("random",)),
    ("random", ""),
]
"""Which point Torra and which point the Advisor dies at; "" = it lives."""


@pytest.mark.parametrize("part", range(4))
def test_no_kill_doubles_or_loses_an_order(
    part: int, tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    dice = random.Random(20261122 + part)
    wanted = scaled(250, least=2)
    world = World(tmp_path)
    ends: dict[str, str] = {}
    number = 0
    cases: list[tuple[str, str]] = []
    while sum(world.kills.values()) < wanted:
        if not cases:
            cases = dice.sample(CASES, len(CASES))
        ours, theirs = cases.pop()
        ends |= case(world, number, ours, theirs, dice)
        number += 1
    check(world, ends)
    told = ", ".join(f"{number:,} {end}" for end, number in sorted(Counter(ends.values()).items()))
    killed = f"{world.kills['torra']} kills of Torra and {world.kills['ea']} of the advisor"
    points = f"{len(world.reached)} points died at"
    record_property("seen", f"{killed} over {len(ends)} orders: {told}; {points}")


ALONE = [*((point, "") for point in POINTS), *(("", point) for point in EA_POINTS)]
BY_DAY = [("marked", ""), ("", "before_send")]


def test_every_point_is_met(tmp_path: Path, scaled: Any) -> None:
    """Each point alone kills whoever comes to it: a name that nobody passes would prove nothing."""
    for ours, theirs in ALONE if scaled(len(ALONE), least=1) > 1 else BY_DAY:
        world = World(tmp_path / (ours or theirs))
        ends = case(world, 0, ours, theirs, random.Random(0))
        (state,) = ends.values()
        assert world.reached == Counter([ours or theirs])
        check(world, ends)
        assert (state == "UNKNOWN_NOT_SENT") == (theirs in ("intent", "before_send"))
