"""The results of an arm's trades, net of every cost, with intervals: the table of arms.

A trade's result is its R after spread and slippage, less commission, less an even share of the cost
of the arm's models over the whole period: an arm that asks and does not trade has paid too. Money
becomes R by the trade's own risk (profit over R); account currency counts as US dollars.

A false signal, by the first success criterion, is a signal that lost more than 1 R before
commission. A stop that fills exactly at its price loses exactly 1 R and is not one. So without
slippage only gaps make false signals. `at_stop` counts the trades that lost 1 R exactly, and
`lost_one` both, which is the share to compare between arms with other costs. An arm without trades
has None for figures that need one; nothing raises.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import median
from typing import Final

import numpy as np
from numpy.random import Generator

from torra.evaluation.account_curve import (
    Drawdown,
    changes,
    curve_plots,
    daily,
    drawdown,
    equity,
    period,
)
from torra.evaluation.exhibits import (
    Columns,
    Exhibit,
    contents,
    interval,
    number,
    percentage,
    share_of,
)
from torra.evaluation.intervals import Interval, Mean, mean_of, wilson
from torra.evaluation.observations import ArmObservation, TickObservation, TradeObservation
from torra.evaluation.power import TRADE_SD, PowerSentence, trades_finding
from torra.evaluation.wording import (
    count,
    listed,
    rounded,
)

ONE_R: Final = 1.0
R_ROUNDING: Final = 1e-6
"""Results this close to -1 R are at the stop: prices and profits are rounded."""

CLEAR_R: Final = 0.05
"""A result this near to 0 R does not show what 1 R was in money: rounding would decide."""

TRUSTED: Final = 100
"""Trades from which on the arm's own standard deviation replaces TRADE_SD."""

MONTH: Final = 365.25 / 12


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """The figures of one arm.

    `net` is the mean of the net results in R; `profit` and `drawdown` are in account currency and
    net; shares lie in [0, 1]; `lots_a_month` counts a lot twice, opened and closed; `in_market` is
    the share of ticks that closed with a position open. `size` is the mean of multiplier times
    conviction, in [0, 1], over the ticks that decided its trades, `said` over all of its ticks.
    `buys` counts the trades that were longs; `beside` is what it earned beside the control at one
    size (torra.evaluation.paired_days), None of the control itself.
    """

    arm: str
    trades: int
    net: Mean
    results: tuple[float, ...] = field(repr=False, default=())
    hits: int = 0
    profit: float = 0.0
    profit_factor: float | None = None
    return_share: float | None = None
    drawdown: Drawdown = field(default_factory=Drawdown)
    trades_a_day: float | None = None
    lots_a_month: float | None = None
    in_market: float | None = None
    holding_hours: float | None = None
    beyond_one: int = 0
    at_stop: int = 0
    commission: float = 0.0
    model_cost: float = 0.0
    size: float | None = None
    said: float | None = None
    buys: int = 0
    beside: float | None = None

    @property
    def hit_rate(self) -> float | None:
        """The share of trades with a net result above 0."""
        return self.hits / self.trades if self.trades else None

    @property
    def hit_interval(self) -> Interval | None:
        """Wilson's interval of the hit rate."""
        return wilson(self.hits, self.trades)

    @property
    def false_share(self) -> float | None:
        """The share of signals that lost more than 1 R."""
        return self.beyond_one / self.trades if self.trades else None

    @property
    def lost_one(self) -> int:
        """The number of trades that lost 1 R or more."""
        return self.beyond_one + self.at_stop


def arm_figures(arm: ArmObservation, rng: Generator) -> ArmFigures:
    """Return the figures of an arm; `rng` draws the resamples of its interval."""
    results = net_results(arm)
    money = [trade.profit - arm.commission * trade.lots for trade in arm.trades]
    profit = sum(amount for _, amount in changes(arm))
    return ArmFigures(
        arm=arm.name,
        trades=len(arm.trades),
        # trades that were open together are no independent results
        net=mean_of(results, rng, horizon=overlap(arm.trades)),
        results=results,
        hits=sum(1 for result in results if result > 0),
        profit=profit,
        profit_factor=profit_factor(money),
        return_share=profit / arm.capital if arm.capital > 0 else None,
        drawdown=drawdown(equity(arm)),
        trades_a_day=_trades_a_day(arm),
        lots_a_month=_lots_a_month(arm),
        in_market=in_market(arm),
        holding_hours=_holding_hours(arm.trades),
        beyond_one=sum(1 for trade in arm.trades if trade.r < -ONE_R - R_ROUNDING),
        at_stop=sum(1 for trade in arm.trades if abs(trade.r + ONE_R) <= R_ROUNDING),
        commission=math.fsum(arm.commission * trade.lots for trade in arm.trades),
        model_cost=arm.cost_usd,
        size=_size_factor(_deciding(arm)),
        said=_size_factor(arm.ticks),
        buys=sum(trade.side == "BUY" for trade in arm.trades),
    )


