"""Looks whether the bars of one symbol and timeframe are plausible; repairs nothing.

    flat    8 or more bars in a row with four equal prices and no volume, or flat bars on the closed
            days of a market that has weekends: a vendor's filler
    jumps   a close and the next open that are 25 % and 12 ATR apart: a split, a roll, a wrong bar
    scale   prices that are no prices of the symbol: against bars of it that are known, else against
            the range in which a well-known symbol has traded
    holes   bars that are missing at hours at which the market usually trades

The first three are faults: scores and trades made of them are wrong. Holes are a note. On the
shipped bitcoin the largest jump has 18.5 ATR and on the euro 13.1, both far below 25 %.

Bars are those behind the door: sorted, unique, finite, positive. Pure; nothing here raises for
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from torra.clock import duration, iso
from torra.evaluation.wording import count, percent
from torra.market.broker_clock import NEW_YORK, UTC_CLOCK

FLAT_RUN: Final = 8
"""Flat bars in a row without volume from which they are filler."""

SATURDAY: Final = 5
MIDWEEK: Final = (1, 2, 3)
CLOSED_SHARE: Final = 0.9
"""A market has weekends where this share of its bars on Saturdays is flat, and ..."""
OPEN_SHARE: Final = 0.5
"""... no more than this share of those from Tuesday to Thursday."""

JUMP_SHARE: Final = 0.25
"""A jump is at least this share of the price, and ..."""
JUMP_ATR: Final = 12.0
"""... this many mean ranges of the bars before it."""
ATR_BARS: Final = 14

LONG_GAP: Final = timedelta(days=5)
"""Past so long a gap the price may have gone its way: a jump must exceed what it usually goes."""

RATIOS: Final = {numerator / of: f"{numerator}:{of}" for numerator, of in ((3, 2), (4, 3), (5, 2))}
"""Ratios of splits that are no whole numbers."""
RATIO_SHARE: Final = 0.03
"""A factor so near to a ratio is told as that ratio."""

KNOWN_FACTOR: Final = 5.0
"""Prices of another scale are at least this many times the known ones, or that part of them."""
FARTHEST_WALK: Final = 3.0
"""In a time of n bars a price goes at most this many mean ranges times the root of n.

A mean range is 1.6 standard deviations of a step, so it is about five deviations.
"""
SAME_TIME: Final = np.timedelta64(1, "D")
"""Known closes as near as this to a bar, or to the nearest there is, are held against it."""

LINES: Final = 3
"""Jumps that have a sentence of their own, the largest ones."""

PAIR: Final = frozenset(("EUR", "GBP", "AUD", "NZD", "USD", "CAD", "CHF"))
RANGES: Final[dict[str, tuple[tuple[int, float, float], ...]]] = {
    "XAUUSD": ((1979, 240.0, 15_000.0),),
    "XAGUSD": ((1979, 3.4, 300.0),),
    "BTCUSD": ((2010, 0.01, 1_300.0), (2014, 150.0, 20_500.0), (2021, 5_000.0, 800_000.0)),
    "ETHUSD": ((2015, 0.3, 1_500.0), (2021, 300.0, 40_000.0)),
    "US30": ((1990, 2_300.0, 250_000.0),),
    "US500": ((1990, 290.0, 40_000.0),),
    "US100": ((1990, 150.0, 15_000.0), (2010, 1_600.0, 200_000.0)),
    "JP225": ((1990, 6_000.0, 300_000.0),),
    "USOIL": ((1990, 8.0, 250.0),),
    "UKOIL": ((1990, 8.0, 250.0),),
    "JPY": ((1990, 40.0, 300.0),),
    "PAIR": ((1990, 0.3, 3.5),),
}
"""Lowest and highest price at which a symbol may trade, from a year on.

