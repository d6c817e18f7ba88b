"""Claims: Holm and Benjamini-Hochberg, and no more false claims than the level allows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.cases import cases
from tests.conftest import Scale
from tests.later import Later
from tests.worlds.arm_trades import shows_no_gaps
from torra.evaluation.intervals import Mean, binomial_tail, mean_of
from torra.evaluation.multiple import (
    LEAST_EACH_WAY,
    LEAST_TRADES,
    benjamini_hochberg,
    claims,
    claims_exhibit,
    holm,
)
from torra.evaluation.trade_figures import ArmFigures

stats = Later("scipy.stats")

SEEDS = 200
NOMINAL = 0.025
"""A false claim is one that an arm wins: one side of 5 % two-sided."""

NEVER = 1e-3
"""A count of false claims less likely than this at the nominal level is a fault."""


def resembling(rng: np.random.Generator, count: int, share: float = 0.15) -> np.ndarray:
    noise = rng.normal(size=count + 50)
    for place in range(1, len(noise)):
        noise[place] += share * noise[place - 1]
    return noise[50:]


NO_EDGE: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(0.0, 1.42, n),
    "brackets": lambda rng, n: np.where(rng.random(n) < 1 / 3, 2.0, -1.0),
    "brackets-with-costs": lambda rng, n: np.where(rng.random(n) < 1 / 3, 2.0, -1.0) - 0.05,
    "many-small-wins": lambda rng, n: np.where(rng.random(n) < 0.9, 0.25, -2.25),
    "rare-ruin": lambda rng, n: np.where(rng.random(n) < 0.97, 0.15, -4.85),
    "heavy-tails": lambda rng, n: rng.standard_t(3, n),
    "resembling": resembling,
    "restless": lambda rng, n: rng.normal(size=n) * np.exp(0.3 * resembling(rng, n, 0.9)),
}


def figures(sample: np.ndarray, rng: np.random.Generator, name: str = "full") -> ArmFigures:
    mean = mean_of(sample, rng, resamples=400)
    return ArmFigures(name, len(sample), mean, hits=int((sample > 0).sum()))


def allowed(runs: int) -> int:
    """Return the most claims that the nominal level lets pass as chance."""
    return next(n for n in range(runs) if binomial_tail(n + 1, runs, NOMINAL) < NEVER)


@pytest.mark.journey
@pytest.mark.parametrize("shape", NO_EDGE)
@pytest.mark.parametrize("count", [100, 400])
def test_without_an_edge_claims_stay_within_the_level(
    shape: str, count: int, scaled: Scale
) -> None:
    """Every placebo is taken as beaten, so that the other rules alone hold the level."""
    runs = scaled(4_000, SEEDS)
    false = 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, count])
        found = figures(NO_EDGE[shape](rng, count), rng)
        false += claims([found], {"full": True})[0].edge
    most = allowed(runs) if shape not in ("resembling", "restless") else allowed(2 * runs)
    assert false <= most


@pytest.mark.journey
def test_of_many_arms_without_an_edge_hardly_one_is_ever_claimed(scaled: Scale) -> None:
    """Six arms on the same ticks share most of their trades; the level holds for all together."""
    runs, false, alone = scaled(2_000, SEEDS), 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        common = rng.normal(size=(200, 1)) + 0.7 * rng.normal(size=(200, 6))
        arms = [figures(common[:, n], rng, str(n)) for n in range(6)]
        beaten = {one.arm: True for one in arms}
        false += any(claim.edge for claim in claims(arms, beaten))
        alone += any(one.net.low > 0 for one in arms)
    assert false <= allowed(runs)
    assert alone > allowed(runs)  # without the correction the level would not hold


def test_an_edge_that_is_there_is_found() -> None:
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        sample = np.where(rng.random(800) < 0.42, 2.0, -1.0)  # +0.26 R
        found += claims([figures(sample, rng)], {"full": True})[0].edge
    assert found >= 58


def good(trades: int = 800, hits: int = 400, p: float = 0.001, low: float = 0.05) -> ArmFigures:
    return ArmFigures("full", trades, Mean(trades, 0.2, 1.4, 0.05, low, 0.4, p), hits=hits)


@cases(
    ("one", "beaten", "trials", "why"),
    [
        (good(), True, 1, "every rule holds"),
        (good(LEAST_TRADES - 1), True, 1, "99 trades, fewer than 100"),
        (good(hits=LEAST_EACH_WAY - 1), True, 1, "fewer than 10 wins or losses"),
        (good(hits=791), True, 1, "fewer than 10 wins or losses"),
        (ArmFigures("full", 200, Mean(200, 0.2, 1.0), hits=90), True, 1, "no interval: too few"),
        (good(low=0.0), True, 1, "the interval does not lie above 0"),
        (good(), True, 51, "not beyond chance after all arms and trials"),
        (good(), None, 1, "no placebo of its own"),
        (good(), False, 1, "not better than its placebos"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_every_rule_is_needed(one: ArmFigures, beaten: bool | None, trials: int, why: str) -> None:
    (claim,) = claims([one], {"full": beaten}, trials)
    assert claim.edge is (why == "every rule holds")
    assert claim.why.startswith(why)
    shows_no_gaps(claims_exhibit([one], {"full": beaten}, trials))


P_VALUES = [0.001, 0.03, 0.012, 0.8, 0.03, 0.2]


@pytest.mark.journey
def test_benjamini_hochberg_is_scipys() -> None:
    assert benjamini_hochberg(P_VALUES) == pytest.approx(stats.false_discovery_control(P_VALUES))


def test_holm_is_its_definition() -> None:
    """Rejected at a level as long as every smaller p passes level / (tests left)."""
    adjusted = holm(P_VALUES)
    for level in np.linspace(0.001, 0.999, 200):
        order = np.argsort(P_VALUES, kind="stable")
        passing = [P_VALUES[i] <= level / (len(order) - rank) for rank, i in enumerate(order)]
        first = passing.index(False) if False in passing else len(passing)
        rejected = {int(i) for i in order[:first]}
        assert rejected == {i for i, p in enumerate(adjusted) if p <= level}


def test_what_was_not_tested_stays_unknown_and_more_trials_only_raise_p() -> None:
    assert holm([None, 0.01, None, 0.04]) == (None, 0.02, None, 0.04)
    assert benjamini_hochberg([None, 0.01, 0.04]) == (None, 0.02, 0.04)
    assert holm([]) == benjamini_hochberg([]) == ()
    assert holm([0.01, 0.04], family=10) == pytest.approx((0.1, 0.36))
    assert holm([0.5, 0.9], family=100) == (1.0, 1.0)


def test_an_arm_without_an_interval_is_a_look_all_the_same() -> None:
    few = ArmFigures("few", 12, Mean(12, 0.2, 1.0), hits=5)
    told, _ = claims([good(p=0.02), few], {"full": True})
    assert told.adjusted == 0.04
    assert "2 looks" in claims_exhibit([good(), few], {"full": True}).says
