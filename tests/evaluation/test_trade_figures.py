"""The table of arms: every figure net, by hand on small arms and against empyrical on long ones."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from tests.cases import cases
from tests.later import Later
from tests.worlds.arm_trades import RISK, arm_of, coin, trade
from tests.worlds.observed import START, plain_tick, quiet_ticks
from torra.evaluation.account_curve import (
    MOST_POINTS,
    changes,
    curve_plots,
    daily,
    drawdown,
    equity,
    falls,
    returns,
)
from torra.evaluation.observations import ArmObservation
from torra.evaluation.trade_figures import (
    arm_figures,
    arms_exhibit,
    in_market,
    net_results,
    overlap,
    profit_factor,
)

empyrical = Later("empyrical")


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_an_arm_by_hand() -> None:
    arm = arm_of([2.0, -1.0, -1.3, 0.5], commission=7.0, cost_usd=3.0)
    found = arm_figures(arm, rng())
    each = (7.0 + 3.0) / RISK
    assert found.results == pytest.approx([2 - each, -1 - each, -1.3 - each, 0.5 - each])
    assert found.net.mean == pytest.approx(0.05 - each)
    assert found.profit == pytest.approx(20.0 - 28.0 - 12.0)
    assert found.return_share == pytest.approx(-0.002)
    assert (found.hits, found.hit_rate, found.trades) == (2, 0.5, 4)
    assert found.profit_factor == pytest.approx((193 + 43) / (107 + 137))
    assert (found.beyond_one, found.at_stop, found.lost_one) == (1, 1, 2)
    assert found.false_share == 0.25
    assert found.holding_hours == pytest.approx(2.0)
    assert found.trades_a_day == 4.0  # Sunday's last bar belongs to Monday
    assert found.lots_a_month == pytest.approx(8 / (25 / 24) * 365.25 / 12)


@cases(
    ("r", "beyond", "at"),
    [(-1.0, 0, 1), (-1.0000005, 0, 1), (-1.00001, 1, 0), (-0.9999, 0, 0), (-1.4, 1, 0)],
)
def test_a_false_signal_lost_more_than_one_r_before_commission(
    r: float, beyond: int, at: int
) -> None:
    found = arm_figures(arm_of([r], commission=30.0), rng())
    assert (found.beyond_one, found.at_stop) == (beyond, at)


def test_the_equity_is_charged_when_the_money_goes() -> None:
    arm = arm_of([1.0, -1.0], commission=5.0, cost_usd=2.0, capital=1_000.0)
    levels = [level for _, level in equity(arm)]
    assert levels == [1_000.0, 998.0, 1_093.0, 1_091.0, 986.0, 986.0]
    assert [when for when, _ in changes(arm)] == sorted(when for when, _ in changes(arm))
    worst = drawdown(equity(arm))
    assert worst.money == pytest.approx(107.0)
    assert worst.share == pytest.approx(107 / 1_093)
    assert worst.days == pytest.approx(10 / 24)  # from 02:00 to the last tick at 12:00


@pytest.mark.journey
def test_drawdown_and_falls_are_empyricals() -> None:
    arm = arm_of(coin(3, 300), capital=10_000.0)
    levels = np.array([level for _, level in equity(arm)])
    theirs = empyrical.max_drawdown(np.diff(levels) / levels[:-1])
    assert drawdown(equity(arm)).share == pytest.approx(-theirs, rel=1e-9)
    assert max(share for _, share in falls(equity(arm))) == pytest.approx(-theirs, rel=1e-9)


def test_a_curve_that_only_rises_has_no_drawdown() -> None:
    worst = drawdown(equity(arm_of([1.0, 1.0, 1.0])))
    assert (worst.money, worst.share, worst.days) == (0.0, 0.0, 0.0)


def test_an_account_that_is_used_up_has_no_daily_returns() -> None:
    assert returns(arm_of([-1.0] * 8, capital=300.0)) is None


def test_sunday_belongs_to_monday_and_a_market_without_weekend_has_365_days() -> None:
    friday = START + timedelta(days=4)
    hours = [friday + timedelta(hours=h) for h in (12, 70, 75)]  # Friday, Sunday 22:00, Monday
    week = ArmObservation(
        "l1", tuple(plain_tick(when) for when in hours), (trade(hours[1], 1.0, 0.5),)
    )
    assert [day.weekday() for day, _ in daily(week).results] == [4, 0]
    assert [amount for _, amount in daily(week).results] == [0.0, RISK]
    assert daily(week).year == 252
    weekend = ArmObservation(
        "l1", (*week.ticks, plain_tick(friday + timedelta(hours=30))), week.trades
    )
    assert [day.weekday() for day, _ in daily(weekend).results] == [4, 5, 6, 0]
    assert daily(weekend).year == 365


def test_days_without_a_trade_are_days() -> None:
    arm = ArmObservation("l1", quiet_ticks(96 * 5), (trade(START, 1.0),))
    assert returns(arm) == pytest.approx((RISK / 10_000, 0, 0, 0, 0), abs=1e-12)


def test_time_in_the_market_counts_closes_with_a_position() -> None:
    ticks = quiet_ticks(8)
    first = ticks[2].bar_time
    held = trade(first, 1.0, hours=0.5)  # opens with bar 2, ends in bar 4: open at two closes
    inside = trade(ticks[6].bar_time, 1.0, hours=0.0)
    assert in_market(ArmObservation("l1", ticks, (held, inside))) == 2 / 8
    assert in_market(ArmObservation("l1", ticks, (held, held))) == 2 / 8
    assert in_market(ArmObservation("l1", ticks, ())) == 0.0
    assert in_market(ArmObservation("l1", (), (held,))) is None
    elsewhere = trade(first, 1.0, instance="EURUSD")
    assert in_market(ArmObservation("l1", ticks, (elsewhere,))) == 0.0


def test_trades_that_overlap_make_longer_blocks() -> None:
    one_by_one = [trade(START + timedelta(hours=2 * n), 1.0) for n in range(20)]
    together = [trade(START + timedelta(hours=n), 1.0, hours=5.5) for n in range(20)]
    assert overlap(one_by_one) == 1
    assert overlap(together) == 6
    assert overlap([]) == 1
    assert arm_figures(ArmObservation("l1", (), tuple(together)), rng()).net.block == 6


def test_a_trade_near_zero_is_charged_by_the_risk_of_its_size() -> None:
    clear = trade(START, -1.0, lots=2.0, profit=-200.0)
    near = trade(START + timedelta(hours=9), 0.001, lots=4.0, profit=0.1)
    unknown = trade(START + timedelta(hours=19), 0.0, symbol="EURUSD", profit=0.0)
    arm = ArmObservation("l1", (), (clear, near, unknown), commission=10.0)
    assert net_results(arm) == pytest.approx((-1.1, 0.001 - 40 / 400, -10 / 200))
    assert net_results(ArmObservation("l1", (), (unknown,), commission=10.0)) == (0.0,)


def test_the_size_is_that_of_the_ticks_that_decided_trades() -> None:
    decided = [plain_tick(START, "H1", multiplier=0.8, conviction=0.5), plain_tick(
        START + timedelta(hours=1), "H1", multiplier=0.6)]  # fmt: skip
    quiet = [plain_tick(START + timedelta(hours=n), "H1", conviction=0.2) for n in (2, 3)]
    trades = [trade(tick.close_time, 1.0, timeframe="H1") for tick in decided]
    arm = ArmObservation("full", (*decided, *quiet), tuple(trades))
    found = arm_figures(arm, rng())
    assert found.size == pytest.approx(0.5)
    assert found.said == pytest.approx(0.35)
    table = arms_exhibit([arm], [found])
    assert table.rows[0][table.columns.index("size")] == 0.5
    assert arm_figures(ArmObservation("full", (), ()), rng()).size is None


def test_no_loss_no_profit_factor() -> None:
    assert profit_factor([10.0, 5.0]) is None
    assert profit_factor([]) is None
    assert profit_factor([10.0, -5.0]) == 2.0


def test_what_the_models_were_paid_lowers_an_arm_that_does_not_trade() -> None:
    arm = ArmObservation("full", quiet_ticks(10, cost_usd=0.5), (), capital=1_000.0)
    found = arm_figures(arm, rng())
    assert (found.profit, found.return_share) == (-5.0, -0.005)


def test_the_sentence_tells_a_loss_beyond_chance_and_leaves_claims_to_the_claims() -> None:
    losing, winning = (arm_of(coin(5, 900, edge), str(edge)) for edge in (-0.4, 0.6))
    lost, won = (arm_figures(arm, rng()) for arm in (losing, winning))
    assert "a loss beyond chance" in arms_exhibit([losing], [lost]).says
    said = arms_exhibit([losing, winning], [lost, won]).says
    assert "taken alone" in said
    assert "table of claims" in said


def test_a_long_curve_is_thinned_and_its_worst_fall_stays() -> None:
    arm = arm_of(coin(8, 3_000))
    level, depth = curve_plots([arm])
    assert len(level.lines[0].points) <= MOST_POINTS
    assert min(y for _, y in depth.lines[0].points) == pytest.approx(
        -100 * drawdown(equity(arm)).share
    )
    assert level.lines[0].points[-1] == equity(arm)[-1]
    assert curve_plots([ArmObservation("l1", (), ())]) == ()
