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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

from torra.evidence.company_figures import RATIOS
from torra.evidence.fair_value import FIVE_YEARS, MULTIPLES, Closes
from torra.evidence.news_digest import NewsStatus, NewsSubject, coin
from torra.evidence.outside_numbers import DAILY, SERIES, SeriesThen, series_of

THREE_YEARS: Final = timedelta(days=1096)
"""Over this long a value is ranked."""

LEAST_DAYS: Final = 250
"""Days that must lie behind a rank."""

LEAST_VALUES: Final = 30
"""Values that a rank needs beside them."""

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


class MacroNumber(NamedTuple):
    """A number of the block macro: the series that it is made of, and how it is read.

    `steps` are how many values back its two changes reach (`WEEKS_BACK`); a `relative` change is in
    percent of the value before.
    """

    series: tuple[str, ...]
    of: Callable[..., float]
    steps: tuple[int, int] = (20, 60)
    relative: bool = False


def _same(value: float) -> float:
    return value


def _less(one: float, other: float) -> float:
    return one - other


LEVELS: Final[Mapping[str, MacroNumber]] = {
    "real_yield": MacroNumber(("DFII10",), _same),
    "breakeven": MacroNumber(("T10YIE",), _same),
    "yield_2y": MacroNumber(("DGS2",), _same),
    "yield_10y": MacroNumber(("DGS10",), _same),
    "slope": MacroNumber(("DGS10", "DGS2"), _less),
    "dollar": MacroNumber(("DTWEXBGS",), _same, relative=True),
    "vix": MacroNumber(("VIXCLS",), _same),
    "nasdaq": MacroNumber(("NASDAQCOM",), _same, relative=True),
    "rate_gap": MacroNumber(("base", "quote"), _less),
    "inventories": MacroNumber(("inventories",), _same, (4, 12), relative=True),
    "earnings_yield": MacroNumber(("index_earnings_yield",), _same, (1, 3)),
}
"""Every number of the block macro; the series of the rate gap go by the pair's currencies."""

LEVEL_UNITS: Final[Mapping[str, tuple[str, int]]] = {
    **dict.fromkeys(
        ("real_yield", "breakeven", "yield_2y", "yield_10y", "earnings_yield"), ("%", 3)
    ),
    **dict.fromkeys(("slope", "rate_gap"), ("pp", 3)),
    **dict.fromkeys(("dollar", "vix", "nasdaq"), ("points", 2)),
    "inventories": ("million barrels", 1),
    "real_yield_fit_r2": ("of 1", 4),
}
"""Unit and decimals of each level; a difference of percents is in percentage points (pp)."""

LEVEL_CHANGES: Final[Mapping[str, tuple[str, int]]] = {
    name: ("%", 3) if LEVELS[name].relative else ("points", 2) if name == "vix" else ("pp", 3)
    for name in LEVELS
}

OPEN_INTEREST_CHANGE: Final = "derivs.open_interest_change"
"""The newest open interest against the value before it, which lies DAILY before it at most."""

OTHER_UNITS: Final[Mapping[str, tuple[str, int]]] = {
    OPEN_INTEREST_CHANGE: ("%", 4),
    "cot.net_pct": ("% of open interest", 2),
    "cot.net_change_4w": ("pp", 2),
    "positioning.fear_greed": ("of 100", 1),
    **{f"company.{name}": kind for name, kind in {**RATIOS, **MULTIPLES}.items()},
    "company.implied_growth_pct": ("%", 2),
    **dict.fromkeys(("flow.ticks", "flow.book_levels", "flow.book_events"), ("", 0)),
    "flow.ticks_ratio": ("x", 2),
    **dict.fromkeys(("flow.up_share", "flow.book_imbalance"), ("of 1", 4)),
    **dict.fromkeys(
        ("flow.spread_mean_atr", "flow.spread_widest_atr", "flow.slippage_atr"), ("ATR", 4)
    ),
}

LEVELS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "gold": ("real_yield", "breakeven", "dollar"),
    "index": ("yield_2y", "yield_10y", "slope", "vix", "earnings_yield"),
    "fx": ("rate_gap", "slope"),
    "oil": ("inventories", "dollar"),
}
"""What each asset class reads; a stock reads its company, and the others nothing."""

BROAD_LEVELS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "crypto": ("yield_10y", "slope", "dollar", "nasdaq", "vix"),
}
"""What an asset class reads at a firm and a swarm alone (document 003: DGS10, DXY, Nasdaq)."""

