"""What a tick knew from beside the chart, in words: each number with its day, release and source.

`shown` makes rows of a record's numbers: yields and their like, the positions of large traders,
what a file brought, companions, and the order flow of the bar. A value that was too old to count
stands in its row and says so. What is not known is told in a sentence with what to do about it.
Names of files are strangers' words: they are cleaned and cut. Pure functions; nothing raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agents.features import label_of, unit_of
from torra.evidence.news_digest import NewsSubject
from torra.evidence.outside_numbers import EDGAR, MARKETS, SERIES, series_of
from torra.evidence.outside_readings import (
    BROAD_LEVELS_OF,
    COT_CURRENCY,
    DERIVS,
    FIT_R2,
    LEVELS,
    LEVELS_OF,
    NEWEST,
    STOCK,
    OutsideView,
    SeriesValue,
    levels_of,
    market_of,
    parts_of,
    positions_of,
    steps_of,
)
from torra.exhibits import figures
from torra.exhibits.beyond import companion_words, company_words, flow_words
from torra.exhibits.beyond.outside_row import (
    Block,
    OutsideNumber,
    OutsideRow,
    OutsideShown,
    day_of,
    ranked,
)
from torra.tick.marks import INVENTED
from torra.words.ticks import NO_NUMBER, STATUSES

BLOCKS: Final[dict[Block, str]] = {
    "macro": "economy",
    "cot": "positions",
    "derivs": "mood and derivatives",
    "company": "company",
    "companion": "companions",
    "flow": "order flow",
}
"""What each block is called."""

PUBLISHERS: Final = {
    "fred": "FRED",
    "cftc": "the CFTC",
    EDGAR: "EDGAR",
    INVENTED: "the demo (invented)",
}
FIRST_OF_COMPANY: Final = company_words.NUMBERS[0].feature

UNITS: Final = {"pp": "percentage points"}
SPANS: Final = {20: "in 20 trading days", 4: "in 4 weeks", 1: "in a month"}
"""How far back the first change of a number reaches, by the steps of its series."""

OFF: Final = (
    "No number from beyond the chart is read: name a source in outside.sources of the profile."
)
UNREADABLE: Final = "What is stored could not be read at this close."

BY_FILE: Final = "A file brings it: torra data import FILE."
BY_EITHER: Final = (
    "{who} publishes it: name {source} in outside.sources of the profile, or bring a file by "
    "torra data import FILE."
)
"""What to do about a number of which nothing was stored."""


def shown(symbol: str | None, view: OutsideView | None) -> OutsideShown:
    """Return what a tick of a symbol knew; `view` is None where no source was named."""
    if view is None:
        return OutsideShown([], [OFF], "nothing is read")
    numbers = [*_numbers(str(symbol or ""), view)]
    rows = [row for number in numbers if (row := _row(number, view)) is not None]
    notes = [
        *_relation(view), *_crowded(rows, view), *company_words.notes(view),
        *_unknown(numbers, view, symbol),
    ]  # fmt: skip
    rows += [*companion_words.rows(view), *flow_words.rows(view)]
    notes += [*companion_words.notes(view), *flow_words.notes(view)]
    known = sum(not row.old for row in rows)
    old = len(rows) - known
    count = f"{known} number{'' if known == 1 else 's'} known" if known else "nothing known"
    return OutsideShown(rows, notes, f"{count}, {old} too old" if old else count)


def in_a_line(symbol: str, view: OutsideView) -> str:
    """Return the blocks that a symbol reads, each with its newest values or why it has none."""
    numbers = [*_numbers(symbol, view)]
    known: dict[Block, list[str]] = {number.block: [] for number in numbers}
    for number in numbers:
        row = _row(number, view)
        if row is not None and not row.old and number.in_a_line:
            known[number.block].append(f"{number.name} {row.value} ({row.day})")
    if companion_words.names(view):
        known["companion"] = [
            f"{row.name} {row.value} ({row.change})"
            for row in companion_words.rows(view)
            if not row.old
        ]
    parts = [
        f"{BLOCKS[block]}: {', '.join(words) or brief(view.statuses.get(block))}"
        for block, words in known.items()
        # What only a file of one's own brings is no gap.
        if words or block != "derivs" or len(known) == 1
    ]
    if "flow" in view.statuses:
        flow = (f"{row.name.lower()} {row.value}" for row in flow_words.rows(view))
        parts.append(f"{BLOCKS['flow']}: {', '.join(flow) or brief(view.statuses['flow'])}")
    return "; ".join(parts) or "nothing is read for this symbol"


def brief(status: str | None) -> str:
    """Return the status of a block in a few words."""
    word = str(status or "")
    known = STATUSES.get(word)
    return known.word if known else figures.sanitize(word, 40) or "not told"


def source_of(source: str | None) -> str:
    """Return who stated a value; of a filing its form and number too."""
    word = str(source or "")
    return PUBLISHERS.get(word) or company_words.filing(word)


def name_of(series: str) -> str:
    """Return what a series is called, with the currency or the symbol that it is of."""
    row = series_of(series)
    if series == NEWEST:
        return company_words.REPORTS
    if row is None:
        return figures.sanitize(series, 40)
    if series in SERIES:
        return row.says
    own = series.rpartition(".")[2]
    words = row.says.replace("a currency", own)
    return words if row.own == "currency" else f"{words} of {own}"


def series_title(series: str) -> str:
    """Return a series as a title; the parts of a market's positions have the same."""
    return _named(series).partition(" (")[0].removeprefix("the ")


