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
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

import signal_bridge
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
from torra.tick.tick_database import TickDatabase
from torra.verdict import sentiment_rules

log = logging.getLogger("torra")

ELDER_GRACE: Final = 0.15
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


def run_close(
    instance: Instance, bars: Sequence[ClosedBar], *, edges: TickDeps
) -> tuple[TickOutcome, ...]:
    """Process bars that closed at the same moment, each exactly once, the longer timeframe first.

    Each is stored after its elders, the longer timeframes, for which it waits until just past its
    own deadline at most. A tick that fails is an outcome with its error; only an interrupt is
    raised, once every claim that is not finished is released.
    """
    order = sorted(bars, key=lambda bar: duration(bar.timeframe), reverse=True)
    stored: set[TickKey] = set()
    ticks = [_Tick(instance, bar, edges, stored, alone=len(order) == 1) for bar in order]
    try:
        for tick in ticks:
            tick.step(tick.claim)
        # The shortest first: its bars are stored then before the paper bridge lives through them.
        for tick in reversed(ticks):
            tick.step(tick.look)
        looked = [tick for tick in ticks if tick.outcome is None]
        for tick in looked:
            tick.step(tick.meet, looked)
        for tick in looked:
            tick.step(tick.plan_debate, looked)
        _debate_and_decide([tick for tick in looked if tick.outcome is None], edges)
    except BaseException as error:  # an interrupt: its listener must hear of an end, too
        for tick in ticks:
            tick.fail(error)
        raise
    return tuple(tick.outcome for tick in ticks if tick.outcome is not None)


def _debate_and_decide(ticks: Sequence[_Tick], edges: TickDeps) -> None:
    """Let the ticks of a close debate, then store them in their order."""
    submit = edges.submit
    if len(ticks) < 2 or submit is None or is_synchronous(submit) or edges.debater is not None:
        # What answers at once gains nothing by threads.
        for tick in ticks:
            tick.step(tick.debate)
        for tick in ticks:
            tick.step(tick.decide)
        return
    threads = [
        # A daemon: a desk that is told to end leaves a running tick behind, as a kill would.
        threading.Thread(target=tick.run_after, args=(ticks[:at],), name=tick.key.text, daemon=True)
        for at, tick in enumerate(ticks)
        if at
    ]
    for thread in threads:
        thread.start()
    try:
        ticks[0].run_after(())
    finally:
        for thread in threads:
            thread.join()
    for tick in ticks:
        error = tick.outcome.error if tick.outcome else None
        if error is not None and not isinstance(error, Exception):
            raise error  # an interrupt, in a thread of its own, too


