"""One call on its way to the desk: claimed, debated, put on record, or answered from it.

All of it runs on a thread of the call's own, which the caller may leave behind at any moment. What
fails is raised; the claim is given back then.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from agent_framework import Fallback
from agents.contracts import UNHEARD, SourceType
from agents.debate.deliberation import OUTAGE
from torra.clock import Clock
from torra.errors import ConfigError, StoreUnavailable
from torra.overlay import hosted_tick, processes
from torra.overlay.answer import Hosted, plain
from torra.overlay.hosted_tick import HostedScores, ScorerQuestion
from torra.overlay.opened import OverlayRuntime
from torra.store import hosted as hosted_table
from torra.store.hosted import HostedAnswer

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
        return _again(desk, call, found)
    if found != "ours":
        return call.l1_alone("another call debates this bar, and its answer did not come in time")
    try:
        return _debate(desk, call, owner)
    except BaseException:
        _give_back(desk, call.question, owner)
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
    provider, missing = desk.answering()
    if missing and call.strict:
        raise ConfigError(missing)
    events, news = desk.events(question), hosted_tick.news(question)
    seen = hosted_tick.inputs(question, call.looked, events, news)
    who = hosted_tick.answerers(
        # Nobody outside is reached without a provider, so there is nothing to pay.
        provider.submit, None if missing else desk.account, question.given,
        promoted=desk.promoted, fallback=call.fallback,
    )  # fmt: skip
    chosen = hosted_tick.planned(question, seen, who)
    debated = hosted_tick.debate(question, seen, chosen, who, clock=clock, deadline=call.deadline)
    now = clock.monotonic()
    record, revision = hosted_tick.store(
        desk.database, question, seen, debated, fallback=who.fallback, owner=owner,
        provider=provider.name, elapsed_ms=(now - began) * 1000.0, now=clock.real_now(),
        wait=max(LEAST_WAIT, call.deadline + GRACE - LEAST_WAIT - now),
        gave_up=call.gone.is_set,
    )  # fmt: skip
    if debated.late:
        debated.late.watch(desk.database, question.key)
    counted, final = debated.counted, hosted_tick.is_final(debated)
    return Hosted(
        key=call.key,
        chart={name: dict(entry) for name, entry in counted.scores.items()},
        l1=call.l1,
        veto=counted.ruling.veto,
        multiplier=counted.ruling.multiplier,
        reasons=counted.ruling.reasons,
        debated=final,
        revision=revision,
        why="" if debated.deliberation.heard else missing or _why(record),
        told=question.told,
        cost_usd=debated.deliberation.cost_usd,
        record=record,
        veto_sides=counted.ruling.veto_sides,
    )


def _again(desk: OverlayRuntime, call: PendingQuestion, found: HostedAnswer) -> Hosted:
    """Return an answer that was given before."""
    record = found.record
    if record is None:
        record = desk.database.told_tick(call.key) or {}
    gate = record.get("gate") or {}
    return Hosted(
        key=call.key,
        chart=found.chart,
        l1=call.l1,
        veto=bool(gate.get("veto")),
        multiplier=float(gate.get("multiplier", 1.0)),
        reasons=tuple(gate.get("reasons", ())),
        debated=found.final,
        again=True,
        revision=found.revision,
        why=_why(record),
        told=call.question.told,
        record=record,
        veto_sides=tuple(gate.get("veto_sides", ())),
    )


def _give_back(desk: OverlayRuntime, question: ScorerQuestion, owner: str) -> None:
    try:
        with desk.database.transaction(LEAST_WAIT):
            hosted_table.give_back(desk.database, question.key, question.asked, owner)
    except StoreUnavailable:
        return  # it ends with its time


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