Half the world's prices of then lie within a factor of 20, so prices times 20 lie outside. JPY are
the currencies in yen, PAIR those of each other.
"""
ALIASES: Final = {
    "DJ30": "US30", "WS30": "US30", "SPX500": "US500", "SP500": "US500", "NAS100": "US100",
    "USTEC": "US100", "NI225": "JP225", "XTIUSD": "USOIL", "XBRUSD": "UKOIL", "XBTUSD": "BTCUSD",
}  # fmt: skip

Flags = npt.NDArray[np.bool_]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FlatBars:
    """The filler of bars: how many of how many, the first and the last."""

    bars: int
    total: int
    first: datetime
    last: datetime

    @property
    def line(self) -> str:
        """The filler in a sentence."""
        return (
            f"Filler bars, with four equal prices and no trade, are {self.bars:,} of "
            f"{self.total:,} ({percent(self.bars / self.total, 1)}), from {iso(self.first)} to "
            f"{iso(self.last)}."
        )


@dataclass(frozen=True, slots=True)
class Jump:
    """A jump between a close and the open of the bar at `time`, from one price to another."""

    time: datetime
    before: float
    after: float

    @property
    def factor(self) -> float:
        """The larger of the two prices in units of the smaller."""
        return max(self.before, self.after) / min(self.before, self.after)

    @property
    def ratio(self) -> str:
        """The ratio of a split that is near, such as 10:1, or 1:10 of a rise; "" of none."""
        near = {float(max(2, round(self.factor))): f"{max(2, round(self.factor))}:1", **RATIOS}
        best = min(near, key=lambda ratio: abs(self.factor - ratio))
        if abs(self.factor / best - 1.0) > RATIO_SHARE:
            return ""
        return near[best] if self.after < self.before else ":".join(near[best].split(":")[::-1])

    @property
    def line(self) -> str:
        """The jump in a sentence."""
        like = f", as a split of {self.ratio} does" if self.ratio else ""
        return (
            f"The price jumps at {iso(self.time)} from {self.before:g} to {self.after:g}, by a "
            f"factor of {self.factor:.3g}{like}."
        )


@dataclass(frozen=True, slots=True)
class Scale:
    """Prices of another scale: `price` where `usual` are those of the symbol, lowest and highest.

    `known` says that bars of the symbol tell the usual price.
    """

    symbol: str
    price: float
    usual: tuple[float, float]
    known: bool

    @property
    def line(self) -> str:
        """The scale in a sentence."""
        low, high = self.usual
        if self.known:
            return (
                f"The price of {self.price:g} is {self.price / low:.3g} times the {low:g} that "
                f"other bars of {self.symbol or 'the symbol'} have at the time."
            )
        return (
            f"The price of {self.price:g} is outside of the usual {low:g} to {high:g} of "
            f"{self.symbol}."
        )


@dataclass(frozen=True, slots=True)
class Holes:
    """Missing bars at hours of trade, in how many holes, and the longest hole."""

    bars: int
    holes: int
    longest: int
    first: datetime

    @property
    def line(self) -> str:
        """The holes in a sentence."""
        return (
            f"{count(self.bars, 'bar')} at usual hours of trade "
            f"{'is' if self.bars == 1 else 'are'} missing, in {count(self.holes, 'hole')}; the "
            f"longest, of {self.longest:,}, begins after {iso(self.first)}."
        )


@dataclass(frozen=True, slots=True)
class Plausibility:
    """What is odd about bars; None and () where nothing is."""

    flat: FlatBars | None
    jumps: tuple[Jump, ...]
    scale: Scale | None
    holes: Holes | None

    @property
    def faults(self) -> tuple[str, ...]:
        """Sentences about what makes scores and trades wrong."""
        largest = sorted(self.jumps, key=lambda jump: -jump.factor)[:LINES]
        more = len(self.jumps) - len(largest)
        lines = [one.line for one in (self.flat, self.scale) if one]
        lines += [jump.line for jump in sorted(largest, key=lambda jump: jump.time)]
        return (
            *lines,
            *([f"{count(more, 'smaller jump')} of the price are there too."] * (more > 0)),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that are good to know and accuse nothing."""
        return (self.holes.line,) if self.holes else ()

    @property
    def lines(self) -> tuple[str, ...]:
        """Every sentence, faults first."""
        return self.faults + self.notes


