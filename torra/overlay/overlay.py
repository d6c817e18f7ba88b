"""`Overlay`: the desk's debate behind one call, for a scorer that keeps its own loop.

    overlay = Overlay("scorer_home", profile="default", clock="new_york+7")
    chart = overlay.score_chart("XAUUSD", "M15", bars, scores=l1)

A call reads what it was handed (torra.overlay.given), computes what Torra's calculators make of it,
and asks the desk of the profile on a thread of its own, until its deadline: the profile's
`agents.timeout_seconds`, counted from the call, opening and imports included. Whatever fails, the
call ends 0.5 s after that at the latest with the dict of L1 and the reason. Two things are raised:
ConfigError by the constructor, NoScores where there is no L1 to return. With `strict=True` a call
raises what failed, too.

One overlay may be used by any number of threads and processes, and before and after a fork: the
constructor only reads files. What is opened belongs to the process that opened it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import weakref
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import TimeoutError as Late
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import agent_framework
from agent_framework import Fallback
from agents.contracts import SourceType
from instance_database import TickKey
from torra.clock import Clock, System, iso
from torra.config import NAME, NAME_RULE, Instance, Profile, has_desk, load_desk, load_profile
from torra.errors import ConfigError, StoreUnavailable, TorraError
from torra.home import HOSTED, PAGES
from torra.market.broker_clock import ServerClock
from torra.overlay import given as reading
from torra.overlay import hosted_tick, processes
from torra.overlay.answer import Hosted, plain
from torra.overlay.given import Given, NoScores
from torra.overlay.hosted_tick import Looked, Question, TooShort
from torra.overlay.opened import DEMO, Opened
from torra.overlay.workers import Workers
from torra.store.hosted import HOST, HostedAnswer

log = logging.getLogger("torra.overlay")

GRACE: Final = 0.4
"""Seconds past its deadline that a call waits for its tick to be stored."""

CLAIM_GRACE: Final = timedelta(seconds=2)
"""How long past its deadline a claim counts: a hung disk must not hold a question for ever."""

LOOK_AGAIN: Final = 0.05
"""Seconds between two looks at a question that another one debates."""

SILENT: Final = "silent:"
"""Beginning of a flag that says what the gate's rules could not see."""

LEAST_WAIT: Final = 0.1
"""Seconds that a write waits for the lock even when the deadline has passed."""


_OVERLAYS: Final[weakref.WeakSet[Overlay]] = weakref.WeakSet()
"""The overlays of this process: a fork resets them in the child, before any thread is there."""


