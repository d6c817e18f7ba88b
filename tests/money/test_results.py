"""Sums, intervals and drawdown of closed trades, against scipy-free recounts by hand."""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import astuple

import pytest

from torra.money.results import ClosedTrade, Curve, ResultDrawdown, Tally, TradeTotals, together


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


def test_trades_are_counted_by_their_sign() -> None:
    found = tally(trade(5.0, 0.5), trade(-2.0, -0.2), trade(0.0, 0.0), trade(None)).result()
    assert (found.trades, found.won, found.lost, found.even, found.unknown) == (4, 1, 1, 1, 1)
    assert found.profit == 3.0 and found.r == pytest.approx(0.3)
    assert found.win_rate == pytest.approx(1 / 3)
    between = found.win_rate_between
    assert between is not None and 0.0 < between.low < 1 / 3 < between.high < 1.0


def test_two_tallies_together_are_one() -> None:
    dice = random.Random(5)
    every = [trade(dice.gauss(0, 30), dice.gauss(0, 1)) for _ in range(60)]
    one, other = tally(*every[:21]), tally(*every[21:])
    assert astuple(one.plus(other)) == pytest.approx(astuple(tally(*every)))
    assert together([one, other]).trades == 60 and together([]) == TradeTotals()
