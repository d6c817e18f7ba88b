"""The Sharpe ratio with its standard error, and what is left of it after N trials.

It is computed from returns of trading days (torra.evaluation.account_curve), flat days included. A
trade counts whole on the UTC day of its end; no close of a bar values an open one. A year has 252
days, or 365 if the market has no weekend. The riskless rate is taken as 0. Below a year of days no
ratio is claimed, whatever it is: its standard error is at least 1.

    standard error      sqrt((1 + S^2/2 - g3 S + (g4 - 3) S^2/4) / n)             Mertens 2002
    with g3 = 0, g4 = 3: sqrt((1 + S^2/2) / n)                                    Lo 2002
    probabilistic       Phi((S - S0) sqrt(n - 1) / sqrt(1 - g3 S + (g4 - 1) S^2/4))
    expected maximum    sd ((1 - c) z(1 - 1/N) + c z(1 - 1/(N e))), c = 0.5772
    deflated            the probabilistic ratio against the expected maximum of N trials
    minimum record      1 + (1 - g3 S + (g4 - 1) S^2/4) (z(0.95) / (S - S0))^2

S is the ratio of one day, g3 and g4 its skewness and kurtosis, n the days; the last four by Bailey
and Lopez de Prado (2012, 2014). All of them treat days as independent of each other. Too few days,
or days that are all alike, have no ratio; nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

import numpy as np

from torra.evaluation.account_curve import YEAR_OF_WEEKDAYS, daily, period, returns
from torra.evaluation.exhibits import Columns, Exhibit, contents, interval, number
from torra.evaluation.intervals import FLAT, LEVEL, Floats, Interval, normal_quantile, normal_share
from torra.evaluation.observations import ArmObservation
from torra.evaluation.power import YEAR, sharpe_years
from torra.evaluation.wording import count, rounded

LEAST_DAYS: Final = 20
"""Least days for a ratio: skewness and kurtosis of fewer mean nothing."""

EULER: Final = 0.5772156649015329
ONE_SIDED: Final = 0.95
"""Confidence of the minimum track record and of a deflated ratio that counts."""


@dataclass(frozen=True, slots=True)
class Sharpe:
    """The ratio of one series of daily returns.

    `ratio` and `error` are per year, `daily` per day; `skew` and `kurtosis` (3 for a normal
    distribution) are population moments; `years` is the calendar time. Ratios are None where the
    days are too few or all alike.
    """

    days: int
    years: float
    per_year: int = YEAR_OF_WEEKDAYS
    daily: float | None = None
    skew: float | None = None
    kurtosis: float | None = None

    @property
    def ratio(self) -> float | None:
        """The ratio per year."""
        return None if self.daily is None else self.daily * math.sqrt(self.per_year)

    @property
    def error(self) -> float | None:
        """Its standard error, per year (Mertens 2002)."""
        if self.daily is None or self.skew is None or self.kurtosis is None:
            return None
        found = standard_error(self.daily, self.days, self.skew, self.kurtosis)
        return found * math.sqrt(self.per_year)

    @property
    def interval(self) -> Interval | None:
        """Its interval at LEVEL, per year."""
        if self.ratio is None or self.error is None:
            return None
        half = normal_quantile((1 + LEVEL) / 2) * self.error
        return Interval(self.ratio - half, self.ratio + half)


def sharpe_of(found: Sequence[float], per_year: int, years: float) -> Sharpe:
    """Return the Sharpe ratio of daily returns (shares of the equity at the day's start)."""
    sample = np.asarray(found, dtype=np.float64)
    if len(sample) < LEAST_DAYS:
        return Sharpe(len(sample), years, per_year)
    mean, deviation = float(sample.mean()), float(sample.std(ddof=1))
    if deviation <= FLAT * float(np.abs(sample).max()):
        return Sharpe(len(sample), years, per_year)
    skew, kurtosis = _moments(sample)
    return Sharpe(len(sample), years, per_year, mean / deviation, skew, kurtosis)


def _moments(sample: Floats) -> tuple[float, float]:
    off = sample - sample.mean()
    variance = float((off**2).mean())
    return float((off**3).mean()) / variance**1.5, float((off**4).mean()) / variance**2


def arm_sharpe(arm: ArmObservation) -> Sharpe:
    """Return the Sharpe ratio of an arm; without a ratio where its account was used up."""
    whole, found = period(arm), returns(arm)
    years = (whole[1] - whole[0]) / timedelta(days=YEAR) if whole else 0.0
    # returns() is None once the account is used up: then there is no ratio
    return sharpe_of(found or (), daily(arm).year, years)


def standard_error(ratio: float, days: int, skew: float = 0.0, kurtosis: float = 3.0) -> float:
    """Return the standard error of a daily ratio: Mertens 2002, Lo 2002 without the moments."""
    inner = 1 + ratio**2 / 2 - skew * ratio + (kurtosis - 3) / 4 * ratio**2
    # a strong skew can turn this approximation negative
    return math.sqrt(max(inner, 0.0) / days)


def probabilistic(one: Sharpe, against: float = 0.0) -> float | None:
    """Return the probability that the true ratio is above `against`, a daily ratio."""
    spread = _spread(one)
    if one.daily is None or spread is None:
        return None
    return normal_share((one.daily - against) * math.sqrt(one.days - 1) / spread)


def expected_maximum(trials: int, spread: float) -> float:
    """Return the best daily ratio to be expected of trials without skill; 0 for one trial.

    `spread` is the standard deviation of the trials' daily ratios.
    """
    if trials <= 1:
        return 0.0
    near = normal_quantile(1 - 1 / trials)
    far = normal_quantile(1 - 1 / (trials * math.e))
    return spread * ((1 - EULER) * near + EULER * far)


def deflated(one: Sharpe, trials: int, spread: float) -> float | None:
    """Return the probability that the true ratio is above 0, the best of `trials` allowed for."""
    return probabilistic(one, expected_maximum(trials, spread))


def minimum_record(one: Sharpe, against: float = 0.0) -> float | None:
    """Return how many days of such returns make the ratio credible; None if no number would."""
    spread = _spread(one)
    if one.daily is None or spread is None or one.daily <= against:
        return None
    return 1 + (spread * normal_quantile(ONE_SIDED) / (one.daily - against)) ** 2


def _spread(one: Sharpe) -> float | None:
    if one.daily is None or one.skew is None or one.kurtosis is None:
        return None
    inner = 1 - one.skew * one.daily + (one.kurtosis - 1) / 4 * one.daily**2
    return math.sqrt(inner) if inner > 0 else None


def spread_of_trials(found: Sequence[Sharpe]) -> float:
    """Return the standard deviation of daily ratios to deflate with.

    It is that among the arms at hand, but at least what chance gives to a ratio of 0,
    1 / sqrt(n - 1): arms on the same ticks resemble each other more than the trials before them.
    """
    ratios = [one.daily for one in found if one.daily is not None]
    chance = max((1 / math.sqrt(one.days - 1) for one in found if one.days > 1), default=0.0)
    return max(chance, float(np.std(ratios, ddof=1)) if len(ratios) > 1 else 0.0)


# --- the table ------------------------------------------------------------------------------------


class _Row(NamedTuple):
    arm: str
    one: Sharpe
    deflated: float | None


COLUMNS: Final[Columns] = {
    "arm": "arm",
    "days": "one.days",
    "Sharpe a year": number("one.ratio", 2),
    "standard error": number("one.error", 2),
    "95 % interval": interval("one.interval"),
    "above 0, one trial": lambda row: rounded(probabilistic(row.one), 3),
    "above 0, deflated": number("deflated", 3),
    "minimum record, years": lambda row: rounded(_record_years(row.one), 1),
    "skew": number("one.skew", 2),
    "kurtosis": number("one.kurtosis", 2),
}


def sharpe_exhibit(
    arms: Sequence[ArmObservation], trials: int = 1, spread: float | None = None
) -> Exhibit:
    """Return the Sharpe ratios of the arms, deflated by the number of trials logged.

    `trials` counts everything that was tried on these bars, the arms at hand included; `spread` is
    the standard deviation of the logged trials' daily ratios where it is known.
    """
    # the arms in the table are trials too, logged or not
    tried = max(trials, len(arms), 1)
    found = [(arm, arm_sharpe(arm)) for arm in arms]
    wide = spread_of_trials([one for _, one in found]) if spread is None else spread
    rows = [_Row(arm.name, one, deflated(one, tried, wide)) for arm, one in found]
    return Exhibit(
        name="sharpe",
        title="Sharpe ratio of daily results, by the day on which a trade closed",
        **contents(COLUMNS, rows, FIGURES),
        says=_says([row.one for row in rows], tried, wide),
        enough=any(row.one.years >= 1 and row.one.daily is not None for row in rows),
    )


def _record_years(one: Sharpe) -> float | None:
    days = minimum_record(one)
    return None if days is None else days / one.per_year


FIGURES: Final[Columns] = {
    "days": "one.days",
    "years": "one.years",
    "sharpe": "one.ratio",
    "error": "one.error",
    "low": "one.interval.low",
    "high": "one.interval.high",
    "probabilistic": lambda row: probabilistic(row.one),
    "deflated": "deflated",
    "minimum_record_years": lambda row: _record_years(row.one),
    "skew": "one.skew",
    "kurtosis": "one.kurtosis",
}


def _says(found: Sequence[Sharpe], trials: int, spread: float) -> str:
    known = [one for one in found if one.ratio is not None]
    years = max((one.years for one in found), default=0.0)
    takes = f"A true ratio of 1 takes about {sharpe_years(1.0):.0f} years to tell from 0."
    if not known:
        return f"Too few trading days, or days all alike: no Sharpe ratio can be computed. {takes}"
    error = max(one.error for one in known if one.error is not None)
    if years < 1:
        days = max(one.days for one in known)
        return (
            f"{count(days, 'trading day')} are less than a year's, so no Sharpe ratio is claimed, "
            f"though the table has one: its standard error is up to {error:.1f}. {takes}"
        )
    best = max(one.ratio for one in known if one.ratio is not None)
    chance = expected_maximum(trials, spread) * math.sqrt(known[0].per_year)
    return (
        f"The best ratio is {best:.2f} with a standard error of up to {error:.2f}; the best of "
        f"{count(trials, 'trial')} without any skill would be expected at {chance:.2f}. {takes}"
    )