class Overlay:
    """The way from a scorer of one's own to Torra's debate.

    `home` is a folder, made on first use; a desk may run on it, too. `profile` is one of its
    profiles or of the shipped ones, `clock` the clock of naive times (new_york+7, utc, a zone or
    +03:00), `name` tells several scorers on one home apart. Raises ConfigError, and nothing else.
    """

    def __init__(
        self,
        home: str | Path,
        *,
        profile: str = "default",
        clock: str | None = None,
        name: str = "scorer",
        strict: bool = False,
    ) -> None:
        self._home = _home(home)
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ConfigError(f"name of an overlay: {NAME_RULE}")
        self._name = name
        self._profile_name = profile
        self._profile: Profile = _profile(self._home, profile)
        self._clock = None if clock is None else ServerClock.parse(_text("clock", clock))
        self._strict = strict
        HOSTED[self._home.absolute()] = None
        self._start()
        _OVERLAYS.add(self)

    def _start(self) -> None:
        self._workers = Workers()
        self._waiters = Workers()
        self._opened = Opened(self._home, self._profile, self._profile_name)
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._trouble: dict[str, str] | None = None

    # --- asking ---------------------------------------------------------------------------------

    def score_chart(
        self,
        symbol: str,
        timeframe: str,
        bars: Any,
        *,
        scores: Mapping[str, Any] | None = None,
        extra: Mapping[str, float] | None = None,
        headlines: Any = None,
        picture: bytes | None = None,
        fallback: Fallback | None = None,
        as_of: datetime | str | None = None,
    ) -> dict[str, Any]:
        """Return what the host's `score_chart()` returned, before the host's own blend.

        Four vectors {score in [-1, +1], note} and composite_bias. `bars` is a DataFrame or a list
        of rows with time, open, high, low, close and, where there is one, volume, oldest first;
        `scores` are the host's own four, None for Torra's; `extra` at most 64 numbers by name,
        which agents cite as host.<name>; `headlines` texts, or mappings with headline, published,
        summary, url and source; `picture` a PNG or JPEG; `fallback` is asked when no agent
        answered; `as_of` the moment of the question, None for now. Raises NoScores.
        """
        return self.deliberate(
            symbol, timeframe, bars, scores=scores, extra=extra, headlines=headlines,
            picture=picture, fallback=fallback, as_of=as_of,
        ).chart  # fmt: skip

    async def score_chart_async(self, *asked: Any, **more: Any) -> dict[str, Any]:
        """Return what `score_chart` does, without holding the host's event loop."""
        deadline = self._deadline()
        work = self._waiters.run(lambda: self._call(deadline, *asked, **more).chart)
        if work is None:  # hundreds wait already
            return self._call(System().monotonic(), *asked, **more).chart
        return await asyncio.wrap_future(work)

    def deliberate(
        self,
        symbol: str,
        timeframe: str,
        bars: Any,
        *,
        scores: Mapping[str, Any] | None = None,
        extra: Mapping[str, float] | None = None,
        headlines: Any = None,
        picture: bytes | None = None,
        fallback: Fallback | None = None,
        as_of: datetime | str | None = None,
    ) -> Hosted:
        """Return the whole answer: the dict, the gate's veto, L1, the blend and the record.

        Take this one or `score_chart`, not both, and blend once: `blended` is blended already.
        """
        return self._call(
            self._deadline(), symbol, timeframe, bars, scores=scores, extra=extra,
            headlines=headlines, picture=picture, fallback=fallback, as_of=as_of,
        )  # fmt: skip

    def _deadline(self) -> float:
        return System().monotonic() + self._profile.agents.timeout_seconds

    def _call(
        self,
        deadline: float,
        symbol: Any,
        timeframe: Any,
        bars: Any,
        *,
        fallback: Fallback | None = None,
        **given: Any,
    ) -> Hosted:
        clock = System()
        question = reading.read(
            symbol, timeframe, bars, **given, now=clock.real_now(), clock=self._clock
        )
        answer = self._answer(question, fallback, clock, deadline)
        with self._lock:
            self._counts[_kind(answer)] += 1
        return answer

    def _answer(
        self, given: Given, fallback: Fallback | None, clock: Clock, deadline: float
    ) -> Hosted:
        """Return the answer to a question that was read, whatever fails."""
        if given.refusal:
            return self._without(given, given.refusal)
        try:
            question = hosted_tick.question(given, self._name, self._profile, self._profile_name)
            looked = hosted_tick.look(question)
        except TooShort as error:
            return self._without(given, f"bars: {error}")
        except Exception as error:
            log.exception("%s %s could not be read", given.symbol, given.timeframe)
            return self._without(given, f"bars: {type(error).__name__}", error)
        return self._debated(question, looked, fallback, clock, deadline)

    def _debated(
        self,
        question: Question,
        looked: Looked,
        fallback: Fallback | None,
        clock: Clock,
        deadline: float,
    ) -> Hosted:
        """Return the desk's answer where there is one in time, L1's else."""
        l1 = question.given.scores or looked.scores
        key = question.key.text
        gone = threading.Event()
        work = self._workers.run(
            partial(self._ask, question, looked, l1, fallback, clock, deadline, gone)
        )
        if work is None:
            return self._l1(key, l1, "too many calls hang already", question)
        try:
            return work.result(max(0.0, deadline + GRACE - clock.monotonic()))
        except Exception as error:
            gone.set()
            if isinstance(error, Late) and not work.done():
                why = f"no answer within {self._profile.agents.timeout_seconds:g} s"
                return self._l1(key, l1, why, question)
            if self._strict:
                raise
            known = isinstance(error, TorraError)
            # What Torra raises says all that there is to say; anything else is told with its trace.
            log.warning("%s: L1 stands alone: %s", key, error, exc_info=None if known else error)
            why = str(error) if known else type(error).__name__
            return self._l1(key, l1, why, question)

    def _without(self, given: Given, why: str, error: Exception | None = None) -> Hosted:
        """Return the host's own L1 for bars that cannot be used; raise NoScores without one."""
        self._note(f"{given.symbol} {given.timeframe}", why)
        if given.scores is None:
            raise NoScores(f"{given.symbol} {given.timeframe}: {why}") from error
        if self._strict:
            raise ConfigError(f"{given.symbol} {given.timeframe}: {why}") from error
        log.warning("%s %s: L1 stands alone: %s", given.symbol, given.timeframe, why)
        return plain("", given.scores, why, given.told)

    def _l1(self, key: str, l1: Mapping[str, float], why: str, question: Question) -> Hosted:
        self._note(key, why)
        return plain(key, l1, why, question.told)

    def _note(self, key: str, why: str) -> None:
        with self._lock:
            at = iso(System().real_now().replace(microsecond=0))
            self._trouble = {"at": at, "of": key, "why": why}

    # --- on a thread of its own -----------------------------------------------------------------

    def _ask(
        self,
        question: Question,
        looked: Looked,
        l1: Mapping[str, float],
        fallback: Fallback | None,
        clock: Clock,
        deadline: float,
        gone: threading.Event,
    ) -> Hosted:
        """Return the answer of the record, or debate it and put it on record.

        `gone` is set once the caller waits no longer.
        """
        desk = self._opened.at(deadline)
        owner = f"{processes.this_process()}|{threading.get_ident()}"
        found = self._claim(desk, question, owner, clock, deadline)
        if isinstance(found, HostedAnswer):
            return _again(desk, question, l1, found)
        if found != "ours":
            why = "another call debates this bar, and its answer did not come in time"
            return self._l1(question.key.text, l1, why, question)
        try:
            return self._debate(desk, question, looked, l1, fallback, owner, clock, deadline, gone)
        except BaseException:
            _give_back(desk, question, owner)
            raise

    def _claim(
        self, desk: Opened, question: Question, owner: str, clock: Clock, deadline: float
    ) -> HostedAnswer | str:
        """Return the final answer, "ours" once it is claimed, or "taken" at the deadline."""
        asked, waited = question.asked, False
        while True:
            left = deadline - clock.monotonic()
            expires = clock.real_now() + timedelta(seconds=max(0.0, left)) + CLAIM_GRACE
            with desk.database.transaction(max(LEAST_WAIT, left)):
                found = desk.database.ask_hosted(
                    question.key, asked, owner, expires, processes.lives, self._profile_name,
                    waited=waited,
                )  # fmt: skip
            waited = True
            if found != "taken" or left <= LOOK_AGAIN:
                return found
            clock.sleep(LOOK_AGAIN)

    def _debate(
        self,
        desk: Opened,
        question: Question,
        looked: Looked,
        l1: Mapping[str, float],
        fallback: Fallback | None,
        owner: str,
        clock: Clock,
        deadline: float,
        gone: threading.Event,
    ) -> Hosted:
        began = clock.monotonic()
        provider, missing = desk.answering()
        if missing and self._strict:
            raise ConfigError(missing)
        seen = hosted_tick.inputs(
            question, looked, desk.events(question), hosted_tick.news(question)
        )
        who = hosted_tick.answerers(
            # Nobody outside is reached without a provider, so there is nothing to pay.
            provider.submit, None if missing else desk.account, question.given,
            promoted=desk.promoted, fallback=fallback,
        )  # fmt: skip
        chosen = hosted_tick.planned(question, seen, who)
        debated = hosted_tick.debate(question, seen, chosen, who, clock=clock, deadline=deadline)
        record, revision = hosted_tick.store(
            desk.database, question, seen, debated, fallback=who.fallback, owner=owner,
            provider=provider.name, elapsed_ms=(clock.monotonic() - began) * 1000.0,
            now=clock.real_now(),
            wait=max(LEAST_WAIT, deadline + GRACE - LEAST_WAIT - clock.monotonic()),
            gave_up=gone.is_set,
        )  # fmt: skip
        if debated.late:
            debated.late.watch(desk.database, question.key)
        counted = debated.counted
        final = hosted_tick.is_final(debated)
        why = "" if final else missing or _why(record)
        if why:
            self._note(question.key.text, why)
        return Hosted(
            key=question.key.text,
            chart={name: dict(entry) for name, entry in counted.scores.items()},
            l1=l1,
            veto=counted.ruling.veto,
            multiplier=counted.ruling.multiplier,
            reasons=counted.ruling.reasons,
            debated=final,
            revision=revision,
            why=why,
            told=question.told,
            cost_usd=debated.deliberation.cost_usd,
            record=record,
        )

    # --- beside the calls -----------------------------------------------------------------------

    def key(self, symbol: str, timeframe: str, bar_time: datetime) -> str:
        """Return the key of a bar by its open time: what `outcome` and the pages call it.

        Raises ValueError for a symbol or a timeframe that cannot be, and for a naive time without
        a clock.
        """
        name, step = reading.names_of(symbol, timeframe)
        moment = reading.moment_of(bar_time, self._clock)
        instance = hosted_tick.stream(self._name, name, (step,), self._profile_name)
        return TickKey(instance.id, step, moment).text

    @staticmethod
    def blend(l1: Mapping[str, float], chart: Mapping[str, Any]) -> dict[str, Any]:
        """Return the host's last step: 0.80 L1 + 0.20 agents, each score within 0.06 of L1."""
        return agent_framework.blend(l1, chart)

    def outcome(self, key: str, *, verdict: str, r: float | None = None) -> bool:
        """Tell what the host did at a bar, and what it came to in R; False when it was told before.

        `verdict` is BUY, SELL or HOLD, `r` the result in units of the risk, None for no trade.
        Raises ValueError for anything else, LookupError for a bar that is not on record,
        StoreUnavailable when it cannot be stored: tell it again then.
        """
        if verdict not in ("BUY", "SELL", "HOLD"):
            raise ValueError(f"verdict is {verdict!r}: use BUY, SELL or HOLD")
        known = None if r is None else reading.finite(r)
        if r is not None and known is None:
            raise ValueError(f"r is {r!r}: use a finite number")
        if not isinstance(key, str) or not key.startswith(f"{HOST}{self._name}:"):
            raise LookupError(f"{key!r} is no bar of the overlay {self._name}")
        deadline = self._deadline()

        def tell() -> bool:
            return self._opened.at(deadline).database.tell_outcome(key, verdict, known)

        work = self._workers.run(tell)
        try:
            if work is not None:
                return work.result(max(0.0, deadline + GRACE - System().monotonic()))
        except Late:
            pass
        raise StoreUnavailable(f"the outcome of {key} could not be stored in time: tell it again")

    def health(self) -> dict[str, Any]:
        """Return how the overlay stands, for a log or a page of the host's; asks nobody.

        `answers` counts calls of this process by how they ended, `trouble` is the newest reason
        why L1 stood alone, `busy` how many calls are under way.
        """
        with self._lock:
            counts, trouble = dict(self._counts), self._trouble
        return {
            "overlay": self._name,
            "home": str(self._home),
            "profile": self._profile_name,
            "provider": self._profile.agents.provider,
            "opened": self._opened.is_open,
            "answers": counts,
            "busy": self._workers.busy,
            "trouble": trouble,
        }

    def close(self) -> None:
        """Close what this process has opened; a later call opens it anew."""
        self._opened.close()

    def begin_anew(self) -> None:
        """Begin anew in a child process: its parent's connections and threads are not its own."""
        self._opened.abandon()
        self._start()