def look(
    bars: pd.DataFrame, timeframe: str, symbol: str = "", known: pd.DataFrame | None = None
) -> Plausibility:
    """Return what is odd about bars of a symbol.

    `known` are other bars of the symbol, of any timeframe, of which `close` is read: those of the
    home, or another timeframe of the same files.
    """
    if not len(bars):
        return Plausibility(None, (), None, None)
    filler = np.flatnonzero(flat_rows(bars))
    times = bars.index
    flat = None
    if len(filler):
        first, last = _time(times, filler[0]), _time(times, filler[-1])
        flat = FlatBars(len(filler), len(bars), first, last)
    return Plausibility(
        flat,
        tuple(_jumps(bars, duration(timeframe))),
        _known_scale(bars, symbol, known, duration(timeframe)) or _usual_scale(bars, symbol),
        _holes(pd.DatetimeIndex(times), duration(timeframe)),
    )


def flat_rows(bars: pd.DataFrame) -> Flags:
    """Return which bars are filler: one flag a bar."""
    prices = bars[["open", "high", "low", "close"]].to_numpy(dtype=float)
    flat: Flags = prices.max(axis=1) == prices.min(axis=1)
    lengths = _run_lengths(flat & (bars["volume"].to_numpy() == 0))
    filler: Flags = lengths >= FLAT_RUN
    days = pd.DatetimeIndex(bars.index).dayofweek.to_numpy()
    closed, midweek = days == SATURDAY, np.isin(days, MIDWEEK)
    if not closed.any() or flat[closed].mean() < CLOSED_SHARE:
        return filler
    if not midweek.any() or flat[midweek].mean() > OPEN_SHARE:
        return filler
    # A weekend begins and ends with the run of flat bars around its Saturday.
    runs = _runs(flat)
    return filler | (flat & np.isin(runs, runs[closed & flat]))


def _runs(flags: Flags) -> npt.NDArray[np.int64]:
    """Return the number of each place's run of equal flags, counted from the first."""
    return np.cumsum(np.diff(flags, prepend=flags[:1]).astype(np.int64))


def _run_lengths(flags: Flags) -> npt.NDArray[np.int64]:
    """Return how long the run of True at each place is, 0 at False."""
    runs = _runs(flags)
    return np.asarray(np.where(flags, np.bincount(runs)[runs], 0), dtype=np.int64)


def _jumps(bars: pd.DataFrame, step: timedelta) -> Iterator[Jump]:
    opens, closes = bars["open"].to_numpy()[1:], bars["close"].to_numpy()[:-1]
    wide = np.abs(opens / closes - 1.0) >= JUMP_SHARE
    if not wide.any():
        return
    times = pd.DatetimeIndex(bars.index)
    gaps = np.diff(times.as_unit("s").asi8)
    steps = np.where(gaps > LONG_GAP.total_seconds(), gaps / step.total_seconds(), 1.0)
    limits = JUMP_ATR * _ranges(bars, wide)[:-1] * np.sqrt(steps)
    for place in np.flatnonzero(wide & (np.abs(np.log(opens / closes)) >= limits)):
        yield Jump(_time(times, place + 1), float(closes[place]), float(opens[place]))


def _ranges(bars: pd.DataFrame, wide: Flags) -> Values:
    """Return the mean range of the newest bars at each bar, as a share of the price.

    It is the true range but at jumps, so that one jump does not hide the next.
    """
    high, low, close = (bars[name].to_numpy() for name in ("high", "low", "close"))
    before = np.concatenate((high[:1], np.where(wide, high[1:], close[:-1])))
    below = np.where(np.concatenate(([True], wide)), low, before)
    true = (np.maximum(high, before) - np.minimum(low, below)) / close
    return np.asarray(pd.Series(true).rolling(ATR_BARS, min_periods=1).mean())


