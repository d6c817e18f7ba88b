"""The warm-up plan of an instance: which ticks of its past to run before its desk goes on.

Only an instance without any tick is warmed up. The bars of the past are read once and scored in one
pass. A feed that has none raises nothing: its ticks will say so, and the other instances have
theirs. torra.desk.schedule runs the ticks.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import pandas as pd

from instance_database import Database, TickKey
from torra.clock import duration
from torra.desk.roster import InstanceRuntime
from torra.errors import DataUnavailable
from torra.store import ticks as claim_table
from torra.tick.bar_window import HistoryWindow, LiveWindow

WARM_UP_BARS: Final = 240
"""Bars of an instance's shortest timeframe that warm-up runs through."""

log = logging.getLogger("torra")


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The warm-up ticks of one instance, and the window with their bars."""

    setup: InstanceRuntime
    window: HistoryWindow
    keys: list[TickKey]


def plan(setup: InstanceRuntime, database: Database, upto: datetime, bars: int) -> WarmUp | None:
    """Return the ticks before `upto` of an instance that has none yet.

    None where it has some, and where there are no bars.
    """
    try:
        return _planned(setup, database, upto, bars)
    except DataUnavailable as error:
        log.warning("%s: no warm-up: %s", setup.instance.id, error.detail)
        return None


def _planned(
    setup: InstanceRuntime, database: Database, upto: datetime, bars: int
) -> WarmUp | None:
    instance = setup.instance
    # Before the look for ticks: bars that came while the desk was off are stored either way.
    live = LiveWindow(instance, setup.feed, database)
    live.fill(upto)
    if any(claim_table.newest_claim(database, instance.id, name) for name in instance.timeframes):
        return None
    history = {
        name: setup.feed.bars(instance.symbol, name, upto, None) for name in instance.timeframes
    }
    # The records are those of all stored bars: an imported history is longer than the feed's.
    window = HistoryWindow(history, live.records)
    start = upto - bars * duration(instance.shortest)
    keys = [
        TickKey(instance.id, name, time.to_pydatetime())
        for name, times in window.times.items()
        for time in times[times >= pd.Timestamp(start)]
    ]
    return WarmUp(setup, window, keys)
