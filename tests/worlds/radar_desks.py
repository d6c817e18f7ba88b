"""Desks for the radar: stored walks of many symbols, and streams whose state a test makes up."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from instance_database import Database
from tests.worlds import price_series
from torra.clock import duration, floor
from torra.config import DeskSettings, Instance, Profile, Thresholds
from torra.errors import DataUnavailable
from torra.market.longer_bars import aggregate
from torra.radar.groups import Closes
from torra.radar.streams import StreamState
from torra.radar.universe import RadarStream
from torra.tools.desk_reader import DeskReader
from torra.verdict.sentiment_rules import Verdict

SAID: tuple[Verdict, ...] = ("BUY", "SELL", "HOLD")
EIGHT = tuple(Instance(symbol=f"SYM{n}", timeframes=("M15", "H1")) for n in range(8))


def reader(
    database: Database, home: Path, instances: Sequence[Instance] = EIGHT, **more: Any
) -> DeskReader:
    """Return a reader of stored bars, at the close of their last hour."""
    settings = DeskSettings(instances=tuple(instances), **more)
    profiles = {one.id: Profile() for one in instances}
    now = pd.Timestamp("2024-03-15T12:00", tz="UTC").to_pydatetime()
    return DeskReader(home, database, settings, profiles, now, now)


def store_walks(database: Database, *, mirrored: bool = False) -> None:
    """Store 1,104 quarters of eight walks and their hours; the last four move together, one of
    them the other way."""
    for number, one in enumerate(EIGHT):
        quarters = price_series.walk(1_104, 7 if number > 3 else number)
        if mirrored != (number == 7):
            quarters = price_series.mirrored(quarters)
        database.store_bars(one.id, "M15", quarters)
        database.store_bars(one.id, "H1", aggregate(quarters, "M15", "H1"))


def odd_state(chance: random.Random, reader: DeskReader, stream: RadarStream) -> StreamState:
    """Return a stream with anything about it, or raise what a broken one does."""
    if chance.random() < 0.1:
        raise chance.choice((DataUnavailable("NO_BARS", "none"), ZeroDivisionError("by zero")))
    step = duration(stream.timeframe)
    late = chance.choice((0, 0, 0, 1, 2, 500))
    closed = floor(reader.as_of, stream.timeframe) - late * step
    anew = chance.random() < 0.3 and stream.kind != "hosted"
    verdict: Verdict = chance.choice(SAID)
    orders = [SimpleNamespace(kind="open", sid="none")] if chance.random() < 0.3 else []
    record: Any = SimpleNamespace(
        verdict=verdict,
        signals=orders,
        denied=chance.choice(((), ("GATE_VETO",), ("TRADING_HALTED",))),
        reason=chance.choice(("THRESHOLD", "AWAITS_APPROVAL", "EXECUTION_OFF", "GATE_VETO")),
        events=None,
        instance=stream.instance.id, timeframe=stream.timeframe, bar_time=closed - step,
    )  # fmt: skip
    empty = np.empty(0)
    return StreamState(
        stream,
        Closes(stream.symbol, step, empty.astype(np.int64), empty),
        closed,
        Thresholds(),
        None if anew else record,
        current=late == 0,
        rests=late > 0 and chance.random() < 0.2,
        missed=chance.choice((0, 0, 3)),
        composite=chance.choice((None, -0.4, 0.4)),
        consensus=chance.uniform(-1.0, 1.0),
        verdict=verdict,
    )


def by_stream(run: Any) -> Mapping[str, Any]:
    """Return the rows of a run by their stream."""
    return {row.stream: row for row in (*run.act, *run.watch, *run.exit_radar)}
