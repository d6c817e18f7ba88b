"""The way of a tick: one closed bar in, one stored verdict out. Read this first.

`run_close` takes the bars that closed together on an instance down the way of a tick, `run_tick`
one bar alone. It calls everything that a tick needs, in order: it is handed its edges (database,
bars, provider, clock), each step returns a frozen value, and nobody calls back up. Live ticks,
warm-up, one-off ticks on the command line and replays all come through here; only the edges differ.

What closes together goes step by step. All look. All debate, at the same time, on what was known
before their close. Then they are stored one after the other, the longer timeframe first, each with
the consensus, the position and the risk of that moment.

Failures: bars that cannot be used skip the tick, and the reason is recorded. A model that fails
costs its own opinion. A tick that raises releases its claim, and costs the others of its close
nothing. A tick is stored whole, in one transaction, or not at all. torra.desk.schedule decides when
to run one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

from agents.contracts import is_synchronous
from instance_database import TickKey
from torra.clock import duration, floor, iso
from torra.config import Instance, Profile
from torra.errors import DataUnavailable, StoreUnavailable
from torra.failpoints import failpoint
from torra.tick.debate import Plan, plan, run_tick_debate
from torra.tick.decision import decide
from torra.tick.edges import LEAST_WAIT, PUBLISH_WAIT, TickDeps
from torra.tick.look import look
from torra.tick.record import TickDebate, TickInputs, TickResult
from torra.verdict import sentiment_rules

log = logging.getLogger("torra")

LONGER_TIMEFRAME_GRACE_S: Final = 0.15
"""Seconds past its deadline that a tick waits for its elder, which may end right at the deadline.

