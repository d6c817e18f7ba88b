"""Turns what Finnhub sends about a company into numbers by names of ours: pure, trusting nothing.

Four replies are read: basic financials, the counts of analysts' ratings, the company's peers, and
its last quarters' earnings. All are snapshots of now: none says when it was known, so each counts
from the moment at which this desk first saw it. A number is finite or not there; a reply of another
shape is `broken`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, Final

from torra.evidence.news_digest import NewsAnswer, NewsStatus
from torra.news.reading import error_in, finite
from torra.trading_terms import TICKER

METRICS: Final[Mapping[str, tuple[str, ...]]] = {
    "pe": ("peTTM", "peBasicExclExtraTTM", "peAnnual"),
    "pb": ("pbQuarterly", "pb", "pbAnnual"),
    "ps": ("psTTM", "psAnnual"),
    "ev_ebitda": ("evEbitdaTTM", "evEbitdaAnnual"),
    "ev_revenue": ("evRevenueTTM", "evRevenueAnnual"),
    "price_to_fcf": ("pfcfShareTTM", "pfcfShareAnnual"),
    "market_cap_millions": ("marketCapitalization",),
    "enterprise_value_millions": ("enterpriseValue",),
    "eps": ("epsTTM", "epsAnnual"),
    "book_per_share": ("bookValuePerShareQuarterly", "bookValuePerShareAnnual"),
    "revenue_per_share": ("revenuePerShareTTM", "revenuePerShareAnnual"),
    "revenue_growth_pct": ("revenueGrowthTTMYoy", "revenueGrowthQuarterlyYoy"),
    "revenue_growth_5y_pct": ("revenueGrowth5Y",),
    "eps_growth_pct": ("epsGrowthTTMYoy", "epsGrowthQuarterlyYoy"),
    "eps_growth_5y_pct": ("epsGrowth5Y",),
    "gross_margin_pct": ("grossMarginTTM", "grossMarginAnnual"),
    "operating_margin_pct": ("operatingMarginTTM", "operatingMarginAnnual"),
    "net_margin_pct": ("netProfitMarginTTM", "netProfitMarginAnnual"),
    "roe_pct": ("roeTTM", "roeRfy"),
    "roa_pct": ("roaTTM", "roaRfy"),
    "roi_pct": ("roiTTM", "roiAnnual"),
    "debt_to_equity": ("totalDebt/totalEquityQuarterly", "totalDebt/totalEquityAnnual"),
    "current_ratio": ("currentRatioQuarterly", "currentRatioAnnual"),
    "interest_coverage": ("netInterestCoverageTTM", "netInterestCoverageAnnual"),
    "dividend_yield_pct": ("currentDividendYieldTTM", "dividendYieldIndicatedAnnual"),
    "payout_pct": ("payoutRatioTTM", "payoutRatioAnnual"),
    "beta": ("beta",),
}
"""Our figures, and under which of Finnhub's names each is looked for, in turn."""

RATINGS: Final[Mapping[str, str]] = {
    "strong_buy": "strongBuy",
    "buy": "buy",
    "hold": "hold",
    "sell": "sell",
    "strong_sell": "strongSell",
}
"""Counts of analysts, and Finnhub's names of them."""

QUARTERS: Final = 4
MOST_PEERS: Final = 8
MOST_ROWS: Final = 400
"""Rows of a reply that are looked at."""

MOST_ANALYSTS: Final = 1000.0
DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def metrics(payload: object) -> NewsAnswer:
    """Read basic financials: the finite numbers among those that we use."""
    metric = payload.get("metric") if isinstance(payload, dict) else None
    if not isinstance(metric, dict):
        return _another_shape(payload)
    read = {name: [finite(metric.get(key)) for key in keys] for name, keys in METRICS.items()}
    known = {name: [n for n in some if n is not None] for name, some in read.items()}
    return _answer({name: some[0] for name, some in known.items() if some})


def ratings(payload: object) -> NewsAnswer:
    """Read the counts of the newest period, wherever it stands."""
    if not isinstance(payload, list):
        return _another_shape(payload)
    found: dict[str, float] = {}
    for day, row in sorted(_by_period(payload), key=lambda one: one[0], reverse=True)[:1]:
        counts = {name: finite(row.get(key)) for name, key in RATINGS.items()}
        good = [n for n in counts.values() if n is not None and 0.0 <= n <= MOST_ANALYSTS]
        # Counts without one of them would lean to a side.
        if len(good) == len(RATINGS):
            found = {f"rating.{name}": n for name, n in counts.items() if n is not None}
            found["rating.period"] = _as_number(day)
    return _answer(found, empty=not payload)


def peers(payload: object, ticker: str) -> NewsAnswer:
    """Read the peers of a company, without itself: of each its place, from 1."""
    if not isinstance(payload, list):
        return _another_shape(payload)
    names = [one.strip().upper() for one in payload[:MOST_ROWS] if isinstance(one, str)]
    good = [one for one in dict.fromkeys(names) if TICKER.fullmatch(one) and one != ticker.upper()]
    found = {f"peer.{name}": float(place) for place, name in enumerate(good[:MOST_PEERS], 1)}
    # A company may be the only one of its kind.
    return _answer(found, empty=not payload or ticker.upper() in names)


def earnings(payload: object) -> NewsAnswer:
    """Read actual, estimate and surprise of the last quarters; 1 is the newest."""
    if not isinstance(payload, list):
        return _another_shape(payload)
    newest = sorted(_by_period(payload), key=lambda one: one[0], reverse=True)[:QUARTERS]
    found: dict[str, float] = {}
    for place, (day, row) in enumerate(newest, 1):
        keys = (("actual", "actual"), ("estimate", "estimate"), ("surprise_pct", "surprisePercent"))
        numbers = {name: finite(row.get(key)) for name, key in keys}
        known = {f"earnings.{place}.{name}": n for name, n in numbers.items() if n is not None}
        if known:
            found |= known | {f"earnings.{place}.period": _as_number(day)}
    return _answer(found, empty=not payload)


def _by_period(rows: list[Any]) -> Iterator[tuple[date, Mapping[str, Any]]]:
    """Yield the rows that have a period, each period once, with its last day."""
    told: set[date] = set()
    for row in rows[:MOST_ROWS]:
        text = row.get("period") if isinstance(row, dict) else None
        if not isinstance(text, str) or not DATE.fullmatch(text):
            continue
        try:
            day = date.fromisoformat(text)
        except ValueError:
            continue
        if day not in told:
            told.add(day)
            yield day, row


def _as_number(day: date) -> float:
    """Return a day as a number that a person can read: 20251231."""
    return float(day.year * 10_000 + day.month * 100 + day.day)


def _another_shape(payload: object) -> NewsAnswer:
    return error_in(payload, "finnhub") or NewsAnswer(
        NewsStatus.BROKEN, detail="a reply of another shape"
    )


def _answer(found: Mapping[str, float], *, empty: bool = True) -> NewsAnswer:
    """Return numbers; without any, `empty` says that the reply has none to tell."""
    if not found and not empty:
        return NewsAnswer(NewsStatus.BROKEN, detail="no row could be read")
    return NewsAnswer(NewsStatus.AVAILABLE if found else NewsStatus.EMPTY, figures=found)
