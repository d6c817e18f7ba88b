"""What demoted rows were worth: where price stood BARS bars later, by the verdict's side."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Final

from numpy.random import PCG64, Generator

from instance_database import Database
from torra.clock import parse
from torra.evaluation.intervals import mean_of
from torra.radar.result import DemotionWorth, RadarRow, RadarRun, run_of
from torra.store import bars as bar_table
from torra.store import radar_runs

BARS: Final = 24
"""Bars of its timeframe after which a demotion is measured."""

SEED: Final = 69


def worth_of(database: Database, as_of: datetime, newest: RadarRun) -> DemotionWorth:
    """Return the worth of the demotions of the stored runs and of the newest one, at `as_of`.

    Each demoted tick counts once. Raises StoreUnavailable.
    """
    runs = map(run_of, radar_runs.documents_with(database, '"code":"DEMOTED"'))
    rows = {
        (row.as_of, row.stream): row
        for run in (*runs, newest)
        for row in (run.watch if run else ())
        if row.code == "DEMOTED"
    }
    moves = {place: _move(database, as_of, rows[place]) for place in sorted(rows)}
    times = [parse(at) for (at, _), move in moves.items() if move is not None]
    # of hours: the windows of quarters are shorter
    span = timedelta(hours=BARS)
    overlap = max((sum(at <= one < at + span for one in times) for at in times), default=1)
    known = [move for move in moves.values() if move is not None]
    mean = mean_of(known, Generator(PCG64(SEED)), horizon=overlap)
    return DemotionWorth(count=len(known), mean=mean.mean, low=mean.low, high=mean.high)


def _move(database: Database, as_of: datetime, row: RadarRow) -> float | None:
    """Return the move in ATR, with the sign of the verdict; None where it is not known yet."""
    values = {one.id.partition("/")[2]: one.value for one in row.facts}
    named = (values.get(f) for f in ("technical.close", "technical.atr14", "radar.consensus"))
    close, atr, consensus = (one if isinstance(one, float) else 0.0 for one in named)
    instance = row.stream.partition("|")[0]
    # markets rest: bars are counted, not hours
    later = bar_table.closes(
        database, instance, row.timeframe, since=parse(row.as_of), as_of=as_of
    )["close"].to_numpy()
    if len(later) < BARS or atr <= 0.0 or not consensus:
        return None
    return math.copysign(1.0, consensus) * (float(later[BARS - 1]) - close) / atr