Less than the time that is left to wait for the database's lock (torra.tick.edges.LOCK_GRACE).
"""


@dataclass(frozen=True, slots=True)
class ClosedBar:
    """A bar that closed and wants its tick.

    `due` is the moment, in the clock's monotonic seconds, from which the deadline counts.
    """

    timeframe: str
    bar_time: datetime
    due: float
    profile: Profile


@dataclass(frozen=True, slots=True)
class TickOutcome:
    """How a tick ended: done with its record, skipped or late with a reason, taken, or failed.

    `result` is there for every tick that is done, `record` where TickDeps.recording asks for one,
    `error` for one that failed; its claim is released.
    """

    key: TickKey
    state: Literal["done", "skipped", "late", "taken", "failed"]
    record: Mapping[str, Any] | None = None
    reason: str = ""
    detail: str = ""
    result: TickResult | None = None
    error: BaseException | None = None


def run_tick(
    instance: Instance,
    timeframe: str,
    bar_time: datetime,
    due: float,
    *,
    profile: Profile,
    edges: TickDeps,
) -> TickOutcome:
    """Process one closed bar, exactly once.

    `due` is the moment, in the clock's monotonic seconds, from which the deadline counts. Raises
    StoreUnavailable when the tick could not be stored before the deadline + 0.5 s; its claim is
    released then, as on any other exception. A listener hears of a claimed tick from `tick_start`
    to one end: `tick` with the record, or `tick_error`.
    """
    bar = ClosedBar(timeframe, bar_time, due, profile)
    (outcome,) = run_close(instance, [bar], edges=edges)
    if outcome.error is not None:
        raise outcome.error
    return outcome


def run_close(  # noqa: C901, PLR0912 - the whole way of a close, to be read from top to bottom
    instance: Instance, bars: Sequence[ClosedBar], *, edges: TickDeps
) -> tuple[TickOutcome, ...]:
    """Process bars that closed at the same moment, each exactly once, the longer timeframe first.

    Each is stored after its elders, the longer timeframes, for which it waits until just past its
    own deadline at most. A tick that fails is an outcome with its error; only an interrupt is
    raised, once every claim that is not finished is released.
    """
    order = sorted(bars, key=lambda bar: duration(bar.timeframe), reverse=True)
    ticks = [_Tick(bar, TickKey(instance.id, bar.timeframe, bar.bar_time)) for bar in order]
    stored: set[TickKey] = set()

    def debate_and_decide(tick: _Tick, elders: Sequence[Future[None]] = ()) -> None:
        _debate(tick, edges)
        wait(elders, max(0.0, tick.deadline + LONGER_TIMEFRAME_GRACE_S - edges.clock.monotonic()))
        _decide(tick, edges, stored)

    try:
        for tick in ticks:
            with _ending(tick, edges):
                # In a transaction of its own: a kill from here on leaves a claim that the next
                # start releases.
                with edges.write(tick.deadline):
                    tick.claimed = edges.database.claim_tick(tick.key)
                if not tick.claimed:
                    tick.outcome = TickOutcome(tick.key, "taken", reason="claimed")
                    continue
                failpoint("claimed")
                start = {
                    "instance": instance.id,
                    "timeframe": tick.key.timeframe,
                    "bar_time": iso(tick.key.bar_time),
                    "close_time": iso(tick.key.close_time),
                }
                _tell(edges, tick.key, "tick_start", start)
        # The shortest first: its bars are stored then before the paper bridge lives through them.
        for tick in _going_on(reversed(ticks)):
            with _ending(tick, edges):
                tick.inputs = look(instance, tick.key, tick.bar.profile, edges, tick.deadline)
                failpoint("scored")
        close = _going_on(ticks)
        for tick in close:
            with _ending(tick, edges):
                tick.inputs = _with_close(tick, close, edges)
        reserved = 0.0  # what its elders may cost is not spent twice
        for tick in _going_on(close):
            with _ending(tick, edges):
                tick.plan = plan(tick.inputs, edges, edges.database, reserved_usd=reserved)
                reserved += tick.plan.worst_usd
        close = _going_on(close)
        submit = edges.submit
        if len(close) < 2 or submit is None or is_synchronous(submit) or edges.debater is not None:
            # What answers at once gains nothing by threads.
            for tick in close:
                _debate(tick, edges)
            for tick in close:
                _decide(tick, edges, stored)
                _publish(tick, instance, edges)
        else:
            with ThreadPoolExecutor(len(close), thread_name_prefix=instance.id) as pool:
                decided: dict[Future[None], _Tick] = {}
                for tick in close:
                    decided[pool.submit(debate_and_decide, tick, [*decided])] = tick
                # As each is stored: the younger need not wait until its elder is published.
                for future in as_completed(decided):
                    future.result()  # raises an interrupt, in a thread of its own, too
                    _publish(decided[future], instance, edges)
    except BaseException as error:  # an interrupt: its listener must hear of an end, too
        for tick in _going_on(ticks):
            _fail(tick, edges, error)
        raise
    return tuple(tick.outcome for tick in ticks if tick.outcome is not None)


@dataclass(slots=True, eq=False)
class _Tick:
    """A tick on its way, until it has its outcome; each step adds what it came to."""

    bar: ClosedBar
    key: TickKey
    claimed: bool = False
    inputs: TickInputs = field(init=False)
    plan: Plan = field(init=False)
    debate: TickDebate = field(init=False)
    decision: tuple[Mapping[str, Any] | None, TickResult] = field(init=False)
    outcome: TickOutcome | None = None

    @property
    def deadline(self) -> float:
        """The moment, in the clock's monotonic seconds, at which its debate is over."""
        return self.bar.due + self.bar.profile.agents.timeout_seconds


def _going_on(ticks: Iterable[_Tick]) -> list[_Tick]:
    return [tick for tick in ticks if tick.outcome is None]


@contextmanager
def _ending(tick: _Tick, edges: TickDeps) -> Iterator[None]:
    """Take a step, and end the tick where it raises: skipped, or failed with its claim released."""
    try:
        try:
            yield
        except DataUnavailable as why:
            with edges.write(tick.deadline):
                edges.database.skip_tick(tick.key, why.reason, why.detail)
            tick.outcome = TickOutcome(tick.key, "skipped", reason=why.reason, detail=why.detail)
            # It is not tried again.
            event = {"code": f"skipped:{why.reason}", "message": why.detail, "recoverable": False}
            _tell(edges, tick.key, "tick_error", event)
    except Exception as error:  # noqa: BLE001 - the outcome carries it to whoever asked
        _fail(tick, edges, error)


