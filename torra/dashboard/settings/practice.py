"""Practice on the demo: its desk asks a person for a while, and soon, so that an approval is tried.

While practice goes on, the running demo has `execution: approve` and low thresholds, and its agents
look on (`influence: shadow`): else they would make most of such openings too small to be sent. So
nearly every close would open something. No file is written: the desk goes back to its profiles as
they lie on the disk with the first decision, after LASTS, by a person's word, or at its next start.
Practice is refused to a desk in real time, to one that sends to a broker, and where no desk runs in
this process. Of what is guarded it loosens the thresholds alone, on paper, and nothing is sent
without a yes; the profiles that come back are those that a person of this machine wrote.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from torra.clock import duration, parse, real_sleep
from torra.config import Profile, Thresholds, load_profile
from torra.dashboard.view.backing import Backing
from torra.errors import ConfigError, TorraError

EASY: Final = 0.05
"""Consensus from which a verdict opens in practice."""

LASTS: Final = timedelta(minutes=5)
"""Real time after which practice ends by itself."""

LOOK_EVERY: Final = 0.5
"""Real seconds between two looks at whether a person has decided."""

TICKS: Final = 48
"""Newest ticks of a stream from which the wait is told."""

ROUNDED: Final = 5
"""Real seconds to which the wait is rounded up."""

DECIDED: Final = ("APPROVED", "REJECTED", "DENIED")
"""States in which a person's decision ends a proposal."""

_GOING: dict[Path, Practice] = {}

log = logging.getLogger("torra.dashboard")


@dataclass(frozen=True, slots=True)
class Practice:
    """A practice that goes on, with the profiles that it changed; times are real."""

    begun: datetime
    until: datetime
    profiles: tuple[str, ...]


def going(known: Backing) -> Practice | None:
    """Return the practice that goes on at a desk, None for none."""
    return _GOING.get(known.home)


def refusal(known: Backing) -> str:
    """Return why a desk cannot practise, "" where it can."""
    if known.adopt is None or not known.desk.active:
        return "the demo's desk does not run in this process"
    if not known.desk.clock.accelerated:
        return "this desk lives in real time: practice is for the demo"
    sent = [one.instance.id for one in known.desk.setups.values() if one.instance.bridge != "paper"]
    if sent:
        return f"{sent[0]} does not trade on paper"
    # From off to approve would loosen what is guarded.
    off = [name for name, one in known.desk.setups.items() if one.profile.execution == "off"]
    return f"{off[0]} sends nothing (execution: off)" if off else ""


def begin(known: Backing) -> Practice:
    """Let the demo ask a person, soon; raises ConfigError where it cannot."""
    if why := refusal(known):
        raise ConfigError(f"no practice: {why}")
    if found := going(known):
        return found
    now = known.desk.clock.real_now()
    running = {one.instance.profile: one.profile for one in known.desk.setups.values()}
    practice = Practice(now, now + LASTS, tuple(running))
    # Before the first profile is changed: should a later one not be taken, all go back.
    _GOING[known.home] = practice
    try:
        _let_it_ask(known, running)
    except TorraError:
        end(known)
        raise
    threading.Thread(target=_watch, args=(known, practice), name="practice", daemon=True).start()
    return practice


def _let_it_ask(known: Backing, running: Mapping[str, Profile]) -> None:
    low = Thresholds(buy=EASY, sell=EASY)
    for name, profile in running.items():
        agents = profile.agents.model_copy(update={"influence": "shadow"})
        asks = profile.model_copy(
            update={"execution": "approve", "thresholds": low, "agents": agents}
        )
        if known.adopt is not None:
            known.adopt(name, asks)


def end(known: Backing) -> bool:
    """Give the demo its profiles of the disk back; False where no practice goes on."""
    practice = _GOING.pop(known.home, None)
    if practice is None or known.adopt is None:
        return False
    for name in practice.profiles:
        known.adopt(name, load_profile(name, known.home))
    return True


def likely_within(known: Backing) -> int | None:
    """Return in how many real seconds a proposal is likely in practice; None for no knowing.

    By how often the newest ticks stood beyond the threshold of practice.
    """
    pace = known.desk.clock.rate
    if not pace:
        return None
    often = 0.0
    for one in known.desk.setups.values():
        for timeframe in one.instance.timeframes:
            rows = known.database.consensus_history(one.instance.id, timeframe, TICKS)
            beyond = sum(abs(row["consensus"]) >= EASY for row in rows)
            closes = pace / duration(timeframe).total_seconds()
            often += closes * beyond / len(rows) if rows else 0.0
    return ROUNDED * math.ceil(1 / often / ROUNDED) if often else None


def _watch(known: Backing, practice: Practice) -> None:
    """End a practice with the first decision of a person, or after its time."""
    try:
        while _GOING.get(known.home) is practice:
            real_sleep(LOOK_EVERY)
            if known.desk.clock.real_now() >= practice.until or _decided(known, practice.begun):
                end(known)
                return
    except TorraError as error:  # the desk ends, or its files cannot be read: the next start mends
        log.warning("practice ends with the desk: %s", error)
        _GOING.pop(known.home, None)


def _decided(known: Backing, since: datetime) -> bool:
    rows = [row for state in DECIDED for row in known.database.proposals(state, 5)]
    whole = since.replace(microsecond=0)
    return any(row["decided_at"] and parse(row["decided_at"]) >= whole for row in rows)
