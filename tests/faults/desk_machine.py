"""The whole desk as a state machine (S5): what happens to it is a rule, what must hold a witness.

The model's state is small: which lives there are (one that works, frozen ones), the saved profile,
whether a halt stands, what has been let out so far, and every row that was ever seen. Rules let
bars close, time pass and clocks jump; they kill, freeze, thaw, start and stop desks and the Expert
Advisor, break vendors, feeds and the broker, let a person halt, resume, decide, change the profile
and trade by hand. After each rule the witness looks
(D1, D4, R1, R4, R7); at the end everything comes to rest and is accounted for.

    seen: Counter      how often each rule ran and what it met, over all examples
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.doubles.compiled_ea import POINTS as EA_POINTS
from tests.doubles.compiled_ea import CompiledEa
from tests.faults.desk_market import OPENING, price_at
from tests.faults.desk_witness import Witness
from tests.faults.desk_world import (
    AWAKE,
    EURO,
    GOLD,
    INSTANCES,
    MOODS,
    PROFILES,
    Life,
    World,
)
from tests.faults.mortal import STAGE
from tests.worlds.channels import KEY
from torra.clock import floor
from torra.errors import ConfigError, TorraError
from torra.failpoints import POINTS
from torra.home import DESK_LOCK
from torra.tick import approval
from torra.trading import by_hand, settlement
from torra.trading.kill_switch import KillSwitch
from torra.trading.reconciliation import SETTLE_SECONDS
from torra.verdict.signal_states import signal_life

QUARTER = timedelta(minutes=15)
NAMES = tuple(INSTANCES)
PAID = ("reserved", "asked", "settled")
"""Points that only a tick comes to that pays for its answers: no tick does here."""

MET = tuple(point for point in POINTS if point not in PAID)
DROPS = tuple(point for point in MET if point != "published")
"""Where a HALT file is dropped; `published` is inside the transaction that marks, as the last act
before the halt."""

DECIDED = ("enqueued", "recorded", "finished")
"""Points in the transaction that stores what a tick has decided."""

BROKER: dict[str, tuple[Any, ...]] = {
    "lost answer": (10012, 1),
    "lost order": (10012,),
    "cancelled": (10006,),
    "requote": (10004,),
    "part": (10010, 1, -0.5),
    "shown late": (0, 1, 0.0, 4.0),
}
ODD = ("sleeps 20", "sleeps 200", "sleeps 1800", "runs twice", "file again", "answer lost")
BARS = st.sampled_from((0, 1, 1, 2))
"""How many bars close after something has happened."""

HALTS = ("desk file", "channel file", "command", "another process", "fault")


class DeskMachine(RuleBasedStateMachine):
    """One example: a home from its first start to its last comparison."""

    seen: ClassVar[Counter[str]] = Counter()
    home: ClassVar[Path] = Path(tempfile.gettempdir())

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="desk-", dir=self.home))
        (self.folder / "main").mkdir()
        self.world = World(self.folder, self.seen)
        self.witness = Witness(self.world)
        self.seen["examples"] += 1
        self.events = 0
        self.start()

    # --- what the rules have in common ------------------------------------------------------------

    @property
    def life(self) -> Life | None:
        return self.world.life

    def note(self, what: str) -> None:
        self.seen[what] += 1
        self.events += 1

    def round(self, seconds: float = 2.0) -> None:
        """Let both sides of the channel have a turn."""
        self.world.pass_time(seconds)
        if self.life is not None:
            self.life.turn()
        self.world.advise()
        self.witness.look()

    def come_to_close(self) -> None:
        """Let time pass until a moment after the next quarter's close."""
        world = self.world
        close = floor(world.clock.now(), "M15") + QUARTER
        left = (close - world.clock.now()).total_seconds()
        if left > 3.0:
            world.pass_time(left - 2.0)
            left = 2.0
        if self.life is not None:
            self.life.turn()
        world.pass_time(left + 0.01)

    def goes_on(self, bars: int, names: Iterable[str] = NAMES) -> None:
        """Let some bars close; a service manager starts a desk that has died."""
        for _ in range(bars):
            self.come_to_close()
            if self.life is None:
                self.start()
            if self.life is not None:
                self.life.wake(names)
            self.note("bars")
            self.witness.look()
            self.round()
            self.round(6.0)

    # --- time -------------------------------------------------------------------------------------

    @rule(names=st.sets(st.sampled_from(NAMES), min_size=1))
    def some_timers_fire(self, names: set[str]) -> None:
        """Let a bar close for some instances; the others are late."""
        self.note("some timers fire")
        self.goes_on(1, sorted(names))

    @rule(bars=st.integers(1, 4))
    def bars_close(self, bars: int) -> None:
        self.goes_on(bars)

    @rule(seconds=st.sampled_from((1.0, 7.0, 31.0, 62.0)), bars=BARS)
    def time_passes(self, seconds: float, bars: int) -> None:
        self.note("time passes")
        self.round(seconds)
        self.goes_on(bars)

    @precondition(lambda self: not self.hidden())
    @rule(
        seconds=st.one_of(st.integers(-7200, 7200), st.sampled_from((-1, 1, -40, 40, 3600))),
        bars=BARS,
    )
    def the_clock_jumps(self, seconds: int, bars: int) -> None:
        self.note("clock jumps back" if seconds < 0 else "clock jumps on")
        clock = self.world.clock
        clock.set(max(OPENING, clock.now() + timedelta(seconds=seconds)))
        self.round()
        self.goes_on(bars)

    def hidden(self) -> bool:
        """Return whether the broker has executed what it does not show yet."""
        return self.world.ea.broker_state()["hidden"] > 0

    @property
    def now(self) -> float:
        return self.world.clock.now().timestamp()

    # --- lives ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a desk; it is refused while one that is frozen has the lock."""
        self.note("starts")
        if not self.world.start() and self.world.frozen:
            self.note("is refused")
        self.witness.look()

    @precondition(lambda self: self.life is not None)
    @rule(start=st.integers(0, len(MET) - 1), count=st.integers(1, 3), bars=BARS)
    def dies_at_some_point(self, start: int, count: int, bars: int) -> None:
        """Die at a point that also depends on what came before.

        Of what was drawn, many examples are copies of others: with the point alone, a part of a
        night may meet 3 of them only.
        """
        self.dies_at_a_point(MET[(start + self.events) % len(MET)], count, bars)

    def dies_at_a_point(self, at: str, count: int, bars: int) -> None:
        assert self.life is not None
        self.life.doom.arm(at, count)
        self.goes_on(bars)

    @precondition(lambda self: self.life is not None)
    @rule(place=st.sampled_from(("database", "disk")), count=st.integers(1, 600), bars=BARS)
    def dies_somewhere(self, place: str, count: int, bars: int) -> None:
        assert self.life is not None
        self.life.doom.arm(place, count if place == "database" else 1 + count // 4)
        self.goes_on(bars)

    @precondition(lambda self: self.life is not None)
    @rule(politely=st.booleans(), seconds=st.sampled_from((0.0, 5.0, 200.0, 7200.0)))
    def ends(self, politely: bool, seconds: float) -> None:
        assert self.life is not None
        self.note("stops politely" if politely else "killed at rest")
        if politely:
            self.life.stop()
        else:
            self.world.bury(self.life)
        self.round(seconds)

    @precondition(lambda self: self.life is not None and not self.world.frozen)
    @rule(late=st.booleans(), bars=BARS)
    def freezes(self, late: bool, bars: int) -> None:
        """Let the process stand still; `late`: somebody deletes its lock, and another one works."""
        self.note("freezes")
        self.world.freeze()
        if late:
            (self.world.folder / DESK_LOCK).unlink()
            self.world.pass_time(5.0)
            self.start()
        self.goes_on(bars)

    @precondition(lambda self: self.world.frozen)
    @rule(first=st.booleans())
    def thaws(self, first: bool) -> None:
        """Let the frozen process go on as if nothing had been; `first`: a bar has just closed."""
        if first:
            self.come_to_close()
        frozen = self.world.frozen[0]
        overtaken = not frozen.desk.lock.is_owned() and not frozen.desk._alone_since()
        before = self.witness.dump() if overtaken else {}
        out = self.world.published()
        acts: list[Callable[[], Any]] = [frozen.turn, frozen.keep, frozen.turn]
        for act in (lambda: frozen.wake(NAMES), *acts):
            if not frozen.doom.dead:
                act()
        self.note("thaws, overtaken" if overtaken else "thaws in time")
        if overtaken:
            after = self.witness.dump()
            changed = [name for name in before if before[name] != after[name]]
            assert not changed, f"a desk whose lock is another's wrote {changed}"
            assert self.world.published() == out, "a desk whose lock is another's sent something"
        if not frozen.doom.dead:
            frozen.stop()
        self.witness.look()

    # --- people -----------------------------------------------------------------------------------

    @rule(how=st.sampled_from(HALTS), bars=BARS)
    def a_person_halts(self, how: str, bars: int) -> None:
        life, world = self.life, self.world
        if how.endswith("file") or life is None:
            path = world.files["main" if how == "channel file" else "desk"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        elif how == "another process":
            self.elsewhere(lambda db: by_hand.halt_desk(db, world.files, "by a test"))
        else:
            life.do(lambda: self._halt(life, how))
        if world.halts():
            self.note(f"halted: {how}")
            self.witness.note_halt()
        self.goes_on(bars)

    def _halt(self, life: Life, how: str) -> None:
        assert life.switch is not None and life.database is not None
        if how == "fault":
            life.switch.fault("store: the disk is full")
            return
        with suppress(TorraError):
            by_hand.halt_desk(life.database, self.world.files, "by a test", life.switch)

    def elsewhere(self, work: Callable[[Any], Any]) -> None:
        """Do something in the database from another process."""
        database = self.world.another()
        try:
            work(database)
        finally:
            database.close()

    @precondition(lambda self: self.life is not None)
    @rule(point=st.sampled_from(DROPS), name=st.sampled_from(("desk", "main")), bars=BARS)
    def a_halt_in_the_middle(self, point: str, name: str, bars: int) -> None:
        """Drop a HALT file when the desk comes to a point."""
        assert self.life is not None
        path = self.world.files[name]

        def drop() -> None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            self.witness.note_halt(decided=point in DECIDED, booking=point == "moved")
            self.note(f"halted at {point}")

        self.life.doom.chores[point] = drop
        self.goes_on(bars)

    @precondition(lambda self: self.witness.halted or self.world.state() != "ACTIVE")
    @rule(elsewhere=st.booleans(), bars=BARS)
    def a_person_resumes(self, elsewhere: bool, bars: int) -> None:
        life, files = self.life, self.world.files
        if life is not None:
            life.doom.chores.clear()
        self.witness.note_resume()

        def turn(_: float) -> None:
            if self.life is not None:
                self.life.turn()

        def resume(switch: KillSwitch) -> None:
            try:
                switch.resume("by a test", sleep=turn)
                self.note("resumed")
            except (OSError, TorraError):
                self.note("not resumed")

        if life is None or elsewhere:
            self.elsewhere(lambda database: resume(KillSwitch(files, database)))
        elif life.switch is not None:
            switch = life.switch
            life.do(lambda: resume(switch))
        self.witness.look()
        self.goes_on(bars)

    @rule(name=st.sampled_from(tuple(PROFILES)), bars=BARS)
    def the_profile_changes(self, name: str, bars: int) -> None:
        self.note("profile changes")
        life, before, self.world.saved = self.life, self.world.saved, name
        if life is not None:
            try:
                life.do(lambda: life.desk.adopt("default", PROFILES[name]))
            except ConfigError:
                self.world.saved = before
        self.witness.look()
        self.goes_on(bars)

    @precondition(lambda self: self.life is not None)
    @rule(which=st.integers(0, 9), clicks=st.integers(1, 2), yes=st.booleans())
    def a_person_decides(self, which: int, clicks: int, yes: bool) -> None:
        """Decide about a proposal; where there is none, the desk is to make one first."""
        if not self.waiting():
            self.the_profile_changes(name="approve", bars=3)
        rows, life = self.waiting(), self.life
        if life is None or not rows:
            return
        row = rows[which % len(rows)]
        for _ in range(clicks):
            try:
                life.do(lambda: self._decide(life, row, yes))
            except ConfigError:
                self.note("decided already")
            if self.life is None:
                return
        self.round()

    def waiting(self) -> list[Any]:
        return self.world.rows("SELECT * FROM proposals WHERE state = 'WAITING' ORDER BY sid")

    def _decide(self, life: Life, row: Any, yes: bool) -> None:
        assert life.switch is not None and life.database is not None
        if not yes:
            approval.reject(life.database, row["sid"])
            return
        item, now = INSTANCES[row["instance"]], self.world.clock.now()
        at = approval.ApprovalContext(
            instance=item, now=now, profile=life.desk.setups[item.id].profile,
            price=price_at(item.symbol, now), halted=life.switch.engaged(),
        )  # fmt: skip
        lasts = signal_life(row["timeframe"])
        decided = approval.approve(life.database, row["sid"], at, life=lasts)
        self.note(f"approval {decided.state}")

    @rule(
        item=st.sampled_from((GOLD, EURO)),
        deed=st.sampled_from(("opens", "opens as the desk", "closes", "closes", "closes")),
    )
    def a_hand(self, item: Any, deed: str) -> None:
        """Open or close in the terminal, with a magic number of the desk's or with none."""
        advisor, symbol = self.world.ea, item.broker_name
        if deed == "closes":
            held = [one for one in advisor.positions() if one["symbol"] == symbol]
            if not held:
                return
            advisor.close_by_hand(held[-1]["ticket"])
        else:
            magic = item.magic if deed == "opens as the desk" else 0
            advisor.open_by_hand(symbol, "BUY", 0.05, magic=magic)
        self.note(f"a hand {deed}")
        self.round()

    # --- what they depend on ----------------------------------------------------------------------

    @rule(mood=st.sampled_from(tuple(MOODS)), bars=BARS)
    def the_vendor_is(self, mood: str, bars: int) -> None:
        self.note(f"vendor: {mood}")
        self.world.vendor.mood = mood
        self.goes_on(bars)

    @rule(
        symbol=st.sampled_from([item.symbol for item in INSTANCES.values()]),
        stalls=st.booleans(),
        bars=BARS,
    )
    def the_feed(self, symbol: str, stalls: bool, bars: int) -> None:
        self.note("feed stalls" if stalls else "feed goes on")
        self.world.feed.stalled.pop(symbol, None)
        if stalls:
            self.world.feed.stalled[symbol] = self.world.clock.now()
        self.goes_on(bars)

    @rule(fault=st.sampled_from((*BROKER, "away", "there")), bars=BARS)
    def the_broker_fails(self, fault: str, bars: int) -> None:
        self.note(f"broker: {fault}")
        if fault in BROKER:
            self.world.ea.fail(*BROKER[fault])
        else:
            self.world.ea.set(connected=int(fault == "there"))
        self.goes_on(bars)

    @rule(trouble=st.sampled_from((*EA_POINTS, *ODD)), count=st.integers(1, 2), bars=BARS)
    def the_advisor_fails(self, trouble: str, count: int, bars: int) -> None:
        if trouble in EA_POINTS:
            self.world.ea.crash_at(trouble, count)
        else:
            self.note(f"channel: {trouble}")
            self._odd(trouble)
        self.goes_on(bars)

    def _odd(self, trouble: str) -> None:
        """Let the Advisor sleep or run twice, put a finished file back, or lose an answer."""
        folder, world = self.folder / "main", self.world
        if trouble.startswith("sleeps"):
            world.asleep_until = world.clock.monotonic() + float(trouble.split()[1])
        elif trouble == "runs twice":
            with CompiledEa(folder, key=KEY, broker=self.folder / "another broker") as second:
                second.step(self.now, world.clock.monotonic())
        elif trouble == "file again":
            for name in [name for name in world.letters if (folder / "done" / name).exists()][-1:]:
                (folder / "inbox" / name).write_bytes(world.letters[name])
                self.round(1.0)
        else:
            for path in sorted((folder / "ack").glob("*.json"))[-1:]:
                path.unlink()

    # --- looks ------------------------------------------------------------------------------------

    @invariant()
    def promises_hold(self) -> None:
        self.witness.look()
        self.witness.ticks_are_whole()

    @precondition(lambda self: self.life is not None and self.life.desk.active)
    @rule()
    def the_books_are_compared(self) -> None:
        """Bring both sides to rest; compare, compare again, and hold the books together."""
        self.rest(2)
        self.note("books compared")

    def rest(self, turns: int) -> None:
        """Let everybody be well for some minutes; a clock that was ahead is caught up with."""
        world = self.world
        world.asleep_until = AWAKE
        world.ea.set(connected=1)
        world.ea.forgive()
        behind = (world.latest - world.clock.now()).total_seconds()
        if behind > 0:
            world.clock.pass_by(behind)
        for _ in range(turns):
            for seconds in (30.0, 20.0, SETTLE_SECONDS, SETTLE_SECONDS):
                self.round(seconds)
        if self.life is not None and self.life.desk.active:
            self.life.do(self._twice_is_once)
        if self.life is not None and self.life.desk.active and self.at_rest():
            self.note("books held together")
            self.witness.books_agree()

    def at_rest(self) -> bool:
        """Return whether no signal is under way and no step was taken just now."""
        under_way = self.world.rows(
            "SELECT 1 FROM signals WHERE state IN ('PENDING', 'PUBLISHED', 'CLAIMED', 'PLACED') "
            "AND bridge <> 'paper'"
        )
        return not under_way

    def _twice_is_once(self) -> None:
        life = self.life
        assert life is not None and life.database is not None
        line = life.courier._lines["main"]
        books = line.bridge.books()
        if books is None:
            return
        magics = {GOLD.id: GOLD.magic, EURO.id: EURO.magic}
        now, tables = self.world.clock.now(), ("signals", "signal_events", "alarms", "desk_state")
        settlement.settle(life.database, magics, books, now=now)
        before = self.witness.dump(tables)
        settlement.settle(life.database, magics, books, now=now)
        assert self.witness.dump(tables) == before, "the same books again changed something"
        self.note("compared twice")

    def teardown(self) -> None:
        """Bring everything to its end, and account for it."""
        try:
            self._account()
        finally:
            assert STAGE.acting is None
            self.world.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _account(self) -> None:
        world = self.world
        world.feed.stalled.clear()
        for life in list(world.frozen):
            world.bury(life)
        if self.life is not None:
            self.life.doom.fatal = ""
            self.life.doom.chores.clear()
        self.rest(1)
        if self.life is None:
            self.start()
        self.rest(3)
        assert self.life is not None and self.life.desk.active, "no desk works any more"
        self.come_to_close()
        self.life.wake(NAMES)
        if self.life.desk.settling:
            # The clock jumped and may be set right: for ten minutes no close is written off.
            self.goes_on(1)
        self.rest(2)
        self.witness.every_close_has_a_row(OPENING)
        self.witness.everything_is_accounted_for()
