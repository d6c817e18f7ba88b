"""The records of a desk are those of all that it has stored, imported bars too."""

from __future__ import annotations

import threading
from pathlib import Path

import pandas as pd

from tests.doubles.scripted import Scripted
from tests.worlds.price_series import sample
from tests.worlds.stores import open_database
from torra.clock import duration
from torra.config import Instance, Profile
from torra.desk import warm_up
from torra.desk.roster import InstanceRuntime
from torra.feeds.frame import FrameFeed
from torra.tick.bar_window import LiveWindow

FED = 400
"""Bars that the feed still has: the others were imported."""


def test_warm_up_and_live_ticks_know_the_imported_records(tmp_path: Path) -> None:
    bars = sample("EURUSD_H1").iloc[:2000].copy()
    # Long before the feed begins; as a whole history has it.
    bars.iloc[10, bars.columns.get_indexer(pd.Index(["high", "low"]))] = [9.0, 0.1]
    instance = Instance(symbol="EURUSD", timeframes=("H1",), feed="store")
    feed = FrameFeed({"H1": bars.iloc[-FED:]})
    setup = InstanceRuntime(instance, Profile(), feed, Scripted(), threading.Lock())
    database = open_database(tmp_path)
    database.store_bars("EURUSD", "H1", bars)
    upto = bars.index[-1].to_pydatetime() + duration("H1")
    planned = warm_up.plan(setup, database, upto, 5)
    assert planned is not None and planned.keys
    for key in planned.keys:
        as_of = key.bar_time + duration("H1")
        known = planned.window.records("H1", as_of)
        assert known == (9.0, 0.1, bars.index[0])
        assert known == LiveWindow(instance, feed, database).records("H1", as_of)