def _after_fork() -> None:
    for overlay in list(_OVERLAYS):
        overlay.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _again(
    desk: Opened, question: Question, l1: Mapping[str, float], found: HostedAnswer
) -> Hosted:
    """Return an answer that was given before."""
    record = found.record
    if record is None:
        record = desk.database.told_tick(question.key.text) or {}
    gate = record.get("gate") or {}
    why = "" if found.final else _why(record)
    return Hosted(
        key=question.key.text,
        chart=found.chart,
        l1=l1,
        why=why,
        veto=bool(gate.get("veto")),
        multiplier=float(gate.get("multiplier", 1.0)),
        reasons=tuple(gate.get("reasons", ())),
        debated=found.final,
        again=True,
        revision=found.revision,
        told=question.told,
        record=record,
    )


def _give_back(desk: Opened, question: Question, owner: str) -> None:
    try:
        with desk.database.transaction(LEAST_WAIT):
            desk.database.give_back(question.key, question.asked, owner)
    except StoreUnavailable:
        return  # it ends with its time


def _why(record: Mapping[str, Any]) -> str:
    """Return why no agent was heard on a tick that is on record, in a few words."""
    spoken = record.get("deliberation") or {}
    if record.get("source_type") == SourceType.AGENT_SKIPPED:
        return "no reply could change the verdict, so nobody was asked"
    # What the rules of the gate did not see is no reason; what befell the agents comes first.
    flags = [flag for flag in spoken.get("flags", ()) if not flag.startswith(SILENT)]
    words = dict.fromkeys([*spoken.get("failures", {}).values(), *flags])
    heard = "your fallback" if record.get("source_type") == SourceType.LEGACY else "no agent"
    return f"{heard} was heard: {', '.join([*words][:6]) or 'nobody was asked'}"


