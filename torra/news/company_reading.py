"""Turns Finnhub's replies about a company into numbers by names of ours: pure, trusting nothing.

Four replies are read: basic financials, the counts of analysts' ratings, the company's peers, and
its last quarters' earnings. All are snapshots of now: none says when it was known, so each counts
from the moment at which this desk first saw it. A number is finite or not there; a reply of another
shape is `broken`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from agents.features import rows_of
from torra.evidence.news_digest import NewsAnswer, NewsStatus
from torra.news.reading import finite, objects, of_another_shape
from torra.trading_terms import TICKER

QUARTERS: Final = [f"earnings.{place}" for place in range(1, 5)]
"""The last quarters, 1 is the newest; before the names of their figures."""

MOST_PEERS: Final = 8
MOST_ROWS: Final = 400
"""Rows of a reply that are looked at."""

MOST_ANALYSTS: Final = 1000.0

METRICS: Final = {
    row["figure"]: row["names"].split("|")
    for row in rows_of(Path(__file__).with_name("metrics.csv"))
}
"""Our figures, and under which of Finnhub's names each is looked for, in turn."""

RATINGS: Final = {
    name: re.sub("_(.)", lambda match: match[1].upper(), name)
    for name in ("strong_buy", "buy", "hold", "sell", "strong_sell")
}
"""Counts of analysts, and Finnhub's names of them: strongBuy."""

EARNINGS: Final = {"actual": "actual", "estimate": "estimate", "surprise_pct": "surprisePercent"}


def metrics(payload: object) -> NewsAnswer:
    """Read basic financials: the finite numbers among those that we use."""
    metric = payload.get("metric") if isinstance(payload, dict) else None
    if not isinstance(metric, dict):
        return of_another_shape(payload, "finnhub")
    # Of several names the first counts: it is taken last.
    return _answer({
        name: number
        for name, keys in METRICS.items()
        for key in reversed(keys)
        if (number := finite(metric.get(key))) is not None
    })  # fmt: skip


def ratings(payload: object) -> NewsAnswer:
    """Read the counts of the newest period, wherever it stands."""

    def whole(counts: Collection[float]) -> bool:
        # Counts without one of them would lean to a side.
        return len(counts) == len(RATINGS) and all(0.0 <= n <= MOST_ANALYSTS for n in counts)

    return _by_period(payload, ["rating"], RATINGS, whole)


def earnings(payload: object) -> NewsAnswer:
    """Read actual, estimate and surprise of the last quarters."""
    return _by_period(payload, QUARTERS, EARNINGS, bool)


def peers(payload: object, ticker: str) -> NewsAnswer:
    """Read the peers of a company, without itself: of each its place, from 1."""
    if not isinstance(payload, list):
        return of_another_shape(payload, "finnhub")
    names = [name.strip().upper() for name in payload[:MOST_ROWS] if isinstance(name, str)]
    good = [name for name in dict.fromkeys(names) if TICKER.fullmatch(name) and name != ticker]
    figures = {f"peer.{name}": float(place) for place, name in enumerate(good[:MOST_PEERS], 1)}
    # A company may be the only one of its kind.
    return _answer(figures, empty=not payload or ticker in names)


def _by_period(
    payload: object,
    prefixes: Sequence[str],
    names: Mapping[str, str],
    usable: Callable[[Collection[float]], bool],
) -> NewsAnswer:
    """Read the rows of the newest periods, one for each prefix, by names of ours.

    A period counts once, and its last day is the number 20251231.
    """
    if not isinstance(payload, list):
        return of_another_shape(payload, "finnhub")
    periods: dict[datetime, dict[str, Any]] = {}
    for row in objects(payload[:MOST_ROWS]):
        with suppress(ValueError, TypeError):
            day = datetime.strptime(row.get("period", ""), "%Y-%m-%d")  # noqa: DTZ007  a day has no zone
            periods.setdefault(day, row)
    figures: dict[str, float] = {}
    newest = sorted(periods.items(), reverse=True)
    for prefix, (day, row) in zip(prefixes, newest, strict=False):
        numbers = {
            f"{prefix}.{name}": number
            for name, key in names.items()
            if (number := finite(row.get(key))) is not None
        }
        if usable(numbers.values()):
            figures |= numbers | {f"{prefix}.period": float(f"{day:%Y%m%d}")}
    return _answer(figures, empty=not payload)


def _answer(figures: Mapping[str, float], *, empty: bool = True) -> NewsAnswer:
    """Return numbers; without any, `empty` says that the reply has none to tell."""
    if not figures and not empty:
        return NewsAnswer(NewsStatus.BROKEN, detail="no row could be read")
    return NewsAnswer(NewsStatus.AVAILABLE if figures else NewsStatus.EMPTY, figures=figures)
