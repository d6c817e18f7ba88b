"""`Overlay`: the desk's debate behind one call, for a scorer that keeps its own loop.

    overlay = Overlay("scorer_home", profile="default", clock="new_york+7")
    chart = overlay.score_chart("XAUUSD", "M15", bars, scores=l1)

A call reads what it was handed (torra.overlay.request), computes what Torra's calculators make of
it, and asks the desk of the profile, all on threads of its own, until its deadline: the profile's
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
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import agent_framework
from agent_framework import Fallback
from instance_database import TickKey
from torra.clock import Clock, System, iso
from torra.config import NAME, NAME_RULE, Profile, has_desk, load_desk, load_profile
from torra.errors import ConfigError, StoreUnavailable, TorraError
from torra.home import HOSTED, PAGES
from torra.market.broker_clock import ServerClock
from torra.overlay import hosted_tick, request
from torra.overlay.answer import Hosted, plain
from torra.overlay.call import GRACE, HostCall, ask
from torra.overlay.hosted_tick import ScorerQuestion
from torra.overlay.request import InvalidRequest, NoScores
from torra.overlay.runtime import DEMO, OverlayRuntime
from torra.overlay.workers import Workers
from torra.store import hosted as hosted_table
from torra.store.hosted import HOST

log = logging.getLogger("torra.overlay")

TOO_MANY: Final = "too many calls hang already"

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
        self._readers = Workers()
        self._opened = OverlayRuntime(self._home, self._profile, self._profile_name)
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

    async def score_chart_async(self, *bar: Any, **more: Any) -> dict[str, Any]:
        """Return what `score_chart` does, without holding the host's event loop."""
        deadline = self._deadline()
        work = self._waiters.run(lambda: self._call(deadline, *bar, **more).chart)
        if work is None:  # hundreds wait already
            return self._call(System().monotonic(), *bar, **more).chart
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

    @property
    def _seconds(self) -> float:
        return self._profile.agents.timeout_seconds

    def _deadline(self) -> float:
        return System().monotonic() + self._seconds

    def _call(
        self,
        deadline: float,
        symbol: Any,
        timeframe: Any,
        bars: Any,
        *,
        fallback: Fallback | None = None,
        scores: Any = None,
        **parts: Any,
    ) -> Hosted:
        clock = System()
        # Plain numbers cannot be slow, and are L1 even where no thread comes to run in time.
        own = [request.scores_of(scores)] if request.are_plain(scores) else []

        def read() -> ScorerQuestion:
            if not own:
                own.append(request.scores_of(scores))
            handed = request.read(
                symbol, timeframe, bars, scores=own[0], **parts,
                now=clock.real_now(), clock=self._clock,
            )  # fmt: skip
            try:
                return hosted_tick.question(handed, self._name, self._profile, self._profile_name)
            except InvalidRequest as error:
                raise error.noting(handed.notes) from None
            except Exception as error:
                log.exception("%s %s could not be read", symbol, timeframe)
                why = f"bars: {type(error).__name__}"
                raise InvalidRequest(why).noting(handed.notes) from error

        work = self._readers.run(read)
        try:
            if work is None:
                raise InvalidRequest(TOO_MANY)  # noqa: TRY301 - it is a reason as the others
            question = work.result(_seconds_until(deadline, clock))
        except Late:
            late = InvalidRequest(f"bars: not read within {self._seconds:g} s")
            answer = self._without(symbol, timeframe, own, late)
        except InvalidRequest as error:
            answer = self._without(symbol, timeframe, own, error)
        else:
            answer = self._desk_answer(HostCall(question, fallback, clock, deadline, self._strict))
            if answer.why:
                self._note(answer.key, answer.why)
        with self._lock:
            self._counts[_kind(answer)] += 1
        return answer

    def _desk_answer(self, call: HostCall) -> Hosted:
        """Return the desk's answer where there is one in time, L1's else."""
        work = self._workers.run(partial(ask, self._opened, call))
        if work is None:
            return call.l1_alone(TOO_MANY)
        try:
            return work.result(_seconds_until(call.deadline, call.clock))
        except Exception as error:
            call.gone.set()
            if isinstance(error, Late) and not work.done():
                return call.l1_alone(f"no answer within {self._seconds:g} s")
            if self._strict:
                raise
            own = isinstance(error, TorraError)
            # What Torra raises says all that there is to say; anything else is logged with a trace.
            log.warning("%s: L1 stands alone: %s", call.key, error, exc_info=not own and error)
            return call.l1_alone(str(error) if own else type(error).__name__)

    def _without(
        self,
        symbol: Any,
        timeframe: Any,
        scores: Sequence[Mapping[str, float] | None],
        refusal: InvalidRequest,
    ) -> Hosted:
        """Return the host's own L1 for what cannot be debated; raise NoScores without one."""
        bar = " ".join(
            name if isinstance(name, str) and NAME.fullmatch(name) else "?"
            for name in (symbol, timeframe)
        )
        why, cause = str(refusal), refusal.__cause__
        self._note(bar, why)
        l1 = scores[0] if scores else None
        if l1 is None:
            raise NoScores(f"{bar}: {why}") from cause
        if self._strict:
            raise ConfigError(f"{bar}: {why}") from cause
        log.warning("%s: L1 stands alone: %s", bar, why)
        return plain("", l1, why, refusal.notes)

    def _note(self, key: str, why: str) -> None:
        with self._lock:
            at = iso(System().real_now().replace(microsecond=0))
            self._trouble = {"at": at, "of": key, "why": why}

    # --- beside the calls -----------------------------------------------------------------------

    def key(self, symbol: str, timeframe: str, bar_time: datetime) -> str:
        """Return the key of a bar by its open time: what `outcome` and the pages call it.

        Raises ValueError for a symbol or a timeframe that cannot be, and for a naive time without
        a clock.
        """
        name, step = request.names_of(symbol, timeframe)
        moment = request.moment_of(bar_time, self._clock)
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
        number = None if r is None else request.finite(r)
        if r is not None and number is None:
            raise ValueError(f"r is {r!r}: use a finite number")
        if not isinstance(key, str) or not key.startswith(f"{HOST}{self._name}:"):
            raise LookupError(f"{key!r} is no bar of the overlay {self._name}")
        deadline = self._deadline()

        work = self._workers.run(
            lambda: hosted_table.tell_outcome(
                self._opened.at(deadline).database, key, verdict, number
            )
        )
        with suppress(Late):
            if work is not None:
                return work.result(_seconds_until(deadline, System()))
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
            "busy": self._readers.busy + self._workers.busy,
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


def _seconds_until(deadline: float, clock: Clock) -> float:
    """Return for how many seconds a call waits for a thread."""
    return max(0.0, deadline + GRACE - clock.monotonic())


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
        folder = Path(_text("home", os.fspath(home))).expanduser()
    except (TypeError, RuntimeError) as error:
        raise ConfigError("home of an overlay: name a folder") from error
    if not str(home):
        raise ConfigError("home of an overlay: name a folder")
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"home of an overlay: {folder} is no folder")
    if has_desk(folder):
        sample = any(instance.feed == "sample" for instance in load_desk(folder).instances)
    else:  # `torra run` is the demo then; it leaves word of its pages
        sample = (folder / PAGES).exists()
    if sample:
        raise ConfigError(f"{folder} {DEMO}")
    return folder


def _profile(home: Path, name: object) -> Profile:
    profile = load_profile(_text("profile", name), home)
    try:
        agent_framework.check_desk(profile.agents)
    except ValueError as error:
        raise ConfigError(f"profile {name}: {error}") from error
    return profile
