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
is here jumped against it, the days before are of other shares and are left out. Pure functions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import Final, NamedTuple

from torra.evidence.company_facts import Books, Filed
from torra.evidence.company_figures import LARGEST, CompanyFigures
from torra.evidence.company_figures import read as read_company
from torra.evidence.outside_numbers import rank_of

FIVE_YEARS: Final = timedelta(days=1826)
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

MULTIPLES: Final = ("pe", "pb", "ev_ebitda", "fcf_yield_pct")
Closes = Sequence[tuple[date, float]]
"""Closes of whole days, UTC, oldest first."""


class Known(NamedTuple):
    """A company from the moment at which it looked so."""

    since: datetime
    company: CompanyFigures


Numbers = dict[str, float | str | None]


def course(filed: Filed) -> tuple[Known, ...]:
    """Return how a company looked over the last five years, a row for each moment of news."""
    if not filed:
        return ()
    books, known = Books(), list[Known]()
    since = filed[-1].known_at - FIVE_YEARS - timedelta(days=LEAST_DAYS)
    # Of a file with a moment for each value the newest moments.
    late = sorted({row.known_at for row in filed})[-MOST_MOMENTS:]
    for moment, rows in groupby(filed, key=lambda row: row.known_at):
        for row in rows:
            books.add(row)
        if moment >= max(since, late[0]) and (company := read_company(books)) is not None:
            known.append(Known(moment, company))
    return tuple(known)


def value(
    known: Sequence[Known], closes: Closes, currencies: Collection[str], today: date
) -> Numbers:
    """Return what the last close pays for what is known, by feature after `company.`.

    Closes count in `currencies`. Empty where nothing can be told.
    """
    if not known or not closes or today - closes[-1][0] > NEAR_CLOSE:
        return {}
    company = known[-1].company
    if company.abroad or company.currency in HUNDREDTHS or company.currency not in currencies:
        return {}
    begin = bisect_left(closes, (closes[-1][0] - FIVE_YEARS, 0.0))
    paid = _paid(known, closes[begin:])
    if not paid or paid[-1][0] != closes[-1][0]:
        return {}
    days = [(day, multiples(then, worth)) for day, then, worth in paid]
    now = days[-1][1]
    ranks = {
        name: _rank(now[name], [(day, own) for day, row in days if (own := row[name]) is not None])
        for name in MULTIPLES
    }
    if (cheap := ranks.pop("fcf_yield_pct")) is not None:
        # A high yield is cheap.
        cheap = 100.0 - cheap
    ranks["fcf_yield"] = cheap
    known_ranks = [rank for rank in ranks.values() if rank is not None]
    dear = sum(known_ranks) / len(known_ranks) if len(known_ranks) > 1 else None
    return {
        **now,
        **{f"{name}_rank": rank for name, rank in ranks.items()},
        "valuation_rank": dear,
        "valuation": None if dear is None else _word(dear),
        "implied_growth_pct": implied_growth(company, paid[-1][2]),
    }


def _word(dear: float) -> str:
    return "cheap" if dear <= CHEAP else "dear" if dear >= DEAR else "usual"


def multiples(company: CompanyFigures, worth: float) -> dict[str, float | None]:
    """Return the multiples of a market value; what is 0 or less has none."""
    amounts = company.amounts
    cash, debt, flow = (amounts.get(name) for name in ("cash", "debt", "free_cash_flow"))
    whole = None if cash is None or debt is None else worth + debt - cash
    return {
        "pe": _times(worth, amounts.get("net_income")),
        "pb": _times(worth, amounts.get("equity")),
        "ev_ebitda": _times(whole, amounts.get("ebitda")),
        "fcf_yield_pct": 100.0 * flow / worth if flow is not None and flow > 0.0 else None,
    }


def implied_growth(company: CompanyFigures, worth: float) -> float | None:
    """Return the yearly growth of free cash flow that a market value bets on, in percent."""
    flow = company.amounts.get("free_cash_flow")
    if flow is None or flow <= 0.0:
        return None
    return 100.0 * (RETURN * worth - flow) / (worth + flow)


def _times(paid: float | None, earned: float | None) -> float | None:
    if paid is None or paid <= 0.0 or earned is None or earned <= 0.0:
        return None
    times = paid / earned
    return times if times <= LARGEST else None


Paid = tuple[date, CompanyFigures, float]
"""A day, the company as it was known at its end, and its market value."""


def _paid(known: Sequence[Known], closes: Closes) -> list[Paid]:
    """Return the days with a market value, of the shares that are counted today.

    A day counts with what was known at its end, the last one with what is known now.
    """
    moments = [row.since for row in known]
    currency = known[-1].company.currency
    jumped, before = date.min, closes[0][1]
    paid, last = list[Paid](), closes[-1][0]
    shares_before, moved = 0.0, 1.0
    for day, close in closes:
        if not before / JUMP < close < before * JUMP:
            jumped, moved = day, moved * close / before
        before = close
        ends = datetime.combine(day, time(), UTC) + timedelta(days=1)
        count = len(known) if day == last else bisect_right(moments, ends)
        company = known[count - 1].company if count else None
        if company is None or company.currency != currency or close <= 0.0:
            continue
        counted, shares = company.counted, company.amounts.get("shares")
        if counted is None or not shares or jumped > counted:
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


def _rank(now: float | None, days: Sequence[tuple[date, float]]) -> float | None:
    """Return the rank of today's value among the days that have one; None of too few."""
    if now is None or len(days) < LEAST_VALUES or (days[-1][0] - days[0][0]).days < LEAST_DAYS:
        return None
    return rank_of(now, [own for _, own in days])
