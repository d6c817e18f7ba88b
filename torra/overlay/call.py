"""One call on its way to the desk: claimed, debated, put on record, or answered from it.

All of it runs on a thread of the call's own, which the caller may leave behind at any moment. What
fails is raised; the claim is given back then.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import pandas as pd

from agent_framework import Fallback
from agents.contracts import UNHEARD, ModelUnavailable, SourceType
from agents.debate import replies
from agents.debate.deliberation import ABSTAINED, OUTAGE
from instance_database import Database, TickKey
from torra.clock import Clock, iso
from torra.errors import ConfigError, StoreUnavailable
from torra.overlay import hosted_tick, processes
from torra.overlay.answer import Hosted, plain
from torra.overlay.hosted_tick import ScorerQuestion
from torra.overlay.runtime import OverlayRuntime
from torra.store import bars as bar_table
from torra.store import hosted as hosted_table
from torra.store import replay_queries
from torra.store.hosted import HostedAnswer
from torra.tick import record as tick_record
from torra.tick.debate import ModelAccess, plan, run_tick_debate
from torra.tick.record import TickDebate, TickInputs

GRACE: Final = 0.4
"""Seconds past its deadline that a call waits for its tick to be stored."""

CLAIM_GRACE: Final = timedelta(seconds=2)
"""How long past its deadline a claim counts: a hung disk must not hold a question for ever."""

LOOK_AGAIN: Final = 0.05
"""Seconds between two looks at a question that another one debates."""

LEAST_WAIT: Final = 0.1
"""Seconds that a write waits for the lock even when the deadline has passed."""

NO_REASON: Final = ("silent:", OUTAGE)
"""Beginnings of flags that say nothing of why nobody was heard."""

WORDS: Final = 6
"""Most words of a reason why no agent was heard."""


@dataclass(frozen=True, slots=True)
class HostCall:
    """A question under way; `deadline` is a moment of `clock.monotonic`, in seconds.

    `gone` is set once the caller waits no longer. `strict`: what keeps agents away is raised.
    """

    question: ScorerQuestion
    fallback: Fallback | None
    clock: Clock
    deadline: float
    strict: bool = False
    gone: threading.Event = field(default_factory=threading.Event)

    @property
    def key(self) -> str:
        """The key of its bar."""
        return self.question.key.text

    def l1_alone(self, why: str) -> Hosted:
        """Return L1 as it is, with the reason."""
        return plain(self.key, self.question.l1, why, self.question.notes)


@dataclass
class HostFallback:
    """A host's own scorer, asked in Torra's place; `scores` are what it answered, if it did."""

    fallback: Fallback
    scores: Mapping[str, float] = field(default_factory=dict)

    def __call__(self, context: Any, ask: Any) -> Mapping[str, Any]:
        """Ask it; whatever it raises or returns goes on to the framework, which judges it."""
        reply = self.fallback(context, ask)
        with suppress(ModelUnavailable):
            self.scores = replies.scores(reply)
        return reply


def ask(runtime: OverlayRuntime, call: HostCall) -> Hosted:
    """Return the answer of the record, or debate the question and put it on record."""
    desk = runtime.at(call.deadline)
    owner = f"{processes.this_process()}|{threading.get_ident()}"
    claim = _claim(desk, call, owner)
    if isinstance(claim, HostedAnswer):
        record = claim.record or desk.database.tick_without_calls(call.key) or {}
        return replace(_answered(call, claim, record), again=True)
    if claim != "ours":
        return call.l1_alone("another call debates this bar, and its answer did not come in time")
    try:
        return _debate(desk, call, owner)
    except BaseException:
        # Where this fails, too, the claim ends with its time.
        with suppress(StoreUnavailable), desk.database.transaction(LEAST_WAIT):
            question = call.question
            hosted_table.give_back(desk.database, question.key, question.hash, owner)
        raise


def _claim(desk: OverlayRuntime, call: HostCall, owner: str) -> HostedAnswer | str:
    """Return the answer that stands, "ours" once it is claimed, or "taken" at the deadline."""
    question, clock, waited = call.question, call.clock, False
    while True:
        left = call.deadline - clock.monotonic()
        expires = clock.real_now() + timedelta(seconds=max(0.0, left)) + CLAIM_GRACE
        with desk.database.transaction(max(LEAST_WAIT, left)):
            claim = hosted_table.ask_hosted(
                desk.database, question.key, question.hash, owner, expires, processes.lives,
                desk.profile_name, waited=waited,
            )  # fmt: skip
        waited = True
        if claim != "taken" or left <= LOOK_AGAIN:
            return claim
        clock.sleep(LOOK_AGAIN)


def _debate(desk: OverlayRuntime, call: HostCall, owner: str) -> Hosted:
    question, clock = call.question, call.clock
    began = clock.monotonic()
    provider, submit, missing = desk.answering()
    if missing and call.strict:
        raise ConfigError(missing)
    inputs = hosted_tick.inputs(question, desk.events(question), hosted_tick.news(question))
    picture = question.request.picture
    fallback = None if call.fallback is None else HostFallback(call.fallback)
    access = ModelAccess(
        submit,
        # Nobody outside is reached without a provider, so there is nothing to pay.
        None if missing else desk.account,
        picture=None if picture is None else lambda: picture,
        promoted=desk.promoted,
        fallback=fallback,
    )
    chosen = plan(inputs, access, None)
    debated = run_tick_debate(chosen, inputs, access, clock=clock, deadline=call.deadline)
    record, revision = store(
        desk.database, call, inputs, debated, fallback=fallback, owner=owner, provider=provider,
        elapsed_ms=(clock.monotonic() - began) * 1000.0,
    )  # fmt: skip
    if debated.late:
        debated.late.watch(desk.database, question.key)
    chart = {name: dict(entry) for name, entry in debated.counted.scores.items()}
    answered = _answered(call, HostedAnswer(chart, revision, None, is_final(debated)), record)
    return replace(
        answered,
        why=answered.why and (missing or answered.why),
        cost_usd=debated.deliberation.cost_usd,
    )


def store(
    database: Database,
    call: HostCall,
    inputs: TickInputs,
    debated: TickDebate,
    *,
    fallback: HostFallback | None,
    owner: str,
    provider: str,
    elapsed_ms: float,
) -> tuple[Mapping[str, Any], int]:
    """Store the tick with its answer, all or nothing; return its record and its revision.

    Nothing is kept where the host has gone on without the answer. Raises StoreUnavailable then, and
    when the claim is another's by now, or the store fails.
    """
    question, request, clock = call.question, call.question.request, call.clock
    key, profile = question.key, question.profile
    legacy = debated.deliberation.source_type == SourceType.LEGACY
    wait = call.deadline + GRACE - LEAST_WAIT - clock.monotonic()
    with database.transaction(max(LEAST_WAIT, wait)):
        revision = hosted_table.hosted_revision(database, key, question.hash, owner)
        if not replay_queries.knows_profile(database, key.instance, profile.digest()):
            database.apply_profile(key.instance, profile.model_dump_json(), profile.digest())
        newest = _keep_bars(database, key, request.bars)
        hosted_table.put_aside(database, key)
        if inputs.news is not None:
            database.store_news(row.item for row in inputs.news.items)
        hosted = {
            "asked": question.hash,
            "revision": revision,
            "own_scores": request.scores is not None,
            "extra": dict(request.extra),
            "headlines": [item.id for item in request.headlines],
            "bars": len(request.bars),
            "moment": iso(request.moment),
            "stale": question.stale,
            "told": list(question.notes),
            "picture": request.picture_hash,
            "handed": tick_record.describe(request.bars, newest),
            # What the host's own fallback answered: {} for nothing, None where there was none.
            "fallback": None if fallback is None else dict(fallback.scores) if legacy else {},
        }
        record = hosted_tick.write(
            database, question, replace(inputs, revision=newest), debated,
            hosted=hosted, provider=provider, elapsed_ms=elapsed_ms, now=clock.real_now(),
        )  # fmt: skip
        hosted_table.keep_answer(
            database, key, question.hash, debated.counted.scores, revision,
            final=is_final(debated),
        )  # fmt: skip
        if call.gone.is_set():
            raise StoreUnavailable(f"{key.text} came too late: its host has gone on with L1")
    if call.gone.is_set():  # while the disk took its time: it stands, and says so
        with suppress(StoreUnavailable):
            hosted_table.came_late(database, key)
    # As a record is read: with the deliberation, which stands in a row of its own.
    return {
        **record,
        "deliberation": tick_record.stored_deliberation(debated.deliberation),
    }, revision


def _keep_bars(database: Database, key: TickKey, bars: pd.DataFrame) -> int | None:
    """Store what was handed over, so that the stream's bars are just these.

    Returns their highest revision: records and memory are made of the older ones, too.
    """
    database.store_bars(key.instance, key.timeframe, bars)
    times = pd.DatetimeIndex(bars.index)
    first, last = times[0].to_pydatetime(), times[-1].to_pydatetime()
    # All of them are stored now: more times than these are bars that the host has no more.
    if bar_table.count_times(database, key.instance, key.timeframe, first, last) > len(bars):
        database.withdraw_others(key.instance, key.timeframe, bars)
    return database.bar_revision(key.instance, key.timeframe, first, last)


def is_final(debated: TickDebate) -> bool:
    """Return whether agents were heard, or all of them abstained: such an answer is given again."""
    deliberation = debated.deliberation
    return deliberation.heard or (ABSTAINED in deliberation.flags and not deliberation.failures)


def _answered(call: HostCall, answer: HostedAnswer, record: Mapping[str, Any]) -> Hosted:
    """Return an answer with what its record says of it."""
    gate = record.get("gate") or {}
    return Hosted(
        key=call.key,
        chart=answer.chart,
        l1=call.question.l1,
        veto=bool(gate.get("veto")),
        multiplier=float(gate.get("multiplier", 1.0)),
        reasons=tuple(gate.get("reasons", ())),
        debated=answer.final,
        revision=answer.revision,
        why=_why(record),
        notes=call.question.notes,
        record=record,
        veto_sides=tuple(gate.get("veto_sides", ())),
    )


def _why(record: Mapping[str, Any]) -> str:
    """Return why no agent was heard on a tick that is on record, "" where one was."""
    deliberation, source = record.get("deliberation") or {}, record.get("source_type")
    if source and source not in UNHEARD:
        return ""
    if source == SourceType.AGENT_SKIPPED:
        return "no reply could change the verdict, so nobody was asked"
    # What befell the calls comes first; what the rules of the gate did not see is no reason.
    calls = [call.get("detail", "").partition(";")[0] for call in deliberation.get("calls", ())]
    flags = [flag for flag in deliberation.get("flags", ()) if not flag.startswith(NO_REASON)]
    failures = deliberation.get("failures", {}).values()
    words = [*dict.fromkeys([*filter(None, calls), *failures, *flags])]
    answering = "your fallback" if source == SourceType.LEGACY else "no agent"
    return f"{answering} was heard: {', '.join(words[:WORDS]) or 'nobody was asked'}"
