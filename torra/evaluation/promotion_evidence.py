"""The evidence of a look of the promotion rule: residual information, and the gain of flips.

A pool holds the ticks of every instance of a profile in the order of time. A tick counts if an
agent was heard on it and its outcome, with all before it, is known; the others only carry the
consensus on. Outcomes are net of spread and commission, in ATR, over HORIZON bars from the next
open.

Ticks resemble their neighbours and those of other instances at the same hour, so they never count
as independent here. The interval of the IC comes from sums over blocks of days (Student's t). The
shuffled placebo gives whole days to other days, and each tick the words of the same stream and time
of day, so what agents say in the course of a day stays together. Verdicts are taken anew under each
shuffle, which shows what such adjustments pay by luck. Too little data gives None; nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
import pandas as pd
from numpy.random import Generator

from agents.contracts import VECTORS
from torra.clock import duration
from torra.evaluation.information import LEAST, ranks_within, residual
from torra.evaluation.intervals import Floats, student_quantile
from torra.evaluation.observations import TickObservation
from torra.evaluation.opinion_table import (
    OPINIONS,
    Flags,
    Whole,
    l1_of,
    spoke,
    streams_of,
)
from torra.evaluation.outcomes import Outcomes, entry_bars
from torra.evaluation.promotion_rule import InterimAnalysis, PromotionEvidence
from torra.evaluation.recomposition import BrainNumbers, Chains, blend, verdicts_of

HORIZON: Final = 4
"""Horizon of a tick's outcome, in bars of its own timeframe."""

SHUFFLES: Final = 199
"""Shuffled placebos that are drawn at a look."""

BLOCK_HORIZONS: Final = 5
"""A block of the interval is this many horizons of the longest timeframe, and at least a day: what
overlaps from one block into the next is a fifth at most.
"""

LONGEST_WAIT: Final = timedelta(days=10)
"""After so long a missing outcome is given up; until then later ticks wait for it."""

LEAST_BLOCKS: Final = 3
DAY: Final = timedelta(days=1)


Verdicts = Callable[[Floats], Whole]
"""Adjustments (ticks, 4) to verdicts -1, 0, +1 (ticks,), every tick of the pool at once."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Ticks as arrays, in the order of time.

    `stream` and `day` are numbers of those, `slot` that of stream and time of day, `block` that of
    the stretch of days for the interval. `view` is the final adjustment as one number, `l1` (ticks,
    k) the controls, `forward` the move of the price, `long` and `short` what either side earned,
    net. On `heard` ticks anybody but the gate was heard; of those the rule has `counted` some.
    """

    stream: Whole
    day: Whole
    slot: Whole
    block: Whole
    view: Floats
    l1: Floats
    adjustments: Floats
    forward: Floats
    long: Floats
    short: Floats
    heard: Flags
    counted: Flags
    verdicts: Verdicts

    @property
    def count(self) -> int:
        """The number of ticks that the rule counts."""
        return int(self.counted.sum())

    @property
    def waiting(self) -> int:
        """The number of ticks with agents after the last that counts: they wait for outcomes."""
        last = np.flatnonzero(self.counted)
        return int(self.heard[last[-1] + 1 if len(last) else 0 :].sum())

    def within(self, look: InterimAnalysis) -> Flags:
        """Return the ticks on which a look is based."""
        # a look counts the ticks that count, not all rows
        place = np.cumsum(self.counted) - 1
        return self.counted & (place >= look.first) & (place < look.upto)


def has_opinion(tick: TickObservation) -> bool:
    """Return whether anybody but the gate was heard on a tick."""
    return any(spoke(opinion) for opinion in tick.opinions if opinion.kind in OPINIONS)


def pool(ticks: Sequence[TickObservation], known: Outcomes, brain: BrainNumbers) -> Pool:
    """Return ticks, which are in the order of time, with their outcomes as a pool."""
    chains, column = Chains(ticks, brain), known.place(HORIZON)
    l1 = l1_of(ticks)
    scores = l1[:, :4]
    weights = np.array([getattr(brain.weights, name) for name in VECTORS])
    adjustments = np.array([tick.adjustments for tick in ticks], dtype=float).reshape(-1, 4)
    forward = known.forward[:, column]
    heard = np.array([has_opinion(tick) for tick in ticks], dtype=bool)
    day = np.array([tick.close_time.toordinal() for tick in ticks], dtype=np.int64)
    step = _block_days({tick.timeframe for tick in ticks})
    stream = streams_of(ticks)

    def verdicts(moves: Floats) -> Whole:
        return verdicts_of(chains.consensus(blend(scores, moves)), brain.thresholds)

    return Pool(
        stream=stream,
        day=day,
        slot=_slots(ticks, stream),
        block=day // step,
        view=adjustments @ weights,
        l1=l1,
        adjustments=adjustments,
        forward=forward,
        long=known.long[:, column],
        short=known.short[:, column],
        heard=heard,
        counted=_count_mask(ticks, heard, known.long[:, column]),
        verdicts=verdicts,
    )


def in_time(ticks: Sequence[TickObservation], bars: pd.DataFrame) -> Flags:
    """Return the ticks of a stream whose outcome began its last bar within LONGEST_WAIT.

    `bars` are closed bars by open time. If a stream was given up and taken up again, what came
    after the gap is no outcome of what was said before it.
    """
    opens = pd.DatetimeIndex(bars.index)
    last = entry_bars(ticks, bars) + HORIZON - 1
    known = last < len(opens)
    closes = pd.DatetimeIndex([tick.close_time for tick in ticks])
    waited = opens[np.minimum(last, len(opens) - 1)] - closes
    return np.asarray(known & (waited < pd.Timedelta(LONGEST_WAIT)))


