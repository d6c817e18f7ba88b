"""What the market pays for a company: multiples, how dear they are among five years, what it bets.

Nothing is forecast. A multiple sets the last day's close against a trailing year; its rank says how
dear that is among the company's own last five years, each day with what was known of it then:

    P/E          market value / net income                  P/B   market value / equity
    EV/EBITDA    (market value + debt - cash) / (operating income + depreciation)
    FCF yield    100 free cash flow / market value
    rank         100 (cheaper days + equal days / 2) / days; 100 is the dearest
    implied      100 (r V - F) / (V + F): by how much free cash flow F must grow each year, for
                 ever, so that it is worth the market value V at r = 9 % (Gordon and Shapiro, 1956)

A loss, and whatever else is 0 or less, has no multiple: a dearer price never makes a company look
cheaper. Market value is the close times the newest count of shares. It is None where the price has
jumped since that count, as it does at a split. Where the count of shares jumps, and no price that
is here jumped against it, the days before are of other shares and are left out.

`piece` makes the features company.* of it. A company that has told nothing has no features but
Nones, and so has one whose newest period is too old to count. Pure functions.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import Final

from agents.features import ids_of
from torra.evidence.company_facts import Books, Filed
from torra.evidence.company_figures import (
    REPORT_DELAY,
    CompanyFigures,
    ratio,
    without_nan,
)
from torra.evidence.company_figures import read as read_company
from torra.evidence.news_digest import NewsSubject
from torra.evidence.outside_numbers import Closes, rank_of
from torra.evidence.outside_readings import FIVE_YEARS, NEWEST, Piece, SeriesValue
from torra.evidence.scheduled_events import EVERY_CURRENCY

LEAST_DAYS: Final = 250
"""Over how long a multiple is ranked, and how many days must lie behind a rank."""

MOST_MOMENTS: Final = 250
"""Moments of news of a company that are looked at: five years of filings are fifty."""

LEAST_VALUES: Final = 100
"""Days that a rank needs beside it."""

JUMP: Final = 1.22
"""Factor between two closes from which a split may lie between them: the smallest usual is 5:4."""

RECOUNTED: Final = 1.15
"""Factor between two counts of shares from which they were split, put together, or issued anew."""

HUNDREDTHS: Final = frozenset(("GBP", "ILS", "ZAR"))
"""Currencies whose shares are quoted in hundredths: a close says nothing beside a report."""

NEAR_CLOSE: Final = timedelta(days=10)
"""How old the last close may be: a long weekend and a holiday."""

RETURN: Final = 0.09
"""What a holder of shares asks for in a year; ours, the long run of shares."""

CHEAP, DEAR = 20.0, 80.0
"""Mean rank up to which a company is cheap among its own five years, and from which it is dear."""

CURRENCY: Final = "USD"
"""What the closes of a symbol count in whose profile names no currency."""

NOBODY: Final = Piece(dict.fromkeys(ids_of("company")), None, REPORT_DELAY)
"""The features of a company of which nothing is known."""

Course = Mapping[datetime, CompanyFigures]
"""How a company looked from each moment of news on, oldest first."""


def course(filed: Filed) -> Course:
    """Return how a company looked over the last five years."""
    books, known = Books(), dict[datetime, CompanyFigures]()
    if not filed:
        return known
    since = filed[-1].known_at - FIVE_YEARS - timedelta(days=LEAST_DAYS)
    # Of a file with a moment for each value the newest moments.
    late = sorted({row.known_at for row in filed})[-MOST_MOMENTS:]
    for moment, rows in groupby(filed, key=lambda row: row.known_at):
        for row in rows:
            books.add(row)
        if moment >= max(since, late[0]) and (company := read_company(books)) is not None:
            known[moment] = company
    return known


def piece(known: Course, subject: NewsSubject, closes: Closes, today: date) -> Piece:
    """Return the features of a company at the last of the closes.

    A report of which nothing can be told, as the first quarter of a company, has no features.
    """
    if not known:
        return NOBODY
    company = [*known.values()][-1]
    currencies = {*subject.currencies} - {EVERY_CURRENCY} or {CURRENCY}
    values = {**company.ratios, **value(known, closes, currencies, today)}
    numbers = {name: values.get(name.partition(".")[2]) for name in NOBODY.numbers}
    if any(number is not None for number in numbers.values()):
        numbers["company.period_end"] = company.ends.isoformat()
        numbers["company.filed"] = company.filed.date().isoformat()
    ends = datetime.combine(company.ends, time(), UTC)
    report = SeriesValue(company.reported, ends, company.filed, company.source)
    return Piece(numbers, ends, company.valid, {NEWEST: report})


def value(
    known: Course, closes: Closes, currencies: Collection[str], today: date
) -> dict[str, float | str | None]:
    """Return what the last close pays for what is known, by feature after `company.`.

    Closes count in `currencies`. Empty where nothing can be told.
    """
    if not known or not closes or today - closes[-1][0] > NEAR_CLOSE:
        return {}
    company = [*known.values()][-1]
    if company.abroad or company.currency in HUNDREDTHS or company.currency not in currencies:
        return {}
    begin = bisect_left(closes, (closes[-1][0] - FIVE_YEARS, 0.0))
    paid = _paid(known, closes[begin:])
    if not paid or paid[-1][0] != closes[-1][0]:
        return {}
    days = [(day, multiples(then, worth)) for day, then, worth in paid]
    now = days[-1][1]
    ranks = {
        f"{name.removesuffix('_pct')}_rank": _rank([(day, row[name]) for day, row in days])
        for name in now
    }
    # A high yield is cheap.
    ranks["fcf_yield_rank"] = 100.0 - ranks["fcf_yield_rank"]
    known_ranks = [rank for rank in ranks.values() if not math.isnan(rank)]
    dear = sum(known_ranks) / len(known_ranks) if len(known_ranks) > 1 else math.nan
    growth = implied_growth(company, paid[-1][2])
    return {
        **without_nan({**now, **ranks, "valuation_rank": dear, "implied_growth_pct": growth}),
        "valuation": _word(dear),
    }


def _word(dear: float) -> str | None:
    if math.isnan(dear):
        return None
    return "cheap" if dear <= CHEAP else "dear" if dear >= DEAR else "usual"


def multiples(company: CompanyFigures, worth: float) -> dict[str, float]:
    """Return the multiples of a market value; what is 0 or less has none: NaN."""
    amounts = company.amounts
    whole, flow = worth + amounts["debt"] - amounts["cash"], amounts["free_cash_flow"]
    return {
        "pe": ratio(worth, amounts["net_income"]),
        "pb": ratio(worth, amounts["equity"]),
        "ev_ebitda": ratio(whole, amounts["ebitda"]) if whole > 0.0 else math.nan,
        "fcf_yield_pct": 100.0 * flow / worth if flow > 0.0 else math.nan,
    }


def implied_growth(company: CompanyFigures, worth: float) -> float:
    """Return the yearly growth of free cash flow that a market value bets on, in percent."""
    flow = company.amounts["free_cash_flow"]
    return 100.0 * (RETURN * worth - flow) / (worth + flow) if flow > 0.0 else math.nan


Paid = tuple[date, CompanyFigures, float]
"""A day, the company as it was known at its end, and its market value."""


def _paid(known: Course, closes: Closes) -> list[Paid]:
    """Return the days with a market value, of the shares that are counted today.

    A day counts with what was known at its end, the last one with what is known now.
    """
    moments, companies = [*known], [*known.values()]
    jumped, before = date.min, closes[0][1]
    paid, last = list[Paid](), closes[-1][0]
    shares_before, moved = 0.0, 1.0
    for day, close in closes:
        if not before / JUMP < close < before * JUMP:
            jumped, moved = day, moved * close / before
        before = close
        ends = datetime.combine(day, time(), UTC) + timedelta(days=1)
        count = len(known) if day == last else bisect_right(moments, ends)
        company = companies[count - 1]
        counted, shares = company.counted, company.amounts["shares"]
        if not count or company.currency != companies[-1].currency or close <= 0.0:
            continue
        if counted is None or jumped > counted:
            continue
        if shares_before and _recounted(shares / shares_before, moved):
            paid.clear()
        if shares != shares_before:
            shares_before, moved = shares, 1.0
        if day - company.ends <= company.valid:
            paid.append((day, company, close * shares))
    return paid


def _recounted(shares: float, moved: float) -> bool:
    """Tell whether shares were counted anew, and prices did not move against that.

    `shares` is the new count over the old one, `moved` the price's own jumps meanwhile.
    """
    if 1.0 / RECOUNTED < shares < RECOUNTED:
        return False
    return not 1.0 / JUMP < shares * moved < JUMP


def _rank(days: Sequence[tuple[date, float]]) -> float:
    """Return the rank of the last value among the days that have one; NaN of too few."""
    known = [(day, number) for day, number in days if not math.isnan(number)]
    if math.isnan(days[-1][1]) or len(known) < LEAST_VALUES:
        return math.nan
    if (known[-1][0] - known[0][0]).days < LEAST_DAYS:
        return math.nan
    return rank_of(known[-1][1], [number for _, number in known])