def _fail(tick: _Tick, edges: TickDeps, error: BaseException) -> None:
    """End a tick with an error: its claim is released, and the listener of a claimed one hears."""
    tick.outcome = TickOutcome(tick.key, "failed", error=error)
    if tick.claimed:
        # Without the store the claim stays; the desk owes it a row and writes it on its next wake.
        with suppress(StoreUnavailable), edges.database.transaction(LEAST_WAIT):
            edges.database.release_claim(tick.key)
        _tell(edges, tick.key, "tick_error", _fault(error))


def _with_close(tick: _Tick, close: Sequence[_Tick], edges: TickDeps) -> TickInputs:
    """Return its inputs with the L1 composites of its close, and what runs apart from it."""
    inputs, others = tick.inputs, dict(edges.together)
    others |= {
        other.key.timeframe: sentiment_rules.composite(
            other.inputs.l1, other.inputs.ath_score, other.bar.profile.sentiment_weights
        )
        for other in _going_on(close)
        if other is not tick
    }
    here = {tick.key.timeframe, *others}
    missing = [
        name
        for name in inputs.instance.timeframes
        if name not in here and floor(inputs.as_of, name) == inputs.as_of
    ]
    # Where nothing stood beside it the inputs say so already.
    return replace(inputs, together=others, apart=tuple(missing)) if others or missing else inputs


def _debate(tick: _Tick, edges: TickDeps) -> None:
    """Hold its debate, until its deadline at most."""
    with _ending(tick, edges):
        tick.debate = run_tick_debate(
            tick.plan, tick.inputs, edges, clock=edges.clock, deadline=tick.deadline
        )
        failpoint("debated")


def _decide(tick: _Tick, edges: TickDeps, stored: set[TickKey]) -> None:
    """Store it with what follows from it; `stored` are those of its close that were before it."""
    if tick.outcome is not None:
        return
    with _ending(tick, edges):
        tick.decision = decide(
            tick.inputs, tick.debate, edges, tick.bar.due, tick.deadline, stored=stored
        )


def _publish(tick: _Tick, instance: Instance, edges: TickDeps) -> None:
    """Send what it has decided, and tell the listener that it is done."""
    if tick.outcome is not None:
        return
    with _ending(tick, edges):
        failpoint("committed")
        # Only now: a late answer is added to a stored call, and before the commit there is none.
        if tick.debate.late:
            tick.debate.late.watch(edges.database, tick.key)
        _afterwards(instance, edges)
        record, result = tick.decision
        tick.outcome = TickOutcome(tick.key, "done", record=record, result=result)
        if record is not None:
            _tell(edges, tick.key, "tick", record)


def _afterwards(instance: Instance, edges: TickDeps) -> None:
    """Publish; the tick is stored, so nothing here may fail it."""
    try:
        edges.publish(instance, PUBLISH_WAIT)
    except Exception as error:
        edges.on_error(error)
        log.exception("after the tick of %s; what is pending waits", instance.id)


def _tell(edges: TickDeps, key: TickKey, kind: str, values: Mapping[str, Any]) -> None:
    """Tell the listener; one that fails is logged and does not fail the tick."""
    if edges.on_event is None:
        return
    try:
        edges.on_event(kind, {**values, "torra_key": key.text})
    except Exception:
        log.exception("a listener failed at %s of %s", kind, key.text)


def _fault(error: BaseException) -> dict[str, Any]:
    """Return the event of a tick that raised: the kind of its error, never its text."""
    # The text of an error may hold an address or a key, and this goes to the pages.
    code, message = "failed", f"The tick failed ({type(error).__name__}); the log says why."
    if isinstance(error, StoreUnavailable):
        code = "store"
        message = "The database could not be used, or this desk has lost the lock of its home."
    return {"code": code, "message": message, "recoverable": True}
