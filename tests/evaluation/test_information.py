"""The information coefficient: found where it is, not where it is not, and never L1's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.later import Later
from tests.worlds.markets import knowing, market, saying
from tests.worlds.observed import START, plain_tick, quiet_ticks
from torra.evaluation.dependence import (
    bootstrap_correlation,
    lag_of,
    mean_estimate,
    slope_estimate,
    widening,
)
from torra.evaluation.information import (
    ALL,
    LEAST,
    MeasuredMarket,
    by_group,
    coefficients,
    groups_exhibit,
    information_exhibit,
    ranks_within,
    residual,
)
from torra.evaluation.observations import TickObservation
from torra.evaluation.opinion_table import DESK
from torra.evaluation.outcomes import Outcomes

stats = Later("scipy.stats")


def desk(count: int = 3200, share: float = 0.15) -> tuple[tuple[TickObservation, ...], Outcomes]:
    """A desk where `insider` knows a little of the next bar and `parrot` repeats L1."""
    ticks, known = market(count)
    rng = np.random.default_rng(5)
    ticks = saying(ticks, "insider", knowing(known.forward[:, 0], share, rng))
    l1 = np.array([tick.l1 for tick in ticks])
    ticks = saying(ticks, "parrot", 0.3 * l1)
    return saying(ticks, "noise", 0.1 * rng.normal(size=(count, 4))), known


@pytest.mark.journey
def test_an_agent_that_knows_a_little_is_found_and_noise_is_not() -> None:
    ticks, known = desk()
    found = {(c.agent, c.vector, c.horizon): c for c in coefficients(ticks, known)}
    insider = found["insider", "momentum", 1]
    assert insider.estimate is not None and insider.q is not None
    assert insider.estimate.value == pytest.approx(0.15, abs=0.05)
    assert insider.q < 0.01
    shown = information_exhibit(tuple(found.values()))
    assert "insider on" in shown.says
    assert shown.enough and shown.figures["ic.insider.momentum.1"] == insider.estimate.value
    assert shown.plots and shown.plots[0].lines[0].low


def test_noise_is_not_found() -> None:
    ticks, known = market(1200)
    said = 0.1 * np.random.default_rng(8).normal(size=(1200, 4))
    found = [c for c in coefficients(saying(ticks, "noise", said), known) if c.agent == "noise"]
    assert len(found) == 15
    assert all(c.q is not None and c.q > 0.05 for c in found)
    assert "None of the 15" in information_exhibit(found).says


def test_what_follows_from_l1_is_not_credited() -> None:
    ticks, known = desk(800)
    l1 = np.array([tick.l1 for tick in ticks])
    leaked = known.forward.copy()
    leaked[:, 0] = l1[:, 0] + 0.1 * leaked[:, 0]  # L1 knows the future, the parrot repeats it
    known = Outcomes(known.horizons, leaked, leaked, -leaked)
    found = {(c.agent, c.vector): c for c in coefficients(ticks, known) if c.horizon == 1}
    parrot = found["parrot", "price_action"]
    assert parrot.plain is not None and parrot.plain > 0.9
    assert parrot.estimate is None


def test_too_few_ticks_have_no_coefficient() -> None:
    ticks, known = desk(LEAST - 1)
    found = coefficients(ticks, known)
    assert {c.estimate for c in found} == {None}
    shown = information_exhibit(found)
    assert not shown.enough and "3,100" in shown.says and not shown.plots
    nobody = information_exhibit(coefficients((), Outcomes((1,), *[np.empty((0, 1))] * 3)))
    assert nobody.rows == () and not nobody.enough


@pytest.mark.journey
@pytest.mark.parametrize("horizon", [1, 16])
def test_the_level_holds(horizon: int) -> None:
    """Noise that resembles its neighbours, outcomes that overlap: 5 % false claims, not more."""
    ticks, known = market(600)
    against = MeasuredMarket(ticks, known)
    false = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        said = np.convolve(rng.normal(size=700), 0.9 ** np.arange(40), "valid")[:600]
        found = against.coefficient("noise", "momentum", said, horizon).estimate
        assert found is not None
        false += found.p < 0.05
    assert 2 <= false <= 18  # 10 expected, three standard deviations either way


def test_ranks_and_correlation_are_spearmans() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 9, 300).astype(float), rng.normal(size=300)
    one = np.zeros(300, dtype=np.int64)
    own, other = (residual(ranks_within(v, one), np.empty(0)) for v in (x, y))
    assert own is not None and other is not None
    ranked = pd.Series(x).rank(), pd.Series(y).rank()
    assert float(own @ other) / 300 == pytest.approx(np.corrcoef(*ranked)[0, 1])
    assert residual(np.ones(20), np.empty(0)) is None


def test_streams_are_ranked_apart() -> None:
    values = np.array([1.0, 2.0, 3.0, 100.0, 200.0, 300.0])
    ranks = ranks_within(values, np.array([0, 0, 0, 1, 1, 1]))
    assert ranks.tolist() == pytest.approx([-1 / 3, 0, 1 / 3] * 2)


LAGS = pytest.mark.parametrize(
    ("lag", "each"),
    [
        pytest.param(1, 1, id="1"),
        pytest.param(8, 1, id="8"),
        pytest.param(8, 3, id="three-at-once"),
    ],
)


def wandering(lag: int, each: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y = np.cumsum(np.random.default_rng(lag).normal(size=(2, 400)), axis=1) % 1.0
    moments = np.repeat(np.arange(400 // each + 1), each)[:400]
    return x - x.mean(), y - y.mean(), moments


@LAGS
def test_errors_are_those_of_newey_and_west(lag: int, each: int) -> None:
    x, y, moments = wandering(lag, each)
    found = slope_estimate(x, y, moments, lag)
    slope = (x @ y) / (x @ x)
    scores, power = x * (y - slope * x), 0.0
    for one, here in zip(scores, moments, strict=True):
        near = np.maximum(0.0, 1.0 - np.abs(moments - here) / (lag + 1))
        power += one * float(scores @ near)
    assert found is not None
    assert (found.value, found.error) == pytest.approx((slope, power**0.5 / (x @ x)))


@LAGS
def test_errors_are_those_of_statsmodels(
    lag: int, each: int, request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("--nightly"):
        pytest.skip("the library takes seconds to import")
    from statsmodels.regression.linear_model import OLS  # noqa: PLC0415

    x, y, moments = wandering(lag, each)
    found = slope_estimate(x, y, moments, lag)
    told = OLS(y, x).fit(
        cov_type="hac-groupsum",
        cov_kwds={"time": moments, "maxlags": lag, "use_correction": False},
    )
    assert found is not None
    assert (found.value, found.error) == pytest.approx((told.params[0], told.bse[0]))
    plain = mean_estimate(np.append(y + 1.0, np.nan), np.arange(401), lag)
    mean = OLS(y + 1.0, np.ones(400)).fit(
        cov_type="HAC", cov_kwds={"maxlags": lag, "use_correction": False}
    )
    assert plain is not None
    assert (plain.value, plain.error) == pytest.approx((mean.params[0], mean.bse[0]))


def test_long_lags_widen_the_interval() -> None:
    assert widening(0.0) == 1.0
    assert 1.15 < widening(0.1) < 1.2
    flat = np.zeros(100)
    assert slope_estimate(flat, flat, np.arange(100), 1) is None
    assert mean_estimate(flat, np.arange(100), 1) is None
    assert mean_estimate(np.arange(10.0), np.arange(10), 4) is None
    x, y = np.random.default_rng(1).normal(size=(2, 99))
    scattered = np.sort(np.random.default_rng(2).choice(600, 99, replace=False))
    assert slope_estimate(x, y, np.arange(99), 16) is None
    assert slope_estimate(x, y, scattered, 16) is None  # 600 moments passed, 99 were seen
    assert mean_estimate(np.array([np.nan]), np.arange(1), 1) is None


def test_the_bootstrap_agrees_with_the_error_and_repeats_itself() -> None:
    rng = np.random.default_rng(2)
    x, noise = rng.normal(size=(2, 2000))
    y = 0.2 * x + noise
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    moments = np.arange(2000)
    told = slope_estimate(x, y, moments, 2)
    drawn = [
        bootstrap_correlation(x, y, moments, 2, np.random.default_rng(9), 500) for _ in range(2)
    ]
    assert drawn[0] == drawn[1] and drawn[0] is not None and told is not None
    assert (drawn[0].low, drawn[0].high) == pytest.approx((told.low, told.high), abs=0.01)
    assert bootstrap_correlation(x[:9], y[:9], moments[:9], 2, rng, 500) is None


def test_lags_span_the_longest_timeframe() -> None:
    hourly = [plain_tick(START, "H1"), plain_tick(quiet_ticks(5)[-1].close_time, "H1")]
    assert lag_of(quiet_ticks(9), 4) == 8
    assert lag_of([*quiet_ticks(9), *hourly], 4) == 32
    assert lag_of((), 4) == 8


def test_a_group_of_some_hundred_ticks_has_no_coefficient() -> None:
    """Intervals of 100 to 400 ticks are too narrow where words and scores last."""
    ticks, known = desk(1600, share=0.5)
    ticks = tuple(replace(tick, regime="abcd"[n // 20 % 4]) for n, tick in enumerate(ticks))
    found = by_group(ticks, known, lambda tick: tick.regime, 1)
    assert {c.n for c in found} == {400}
    assert {c.estimate for c in found} == {None}


@pytest.mark.journey
def test_the_tail_of_p_is_students() -> None:
    """The interval and p agree at 5 %; farther out p is larger than the normal's."""
    x, noise = np.random.default_rng(4).normal(size=(2, 160))
    x, lag = x - x.mean(), 16
    for share in (0.1, 0.3, 0.6):
        y = share * x + noise - noise.mean()
        found = slope_estimate(x, y, np.arange(160), lag)
        assert found is not None
        assert (found.p < 0.05) == (found.low > 0.0 or found.high < 0.0)
        wide = widening(lag / 160)
        points = found.value / found.error / wide * stats.t.ppf(0.975, 15) / stats.norm.ppf(0.975)
        assert found.p == pytest.approx(2 * stats.t.sf(abs(points), 15))
    assert found.p > 2 * stats.norm.sf(abs(found.value) / found.error / wide)


def test_groups_are_looked_at_by_themselves() -> None:
    ticks, known = desk(1600, share=0.3)
    ticks = tuple(
        replace(tick, regime="trend" if n % 2 else "range") for n, tick in enumerate(ticks)
    )
    found = by_group(ticks, known, lambda tick: tick.regime, 1)
    assert {(c.agent, c.group, c.n) for c in found if c.agent == "insider"} == {
        ("insider", "trend", 800),
        ("insider", "range", 800),
    }
    assert all(c.vector == ALL for c in found)
    assert {c.agent for c in found} == {"insider", "parrot", "noise", DESK}
    insider = [c.estimate.value for c in found if c.agent == "insider" and c.estimate]
    assert insider == pytest.approx([0.3, 0.3], abs=0.1)
    shown = groups_exhibit(found, "regime")
    assert shown.name == "information-by-regime" and len(shown.rows) == 8
    assert groups_exhibit((), "regime").rows == ()