MARKET_OF: Final[Mapping[str, str]] = {"gold": "gold", "oil": "oil", "index": "sp500"}
"""The market of the CFTC's reports by asset class; currencies and coins go by their own name."""

READ_CLOSES: Final[Mapping[str, timedelta]] = {"gold": timedelta(days=420), "stock": FIVE_YEARS}
"""Classes that read the symbol's own closes, and how far back."""

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
        if not all(map(_is_finite, self.numbers.values())):
            finite = {
                name: value if _is_finite(value) else None for name, value in self.numbers.items()
            }
            object.__setattr__(self, "numbers", finite)


def _is_finite(value: float | str | None) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


NO_OUTSIDE: Final = OutsideView()
BLOCKS: Final = ("macro", "cot", "derivs", "company")
"""Blocks that are fed from outside; the feature source.BLOCK says why there is nothing."""

Then = Callable[[str], SeriesThen | None]
"""Returns what was known of a series at the moment that is read."""


class Track(NamedTuple):
    """A number through time: one value for each day that has all its series."""

    ats: tuple[datetime, ...]
    values: tuple[float, ...]


def levels_of(subject: NewsSubject) -> tuple[str, ...]:
    """Return the numbers of the block macro that a subject reads."""
    broad = BROAD_LEVELS_OF.get(subject.asset, ()) if subject.broad else ()
    return LEVELS_OF.get(subject.asset, broad)


def kind_of(name: str) -> tuple[str, int]:
    """Return unit and decimals of a feature of these blocks; of a word neither counts."""
    block, _, rest = name.partition(".")
    if rest == "rank" or rest.endswith("_rank"):
        return "of 100", 2
    if block == "derivs" and name in SERIES:
        return SERIES[name].unit, 4
    if block == "macro":
        level, _, change_of = rest.partition("_change_")
        return LEVEL_CHANGES[level] if change_of else LEVEL_UNITS.get(level, ("", 4))
    return OTHER_UNITS.get(name, ("", 0))


@lru_cache(maxsize=64)  # a desk asks the same of its few symbols at each tick
def series_for(subject: NewsSubject) -> tuple[str, ...]:
    """Return the names of all series that a subject reads, its own before those for all."""
    names = [name for level in levels_of(subject) for name in parts_of(level, subject)]
    if market := market_of(subject):
        names += [f"cot.{market}.{part}" for part in ("long", "short", "open_interest")]
    if subject.asset:
        for name in ("fear_greed", *(f"derivs.{one}" for one in DERIVS)):
            names += [f"{name}.{subject.symbol.upper()}", name]
    return tuple(dict.fromkeys(name for name in names if series_of(name)))


def market_of(subject: NewsSubject) -> str:
    """Return the market of the CFTC's reports that a subject reads, "" for none."""
    if subject.asset == "fx":
        halves = _halves(subject)
        pair = all(half in subject.currencies for half in halves)
        return "eur" if pair and COT_CURRENCY in halves else ""
    if subject.asset == "index" and "USD" not in (subject.currencies or ("USD",)):
        return ""
    if subject.asset == "crypto":
        return "btc" if coin(subject.symbol) == COT_COIN else ""
    return MARKET_OF.get(subject.asset, "")


class Piece(NamedTuple):
    """Features that count as long as what they are about is not too old; None: nothing is known.

    `seen` is what was seen beside the series, by name.
    """

    numbers: Mapping[str, float | str | None]
    at: datetime | None
    valid: timedelta
    seen: tuple[tuple[str, SeriesValue], ...] = ()


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
    """Return all that a subject reads of series, worked out.

    It changes only with what `then` returns.
    """
    return (*_macro(subject, then, closes), *_positions(subject, then), *_derivs(subject, then))


def view(
    worked: Sequence[Piece],
    subject: NewsSubject,
    then: Then,
    as_of: datetime,
    trouble: Callable[[str], str],
) -> OutsideView:
    """Return the pieces as they count at `as_of`: one that is too old is None."""
    numbers: dict[str, float | str | None] = {}
    known = dict(_values(subject, then, as_of))
    for piece in worked:
        fresh = piece.at is not None and as_of - piece.at <= piece.valid
        numbers |= piece.numbers if fresh else dict.fromkeys(piece.numbers)
        known |= {name: replace(row, stale=not fresh) for name, row in piece.seen}
    return OutsideView(numbers, _statuses(numbers, known, trouble), known)