def series_amount(name: str, value: object) -> str:
    """Return a value of a series with its unit; what only derivatives have by its size."""
    row = series_of(name)
    return amount(value, row.unit if row else "", None if name.startswith("derivs.") else 2)


def written(number: OutsideNumber, value: object) -> str:
    """Return a value of a number with its unit."""
    return amount(value, unit_of(number.feature), number.decimals, signed=number.signed)


def amount(value: object, unit: str, decimals: int | None = 2, *, signed: bool = False) -> str:
    """Return a value with its unit, written with the decimals that a trader would say."""
    known = figures.number(value)
    if known is None:
        return figures.DASH
    if decimals is None:
        decimals = 0 if abs(known) >= 1000.0 else 2 if abs(known) >= 1.0 else 4
    text = figures.format_signed(known, decimals) if signed else figures.plain(known, decimals)
    return f"{text} {UNITS.get(unit, unit)}".rstrip()


# --- which numbers a record has -------------------------------------------------------------------


def _subject(symbol: str, view: OutsideView) -> NewsSubject:
    """Return what the features of a record tell of its symbol: a record names no asset class."""
    if any(name.startswith("company.") for name in view.numbers):
        return NewsSubject(symbol, STOCK)
    levels = {name for name in LEVELS if f"macro.{name}" in view.numbers}
    asset = next((asset for asset, of in LEVELS_OF.items() if {*of} == levels), "crypto")
    halves = (symbol.upper()[:3], symbol.upper()[3:6]) if asset == "fx" else ()
    return NewsSubject(
        symbol, asset, currencies=halves, broad=levels == {*BROAD_LEVELS_OF["crypto"]}
    )


