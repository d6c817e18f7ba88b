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

from agent_framework import Fallback
from agents.contracts import UNHEARD, SourceType
from agents.debate.deliberation import OUTAGE
from torra.clock import Clock
from torra.errors import ConfigError, StoreUnavailable
from torra.overlay import hosted_tick, processes
from torra.overlay.answer import Hosted, plain
from torra.overlay.hosted_tick import HostedScores, HostFallback, ScorerQuestion
from torra.overlay.opened import OverlayRuntime
from torra.store import hosted as hosted_table
from torra.store.hosted import HostedAnswer
from torra.tick.debate import ModelAccess, plan, run_tick_debate

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
class PendingQuestion:
    """A question under way; `deadline` is a moment of `clock.monotonic`, in seconds.

    `gone` is set once the caller waits no longer. `strict`: what keeps agents away is raised.
    """

    question: ScorerQuestion
    looked: HostedScores
    fallback: Fallback | None
    clock: Clock
    deadline: float
    gone: threading.Event = field(default_factory=threading.Event)
    strict: bool = False

    @property
    def key(self) -> str:
        """The key of its bar."""
        return self.question.key.text

    @property
    def l1(self) -> Mapping[str, float]:
        """The scores that count as L1: the host's own, or Torra's."""
        return self.question.given.scores or self.looked.scores

    def l1_alone(self, why: str) -> Hosted:
        """Return L1 as it is, with the reason."""
        return plain(self.key, self.l1, why, self.question.told)


def ask(opened: OverlayRuntime, call: PendingQuestion) -> Hosted:
    """Return the answer of the record, or debate the question and put it on record."""
    desk = opened.at(call.deadline)
    owner = f"{processes.this_process()}|{threading.get_ident()}"
    found = _claim(desk, call, owner)
    if isinstance(found, HostedAnswer):
        record = found.record or desk.database.tick_without_calls(call.key) or {}
        return replace(_answered(call, found, record), again=True)
    if found != "ours":
        return call.l1_alone("another call debates this bar, and its answer did not come in time")
    try:
        return _debate(desk, call, owner)
    except BaseException:
        # Where this fails, too, the claim ends with its time.
        with suppress(StoreUnavailable), desk.database.transaction(LEAST_WAIT):
            hosted_table.give_back(desk.database, call.question.key, call.question.asked, owner)
        raise


def _claim(desk: OverlayRuntime, call: PendingQuestion, owner: str) -> HostedAnswer | str:
    """Return the answer that stands, "ours" once it is claimed, or "taken" at the deadline."""
    question, clock, waited = call.question, call.clock, False
    while True:
        left = call.deadline - clock.monotonic()
        expires = clock.real_now() + timedelta(seconds=max(0.0, left)) + CLAIM_GRACE
        with desk.database.transaction(max(LEAST_WAIT, left)):
            found = hosted_table.ask_hosted(desk.database,
                question.key, question.asked, owner, expires, processes.lives,
                desk.profile_name, waited=waited,
            )  # fmt: skip
        waited = True
        if found != "taken" or left <= LOOK_AGAIN:
            return found
        clock.sleep(LOOK_AGAIN)


def _debate(desk: OverlayRuntime, call: PendingQuestion, owner: str) -> Hosted:
    question, clock = call.question, call.clock
    began = clock.monotonic()
    provider, submit, missing = desk.answering()
    if missing and call.strict:
        raise ConfigError(missing)
    seen = hosted_tick.inputs(
        question, call.looked, desk.events(question), hosted_tick.news(question)
    )
    picture = question.given.picture
    fallback = None if call.fallback is None else HostFallback(call.fallback)
    who = ModelAccess(
        submit,
        # Nobody outside is reached without a provider, so there is nothing to pay.
        None if missing else desk.account,
        picture=None if picture is None else lambda: picture,
        promoted=desk.promoted,
        fallback=fallback,
    )
    chosen = plan(seen, who, None)
    debated = run_tick_debate(chosen, seen, who, clock=clock, deadline=call.deadline)
    now = clock.monotonic()
    record, revision = hosted_tick.store(
        desk.database, question, seen, debated, fallback=fallback, owner=owner,
        provider=provider, elapsed_ms=(now - began) * 1000.0, now=clock.real_now(),
        wait=max(LEAST_WAIT, call.deadline + GRACE - LEAST_WAIT - now),
        gave_up=call.gone.is_set,
    )  # fmt: skip
    if debated.late:
        debated.late.watch(desk.database, question.key)
    answer = HostedAnswer(
        {name: dict(entry) for name, entry in debated.counted.scores.items()}, revision, None,
        hosted_tick.is_final(debated),
    )  # fmt: skip
    why = _why(record)
    return replace(
        _answered(call, answer, record), why=why and (missing or why),
        cost_usd=debated.deliberation.cost_usd,
    )  # fmt: skip


def _answered(call: PendingQuestion, answer: HostedAnswer, record: Mapping[str, Any]) -> Hosted:
    """Return an answer with what its record says of it."""
    gate = record.get("gate") or {}
    return Hosted(
        key=call.key,
        chart=answer.chart,
        l1=call.l1,
        veto=bool(gate.get("veto")),
        multiplier=float(gate.get("multiplier", 1.0)),
        reasons=tuple(gate.get("reasons", ())),
        debated=answer.final,
        revision=answer.revision,
        why=_why(record),
        told=call.question.told,
        record=record,
        veto_sides=tuple(gate.get("veto_sides", ())),
    )


def _why(record: Mapping[str, Any]) -> str:
    """Return why no agent was heard on a tick that is on record, "" where one was."""
    spoken, source = record.get("deliberation") or {}, record.get("source_type")
    if source and source not in UNHEARD:
        return ""
    if source == SourceType.AGENT_SKIPPED:
        return "no reply could change the verdict, so nobody was asked"
    # What befell the calls comes first; what the rules of the gate did not see is no reason.
    calls = [call.get("detail", "").partition(";")[0] for call in spoken.get("calls", ())]
    flags = [flag for flag in spoken.get("flags", ()) if not flag.startswith(NO_REASON)]
    words = dict.fromkeys([*filter(None, calls), *spoken.get("failures", {}).values(), *flags])
    heard = "your fallback" if source == SourceType.LEGACY else "no agent"
    return f"{heard} was heard: {', '.join([*words][:WORDS]) or 'nobody was asked'}"