def track(names: Sequence[str], of: Callable[..., float], then: Then) -> Track | None:
    """Return a number through time, of the days that all its series have; None without one."""
    found = [then(name) for name in names]
    if any(one is None for one in found):
        return None
    told = [one for one in found if one is not None]
    if len(told) == 1:
        return Track(told[0].ats, told[0].values)
    ats, columns = told[0].ats, [one.values for one in told]
    if any(one.ats != ats for one in told):
        days = [dict(zip(one.ats, one.values, strict=True)) for one in told]
        ats = tuple(at for at in ats if all(at in one for one in days))
        columns = [tuple(one[at] for at in ats) for one in days]
    values = map(of, *columns)
    finite = [(at, value) for at, value in zip(ats, values, strict=True) if math.isfinite(value)]
    return Track(*map(tuple, zip(*finite, strict=True))) if finite else None


def rank(found: Track) -> float | None:
    """Return the rank of the newest value among those of three years, of 100; None of too few."""
    begin = bisect_left(found.ats, found.ats[-1] - THREE_YEARS)
    beside = found.values[begin:]
    days = (found.ats[-1] - found.ats[begin]).days
    if len(beside) < LEAST_VALUES or days < LEAST_DAYS:
        return None
    last, ordered = beside[-1], sorted(beside)
    below = bisect_left(ordered, last)
    equal = bisect_right(ordered, last) - below
    return 100.0 * (below + equal / 2.0) / len(beside)


def change(found: Track, steps: int, *, relative: bool) -> float | None:
    """Return the newest value less that of so many values before.

    Where holes make that one older than its name says, the newest value that is old enough stands
    in. None where there is none, or where it is too old.
    """
    enough, longest = (timedelta(weeks=weeks) for weeks in WEEKS_BACK[steps])
    old_enough = bisect_right(found.ats, found.ats[-1] - enough) - 1
    place = max(len(found.ats) - 1 - steps, old_enough)
    if place < 0 or found.ats[-1] - found.ats[place] > longest:
        return None
    last, before = found.values[-1], found.values[place]
    if not relative:
        return last - before
    return 100.0 * (last - before) / before if before > 0.0 else None


def fit(found: Track, closes: Closes) -> tuple[float, float] | None:
    """Return slope and R2 of the log of the closes against a number; None of fewer than 250 days.

    The value of a day stands beside the close of that day (least squares).
    """
    prices = {day: price for day, price in closes if price > 0.0}
    pairs = [
        (value, math.log(prices[at.date()]))
        for at, value in zip(found.ats, found.values, strict=True)
        if at.date() in prices
    ][-FIT_DAYS:]
    if len(pairs) < FIT_DAYS:
        return None
    mean_x = math.fsum(x for x, _ in pairs) / len(pairs)
    mean_y = math.fsum(y for _, y in pairs) / len(pairs)
    xx = math.fsum((x - mean_x) ** 2 for x, _ in pairs)
    yy = math.fsum((y - mean_y) ** 2 for _, y in pairs)
    xy = math.fsum((x - mean_x) * (y - mean_y) for x, y in pairs)
    if xx <= 0.0 or yy <= 0.0:
        return None
    return xy / xx, min(1.0, xy * xy / (xx * yy))


# --- the blocks -----------------------------------------------------------------------------------


def parts_of(level: str, subject: NewsSubject) -> tuple[str, ...]:
    """Return the series of a level; those of a pair are the 2-year yields of its currencies."""
    if level != "rate_gap":
        return LEVELS[level].series
    halves = _halves(subject)
    if any(half not in subject.currencies for half in halves):
        return ()
    return tuple("DGS2" if half == "USD" else f"yield_2y.{half}" for half in halves)


def _halves(subject: NewsSubject) -> tuple[str, str]:
    """Return the base and the quoted currency of a pair."""
    symbol = subject.symbol.upper()
    return symbol[:3], symbol[3:6]


def _piece(
    found: Track | SeriesThen | None,
    numbers: Iterable[tuple[str, float | str | None]],
    names: Sequence[str],
) -> Piece:
    """Return a piece of the newest value of a number; it is valid as long as all its series are."""
    valid = min(row.valid for name in names if (row := series_of(name)))
    return Piece(dict(numbers), found.ats[-1] if found else None, valid)


def _macro(subject: NewsSubject, then: Then, closes: Closes) -> Iterator[Piece]:
    for name in levels_of(subject):
        parts = parts_of(name, subject)
        found = track(parts, LEVELS[name].of, then) if parts else None
        yield _piece(found, _level(name, found), parts or ("DGS2",))
    if subject.asset == "gold":
        yielded = then(REAL_YIELD)
        found = Track(yielded.ats, yielded.values) if yielded else None
        told = fit(found, closes) if found else None
        yield _piece(found, _relation(told), (REAL_YIELD,))


