"""The way of a tick: one closed bar in, one stored verdict out. Read this first.

`run_tick` calls everything that a tick needs, in order. It is handed its edges (database, bars,
provider, clock), each step returns a frozen value, and nobody calls back up. Live ticks, warm-up,
one-off ticks on the command line and replays all come through here; only the edges differ.

Failures: bars that cannot be used skip the tick, and the reason is recorded. A model that fails
costs its own opinion. A tick that raises releases its claim. A tick is stored whole, in one
transaction, or not at all. torra.desk.schedule decides when to run one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

import ath_calculator
import signal_bridge
import technical_calculator
from agents.contracts import Submit
from instance_database import Saved, TickKey
from torra.clock import Clock, duration, iso
from torra.config import Instance, Profile
from torra.errors import DataUnavailable, StoreUnavailable
from torra.evidence import feature_bundle
from torra.evidence.news_digest import NewsView
from torra.evidence.scheduled_events import EventView
from torra.failpoints import failpoint
from torra.store.tick_store import TickStore
from torra.tick import approval
from torra.tick import paper as tick_paper
from torra.tick import record as tick_record
from torra.tick.bar_window import Window
from torra.tick.debate import Answerers, Debater, Payer, debate
from torra.tick.record import TickDebate, TickInputs, TickResult
from torra.verdict import risk_engine, sentiment_rules
from torra.verdict.risk_engine import Account, Action, Decision, TradingState, intent
from torra.verdict.signal_states import signal_life

log = logging.getLogger("torra")

LOCK_GRACE: Final = 0.35
"""Seconds past the deadline that a tick waits for the database's lock."""

LEAST_WAIT: Final = 0.1
"""Seconds that a write waits for the lock even when the deadline has passed."""

PUBLISH_WAIT: Final = 5.0
"""Seconds that publishing waits for the lock: many instances may publish at once.

A signal that is not published now waits for the next wake.
"""

EXECUTION_OFF: Final = "EXECUTION_OFF"
"""Reason of a HOLD that would have sent something, had the profile let it."""

NO_EXPOSURE: Final[Mapping[str, Any]] = MappingProxyType(
    {"positions_open": 0, "gross_notional": 0.0, "day_loss": 0.0}
)
"""Stands for the account at a HOLD, which asks nothing of it, when no record is kept."""


