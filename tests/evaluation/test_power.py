"""How many it takes: the counts that the method names, and the sentence that says them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cases import cases
from tests.later import Later
from tests.worlds.arm_trades import shows_no_gaps
from torra.evaluation import power

stats = Later("scipy.stats")


@cases(
    ("found", "count"),
    [
        (power.information_count(0.10), 785),
        (power.information_count(0.05), 3_140),
        (power.information_count(0.03), 8_721),
        (power.share_count(0.60), 194),
        (power.share_count(0.40), 194),
        (power.share_count(0.55), 783),
        (power.gate_count(0.2, 0.10), 2_181),
        (power.mean_count(0.10, power.TRADE_SD), 1_583),
        (power.two_shares_count(0.5, 0.6), 385),
    ],
)
def test_the_counts_of_the_method(found: int, count: int) -> None:
    assert found == count


def test_nothing_takes_for_ever() -> None:
    assert power.mean_count(0.0, 1.0) is None
    assert power.share_count(0.5) is None
    assert power.gate_count(0.2, 0.0) is None
    assert power.two_shares_count(0.3, 0.3) is None
    assert power.sharpe_years(0.0) is None
    assert power.smallest_mean(0, 1.0) is None
    assert power.power_of(0.1, 0.0, 10) is None


@pytest.mark.journey
def test_a_count_has_the_power_it_promises() -> None:
    needed = power.mean_count(0.3, 1.42)
    assert power.power_of(0.3, 1.42, needed) == pytest.approx(power.POWER, abs=0.002)
    assert power.smallest_mean(needed, 1.42) == pytest.approx(0.3, rel=0.01)
    rng = np.random.default_rng(1)
    samples = rng.normal(0.3, 1.42, (2_000, needed))
    seen = stats.ttest_1samp(samples, 0.0, axis=1).pvalue <= 0.05
    assert seen.mean() == pytest.approx(power.POWER, abs=0.04)


def test_sharpe_takes_years() -> None:
    assert power.sharpe_years(1.0) == pytest.approx(7.85, abs=0.01)


@pytest.mark.parametrize(
    ("have", "said"),
    [
        (0, "there is no trade, which is too few."),
        (1, "there is 1 trade, which is too few."),
        (84, "there are 84 trades, which is too few."),
        (2_000, "there are 2,000 trades, which is enough."),
    ],
)
def test_the_sentence(have: int, said: str) -> None:
    told = power.trades_finding("A.", have).says
    assert told == f"A. Seeing +0.10 R a trade takes about 1,600 trades; {said}"


def test_an_effect_of_nothing_is_said_to_take_for_ever() -> None:
    assert (
        power.sample_size_sentence(None, 3, "tick", "nothing")
        == "No number of ticks would show nothing."
    )


def test_the_exhibit_says_what_the_sample_could_have_shown() -> None:
    small = power.power_exhibit(power.SampleSize())
    large = power.power_exhibit(power.SampleSize(ticks=4_000, trades=500, flips=200, days=100.0))
    shows_no_gaps(small)
    shows_no_gaps(large)
    assert not small.enough
    assert "too small for every question" in small.says
    assert "4 of 9 questions" in large.says
    assert [row[3] for row in large.rows] == [
        *(True, True, False),
        *(True, False),
        *(True, False, False),
        False,
    ]
    assert large.rows[2][4] == 219  # 8,721 ticks at 40 a day
