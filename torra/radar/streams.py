"""One stream as a scan finds it: its stored tick, or a score of its bars, and how old it is.

A stored tick counts as it was stored. Of a stream without a tick of the bar that closed last the
bars are scored anew, without agents. What cannot be read raises DataUnavailable with a code of
radar.csv, which is that stream's failure alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import pandas as pd

import ath_calculator
from agents.contracts import VECTORS
from technical_calculator import HISTORY, WARM_UP
from torra.clock import duration, floor, iso, parse
from torra.config import Thresholds
from torra.errors import DataUnavailable
from torra.evidence.companion_readings import micros
from torra.market import regime
from torra.radar.groups import Closes
from torra.radar.universe import RadarStream, read_watched
from torra.store import tick_queries
from torra.tick.bar_window import last_row
from torra.tick.tick_record import Damaged, ThresholdsRecord, TickRecord
from torra.tools.desk_reader import DeskReader
from torra.verdict import sentiment_rules
from torra.verdict.sentiment_rules import Verdict

NO_BAR = "no_bar"
"""Reason of a skipped close for which the feed brought no bar (torra.desk.schedule)."""

RESTS_WITHIN = 5
"""Most bars since a close without a bar while a desk still looks: it gives one up after two."""

MOST_MISSED = 5_000
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class StreamState:
    """A stream at the moment of a scan.

    `record` is its newest tick; None where it was scored anew, or only its bars are known.
    `current`: what was read is of the bar that closed last; `rests`: the market has brought none
    since. `closed` is when the bar closed that was read. `missed` is how many closes since the
    newest tick were skipped for another reason.
    """

    stream: RadarStream
    closes: Closes
    closed: datetime
    thresholds: Thresholds | ThresholdsRecord
    record: TickRecord | None = None
    current: bool = False
    rests: bool = False
    missed: int = 0
    composite: float | None = None
    consensus: float | None = None
    verdict: Verdict = "HOLD"
    close: float | None = None
    atr: float | None = None
    regime: str = ""
    triage: tuple[str, ...] = ()

    @property
    def is_anew(self) -> bool:
        """Whether its bars were scored by this scan."""
        return self.record is None and self.current

    def move(self, as_of: datetime) -> float | None:
        """Return the move of 24 hours in ATR of a day, signed; None where it is not known.

        The ATR of a day is that of a bar times the root of how many bars a day has.
        """
        step, times, closes = self.closes[1:]
        place = int(np.searchsorted(times, micros(as_of - DAY - step), side="right")) - 1
        if place < 0 or not self.atr or self.close is None:
            return None
        return (self.close - float(closes[place])) / (self.atr * float(np.sqrt(DAY / step)))


def state_of(reader: DeskReader, stream: RadarStream) -> StreamState:
    """Return a stream's state at the reader's moment; raises DataUnavailable, StoreUnavailable.

    The consensus of a stream that is scored anew is not known yet: torra.radar.scan weighs it.
    """
    name, timeframe, database = stream.instance.id, stream.timeframe, reader.database
    step, due = duration(timeframe), floor(reader.as_of, timeframe) - duration(timeframe)
    if stream.kind == "watched":
        frame, record = read_watched(reader, stream), None
    else:
        frame = database.load_bars(name, timeframe, as_of=reader.as_of, limit=HISTORY)
        record = _record(reader, name, timeframe)
    times = pd.DatetimeIndex(frame.index).as_unit("us").asi8.astype(np.int64)
    closes = Closes(stream.symbol, step, times, frame["close"].to_numpy(dtype=np.float64))
    newest = frame.index[-1].to_pydatetime() if len(frame) else None
    if record is not None:
        state = _of_tick(reader, stream, closes, record, due, newest)
        if state.current or stream.kind == "hosted" or newest != due:
            return state
    if newest is None:
        raise DataUnavailable("NO_BARS", f"{name} {timeframe}: no bar is stored")
    profile = reader.profiles[name]
    state = StreamState(stream, closes, newest + step, profile.thresholds)
    if newest != due:
        return state
    if len(frame) < WARM_UP:
        raise DataUnavailable("TOO_SHORT", f"{stream.name}: {len(frame)} bars of {WARM_UP}")
    row, bar = last_row(frame), frame.iloc[-1]
    own = stream.kind == "own"
    records = database.records(name, timeframe, as_of=reader.as_of) if own else None
    high, low = (records or ath_calculator.carry(None, frame))[:2]
    height = ath_calculator.score(row["close"], high, low, row["atr14"], profile.record_score)
    scores = {vector: row[vector] for vector in VECTORS}
    return replace(
        state,
        current=True,
        composite=sentiment_rules.composite(scores, height, profile.sentiment_weights),
        close=row["close"],
        atr=row["atr14"],
        regime=regime.read(row).name,
        triage=regime.triage(
            range_atr=float(bar["high"] - bar["low"]) / row["atr14"] if row["atr14"] else 0.0,
            volume_ratio=row["volume_ratio"],
            gap_atr=row["gap_atr"],
            bar_age=0.0,
        ),
    )


def _record(reader: DeskReader, name: str, timeframe: str) -> TickRecord | None:
    stream = (name, timeframe)
    key, _ = tick_queries.newest_of(reader.database, [stream])[stream]
    record = reader.tick(key) if key else None
    if isinstance(record, Damaged):
        raise DataUnavailable("DAMAGED", f"{key}: {record.reason}")
    return record


def _of_tick(
    reader: DeskReader,
    stream: RadarStream,
    closes: Closes,
    record: TickRecord,
    due: datetime,
    newest: datetime | None,
) -> StreamState:
    """Return the state of a stored tick, and what came of the closes since.

    The market rests while every later close was looked for and had no bar.
    """
    closed = parse(record.as_of)
    step, bar = closes.step, closed - closes.step
    rests, missed = False, 0
    skips = None if bar >= due else tick_queries.skips_after(
        reader.database, stream.instance.id, stream.timeframe, iso(bar), MOST_MISSED
    )  # fmt: skip
    if skips:
        last, silent = parse(skips["bar_time"]), skips["reason"] == NO_BAR
        whole = not skips["others"] and (last - bar) // step == skips["count"]
        rests = silent and whole and newest == bar and reader.as_of - last <= RESTS_WITHIN * step
        missed = skips["others"] if silent else skips["count"] - skips["others"]
    flags = next((one.value for one in record.features if one.id == "market.triage"), None)
    return StreamState(
        stream,
        closes,
        closed,
        record.thresholds,
        record,
        current=bar >= due,
        rests=rests,
        missed=missed,
        composite=record.composite,
        consensus=record.consensus,
        verdict=record.verdict,
        close=record.close,
        atr=record.atr,
        regime=record.regime.name,
        triage=tuple(str(flags or "").split()),
    )
