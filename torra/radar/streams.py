"""One stream as a scan finds it: its stored tick, or a score of its stored bars, and how old it is.

A stored tick counts as it was stored. Of a stream without a tick of its newest closed bar the bars
are scored anew, without agents. What cannot be read raises StreamFault, which is that stream's
failure alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np
import pandas as pd

import ath_calculator
import technical_calculator
from agents.contracts import VECTORS
from torra.clock import duration, floor, iso, parse
from torra.config import Profile, Thresholds
from torra.errors import ConfigError
from torra.evidence.companion_readings import micros
from torra.market import regime
from torra.radar.groups import CLOSES, Closes
from torra.radar.universe import RadarStream, read_watched
from torra.store import tick_queries
from torra.tick.bar_window import last_row
from torra.tick.tick_record import Damaged, TickRecord, load
from torra.tools.desk_reader import DeskReader
from torra.verdict import sentiment_rules

NO_BAR: Final = "no_bar"
"""Reason of a skipped close for which the feed brought no bar (torra.desk.schedule)."""

RESTS_WITHIN: Final = 4
"""Most bars since the newest close without a bar while a desk still looks: it gives a close up
after two bars, and may be late.
"""

LOADED: Final = 2 * CLOSES
"""Bars whose closes are read: those that count, and what weekends take of the pairs."""

MOST_MISSED: Final = 5_000


class StreamFault(Exception):
    """Why a stream cannot be scanned: a code of radar.csv, and one sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class StreamState:
    """A stream at the moment of a scan.

    `record` is its newest tick, None where none is stored. `current`: that, or the score made anew
    (`is_anew`), is of the bar that closed last; `rests`: since then the market has brought none.
    `closed` is when the bar closed that was read. `missed` is how many closes since the newest
    tick were skipped for another reason.
    """

    stream: RadarStream
    closes: Closes
    closed: datetime
    thresholds: Thresholds
    record: TickRecord | None = None
    current: bool = False
    rests: bool = False
    is_anew: bool = False
    composite: float | None = None
    consensus: float | None = None
    verdict: sentiment_rules.Verdict = "HOLD"
    close: float | None = None
    atr: float | None = None
    regime: str = ""
    triage: tuple[str, ...] = ()
    missed: int = 0

    @property
    def prefix(self) -> str:
        """The beginning of the ids of its facts, up to the feature."""
        step = duration(self.stream.timeframe)
        return f"{self.stream.name}@{iso(self.closed - step)}/"


def state_of(reader: DeskReader, stream: RadarStream) -> StreamState:
    """Return a stream's state at the reader's moment; raises StreamFault and StoreUnavailable.

    The consensus of a stream that is scored anew is not known yet: see `weigh`.
    """
    if stream.kind == "watched":
        return _watched(reader, stream)
    database, name, timeframe = reader.database, stream.instance.id, stream.timeframe
    key, _ = tick_queries.newest_of(database, [(name, timeframe)])[name, timeframe]
    frame = database.load_bars(name, timeframe, as_of=reader.as_of, limit=LOADED)
    due = floor(reader.as_of, timeframe) - duration(timeframe)
    record = _record(reader, key)
    newest = frame.index[-1].to_pydatetime() if len(frame) else None
    if record is None and newest is None:
        raise StreamFault("NO_BARS", f"{name} {timeframe}: no bar is stored; torra import, or run")
    state = StreamState(
        stream,
        _closes(stream, frame),
        parse(record.as_of) if record else (newest or due) + duration(timeframe),
        Thresholds(),
    )
    if record is not None:
        state = _of_tick(state, record)
        state = replace(state, **_since(reader, state, due, newest))
    if state.current or stream.kind == "hosted" or newest != due:
        return state
    return _anew(state, reader.profiles[name], _scored(reader, stream))


def weigh(states: Mapping[str, StreamState], state: StreamState, profile: Profile) -> StreamState:
    """Return a state that was scored anew with its consensus; `states` are those of its symbol."""
    known = {
        one.stream.timeframe: (one.closed, one.composite)
        for one in states.values()
        if one.composite is not None and one.closed <= state.closed
    }
    consensus = sentiment_rules.consensus(known, profile.timeframe_weights, state.closed)
    verdict = sentiment_rules.verdict(consensus, profile.thresholds)
    return replace(state, consensus=consensus, verdict=verdict)


# --- a stored tick --------------------------------------------------------------------------------


def _record(reader: DeskReader, key: str | None) -> TickRecord | None:
    stored = reader.database.tick_without_calls(key) if key else None
    record = load(str(key), stored) if stored else None
    if isinstance(record, Damaged):
        raise StreamFault("DAMAGED", f"{key}: {record.reason}")
    return record


