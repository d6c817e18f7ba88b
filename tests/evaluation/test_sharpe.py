"""The Sharpe ratio: empyrical's arithmetic, the papers' examples, and no claim under a year."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.conftest import Scale
from tests.later import Later
from tests.worlds.arm_trades import arm_of, coin, shows_no_gaps
from torra.evaluation.account_curve import returns
from torra.evaluation.sharpe import (
    LEAST_DAYS,
    Sharpe,
    arm_sharpe,
    deflated,
    expected_maximum,
    minimum_record,
    probabilistic,
    sharpe_exhibit,
    sharpe_of,
    spread_of_trials,
    standard_error,
)

empyrical = Later("empyrical")
stats = Later("scipy.stats")


@pytest.mark.journey
def test_the_ratio_is_empyricals_and_the_moments_are_scipys() -> None:
    arm = arm_of(coin(1, 1_200))
    found, days = arm_sharpe(arm), np.array(returns(arm))
    assert found.per_year == 365  # these arms trade on Saturdays
    assert found.ratio == pytest.approx(empyrical.sharpe_ratio(days, annualization=365), rel=1e-9)
    assert found.skew == pytest.approx(stats.skew(days))
    assert found.kurtosis == pytest.approx(stats.kurtosis(days, fisher=False))


def test_the_standard_error_is_lo_without_and_mertens_with_the_moments() -> None:
    assert standard_error(0.1, 250) == pytest.approx(math.sqrt((1 + 0.5 * 0.01) / 250))
    assert standard_error(0.1, 250, -1.0, 8.0) == pytest.approx(
        math.sqrt((1 + 0.005 + 0.1 + 1.25 * 0.01) / 250)
    )


def test_the_standard_error_is_the_spread_of_the_ratio(scaled: Scale) -> None:
    """On skewed returns with heavy tails, with the moments; without them it is too small."""
    rng = np.random.default_rng(2)
    samples = 0.3 - rng.standard_gamma(2.0, (scaled(40_000, 4_000), 250)) / 4
    ratios = samples.mean(axis=1) / samples.std(axis=1, ddof=1)
    true = (0.3 - 0.5) / (math.sqrt(2) / 4)
    mertens = standard_error(true, 250, -2 / math.sqrt(2), 3 + 6 / 2)
    assert ratios.std() == pytest.approx(mertens, rel=0.05)
    assert abs(ratios.std() / standard_error(true, 250) - 1) > 0.1


def test_the_example_of_the_probabilistic_ratio() -> None:
    """Bailey and Lopez de Prado 2012: 24 months, 0.458, skewness -2.448, kurtosis 10.164."""
    one = Sharpe(24, 2.0, 12, 0.036 / 0.079, -2.448, 10.164)
    assert probabilistic(one) == pytest.approx(0.913, abs=1e-3)
    assert probabilistic(Sharpe(24, 2.0, 12, 0.458, 0.0, 3.0)) == pytest.approx(0.982, abs=1e-3)


def test_the_example_of_the_deflated_ratio() -> None:
    """Bailey and Lopez de Prado 2014: 2.5 a year over 1,250 days, 100 trials of variance 1/2."""
    one = Sharpe(1_250, 5.0, 250, 2.5 / math.sqrt(250), -3.0, 10.0)
    spread = math.sqrt(0.5 / 250)
    assert expected_maximum(100, spread) == pytest.approx(0.1132, abs=1e-4)
    assert deflated(one, 100, spread) == pytest.approx(0.9004, abs=1e-3)
    assert deflated(one, 1, spread) == probabilistic(one)


def test_the_expected_maximum_is_that_of_draws() -> None:
    drawn = np.random.default_rng(3).normal(size=(20_000, 30)).max(axis=1).mean()
    assert expected_maximum(30, 1.0) == pytest.approx(drawn, rel=0.02)
    assert expected_maximum(0, 1.0) == expected_maximum(1, 1.0) == 0.0


def test_a_record_of_the_minimum_length_is_credible() -> None:
    one = sharpe_of(np.random.default_rng(4).normal(0.1, 1.0, 900).tolist(), 252, 3.6)
    days = minimum_record(one)
    enough = Sharpe(round(days), 1.0, 252, one.daily, one.skew, one.kurtosis)
    assert probabilistic(enough) == pytest.approx(0.95, abs=1e-3)
    assert minimum_record(one, 5.0) is None


@pytest.mark.parametrize(
    "days", [[], [0.01] * (LEAST_DAYS - 1), [0.0] * 400, [0.001] * 400], ids=len
)
def test_days_that_tell_nothing_have_no_ratio(days: list[Any]) -> None:
    one = sharpe_of(days, 252, 2.0)
    assert one.daily is one.ratio is one.error is None
    assert probabilistic(one) is deflated(one, 10, 0.1) is minimum_record(one) is None


def test_trials_that_resemble_each_other_are_not_taken_for_few() -> None:
    alike = [Sharpe(401, 1.6, 252, 0.05, 0.0, 3.0)] * 3
    assert spread_of_trials(alike) == pytest.approx(1 / 20)
    apart = [Sharpe(401, 1.6, 252, daily, 0.0, 3.0) for daily in (-0.2, 0.0, 0.2)]
    assert spread_of_trials(apart) == pytest.approx(0.2)
    assert spread_of_trials([]) == 0.0


def test_no_ratio_is_claimed_under_a_year() -> None:
    arms = [arm_of(coin(seed, 800), str(seed)) for seed in range(3)]
    found = sharpe_exhibit(arms, trials=40)
    shows_no_gaps(found)
    assert not found.enough
    assert f"{found.rows[0][1]} trading days are less than a year's, so no Sharpe" in found.says


def test_over_a_year_the_best_is_held_against_what_trials_find_by_luck() -> None:
    arms = [arm_of(coin(seed, 2_400), str(seed)) for seed in range(3)]
    few, many = sharpe_exhibit(arms), sharpe_exhibit(arms, trials=500)
    shows_no_gaps(many)
    assert many.enough
    assert "the best of 500 trials without any skill" in many.says
    assert "the best of 3 trials" in few.says  # the arms at hand are trials too
    assert many.figures["0.deflated"] < few.figures["0.deflated"] < few.figures["0.probabilistic"]
