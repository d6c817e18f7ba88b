"""Ticks that are told of lessons: the sample's newest bars through `run_tick`, on any store."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from tests.worlds import desks
from torra.clock import duration
from torra.config import Profile, validate
from torra.desk.timers import running_order
from torra.lessons.facts import PriceRange
from torra.lessons.hashed import hashed
from torra.lessons.recall import LessonRetriever, Recall
from torra.providers.rules.provider import RulesProvider
from torra.replay.rerun.edges_then import FrozenClock
from torra.store.connection import TickKey
from torra.tick.bar_window import HistoryWindow
from torra.tick.edges import TickDeps
from torra_trader import TickOutcome, run_tick

BTC: Final = "BTCUSD"
BARS: Final = 1000
OFTEN: Final = {"buy": 0.06, "sell": 0.06}
"""Thresholds at which these bars are bought and sold all the time."""


@functools.cache
def frames() -> Mapping[str, Any]:
    _, end = desks.sample().period()
    return {name: desks.sample().bars(BTC, name, end, BARS) for name in ("M15", "H1")}


@functools.cache
def window() -> HistoryWindow:
    return HistoryWindow(frames())


def ranges(instance: str, opened: datetime, closed: datetime) -> PriceRange | None:
    """Return the range of the M15 bars that lie wholly between two moments."""
    del instance
    frame = frames()["M15"]
    inside = frame[(frame.index >= opened) & (frame.index + duration("M15") <= closed)]
    return None if inside.empty else PriceRange(float(inside.low.min()), float(inside.high.max()))


def keys(count: int) -> list[TickKey]:
    """Return the newest ticks of both streams, `count` of M15, in the order in which they run."""
    found = [
        TickKey(BTC, name, time.to_pydatetime())
        for name, times in window().times.items()
        for time in times[-count if name == "M15" else -count // 4 :]
    ]
    return sorted(found, key=running_order)


def profile(use: str = "on", **changes: Any) -> Profile:
    """Return a profile whose ticks are told of lessons, and that trades all the time."""
    told = {"thresholds": OFTEN, "record_score": "high", "on_opposite": "reverse", **changes}
    told["agents"] = {"memory": {"use": use}, **changes.get("agents", {})}
    return validate(Profile, told, "a test")


def recall_of(store: Any) -> Recall:
    return LessonRetriever(store.lessons_since, hashed).recall


def run(
    store: Any, settings: Profile, ticks: Sequence[TickKey], recall: Recall | None, **edges: Any
) -> list[TickOutcome]:
    """Run ticks with the rules; real time stands still, so that no recall is late."""
    voice, clock, outcomes = RulesProvider(), FrozenClock(desks.START), []
    told = TickDeps(
        database=store,
        window=window(),
        submit=voice.submit,
        provider=voice.name,
        clock=clock,
        lessons=recall,
    )
    for key in ticks:
        clock.set(key.bar_time + duration(key.timeframe))
        outcomes.append(
            run_tick(
                desks.BTC, key.timeframe, key.bar_time, clock.monotonic(),
                profile=settings, edges=replace(told, **edges),
            )
        )  # fmt: skip
    return outcomes
