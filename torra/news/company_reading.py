"""Turns Finnhub's replies about a company into numbers by names of ours: pure, trusting nothing.

Four replies are read: basic financials, the counts of analysts' ratings, the company's peers, and
its last quarters' earnings. All are snapshots of now: none says when it was known, so each counts
from the moment at which this desk first saw it. A number is finite or not there; a reply of another
shape is `broken`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

from torra.evidence.news_digest import NewsAnswer, NewsStatus
from torra.news.reading import finite, of_another_shape
from torra.trading_terms import TICKER

QUARTERS: Final = 4
MOST_PEERS: Final = 8
MOST_ROWS: Final = 400
"""Rows of a reply that are looked at."""

MOST_ANALYSTS: Final = 1000.0
DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _metrics() -> dict[str, list[str]]:
    with Path(__file__).with_name("metrics.csv").open(encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter=";")
        return {row["figure"]: row["names"].split("|") for row in rows}


METRICS: Final[Mapping[str, list[str]]] = _metrics()
"""Our figures, and under which of Finnhub's names each is looked for, in turn (metrics.csv)."""

RATINGS: Final[Mapping[str, str]] = {
    f"rating.{name}": re.sub("_(.)", lambda match: match[1].upper(), name)
    for name in ("strong_buy", "buy", "hold", "sell", "strong_sell")
}
"""Counts of analysts, and Finnhub's names of them: strongBuy."""

EARNINGS: Final = {"actual": "actual", "estimate": "estimate", "surprise_pct": "surprisePercent"}


def metrics(payload: object) -> NewsAnswer:
    """Read basic financials: the finite numbers among those that we use."""
    metric = payload.get("metric") if isinstance(payload, dict) else None
    if not isinstance(metric, dict):
        return of_another_shape(payload, "finnhub")
    numbers = {name: _numbers(metric, {key: key for key in keys}) for name, keys in METRICS.items()}
    return _answer({name: next(iter(some.values())) for name, some in numbers.items() if some})


def ratings(payload: object) -> NewsAnswer:
    """Read the counts of the newest period, wherever it stands."""
    if not isinstance(payload, list):
        return of_another_shape(payload, "finnhub")
    figures: dict[str, float] = {}
    for day, row in _newest(payload, 1):
        counts = _numbers(row, RATINGS)
        # Counts without one of them would lean to a side.
        if len([n for n in counts.values() if 0.0 <= n <= MOST_ANALYSTS]) == len(RATINGS):
            figures = counts | {"rating.period": day}
    return _answer(figures, empty=not payload)


def peers(payload: object, ticker: str) -> NewsAnswer:
    """Read the peers of a company, without itself: of each its place, from 1."""
    if not isinstance(payload, list):
        return of_another_shape(payload, "finnhub")
    names = [name.strip().upper() for name in payload[:MOST_ROWS] if isinstance(name, str)]
    good = [name for name in dict.fromkeys(names) if TICKER.fullmatch(name) and name != ticker]
    figures = {f"peer.{name}": float(place) for place, name in enumerate(good[:MOST_PEERS], 1)}
    # A company may be the only one of its kind.
    return _answer(figures, empty=not payload or ticker in names)


def earnings(payload: object) -> NewsAnswer:
    """Read actual, estimate and surprise of the last quarters; 1 is the newest."""
    if not isinstance(payload, list):
        return of_another_shape(payload, "finnhub")
    figures: dict[str, float] = {}
    for place, (day, row) in enumerate(_newest(payload, QUARTERS), 1):
        keys = {f"earnings.{place}.{name}": key for name, key in EARNINGS.items()}
        if numbers := _numbers(row, keys):
            figures |= numbers | {f"earnings.{place}.period": day}
    return _answer(figures, empty=not payload)


def _numbers(row: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, float]:
    """Return the finite numbers of a row by names of ours."""
    numbers = {name: finite(row.get(key)) for name, key in keys.items()}
    return {name: number for name, number in numbers.items() if number is not None}


def _newest(rows: list[Any], count: int) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """Yield the rows of the newest periods, each period once, with its last day as 20251231."""
    by_day: dict[date, Mapping[str, Any]] = {}
    for row in rows[:MOST_ROWS]:
        text = row.get("period") if isinstance(row, dict) else None
        try:
            if isinstance(text, str) and DATE.fullmatch(text):
                by_day.setdefault(date.fromisoformat(text), row)
        except ValueError:
            continue
    for day in sorted(by_day, reverse=True)[:count]:
        yield float(day.strftime("%Y%m%d")), by_day[day]


def _answer(figures: Mapping[str, float], *, empty: bool = True) -> NewsAnswer:
    """Return numbers; without any, `empty` says that the reply has none to tell."""
    if not figures and not empty:
        return NewsAnswer(NewsStatus.BROKEN, detail="no row could be read")
    return NewsAnswer(NewsStatus.AVAILABLE if figures else NewsStatus.EMPTY, figures=figures)