def _level(name: str, found: Track | None) -> Iterator[tuple[str, float | None]]:
    """Yield a level, its two changes and its rank."""
    row = LEVELS[name]
    yield f"macro.{name}", found and found.values[-1]
    for label, steps in zip(("change_20", "change_60"), row.steps, strict=True):
        moved = found and change(found, steps, relative=row.relative)
        yield f"macro.{name}_{label}", moved
    yield f"macro.{name}_rank", found and rank(found)


def _relation(told: tuple[float, float] | None) -> Iterator[tuple[str, float | str | None]]:
    """Yield how well gold's price still goes with the real yield, and whether that holds."""
    # Rounded as the evidence is: one number may not be two things at the border.
    slope, r2 = (round(one, FIT_DECIMALS) for one in told) if told else (None, None)
    yield "macro.real_yield_fit_r2", r2
    yield "macro.real_yield_fit_slope", slope
    if slope is None or r2 is None:
        yield "macro.real_yield_relation", None
    else:
        yield "macro.real_yield_relation", "holds" if r2 >= FIT_R2 and slope < 0.0 else "broke"


def _positions(subject: NewsSubject, then: Then) -> Iterator[Piece]:
    """Yield the positions of the CFTC's report, and what the crowd's positions come to."""
    if market := market_of(subject):
        parts = [f"cot.{market}.{part}" for part in ("long", "short", "open_interest")]
        # The report counts the euro; where it is the quoted currency, its longs are shorts here.
        quoted = subject.asset == "fx" and _halves(subject)[0] != COT_CURRENCY
        found = track(parts, _shorts if quoted else _longs, then)
        yield _piece(found, _net(found), parts)
    if subject.asset:
        fear = _own("fear_greed", subject, then)
        yield _piece(fear, [("positioning.fear_greed", fear and fear.value)], ("fear_greed",))


def _net(found: Track | None) -> Iterator[tuple[str, float | str | None]]:
    ranked = found and rank(found)
    yield "cot.net_pct", found and found.values[-1]
    yield "cot.net_change_4w", found and change(found, 4, relative=False)
    yield "cot.rank", ranked
    yield "positioning.rank", ranked
    yield "positioning.crowded", _crowded(ranked)


def _longs(longs: float, shorts: float, interest: float) -> float:
    return 100.0 * (longs - shorts) / interest if interest > 0.0 else math.nan


def _shorts(longs: float, shorts: float, interest: float) -> float:
    return _longs(shorts, longs, interest)


def _crowded(ranked: float | None) -> str | None:
    if ranked is None:
        return None
    return "long" if ranked >= CROWDED else "short" if ranked <= 100.0 - CROWDED else "no"


def _derivs(subject: NewsSubject, then: Then) -> Iterator[Piece]:
    for name in DERIVS if subject.asset else ():
        told = _own(f"derivs.{name}", subject, then)
        # Most desks have none: rows of nothing would stand in every record.
        if told is not None:
            found = Track(told.ats, told.values)
            numbers = [(f"derivs.{name}", told.value), (f"derivs.{name}_rank", rank(found))]
            if subject.broad and name == "open_interest":
                near = found.ats[-1] - found.ats[-2:][0] <= DAILY
                moved = change(found, 1, relative=True) if near else None
                numbers.append((OPEN_INTEREST_CHANGE, moved))
            yield _piece(told, numbers, (f"derivs.{name}",))


def _own(name: str, subject: NewsSubject, then: Then) -> SeriesThen | None:
    """Return a series under the symbol's own name, else the one for all."""
    return then(f"{name}.{subject.symbol.upper()}") or then(name)


def _values(subject: NewsSubject, then: Then, as_of: datetime) -> Iterator[tuple[str, SeriesValue]]:
    for name in series_for(subject):
        found = then(name)
        if found is not None and (row := series_of(name)) is not None:
            stale = as_of - found.at > row.valid
            yield name, SeriesValue(found.value, found.at, found.known_at, found.source, stale)


def _statuses(
    numbers: Mapping[str, Any], known: Mapping[str, SeriesValue], trouble: Callable[[str], str]
) -> dict[str, str]:
    there = {name.partition(".")[0] for name, value in numbers.items() if value is not None}
    stale = {_block(name) for name, one in known.items() if one.stale}
    return {
        block: "available" if block in there else "stale" if block in stale else trouble(block)
        for block in BLOCKS
    }


def _block(series: str) -> str:
    """Return the block that a series feeds."""
    head = series.partition(".")[0]
    return head if head in BLOCKS else "derivs" if head == "fear_greed" else "macro"
