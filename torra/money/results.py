"""What closed trades came to: sums, win rate, mean R, drawdown, and the same by group. Pure.

Amounts are net, in the currency of one account; trades of two accounts are never added up. One R is
the planned distance to the stop. A trade whose result is not known (its broker's books never
showed it) is counted and adds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from torra.evaluation.intervals import Interval, student_quantile, wilson

LEVEL: Final = 0.95

ALIKE: Final = 1e-12
"""Share of the sum of squares below which the rest of a subtraction is rounding."""


class ClosedTrade(NamedTuple):
    """One closed trade; `closed_at` is ISO 8601 in UTC, `bridge` where it was made.

    `warm_up`: it was decided about bars from before the desk began, on paper.
    """

    closed_at: str
    instance: str
    symbol: str
    side: str
    reason: str
    bridge: str
    profit: float | None
    r: float | None
    warm_up: bool = False

    @property
    def day(self) -> str:
        """The UTC day on which it was closed, as 2026-05-01."""
        return self.closed_at[:10]


@dataclass(frozen=True, slots=True)
class TradeTotals:
    """What some trades came to.

    `won`, `lost` and `even` count trades by the sign of their profit, `unknown` those without one.
    `mean_r` is over the trades whose R is known; `between` bounds it at 95 % by Student's t, as if
    trades were independent, None for fewer than two or for trades that are all alike.
    """

    trades: int = 0
    won: int = 0
    lost: int = 0
    even: int = 0
    unknown: int = 0
    profit: float = 0.0
    r: float = 0.0
    mean_r: float | None = None
    between: Interval | None = None

    win_rate: float | None = None
    """The share of won trades among those with a known result, in [0, 1]; None without any."""

    win_rate_between: Interval | None = None
    """Wilson's interval (95 %) of the win rate; None without a known result."""


@dataclass(frozen=True, slots=True)
class ResultDrawdown:
    """How far a running sum of results fell below its highest point, which begins at 0.

    `money` is the deepest fall, from the close of `since` ("" before the first trade) to that of
    `until`; `now` is how far it is below its highest point after the newest trade.
    """

    money: float = 0.0
    since: str = ""
    until: str = ""
    now: float = 0.0


@dataclass(slots=True)
class Tally:
    """Adds up trades of one account, one after the other."""

    trades: int = 0
    won: int = 0
    lost: int = 0
    unknown: int = 0
    profit: float = 0.0
    rated: int = 0
    r: float = 0.0
    r_squares: float = 0.0

    def add(self, trade: ClosedTrade) -> None:
        """Count one trade."""
        self.trades += 1
        if trade.profit is None:
            self.unknown += 1
        else:
            self.profit += trade.profit
            self.won += trade.profit > 0
            self.lost += trade.profit < 0
        if trade.r is not None:
            self.rated += 1
            self.r += trade.r
            self.r_squares += trade.r * trade.r

    def plus(self, other: Tally) -> Tally:
        """Return the two together."""
        return Tally(
            self.trades + other.trades,
            self.won + other.won,
            self.lost + other.lost,
            self.unknown + other.unknown,
            self.profit + other.profit,
            self.rated + other.rated,
            self.r + other.r,
            self.r_squares + other.r_squares,
        )

    def result(self) -> TradeTotals:
        """Return what they came to."""
        mean, known = self.r / self.rated if self.rated else None, self.trades - self.unknown
        return TradeTotals(
            trades=self.trades,
            won=self.won,
            lost=self.lost,
            even=known - self.won - self.lost,
            unknown=self.unknown,
            profit=self.profit,
            r=self.r,
            mean_r=mean,
            between=None if mean is None else self._around(mean),
            win_rate=self.won / known if known else None,
            win_rate_between=wilson(self.won, known),
        )

    def _around(self, mean: float) -> Interval | None:
        if self.rated < 2:
            return None
        squares = self.r_squares - self.rated * mean * mean
        # what binary fractions leave of values that are all alike is no spread
        if squares <= ALIKE * self.r_squares:
            return None
        half = _quantile(self.rated - 1) * math.sqrt(squares / (self.rated - 1) / self.rated)
        return Interval(mean - half, mean + half)


@dataclass(slots=True)
class Curve:
    """The running sum of the results of one account's trades, given in the order of their ends."""

    level: float = 0.0
    peak: float = 0.0
    top: str = ""
    deepest: float = 0.0
    since: str = ""
    until: str = ""

    def add(self, trade: ClosedTrade) -> None:
        """Go on by one trade."""
        if trade.profit is None:
            return
        self.level += trade.profit
        if self.level >= self.peak:
            self.peak, self.top = self.level, trade.closed_at
        elif self.peak - self.level > self.deepest:
            self.deepest = self.peak - self.level
            self.since, self.until = self.top, trade.closed_at

    def fall(self) -> ResultDrawdown:
        """Return its drawdown."""
        return ResultDrawdown(self.deepest, self.since, self.until, self.peak - self.level)


def together(tallies: Iterable[Tally]) -> TradeTotals:
    """Return what the trades of several tallies of one account came to."""
    total = Tally()
    for one in tallies:
        total = total.plus(one)
    return total.result()


@lru_cache(maxsize=256)
def _quantile(freedom: int) -> float:
    return student_quantile((1 + LEVEL) / 2, freedom)
