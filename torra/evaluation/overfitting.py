"""Probability that the best of many configurations is only the luckiest: PBO by CSCV.

Combinatorially symmetric cross-validation (Bailey, Borwein, Lopez de Prado and Zhu, The Probability
of Backtest Overfitting, Journal of Computational Finance 20(4), 2017) cuts the history into an even
number of parts. For every way of taking half of them, it takes the configuration with the best
Sharpe ratio on that half and looks it up in the other half. The PBO is the share of ways in which
it is no better there than the median of all: about one half if all are alike, near 0 if one is
truly better.

    w      rank of the chosen one in the other half / (configurations + 1), ties in the middle
    PBO    share of the ways with ln(w / (1 - w)) <= 0

A configuration without a trade has the ratio 0. Too few periods or configurations, or no trade at
all, give no probability. Moments of the parts are added up, so that a hundred configurations take
no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Final

import numpy as np

from torra.evaluation.exhibits import (
    Columns,
    Exhibit,
    contents,
    number,
    percentage,
    read_all,
)
from torra.evaluation.intervals import Floats
from torra.evaluation.wording import count, percent

PARTS: Final = 10
"""Parts of the history: 252 ways of taking half of them."""

LEAST_PERIODS: Final = 4
"""Least periods of a part: with fewer its ratio is noise."""

ALIKE: Final = 1e-12
"""A spread below this is none."""


@dataclass(frozen=True, slots=True)
class Overfitting:
    """The result over all ways of halving a history.

    `probability` is the PBO; `loss` the share of ways in which the chosen one lost in the other
    half; `inside` and `outside` the mean ratio of the chosen one where it was chosen and in the
    other half, per period. All four are None if there was too little to cut.
    """

    configurations: int
    periods: int
    ways: int = 0
    probability: float | None = None
    loss: float | None = None
    inside: float | None = None
    outside: float | None = None


def overfitting(results: Floats, parts: int = PARTS) -> Overfitting:
    """Return the PBO of results, one row a period and one column a configuration.

    `parts` is even; raises ValueError when it is not.
    """
    if parts < 2 or parts % 2:
        raise ValueError(f"{parts} parts: take an even number")
    periods, configurations = results.shape
    if configurations < 2 or periods < parts * LEAST_PERIODS or not results.any():
        return Overfitting(configurations, periods)
    taken = _ways(parts)
    moments = _moments(results, parts)
    inside, outside = _ratios(taken, *moments), _ratios(1.0 - taken, *moments)
    every = np.arange(len(taken))
    chosen = inside.argmax(axis=1)
    theirs = outside[every, chosen][:, None]
    below, level = (outside < theirs).sum(axis=1), (outside == theirs).sum(axis=1)
    rank = (below + (level + 1) / 2.0) / (configurations + 1)
    return Overfitting(
        configurations,
        periods,
        len(taken),
        probability=float(np.mean(rank <= 0.5)),  # ln(w / (1 - w)) <= 0
        loss=float(np.mean(theirs < 0)),
        inside=float(inside[every, chosen].mean()),
        outside=float(theirs.mean()),
    )


def _ways(parts: int) -> Floats:
    """Return a row of 0 and 1 for every way of taking half of the parts."""
    taken = np.zeros((comb(parts, parts // 2), parts))
    for row, chosen in enumerate(combinations(range(parts), parts // 2)):
        taken[row, list(chosen)] = 1.0
    return taken


def _moments(results: Floats, parts: int) -> tuple[Floats, Floats, Floats]:
    """Return number, sum and sum of squares of each part, about the mean of each configuration."""
    level = results.mean(axis=0)
    cut = np.array_split(results - level, parts)
    sizes = np.array([[len(part)] for part in cut], dtype=np.float64)
    sums = np.array([part.sum(axis=0) for part in cut])
    squares = np.array([(part**2).sum(axis=0) for part in cut])
    return sizes, sums + sizes * level, squares + 2 * sums * level + sizes * level**2


def _ratios(taken: Floats, sizes: Floats, sums: Floats, squares: Floats) -> Floats:
    """Return the Sharpe ratio a period of every configuration on the parts that are taken."""
    number = taken @ sizes
    mean = taken @ sums / number
    variance = np.maximum(taken @ squares / number - mean**2, 0.0) * number / (number - 1.0)
    spread = np.sqrt(variance)
    # a configuration that did not trade there has the ratio 0, not 0/0
    flat = spread <= ALIKE
    return np.where(flat, 0.0, mean / np.where(flat, 1.0, spread))


COLUMNS: Final[Columns] = {
    "configurations": "configurations",
    "days": "periods",
    "ways to halve them": "ways",
    "probability of overfitting": percentage("probability"),
    "chosen one loses after": percentage("loss"),
    "its daily Sharpe where chosen": number("inside", 3),
    "in the other half": number("outside", 3),
}


FIGURES: Final[Columns] = {
    **{name: name for name in ("probability", "loss", "inside", "outside")},
    "ways": lambda one: float(one.ways),
}


def overfitting_exhibit(found: Overfitting) -> Exhibit:
    """Return the table of the PBO and its sentence."""
    return Exhibit(
        name="overfitting",
        title="Whether the best configuration is only the luckiest",
        **contents(COLUMNS, [found]),
        figures=read_all(FIGURES, found),
        says=_says(found),
        enough=found.probability is not None,
    )


def _says(found: Overfitting) -> str:
    if found.probability is None:
        least = PARTS * LEAST_PERIODS
        return (
            f"{count(found.configurations, 'configuration')} on {count(found.periods, 'day')}: "
            f"too little to cut in halves. It takes two configurations and {least} days."
        )
    return (
        f"In {percent(found.probability)} of {found.ways} ways to halve the days, the one that was "
        "best on one half was no better than the median on the other. Where all are alike that is "
        "50 %: only a share near 0 says that the choice carries over."
    )
