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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agents.contracts import VECTORS
from torra.clock import System, token
from torra.config import Instance, Profile
from torra.errors import ConfigError, TorraError
from torra.exhibits import figures

DEADLINE: Final = 120.0
"""Real seconds after which a trial counts as failed."""

LONGEST_TICK: Final = 60.0
"""Real seconds that the tick of a trial may take, whatever its profile says."""

KEPT: Final = 16
"""Trials whose results are kept."""

log = logging.getLogger("torra.dashboard")


@dataclass(slots=True)
class Trial:
    """One trial; `told` is its result, None while it runs."""

    id: str
    home: Path
    profile: str
    instance: str
    timeframe: str
    begun: float
    told: dict[str, Any] | None = None
    thread: threading.Thread | None = field(default=None, repr=False)


class Trials:
    """The trials of this process."""

    def __init__(self, monotonic: Callable[[], float] | None = None) -> None:
        self._monotonic = monotonic or System().monotonic
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Trial] = OrderedDict()

    def begin(
        self, home: Path, profile: str, instance: str, timeframe: str,
        run: Callable[[], dict[str, Any]],
    ) -> Trial:  # fmt: skip
        """Begin a trial; raises ConfigError while another one runs."""
        with self._lock:
            if any(trial.told is None for trial in self._kept.values()):
                raise ConfigError("another trial runs; wait for its end")
            trial = Trial(token(8), home, profile, instance, timeframe, self._monotonic())
            self._kept[trial.id] = trial
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        # a daemon: a trial under way must not keep the desk from ending
        trial.thread = threading.Thread(
            target=_run, args=(trial, run), name=f"trial {trial.id}", daemon=True
        )
        trial.thread.start()
        return trial

    def told(self, home: Path, trial_id: str) -> dict[str, Any] | None:
        """Return the state of a trial of a home, with its result; None for an unknown id."""
        with self._lock:
            trial = self._kept.get(trial_id)
        if trial is None or trial.home != home:
            return None
        told = trial.told
        if told is None:
            seconds = self._monotonic() - trial.begun
            told = {"status": "running", "reason": "", "seconds": round(seconds, 1)}
            # a thread cannot be ended from outside: it is only no longer waited for
            if seconds > DEADLINE:
                told = {
                    "status": "failed",
                    "reason": f"no answer for {DEADLINE:.0f} s; it is not waited for",
                }
        names = ("id", "profile", "instance", "timeframe")
        return {**{name: getattr(trial, name) for name in names}, **told}


def _run(trial: Trial, run: Callable[[], dict[str, Any]]) -> None:
    try:
        trial.told = {"status": "done", "reason": "", **run()}
    except TorraError as error:
        trial.told = {"status": "failed", "reason": figures.clean(error, 600)}
    except Exception:
        # nobody sees the exception of a thread, and without a result no further trial could begin
        log.exception("trial %s", trial.id)
        trial.told = {"status": "failed", "reason": "it broke; the log of torra.dashboard says how"}


def bounded(profile: Profile, ceiling: float) -> Profile:
    """Return a profile as a trial may run it: within the saved ceiling and LONGEST_TICK."""
    agents = profile.agents.model_copy(
        update={
            "max_api_cost_per_hour": min(profile.agents.max_api_cost_per_hour, ceiling),
            "timeout_seconds": min(profile.agents.timeout_seconds, LONGEST_TICK),
        }
    )
    return profile.model_copy(update={"agents": agents})


def rerun(
    home: Path, instance: Instance, then: Mapping[str, Any], profile: Profile
) -> dict[str, Any]:
    """Run a tick once more with another profile; return both, side by side."""
    from torra.replay.rerun import trial_tick  # noqa: PLC0415  the pages load the desk's parts only when asked to

    timeframe = str(then["timeframe"])
    now = trial_tick.run(home, instance.id, timeframe, as_of=str(then["as_of"]), settings=profile)
    return {
        "as_of": then["as_of"],
        "bar_time": then["bar_time"],
        "rows": compared(then, now),
        "cost_usd": now["cost_usd"],
    }


def compared(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of a tick as it was and as it would be, as text."""
    pairs = {name: (_lines(then)[name], said) for name, said in _lines(now).items()}
    return [
        {"what": name, "then": before, "now": after, "differs": before != after}
        for name, (before, after) in pairs.items()
    ]


def _lines(record: Mapping[str, Any]) -> dict[str, str]:
    scores, gate = record.get("scores") or {}, record.get("gate") or {}
    signal = record.get("signal") or {}
    denied = ", ".join(figures.clean(item, 60) for item in record.get("denied") or ())
    return {
        **{
            figures.title(name): figures.signed((scores.get(name) or {}).get("score"))
            for name in VECTORS
        },
        "Composite": figures.signed(record.get("composite")),
        "Consensus": figures.signed(record.get("consensus")),
        "L1 consensus": figures.signed(record.get("l1_consensus")),
        "Verdict": figures.mark(record.get("verdict")).text,
        "Action": figures.mark(record.get("action")).text,
        "Reason": figures.clean(record.get("reason"), 200) or figures.DASH,
        "Denied": denied or "nothing",
        "Size": f"{figures.plain(signal.get('lots'))} lots" if signal else "no order",
        "Stop": figures.loose(signal.get("stop")) if signal else "no order",
        "Target": figures.loose(signal.get("target")) if signal else "no order",
        "Gate": f"× {figures.plain(gate.get('multiplier'))}{', veto' if gate.get('veto') else ''}",
        "Source": figures.mark(record.get("source_type")).text,
        "Profile": figures.clean(record.get("profile"), 32),
    }
