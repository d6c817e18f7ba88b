"""Practice on the demo: its desk asks a person for a while, and soon, so that an approval is tried.

While practice goes on, the running demo has `execution: approve` and low thresholds, and its agents
look on (`influence: shadow`): else they would make most of such openings too small to be sent. So
nearly every close would open something. No file is written: the desk goes back to the profiles that
ran before with the first decision, after LASTS, by a person's word, or at its next start. One that
a person let the desk take meanwhile stays. A practice goes on, and says so, until the desk has
taken back every profile: what it cannot take now is tried again. Practice is refused to a desk in
real time, to one that sends to a broker, and where no desk runs in this process. Of what is guarded
it loosens the thresholds alone, on paper, and nothing is sent without a yes; the profiles that come
back are those that a person of this machine wrote.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from torra.clock import duration, parse, real_sleep
from torra.config import Profile
from torra.dashboard.settings.handover import ADOPTING
from torra.dashboard.view.backing import PageContext
from torra.errors import ConfigError, TorraError
from torra.profiles.practice import EASY, ease
from torra.services import in_background
from torra.store import tick_queries

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


@dataclass(slots=True, eq=False)
class Practice:
    """A practice that goes on; times are real.

    `before` are the profiles that ran, by their names, and `eased` those of practice. `until` comes
    nearer where it is to end at once; `given` are the names that the desk has taken back, or takes
    when its tick has ended.
    """

    begun: datetime
    until: datetime
    before: Mapping[str, Profile]
    eased: Mapping[str, Profile]
    given: set[str] = field(default_factory=set)


def going(known: PageContext) -> Practice | None:
    """Return the practice that goes on at a desk, None for none."""
    return _GOING.get(known.home)


def refusal(known: PageContext) -> str:
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


def begin(known: PageContext) -> Practice:
    """Let the demo ask a person, soon; raises TorraError where it cannot."""
    if why := refusal(known):
        raise ConfigError(f"no practice: {why}")
    with ADOPTING:
        now = known.desk.clock.real_now()
        if (found := going(known)) and found.until > now:
            return found
        if found:
            raise ConfigError("the practice before is not over yet: try again in a moment")
        before = {one.instance.profile: one.profile for one in known.desk.setups.values()}
        eased = {
            name: easy for name, profile in before.items() if (easy := ease(profile)) != profile
        }
        practice = Practice(now, now + LASTS, before, eased)
        # Before the first profile is changed: should a later one not be taken, all go back.
        _GOING[known.home] = practice
        try:
            for name, profile in eased.items():
                _adopt(known, name, profile)
        except Exception:
            with suppress(TorraError):  # then the thread tries again
                _give_back(known, practice)
            raise
        finally:
            if going(known):
                _start_watch(known, practice)
    return practice


def _adopt(known: PageContext, name: str, profile: Profile) -> None:
    if known.adopt is None:
        raise ConfigError("no desk runs in this process")
    known.adopt(name, profile)


def end(known: PageContext) -> bool:
    """Give the demo the profiles back that ran before; False where no practice goes on.

    Raises TorraError where the desk cannot take one now: practice then goes on, and it is tried
    again. It goes on as well until a running tick has ended.
    """
    with ADOPTING:
        practice = going(known)
        if practice is None:
            return False
        practice.given.clear()
        _give_back(known, practice)
    return True


def _give_back(known: PageContext, practice: Practice) -> None:
    """Give back every profile; when all are back, practice is over. The caller holds ADOPTING."""
    practice.until = practice.begun  # whatever fails now is tried again soon
    failed: TorraError | None = None
    for name in practice.eased:
        try:
            if name not in practice.given and not _replaced(known, practice, name):
                _adopt(known, name, practice.before[name])
            practice.given.add(name)
        except TorraError as error:  # the others go back all the same
            failed = failed or error
    if failed is not None:
        raise failed
    # Not before: a next practice would take what still runs for the desk's own.
    if not any(
        profile.digest() in _running(known, name) for name, profile in practice.eased.items()
    ):
        _GOING.pop(known.home, None)


def _replaced(known: PageContext, practice: Practice, name: str) -> bool:
    """Return whether the desk has taken another profile of this name meanwhile.

    One that runs with what ran before may still wait for the eased one, until its tick has ended.
    """
    ours = {practice.before[name].digest(), practice.eased[name].digest()}
    return bool(_running(known, name) - ours)


def _running(known: PageContext, name: str) -> set[str]:
    """Return the digests with which the symbols of a profile run."""
    every = known.desk.setups.values()
    return {one.profile.digest() for one in every if one.instance.profile == name}


def likely_within(known: PageContext) -> int | None:
    """Return in how many real seconds a proposal is likely in practice; None for no knowing.

    By how often the newest ticks stood beyond the threshold of practice.
    """
    pace = known.desk.clock.rate
    if not pace:
        return None
    often = 0.0
    for one in known.desk.setups.values():
        for timeframe in one.instance.timeframes:
            rows = tick_queries.consensus_history(known.database, one.instance.id, timeframe, TICKS)
            beyond = sum(abs(row["consensus"]) >= EASY for row in rows)
            closes = pace / duration(timeframe).total_seconds()
            often += closes * beyond / len(rows) if rows else 0.0
    return ROUNDED * math.ceil(1 / often / ROUNDED) if often else None


def _start_watch(known: PageContext, practice: Practice) -> None:
    in_background("practice", partial(_watch, known, practice))


def _watch(known: PageContext, practice: Practice) -> None:
    """End a practice with the first decision of a person, or after its time.

    Tries until every profile is back, or until the desk works no more: the next one reads the files
    anew.
    """
    said = ""
    while going(known) is practice:
        real_sleep(LOOK_EVERY)
        try:
            _look(known, practice)
        except Exception as error:  # whatever it is, the profiles must come back
            if str(error) != said:
                log.exception("practice is not over yet; it is tried again")
            said = str(error)


def _look(known: PageContext, practice: Practice) -> None:
    if known.desk.active:
        over = known.desk.clock.real_now() >= practice.until or _decided(known, practice.begun)
        if not over:
            return
    with ADOPTING:
        if going(known) is not practice:  # a person was quicker, and may have begun another
            return
        if not known.desk.active:
            _GOING.pop(known.home, None)
            return
        _give_back(known, practice)


def _decided(known: PageContext, since: datetime) -> bool:
    rows = [row for state in DECIDED for row in known.database.proposals(state, 5)]
    whole = since.replace(microsecond=0)
    return any(row.decided_at and parse(row.decided_at) >= whole for row in rows)
