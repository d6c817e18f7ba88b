"""Turns headlines into evidence: what concerns a symbol, what repeats another, what each weighs.

Pure functions over items that were collected. An item counts from the moment it was first seen,
never from the moment it says it was published. What was first seen after `as_of` is not there, so
nothing that comes later changes a view. The order in which items are handed in does not matter.

Words are compared, nothing is understood. A headline concerns gold when one of gold's words stands
in it; two headlines are the same story when most of their words are the same.
"""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Final

from agents.features import rows_of

NEAR: Final = 0.8
"""Two headlines are one story when the words they share are this share of all their words."""

READ_ITEMS: Final = 2_000
"""Headlines of a period that are read, the newest: a tick must not wait for a year of them."""

COUNTED: Final = 500
"""Headlines that can count for a symbol at once: of more, those that were published last."""

OTHER: Final = "other"
"""The class of a headline that speaks of none of the others."""

REMEMBERED: Final = 20_000
"""Texts for which it is cached whether they speak of a subject."""

DECIMALS: Final = 8
"""Scores are rounded to this many decimals, as everywhere."""

EARLY: Final = timedelta(minutes=5)
"""How much later than its first sight an item may say that it was published: clocks differ."""

COMPANY: Final = "company."
FIGURES: Final = "figures."
RATINGS: Final = "ratings."
PEERS: Final = "peers."
EARNINGS: Final = "earnings."
PEER_FIGURES: Final = "peer."

PARTS: Final[Mapping[str, str]] = {
    FIGURES: "", PEER_FIGURES: "", RATINGS: "rating", PEERS: "peer", EARNINGS: "earnings",
}  # fmt: skip
"""Topics that bring a company's numbers, and before the dot of which names those stand."""

RATIOS: Final = ("pe", "pb", "ev_ebitda", "revenue_growth_pct", "net_margin_pct")
"""The numbers of a company that stand beside its news."""
"""Prefixes of topics for one company's news and for its figures; its ticker follows."""


class NewsStatus(StrEnum):
    """Why there are headlines, or none."""

    AVAILABLE = "available"
    OFF = "off"
    NO_KEY = "no_key"
    NO_FILE = "no_file"
    NOT_YET = "not_yet"
    EMPTY = "empty"
    RATE_LIMITED = "rate_limited"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class NewsItem:
    """One headline as it was collected. `score` is the lexicon's, in [-1, +1]; text is untrusted.

    `id` is ours, a hash; `topic` is what was asked for (finnhub:forex); `event` is one of
    EVENT_CLASSES; times are UTC.
    """

    id: str
    source: str
    topic: str
    headline: str
    published: datetime
    first_seen: datetime
    score: float = 0.0
    event: str = "other"
    summary: str = ""
    url: str = ""
    tickers: tuple[str, ...] = ()

    def with_arrival(self, moment: datetime) -> NewsItem:
        """Return the item first seen at a moment, rounded up to a whole second.

        Rounding up never makes anything known earlier than it was.
        """
        return replace(self, first_seen=rounded_up(moment))


@dataclass(frozen=True, slots=True)
class NewsSubject:
    """A symbol to find news for, with its asset class, ticker, currencies and search terms.

    `broad`: its desk also reads the outside numbers of a firm and a swarm.
    """

    symbol: str
    asset: str = ""
    ticker: str = ""
    currencies: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    broad: bool = False


@dataclass(frozen=True, slots=True)
class Weighted:
    """An item that counts, with its age in hours at `as_of` and its recency weight in (0, 1]."""

    item: NewsItem
    age_hours: float
    weight: float


@dataclass(frozen=True, slots=True)
class NewsView:
    """The news that a tick knows: the items that count, weightiest first, and their scores.

    `score` is the sum of weight times score over the sum of weights, or over 1 where the weights
    are less in sum: one old headline says little. It lies in [-1, +1] and is None without items.
    `unique` counts them before the cut at `max_items`; `events` maps an event class to (items, the
    same score of these alone).
    """

    status: NewsStatus
    items: tuple[Weighted, ...] = ()
    unique: int = 0
    score: float | None = None
    events: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    fundamentals: Mapping[str, float] = field(default_factory=dict)
    fundamentals_status: NewsStatus = NewsStatus.OFF


@dataclass(frozen=True, slots=True)
class NewsAnswer:
    """The answer of a source to a topic: items, a company's figures, or why there are none.

    `status` is AVAILABLE, EMPTY or a trouble; `dropped` counts items that could not be read;
    `detail` is in our words and never quotes what was sent or received.
    """

    status: NewsStatus
    items: tuple[NewsItem, ...] = ()
    figures: Mapping[str, float] | None = None
    dropped: int = 0
    detail: str = ""


