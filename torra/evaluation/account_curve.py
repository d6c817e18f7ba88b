"""The account of an arm: its equity after each closed trade, its drawdown, its results by day.

Everything is net. A trade's profit already has its spread and slippage. Commission is taken off
when the trade closes, and the cost of the models when it is paid, in the account's currency (US
dollars count as that currency). Open trades are not valued: a loss shows when the trade closes.

A trading day is a UTC day on which the arm saw a tick. Sunday evening belongs to Monday, except for
an arm that also trades on Saturdays: such a market has no weekend, and 365 days to a year, not 252.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import accumulate, pairwise
from typing import Final

from torra.evaluation.exhibits import Plot, PlotLine, Point
from torra.evaluation.observations import ArmObservation

SATURDAY: Final = 5
SUNDAY: Final = 6
YEAR_OF_WEEKDAYS: Final = 252
YEAR_OF_ALL_DAYS: Final = 365

MOST_POINTS: Final = 400
"""Points of a line in a plot; longer ones are thinned, and no drawdown is thinned away."""

Change = tuple[datetime, float]
"""A moment, and by how much it changed the account."""


@dataclass(frozen=True, slots=True)
class Drawdown:
    """The deepest and the longest fall of an equity curve.

    `money` and `share` are the deepest fall below the highest point yet; `days` is the longest time
    until the curve was as high again, or to the end.
    """

    money: float = 0.0
    share: float = 0.0
    days: float = 0.0


@dataclass(frozen=True, slots=True)
class Daily:
    """The net results of trading days in order; `year` is how many of them make a year."""

    results: tuple[tuple[date, float], ...]
    year: int


def period(arm: ArmObservation) -> tuple[datetime, datetime] | None:
    """Return the first and last moment of an arm; None for one that saw nothing."""
    begins = [tick.bar_time for tick in arm.ticks] + [trade.opened for trade in arm.trades]
    ends = [tick.close_time for tick in arm.ticks] + [trade.closed for trade in arm.trades]
    return (min(begins), max(ends)) if begins else None


def changes(arm: ArmObservation) -> list[Change]:
    """Return every change of the account, in the order of time."""
    paid = [(tick.close_time, -tick.cost_usd) for tick in arm.ticks if tick.cost_usd]
    won = [(trade.closed, trade.profit - arm.commission * trade.lots) for trade in arm.trades]
    return sorted(paid + won, key=lambda change: change[0])


def equity(arm: ArmObservation) -> list[Change]:
    """Return the account after each change, from the capital on; empty for an arm without ticks."""
    whole = period(arm)
    if whole is None:
        return []
    happened = changes(arm)
    levels = accumulate((amount for _, amount in happened), initial=arm.capital)
    curve = list(zip((whole[0], *(when for when, _ in happened)), levels, strict=True))
    # up to the end, so that a drawdown which lasts is counted until then
    return curve if curve[-1][0] >= whole[1] else [*curve, (whole[1], curve[-1][1])]


def falls(curve: Sequence[Change]) -> list[Change]:
    """Return how far the account is below its highest point yet, as a share; 0 at a new high."""
    found, peak = [], 0.0
    for when, level in curve:
        peak = max(peak, level)
        # an account that never was above 0 has nothing to fall by a share of
        found.append((when, (peak - level) / peak if peak > 0 else 0.0))
    return found


def drawdown(curve: Sequence[Change]) -> Drawdown:
    """Return the deepest and the longest fall of an equity curve; zeros for an empty one."""
    if not curve:
        return Drawdown()
    since, peak = curve[0]
    money, longest, below = 0.0, timedelta(0), False
    for when, level in curve:
        # before the level is looked at: the moment at which it is as high again ends the fall
        if below:
            longest = max(longest, when - since)
        if level >= peak:
            since, peak, below = when, level, False
        else:
            money, below = max(money, peak - level), True
    worst = max(share for _, share in falls(curve))
    return Drawdown(money, worst, longest / timedelta(days=1))


def daily(arm: ArmObservation) -> Daily:
    """Return the net result of every trading day, flat days too."""
    seen = {tick.bar_time.date() for tick in arm.ticks}
    happened = changes(arm)
    all_week = any(
        day.weekday() == SATURDAY for day in seen | {when.date() for when, _ in happened}
    )
    # flat days are results too: without them the spread of days would be too large
    results = dict.fromkeys(sorted({_trading_day(day, all_week) for day in seen}), 0.0)
    for when, amount in happened:
        day = _trading_day(when.date(), all_week)
        results[day] = results.get(day, 0.0) + amount
    return Daily(tuple(sorted(results.items())), YEAR_OF_ALL_DAYS if all_week else YEAR_OF_WEEKDAYS)


def _trading_day(day: date, all_week: bool) -> date:
    return day if all_week or day.weekday() != SUNDAY else day + timedelta(days=1)


def returns(arm: ArmObservation) -> tuple[float, ...] | None:
    """Return each trading day's result over the equity at its start; None once that is gone."""
    level, found = arm.capital, []
    for _, amount in daily(arm).results:
        if level <= 0:
            return None
        found.append(amount / level)
        level += amount
    return tuple(found)


def curve_plots(arms: Sequence[ArmObservation]) -> tuple[Plot, ...]:
    """Return the equity of all arms in one plot and their drawdown in another."""
    curves = [(arm.name, equity(arm)) for arm in arms]
    levels = tuple(
        PlotLine(name=name, points=_thinned(curve, worst=False)) for name, curve in curves if curve
    )
    depths = tuple(PlotLine(name=name, points=_fallen(curve)) for name, curve in curves if curve)
    if not levels:
        return ()
    return (
        Plot(
            title="Equity by closed trades, net of all costs",
            kind="step",
            lines=levels,
            y="account currency",
        ),
        Plot(title="Drawdown", kind="step", lines=depths, y="% below the highest point yet"),
    )


def _fallen(curve: Sequence[Change]) -> tuple[Point, ...]:
    # 0.0 - x, not -x: a point at the top is 0.0 and not -0.0
    return _thinned([(when, 0.0 - 100 * share) for when, share in falls(curve)], worst=True)


def _thinned(curve: Sequence[Change], *, worst: bool) -> tuple[Point, ...]:
    """Keep at most MOST_POINTS: of each stretch the lowest or the last, and both ends."""
    if len(curve) <= MOST_POINTS:
        return tuple(curve)
    middle = list(_stretches(curve[1:-1], MOST_POINTS - 2))
    kept = [min(part, key=lambda c: c[1]) if worst else part[-1] for part in middle]
    return (curve[0], *kept, curve[-1])


def _stretches(curve: Sequence[Change], parts: int) -> Iterator[Sequence[Change]]:
    edges = [len(curve) * part // parts for part in range(parts + 1)]
    yield from (curve[a:b] for a, b in pairwise(edges) if b > a)