def _known_scale(
    bars: pd.DataFrame, symbol: str, known: pd.DataFrame | None, step: timedelta
) -> Scale | None:
    """Return the scale against known closes of the same time, or of the nearest one."""
    if known is None or not len(known):
        return None
    places = bars.index.get_indexer(known.index, method="nearest")
    apart = np.abs((bars.index[places] - known.index).to_numpy())
    near = apart <= max(apart.min(), SAME_TIME)
    own, other = bars["close"].to_numpy()[places][near], known["close"].to_numpy()[near]
    factor = float(np.median(own / other))
    usual = float(np.mean((bars["high"] - bars["low"]) / bars["close"]))
    walk = FARTHEST_WALK * usual * np.sqrt(apart.min() / np.timedelta64(step))
    if abs(np.log(factor)) < max(np.log(KNOWN_FACTOR), walk):
        return None
    price, reference = float(np.median(own)), float(np.median(other))
    return Scale(symbol, price, (reference, reference), known=True)


def _usual_scale(bars: pd.DataFrame, symbol: str) -> Scale | None:
    """Return the scale against the usual range of a well-known symbol."""
    price, year = float(bars["close"].median()), bars.index[len(bars) // 2].year
    rows = [row for row in RANGES.get(_well_known(symbol), ()) if row[0] <= year]
    if not rows or rows[-1][1] <= price <= rows[-1][2]:
        return None
    return Scale(symbol, price, rows[-1][1:], known=False)


def _well_known(symbol: str) -> str:
    """Return the row of RANGES of a broker's symbol, "" of one that has none."""
    plain = re.sub(r"[^A-Z0-9]", "", symbol.upper())
    for name in (*ALIASES, *RANGES):
        if plain.startswith(name):
            return ALIASES.get(name, name)
    base, quote = plain[:3], plain[3:6]
    if base not in PAIR or base == quote:
        return ""
    return "JPY" if quote == "JPY" else "PAIR" if quote in PAIR else ""


def _holes(times: pd.DatetimeIndex, step: timedelta) -> Holes | None:
    """Return the holes by the clock, UTC or New York's, by which there are fewer."""
    zones = (UTC_CLOCK, NEW_YORK) if step <= timedelta(hours=1) else (UTC_CLOCK,)
    found = [_holes_by(times, times.tz_convert(zone), step) for zone in zones]
    return min(found, key=lambda holes: holes.bars if holes else 0)


def _holes_by(times: pd.DatetimeIndex, local: pd.DatetimeIndex, step: timedelta) -> Holes | None:
    slots = local.tz_localize(None).as_unit("s").asi8 // int(step.total_seconds())
    week = timedelta(weeks=1) // step
    slots -= slots[0] // week * week
    weeks = int(slots.max()) // week + 1
    there = np.zeros(weeks * week, dtype=np.bool_)
    there[slots] = True
    within = np.zeros_like(there)
    within[slots[0] : slots[-1] + 1] = True
    shares = there.reshape(weeks, week).sum(axis=0) / np.maximum(
        within.reshape(weeks, week).sum(axis=0), 1
    )
    usual = np.flatnonzero(within & np.tile(shares > OPEN_SHARE, weeks))
    lengths = _run_lengths(~there[usual])
    if not lengths.any():
        return None
    first = int(lengths.argmax())
    bars = int(np.count_nonzero(lengths))
    holes = int(np.count_nonzero(np.diff((lengths > 0).astype(int), prepend=0) > 0))
    before = int(np.searchsorted(np.sort(slots), usual[first])) - 1
    return Holes(bars, holes, int(lengths.max()), _time(times, max(before, 0)))


def _time(times: pd.Index, place: int | np.signedinteger) -> datetime:
    moment: datetime = times[place].to_pydatetime()
    return moment
