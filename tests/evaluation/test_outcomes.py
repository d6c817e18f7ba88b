"""Forward outcomes: from the next open, net of costs, in ATR, and none where the future is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from tests.worlds.observed import START, plain_tick, quiet_ticks
from torra.evaluation.outcomes import Outcomes, RoundTripCosts, outcomes

FREE = {"XAUUSD": RoundTripCosts(0.0)}


def frame(rows: int, missing: tuple[int, ...] = ()) -> pd.DataFrame:
    """Bars that open where the last closed; bar n opens 15 n minutes after START."""
    rng = np.random.default_rng(1)
    prices = 100 + np.cumsum(rng.normal(0, 1, rows + 1))
    index = pd.DatetimeIndex([START + timedelta(minutes=15 * n) for n in range(rows)])
    bars = pd.DataFrame({"open": prices[:-1], "close": prices[1:]}, index=index)
    return bars.drop(index[list(missing)])


def test_an_outcome_runs_from_the_next_open_and_pays_its_costs() -> None:
    bars, ticks = frame(40), quiet_ticks(5, atr=2.0)
    found = outcomes(ticks, {("XAUUSD", "M15"): bars}, {"XAUUSD": RoundTripCosts(0.3, 0.1)}, (1, 4))
    for n in range(5):
        for horizon in (1, 4):
            move = bars["close"].iloc[n + horizon - 1] - bars["open"].iloc[n]
            assert found.net(n, horizon, "BUY") == pytest.approx((move - 0.4) / 2)
            assert found.net(n, horizon, "SELL") == pytest.approx((-move - 0.4) / 2)
            assert found.forward[n, found.place(horizon)] == pytest.approx(move / 2)


def test_after_a_gap_the_next_bar_is_entered() -> None:
    bars, ticks = frame(40, missing=(3, 4)), quiet_ticks(5)
    found = outcomes(ticks, {("XAUUSD", "M15"): bars}, FREE, (1, 4))
    at = bars.index.get_loc(START + timedelta(minutes=75))
    expected = bars["close"].iloc[at] - bars["open"].iloc[at]
    assert found.net(3, 1, "BUY") == pytest.approx(expected) == found.net(4, 1, "BUY")


def test_what_is_not_known_is_none() -> None:
    found = outcomes(quiet_ticks(12), {("XAUUSD", "M15"): frame(12)}, FREE, (1, 4, 16))
    assert [found.net(n, 16, "BUY") for n in range(12)] == [None] * 12
    assert found.net(8, 4, "BUY") is not None and found.net(9, 4, "BUY") is None
    flat = [replace(tick, atr=0.0) for tick in quiet_ticks(2)]
    assert outcomes(flat, {("XAUUSD", "M15"): frame(12)}, FREE).net(0, 1, "SELL") is None
    assert outcomes(quiet_ticks(2), {}, FREE).net(0, 1, "SELL") is None
    assert outcomes((), {}, FREE).forward.shape == (0, 3)
    with pytest.raises(KeyError):
        outcomes(quiet_ticks(2), {("XAUUSD", "M15"): frame(12)}, {})
    with pytest.raises(ValueError, match="not in"):
        found.place(3)


def test_only_the_outcome_itself_looks_ahead() -> None:
    bars, ticks = frame(40), quiet_ticks(20)
    before = outcomes(ticks, {("XAUUSD", "M15"): bars}, FREE, (4,))
    bars.iloc[12:] += 50.0
    after = outcomes(ticks, {("XAUUSD", "M15"): bars}, FREE, (4,))
    same = np.isclose(before.forward[:, 0], after.forward[:, 0])
    assert same.tolist() == [not 9 <= n < 12 for n in range(20)]


def test_streams_have_their_own_bars() -> None:
    tick, other = plain_tick(START), plain_tick(START, "H1", symbol="EURUSD", instance="EURUSD")
    frames = {("XAUUSD", "M15"): frame(8), ("EURUSD", "H1"): frame(8) * 2}
    costs = {"XAUUSD": RoundTripCosts(0.0), "EURUSD": RoundTripCosts(1.0)}
    both: Outcomes = outcomes((tick, other), frames, costs, (1,))
    assert both.forward[1, 0] == pytest.approx(2 * both.forward[0, 0])
    assert both.net(1, 1, "BUY") == pytest.approx(both.forward[1, 0] - 1.0)