def view(
    items: Iterable[NewsItem],
    subject: NewsSubject,
    *,
    as_of: datetime,
    status: NewsStatus,
    max_age_hours: float,
    half_life_hours: float,
    max_items: int,
) -> NewsView:
    """Return what was known of the news at `as_of`."""
    counted = []
    for item in unique(counting(items, subject, as_of=as_of, max_age_hours=max_age_hours)):
        # A vendor's clock may be ahead of ours by EARLY.
        age = max(0.0, (as_of - item.published) / timedelta(hours=1))
        # A very old item would weigh 0.0, and a weight is above 0.
        weight = max(0.5 ** (age / half_life_hours), sys.float_info.min)
        counted.append(Weighted(item, age, weight))
    counted.sort(key=lambda row: (-row.weight, row.age_hours, *_order(row.item)))
    classes = defaultdict[str, list[Weighted]](list)
    for row in counted:
        classes[row.item.event].append(row)
    return NewsView(
        status=status,
        items=tuple(counted[:max_items]),
        unique=len(counted),
        score=_score(counted),
        events={name: (len(rows), _score(rows) or 0.0) for name, rows in sorted(classes.items())},
    )


def counting(
    items: Iterable[NewsItem], subject: NewsSubject, *, as_of: datetime, max_age_hours: float
) -> list[NewsItem]:
    """Return what was known at `as_of`, is young enough and concerns the subject, in no order.

    Of more than COUNTED items those that were published last.
    """
    oldest = timedelta(hours=max_age_hours)
    young = [
        item
        for item in items
        if item.first_seen <= as_of and as_of - item.published <= oldest and concerns(item, subject)
    ]
    if len(young) <= COUNTED:
        return young
    # By id too: of equal times the same ones must be left, whatever order they came in.
    return sorted(young, key=lambda item: (item.published, item.id), reverse=True)[:COUNTED]


def concerns(item: NewsItem, subject: NewsSubject) -> bool:
    """Return whether an item is about the subject.

    It is when the vendor names its ticker, when it was found by asking for its company, or when one
    of its terms stands in headline or summary as words of their own, in small or capital letters.
    """
    topic = item.topic.partition(":")[2]
    return (
        not _names(subject).isdisjoint(map(str.upper, item.tickers))
        or (subject.ticker != "" and topic == f"{COMPANY}{subject.ticker}")
        or _mentions(subject, item.headline, item.summary)
    )


def terms_of(subject: NewsSubject) -> tuple[str, ...]:
    """Return the search terms of a subject; one of them makes a headline concern it."""
    symbol, asset = subject.symbol.upper(), subject.asset
    if subject.terms or asset == "stock":
        return subject.terms
    if asset == "crypto":
        symbol = coin(symbol)
        return (symbol, *TERMS["coin"].get(symbol, ()), *TERMS["asset"]["crypto"])
    if asset in TERMS["asset"]:
        return (symbol, *TERMS["asset"][asset])
    pair = (f"{symbol[:3]}/{symbol[3:]}",) if asset == "fx" else ()
    words = [(name, *TERMS["currency"].get(name, ())) for name in subject.currencies]
    return (symbol, *pair, *chain.from_iterable(words))


def coin(symbol: str) -> str:
    """Return what a crypto symbol trades: BTC of BTCUSD."""
    return re.sub(r"[/_-]?(USDT|USDC|USD|EUR)$", "", symbol.upper()) or symbol.upper()


def unique(items: Iterable[NewsItem]) -> list[NewsItem]:
    """Return the items without repetitions, first seen first.

    A repetition has the words of an item before it, or nearly: shared words over all words (the
    Jaccard index of the two sets) are at least NEAR, and its numbers are the same.
    """
    # The first sight of a story is the one that is kept, in whatever order they are handed in.
    in_order = sorted(items, key=_order)
    texts = [tokens(item.headline) for item in in_order]
    common = Counter(word for words in texts for word in words)
    kept: list[NewsItem] = []
    places: dict[tuple[frozenset[str], str], list[frozenset[str]]] = defaultdict(list)
    for item, words in zip(in_order, texts, strict=True):
        marks = _marks(words, common)
        if any(_near(words, others) for mark in marks for others in places[mark]):
            continue
        for mark in marks:
            places[mark].append(words)
        kept.append(item)
    return kept


def _marks(words: frozenset[str], common: Mapping[str, int]) -> list[tuple[frozenset[str], str]]:
    """Return marks of a headline; two headlines that are nearly the same have one in common.

    Of n words, at least NEAR * n stand in the other headline too; so among the n - NEAR * n + 1
    rarest there is one of these, and where it is the rarest of the shared words, it is among the
    rarest of both. Headlines with other numbers are never compared.
    """
    # "rises 2 %" and "rises 3 %" are two stories that differ in one word.
    numbers = frozenset(word for word in words if DIGIT.search(word))
    rarest = sorted(words, key=lambda word: (common[word], word))
    enough = len(words) - math.ceil(NEAR * len(words) - ROUNDING) + 1
    return [(numbers, word) for word in rarest[:enough]]