class MarketRoute(Protocol):
    """The way to the market of an instance that does not trade on paper (torra.trading.courier)."""

    def settle(self, instance: str) -> None:
        """Book what has been reported since."""
        ...

    def send(self, instance: str) -> None:
        """Send what may be sent."""
        ...

    def figures(self, instance: str) -> Mapping[str, Any]:
        """Return what the broker says of account and symbol now, what is not known left out.

        Names are those of `Account`; `last_price` is the market's, as in `Decision`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Edges:
    """What a tick is handed.

    `on_event` hears what happens inside it and may not fail it. `submit` is None where nobody is to
    be asked, `account` None where nobody is to be paid. `picture` gives a replay the chart of then.
    `news` returns what was known at a moment, `events` what was scheduled around a close and the
    moment of its tick; each is None where the profile does not ask for it. `route` leads to a
    bridge, None to the paper bridge. `halted` says why nothing may go out, "" when it may.
    `on_error` gets what went wrong after a tick was stored, which cannot fail it any more. Without
    `recording` no journal is kept, and what only a record needs is not computed.
    """

    database: TickStore
    window: Window
    submit: Submit | None
    provider: str
    clock: Clock
    epoch: int
    on_event: Callable[[str, dict[str, Any]], None] | None = None
    account: Payer | None = None
    picture: Callable[[], bytes | None] | None = None
    news: Callable[[datetime], NewsView] | None = None
    events: Callable[[datetime, datetime], EventView] | None = None
    route: MarketRoute | None = None
    halted: Callable[[], str] = lambda: ""
    on_error: Callable[[Exception], None] = lambda _error: None
    debater: Debater | None = None
    promoted: Callable[[], bool] = lambda: False
    recording: bool = True

    @property
    def recorded(self) -> bool:
        """Whether a record is wanted: for the store's journal or for a listener."""
        return self.recording or self.on_event is not None

    @property
    def answerers(self) -> Answerers:
        """The callables that answer the tick's agents and pay for them."""
        return Answerers(
            self.submit,
            self.account,
            self.on_event,
            self.picture,
            self.debater,
            self.promoted,
            self.recorded,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a tick ended: done with its record, skipped or late with a reason, or taken.

    `result` is there for every tick that is done, `record` where one was wanted (Edges.recording).
    """

    key: TickKey
    state: Literal["done", "skipped", "late", "taken"]
    record: Mapping[str, Any] | None = None
    reason: str = ""
    detail: str = ""
    result: TickResult | None = None


def run_tick(
    instance: Instance,
    timeframe: str,
    bar_time: datetime,
    due: float,
    *,
    profile: Profile,
    edges: Edges,
) -> Outcome:
    """Process one closed bar, exactly once.

    `due` is the moment, in the clock's monotonic seconds, from which the deadline counts. Raises
    StoreUnavailable when the tick could not be stored before the deadline + 0.5 s; its claim is
    released then, as on any other exception. A listener hears of a claimed tick from `tick_start`
    to one end: `tick` with the record, or `tick_error`.
    """
    key = TickKey(instance.id, timeframe, bar_time)
    deadline = due + profile.agents.timeout_seconds
    # A transaction of its own: a kill from here on leaves a claim that the next desk can take over.
    with _write(edges, deadline):
        if not edges.database.claim_tick(key, edges.epoch):
            return Outcome(key, "taken", reason="claimed")
    failpoint("claimed")
    if edges.on_event is not None:
        _tell(edges, key, "tick_start", _start(key))
    try:
        outcome = _claimed(instance, key, due, deadline, profile, edges)
    # BaseException: a listener must hear of an end after an interrupt, too.
    except BaseException as error:
        _tell(edges, key, "tick_error", _fault(error))
        raise
    if outcome.state != "done":
        _tell(edges, key, "tick_error", _skip(outcome))
    elif outcome.record is not None:
        _tell(edges, key, "tick", outcome.record)
    return outcome


def _claimed(
    instance: Instance,
    key: TickKey,
    due: float,
    deadline: float,
    profile: Profile,
    edges: Edges,
) -> Outcome:
    database = edges.database
    try:
        inputs = _look(instance, key, profile, edges, deadline)
        failpoint("scored")
        debated = debate(
            inputs, key, profile, edges.answerers,
            database=database, clock=edges.clock, deadline=deadline,
        )  # fmt: skip
        failpoint("debated")
        record, result = _decide(instance, key, inputs, debated, profile, edges, due, deadline)
        failpoint("committed")
    except DataUnavailable as error:
        with _write(edges, deadline):
            database.skip_tick(key, error.reason, error.detail, edges.epoch)
        return Outcome(key, "skipped", reason=error.reason, detail=error.detail)
    except BaseException:
        _release(database, key, edges.epoch)
        raise
    # Only now: a late answer is added to a stored call, and before the commit there is none.
    if debated.late:
        debated.late.watch(database, key)
    _afterwards(instance, edges)
    return Outcome(key, "done", record=record, result=result)


def _afterwards(instance: Instance, edges: Edges) -> None:
    """Publish; the tick is stored, so nothing here may fail it."""
    try:
        if edges.route is not None:
            edges.route.send(instance.id)
        # Looked at without a lock first: most ticks send nothing and need no transaction.
        elif signal_bridge.waits(edges.database, instance.id):
            with edges.database.transaction(PUBLISH_WAIT):
                publish(instance, edges)
    except Exception as error:
        edges.on_error(error)
        log.exception("after the tick of %s; what is pending waits", instance.id)


def _tell(edges: Edges, key: TickKey, kind: str, told: Mapping[str, Any]) -> None:
    """Tell the listener; one that fails is logged and does not fail the tick."""
    if edges.on_event is None:
        return
    try:
        edges.on_event(kind, {**told, "torra_key": key.text})
    except Exception:
        log.exception("a listener failed at %s of %s", kind, key.text)


def _start(key: TickKey) -> dict[str, Any]:
    return {
        "instance": key.instance,
        "timeframe": key.timeframe,
        "bar_time": iso(key.bar_time),
        "close_time": iso(key.bar_time + duration(key.timeframe)),
    }


def _skip(outcome: Outcome) -> dict[str, Any]:
    """Return the event of a tick whose bars could not be used: it is not tried again."""
    code, message = f"skipped:{outcome.reason}", outcome.detail
    return {"code": code, "message": message, "recoverable": False}


def _fault(error: BaseException) -> dict[str, Any]:
    """Return the event of a tick that raised: the kind of its error, never its text."""
    if isinstance(error, StoreUnavailable):
        told = "The database could not be used, or the tick is another desk's by now."
        return {"code": "store", "message": told, "recoverable": True}
    # The text of an error may hold an address or a key, and this goes to the pages.
    told = f"The tick failed ({type(error).__name__}); the log says why."
    return {"code": "failed", "message": told, "recoverable": True}


def _write(edges: Edges, deadline: float) -> AbstractContextManager[None]:
    """Begin a transaction that waits for the database's lock until just past the deadline."""
    left = deadline + LOCK_GRACE - edges.clock.monotonic()
    return edges.database.transaction(max(LEAST_WAIT, left))


def publish(instance: Instance, edges: Edges) -> None:
    """Hand the instance's pending signals to its bridge, checking halt and expiry once more."""
    if edges.route is not None:
        edges.route.send(instance.id)
        return
    if not signal_bridge.waits(edges.database, instance.id):
        return
    state = trading_state(edges)
    signal_bridge.publish_pending(
        edges.database,
        instance=instance.id,
        now=edges.clock.now(),
        halted=state == "HALTED",
        reducing=state != "ACTIVE",
    )


def trading_state(edges: Edges) -> TradingState:
    """Return the desk's trading state; a kill switch that is not in the database yet counts."""
    return "HALTED" if edges.halted() else edges.database.trading_state()


def _release(database: TickStore, key: TickKey, epoch: int) -> None:
    try:
        with database.transaction(LEAST_WAIT):
            database.release_claim(key, epoch)
    except StoreUnavailable:
        return  # the claim stays; the desk owes it a row and writes it on its next wake


# --- what the tick sees: steps 2 to 5 -------------------------------------------------------------


def _look(
    instance: Instance, key: TickKey, profile: Profile, edges: Edges, deadline: float
) -> TickInputs:
    as_of = key.bar_time + duration(key.timeframe)
    bars = edges.window.bars(key.timeframe, as_of)
    # An older newest bar would be scored as if it were the one that is due.
    if bars.last != key.bar_time:
        raise DataUnavailable("no_bar", f"the feed has no bar at {iso(key.bar_time)}")
    row = edges.window.l1_row(key.timeframe, as_of, bars)
    if not row["valid"]:
        raise DataUnavailable("too_short", f"fewer than {technical_calculator.WARM_UP} bars")
    cursor = None if edges.route else edges.database.paper_cursor(instance.id)
    # The feed may be slow, so its bars are fetched before the lock is taken.
    path = tick_paper.path(instance, edges.window, cursor, as_of)
    if edges.route is not None:
        edges.route.settle(instance.id)
    now = edges.clock.now()
    # Before the paper bridge moves: a replay starts from this and lives through the same bars.
    before = edges.database.standing(instance.id) if edges.recorded else {}
    with _write(edges, deadline):
        edges.window.keep(key.timeframe, bars)
        if edges.route is None:
            publish(instance, edges)  # a halt since the last tick takes back what waits for a fill
            tick_paper.advance(instance, profile, edges.database, path, cursor, as_of)
    # After `keep`: a live window reads the highest price from the stored bars.
    ath = edges.window.ath(key.timeframe, as_of)
    memory = edges.database.memory_context(
        instance.id,
        key.timeframe,
        as_of=as_of,
        profile=profile,
        symbol=instance.symbol,
        price=float(row["close"]),
    )
    news = edges.news(as_of) if edges.news else None
    events = edges.events(as_of, now) if edges.events else None
    bundle = feature_bundle.build(
        symbol=instance.symbol,
        timeframe=key.timeframe,
        bar_time=key.bar_time,
        as_of=as_of,
        row=row,
        spread=profile.symbol(instance.symbol).spread,
        bars_held=len(bars),
        bar_age=max(0.0, (now - as_of) / duration(key.timeframe)),
        memory=memory,
        digits=profile.symbol(instance.symbol).digits,
        bars=bars,
        news=news,
        events=events,
    )
    score = ath_calculator.ath_score(float(row["close"]), ath, float(row["atr14"]))
    revision = None
    if edges.recorded:
        before["path"] = [[iso(bar.time), *bar[1:]] for bar in path]
        revision = edges.database.bar_revision(instance.id, key.timeframe, bars.first, bars.last)
    return TickInputs(
        instance=instance,
        timeframe=key.timeframe,
        bar_time=key.bar_time,
        as_of=as_of,
        now=now,
        before=before,
        view=bars,
        row=row,
        ath=ath,
        ath_score=score,
        memory=memory,
        bundle=bundle,
        revision=revision,
        news=news,
        events=events,
    )


# --- what the tick decides: step 8 ----------------------------------------------------------------


def _decide(
    instance: Instance,
    key: TickKey,
    inputs: TickInputs,
    debated: TickDebate,
    profile: Profile,
    edges: Edges,
    due: float,
    deadline: float,
) -> tuple[Mapping[str, Any] | None, TickResult]:
    database = edges.database
    figures = edges.route.figures(instance.id) if edges.route else {}  # files, and no lock held
    with _write(edges, deadline):
        saved = database.save_sentiment(
            debated.gated,
            key=key,
            close_time=inputs.as_of,
            ath=inputs.ath_score,
            l1=inputs.l1,
            ungated=debated.ungated,
            source_type=debated.deliberation.source_type,
            profile=profile,
            deliberation=tick_record.spoken(debated.deliberation) if edges.recording else None,
            timeframes=instance.timeframes,
        )
        failpoint("saved")
        # Taken after the wait for the lock: a tick that waited long decides as late as it is.
        now = edges.clock.now()
        desk: dict[str, Any] = {
            # Asked inside the transaction: a halt that came during the debate holds.
            "trading_state": trading_state(edges),
            "exposure": NO_EXPOSURE,
        }
        # A HOLD asks nothing of the account: without a record it is not read.
        if edges.recorded or saved.verdict != "HOLD":
            exposure = database.exposure(instance.id, key.timeframe, as_of=inputs.as_of)
            desk["exposure"] = {**exposure, **figures}
        decision, action = _review(instance, inputs, debated, saved, profile, database, desk)
        # In the same transaction: the halt of a runaway cannot be lost beside its tick.
        if action.halt is not None:
            database.halt(f"{action.halt} of {instance.id} {key.timeframe} at {iso(inputs.as_of)}")
        # After the review, so that the record still says what the checks thought of it.
        if profile.execution == "off" and action.drafts:
            action = Action("HOLD", EXECUTION_OFF, denied=action.denied)
        elif profile.execution == "approve" and action.drafts:
            action = _propose(key, inputs, decision, action, edges, now)
        signals = _enqueue(instance, key, inputs, action, database, now)
        # The record holds its own time, so it is taken before the record is written.
        elapsed = (edges.clock.monotonic() - due) * 1000.0
        desk["decided"] = iso(now)
        result = TickResult(inputs, debated, saved, action, signals, desk, elapsed)
        record = tick_record.build(result, profile, edges.provider) if edges.recorded else None
        if inputs.news is not None:
            database.store_news(found.item for found in inputs.news.items)
        if record is not None and edges.recording:
            database.write_journal(key, record)
        failpoint("recorded")
        database.write_calls(key, debated.deliberation.calls)
        if debated.picture is not None:
            database.store_picture(debated.picture)
        # Last: it raises when the claim is another desk's by now, which undoes all of the above.
        database.finish_tick(key, edges.epoch)
        failpoint("finished")
    return record, result


def _review(
    instance: Instance,
    inputs: TickInputs,
    debated: TickDebate,
    saved: Saved,
    profile: Profile,
    database: TickStore,
    desk: Mapping[str, Any],
) -> tuple[Decision, Action]:
    stands = sentiment_rules.opening_stands(
        saved.verdict, saved.low_consensus, saved.high_consensus, profile.thresholds
    )
    found = database.latches(instance.id)
    before = {side: side in found for side in sentiment_rules.SIDES}
    outer = (saved.low_consensus, saved.high_consensus)
    latched = sentiment_rules.release_latch(before, outer, profile.thresholds)
    position = database.position(instance.id)
    veto = debated.counted.veto or latched.get(saved.verdict, False)
    known = dict(desk["exposure"])
    decision = Decision(
        verdict=saved.verdict,
        price=inputs.close,
        atr=inputs.atr,
        # Gate and conviction are both at most 1: the desk can only shrink an opening.
        multiplier=_multiplier(debated, saved.verdict),
        veto=veto,
        opening_stands=stands,
        # The market's own, where a broker quotes: it stands among what the broker says.
        last_price=known.pop("last_price", None),
        bar_age=max(0.0, (inputs.now - inputs.as_of) / duration(inputs.timeframe)),
        duplicate=_sent_before(instance, inputs, saved.verdict, database),
    )
    account = Account(trading_state=desk["trading_state"], **known)
    spec = profile.symbol(instance.symbol)
    action = risk_engine.review(decision, position, account, spec, profile)
    openings = {
        side: any(leg.kind == "open" for leg in intent(side, position, profile.on_opposite).legs)
        for side in latched
    }
    latched = sentiment_rules.veto_latch(
        latched, outer, profile.thresholds, veto=debated.counted.veto, openings=openings
    )
    # A tick that trades nothing (off, or a late bar) must not latch or free later ones.
    if profile.execution == "off":
        return decision, action
    for side, held in latched.items():
        if held != before[side]:
            database.set_latch(instance.id, side, held)
    return decision, action


def _sent_before(instance: Instance, inputs: TickInputs, verdict: str, database: TickStore) -> bool:
    """Return whether this very decision is in the outbox already."""
    if verdict == "HOLD":
        return False
    sid = signal_bridge.signal_id(
        instance.id, instance.symbol, inputs.timeframe, inputs.bar_time, kind="open", side=verdict
    )
    return database.signal(sid) is not None


def _multiplier(debated: TickDebate, verdict: str) -> float:
    """Return what scales the size of an opening: the gate's multiplier and the conviction."""
    spoken = debated.counted
    if verdict not in ("BUY", "SELL"):
        return spoken.ruling.multiplier
    return spoken.ruling.multiplier * spoken.conviction_for(verdict)


def _propose(
    key: TickKey,
    inputs: TickInputs,
    decision: Decision,
    action: Action,
    edges: Edges,
    now: datetime,
) -> Action:
    """Write down what would have been sent, for a person; nothing is sent."""
    approval.propose(
        edges.database,
        action,
        decision,
        key=key,
        symbol=inputs.instance.symbol,
        created=now,
        # A proposal lives until the next bar closes: then there is a newer verdict.
        expires=inputs.as_of + duration(key.timeframe),
    )
    return Action("HOLD", approval.PROPOSED, denied=action.denied)


def _enqueue(
    instance: Instance,
    key: TickKey,
    inputs: TickInputs,
    action: Action,
    database: TickStore,
    now: datetime,
) -> tuple[Mapping[str, Any], ...]:
    life = signal_life(key.timeframe)
    return tuple(
        signal_bridge.write_signal(
            database,
            draft,
            instance=instance.id,
            symbol=instance.symbol,
            timeframe=key.timeframe,
            bar_time=key.bar_time,
            created=now if now - inputs.as_of > life else inputs.as_of,
            expires=max(inputs.as_of, now) + life,
            bridge=instance.route,
        )
        for draft in action.drafts
    )
