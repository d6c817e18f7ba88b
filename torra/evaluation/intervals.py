"""Confidence intervals of shares and means, with the tests and quantiles that they need.

All are two-sided at 95 %. A share has Wilson's interval. A mean has a studentised moving-block
bootstrap (Kuensch 1989; Goetze and Kuensch 1996): in blocks, because neighbouring results resemble
each other, and studentised, because the percentile bootstrap of 30 to 100 trades is too narrow and
claims twice too often. Nothing here raises: a sample that is too small has a mean and no interval,
for the studentised bootstrap of few values reaches farther than any mean could lie.

Resampling takes a seeded Generator; the same sample and seed give the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

LEVEL: Final = 0.95
"""Confidence of every interval, two-sided."""

RESAMPLES: Final = 2_000
LEAST_BLOCKS: Final = 5
"""Least blocks for the interval of a mean: the spread of fewer is not known."""

LEAST_VALUES: Final = 20
"""Least values for the interval of a mean: that of ten may reach past all of them."""

CHUNK: Final = 2_000_000
"""Block means drawn at a time, so that a long sample does not fill the memory."""

FLAT: Final = 1e-9
"""A spread below this share of the largest value is rounding, not a spread."""

STANDARD: Final = NormalDist()

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends of a two-sided interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean and its uncertainty.

    `sd` is the sample's standard deviation, `se` the standard error of the mean with the blocks
    counted in, `low` and `high` the studentised bootstrap interval at LEVEL, `p` two-sided against
    a mean of 0 by Student's t. Each is None if the sample is too small for it, an interval and
    its p together. `block` is the length of a block.
    """

    n: int
    mean: float | None = None
    sd: float | None = None
    se: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    block: int = 1

    @property
    def interval(self) -> Interval | None:
        """Both ends together; None where the sample is too small."""
        return None if self.low is None or self.high is None else Interval(self.low, self.high)


def mean_of(
    values: Sequence[float] | Floats,
    rng: Generator,
    *,
    horizon: int = 1,
    resamples: int = RESAMPLES,
) -> Mean:
    """Return the mean of a sample in the order of time; values that are not finite are left out.

    `horizon` is how many neighbours a value overlaps with, itself included; a block is never
    shorter. An interval takes LEAST_VALUES values in LEAST_BLOCKS blocks, values that differ, and
    ends between the smallest and the largest of them.
    """
    sample = np.asarray(values, dtype=np.float64)
    sample = sample[np.isfinite(sample)]
    size = len(sample)
    block = block_length(size, horizon)
    if size < 2:
        return Mean(size, float(sample[0]) if size else None, block=block)
    mean, deviation = float(sample.mean()), float(sample.std(ddof=1))
    error = standard_error(sample, block)
    if error is None:
        return Mean(size, mean, deviation, block=block)
    ends = _studentised(sample, block, error, rng, resamples) if size >= LEAST_VALUES else None
    if ends is None or not _within(ends, sample):
        return Mean(size, mean, deviation, error, block=block)
    # as many independent values as there are blocks
    p = 2 * student_tail(abs(mean) / error, size / block - 1)
    return Mean(size, mean, deviation, error, ends.low, ends.high, min(1.0, p), block)


def _within(ends: Interval, sample: Floats) -> bool:
    return bool(sample.min() <= ends.low and ends.high <= sample.max())


def block_length(size: int, horizon: int = 1) -> int:
    """Return how long a block is: the cube root of the sample, and never below the horizon."""
    return max(1, horizon, round(math.cbrt(size)))


def standard_error(sample: Floats, block: int) -> float | None:
    """Return the standard error of a mean from its overlapping blocks; None where not known.

    The variance of the means of all blocks, scaled by block/size (Kuensch 1989), and by
    size/(size - block) for what their common mean takes away: with blocks of one value this is
    s / sqrt(size) exactly.
    """
    size = len(sample)
    if size < LEAST_BLOCKS * block:
        return None
    variance = float(_block_means(sample, block).var()) * block / (size - block)
    largest = float(np.abs(sample).max())
    return math.sqrt(variance) if math.sqrt(variance) > FLAT * largest else None


def _block_means(sample: Floats, block: int) -> Floats:
    sums = np.concatenate(([0.0], np.cumsum(sample)))
    means: Floats = (sums[block:] - sums[:-block]) / block
    return means


