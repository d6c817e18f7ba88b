"""Sums, intervals and drawdown of closed trades, against scipy-free recounts by hand."""

from __future__ import annotations

import math
import statistics

import pytest

from torra.money.results import ClosedTrade, Curve, ResultDrawdown, Tally


def trade(
    profit: float | None, r: float | None = None, at: str = "2026-02-13T12:00:00Z"
) -> ClosedTrade:
    return ClosedTrade(at, "BTCUSD", "BTCUSD", "BUY", "CLOSED", "paper", profit, r)


def tally(*trades: ClosedTrade) -> Tally:
    found = Tally()
    for one in trades:
        found.add(one)
    return found


def test_the_interval_is_students() -> None:
    """t(0.975, 4) is 2.776445 (any table of Student's t)."""
    rs = [1.2, -1.0, 0.4, 2.0, -0.3]
    found = tally(*(trade(r * 10, r) for r in rs)).result()
    half = 2.7764451051977987 * statistics.stdev(rs) / math.sqrt(5)
    assert found.mean_r == pytest.approx(0.46) and found.between is not None
    assert found.between.low == pytest.approx(0.46 - half, rel=1e-9)
    assert found.between.high == pytest.approx(0.46 + half, rel=1e-9)


@pytest.mark.parametrize("rs", [[1.0], [0.1] * 7, [1 / 3] * 1_000, [0.0, 0.0]])
def test_what_does_not_spread_has_no_interval(rs: list[float]) -> None:
    assert tally(*(trade(r, r) for r in rs)).result().between is None


def test_the_deepest_fall_is_from_the_highest_point_before_it() -> None:
    curve = Curve()
    for number, profit in enumerate((10.0, -4.0, 9.0, -12.0, 2.0, -1.0, None)):
        curve.add(trade(profit, at=f"2026-02-{number + 1:02d}"))
    # 10, 6, 15, 3, 5, 4
    assert curve.fall() == ResultDrawdown(12.0, "2026-02-03", "2026-02-04", 11.0)