def _kind(answer: Hosted) -> str:
    if answer.again:
        return "from_the_record"
    if answer.debated:
        return "debated"
    return "undebated" if answer.revision else "l1_alone"


# --- what the constructor checks ------------------------------------------------------------------


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ConfigError(f"{name} of an overlay: use a text that can be printed")
    return value


def _home(home: str | Path) -> Path:
    """Return the folder; raises ConfigError for one that cannot be, and for that of the demo."""
    try:
        found = Path(_text("home", os.fspath(home))).expanduser()
    except (TypeError, RuntimeError) as error:
        raise ConfigError("home of an overlay: name a folder") from error
    if not str(home):
        raise ConfigError("home of an overlay: name a folder")
    if found.exists() and not found.is_dir():
        raise ConfigError(f"home of an overlay: {found} is no folder")
    # Without a desk.json `torra run` is the demo; it leaves word of its pages.
    sample = not has_desk(found) and (found / PAGES).exists()
    if sample or any(one.feed == "sample" for one in _instances(found)):
        raise ConfigError(f"{found} {DEMO}")
    return found


def _instances(home: Path) -> tuple[Instance, ...]:
    return load_desk(home).instances if has_desk(home) else ()


def _profile(home: Path, name: object) -> Profile:
    profile = load_profile(_text("profile", name), home)
    try:
        agent_framework.check_desk(profile.agents)
    except ValueError as error:
        raise ConfigError(f"profile {name}: {error}") from error
    return profile