def _size_factor(ticks: Sequence[TickObservation]) -> float | None:
    """Return the mean size that gate and conviction leave of an opening; None without ticks."""
    if not ticks:
        return None
    return math.fsum(tick.size_share for tick in ticks) / len(ticks)


def _deciding(arm: ArmObservation) -> list[TickObservation]:
    """Return the ticks at whose close the arm's trades were decided."""
    made = {(trade.instance, trade.timeframe, trade.decided) for trade in arm.trades}
    return [t for t in arm.ticks if (t.instance, t.timeframe, t.close_time) in made]


def net_results(arm: ArmObservation) -> tuple[float, ...]:
    """Return each trade's result in R net of commission and of its share of the models' cost.

    In the order in which the trades were opened, because neighbours in time resemble each other.
    """
    trades = sorted(arm.trades, key=lambda trade: trade.opened)
    share = arm.cost_usd / len(trades) if trades else 0.0
    worth = risks(trades)
    return tuple(
        # without a known risk the costs cannot be told in R
        trade.r - (arm.commission * trade.lots + share) / risk if risk else trade.r
        for trade, risk in zip(trades, worth, strict=True)
    )


def risks(trades: Sequence[TradeObservation]) -> list[float | None]:
    """Return the account currency of 1 R of each trade; None if no trade shows it."""
    by_size: dict[str, list[float]] = defaultdict(list)
    for trade in trades:
        own, size = _own_risk(trade), _size(trade)
        if own is not None and size > 0:
            by_size[trade.symbol].append(own / size)
    worth = {symbol: median(found) for symbol, found in by_size.items()}
    known = [own for own in map(_own_risk, trades) if own is not None]
    usual = median(known) if known else None
    # a trade near 0 R shows no risk of its own: then by its size, else what is usual
    return [_own_risk(trade) or _by_size(trade, worth) or usual for trade in trades]


def _own_risk(trade: TradeObservation) -> float | None:
    if abs(trade.r) < CLEAR_R or trade.profit * trade.r <= 0:
        return None
    return trade.profit / trade.r


def _by_size(trade: TradeObservation, worth: Mapping[str, float]) -> float | None:
    return worth[trade.symbol] * _size(trade) if trade.symbol in worth else None


def _size(trade: TradeObservation) -> float:
    return abs(trade.entry - trade.stop) * trade.lots


def overlap(trades: Sequence[TradeObservation]) -> int:
    """Return how many trades a trade's life overlaps, itself included: the 90th percentile.

    One symbol with one position at a time gives 1; several at once give longer blocks.
    """
    if not trades:
        return 1
    opened = np.sort(np.array([trade.opened.timestamp() for trade in trades]))
    ordered = sorted(trades, key=lambda trade: trade.opened)
    ends = np.array([trade.closed.timestamp() for trade in ordered])
    later = np.searchsorted(opened, ends, side="left") - np.arange(len(trades))
    return max(1, math.ceil(float(np.quantile(later, 0.9))))


def profit_factor(money: Sequence[float]) -> float | None:
    """Return gains over losses, after commission; None without a loss."""
    lost = -math.fsum(amount for amount in money if amount < 0)
    return math.fsum(amount for amount in money if amount > 0) / lost if lost > 0 else None


def in_market(arm: ArmObservation) -> float | None:
    """Return the share of ticks that closed with a position open; None without ticks.

    A trade that opened and ended inside one bar was open at no close.
    """
    if not arm.ticks:
        return None
    held: dict[str, list[TradeObservation]] = defaultdict(list)
    for trade in arm.trades:
        held[trade.instance].append(trade)
    return sum(_bars_in_market(arm, name, trades) for name, trades in held.items()) / len(arm.ticks)


def _bars_in_market(arm: ArmObservation, instance: str, trades: Sequence[TradeObservation]) -> int:
    bars = [tick.bar_time.timestamp() for tick in arm.ticks if tick.instance == instance]
    opened = np.sort([trade.opened.timestamp() for trade in trades])
    closed = np.sort([trade.closed.timestamp() for trade in trades])
    # right: a trade that was filled in this bar is held at its close, one that ended in it is not
    before = np.searchsorted(opened, bars, side="right")
    after = np.searchsorted(closed, bars, side="right")
    return int(np.count_nonzero(before > after))


def _holding_hours(trades: Sequence[TradeObservation]) -> float | None:
    if not trades:
        return None
    whole = sum((trade.closed - trade.opened for trade in trades), timedelta(0))
    return whole / timedelta(hours=1) / len(trades)


