"""The desk's last 30 days under influence full and by L1 alone, beside a question about its agents.

The comparison decides nothing. Its ticks are those of the profile's present setting; the days end
with the newest stored bar. The verdicts of the journal are walked over these bars on paper
(torra.replay.l1.trades), each instance by itself. Under full an opening has the size that gate,
conviction and budget left; of a tick in shadow both are recomposed from what its agents answered.
Nothing is stored, sent or asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Final

import numpy as np

from agents.contracts import OPINIONS, UNHEARD
from agents.debate.scoring import outage
from agents.registry import AGENTS, Agent
from agents.risk_officer import NO_ROWS
from instance_database import open_home
from torra.clock import duration
from torra.config import Instance, Profile
from torra.desk.promotion import PromotionSubject, ticks_of
from torra.errors import MALFORMED, ConfigError, StoreUnavailable
from torra.evaluation.observations import ArmObservation, TickObservation
from torra.evaluation.recomposition import BrainNumbers, Changes, recompose
from torra.evaluation.wording import count
from torra.exhibits import figures
from torra.home import has_database
from torra.profiles.book import ProfileBook
from torra.profiles.guard import Change
from torra.replay.changed.without_agents import WORDS, ScoredBars, tick_keys, walk
from torra.replay.l1.sweep import L1Backtest
from torra.replay.l1.verdicts import micros
from torra.replay.live import control_seen, officer_rows
from torra.replay.recomposing import conviction
from torra.replay.tried.estimate import newest_close
from torra.replay.vetoes import vetoer

SPAN: Final = timedelta(days=30)

MOST: Final = 10_000
"""Ticks of these days above which nothing is compared: a question waits for some seconds only."""

NO_TICK: Final = "No ticks in the last 30 days with the present setting: there is no comparison."
NOTE: Final = (
    "L1 alone decides under shadow, and under earned until the promotion. Other desks are known by "
    "a replay only: torra replay SYMBOL --bars store --arms l1,budget,full,firm and --arms l1,swarm"
)


def last_days(shelf: ProfileBook, name: str, changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the lines of the comparison for changes of a saved profile.

    () where they loosen nothing of the agents, and where it cannot be worked out.
    """
    profile, users = shelf.read(name).profile, shelf.users(name)
    ticks = sum(SPAN // duration(frame) for one in users for frame in one.timeframes)
    asked = any(one.place[0] == "agents" and one.way == "loosens" for one in changes)
    if profile is None or not asked or ticks > MOST:
        return ()
    # A question makes no database.
    if not has_database(shelf.home):
        return (NO_TICK,)
    return _lines(shelf.home, name, users, profile.model_dump_json(), f"{shelf.now():%x %H}")


@lru_cache(maxsize=8)
def _lines(
    home: Path, name: str, users: tuple[Instance, ...], told: str, _hour: str
) -> tuple[str, ...]:
    """Return the lines, worked out once an hour: a page checks its form after each pause."""
    profile = Profile.model_validate_json(told)
    with suppress(ConfigError, StoreUnavailable, *MALFORMED), closing(open_home(home)) as database:
        subject, end = PromotionSubject(name, profile, users), newest_close(database, users)
        if end is None or not (ticks := ticks_of(database, subject, end - SPAN, end)):
            return (NO_TICK,)
        final, bars = ArmObservation("full", tuple(ticks), ()), ScoredBars(database)
        full, l1 = [*_ticks_if_counted(final, profile)], control_seen(final, ()).ticks
        lines = [
            f"{one.id}, {_covered(one, final)} on paper: with agents that count "
            f"{_side(ground, profile, full, alone=False)}; "
            f"L1 alone {_side(ground, profile, l1, alone=True)}."
            for one in users
            if (ground := bars.around(one, end - SPAN, end))
        ]
        return (*lines, NOTE)
    return ()


def _covered(instance: Instance, final: ArmObservation) -> str:
    """Return how much of the days is on record with the present setting."""
    closes = [tick.close_time for tick in final.ticks if tick.instance == instance.id]
    if not closes:
        return "no tick"
    days = f"{figures.plain((max(closes) - min(closes)) / timedelta(days=1), 1)}"
    return f"{count(len(closes), 'tick')} in {days} of the last 30 days"


def _ticks_if_counted(final: ArmObservation, profile: Profile) -> Iterator[TickObservation]:
    """Yield the ticks that have a verdict as they would be had the agents counted on all."""
    answered = recompose(final, Changes(counted=True), BrainNumbers.of(profile)).ticks
    for tick, told in zip(final.ticks, answered, strict=True):
        if not tick.shadow:
            yield tick
        elif told.verdict != "HOLD":
            kept = conviction(told, told.verdict, profile)
            if told.source_type in UNHEARD and (failed := _failed(told)):
                kept = outage(failed, profile.agents.outage_size).buy.conviction
            yield replace(told, conviction=kept, shadow=False)


def _failed(tick: TickObservation) -> list[Agent]:
    """Return the seats of the opinions where one of them failed; [] where none did."""
    asked = [one for one in tick.opinions if one.kind in OPINIONS]
    if all(one.answered for one in asked):
        return []
    return [AGENTS[one.agent_id] for one in asked]


def _side(
    ground: L1Backtest, profile: Profile, arm: Iterable[TickObservation], *, alone: bool
) -> str:
    """Return what one side comes to: its openings, their mean lots, their mean result.

    `alone`: the side is L1's.
    """
    places = {key: at for at, key in enumerate(tick_keys(ground))}
    verdict, veto = np.zeros(len(places), np.int8), np.zeros(len(places), bool)
    rows, sizes = [NO_ROWS] * len(places), {}
    for tick in arm:
        at = places.get((tick.timeframe, micros(tick.close_time)))
        if at is None or tick.instance != ground.instance.id:
            continue
        verdict[at] = WORDS.get(tick.verdict, 0)
        veto[at] = bool(vetoer(tick, tick.verdict) or (not alone and tick.declined))
        rows[at] = officer_rows(tick, profile.gate)
        # Where nobody was to be asked the size is L1's; an outage has its own.
        if not alone and (tick.source_type != "L1_ONLY" or tick.conviction < 1.0):
            sizes[at] = tick.size_share
    trades = walk(ground, profile, verdict, veto, tuple(rows), sizes)
    if not trades:
        return "no opening"
    lots, r = (fmean(getattr(one, name) for one in trades) for name in ("lots", "r"))
    mean = f"{figures.plain(lots, 3)} lots and {figures.format_signed(r, 2)} R on average"
    return f"{count(len(trades), 'opening')}, {mean}"
