"""Paired days: an arm's daily results less the control's, and less those of its placebos.

On the same days the market's part falls out of the difference, which leaves far less to chance than
two separate results do. An arm of agents is compared with its placebos, not with zero: an arm that
only stirs the scores does no more than they do.

Everything is in % of the capital and net of all costs. Without days that differ the figures are
None and the sentence says so; nothing raises.

An arm whose orders are smaller loses less money on noise, and one that trades less often pays less
often for the spread. Neither is skill. So `beside` sets an arm beside the control at its own mean
size, the mean money of 1 R over its trades, and counts as many trades of the control:

    beside = trades x money of 1 R x (R a trade of the arm - R a trade of the control)

R is net of every cost (torra.evaluation.trade_figures). An arm without trades has nothing beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from statistics import fmean
from typing import Final

import numpy as np
from numpy.random import Generator

from torra.evaluation.account_curve import daily
from torra.evaluation.exhibits import Columns, Exhibit, contents, interval, number
from torra.evaluation.intervals import LEAST_BLOCKS, LEVEL, Mean, mean_of
from torra.evaluation.multiple import holm
from torra.evaluation.observations import ArmObservation
from torra.evaluation.power import mean_count, rounded_count, smallest_mean
from torra.evaluation.trade_figures import net_results, risks
from torra.evaluation.wording import listed, signed

WEEK: Final = 5
"""Trading days in a block: results of days of one week resemble each other."""


@dataclass(frozen=True, slots=True)
class DayResult:
    """The daily net results of an arm less those of another, in % of the capital a day.

    `holm` is their p after Holm, over all arms of a table.
    """

    arm: str
    against: str
    days: Mean
    holm: float | None = None

    @property
    def total(self) -> float | None:
        """The whole difference in % of the capital."""
        return None if self.days.mean is None else self.days.mean * self.days.n


def day_result(
    arm: ArmObservation, others: Sequence[ArmObservation], rng: Generator, against: str = ""
) -> DayResult:
    """Return an arm's days less the mean of the others' on the same days."""
    series = [_shares(one) for one in (arm, *others)]
    days = sorted(set().union(*series)) if others else []
    # a day on which only one of them saw a tick is a flat day of the other
    table = [[one.get(day, 0.0) for day in days] for one in series]
    mine, theirs = np.array(table[0]), np.array(table[1:]).reshape(len(others), len(days))
    gap = 100 * (mine - theirs.mean(axis=0)) if others else np.array([])
    name = against or listed([other.name for other in others])
    return DayResult(arm.name, name, mean_of(gap, rng, horizon=WEEK))


def _shares(arm: ArmObservation) -> dict[date, float]:
    if arm.capital <= 0:
        return {}
    return {day: amount / arm.capital for day, amount in daily(arm).results}


DAYS: Final[Columns] = {
    "arm": "arm",
    "against": "against",
    "days": "days.n",
    "difference, % of capital": number("total", 2),
    "a day": number("days.mean", 4),
    "95 % interval a day": interval("days", 4),
    "p": number("days.p", 4),
    "p, Holm": number("holm", 4),
}


def days_exhibit(results: Sequence[DayResult]) -> Exhibit:
    """Return the paired differences of daily results."""
    tested = holm([one.days.p for one in results])
    found = [replace(one, holm=p) for one, p in zip(results, tested, strict=True)]
    return Exhibit(
        name="paired-days",
        title="Daily results, paired: an arm less the control",
        **contents(DAYS, found, DAY_FIGURES),
        says=_days_say(found),
        enough=any(one.days.low is not None for one in found),
    )


DAY_FIGURES: Final = {
    "days": "days.n",
    "total": "total",
    "mean": "days.mean",
    "low": "days.low",
    "high": "days.high",
    "p": "days.p",
    "holm": "holm",
}


def _days_say(found: Sequence[DayResult]) -> str:
    # an arm that did as the control did has differences of 0, and no spread
    known = [one for one in found if one.days.sd]
    if not known:
        return (
            "The arms' days do not differ, or there are none: nothing can be said. "
            f"It takes {LEAST_BLOCKS * WEEK} trading days for an interval."
        )
    sure = 1 - LEVEL
    beyond = [one for one in found if one.holm is not None and one.holm <= sure]
    said = [
        f"{one.arm} did {'better' if (one.days.mean or 0) > 0 else 'worse'} than {one.against} "
        "beyond chance."
        for one in beyond
    ]
    return " ".join(said or ["No arm's days differ from the control's beyond chance."]) + (
        f" {_visible(max(known, key=lambda one: one.days.n).days)}"
    )


def _visible(days: Mean) -> str:
    """Return the sentence on what these days could show, and what the difference would take."""
    smallest = smallest_mean(days.n, days.sd or 0.0)
    if smallest is None:
        return ""
    needed = mean_count(days.mean, days.sd or 0.0) if days.mean else None
    would = (
        f"; the difference seen would take about {rounded_count(needed)}"
        if needed and needed > days.n
        else ""
    )
    return f"{days.n} days are likely to show {signed(smallest, 3)} % a day or more{would}."


# --- at one size ----------------------------------------------------------------------------------


def equal_sized(
    arm: ArmObservation, control: ArmObservation
) -> tuple[ArmObservation, ArmObservation]:
    """Return both with every trade at the arm's mean size, the control's weighed to as many."""
    known = [risk for risk in risks(arm.trades) if risk]
    size, weight = fmean(known or [0.0]), len(arm.trades) / max(1, len(control.trades))
    return _resized(arm, size), _resized(control, size * weight)


def excess_profit(arm: ArmObservation, control: ArmObservation) -> float | None:
    """Return what an arm earned beside the control at its own mean size, in account currency.

    None where one of them has no trade: then there is nothing to set beside the other.
    """
    if not arm.trades or not control.trades:
        return None
    mine, other = (sum(trade.profit for trade in one.trades) for one in equal_sized(arm, control))
    return mine - other


def _resized(arm: ArmObservation, one_r: float) -> ArmObservation:
    """Return an arm whose trades earn their net R times `one_r`; no cost is left beside it."""
    trades = sorted(arm.trades, key=lambda trade: trade.opened)
    paid = zip(trades, net_results(arm), strict=True)
    return replace(
        arm,
        ticks=tuple(replace(t, cost_usd=0.0) if t.cost_usd else t for t in arm.ticks),
        trades=tuple(replace(trade, profit=r * one_r) for trade, r in paid),
        commission=0.0,
    )


# --- placebos -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlaceboResult:
    """An arm against its placebos: `totals` are net results in % of the capital.

    `beaten` is whether the arm came to more than every placebo, and beyond chance to more than
    their mean; None if it had none.
    """

    arm: str
    total: float
    totals: Mapping[str, float]
    days: DayResult

    @property
    def beaten(self) -> bool | None:
        """Whether the arm beat its placebos."""
        if not self.totals:
            return None
        low = self.days.days.low
        return low is not None and low > 0 and self.total > max(self.totals.values())

    @property
    def best_placebo(self) -> float | None:
        """The net result of the best placebo, in % of the capital; None if there is none."""
        return max(self.totals.values(), default=None)


def placebo_result(
    arm: ArmObservation, placebos: Sequence[ArmObservation], rng: Generator
) -> PlaceboResult:
    """Return an arm against its placebos on the same days."""
    totals = {other.name: 100 * sum(_shares(other).values()) for other in placebos}
    total = 100 * sum(_shares(arm).values())
    return PlaceboResult(arm.name, total, totals, day_result(arm, placebos, rng))


PLACEBOS: Final[Columns] = {
    "arm": "arm",
    "net, % of capital": number("total", 2),
    "placebos": lambda one: len(one.totals),
    "best placebo, %": number("best_placebo", 2),
    "difference a day from their mean, %": number("days.days.mean", 4),
    "95 % interval": interval("days.days", 4),
    "beaten": "beaten",
}


def placebos_exhibit(found: Sequence[PlaceboResult]) -> Exhibit:
    """Return the table of arms against their placebos."""
    return Exhibit(
        name="placebos",
        title="Arms against their placebos",
        **contents(PLACEBOS, found, PLACEBO_FIGURES),
        says=_placebos_say(found),
        enough=any(one.days.days.low is not None for one in found),
    )


PLACEBO_FIGURES: Final = {
    "total": "total",
    "best_placebo": "best_placebo",
    "difference": "days.days.mean",
    "beaten": "beaten",
}


def _placebos_say(found: Sequence[PlaceboResult]) -> str:
    tried = [one for one in found if one.beaten is not None]
    without = [one.arm for one in found if one.beaten is None]
    if not tried:
        return (
            "No arm was run beside placebos of its own, so none can be said to beat chance: "
            "a replay with --arms placebo has them."
        )
    winners = [one.arm for one in tried if one.beaten]
    sample = _visible(max(tried, key=lambda one: one.days.days.n).days.days)
    rule = "To beat its placebos an arm must come to more than each, and than their mean by more "
    others = f"No placebo of its own: {listed(without)}." if without else ""
    said = f"No arm beat its placebos. {rule}than chance."
    if winners:
        said = f"{listed(winners)} beat every placebo beyond chance."
    return " ".join(part for part in (said, sample, others) if part)
