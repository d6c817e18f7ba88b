"""The brain's arithmetic over a whole history at once: composites, consensus and verdicts of L1.

It does what `save_sentiment` does tick by tick, for every tick of a history and with the same
result to the last bit: the exactly rounded weighted mean of the four scores and the record score,
rounded to 1e-8; the consensus of the latest composites that are fresh; the verdict. The order is
that of a replay: by close, and at the same close the longer timeframe first, so that a shorter one
knows of it and not the other way round.

Bars and their scores are taken as checked; a bar of the warm-up is no tick. Pure numpy: nobody is
asked, nothing is remembered. Trades are torra.replay.l1.trades' part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from agents.contracts import SCORE_DECIMALS, VECTORS
from ath_calculator import RecordScore, record_scores
from technical_calculator import HISTORY, WARM_UP, score_frame
from torra.clock import EPOCH, duration
from torra.config import SentimentWeights, Thresholds
from torra.market.exact import Array, exact_sum, rounded
from torra.verdict.sentiment_rules import FRESH_BARS

Times = NDArray[np.int64]
"""Moments in whole microseconds since 1970, UTC."""

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

RECORD_SCORES: Final[Mapping[RecordScore, str]] = {"both": "ath", "high": "ath_high"}
"""The name of the record score of each form among the scores of a stream."""

SCORES: Final = (*VECTORS, *RECORD_SCORES.values())
"""Everything that a composite may be made of: the four scores, and the record score of one form."""

MICROSECOND: Final = timedelta(microseconds=1)

BUY: Final = 1
SELL: Final = -1
HOLD: Final = 0
"""Verdicts as numbers."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One timeframe of a history: its bars, scores and volatility, one element a bar.

    `opens` are open times, `step` the length of a bar in microseconds. `scores` holds the four
    scores and both record scores by name; like `atr` and `percentile` (of volatility) they are NaN
    before bar `first`, the first that has scores.
    """

    timeframe: str
    step: int
    first: int
    opens: Times
    prices: Mapping[str, Array]
    scores: Mapping[str, Array]
    atr: Array
    percentile: Array

    @property
    def closes(self) -> Times:
        """Close times."""
        return self.opens + self.step

    @property
    def bars_held(self) -> Numbers:
        """How many bars a tick of each bar computes from."""
        return np.minimum(np.arange(1, len(self.opens) + 1), HISTORY)


@dataclass(frozen=True, slots=True)
class Running:
    """The ticks of a history in the order in which they run, one element a tick.

    `stream` and `bar` say which bar closes, `close` when; `scores` has the SCORES of it. `latest`
    maps a timeframe to the number of its newest tick so far, `fresh` to whether there is one whose
    composite still counts.
    """

    streams: tuple[Stream, ...]
    stream: Numbers
    bar: Numbers
    close: Times
    scores: Mapping[str, Array]
    latest: Mapping[str, Numbers]
    fresh: Mapping[str, Flags]

    def gather(self, columns: Sequence[Array]) -> Array:
        """Return for each tick the value of its bar; `columns` has one array for each stream."""
        return gathered(columns, self.stream, self.bar)


def gathered(columns: Sequence[Array], stream: Numbers, bar: Numbers) -> Array:
    """Return the values at so many bars; `columns` has one array for each stream."""
    found = np.empty(len(bar))
    for number, values in enumerate(columns):
        mine = stream == number
        found[mine] = values[bar[mine]]
    return found


def stream_of(timeframe: str, bars: pd.DataFrame, scored: pd.DataFrame | None = None) -> Stream:
    """Return a timeframe's bars with their scores.

    `bars` has float64 open, high, low, close and volume on a UTC index, oldest first; `scored` is
    its `score_frame`, computed here when it is not given.
    """
    table = score_frame(bars) if scored is None else scored
    prices = {name: bars[name].to_numpy(dtype=float) for name in ("open", "high", "low", "close")}
    atr = table["atr14"].to_numpy(dtype=float)
    first = min(WARM_UP - 1, len(bars))
    # From the first bar, not from the warm-up: a desk carries the records of all that it has seen.
    highest = np.maximum.accumulate(prices["high"])
    lowest = np.minimum.accumulate(prices["low"])
    ath = {name: np.full(len(bars), np.nan) for name in RECORD_SCORES.values()}
    found = record_scores(*(line[first:] for line in (prices["close"], highest, lowest, atr)))
    for form, name in RECORD_SCORES.items():
        ath[name][first:] = found[form]
    return Stream(
        timeframe=timeframe,
        step=duration(timeframe) // MICROSECOND,
        first=first,
        opens=pd.DatetimeIndex(bars.index).as_unit("us").asi8.astype(np.int64),
        prices=prices,
        scores={
            **{name: table[name].to_numpy(dtype=float) for name in VECTORS},
            **ath,
        },
        atr=atr,
        percentile=table["volatility_percentile"].to_numpy(dtype=float),
    )


def running(
    streams: Sequence[Stream], begin: datetime | None = None, end: datetime | None = None
) -> Running:
    """Return the ticks that close in (begin, end], None for no bound, in running order."""
    parts: list[tuple[Numbers, Numbers, Times, Times]] = []
    for number, one in enumerate(streams):
        closes = one.closes
        wanted = np.arange(len(closes)) >= one.first
        if begin is not None:
            wanted &= closes > micros(begin)
        if end is not None:
            wanted &= closes <= micros(end)
        bars = np.flatnonzero(wanted)
        step = np.full(len(bars), -one.step)
        parts.append((np.full(len(bars), number), bars, closes[bars], step))
    stream, bar, close, step = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    # The last key is the first to count: by close, then the longer bar (its step is negative).
    order = np.lexsort((step, close))
    stream, bar, close = stream[order], bar[order], close[order]
    latest, fresh = {}, {}
    for number, one in enumerate(streams):
        # -1 until the stream has a tick; what that index gathers is masked by `fresh`.
        newest = np.maximum.accumulate(np.where(stream == number, np.arange(len(stream)), -1))
        until = close[newest] + FRESH_BARS * one.step
        latest[one.timeframe], fresh[one.timeframe] = newest, (newest >= 0) & (close <= until)
    scores = {name: gathered([one.scores[name] for one in streams], stream, bar) for name in SCORES}
    return Running(tuple(streams), stream, bar, close, scores, latest, fresh)


def composites(ticks: Running, weights: SentimentWeights, form: RecordScore = "both") -> Array:
    """Return the composite of each tick, as `sentiment_rules.composite` would.

    `form` is the record score that counts, a profile's `record_score`.
    """
    table = weights.model_dump()
    terms = [table[name] * ticks.scores[name] for name in VECTORS]
    terms.append(table["ath"] * ticks.scores[RECORD_SCORES[form]])
    total = math.fsum(table.values())
    return rounded(exact_sum(terms) / total, SCORE_DECIMALS)


def consensus(ticks: Running, composite: Array, weights: Mapping[str, float]) -> Array:
    """Return the consensus of each tick, as `sentiment_rules.consensus` would.

    A composite counts for FRESH_BARS of its own bars; 0.0 where none counts.
    """
    terms: list[Array] = []
    pattern = np.zeros(len(composite), dtype=np.int64)
    weighed: list[float] = []
    for one in ticks.streams:
        if one.timeframe not in weights:
            continue
        latest, fresh = ticks.latest[one.timeframe], ticks.fresh[one.timeframe]
        terms.append(np.where(fresh, weights[one.timeframe] * composite[latest], 0.0))
        # One bit a timeframe: the sum of weights depends only on which are fresh.
        pattern += fresh.astype(np.int64) << len(weighed)
        weighed.append(weights[one.timeframe])
    if not weighed:
        return np.zeros(len(composite))
    sums = [
        math.fsum(weight for place, weight in enumerate(weighed) if bits >> place & 1)
        for bits in range(1 << len(weighed))
    ]
    sums[0] = 1.0  # nothing fresh: 0.0
    return rounded(exact_sum(terms) / np.array(sums)[pattern], SCORE_DECIMALS)


def verdicts(consensus: Array, thresholds: Thresholds) -> NDArray[np.int8]:
    """Return BUY, SELL or HOLD of each tick."""
    buy, sell = consensus >= thresholds.buy, consensus <= -thresholds.sell
    return np.where(buy, BUY, np.where(sell, SELL, HOLD)).astype(np.int8)


def micros(moment: datetime) -> int:
    """Return a moment as microseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND


def moment_of(micro: int) -> datetime:
    """Return the moment so many microseconds after 1970, UTC."""
    return EPOCH + timedelta(microseconds=micro)
