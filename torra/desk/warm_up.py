"""The warm-up plan of an instance: which ticks of its past to run before its desk goes on.

Only an instance without any tick is warmed up. The bars of the past are read once and scored in one
pass. A feed that has none raises nothing: its ticks will say so, and the other instances have
theirs. torra.desk.schedule runs the ticks.

The ticks of all instances run in the order of their closes, as they would have. No vendor is asked:
the past is not worth its time and money. Ticks of such a profile are L1_ONLY.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final

import pandas as pd

from instance_database import Database, TickKey
from torra.clock import Simulated, duration
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
    instance, names = setup.instance, setup.instance.timeframes
    try:
        # Before the look for ticks: bars that came while the desk was off are stored either way.
        live = LiveWindow(instance, setup.feed, database)
        live.fill(upto)
        if any(claim_table.newest_claim(database, instance.id, name) for name in names):
            return None
        history = {name: setup.feed.bars(instance.symbol, name, upto, None) for name in names}
        # The records are those of all stored bars: an imported history is longer than the feed's.
        window = HistoryWindow(history, live.records)
    except DataUnavailable as error:
        log.warning("%s: no warm-up: %s", instance.id, error.detail)
        return None
    start = pd.Timestamp(upto - bars * duration(instance.shortest))
    keys = [
        TickKey(instance.id, name, time.to_pydatetime())
        for name, times in window.times.items()
        for time in times[times >= start]
    ]
    return WarmUp(setup, window, keys)


def in_order(
    plans: Iterable[WarmUp],
    goes_on: Callable[[], bool],
    run: Callable[[WarmUp, Sequence[TickKey], Simulated], None],
) -> Iterator[tuple[int, int]]:
    """Run the ticks of plans, close by close and instance by instance; yield (done, all).

    All instances have one order: they share the account, and exposure of then depends on it.
    """
    ticks = [(key.close_time, key.instance, key, one) for one in plans for key in one.keys]
    ticks.sort(key=lambda tick: tick[:2])
    done = 0
    for (moment, _), group in groupby(ticks, key=lambda tick: tick[:2]):
        if not goes_on():
            return  # the desk has lost its lock
        close = [*group]
        run(close[0][3], [key for _, _, key, _ in close], Simulated(moment))
        done += len(close)
        yield done, len(ticks)
