"""What the committee reads of a symbol: stored numbers and headlines, cut at its last daily close.

Nothing behind `CommitteeEvidence.until` is read, whatever is stored: bars of days that have closed,
and what this desk had seen of filings, series and headlines by then. Each seat reads the features
of its rows in seats.csv, by asset class. What is not known is named as missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from agents.features import name_of, row_of, rows_of, unit_of
from torra.clock import duration, floor, iso
from torra.committee.comparison import moat, peers_rank
from torra.committee.votes import SEATS, Seat
from torra.config import Instance
from torra.desk.outlook import subject_of
from torra.evidence import feature_bundle, news_digest
from torra.evidence.news_digest import NewsStatus, NewsSubject, NewsView
from torra.evidence.outside_numbers import Closes, rank_of
from torra.evidence.outside_readings import (
    FIVE_YEARS,
    LEAST_DAYS,
    NEWEST,
    THREE_YEARS,
    OutsideView,
    reads_company,
)
from torra.outside.shelf import OutsideShelf
from torra.tools.contract import Fact, fact
from torra.tools.desk_reader import DeskReader

DAY: Final = "D1"
NEWS_HOURS: Final = 30 * 24.0
HALF_LIFE_HOURS: Final = 7 * 24.0
"""Age up to which a headline counts, and after which it counts half, in hours."""

MOST_HEADLINES: Final = 20
MOVE_DAYS: Final = 60
"""Days of the symbol's own move, by the calendar of its bars."""

REAL_YIELD: Final = "macro.real_yield"
"""What is known of the real yield counts only while gold's price goes against it."""

FEWEST_FACTS: Final = 2
"""Facts without which a seat abstains, or all that its class has: one number alone is no view."""

FILING: Final = re.compile(r"edgar \S+ (\d{10})-(\d\d)-(\d{6})")
ARCHIVE: Final = "https://www.sec.gov/Archives/edgar/data"


class SeatRow(NamedTuple):
    """One feature that a seat reads, and how: at `reduce` it leans -1, at `buy` it leans +1."""

    seat: Seat
    asset: str
    feature: str
    reduce: float
    buy: float

    def lean(self, value: float) -> float:
        """Return how a value leans, -1 (reduce) to +1 (buy), in a straight line between both."""
        middle, half = (self.buy + self.reduce) / 2.0, (self.buy - self.reduce) / 2.0
        return max(-1.0, min(1.0, (value - middle) / half))

    def value_at(self, lean: float) -> float:
        """Return the value that leans so."""
        return ((self.buy + self.reduce) + lean * (self.buy - self.reduce)) / 2.0


ROWS: Final = tuple(
    SeatRow(row["seat"], row["asset"], row["feature"], float(row["reduce"]), float(row["buy"]))  # type: ignore[arg-type]  # one of the three
    for row in rows_of(Path(__file__).with_name("seats.csv"))
)
"""What each seat reads of each asset class; textbook limits, never fitted to results."""


@dataclass(frozen=True, slots=True)
class CommitteeEvidence:
    """What is known of an instance's symbol at `until`, UTC, the end of its last daily bar.

    `facts` are those of each seat that has enough to speak of; `missing` names the features that
    its class would read and that are not known. `numbers` has every known number by its feature,
    `sources` https addresses of filings and headlines that were counted, newest first.
    """

    instance: str
    symbol: str
    asset: str
    until: datetime
    price: float | None
    facts: Mapping[Seat, Sequence[Fact]]
    numbers: Mapping[str, float]
    missing: tuple[str, ...]
    sources: tuple[str, ...]


def evidence(reader: DeskReader, name: str, until: datetime | None = None) -> CommitteeEvidence:
    """Return what is known of an instance at the end of its last daily bar.

    `until` is that moment for a card of the past, at most the reader's own. Raises ConfigError for
    an unknown instance, and StoreUnavailable.
    """
    item = reader.instance(name)
    # the mode of the ticks is nothing to the committee
    subject = replace(subject_of(item, reader.profiles[item.id]), broad=True)
    latest = min(reader.as_of, until or reader.as_of)
    closes = _closes(reader, item.id, item.timeframes, latest)
    end = _end(closes, latest)
    news = _news(reader, subject, end)
    shelf = _shelf(reader, item)
    outside = _outside(shelf, subject, end, closes)
    found = {
        **outside.numbers, **feature_bundle.news_numbers(news), **_own(closes),
        **moat(shelf.company(subject, end)),
        "peers.valuation_rank": _peers(reader, item, outside, end),
    }  # fmt: skip
    relates = outside.numbers.get("macro.real_yield_relation") == "holds"
    numbers = {
        key: value
        for key, value in found.items()
        if isinstance(value, float) and math.isfinite(value)
        if relates or not key.startswith(REAL_YIELD)
    }
    rows = [row for row in ROWS if row.asset == subject.asset]
    facts = {seat: tuple(_facts(item.id, rows, seat, numbers, end)) for seat in SEATS}
    fewest = {seat: min(FEWEST_FACTS, sum(row.seat == seat for row in rows)) or 1 for seat in SEATS}
    return CommitteeEvidence(
        instance=item.id,
        symbol=item.symbol,
        asset=subject.asset,
        until=end,
        price=closes[-1][1] if closes else None,
        facts={seat: those for seat, those in facts.items() if len(those) >= fewest[seat]},
        numbers=numbers,
        missing=tuple(row.feature for row in rows if row.feature not in numbers),
        sources=(*_filings(outside), *_links(news)),
    )


