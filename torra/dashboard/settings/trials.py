"""Trial runs: the last tick of an instance once more, with settings that are not saved.

A trial runs in a throw-away copy of the database, in a thread of its own
(torra.replay.rerun.trial_tick), one at a time in this process. Its result is fetched by its id.
Nothing of the desk changes except its ledger. A trial may cost no more than the saved ceiling
allows, and its tick takes at most LONGEST_TICK. After DEADLINE a trial counts as failed. Results
are kept in memory, the newest KEPT.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal

from pydantic import JsonValue

from agents.contracts import VECTORS
from torra.clock import System, token
from torra.config import Instance, Profile
from torra.errors import ConfigError, TorraError
from torra.exhibits import figures
from torra.services import in_background
from torra.tick.tick_record import TickRecord

DEADLINE: Final = 120.0
"""Real seconds after which a trial counts as failed."""

LONGEST_TICK: Final = 60.0
"""Real seconds that the tick of a trial may take, whatever its profile says."""

KEPT: Final = 16
"""Trials whose results are kept."""

log = logging.getLogger("torra.dashboard")


@dataclass(frozen=True, slots=True)
class TrialLine:
    """One line of a tick, as it was and as it would be."""

    what: str
    then: str
    now: str
    differs: bool


@dataclass(frozen=True, slots=True)
class Rerun:
    """A tick that ran once more: when it was, both side by side, and what it cost in USD."""

    as_of: str
    bar_time: str
    rows: Sequence[TrialLine]
    cost_usd: float


@dataclass(frozen=True, slots=True)
class TrialEnd:
    """How a trial ended; `found` is None for one that failed."""

    status: Literal["done", "failed"]
    reason: str
    found: Rerun | None = None


@dataclass(slots=True)
class Trial:
    """One trial; `ended` is None while it runs."""

    id: str
    home: Path
    profile: str
    instance: str
    timeframe: str
    begun: float
    ended: TrialEnd | None = None
    thread: threading.Thread | None = field(default=None, repr=False)


class Trials:
    """The trials of this process."""

    def __init__(self, monotonic: Callable[[], float] | None = None) -> None:
        self._monotonic = monotonic or System().monotonic
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Trial] = OrderedDict()

    def begin(
        self, home: Path, profile: str, instance: str, timeframe: str,
        run: Callable[[], Rerun],
    ) -> Trial:  # fmt: skip
        """Begin a trial; raises ConfigError while another one runs."""
        with self._lock:
            if any(trial.ended is None for trial in self._kept.values()):
                raise ConfigError("another trial runs; wait for its end")
            trial = Trial(token(8), home, profile, instance, timeframe, self._monotonic())
            self._kept[trial.id] = trial
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        # a daemon: a trial under way must not keep the desk from ending
        trial.thread = in_background(f"trial {trial.id}", partial(_run, trial, run))
        return trial

    def told(self, home: Path, trial_id: str) -> dict[str, JsonValue] | None:
        """Return the state of a trial of a home, with its result; None for an unknown id."""
        with self._lock:
            trial = self._kept.get(trial_id)
        if trial is None or trial.home != home:
            return None
        names = ("id", "profile", "instance", "timeframe")
        about = {name: getattr(trial, name) for name in names}
        ended, seconds = trial.ended, self._monotonic() - trial.begun
        if ended is None and seconds > DEADLINE:
            # a thread cannot be ended from outside: it is only no longer waited for
            ended = TrialEnd("failed", f"no answer for {DEADLINE:.0f} s; it is not waited for")
        if ended is None:
            return {**about, "status": "running", "reason": "", "seconds": round(seconds, 1)}
        more = asdict(ended.found) if ended.found else {}
        return {**about, "status": ended.status, "reason": ended.reason, **more}


def _run(trial: Trial, run: Callable[[], Rerun]) -> None:
    try:
        trial.ended = TrialEnd("done", "", run())
    except TorraError as error:
        trial.ended = TrialEnd("failed", figures.sanitize(error, 600))
    except Exception:
        # nobody sees the exception of a thread, and without a result no further trial could begin
        log.exception("trial %s", trial.id)
        trial.ended = TrialEnd("failed", "it broke; the log of torra.dashboard says how")


def bounded(profile: Profile, ceiling: float) -> Profile:
    """Return a profile as a trial may run it: within the saved ceiling and LONGEST_TICK."""
    agents = profile.agents.model_copy(
        update={
            "max_api_cost_per_hour": min(profile.agents.max_api_cost_per_hour, ceiling),
            "timeout_seconds": min(profile.agents.timeout_seconds, LONGEST_TICK),
        }
    )
    return profile.model_copy(update={"agents": agents})


def rerun(home: Path, instance: Instance, then: TickRecord, profile: Profile) -> Rerun:
    """Run a tick once more with another profile; return both, side by side."""
    from torra.replay.rerun import trial_tick  # noqa: PLC0415  the pages load the desk's parts only when asked to

    made = trial_tick.run(home, instance.id, then.timeframe, as_of=then.as_of, settings=profile)
    now: TickRecord = made["record"]
    return Rerun(then.as_of, then.bar_time, compared(then, now), now.cost_usd)


def compared(then: TickRecord, now: TickRecord) -> list[TrialLine]:
    """Return the lines of a tick as it was and as it would be, as text."""
    before, after = _lines(then), _lines(now)
    return [
        TrialLine(name, before[name], said, before[name] != said) for name, said in after.items()
    ]


def _lines(record: TickRecord) -> dict[str, str]:
    signal, gate = record.signal, record.gate
    denied = ", ".join(figures.sanitize(item, 60) for item in record.denied)
    return {
        **{figures.title(name): figures.format_signed(record.final(name)) for name in VECTORS},
        "Composite": figures.format_signed(record.composite),
        "Consensus": figures.format_signed(record.consensus),
        "L1 consensus": figures.format_signed(record.l1_consensus),
        "Verdict": figures.mark(record.verdict).text,
        "Action": figures.mark(record.action).text,
        "Reason": figures.sanitize(record.reason, 200) or figures.DASH,
        "Denied": denied or "nothing",
        "Size": f"{figures.plain(signal.lots)} lots" if signal else "no order",
        "Stop": figures.format_any(signal.stop) if signal else "no order",
        "Target": figures.format_any(signal.target) if signal else "no order",
        "Gate": f"× {figures.plain(gate.multiplier)}{', veto' if gate.veto else ''}",
        "Source": figures.mark(record.source_type).text,
        "Profile": figures.sanitize(record.profile, 32),
    }
