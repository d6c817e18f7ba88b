"""Random entries with the same exits and costs: the placebo of every rule that picks its moments.

As many openings, with the same share of longs, at bars drawn at random. Each has the stop and the
target that any opening has (order_levels: 2 ATR away, 2 R away, in whole ticks), fills at the next
open, and pays spread and slippage. It ends as the paper bridge ends a position: at the open if a
gap went through, at the stop before the target inside a bar, at the last close if the history ends.
A drift of the market lifts the longs of both alike, so only what is beyond this is the rule's own.

A second comparator keeps the weeks as well: for each trade an entry of its side at a bar drawn from
the DELAY that begin with the trade's own. What it comes to is due to the days on which the rule was
long or short, and the rest to its moments. Bars before the trade are no part of it: they lie on the
way that led to the verdict, so an entry there would know the verdict before it came.

The results of a long and a short at each bar are computed for all bars at once, and then drawn
from. Draws are with replacement and may overlap, which a desk with one position would not do: their
mean is the same, their spread a little smaller than of trades that exclude each other. An opening
whose price went farther than `farthest` ATR until the fill, or beyond its own levels, is refused as
the bridge would refuse it, and another bar is drawn. Lots, caps and opposite verdicts play no part.
Pure functions; the caller passes the Generator that draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray

from torra.clock import duration
from torra.config import SymbolSpec
from torra.evaluation.exhibits import Columns, Exhibit, contents, interval, number, percentage
from torra.evaluation.intervals import Floats, Interval
from torra.evaluation.observations import TradeObservation
from torra.evaluation.wording import count, interval_cell, percent, signed
from torra.verdict.order_levels import STOP_ATR, TARGET_R

DRAWS: Final = 1000
COLLAR_ATR: Final = 1.0
"""Farthest fill from the decided price, in ATR: the default of risk.price_collar_atr."""

DELAY: Final = timedelta(days=5)
"""How long after a trade's own bar an entry of the second comparator may begin."""

TAIL: Final = 2.5
"""Per cent of the draws beyond each end of a range."""

Places = NDArray[np.int64]


class EntryOutcomes(NamedTuple):
    """R of an opening decided at each bar, by side; NaN if none would be filled."""

    long: Floats
    short: Floats


@dataclass(frozen=True, slots=True)
class RandomEntries:
    """The expectancy of random entries: one value a draw, in R after spread and slippage.

    `expectancies` is empty if no bar could be opened at. `left_out` counts trades of the rule that
    the end of the history closed; they are in neither figure.
    """

    count: int
    longs: int
    expectancies: Floats
    left_out: int = 0

    @property
    def mean(self) -> float | None:
        """The expectancy over all draws."""
        return float(self.expectancies.mean()) if len(self.expectancies) else None

    @property
    def range(self) -> Interval | None:
        """The range in which 95 % of the draws lie."""
        if not len(self.expectancies):
            return None
        low, high = np.percentile(self.expectancies, (TAIL, 100.0 - TAIL))
        return Interval(float(low), float(high))

    def share_as_good(self, expectancy: float) -> float | None:
        """Return the share of draws that did as well as `expectancy`: a p-value, never 0."""
        if not len(self.expectancies):
            return None
        as_good = int((self.expectancies >= expectancy).sum())
        return (as_good + 1) / (len(self.expectancies) + 1)


NO_ENTRIES: Final = RandomEntries(0, 0, np.empty(0))


class VersusRandom(NamedTuple):
    """An arm, its expectancy in R over finished trades, and that of its random entries.

    `delayed` are those of the same side soon after each trade, empty where nobody drew them.
    """

    arm: str
    expectancy: float | None
    random: RandomEntries
    delayed: RandomEntries = NO_ENTRIES

    @property
    def as_good(self) -> float | None:
        """The share of draws that did as well; None where there is nothing to compare."""
        return self._as_good(self.random)

    @property
    def as_good_delayed(self) -> float | None:
        """The same of the draws soon after each trade."""
        return self._as_good(self.delayed)

    def _as_good(self, entries: RandomEntries) -> float | None:
        if self.expectancy is None:
            return None
        return entries.share_as_good(self.expectancy)