def _trades_a_day(arm: ArmObservation) -> float | None:
    days = len(daily(arm).results)
    return len(arm.trades) / days if days else None


def _lots_a_month(arm: ArmObservation) -> float | None:
    whole = period(arm)
    days = (whole[1] - whole[0]) / timedelta(days=1) if whole else 0.0
    return 2 * math.fsum(trade.lots for trade in arm.trades) / days * MONTH if days > 0 else None


# --- the table ------------------------------------------------------------------------------------


COLUMNS: Final[Columns] = {
    "arm": "arm",
    "trades": "trades",
    "size": number("size", 2),
    "hit rate": share_of("hits", "trades"),
    "R a trade, net": number("net.mean", 3),
    "95 % interval": interval("net", 3),
    "profit factor": number("profit_factor", 2),
    "return %": lambda one: rounded(one.return_share and 100 * one.return_share, 2),
    "drawdown %": lambda one: rounded(100 * one.drawdown.share, 2),
    "drawdown": number("drawdown.money", 2),
    "longest, days": number("drawdown.days", 1),
    "trades a day": number("trades_a_day", 2),
    "lots a month": number("lots_a_month", 2),
    "in the market": percentage("in_market"),
    "held, hours": number("holding_hours", 1),
    "lost more than 1 R": share_of("beyond_one", "trades"),
    "lost 1 R or more": share_of("lost_one", "trades"),
    "models' cost": number("model_cost", 4),
}


def arms_exhibit(arms: Sequence[ArmObservation], figures: Sequence[ArmFigures]) -> Exhibit:
    """Return the table of arms, their equity and drawdown; `figures` in the order of `arms`."""
    return Exhibit(
        name="arms",
        title="What each arm came to, net of spread, commission and models",
        **contents(COLUMNS, figures, FIGURES),
        **_show(figures)._asdict(),
        plots=curve_plots(arms),
    )


FIGURES: Final = {
    "trades": "trades",
    "hit_rate": "hit_rate",
    "hit_low": "hit_interval.low",
    "hit_high": "hit_interval.high",
    "expectancy": "net.mean",
    "low": "net.low",
    "high": "net.high",
    "sd": "net.sd",
    "p": "net.p",
    "profit": "profit",
    "profit_factor": "profit_factor",
    "return": "return_share",
    "drawdown": "drawdown.share",
    "drawdown_money": "drawdown.money",
    "drawdown_days": "drawdown.days",
    "trades_a_day": "trades_a_day",
    "lots_a_month": "lots_a_month",
    "in_market": "in_market",
    "holding_hours": "holding_hours",
    "false_share": "false_share",
    "beyond_one": "beyond_one",
    "at_stop": "at_stop",
    "commission": "commission",
    "model_cost": "model_cost",
    "size": "size",
    "said_size": "said",
    "buys": "buys",
    "beside": "beside",
}


def own_sd(one: ArmFigures) -> float:
    """Return the standard deviation of a trade in R: the arm's own from TRUSTED trades on."""
    return one.net.sd if one.net.sd and one.trades >= TRUSTED else TRADE_SD


def _shown(one: ArmFigures) -> bool:
    """Return whether the trades show a result of this size: a large one takes fewer of them."""
    if one.trades < TRUSTED or one.net.low is None or one.net.high is None:
        return False
    return one.net.low > 0 or one.net.high < 0


def _show(figures: Sequence[ArmFigures]) -> PowerSentence:
    traded = [one for one in figures if one.trades]
    if not traded:
        return trades_finding("No arm traded, so there is nothing to compare.", 0)
    most = max(traded, key=lambda one: one.trades)
    found = trades_finding(
        _signs(traded), most.trades, own_sd(most), shown=any(map(_shown, traded))
    )
    return found._replace(says=f"{found.says} {_false_says(traded)}")


def _signs(traded: Sequence[ArmFigures]) -> str:
    above = [one.arm for one in traded if one.net.low is not None and one.net.low > 0]
    below = [one.arm for one in traded if one.net.high is not None and one.net.high < 0]
    losing = f" {listed(below)}: it lies below zero, a loss beyond chance." if below else ""
    if above:
        return (
            f"The interval of {listed(above)} lies above zero, taken alone; whether that is an "
            f"edge after all the arms and trials is decided in the table of claims.{losing}"
        )
    known = any(one.net.low is not None for one in traded)
    first = "No arm's interval lies above zero." if known else "Too few trades for any interval."
    return f"{first}{losing}"


def _false_says(traded: Sequence[ArmFigures]) -> str:
    at_stop = sum(one.at_stop for one in traded)
    return (
        "A signal that lost more than 1 R is false by the first success criterion; "
        f"{count(at_stop, 'trade')} at exactly 1 R (a stop filled at its price) "
        f"{'is' if at_stop == 1 else 'are'} counted under 1 R or more only."
    )
