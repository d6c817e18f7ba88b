"""Walk-forward: choose a configuration on the past, judge it on what follows, and never look back.

The bars are cut into one part more than there are folds. Fold k chooses among the configurations on
everything before its border, and the choice is judged, unchanged, on the part after it. Two gaps
keep the two apart (Lopez de Prado, Advances in Financial Machine Learning, 2018, ch. 7):

    purge     the last bars before the border: a trade that was still open in them is not known yet
              and chooses nothing
    embargo   the first bars after the border, in which nothing is judged: what moved the choice may
              move them too

The figure of merit is the Sharpe ratio of daily results in R, days without a trade included, so
that a rule which rarely trades is not chosen for one lucky trade. A configuration with fewer than
LEAST_TRADES trades is not chosen. A fold without a choice, or without a trade after it, says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from torra.evaluation.exhibits import Exhibit
from torra.evaluation.intervals import Floats, Mean, mean_of
from torra.evaluation.power import PowerSentence, trades_finding
from torra.evaluation.wording import count, interval_cell, rounded, signed

LEAST_TRADES: Final = 20
"""Least trades before the border of a configuration that may be chosen."""

LEAST_BARS: Final = 50
"""Least bars of a part after purge and embargo."""

DAY: Final = 86_400_000_000
"""In microseconds."""

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Results:
    """The trades of one configuration: decided, known to have ended (microseconds), net R."""

    name: str
    decided: Times
    known: Times
    r: Floats


@dataclass(frozen=True, slots=True)
class Fold:
    """One border: chosen on what was known at `train_end`, judged in [test_begin, test_end)."""

    train_end: int
    test_begin: int
    test_end: int


@dataclass(frozen=True, slots=True)
class FoldResult:
    """One fold: its choice, with merit and results before the border, and the results after it.

    `best_after` is the highest mean after the border of any configuration with a trade there: what
    only hindsight could have chosen.
    """

    fold: Fold
    chosen: str | None = None
    merit: float | None = None
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    best_after: float | None = None


def folds(closes: Times, number: int, purge: int, embargo: int) -> tuple[Fold, ...]:
    """Return the folds of bars, given by close times; raises ValueError if there are too few."""
    if number < 1 or purge < 0 or embargo < 0:
        raise ValueError("at least one fold; purge and embargo are not negative")
    edges = [len(closes) * part // (number + 1) for part in range(1, number + 2)]
    if edges[0] - purge < LEAST_BARS or edges[0] - embargo < LEAST_BARS:
        raise ValueError(
            f"{len(closes):,} bars make {number + 1} parts of {edges[0]:,}; with purge {purge} and "
            f"embargo {embargo} that leaves fewer than {LEAST_BARS} bars of a part"
        )
    return tuple(
        Fold(
            int(closes[edge - purge - 1]),
            int(closes[edge + embargo - 1]),
            # test_end is exclusive: a trade decided at the very last close belongs to the last fold
            int(closes[following - 1]) + (1 if following == len(closes) else 0),
        )
        for edge, following in pairwise(edges)
    )


def walk_forward(
    found: Sequence[Results], some: Sequence[Fold], days: Times
) -> tuple[FoldResult, ...]:
    """Return every fold judged; `days` are the days that had bars, as days since 1970."""
    return tuple(_fold_result(found, fold, days) for fold in some)


def _fold_result(found: Sequence[Results], fold: Fold, days: Times) -> FoldResult:
    merits = [(merit(one, fold.train_end, days), at) for at, one in enumerate(found)]
    known = [(value, -at) for value, at in merits if value is not None]
    means = [float(r.mean()) for one in found if len(r := _after(one, fold))]
    best_after = max(means, default=None)
    if not known:
        return FoldResult(fold, best_after=best_after)
    value, at = max(known)  # of equal ones the first
    one = found[-at]
    before = one.r[one.known <= fold.train_end]
    after = _after(one, fold)
    return FoldResult(
        fold, one.name, value, tuple(before.tolist()), tuple(after.tolist()), best_after
    )


def _after(one: Results, fold: Fold) -> Floats:
    return one.r[(one.decided >= fold.test_begin) & (one.decided < fold.test_end)]


def merit(one: Results, upto: int, days: Times) -> float | None:
    """Return the daily Sharpe ratio of the results known at a moment; None for too few trades."""
    known = one.known <= upto
    if int(known.sum()) < LEAST_TRADES:
        return None
    # days after the border are not known yet, empty ones neither
    daily = by_day(one.known[known], one.r[known], days[days <= upto // DAY])
    spread = float(daily.std(ddof=1)) if len(daily) > 1 else 0.0
    return float(daily.mean()) / spread if spread > 0 else None


def by_day(moments: Times, amounts: Floats, days: Times) -> Floats:
    """Return the sum of amounts on each day; one between two days counts on the later one."""
    place = np.minimum(np.searchsorted(days, moments // DAY), max(len(days) - 1, 0))
    return np.bincount(place, weights=amounts, minlength=len(days)).astype(np.float64)


def pooled(judged: Sequence[FoldResult], rng: Generator) -> Mean:
    """Return the mean result after the borders, of all folds together."""
    return mean_of([r for one in judged for r in one.after], rng)


def walk_forward_exhibit(judged: Sequence[FoldResult], rng: Generator) -> Exhibit:
    """Return a row for each fold, and the result of all together."""
    together = pooled(judged, rng)
    figures = {
        "folds": float(len(judged)),
        "trades": float(together.n),
        "expectancy": together.mean,
        "low": together.low,
        "high": together.high,
        "before": _mean([r for one in judged for r in one.before]),
    }
    return Exhibit(
        name="walk-forward",
        title="Chosen on the past, judged on what followed",
        columns=(
            "fold",
            "chosen",
            "trades before",
            "R a trade before",
            "trades after",
            "R a trade after",
            "best in hindsight",
        ),
        rows=tuple(_row(number, one) for number, one in enumerate(judged, 1)),
        **_show(judged, together, figures["before"])._asdict(),
        figures=figures,
    )


def _row(number: int, one: FoldResult) -> tuple[str | int | float | None, ...]:
    return (
        number,
        one.chosen,
        len(one.before),
        rounded(_mean(one.before), 3),
        len(one.after),
        rounded(_mean(one.after), 3),
        rounded(one.best_after, 3),
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _show(judged: Sequence[FoldResult], together: Mean, before: float | None) -> PowerSentence:
    if not together.n:
        return trades_finding(
            f"No fold of {len(judged)} had both a choice and a trade after it.", 0
        )
    interval = interval_cell(together)
    told = f"95 % {interval}" if interval else "too few for an interval"
    text = (
        f"What was chosen on the past came to {signed(together.mean, 3)} R a trade after it, over "
        f"{count(together.n, 'trade')} ({told}); where it was chosen it had shown "
        f"{signed(before, 3)} R."
    )
    low, high = together.low, together.high
    shown = low is not None and high is not None and not low <= 0 <= high
    return trades_finding(text, together.n, shown=shown)