def _studentised(
    sample: Floats, block: int, error: float, rng: Generator, resamples: int
) -> Interval | None:
    """Return mean - t* se for the outer quantiles of t*; None where resamples have no spread."""
    means = _block_means(sample, block)
    drawn = len(sample) // block
    spread_at_all = FLAT * float(np.abs(sample).max())
    found = []
    for size in _chunks(resamples, drawn):
        picked = means[rng.integers(0, len(means), size=(size, drawn))]
        off = picked.mean(axis=1) - means.mean()
        spread = picked.std(axis=1, ddof=1) / math.sqrt(drawn)
        flat = spread <= spread_at_all
        ratio = off / np.where(flat, 1.0, spread)
        # a resample that does not vary has an infinite t, not 0/0
        found.append(np.where(flat, np.copysign(math.inf, off), ratio))
    tail = (1 - LEVEL) / 2
    # nearest: between two infinities any interpolation is NaN
    quantiles = np.quantile(np.concatenate(found), (tail, 1 - tail), method="nearest")
    if not np.isfinite(quantiles).all():
        return None
    mean = float(sample.mean())
    # the upper quantile of t gives the lower end
    return Interval(mean - float(quantiles[1]) * error, mean - float(quantiles[0]) * error)


def _chunks(resamples: int, drawn: int) -> list[int]:
    whole = max(1, CHUNK // drawn)
    sizes = [whole] * (resamples // whole)
    return [*sizes, resamples % whole] if resamples % whole else sizes


# --- shares ---------------------------------------------------------------------------------------


def percentile_interval(found: Sequence[float] | Floats, draws: int) -> Interval | None:
    """Return the range of LEVEL of the resamples; None if most of the `draws` had no value."""
    # most resamples did not vary: the others are no fair sample of them
    if len(found) < draws / 2:
        return None
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(found, (tail, 1 - tail))
    return Interval(float(low), float(high))


def wilson(hits: int, size: int, level: float = LEVEL) -> Interval | None:
    """Return Wilson's score interval (1927) of a share; None for an empty sample."""
    if size <= 0:
        return None
    z = normal_quantile((1 + level) / 2)
    share, weight = hits / size, z * z / size
    middle = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / size + weight / (4 * size))
    # the ends are exactly 0 and 1 there, and rounding would leave a trace
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    return Interval(low, 1.0 if hits == size else min(1.0, middle + half))


def share_difference(hits: int, size: int, others: int, other_size: int) -> Interval | None:
    """Return Newcombe's interval (1998, method 10) of one share less another; None without both."""
    one, other = wilson(hits, size), wilson(others, other_size)
    if one is None or other is None:
        return None
    first, second = hits / size, others / other_size
    down = math.hypot(first - one.low, other.high - second)
    up = math.hypot(one.high - first, second - other.low)
    return Interval(first - second - down, first - second + up)


def sign_test(wins: int, losses: int) -> float | None:
    """Return the exact two-sided p of wins against losses at even odds; ties are nobody's.

    On discordant pairs this is McNemar's exact test. None without a win or a loss.
    """
    size = wins + losses
    if size == 0:
        return None
    return min(1.0, 2 * binomial_tail(max(wins, losses), size, 0.5))


def binomial_tail(least: int, size: int, share: float) -> float:
    """Return the probability of `least` or more hits among `size`, each with `share` in (0, 1)."""
    if least <= 0:
        return 1.0
    # in logarithms: the factorials of a large sample overflow a float
    logs = math.log(share), math.log1p(-share)
    whole = math.lgamma(size + 1)
    terms = (
        whole - math.lgamma(k + 1) - math.lgamma(size - k + 1) + k * logs[0] + (size - k) * logs[1]
        for k in range(least, size + 1)
    )
    return min(1.0, math.fsum(math.exp(term) for term in terms))


# --- quantiles ------------------------------------------------------------------------------------


def normal_quantile(p: float) -> float:
    """Return the point below which a standard normal value falls with probability p in (0, 1)."""
    return STANDARD.inv_cdf(p)


def normal_share(z: float) -> float:
    """Return the probability that a standard normal value falls below z."""
    return STANDARD.cdf(z)


def student_tail(t: float, freedom: float) -> float:
    """Return the probability that Student's t with `freedom` > 0 degrees exceeds t >= 0."""
    if math.isinf(t):
        return 0.0
    return 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def student_quantile(p: float, freedom: float) -> float:
    """Return the point below which Student's t falls with probability p in [0.5, 1)."""
    low, high = 0.0, 1.0
    while student_tail(high, freedom) > 1 - p:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, freedom) > 1 - p else (low, middle)
    return high


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function, DLMF 8.17."""
    if x in (0.0, 1.0):
        return x
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    # the fraction converges fast on this side; the other side is its mirror image
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction DLMF 8.17.22 by Lentz's method."""
    numerator, denominator = 1.0, 1.0 / _away(1 - (a + b) * x / (a + 1))
    value = denominator
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            denominator = 1.0 / _away(1 + term * denominator)
            numerator = _away(1 + term / numerator)
            value *= denominator * numerator
        if abs(denominator * numerator - 1) < 1e-15:
            break
    return value


def _away(value: float) -> float:
    """Keep a divisor away from 0."""
    return value if abs(value) > 1e-300 else 1e-300
