"""Ticks and order books of a market, what they come to in a bar, and the file that says so.

Everything is worked out here from the description in docs/mt5.md alone: in whole points and
fractions, without what torra.feeds or the Expert Advisor do.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from tests.worlds.mt5_bars import GOLD, KEY, signed
from torra.feeds.mt5_files import BarFileOwner

HEADER: Final = (
    "time,ticks,up,down,spread_mean,spread_widest,levels,bid_volume,ask_volume,imbalance,slippage,"
    "events"
)
SELL, BUY, SELL_MARKET, BUY_MARKET = 1, 2, 3, 4
BID, ASK, LAST, VOLUME = 2, 4, 8, 16

Tick = tuple[int, float, float, float, int]
"""Milliseconds, bid, ask, last, flags."""

Entry = tuple[int, float, int, float]
"""Type, price, whole lots, exact lots (0: the whole ones count)."""


@dataclass
class Bar:
    """What happened in one bar: its ticks, and the order books that came, each with its second."""

    time: int
    ticks: list[Tick] = field(default_factory=list)
    books: list[tuple[int, list[Entry]]] = field(default_factory=list)


def points(price: float, digits: int = 2) -> int:
    return round(Fraction(price) * 10**digits)


def moves(ticks: Sequence[Tick], digits: int = 2) -> tuple[int, int]:
    """Return how many moves went up and down."""
    trades = [tick for tick in ticks if tick[4] & LAST and tick[3] > 0]
    prices = [tick[3] for tick in trades] if trades else [tick[1] for tick in ticks if tick[1] > 0]
    told = [points(price, digits) for price in prices]
    steps = [now - then for then, now in itertools.pairwise(told)]
    return sum(step > 0 for step in steps), sum(step < 0 for step in steps)


def spreads(ticks: Sequence[Tick], digits: int = 2) -> list[int]:
    """Return the spread of each tick that has both sides, in points."""
    return [
        points(ask, digits) - points(bid, digits) for _, bid, ask, *_ in ticks if 0 < bid <= ask
    ]


def lots(entry: Entry) -> Fraction:
    return Fraction(str(entry[3])) if entry[3] > 0 else Fraction(entry[2])


def slippage(book: Sequence[Entry], digits: int = 2) -> Fraction | None:
    """Return what one lot costs beyond the best price on the dearer side, in points."""
    sides = [_slipped(book, side, digits) for side in (SELL, BUY)]
    return None if None in sides else max(side for side in sides if side is not None)


def _slipped(book: Sequence[Entry], side: int, digits: int) -> Fraction | None:
    held = sorted((points(one[1], digits), lots(one)) for one in book if one[0] == side)
    if side == BUY:
        held.reverse()
    left, worth = Fraction(1), Fraction(0)
    for price, volume in held:
        taken = min(left, volume)
        left, worth = left - taken, worth + taken * abs(price - held[0][0])
    return None if left else worth


def cells(book: Sequence[Entry] | None, events: int, digits: int = 2) -> list[str]:
    """Return the six columns of a book; None, or one without a price, is none."""
    priced = [one for one in book or () if one[0] in (BUY, SELL) and one[1] > 0]
    if not priced:
        return [""] * 6
    bids = sum((lots(one) for one in priced if one[0] == BUY), Fraction(0))
    asks = sum((lots(one) for one in priced if one[0] == SELL), Fraction(0))
    slipped = slippage(priced, digits)
    return [
        str(len(priced)),
        _plain(bids),
        _plain(asks),
        f"{float((bids - asks) / (bids + asks)):.4f}",
        "" if slipped is None else f"{float(slipped):.2f}",
        str(events),
    ]


def _plain(value: Fraction) -> str:
    places = next(n for n in range(2, 9) if (value * 10**n).denominator == 1)
    return f"{float(value):.{places}f}"


def line(bar: Bar, book: Sequence[Entry] | None, events: int, digits: int = 2) -> str:
    """Return the line of a bar; `book` is the one that stood at its close."""
    up, down = moves(bar.ticks, digits)
    wide = spreads(bar.ticks, digits)
    mean, widest = (f"{sum(wide) / len(wide):.4f}", str(max(wide))) if wide else ("", "")
    first = [str(bar.time), str(len(bar.ticks)), str(up), str(down), mean, widest]
    return ",".join([*first, *cells(book, events, digits)])


def text(
    lines: Sequence[str],
    source: BarFileOwner = GOLD,
    *,
    key: str = KEY,
    count: int | None = None,
    header: str = HEADER,
    version: int = 2,
    digits: int = 2,
    offset: int = 7200,
) -> str:
    """Return a file as the Expert Advisor writes it."""
    said = len(lines) if count is None else count
    first = (
        f'{{"v":{version},"msg":"flow","channel":"{source.channel}","account":{source.account},'
        f'"broker_symbol":"{source.broker_symbol}","tf":"{source.timeframe}","count":{said},'
        f'"digits":{digits},"server_offset_s":{offset}}}'
    )
    return signed([first, header, *lines], key)


def market(
    first: int, count: int, *, seconds: int = 60, books: bool, trades: bool = False, seed: int = 1
) -> list[Bar]:
    """Return bars of random ticks around 2000, with order books where they are wanted.

    Some ticks stand still, some have no ask, some bars bring trades; some bars change no book.
    """
    rng = random.Random(seed)
    mid, last, bars = 200_000, 0, []
    for number in range(count):
        bar = Bar(first + number * seconds)
        with_trades = trades and rng.random() < 0.5
        for at in sorted(rng.sample(range(seconds * 1000), rng.randint(3, 25))):
            mid += rng.choice((-3, -1, 0, 0, 1, 2))
            ask = 0 if rng.random() < 0.05 else mid + rng.randint(0, 30)
            traded = with_trades and rng.random() < 0.4
            # A quote repeats the price of the last trade, and is none.
            last = mid + rng.randint(-1, 1) if traded else last
            flags = LAST | VOLUME if traded else BID | ASK
            bar.ticks.append(
                (bar.time * 1000 + at, mid / 100, ask / 100, last / 100, flags)
            )  # fmt: skip
        if books and rng.random() < 0.8:
            for second in sorted(rng.sample(range(seconds), rng.randint(1, 6))):
                bar.books.append((bar.time + second, order_book(rng, mid)))
        bars.append(bar)
    return bars


def order_book(rng: random.Random, mid: int) -> list[Entry]:
    """Return a book in no order; thin ones hold no lot, and orders at the market have no price."""
    if rng.random() < 0.05:
        return []
    thin = rng.random() < 0.2
    found: list[Entry] = []
    for side, way in ((SELL, 1), (BUY, -1)):
        for level in range(rng.randint(1, 8)):
            whole, exact = rng.randint(1, 4), rng.choice((0.0, 0.25, 0.5, 0.75, 1.5))
            price = (mid + way * (3 + 2 * level + rng.randint(0, 1))) / 100
            found.append((side, price, 0 if thin else whole, 0.01 if thin else exact))
    if rng.random() < 0.3:
        found.append((rng.choice((SELL_MARKET, BUY_MARKET)), 0.0, 5, 0.0))
    rng.shuffle(found)
    return found
