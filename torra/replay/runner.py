"""Runs an arm of a replay: the very run_tick over every tick of a history, in the live order.

The market is the history's: fills at the next bar's open, stop before target inside a bar, gaps
filled at the open (the paper bridge). The clock shows each close in turn and stands still within a
tick, so a slow or busy machine changes no result. Where a vendor is asked, real time passes and the
deadline is real. Nothing is published, stored in a desk or told to a listener. What is kept of each
tick is its observation (torra.replay.shards.seen) and, with a checkpoint, the place to go on from.

A desk that halted itself waits for a person; in a replay the person comes at the next midnight,
UTC, and the halts are counted. A position that is open at the end is closed at the last close.
Errors of run_tick pass through; a damaged checkpoint raises ConfigError.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from agents.contracts import Submit
from instance_database import TickKey
from torra.bridges.paper import PaperPosition
from torra.clock import Simulated, System, duration
from torra.config import Instance, Profile
from torra.desk.timers import running_order
from torra.evaluation.observations import (
    ArmObservation,
    Interner,
    TickObservation,
    TradeObservation,
)
from torra.lessons.recall import Recall
from torra.replay.arms import Arm
from torra.replay.l1.trades import END, left_open
from torra.replay.outlook_then import NOTHING, PointInTimeData
from torra.replay.rerun.edges_then import FrozenClock
from torra.replay.shards.arm_evidence import evidence_of
from torra.replay.shards.arm_lessons import PriceRanges, lessons_of
from torra.replay.shards.arm_standing import ArmPast, past_of
from torra.replay.shards.checkpoints import BROKEN, CHUNK, Checkpoint
from torra.replay.shards.history import History
from torra.replay.shards.seen import tick_seen, trade_seen
from torra.store.memory import MemoryStore, Ranges
from torra.tick.bar_window import HistoryWindow
from torra.tick.debate import Debater, Payer
from torra.tick.edges import Evidence, TickDeps
from torra_trader import ClosedBar, run_close

REAL: Final = System()
"""The clock by which a tick's own time is measured."""


@dataclass(frozen=True, slots=True)
class AgentSource:
    """The voice of an arm: nobody, a provider, or a debater that holds the debate itself."""

    submit: Submit | None = None
    provider: str = "nobody"
    account: Payer | None = None
    debater: Debater | None = None


@dataclass(frozen=True)
class Schedule:
    """The course that every arm runs: the bars, scored once, and the ticks in running order.

    `outlook` is what was known of events and headlines at each of them.
    """

    history: History
    instance: Instance
    window: HistoryWindow
    keys: tuple[TickKey, ...]
    outlook: PointInTimeData = NOTHING

    @cached_property
    def ranges(self) -> Ranges:
        """How far prices went between two moments, for the lessons of the arms."""
        return PriceRanges(self.history.frames)

    @classmethod
    def of(
        cls,
        history: History,
        *,
        begin: datetime | None = None,
        end: datetime | None = None,
        outlook: PointInTimeData = NOTHING,
    ) -> Schedule:
        """Score a history and list its ticks that close in (begin, end]."""
        instance = Instance(
            symbol=history.symbol, timeframes=history.timeframes, feed="store", bridge="paper"
        )
        window = HistoryWindow(history.frames)
        wanted = (
            TickKey(instance.id, name, moment)
            for name, times in window.times.items()
            for moment in _closing(times, duration(name), begin, end)
        )
        keys = tuple(sorted(wanted, key=running_order))
        return cls(history, instance, window, keys, outlook)


def _closing(
    times: pd.DatetimeIndex, size: timedelta, begin: datetime | None, end: datetime | None
) -> Iterable[datetime]:
    """Return the open times of the bars that close in (begin, end]."""
    closes = times + size
    wanted = np.ones(len(times), dtype=bool)
    if begin is not None:
        wanted &= closes > pd.Timestamp(begin)
    if end is not None:
        wanted &= closes <= pd.Timestamp(end)
    found: Iterable[datetime] = times[wanted].to_pydatetime().tolist()
    return found