def _numbers(symbol: str, view: OutsideView) -> Iterator[OutsideNumber]:
    """Yield what the symbol reads, known or not."""
    subject = _subject(symbol, view)
    for level in levels_of(subject):
        feature = f"macro.{level}"
        yield OutsideNumber(
            "macro",
            _level_name(level, symbol),
            feature,
            parts_of(level, subject),
            f"{feature}_change_20",
            SPANS[steps_of(level)[0]],
            f"{feature}_rank",
            1 if level == "inventories" else 2,
            unit_of(feature) == "pp",
        )
    if subject.asset == STOCK:
        yield from company_words.NUMBERS
    market = market_of(subject)
    if market and "cot.net_pct" in view.numbers:
        says = MARKETS[market]["says"]
        turned = market == "eur" and not symbol.upper().startswith(COT_CURRENCY)
        yield OutsideNumber(
            "cot",
            f"{says}, longs less shorts{', as shorts of this pair' if turned else ''}",
            "cot.net_pct",
            tuple(positions_of(subject)),
            "cot.net_change_4w",
            SPANS[4],
            "cot.rank",
            1,
            signed=True,
        )
    if "positioning.fear_greed" in view.numbers:
        series = _own("fear_greed", symbol, view)
        yield OutsideNumber(
            "derivs", "fear and greed index", "positioning.fear_greed", series, decimals=0
        )
    for name in DERIVS:
        feature = f"derivs.{name}"
        series = _own(feature, symbol, view)
        if feature in view.numbers:
            yield OutsideNumber(
                "derivs",
                label_of(feature),
                feature,
                series,
                f"{feature}_change",
                "since the value before",
                f"{feature}_rank",
                None,
            )


def _level_name(level: str, symbol: str) -> str:
    """Return what a level is called; the gap of a pair tells which side is taken from which."""
    if level != "rate_gap":
        return label_of(f"macro.{level}")
    pair = figures.sanitize(symbol.upper(), 40)
    return f"2-year yields, {pair[:3]} less {pair[3:6]}"


def _own(name: str, symbol: str, view: OutsideView) -> tuple[str]:
    """Return the series of a name that counted: the symbol's own before the one for all."""
    own = f"{name}.{symbol.upper()}"
    return (own if own in view.seen else name,)


# --- rows -----------------------------------------------------------------------------------------


def _row(number: OutsideNumber, view: OutsideView) -> OutsideRow | None:
    """Return the row of a number; None where nothing of it is known."""
    values = [(name, view.seen[name]) for name in number.series if name in view.seen]
    old = [(name, row) for name, row in values if row.stale]
    value = view.numbers.get(number.feature)
    name, company = f"{number.name[:1].upper()}{number.name[1:]}", number.block == "company"
    if figures.number(value) is not None and not (company and old):
        origin = _of_report(number, values) if company else _origin(values)
        day = day_of(min((str(row.at) for _, row in values), default=""))
        shown = written(number, value)
        return OutsideRow(
            number.block, name, shown, origin, day, _change(number, view), _rank(number, view)
        )
    if not old or (company and number.feature != FIRST_OF_COMPANY):
        return None
    if company:
        name = "The company's reports"  # one row tells of them all
    origin = _dated(old[0][1]) if company else _too_old(number, old)
    day = day_of(old[0][1].at)
    return OutsideRow(number.block, name, "too old to count", origin, day, old=True)


def _change(number: OutsideNumber, view: OutsideView) -> str:
    value = view.numbers.get(number.change)
    if not number.change or figures.number(value) is None:
        return figures.DASH
    return f"{amount(value, unit_of(number.change), signed=True)} {number.span}"


def _origin(values: Sequence[tuple[str, SeriesValue]]) -> str:
    """Return of when the values are, since when they were known, and from where."""
    words = {_dated(row) for _, row in values}
    if len(words) <= 1:
        return "".join(words)
    return "; ".join(f"{name_of(name)} {_dated(row)}" for name, row in values)


def _rank(number: OutsideNumber, view: OutsideView) -> str:
    """Return a rank; of what a price pays for a company, of how many days it is dearer."""
    value = view.numbers.get(number.rank)
    if number.block != "company" or figures.number(value) is None:
        return ranked(value)
    return f"dearer than {figures.plain(value, 0)} of 100 days in up to five years"


def _of_report(number: OutsideNumber, values: Sequence[tuple[str, SeriesValue]]) -> str:
    """Return of when a company's figure is; a sentence beside the rows names the report."""
    priced = ", at the close of the day before" if number.rank else ""
    return f"year to {day_of(values[0][1].at)}{priced}" if values else ""