def _facts(
    stream: str, rows: Sequence[SeatRow], seat: Seat, numbers: Mapping[str, float], end: datetime
) -> Iterator[Fact]:
    for row in rows:
        if row.seat == seat and row.feature in numbers:
            yield fact(
                f"{stream}|{DAY}@{iso(end - duration(DAY))}/{row.feature}",
                round(numbers[row.feature], row_of(row.feature).decimals or 0),
                name_of(row.feature),
                iso(end),
                "stored evidence",
                unit_of(row.feature),
            )


# --- prices ---------------------------------------------------------------------------------------


def _closes(
    reader: DeskReader, instance: str, timeframes: Sequence[str], latest: datetime
) -> Closes:
    """Return the closes of the days that had ended, five years of them, of the longest bars."""
    timeframe = max(timeframes, key=duration)
    last = floor(latest, DAY) - duration(DAY)
    first = last - FIVE_YEARS
    return reader.database.daily_closes(instance, timeframe, first.date(), last.date())


def _end(closes: Closes, latest: datetime) -> datetime:
    """Return the end of the last day that has a bar; the last midnight without one."""
    midnight = floor(latest, DAY)
    if not closes:
        return midnight
    day = closes[-1][0]
    return midnight.replace(year=day.year, month=day.month, day=day.day) + duration(DAY)


def _own(closes: Closes) -> dict[str, float | None]:
    """Return what the symbol's own days say: its move, and its rank among three years."""
    values = [close for _, close in closes]
    move = rank = None
    if len(values) > MOVE_DAYS:
        move = 100.0 * (values[-1] / values[-1 - MOVE_DAYS] - 1.0)
    if closes:
        since = closes[-1][0] - THREE_YEARS
        years = [close for day, close in closes if day >= since]
        if len(years) >= LEAST_DAYS:
            rank = rank_of(years[-1], years)
    return {"price.return_60d": move, "price.rank_3y": rank}


# --- beside the chart -----------------------------------------------------------------------------


def _shelf(reader: DeskReader, item: Instance) -> OutsideShelf:
    """Return the outside numbers of the sources that an instance's profile names."""
    profile = reader.profiles[item.id]
    return OutsideShelf(
        reader.database, live=item.feed != "sample", sources=profile.outside.sources
    )


def _outside(
    shelf: OutsideShelf, subject: NewsSubject, end: datetime, closes: Closes
) -> OutsideView:
    return shelf.latest(
        subject,
        end,
        closes=lambda span: [one for one in closes if one[0] >= (end - span).date()],
        trouble=lambda _: str(NewsStatus.OFF),
    )


def _peers(reader: DeskReader, own: Instance, outside: OutsideView, end: datetime) -> float | None:
    """Return how dear a stock is among the other stocks of the desk; None of any other symbol."""
    subjects = {item: subject_of(item, profile) for item, profile in reader.setups}
    if own not in subjects or not reads_company(subjects[own]):
        return None
    peers = {
        subject.ticker: _outside(
            _shelf(reader, item),
            subject,
            end,
            _closes(reader, item.id, item.timeframes, end),
        ).numbers
        for item, subject in subjects.items()
        if reads_company(subject) and subject.ticker != subjects[own].ticker
    }
    return peers_rank(outside.numbers, [*peers.values()])


def _news(reader: DeskReader, subject: NewsSubject, end: datetime) -> NewsView:
    since = end - timedelta(hours=NEWS_HOURS)
    return news_digest.view(
        reader.database.news(since=since, as_of=end, limit=None),
        subject,
        as_of=end,
        status=NewsStatus.AVAILABLE,
        max_age_hours=NEWS_HOURS,
        half_life_hours=HALF_LIFE_HOURS,
        max_items=MOST_HEADLINES,
    )


def _links(news: NewsView) -> list[str]:
    """Return the addresses of headlines that begin with https and have no white space."""
    return [
        one.item.url for one in news.items if re.fullmatch(r"https://[\x21-\x7e]+", one.item.url)
    ]


def _filings(outside: OutsideView) -> list[str]:
    """Return the address of the filing that the company's figures are of, where one is."""
    newest = outside.seen.get(NEWEST)
    found = FILING.match(newest.source) if newest else None
    return [f"{ARCHIVE}/{int(found[1])}/{''.join(found.groups())}/"] if found else []