@dataclass(slots=True)
class _Run:
    """An arm under way: its results since the last checkpoint, and its place in the course."""

    course: Schedule
    profile: Profile
    voice: AgentSource
    store: MemoryStore
    past: ArmPast | None = None
    at: int = 0
    halts: int = 0
    halted_on: str = ""
    skipped: Counter[str] = field(default_factory=Counter)
    ticks: list[TickObservation] = field(default_factory=list)
    trades: list[TradeObservation] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether every tick was run."""
        return self.at == len(self.course.keys)

    @property
    def state(self) -> dict[str, Any]:
        """The state of the arm as JSON values; a finished arm needs no store."""
        told = {
            "at": self.at,
            "halts": self.halts,
            "halted_on": self.halted_on,
            "skipped": dict(sorted(self.skipped.items())),
        }
        if self.done:
            return told
        past = {"past": self.past.as_json()} if self.past else {}
        return {**told, "store": self.store.as_json(), **past}


def run_arm(
    course: Schedule,
    arm: Arm,
    profile: Profile,
    voice: AgentSource,
    *,
    checkpoint: Checkpoint | None = None,
    commission: float = 0.0,
    on_ticks: Callable[[int], None] | None = None,
    chunk: int = CHUNK,
    shared: Interner | None = None,
    seed: int = 0,
) -> ArmObservation:
    """Run an arm to its end and return what was observed.

    `profile` is the replay's; the arm makes its own of it. With a `checkpoint` the arm goes on from
    there, and every `chunk` ticks are saved. `on_ticks` hears how many more are done, those of an
    earlier run included. `shared` holds what arms of one replay say alike, `seed` fixes the
    lessons of an arm that is told them by lot, and the days of one that reads old evidence. Raises
    what run_tick raises, ConfigError for a damaged checkpoint and for an embedder of lessons that
    cannot be opened.
    """
    tell, alike = on_ticks or _nobody, shared or Interner()
    run = _begun(course, arm, profile, voice, checkpoint)
    tell(run.at)
    ticks, trades = checkpoint.lines(alike) if checkpoint else ([], [])

    def take() -> None:
        ticks.extend(map(alike.tick, run.ticks))
        trades.extend(run.trades)

    _go_on(run, arm, checkpoint, tell, chunk, seed, take)
    return ArmObservation(
        arm.name,
        tuple(ticks),
        tuple(trades),
        capital=profile.risk.capital,
        commission=commission,
        skipped=dict(sorted(run.skipped.items())),
        halts=run.halts,
    )


def save_arm(
    course: Schedule,
    arm: Arm,
    profile: Profile,
    voice: AgentSource,
    checkpoint: Checkpoint,
    *,
    on_ticks: Callable[[int], None] | None = None,
    seed: int = 0,
) -> None:
    """Run an arm to its end as `run_arm` does, for whoever reads its checkpoint then."""
    tell = on_ticks or _nobody
    run = _begun(course, arm, profile, voice, checkpoint)
    tell(run.at)
    _go_on(run, arm, checkpoint, tell, CHUNK, seed, lambda: None)


def _go_on(
    run: _Run,
    arm: Arm,
    checkpoint: Checkpoint | None,
    tell: Callable[[int], None],
    chunk: int,
    seed: int,
    take: Callable[[], None],
) -> None:
    """Run the ticks that are left; `take` is told of each chunk, once it is saved."""
    since = 0
    lessons = lessons_of(run.store, arm, run.profile, seed)
    window = run.course.window
    evidence = evidence_of(arm, window, seed)
    for number in _steps(run, lessons, evidence):
        tell(number)
        since += number
        if since < chunk and not run.done:
            continue
        if checkpoint is not None:
            checkpoint.save(run.ticks, run.trades, run.state, done=run.done)
        take()
        # The next chunk begins empty, or its lines would be written twice.
        run.ticks, run.trades, since = [], [], 0


def _nobody(number: int) -> None:
    """Ignore the progress."""


def _begun(
    course: Schedule,
    arm: Arm,
    profile: Profile,
    voice: AgentSource,
    checkpoint: Checkpoint | None,
) -> _Run:
    """Return the arm where it begins, or where its checkpoint left it."""
    if arm.outside == "shifted":
        course = replace(course, outlook=course.outlook.with_older_series())
    elif arm.outside == "none":
        course = replace(course, outlook=course.outlook.without_companions())
    profile = arm.profile(profile)
    profiles = {course.instance.id: profile}
    past = past_of(profile, asks=arm.voice == "desk")
    if checkpoint is None or checkpoint.state is None:
        return _Run(course, profile, voice, MemoryStore(profiles, course.ranges), past)
    state = checkpoint.state
    try:
        store = MemoryStore(profiles, course.ranges)
        # A finished arm was saved without its store.
        if not checkpoint.done:
            store = MemoryStore.of(state["store"], profiles, course.ranges)
            past = past and ArmPast.of(state["past"])
        return _Run(
            course,
            profile,
            voice,
            store,
            past,
            at=state["at"],
            halts=state["halts"],
            halted_on=state["halted_on"],
            skipped=Counter(state["skipped"]),
        )
    except BROKEN as error:
        raise checkpoint.damaged(f"{type(error).__name__}: {error}") from error


def _steps(run: _Run, lessons: Recall | None, evidence: Evidence | None) -> Iterator[int]:
    """Run what is left of the ticks, one close at a time; yield how many closed together."""
    course, paid = run.course, run.voice.account is not None
    start = course.history.period[0]
    # A paid answer takes real time; else no deadline may pass on a slow machine.
    clock = Simulated(start) if paid else FrozenClock(start)
    edges = TickDeps(
        database=run.store,
        window=course.window,
        submit=run.voice.submit,
        provider=run.voice.provider,
        clock=clock,
        account=run.voice.account,
        news=course.outlook.news_of(course.instance, run.profile),
        events=course.outlook.events_of(course.instance, run.profile),
        outside=course.outlook.outside_of(course.instance, run.profile),
        lessons=lessons,
        standing=run.past,
        companions=course.outlook.companions_of(),
        flow=course.outlook.flow_of(run.profile),
        debater=run.voice.debater,
        recording=False,
        evidence=evidence,
    )
    while not run.done:
        keys = _close(course.keys, run.at)
        _step(run, keys, clock, edges)
        run.at += len(keys)
        if run.done:
            run.trades += _open_at_end(run)
        yield len(keys)


def _close(keys: Sequence[TickKey], at: int) -> Sequence[TickKey]:
    """Return the ticks that closed together with the one at a place, from it on."""
    close, end = keys[at].close_time, at + 1
    while end < len(keys) and keys[end].close_time == close:
        end += 1
    return keys[at:end]


def _step(run: _Run, keys: Sequence[TickKey], clock: Simulated, edges: TickDeps) -> None:
    close = keys[0].close_time
    clock.set(close)
    day = close.date().isoformat()
    # Before the ticks: the new day begins with a desk that trades.
    _let_a_person_in(run, day)
    began, due = REAL.monotonic(), clock.monotonic()
    bars = [ClosedBar(key.timeframe, key.bar_time, due, run.profile) for key in keys]
    outcomes = run_close(run.course.instance, bars, edges=edges)
    took = (REAL.monotonic() - began) * 1000.0 / len(keys)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
        if outcome.result is None:
            run.skipped[outcome.reason or outcome.state] += 1
        else:
            run.ticks.append(tick_seen(outcome.result, took))
            if run.past is not None:
                run.past.take(outcome.result)
    _note_a_halt(run, day)
    for row in run.store.take_trades():
        run.trades.append(trade_seen(row))
        if run.past is not None and (lesson := run.store.lesson(row["sid"])):
            run.past.end(lesson.facts)


def _let_a_person_in(run: _Run, day: str) -> None:
    """Resume a desk that halted itself on an earlier day."""
    if run.halted_on and run.halted_on != day:
        run.store.set_trading_state("ACTIVE", "a new day of the replay")
        run.halted_on = ""


def _note_a_halt(run: _Run, day: str) -> None:
    """Count a halt, and the day of the tick that brought it about."""
    if not run.halted_on and run.store.trading_state() != "ACTIVE":
        run.halts, run.halted_on = run.halts + 1, day


def _open_at_end(run: _Run) -> list[TradeObservation]:
    """Return the position that the history left open, if any, closed at its last close."""
    instance = run.course.instance
    held = run.store.paper_position(instance.id)
    if held is None:
        return []
    last = run.course.keys[-1]
    end = last.bar_time + duration(last.timeframe) - duration(instance.shortest)
    frame = run.course.history.frames[instance.shortest]
    # The history may go on after the last tick of this replay (--to).
    frame = frame[frame.index <= pd.Timestamp(end)]
    close, bar_time = float(frame["close"].iloc[-1]), frame.index[-1].to_pydatetime()
    spec = run.profile.symbol(instance.symbol)
    event = left_open(PaperPosition.of(held), close, bar_time, spec)
    ended = {
        **(run.store.signal(held.signal_id) or {}),
        "closed_at": event.time,
        "close_price": event.price,
        "r_multiple": event.r_multiple,
        "profit": event.profit,
        "close_reason": END,
    }
    return [trade_seen(ended)]
