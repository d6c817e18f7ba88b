"""The lessons of an arm of a replay: those of its own trades, and none of another arm's.

An arm's store writes them as a desk's does, with the ranges of the replay's own bars. `lessons_of`
tells them to its agents where its profile remembers; the placebo of a memory is told others, by
lot. An embedder that cannot be opened raises ConfigError.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import numpy as np
import pandas as pd

from torra.clock import duration
from torra.config import Profile
from torra.desk.models.embedders import open_embedder
from torra.lessons.by_lot import LotShelf
from torra.lessons.facts import PriceRange
from torra.lessons.recall import LessonRetriever, Recall
from torra.replay.arms import Arm
from torra.store.memory import MemoryStore


class PriceRanges:
    """The ranges of a history's bars (torra.store.memory.Ranges)."""

    def __init__(self, frames: Mapping[str, pd.DataFrame]) -> None:
        self._bars = [
            (duration(name), frame.index, frame["low"].to_numpy(), frame["high"].to_numpy())
            for name, frame in frames.items()
        ]

    def __call__(self, instance: str, opened: datetime, closed: datetime) -> PriceRange | None:
        """Return the range of the bars that lie wholly between two moments; None without any."""
        del instance
        found: list[PriceRange] = []
        for step, times, low, high in self._bars:
            first = int(times.searchsorted(pd.Timestamp(opened), side="left"))
            end = int(times.searchsorted(pd.Timestamp(closed - step), side="right"))
            if first < end:
                held = PriceRange(float(np.min(low[first:end])), float(np.max(high[first:end])))
                found.append(held)
        if not found:
            return None
        return PriceRange(min(held.low for held in found), max(held.high for held in found))


def lessons_of(store: MemoryStore, arm: Arm, profile: Profile, seed: int) -> Recall | None:
    """Return what tells an arm's agents of its trades; None where nobody is told.

    `profile` is the arm's own, `seed` that of the replay.
    """
    if arm.voice != "desk" or not profile.agents.remembers():
        return None
    embed = open_embedder(profile.agents.memory.embedder)
    shelf = LessonRetriever(store.lessons_since, embed)
    if arm.memory == "by_lot":
        shelf = LotShelf(store.lessons_since, embed, seed)
    shelf.fill()
    return shelf.recall
