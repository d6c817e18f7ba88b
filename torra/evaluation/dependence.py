"""Standard errors for samples whose neighbours resemble each other: overlapping outcomes, streams.

An outcome over h bars shares h - 1 of them with the next one, and M15 and H1 of a symbol see the
same market. So values are first summed over what happened at one moment (Driscoll and Kraay 1998),
and the sums count as correlated over a number of moments (Newey and West 1987). With such lags
normal quantiles are too narrow; they are widened as Kiefer and Vogelsang (2005, Bartlett kernel)
have it. The block bootstrap draws stretches of moments. A moment on which nothing was seen does not
make a sample larger. Nothing here raises: the result is None if a sample is too small or does not
vary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from torra.evaluation.intervals import (
    LEVEL,
    Floats,
    Interval,
    normal_quantile,
    percentile_interval,
    student_quantile,
    student_tail,
)
from torra.evaluation.observations import TickObservation
from torra.evaluation.opinion_table import Whole, moments_of, streams_of

LAG_HORIZONS: Final = 2
"""Lags as a multiple of the horizon: Bartlett's weights fade towards their end."""

LEAST_BLOCKS: Final = 8
"""Least length of a sample, in lags; a shorter one says nothing about its own spread."""

WIDER: Final = (2.9694, 0.4160, -0.5324)
"""Kiefer and Vogelsang (2005), table 1: 1.9600 + 2.9694 b + 0.4160 b^2 - 0.5324 b^3 is the 97.5 %
point, b = lags / moments."""

FREEDOM: Final = 1.5
"""Bartlett's kernel estimates a variance as well as 1.5 / b independent values would: beyond the
97.5 % point the tail is Student's with so many degrees, scaled to that point."""


class Estimate(NamedTuple):
    """A figure, its standard error, its interval at LEVEL and its p against 0, two-sided."""

    value: float
    error: float
    low: float
    high: float
    p: float


def lag_of(ticks: Sequence[TickObservation], horizon: int) -> int:
    """Return how many moments an outcome over `horizon` bars reaches in the longest timeframe."""
    moments, streams = moments_of(ticks), streams_of(ticks)
    steps = [1.0]
    for stream in np.unique(streams):
        # in moments of all streams: between two bars of H1 lie several of M15
        own = np.diff(np.sort(moments[streams == stream]))
        steps += [float(np.median(own))] if len(own) else []
    return math.ceil(LAG_HORIZONS * horizon * max(steps))


def mean_estimate(values: Floats, moments: Whole, lag: int) -> Estimate | None:
    """Return the estimate of a mean; values that are NaN are left out.

    `moments` numbers the moment of each value; values up to `lag` moments apart may be correlated.
    """
    there = ~np.isnan(values)
    if not there.any():
        return None
    mean = float(values[there].mean())
    return _estimate(mean, values[there] - mean, float(there.sum()), moments[there], lag)


def slope_estimate(x: Floats, y: Floats, moments: Whole, lag: int) -> Estimate | None:
    """Return the slope of y on x, both of mean 0; with unit variances that is the correlation."""
    power = float(x @ x)
    if power <= 0.0:
        return None
    slope = float(x @ y) / power
    return _estimate(slope, x * (y - slope * x), power, moments, lag)


def long_run(scores: Floats, moments: Whole, lag: int) -> float:
    """Return the variance of a sum of scores by Newey and West, of the sums over moments."""
    sums = np.bincount(moments, weights=scores)
    total = float(sums @ sums)
    for step in range(1, min(lag, len(sums) - 1) + 1):
        # Bartlett's weights: without them the sum could come out negative
        total += 2.0 * (1.0 - step / (lag + 1)) * float(sums[step:] @ sums[:-step])
    return total


def _estimate(
    value: float, scores: Floats, scale: float, moments: Whole, lag: int
) -> Estimate | None:
    length = len(np.unique(moments))
    # from 0 on: bincount makes an array up to the largest number
    variance = long_run(scores, moments - moments.min(), lag)
    if length < LEAST_BLOCKS * max(lag, 1) or variance <= 0.0:
        return None
    error = math.sqrt(variance) / scale
    wide = widening(lag / length)
    half = normal_quantile((1 + LEVEL) / 2) * wide * error
    # scaled so that p is 1 - LEVEL exactly where the interval touches 0
    p = 2.0 * student_tail(abs(value) * _student_point(length, lag) / half, _freedom(length, lag))
    return Estimate(value, error, value - half, value + half, p)


def _freedom(length: int, lag: int) -> float:
    return FREEDOM * length / max(lag, 1)


@lru_cache(maxsize=256)
def _student_point(length: int, lag: int) -> float:
    return student_quantile((1 + LEVEL) / 2, _freedom(length, lag))


def widening(share: float) -> float:
    """Return the factor by which intervals widen with lags over this share of the sample."""
    normal = normal_quantile((1 + LEVEL) / 2)
    return 1.0 + sum(factor * share**power for power, factor in enumerate(WIDER, 1)) / normal


def bootstrap_correlation(
    x: Floats, y: Floats, moments: Whole, block: int, rng: Generator, draws: int
) -> Interval | None:
    """Return the percentile interval of a correlation under a moving-block bootstrap of moments."""
    # numbered anew: a moment on which nothing was seen does not count
    place = np.unique(moments, return_inverse=True)[1]
    length = int(place.max()) + 1 if len(place) else 0
    if length < LEAST_BLOCKS * max(block, 1) or draws < 1:
        return None
    parts = np.stack([np.ones(len(x)), x, y, x * y, x * x, y * y])
    sums = np.stack([np.bincount(place, weights=part, minlength=length) for part in parts])
    # a block is then a difference of two running sums, and no resample has to be copied
    running = np.concatenate([np.zeros((len(sums), 1)), np.cumsum(sums, axis=1)], axis=1)
    blocks = running[:, block:] - running[:, :-block]
    starts = rng.integers(0, length - block + 1, size=(draws, math.ceil(length / block)))
    # the blocks of a draw in a column, so that the draws are summed side by side
    order = np.ascontiguousarray(starts.T)
    n, sx, sy, sxy, sxx, syy = (one[order].sum(axis=0) for one in blocks)
    spread = (sxx - sx * sx / n) * (syy - sy * sy / n)
    found = (sxy - sx * sy / n)[spread > 0.0] / np.sqrt(spread[spread > 0.0])
    return percentile_interval(found, draws)