def _of_tick(state: StreamState, record: TickRecord) -> StreamState:
    values = {item.id: item.value for item in record.features}
    flags = str(values.get("market.triage") or "")
    return replace(
        state,
        record=record,
        thresholds=Thresholds(buy=record.thresholds.buy, sell=record.thresholds.sell),
        composite=record.composite,
        consensus=record.consensus,
        verdict=record.verdict,
        close=record.close,
        atr=record.atr,
        regime=record.regime.name,
        triage=tuple(flag for flag in regime.TRIAGE_FLAGS if flag in flags),
    )


def _since(
    reader: DeskReader, state: StreamState, due: datetime, newest: datetime | None
) -> dict[str, Any]:
    """Return whether a tick is of the bar that closed last, and what came of the closes since.

    The market rests while every later close was looked for and had no bar.
    """
    name, timeframe = state.stream.instance.id, state.stream.timeframe
    step = duration(timeframe)
    bar = state.closed - step
    if bar >= due:
        return {"current": True}
    skips = tick_queries.skips_after(reader.database, name, timeframe, iso(bar), MOST_MISSED)
    if skips is None:
        return {}
    last = parse(skips["bar_time"])
    silent = skips["reason"] == NO_BAR and (last - bar) // step == skips["count"]
    if silent and not skips["others"] and newest == bar:
        return {"rests": reader.as_of - last <= (RESTS_WITHIN + 1) * step}
    missed = skips["others"] if skips["reason"] == NO_BAR else skips["count"] - skips["others"]
    return {"missed": missed}


# --- a score made anew ----------------------------------------------------------------------------


def _watched(reader: DeskReader, stream: RadarStream) -> StreamState:
    """Return the state of a watched stream by the bars that a feed brings now."""
    try:
        server, frame = read_watched(reader, stream)
        profile = reader.profiles[server.id]
    except ConfigError as error:
        raise StreamFault("NOT_READ", f"{stream.symbol} cannot be read: {error}") from error
    try:
        profile.symbol(stream.symbol)
    except ConfigError as error:
        raise StreamFault("NO_TERMS", f"{stream.symbol} cannot be read: {error}") from error
    closed = frame.index[-1].to_pydatetime() + duration(stream.timeframe)
    state = StreamState(stream, _closes(stream, frame), closed, profile.thresholds)
    if closed < floor(reader.as_of, stream.timeframe):
        return state
    return _anew(state, profile, (frame, ath_calculator.carry(None, frame)))


def _scored(reader: DeskReader, stream: RadarStream) -> tuple[pd.DataFrame, ath_calculator.Records]:
    name, timeframe, limit = stream.instance.id, stream.timeframe, technical_calculator.HISTORY
    frame = reader.database.load_bars(name, timeframe, as_of=reader.as_of, limit=limit)
    records = reader.database.records(name, timeframe, as_of=reader.as_of)
    return frame, records or ath_calculator.carry(None, frame)


def _anew(
    state: StreamState,
    profile: Profile,
    scored: tuple[pd.DataFrame, ath_calculator.Records],
) -> StreamState:
    frame, records = scored
    if len(frame) < technical_calculator.WARM_UP:
        raise StreamFault(
            "TOO_SHORT",
            f"{state.stream.name}: {len(frame)} bars, {technical_calculator.WARM_UP} are needed",
        )
    row = last_row(frame)
    close, atr, bar = row["close"], row["atr14"], frame.iloc[-1]
    wide = float(bar["high"] - bar["low"]) / atr if atr > 0.0 else None
    height = ath_calculator.score(close, records.high, records.low, atr, profile.record_score)
    scores = {vector: row[vector] for vector in VECTORS}
    step = duration(state.stream.timeframe)
    return replace(
        state,
        closed=frame.index[-1].to_pydatetime() + step,
        thresholds=profile.thresholds,
        current=True,
        is_anew=True,
        composite=sentiment_rules.composite(scores, height, profile.sentiment_weights),
        consensus=None,
        verdict="HOLD",
        close=close,
        atr=atr,
        regime=regime.read(row).name,
        triage=regime.triage(
            range_atr=wide,
            volume_ratio=row["volume_ratio"],
            gap_atr=row["gap_atr"],
            bar_age=0.0,
        ),
    )


def _closes(stream: RadarStream, frame: pd.DataFrame) -> Closes:
    times = pd.DatetimeIndex(frame.index).as_unit("us").asi8
    return Closes(
        stream.symbol,
        duration(stream.timeframe),
        np.asarray(times, dtype=np.int64),
        frame["close"].to_numpy(dtype=np.float64),
    )


def move_of(state: StreamState, as_of: datetime) -> float | None:
    """Return the move of the last 24 hours in ATR of a day, signed; None where it is not known.

    The ATR of a day is that of a bar times the root of how many bars a day has.
    """
    day, step = timedelta(days=1), duration(state.stream.timeframe)
    times = state.closes.times + step // timedelta(microseconds=1)
    place = int(np.searchsorted(times, micros(as_of - day), side="right")) - 1
    if place < 0 or not state.atr or state.close is None:
        return None
    before = float(state.closes.closes[place])
    return (state.close - before) / (state.atr * float(np.sqrt(day / step)))