def _too_old(number: OutsideNumber, old: Sequence[tuple[str, SeriesValue]]) -> str:
    if number.block == "cot":
        return _dated(old[0][1])
    return "; ".join(
        f"{series_amount(name, row.value)} {_dated(row)}"
        if len(number.series) == 1
        else f"{name_of(name)} {series_amount(name, row.value)} {_dated(row)}"
        for name, row in old
    )


def _dated(row: SeriesValue) -> str:
    known = figures.moment(row.known_at)
    return f"of {day_of(row.at)}, known since {known}, from {source_of(row.source)}"


# --- sentences ------------------------------------------------------------------------------------


def _relation(view: OutsideView) -> Iterator[str]:
    """Yield whether gold still goes against the real yield; nothing for other symbols."""
    if figures.number(view.numbers.get("macro.real_yield")) is None:
        return
    r2 = figures.number(view.numbers.get("macro.real_yield_fit_r2"))
    slope = figures.number(view.numbers.get("macro.real_yield_fit_slope"))
    if r2 is None or slope is None:
        yield (
            "Whether gold still goes against the real yield cannot be told: that needs 250 days "
            "that have both. So the real yield speaks for no side."
        )
        return
    share = f"the real yield explains {100.0 * r2:.0f} % of gold's price over 250 days"
    if view.numbers.get("macro.real_yield_relation") == "holds":
        yield f"Gold still goes against the real yield: {share}."
    elif r2 >= FIT_R2:
        yield "Gold has lately risen with the real yield. So the real yield speaks for no side."
    else:
        yield (
            f"Gold no longer goes against the real yield: {share}. So the real yield speaks for "
            "no side."
        )


def _crowded(rows: Iterable[OutsideRow], view: OutsideView) -> Iterator[str]:
    side = view.numbers.get("positioning.crowded")
    if side in ("long", "short") and any(row.block == "cot" and not row.old for row in rows):
        yield f"The {side} side is crowded: these positions are in the outer tenth of three years."


def _unknown(
    numbers: Sequence[OutsideNumber], view: OutsideView, symbol: str | None
) -> Iterator[str]:
    """Yield what is not known, with the reason and what to do, one sentence for each reason."""
    if not numbers:
        series = [
            status
            for block, status in view.statuses.items()
            if block != "flow" and not companion_words.is_companion(block)
        ]
        if not series and view.statuses:
            return  # companions or order flow alone are read
        if series and {*series} == {"broken"}:
            yield UNREADABLE
            return
        yield (
            f"Nothing from beyond the chart is read for {figures.sanitize(symbol, 40)}: say what "
            "it is in symbols of the profile (asset: gold, index, fx, oil, stock or crypto)."
        )
        return
    alone = all(number.block == "derivs" for number in numbers)
    missing: dict[str, list[str]] = {}
    for number in numbers:
        # What only a file of one's own brings is no gap beside what else is known.
        if number.block == "derivs" and not alone:
            continue
        status = str(view.statuses.get(number.block) or "empty")
        for name in number.series:
            if name not in view.seen:
                missing.setdefault(_reason(name, status), []).append(_named(name))
    for reason, names in missing.items():
        yield f"Not known: {', '.join(dict.fromkeys(names))}. {reason}".rstrip()


def _reason(series: str, status: str) -> str:
    """Return why a series is not known, by the status of its block, and what to do."""
    source = SERIES[series].source if series in SERIES else "edgar" if series == NEWEST else "file"
    who = PUBLISHERS.get(source, "")
    who = f"{who[:1].upper()}{who[1:]}"
    if source == "file" and status != "off":
        return BY_FILE
    if source != "file" and status in ("available", "empty", "stale"):
        return BY_EITHER.format(who=who, source=source)
    return NO_NUMBER.get(status, "").format(who=who)


def _named(series: str) -> str:
    """Return what a series is called, and its name in a file; of positions the market alone."""
    if series == NEWEST:
        return company_words.REPORTS
    if series.startswith("cot."):
        return f"positions of {name_of(series).partition(':')[0]}"
    return f"{name_of(series)} ({series})"