def random_entries(
    bars: pd.DataFrame,
    atr: Floats,
    spec: SymbolSpec,
    count: int,
    share_long: float,
    rng: Generator,
    draws: int = DRAWS,
    *,
    farthest: float = COLLAR_ATR,
) -> RandomEntries:
    """Return the expectancy of `count` random entries, drawn `draws` times.

    `bars` has open, high, low and close, `atr` ATR(14) of each bar (NaN: no opening is decided
    there); `share_long` in [0, 1] is rounded to whole entries.
    """
    longs = round(count * share_long)
    return drawn(outcomes(bars, atr, spec, farthest=farthest), longs, count - longs, rng, draws)


def drawn(
    found: EntryOutcomes, longs: int, shorts: int, rng: Generator, draws: int
) -> RandomEntries:
    """Return the expectancies of so many longs and shorts drawn from the outcomes."""
    total, number = np.zeros(draws), longs + shorts
    for results, wanted in ((found.long, longs), (found.short, shorts)):
        known = results[~np.isnan(results)]
        if wanted and not len(known):
            return RandomEntries(number, longs, np.empty(0))
        for draw in range(draws if wanted else 0):
            total[draw] += known[rng.integers(0, len(known), wanted)].sum()
    return RandomEntries(number, longs, total / number if number else np.empty(0))


def delayed_entries(
    found: EntryOutcomes,
    bars: pd.DatetimeIndex,
    trades: Sequence[TradeObservation],
    rng: Generator,
    draws: int = DRAWS,
) -> RandomEntries:
    """Return the expectancies of one entry of its side for each trade, soon after it.

    `bars` are the opens of the bars of `found`, `trades` those of their timeframe. A trade after
    which no bar could be opened at is left out.
    """
    total, number, longs = np.zeros(draws), 0, 0
    for trade in trades:
        own = pd.Timestamp(trade.decided - duration(trade.timeframe))
        first, last = bars.searchsorted(own), bars.searchsorted(own + DELAY)
        results = (found.long if trade.side == "BUY" else found.short)[first:last]
        known = results[~np.isnan(results)]
        if len(known):
            total += known[rng.integers(0, len(known), draws)]
            number, longs = number + 1, longs + (trade.side == "BUY")
    return RandomEntries(number, longs, total / number if number else np.empty(0))


def pool_entries(parts: Sequence[RandomEntries], left_out: int = 0) -> RandomEntries:
    """Return the random entries of several timeframes as one, those without a draw left out."""
    known = [part for part in parts if len(part.expectancies)]
    number = sum(part.count for part in known)
    values = np.array([part.expectancies * part.count for part in known]).sum(axis=0)
    return RandomEntries(
        number,
        sum(part.longs for part in known),
        values / number if number else np.empty(0),
        left_out,
    )


def outcomes(
    bars: pd.DataFrame, atr: Floats, spec: SymbolSpec, *, farthest: float = COLLAR_ATR
) -> EntryOutcomes:
    """Return the result of a long and of a short decided at the close of each bar, in R."""
    names = ("open", "high", "low", "close")
    bid = {name: bars[name].to_numpy(dtype=np.float64) for name in names}
    ask = {name: prices + spec.spread for name, prices in bid.items()}
    return EntryOutcomes(
        _results(1, bid, ask, atr, spec, farthest), _results(-1, ask, bid, atr, spec, farthest)
    )


def _results(
    sign: int,
    leave: Mapping[str, Floats],
    enter: Mapping[str, Floats],
    atr: Floats,
    spec: SymbolSpec,
    farthest: float,
) -> Floats:
    """Return the R of one side: it enters at one side of the spread and leaves at the other.

    Prices of a short are negated, so that up is good for both sides.
    """
    decided = (leave if sign > 0 else enter)["close"]
    risk = np.rint(STOP_ATR * atr / spec.tick_size) * spec.tick_size
    entry = np.rint(decided / spec.tick_size) * spec.tick_size
    stop, target = sign * entry - risk, sign * entry + TARGET_R * risk
    worst, best = ("low", "high") if sign > 0 else ("high", "low")
    turned = {
        "open": sign * leave["open"], "worst": sign * leave[worst], "best": sign * leave[best],
    }  # fmt: skip
    # the last bar has no next open to be filled at
    filled = np.append(sign * enter["open"][1:], np.nan)
    # the price collar, as for any other opening
    near = np.abs(filled - sign * entry) <= farthest * atr
    opened = np.append(turned["open"][1:], np.nan)
    usable = near & (risk > 0) & (opened > stop) & (filled < target) & (filled > stop)
    exits = _exits(np.flatnonzero(usable), stop, target, turned, spec.slippage)
    last = np.isnan(exits) & usable
    exits[last] = sign * leave["close"][-1]
    paid = filled + spec.slippage
    return np.where(usable, (exits - paid) / np.where(usable, risk, 1.0), np.nan)