class _Tick:
    """A tick on its way.

    Its steps raise nothing but an interrupt: an error ends the tick, and steps of a tick that has
    ended do nothing.
    """

    def __init__(
        self,
        instance: Instance,
        bar: ClosedBar,
        edges: TickDeps,
        stored: set[TickKey],
        *,
        alone: bool,
    ) -> None:
        """Order a tick; `stored` is shared by the ticks of a close: those that are stored.

        `alone`: nothing closes with it, so nobody waits for it.
        """
        self.key = TickKey(instance.id, bar.timeframe, bar.bar_time)
        self.outcome: TickOutcome | None = None
        self._instance = instance
        self.bar = bar
        self._edges = edges
        self._answerers = edges.answerers
        self._deadline = bar.due + bar.profile.agents.timeout_seconds
        self._stored = stored
        self._claimed = False
        self.inputs: TickInputs
        self.plan: Plan | None = None
        self._debate: TickDebate
        self.over = None if alone else threading.Event()

    def step(self, do: Callable[..., None], *close: Sequence[_Tick]) -> None:
        """Take a step, unless the tick has ended, and end it where the step raises."""
        if self.outcome is not None:
            return
        try:
            try:
                do(*close)
            except DataUnavailable as why:
                with self._edges.write(self._deadline):
                    self._edges.database.skip_tick(self.key, why.reason, why.detail)
                self._finish(TickOutcome(self.key, "skipped", reason=why.reason, detail=why.detail))
        except Exception as error:  # noqa: BLE001 - the outcome carries it to whoever asked
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """End it with an error, unless it has ended: its claim is released."""
        if self.outcome is not None:
            return
        if self._claimed:
            _release(self._edges.database, self.key)
        self._finish(TickOutcome(self.key, "failed", error=error))

    def _finish(self, outcome: TickOutcome) -> None:
        """End it, and tell the listener of a tick that was claimed."""
        self.outcome = outcome
        self._settle()
        if not self._claimed:
            return
        if outcome.error is not None:
            _tell(self._edges, self.key, "tick_error", _fault(outcome.error))
        elif outcome.state != "done":  # its bars could not be used: it is not tried again
            told = {"code": f"skipped:{outcome.reason}", "message": outcome.detail}
            _tell(self._edges, self.key, "tick_error", {**told, "recoverable": False})
        elif outcome.record is not None:
            _tell(self._edges, self.key, "tick", outcome.record)

    def _settle(self) -> None:
        """Let go on who waits for it."""
        if self.over is not None:
            self.over.set()

    # --- its steps ------------------------------------------------------------------------------

    def claim(self) -> None:
        """Claim it, in a transaction of its own.

        A kill from here on leaves a claim that the next start releases.
        """
        edges = self._edges
        with edges.write(self._deadline):
            self._claimed = edges.database.claim_tick(self.key)
        if not self._claimed:
            self._finish(TickOutcome(self.key, "taken", reason="claimed"))
            return
        failpoint("claimed")
        start = {
            "instance": self.key.instance,
            "timeframe": self.key.timeframe,
            "bar_time": iso(self.key.bar_time),
            "close_time": iso(self.key.close_time),
        }
        _tell(edges, self.key, "tick_start", start)

    def look(self) -> None:
        """Take in what may be known at its close."""
        self.inputs = look(self._instance, self.key, self.bar.profile, self._edges, self._deadline)
        failpoint("scored")

    def meet(self, close: Sequence[_Tick]) -> None:
        """Note the L1 composites of what closed with it, and what runs apart from it."""
        inputs, others = self.inputs, dict(self._edges.together)
        others |= {
            tick.key.timeframe: sentiment_rules.composite(
                tick.inputs.l1, tick.inputs.ath_score, tick.bar.profile.sentiment_weights
            )
            for tick in close
            if tick is not self and tick.outcome is None
        }
        here = {self.key.timeframe, *others}
        apart = [
            name
            for name in self._instance.timeframes
            if name not in here and floor(inputs.as_of, name) == inputs.as_of
        ]
        if others or apart:  # else nothing stood beside it: the inputs say so already
            self.inputs = replace(inputs, together=others, apart=tuple(apart))

    def plan_debate(self, close: Sequence[_Tick]) -> None:
        """Decide who is asked; what its elders may cost is promised to them."""
        self.plan = plan(
            self.inputs, self.bar.profile, self._answerers, self._edges.database,
            beside=sum(tick.plan.worst_usd for tick in close if tick.plan is not None),
        )  # fmt: skip

    def debate(self) -> None:
        """Hold its debate, until its deadline at most."""
        if self.plan is None:
            raise AssertionError("a step of a tick was left out")
        self._debate = run_tick_debate(
            self.plan, self.inputs, self.bar.profile,
            self._answerers, clock=self._edges.clock, deadline=self._deadline,
        )  # fmt: skip
        failpoint("debated")

    def decide(self) -> None:
        """Store it with what follows from it, then publish."""
        edges, debate = self._edges, self._debate
        record, result = decide(
            self.inputs, debate, self.bar.profile, edges, self.bar.due, self._deadline,
            stored=self._stored,
        )  # fmt: skip
        self._settle()  # here: the younger need not wait until it is published
        failpoint("committed")
        # Only now: a late answer is added to a stored call, and before the commit there is none.
        if debate.late:
            debate.late.watch(edges.database, self.key)
        _afterwards(self._instance, edges)
        self._finish(TickOutcome(self.key, "done", record=record, result=result))

    def run_after(self, longer: Sequence[_Tick]) -> None:
        """Debate, wait for the longer timeframes until just past the deadline at most, decide."""
        try:
            self.step(self.debate)
            for tick in longer:
                if tick.over is not None:
                    left = self._deadline + ELDER_GRACE - self._edges.clock.monotonic()
                    tick.over.wait(max(0.0, left))
            self.step(self.decide)
        # In a thread nobody would hear it: the caller of the close raises it again.
        except BaseException as error:  # noqa: BLE001
            self.fail(error)


def _afterwards(instance: Instance, edges: TickDeps) -> None:
    """Publish; the tick is stored, so nothing here may fail it."""
    try:
        if edges.route is not None:
            edges.route.send(instance.id)
        # Looked at without a lock first: most ticks send nothing and need no transaction.
        elif signal_bridge.waits(edges.database, instance.id):
            with edges.database.transaction(PUBLISH_WAIT):
                edges.publish(instance)
    except Exception as error:
        edges.on_error(error)
        log.exception("after the tick of %s; what is pending waits", instance.id)


def _tell(edges: TickDeps, key: TickKey, kind: str, told: Mapping[str, Any]) -> None:
    """Tell the listener; one that fails is logged and does not fail the tick."""
    if edges.on_event is None:
        return
    try:
        edges.on_event(kind, {**told, "torra_key": key.text})
    except Exception:
        log.exception("a listener failed at %s of %s", kind, key.text)


def _fault(error: BaseException) -> dict[str, Any]:
    """Return the event of a tick that raised: the kind of its error, never its text."""
    if isinstance(error, StoreUnavailable):
        told = "The database could not be used, or this desk has lost the lock of its home."
        return {"code": "store", "message": told, "recoverable": True}
    # The text of an error may hold an address or a key, and this goes to the pages.
    told = f"The tick failed ({type(error).__name__}); the log says why."
    return {"code": "failed", "message": told, "recoverable": True}


def _release(database: TickDatabase, key: TickKey) -> None:
    try:
        with database.transaction(LEAST_WAIT):
            database.release_claim(key)
    except StoreUnavailable:
        return  # the claim stays; the desk owes it a row and writes it on its next wake