def evidence(
    seen: Pool, look: InterimAnalysis, rng: Generator, shuffles: int = SHUFFLES
) -> PromotionEvidence:
    """Return the evidence of a look; `rng` draws the shuffled placebos."""
    rows = seen.within(look)
    ic, low, high = residual_ic(seen, rows, look.level)
    alone = seen.verdicts(np.zeros_like(seen.adjustments))
    flips, gain = flipped_gain(seen, seen.adjustments, rows, alone)
    # agents that know something do better than their own opposite
    _, other = flipped_gain(seen, -seen.adjustments, rows, alone)
    beats = None
    if flips:
        tries = (shuffled(seen, rows, rng) for _ in range(shuffles))
        drawn = [flipped_gain(seen, moved, rows, alone)[1] for moved in tries]
        # a tie is not beaten
        beats = sum(value < gain for value in drawn) / len(drawn)
    return PromotionEvidence(
        ticks=int(rows.sum()),
        blocks=len(np.unique(seen.block[rows])),
        ic=ic,
        low=low,
        high=high,
        flips=flips,
        gain=gain if flips else None,
        flipped=other if flips else None,
        beats=beats,
    )


def residual_ic(
    seen: Pool, rows: Flags, level: float
) -> tuple[float | None, float | None, float | None]:
    """Return the rank IC of the adjustment, residual on L1, with both ends of its interval.

    The coefficient is torra.evaluation.information's; the interval is one at any level, from blocks
    of days by Student's t.
    """
    _, place = np.unique(seen.block[rows], return_inverse=True)
    blocks = int(place.max()) + 1 if len(place) else 0
    if blocks < LEAST_BLOCKS or int(rows.sum()) < LEAST:
        return None, None, None
    streams = seen.stream[rows]
    view, outcome, *l1 = (
        ranks_within(column[rows], streams) for column in (seen.view, seen.forward, *seen.l1.T)
    )
    held = np.column_stack(l1)
    said, came = residual(view, held), residual(outcome, held)
    if said is None or came is None:
        return None, None, None
    product = said * came / len(said)
    ic = float(product.sum())
    off = np.bincount(place, product - ic / len(said), minlength=blocks)
    error = math.sqrt(float(off @ off) * blocks / (blocks - 1))
    reach = student_quantile(0.5 + level / 2.0, blocks - 1) * error
    return ic, ic - reach, ic + reach


def flipped_gain(
    seen: Pool, adjustments: Floats, rows: Flags, alone: Whole | None = None
) -> tuple[int, float]:
    """Return on how many ticks adjustments change the verdict of L1, and the mean net gain, in ATR.

    Net of what L1 alone would have earned there; 0.0 where nothing is changed. `alone` are the
    verdicts of L1 where they are known already.
    """
    if alone is None:
        alone = seen.verdicts(np.zeros_like(adjustments))
    # on every tick, not on `rows` alone: a moved score reaches later ticks by the consensus
    final = seen.verdicts(adjustments)
    rows = rows & (final != alone)
    if not rows.any():
        return 0, 0.0
    difference = _earned(seen, final, rows) - _earned(seen, alone, rows)
    return int(rows.sum()), float(difference.mean())


def shuffled(seen: Pool, rows: Flags, rng: Generator) -> Floats:
    """Return the adjustments with whole days of a look given to other days of it.

    By stream and time of day; a tick whose other day had no such tick gets no adjustment. Ticks
    after the look have no part in it, so the result does not depend on when the look is taken.
    """
    last = int(np.flatnonzero(rows)[-1]) + 1 if rows.any() else 0
    own = np.isin(seen.day, seen.day[rows]) & (np.arange(len(rows)) < last)
    days, day = np.unique(seen.day[own], return_inverse=True)
    slots, slot = np.unique(seen.slot[own], return_inverse=True)
    table = np.zeros((len(days), len(slots), seen.adjustments.shape[1]))
    table[day, slot] = seen.adjustments[own]
    found = np.zeros_like(seen.adjustments)
    found[own] = table[rng.permutation(len(days))[day], slot]
    return found


def _earned(seen: Pool, verdicts: Whole, rows: Flags) -> Floats:
    choice = verdicts[rows]
    bought = np.where(choice > 0, seen.long[rows], 0.0)
    return np.asarray(np.where(choice < 0, seen.short[rows], bought))


def _count_mask(ticks: Sequence[TickObservation], heard: Flags, outcome: Floats) -> Flags:
    """Return the ticks that count: an agent was heard, and all outcomes so far are known.

    Otherwise a longer timeframe's outcome, which comes later, would change which ticks were first.
    """
    known = np.isfinite(outcome)
    if ticks:
        newest = ticks[-1].close_time
        waits = np.array([newest - tick.close_time < LONGEST_WAIT for tick in ticks])
        waiting = np.flatnonzero(heard & ~known & waits)
        known[waiting[0] if len(waiting) else len(ticks) :] = False
    return np.asarray(heard & known)


def _block_days(timeframes: set[str]) -> int:
    longest = max((duration(name) for name in timeframes), default=DAY)
    return max(1, math.ceil(BLOCK_HORIZONS * HORIZON * longest / DAY))


def _slots(ticks: Sequence[TickObservation], stream: Whole) -> Whole:
    minutes = [tick.close_time.hour * 60 + tick.close_time.minute for tick in ticks]
    return stream * (DAY // timedelta(minutes=1)) + np.array(minutes, dtype=np.int64)