def _near(words: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether two headlines with the same numbers share nearly all their words."""
    shared = len(words & others)
    return shared >= NEAR * (len(words) + len(others) - shared)


def tokens(text: str) -> frozenset[str]:
    """Return the words of a text, alike however it is written; a text without any is one word."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return frozenset(WORD.findall(plain)) or frozenset((plain,))


def event_class(text: str) -> str:
    """Return what a headline is about: the class of EVENT_CLASSES most of whose words it holds.

    Between classes with as many words the one that comes first in the table wins.
    """
    hits = {
        name: len({match.lower() for match in pattern.findall(text)})
        for name, pattern in EVENT_PATTERNS.items()
    }
    # max keeps the first of equals: the order of the table decides.
    return max(hits, key=lambda name: hits[name]) if any(hits.values()) else OTHER


def rounded_up(moment: datetime) -> datetime:
    """Return the first whole second that is not before a moment."""
    whole = moment.replace(microsecond=0)
    return whole if whole == moment else whole + timedelta(seconds=1)


def rated(item: NewsItem, score: Callable[[str], float]) -> NewsItem:
    """Return an item with its score and its class; the summary decides when the headline cannot.

    Whatever the function says, the score is a number that can be stored.
    """
    event = event_class(item.headline)
    value = float(score(f"{item.headline}. {item.summary}"))
    return replace(
        item,
        # A tick stores what it saw: a score of NaN would fail its transaction.
        score=max(-1.0, min(1.0, value)) if math.isfinite(value) else 0.0,
        event=event_class(item.summary) if event == OTHER else event,
    )


def in_time(item: NewsItem) -> bool:
    """Return whether an item may be kept: nothing was published long after it was first seen."""
    return item.published <= item.first_seen + EARLY


def _order(item: NewsItem) -> tuple[datetime, datetime, str]:
    return item.first_seen, item.published, item.id


def _score(rows: Sequence[Weighted]) -> float | None:
    """Return the common score of headlines, sum(w s) / max(1, sum(w)); None without any."""
    if not rows:
        return None
    total = math.fsum(row.weight * row.item.score for row in rows)
    mean = total / max(1.0, math.fsum(row.weight for row in rows))
    # Rounding may push a mean of ones a little beyond 1.
    return round(max(-1.0, min(1.0, mean)), DECIMALS) + 0.0


@lru_cache(maxsize=REMEMBERED)
def _mentions(subject: NewsSubject, headline: str, summary: str) -> bool:
    return _pattern(terms_of(subject)).search(f"{headline}\n{summary}") is not None


@lru_cache(maxsize=256)
def _names(subject: NewsSubject) -> frozenset[str]:
    names = {subject.symbol.upper(), subject.ticker.upper()} - {""}
    if subject.asset == "crypto":
        names.add(f"CRYPTO:{coin(subject.symbol)}")
    return frozenset(names)


@lru_cache(maxsize=256)
def _pattern(terms: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that finds one of the terms; a blank in a term also matches a dash."""
    written = [r"[\s-]+".join(map(re.escape, term.split())) for term in terms if term.strip()]
    # Not \b: it would find nothing at the end of a term such as opec+.
    return re.compile(rf"(?<!\w)(?:{'|'.join(written) or NEVER})(?!\w)", re.IGNORECASE)


ROUNDING: Final = 1e-9
"""NEAR times a count may be a little more than the whole number that it is."""

NEVER: Final = r"(?!)"
"""A pattern that finds nothing."""

WORD: Final = re.compile(r"\w+")
DIGIT: Final = re.compile(r"\d")


def _read() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the words by group and name; `*rates` stands for those of the group `rates`."""
    groups = defaultdict[str, dict[str, tuple[str, ...]]](dict)
    for row in rows_of(Path(__file__).with_name("news_terms.csv")):
        terms = row["terms"].replace("*rates", "; ".join(groups["rates"].get("", ())))
        groups[row["group"]][row["name"]] = tuple(terms.split("; "))
    return groups


TERMS: Final = _read()
"""Search terms of an asset class, of a currency beside its code, of a coin; words of an event.

Ours, by judgement. The words of `rates` move the dollar and, with it, gold and shares. The first
class of events wins a tie, so those that say more come first.
"""

EVENT_PATTERNS: Final = {name: _pattern(words) for name, words in TERMS["event"].items()}
