"""What a tick reads from beside the chart: macro, positions, derivatives, by asset class.

`read` makes an `OutsideView` of what was known at a moment: each level with its change over 20 and
60 business days (4 and 12 weeks of a weekly one) and its rank among the last three years. A value
that is older than its series is valid is None, and so are a change over a long hole and a rank
without 250 days behind it. An asset class reads what docs/outside.md lists for it (`levels_of`);
crypto reads macro numbers at a firm and a swarm only, a symbol without a class reads none at all.

    share of longs    net = 100 * (long - short) / open_interest
    rank              100 * (below + equal / 2) / n
    fit               log(close) = a + b * yield over the last 250 days that have both; R2 of it

Gold's real yield is evidence only while its own fit still holds: see `FIT_R2`. Pure functions.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from operator import sub
from pathlib import Path
from typing import Final, NamedTuple

from agents.features import rows_of, unit_of
from torra.evidence.news_digest import NewsStatus, NewsSubject, coin
from torra.evidence.outside_numbers import Closes, SeriesThen, deviations, rank_of, series_of

FIVE_YEARS: Final = timedelta(days=1826)
THREE_YEARS: Final = timedelta(days=1096)
"""Over this long a value is ranked."""

LEAST_DAYS: Final = 250
"""Days that must lie behind a rank."""

LEAST_VALUES: Final = 30
"""Values that a rank needs beside them."""

LATEST_BEFORE: Final = timedelta(days=10)
"""How long before it the value may lie that the open interest has changed from."""

FIT_DAYS: Final = 250
"""Days over which price is fitted to the real yield."""

FIT_DECIMALS: Final = 4
FIT_R2: Final = 0.3
"""R2 below which the relation of gold to the real yield counts as broken."""

WEEKS_BACK: Final[Mapping[int, tuple[int, int]]] = {
    **dict.fromkeys((20, 4), (4, 8)),
    **dict.fromkeys((60, 12), (12, 17)),
    1: (4, 10),
    3: (12, 23),
}
"""By the steps of a change, in business days, weeks or months: the age from which a value is old
enough and the age up to which it counts, in weeks. 4 weeks are 20 business days.
"""

CROWDED: Final = 90.0
"""Rank of the positions from which, and 100 less it up to which, a side is crowded."""

ClosesOf = Callable[[timedelta], Closes]
"""Returns the symbol's own closes of whole days, as far back as is said."""


LEVELS: Final = {row["level"]: row for row in rows_of(Path(__file__).with_name("levels.csv"))}
"""Every number of the block macro: its series, the first less the second where there are two.

Those of the rate gap go by the pair's currencies. `steps` are how many values back the two changes
reach (`WEEKS_BACK`), `read_by` are the classes that read it: a stock reads its company, and the
others nothing. `broad_crypto` is crypto at a firm and a swarm alone (document 003: DGS10, DXY,
Nasdaq).
"""


def _levels_of(asset: str) -> tuple[str, ...]:
    return tuple(level for level, row in LEVELS.items() if asset in row["read_by"].split())


LEVELS_OF: Final = {asset: _levels_of(asset) for asset in ("gold", "index", "fx", "oil")}
"""What each asset class reads."""

BROAD_LEVELS_OF: Final = {"crypto": _levels_of("broad_crypto")}
"""What an asset class reads at a firm and a swarm alone."""

MARKET_OF: Final[Mapping[str, str]] = {"gold": "gold", "oil": "oil", "index": "sp500"}
"""The market of the CFTC's reports by asset class; currencies and coins go by their own name."""

READ_CLOSES: Final[Mapping[str, timedelta]] = {"gold": timedelta(days=420), "stock": FIVE_YEARS}
"""Classes that read the symbol's own closes, and how far back."""

STOCK: Final = "stock"
NEWEST: Final = "company.net_income"
"""Name under which a record keeps the report that the figures of a company are of."""

REAL_YIELD: Final = "DFII10"
COT_CURRENCY: Final = "EUR"
COT_COIN: Final = "BTC"

DERIVS: Final = (
    *("funding", "open_interest", "long_liquidations", "short_liquidations"),
    *("dvol", "put_call", "iv_slope", "skew_25d"),
)
"""Numbers of the block derivs; each is a series of a file, with its rank."""


@dataclass(frozen=True, slots=True)
class SeriesValue:
    """The newest value of a series that a tick saw: what it is about, and since when it was known.

    `stale` says that it is too old to count.
    """

    value: float
    at: datetime
    known_at: datetime
    source: str
    stale: bool = False


