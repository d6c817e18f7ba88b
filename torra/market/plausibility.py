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

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from torra.clock import duration, iso
from torra.evaluation.wording import count, percent
from torra.market.broker_clock import NEW_YORK

FLAT_RUN: Final = 8
"""Flat bars in a row without volume from which they are filler."""

SATURDAY: Final = 5
MIDWEEK: Final = (1, 2, 3)
CLOSED_SHARE: Final = 0.9
"""A market has weekends where this share of its bars on Saturdays is flat, and ..."""
OPEN_SHARE: Final = 0.5
"""... less than this share of those from Tuesday to Thursday.

An hour of the week is one of trade if bars are there in more than this share of the weeks.
"""

JUMP_SHARE: Final = 0.25
"""A jump is at least this share of the price, and ..."""
JUMP_RANGES: Final = 12.0
"""... this many mean ranges of the bars before it: ATR without gaps, so no jump hides the next."""
RANGES_MEAN: Final = 14

LONG_GAP: Final = timedelta(days=5)
"""Past so long a gap the limit grows with the root of the time, as a price's way does."""

RATIO_SHARE: Final = 0.03
"""A factor so near to the ratio of a split is told as that ratio."""

KNOWN_FACTOR: Final = 5.0
"""Prices of another scale are at least this many times the known ones, or that part of them."""
FARTHEST_WALK: Final = 3.0
"""In a time of n bars a price goes at most this many mean ranges times the root of n.

A mean range is 1.6 standard deviations of a step, so it is about five deviations.
"""
SAME_TIME: Final = np.timedelta64(1, "D")
"""Known closes as near as this to a bar, or to the nearest there is, are held against it."""

MOST_LINES: Final = 3
"""Jumps that have a sentence of their own, the first ones."""

PRICE_RANGES: Final = Path(__file__).with_name("price_ranges.csv")
"""Lowest and highest price at which a symbol, a regular expression, may trade from a year on.

Most prices of the time lie so that 20 times and a 20th of them are outside.
"""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Plausibility:
    """What is odd about bars, in sentences: `faults` make scores and trades wrong, `notes` do not.

    `flat` counts filler bars, `jumps` are the open times of the bars that a jump comes before.
    """

    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    flat: int = 0
    jumps: tuple[datetime, ...] = ()


def look(
    bars: pd.DataFrame, timeframe: str, symbol: str = "", known: pd.DataFrame | None = None
) -> Plausibility:
    """Return what is odd about bars of a symbol.

    `known` are other bars of the symbol, of any timeframe, of which `close` is read: those of the
    home, or another timeframe of the same files.
    """
    if not len(bars):
        return Plausibility()
    step, times = duration(timeframe), pd.DatetimeIndex(bars.index)
    filler, jumps = times[flat_rows(bars)], dict(_jumps(bars, step))
    faults = [_against_known(bars, symbol, known, step) or _against_usual(bars, symbol)]
    if len(filler):
        share = percent(len(filler) / len(bars), 1)
        faults.append(
            f"Filler bars, with four equal prices, are {len(filler):,} of "
            f"{len(bars):,} ({share}), from {iso(filler[0])} to {iso(filler[-1])}."
        )
    faults += [*jumps.values()][:MOST_LINES]
    if len(jumps) > MOST_LINES:
        faults.append(f"The price has {len(jumps):,} such jumps in all.")
    # Without a daylight saving of its own a market would seem to have holes in UTC.
    zones = ("UTC", NEW_YORK) if step <= timedelta(hours=1) else ("UTC",)
    missing, holes = min(_holes(times.tz_convert(zone), step) for zone in zones)
    return Plausibility(
        tuple(filter(None, faults)), (holes,) if missing else (), len(filler), tuple(jumps)
    )


def flat_rows(bars: pd.DataFrame) -> Flags:
    """Return which bars are filler: one flag a bar."""
    prices = bars[["open", "high", "low", "close"]].to_numpy()
    flat: Flags = prices.max(axis=1) == prices.min(axis=1)
    volume = bars["volume"].to_numpy()
    # Where no bar has a volume nobody knows it, and quiet minutes of a market are no filler.
    filler: Flags = _run_lengths(flat & (volume == 0) & volume.any()) >= FLAT_RUN
    days = pd.DatetimeIndex(bars.index).day_of_week.to_numpy()
    closed, midweek = flat[days == SATURDAY], flat[np.isin(days, MIDWEEK)]
    if closed.sum() > CLOSED_SHARE * len(closed) and midweek.sum() < OPEN_SHARE * len(midweek):
        # A weekend begins and ends with the run of flat bars around its Saturday.
        runs = _runs(flat)
        filler |= flat & np.isin(runs, runs[flat & (days == SATURDAY)])
    return filler


def _runs(flags: Flags) -> npt.NDArray[np.int64]:
    """Return the number of each place's run of equal flags, counted from the first."""
    return np.cumsum(np.diff(flags, prepend=flags[:1]), dtype=np.int64)