def _exits(
    places: Places, stop: Floats, target: Floats, turned: Mapping[str, Floats], slippage: float
) -> Floats:
    """Return the turned price at which each opening ends; NaN where it is still open at the end."""
    exits = np.full(len(stop), np.nan)
    open_, worst, best = turned["open"], turned["worst"], turned["best"]
    ahead = 1
    # all openings move on one bar at a time, until none is left open
    while len(places := places[places + ahead < len(stop)]):
        bar, lost, won = places + ahead, stop[places], target[places]
        price = np.full(len(places), np.nan)
        for reached, at in (
            (best[bar] >= won, won),
            (worst[bar] <= lost, lost - slippage),
            (open_[bar] >= won, open_[bar]),
            (open_[bar] <= lost, open_[bar] - slippage),
        ):  # what comes first is looked at last, and stands
            price = np.where(reached, at, price)
        exits[places] = price
        places = places[np.isnan(price)]
        ahead += 1
    return exits


COLUMNS: Final[Columns] = {
    "rule": "arm",
    "trades": "random.count",
    "longs": "random.longs",
    "R a trade": number("expectancy", 3),
    "random": number("random.mean", 3),
    "95 % of the draws": interval("random.range", 3),
    "draws as good": percentage("as_good", 1),
    "days after": number("delayed.mean", 3),
    "95 % days after": interval("delayed.range", 3),
    "days after as good": percentage("as_good_delayed", 1),
}


def random_entries_exhibit(found: Sequence[VersusRandom], more: str = "") -> Exhibit:
    """Return arms beside their random entries; `more` is a last sentence of the conclusion."""
    return Exhibit(
        name="random-entries",
        title="Random entries with the same exits and the same share of longs",
        **contents(COLUMNS, found, FIGURES),
        says=f"{_says(found)} {more}".rstrip(),
        enough=any(one.as_good is not None for one in found),
    )


FIGURES: Final = {
    "expectancy": "expectancy",
    "random": "random.mean",
    "low": "random.range.low",
    "high": "random.range.high",
    "p": "as_good",
    "delayed": "delayed.mean",
    "delayed_p": "as_good_delayed",
}


def _says(found: Sequence[VersusRandom]) -> str:
    if not found:
        return "There is nothing to set beside random entries."
    # Of the first alone: the table has the others, and words have an end.
    return " ".join([*map(_sentence, found), *_days_after(found[0])])


def _sentence(one: VersusRandom) -> str:
    random, closed = one.random, ""
    if random.left_out:
        left_out = count(random.left_out, "trade")
        closed = f" Left out: {left_out} that the end of the history closed."
    if one.as_good is None:
        return f"{one.arm}: no trades to set beside random entries.{closed}"
    ends = interval_cell(random.range, 3)
    return (
        f"{one.arm}: {signed(one.expectancy, 3)} R a trade over {count(random.count, 'trade')}; "
        f"random entries come to {signed(random.mean, 3)} R, 95 % of the draws to "
        f"{ends}, and {percent(one.as_good, 1)} of them do as well.{closed}"
    )


def _days_after(one: VersusRandom) -> Iterator[str]:
    """Yield what of a result is the days on which it was made; nothing where nobody drew for it."""
    days = one.delayed
    if days.mean is not None:
        yield (
            f"{one.arm}: entries of the same side by lot in the {DELAY.days} days from each trade "
            f"on come to {signed(days.mean, 3)} R, and {percent(one.as_good_delayed, 1)} of these "
            "draws do as well: so much is the days, and the rest the moments."
        )