@dataclass(frozen=True, slots=True)
class OutsideView:
    """The outside numbers that a tick knows: features by id, statuses by block, series by name.

    `numbers` has every feature that the asset class reads, None where it is not known; what is not
    finite is not known either, for no record can hold it.
    """

    numbers: Mapping[str, float | str | None] = field(default_factory=dict)
    statuses: Mapping[str, str] = field(default_factory=dict)
    seen: Mapping[str, SeriesValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Leave out what is not finite, whoever brought it."""
        numbers = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in self.numbers.items()
        }
        object.__setattr__(self, "numbers", numbers)

    def with_view(self, other: OutsideView) -> OutsideView:
        """Return these numbers with those of another view among them."""
        return OutsideView(
            {**self.numbers, **other.numbers},
            {**self.statuses, **other.statuses},
            {**self.seen, **other.seen},
        )


NO_OUTSIDE: Final = OutsideView()
BLOCKS: Final = ("macro", "cot", "derivs", "company")
"""Blocks that are fed from outside; the feature source.BLOCK says why there is nothing."""

Then = Callable[[str], SeriesThen | None]
"""Returns what was known of a series at the moment that is read."""


def levels_of(subject: NewsSubject) -> tuple[str, ...]:
    """Return the numbers of the block macro that a subject reads."""
    broad = BROAD_LEVELS_OF.get(subject.asset, ()) if subject.broad else ()
    return LEVELS_OF.get(subject.asset, broad)


def steps_of(level: str) -> tuple[int, int]:
    """Return how many values back the two changes of a level reach (`WEEKS_BACK`)."""
    first, second = map(int, LEVELS[level]["steps"].split())
    return first, second


@lru_cache(maxsize=64)  # a desk asks the same of its few symbols at each tick
def series_for(subject: NewsSubject) -> tuple[str, ...]:
    """Return the names of all series that a subject reads, its own before those for all."""
    names = [name for level in levels_of(subject) for name in parts_of(level, subject)]
    names += positions_of(subject)
    if subject.asset:
        for name in ("fear_greed", *(f"derivs.{own}" for own in DERIVS)):
            names += [f"{name}.{subject.symbol.upper()}", name]
    return tuple(dict.fromkeys(name for name in names if series_of(name)))


def reads_company(subject: NewsSubject) -> bool:
    """Tell whether a subject has a company to read."""
    return subject.asset == STOCK and bool(subject.ticker)


def market_of(subject: NewsSubject) -> str:
    """Return the market of the CFTC's reports that a subject reads, "" for none."""
    if subject.asset == "fx":
        return "eur" if COT_CURRENCY in _halves(subject) else ""
    if subject.asset == "index" and "USD" not in (subject.currencies or ("USD",)):
        return ""
    if subject.asset == "crypto":
        return "btc" if coin(subject.symbol) == COT_COIN else ""
    return MARKET_OF.get(subject.asset, "")


def positions_of(subject: NewsSubject) -> list[str]:
    """Return the series of the positions that a subject reads: longs, shorts, open interest."""
    market = market_of(subject)
    parts = ("long", "short", "open_interest") if market else ()
    return [f"cot.{market}.{part}" for part in parts]


class Piece(NamedTuple):
    """Features that count as long as what they are about is not too old; None: nothing is known.

    `series` has further values, by name.
    """

    numbers: Mapping[str, float | str | None]
    at: datetime | None
    valid: timedelta
    series: Mapping[str, SeriesValue] = {}


def read(
    subject: NewsSubject,
    then: Then,
    as_of: datetime,
    *,
    closes: ClosesOf = lambda _span: (),
    trouble: Callable[[str], str] = lambda _block: str(NewsStatus.OFF),
) -> OutsideView:
    """Return what was known at `as_of`.

    `closes` gives the symbol's own closes of whole days up to then; `trouble` says of a block why
    nothing is known of it.
    """
    own = closes_of(subject, closes)
    return view(pieces(subject, then, own), subject, then, as_of, trouble)


def closes_of(subject: NewsSubject, closes: ClosesOf) -> Closes:
    """Return the own closes that a subject reads; none where it reads none."""
    span = READ_CLOSES.get(subject.asset)
    return closes(span) if span else ()


def pieces(subject: NewsSubject, then: Then, closes: Closes = ()) -> tuple[Piece, ...]:
    """Return all that a subject reads of series; it changes only with what `then` returns."""
    return (*_macro(subject, then, closes), *_positions(subject, then), *_derivs(subject, then))


def view(
    known: Sequence[Piece],
    subject: NewsSubject,
    then: Then,
    as_of: datetime,
    trouble: Callable[[str], str],
) -> OutsideView:
    """Return the pieces as they count at `as_of`: one that is too old is None."""
    numbers: dict[str, float | str | None] = {}
    series = {
        name: SeriesValue(
            now.value, now.at, now.known_at, now.source, stale=as_of - now.at > _valid(name)
        )
        for name in series_for(subject)
        if (now := then(name)) is not None
    }
    for piece in known:
        fresh = piece.at is not None and as_of - piece.at <= piece.valid
        numbers |= piece.numbers if fresh else dict.fromkeys(piece.numbers)
        series |= {name: replace(value, stale=not fresh) for name, value in piece.series.items()}
    there = {name.partition(".")[0] for name, value in numbers.items() if value is not None}
    stale = {_block(name) for name, value in series.items() if value.stale}
    statuses = {
        block: "available" if block in there else "stale" if block in stale else trouble(block)
        for block in BLOCKS
    }
    return OutsideView(numbers, statuses, series)


def track(names: Sequence[str], of: Callable[..., float], then: Then) -> SeriesThen | None:
    """Return a number through time, of the days that all its series have; None without one."""
    parts = [part for name in names if (part := then(name)) is not None]
    if not parts or len(parts) < len(names):
        return None
    days = [dict(zip(part.ats, part.values, strict=True)) for part in parts]
    values = {at: of(*(day[at] for day in days)) for at in days[0] if all(at in d for d in days)}
    finite = {at: value for at, value in values.items() if math.isfinite(value)}
    return parts[0]._replace(ats=(*finite,), values=(*finite.values(),)) if finite else None


def rank(number: SeriesThen) -> float | None:
    """Return the rank of the newest value among those of three years, of 100; None of too few."""
    begin = bisect_left(number.ats, number.at - THREE_YEARS)
    values = number.values[begin:]
    if len(values) < LEAST_VALUES or (number.at - number.ats[begin]).days < LEAST_DAYS:
        return None
    return rank_of(values[-1], values)


def change(number: SeriesThen, steps: int, *, relative: bool) -> float | None:
    """Return the newest value less that of so many values before.

    Where holes make that one older than its name says, the newest value that is old enough stands
    in. None where there is none, or where it is too old.
    """
    enough, longest = (timedelta(weeks=weeks) for weeks in WEEKS_BACK[steps])
    old_enough = bisect_right(number.ats, number.at - enough) - 1
    place = max(len(number.ats) - 1 - steps, old_enough)
    if place < 0 or number.at - number.ats[place] > longest:
        return None
    last, before = number.value, number.values[place]
    if not relative:
        return last - before
    return 100.0 * (last - before) / before if before > 0.0 else None


def fit(number: SeriesThen, closes: Closes) -> tuple[float, float] | None:
    """Return slope and R2 of the log of the closes against a number; None of fewer than 250 days.

    The value of a day stands beside the close of that day (least squares).
    """
    prices = {day: price for day, price in closes if price > 0.0}
    pairs = [
        (value, math.log(prices[at.date()]))
        for at, value in zip(number.ats, number.values, strict=True)
        if at.date() in prices
    ][-FIT_DAYS:]
    if len(pairs) < FIT_DAYS:
        return None
    xx, yy, xy = deviations(*zip(*pairs, strict=True))
    return (xy / xx, min(1.0, xy * xy / (xx * yy))) if xx > 0.0 and yy > 0.0 else None


# --- the blocks -----------------------------------------------------------------------------------


def parts_of(level: str, subject: NewsSubject) -> tuple[str, ...]:
    """Return the series of a level; those of a pair are the 2-year yields of its currencies."""
    if level != "rate_gap":
        return tuple(LEVELS[level]["series"].split())
    return tuple("DGS2" if half == "USD" else f"yield_2y.{half}" for half in _halves(subject))


def _halves(subject: NewsSubject) -> tuple[str, ...]:
    """Return the base and the quoted currency of a pair; nothing of another symbol."""
    symbol = subject.symbol.upper()
    halves = (symbol[:3], symbol[3:6])
    return halves if {*halves} <= {*subject.currencies} else ()


def _valid(*names: str) -> timedelta:
    """Return for how long the values of all these series are valid."""
    return min(series.valid for name in names if (series := series_of(name)))


def _piece(
    number: SeriesThen | None,
    names: Sequence[str],
    values: Callable[[SeriesThen], Sequence[float | str | None]],
    *series: str,
) -> Piece:
    """Return the features of a number, valid as long as the values of all its series are."""
    if number is None:
        return Piece(dict.fromkeys(names), None, _valid(*series))
    return Piece(dict(zip(names, values(number), strict=True)), number.at, _valid(*series))


def _macro(subject: NewsSubject, then: Then, closes: Closes) -> Iterator[Piece]:
    for level in levels_of(subject):
        parts, name = parts_of(level, subject), f"macro.{level}"
        number = track(parts, sub if len(parts) > 1 else float, then)
        names = [name, f"{name}_change_20", f"{name}_change_60", f"{name}_rank"]
        yield _piece(number, names, partial(_level, level), *(parts or ("DGS2",)))
    if subject.asset == "gold":
        names = [f"macro.real_yield_{name}" for name in ("fit_r2", "fit_slope", "relation")]
        yield _piece(then(REAL_YIELD), names, partial(_relation, closes), REAL_YIELD)


def _level(level: str, number: SeriesThen) -> list[float | None]:
    """Return a level, its two changes and its rank; a change in percent is of the value before."""
    relative = unit_of(f"macro.{level}_change_20") == "%"
    changes = [change(number, steps, relative=relative) for steps in steps_of(level)]
    return [number.value, *changes, rank(number)]


def _relation(closes: Closes, number: SeriesThen) -> list[float | str | None]:
    """Return how well gold's price still goes with the real yield, and whether that holds."""
    fitted = fit(number, closes)
    if fitted is None:
        return [None, None, None]
    # Rounded as the evidence is: one number may not be two things at the border.
    slope, r2 = (round(part, FIT_DECIMALS) for part in fitted)
    return [r2, slope, "holds" if r2 >= FIT_R2 and slope < 0.0 else "broke"]


def _positions(subject: NewsSubject, then: Then) -> Iterator[Piece]:
    """Yield the positions of the CFTC's report, and what the crowd's positions come to."""
    if parts := positions_of(subject):
        long, short, interest = parts
        # The report counts the euro; where it is the quoted currency, its longs are shorts here.
        if subject.asset == "fx" and _halves(subject)[0] != COT_CURRENCY:
            long, short = short, long
        number = track((long, short, interest), _net, then)
        names = ["cot.net_pct", "cot.net_change_4w", "cot.rank"]
        names += ["positioning.rank", "positioning.crowded"]
        yield _piece(number, names, _crowd, *parts)
    if subject.asset:
        fear = _own("fear_greed", subject, then)
        yield _piece(fear, ["positioning.fear_greed"], lambda fear: [fear.value], "fear_greed")


def _crowd(net: SeriesThen) -> list[float | str | None]:
    """Return net positions, their change and rank, and which side is crowded."""
    ranked, crowded = rank(net), None
    if ranked is not None:
        crowded = "long" if ranked >= CROWDED else "short" if ranked <= 100.0 - CROWDED else "no"
    return [net.value, change(net, 4, relative=False), ranked, ranked, crowded]


def _net(longs: float, shorts: float, interest: float) -> float:
    return 100.0 * (longs - shorts) / interest if interest > 0.0 else math.nan


def _derivs(subject: NewsSubject, then: Then) -> Iterator[Piece]:
    for name in (f"derivs.{own}" for own in DERIVS if subject.asset):
        number = _own(name, subject, then)
        # Most desks have none: rows of nothing would stand in every record.
        if number is not None:
            values: dict[str, float | str | None] = {
                name: number.value,
                f"{name}_rank": rank(number),
            }
            if subject.broad and name == "derivs.open_interest":
                near = number.at - number.ats[-2:][0] <= LATEST_BEFORE
                values[f"{name}_change"] = change(number, 1, relative=True) if near else None
            yield Piece(values, number.at, _valid(name))


def _own(name: str, subject: NewsSubject, then: Then) -> SeriesThen | None:
    """Return a series under the symbol's own name, else the one for all."""
    return then(f"{name}.{subject.symbol.upper()}") or then(name)


def _block(series: str) -> str:
    """Return the block that a series feeds."""
    head = series.partition(".")[0]
    return head if head in BLOCKS else "derivs" if head == "fear_greed" else "macro"