def _run_lengths(flags: Flags) -> npt.NDArray[np.int64]:
    """Return how long the run of True at each place is, 0 at False."""
    runs = _runs(flags)
    return np.bincount(runs)[runs] * flags


def _jumps(bars: pd.DataFrame, step: timedelta) -> Iterator[tuple[datetime, str]]:
    """Return the jumps, each by the open time of the bar after it with a sentence."""
    opens, closes = bars["open"].to_numpy()[1:], bars["close"].to_numpy()[:-1]
    gaps = (bars.index[1:] - bars.index[:-1]).to_numpy()
    steps = np.where(gaps > np.timedelta64(LONG_GAP), gaps / np.timedelta64(step), 1.0)
    limits = JUMP_RANGES * _ranges(bars).rolling(RANGES_MEAN, min_periods=1).mean()
    far = np.abs(np.log(opens / closes)) >= limits.to_numpy()[:-1] * np.sqrt(steps)
    for place in np.flatnonzero(far & (np.abs(opens / closes - 1.0) >= JUMP_SHARE)).tolist():
        before, after, time = closes[place], opens[place], bars.index[place + 1].to_pydatetime()
        factor = max(before, after) / min(before, after)
        new = round(factor)
        split = f", as in a split of {new}:1" if after < before else f", as in a split of 1:{new}"
        ratio = split if new > 1 and abs(factor / new - 1.0) <= RATIO_SHARE else ""
        yield (
            time,
            (
                f"The price jumps at {iso(time)} from {before:g} to {after:g}, by a factor of "
                f"{factor:.3g}{ratio}."
            ),
        )


def _ranges(bars: pd.DataFrame) -> pd.Series[float]:
    """Return the range of each bar as a share of its price; gaps are not in it."""
    return (bars["high"] - bars["low"]) / bars["close"]


def _against_known(
    bars: pd.DataFrame, symbol: str, known: pd.DataFrame | None, step: timedelta
) -> str:
    """Return what is wrong with the scale against closes of the same time, or the nearest one."""
    if known is None or not len(known):
        return ""
    places = bars.index.get_indexer(known.index, method="nearest")
    gaps = np.abs((bars.index[places] - known.index).to_numpy())
    near = gaps <= max(gaps.min(), SAME_TIME)
    factor = float(np.median((bars["close"].to_numpy()[places] / known["close"].to_numpy())[near]))
    walk = FARTHEST_WALK * _ranges(bars).mean() * np.sqrt(gaps.min() / np.timedelta64(step))
    if abs(np.log(factor)) < max(np.log(KNOWN_FACTOR), walk):
        return ""
    name = symbol or "the symbol"
    return f"The prices are {factor:.4g} times those of the other bars of {name} at the time."


@cache
def usual_ranges(symbol: str) -> tuple[tuple[int, float, float], ...]:
    """Return in which ranges a symbol usually trades, each from a year on; none where unknown."""
    plain = re.sub(r"[^A-Z0-9]", "", symbol.upper())
    with PRICE_RANGES.open(encoding="ascii") as file:
        rows = [row for row in csv.reader(file) if re.match(row[0], plain)]
    return tuple((int(year), float(low), float(high)) for _, year, low, high in rows)


def _against_usual(bars: pd.DataFrame, symbol: str) -> str:
    """Return what is wrong with the scale against the usual range of a well-known symbol."""
    price, year = float(bars["close"].median()), bars.index[len(bars) // 2].year
    rows = [row for row in usual_ranges(symbol) if row[0] <= year]
    _, low, high = rows[-1] if rows else (year, price, price)
    if low <= price <= high:
        return ""
    return f"The price of {price:g} is outside of the usual {low:g} to {high:g} of {symbol}."


def _holes(local: pd.DatetimeIndex, step: timedelta) -> tuple[int, str]:
    """Return how many bars are missing by a clock at hours of trade, and a sentence about it."""
    seconds, week = int(step.total_seconds()), timedelta(weeks=1) // step
    slots = local.tz_localize(None).as_unit("s").asi8 // seconds
    first, last = slots.min(), slots.max()
    start = first // week * week
    there = np.zeros((last - start) // week * week + week, dtype=np.bool_)
    there[slots - start] = True
    usual = np.tile(there.reshape(-1, week).mean(axis=0) > OPEN_SHARE, len(there) // week)
    usual[: first - start] = usual[last - start :] = False
    trade = np.flatnonzero(usual)
    missing = ~there[trade]
    if not missing.any():
        return 0, ""
    lengths = _run_lengths(missing)
    holes = len(np.unique(_runs(missing)[missing]))
    day = str(np.datetime64(int(trade[lengths.argmax()] + start) * seconds, "s"))[:10]
    return int(missing.sum()), (
        f"Of the usual hours of trade {count(int(missing.sum()), 'bar')} are missing, in "
        f"{count(holes, 'hole')}; the longest, of {lengths.max():,}, begins on {day}."
    )
