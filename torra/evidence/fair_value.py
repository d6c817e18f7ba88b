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
jumped since that count, as it does at a split; where the value itself jumps from one day to the
next, the days before are left out. Pure functions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple

from torra.evidence.company_facts import Books, Filed
from torra.evidence.company_figures import Company
from torra.evidence.company_figures import read as read_company

FIVE_YEARS: Final = timedelta(days=1826)
LEAST_DAYS: Final = 250
"""Over how long a multiple is ranked, and how many days must lie behind a rank."""

LEAST_VALUES: Final = 100
"""Days that a rank needs beside it."""

JUMP: Final = 1.7
"""Factor between two closes from which a split is at least as likely as the market's own move."""

RESTATED: Final = 2.0
"""Factor between two market values from which shares or price were counted anew."""

RETURN: Final = 0.09
"""What a holder of shares asks for in a year; ours, the long run of shares."""

CHEAP, DEAR = 20.0, 80.0
"""Mean rank up to which a company is cheap among its own five years, and from which it is dear."""

MULTIPLES: Final[Mapping[str, tuple[str, int]]] = {
    **dict.fromkeys(("pe", "pb", "ev_ebitda"), ("x", 2)),
    "fcf_yield_pct": ("%", 2),
}
"""Each multiple with its unit and decimals."""

Closes = Sequence[tuple[date, float]]
"""Closes of whole days, UTC, oldest first."""


class Known(NamedTuple):
    """A company from the moment at which it looked so."""

    since: datetime
    company: Company


class Valuation(NamedTuple):
    """Multiples of the last close by name, their ranks, and what they come to."""

    multiples: Mapping[str, float | None]
    ranks: Mapping[str, float | None]
    implied_growth_pct: float | None = None

    @property
    def rank(self) -> float | None:
        """How dear the company is among its own five years, over all ranks: 100 is the dearest."""
        known = [rank for rank in self.ranks.values() if rank is not None]
        return sum(known) / len(known) if len(known) > 1 else None

    @property
    def word(self) -> str | None:
        """The mean rank as a word."""
        if self.rank is None:
            return None
        return "cheap" if self.rank <= CHEAP else "dear" if self.rank >= DEAR else "usual"


UNKNOWN: Final = Valuation(dict.fromkeys(MULTIPLES), dict.fromkeys(MULTIPLES))


def course(filed: Filed) -> tuple[Known, ...]:
    """Return how a company looked over the last five years, a row for each moment of news."""
    if not filed:
        return ()
    books, found = Books(), list[Known]()
    since = filed[-1].known_at - FIVE_YEARS - timedelta(days=LEAST_DAYS)
    for row, following in zip(filed, (*filed[1:], None), strict=True):
        books.hear(row)
        whole = following is None or following.known_at != row.known_at
        if whole and row.known_at >= since:
            company = read_company(books)
            if company is not None:
                found.append(Known(row.known_at, company))
    return tuple(found)


def value(known: Sequence[Known], closes: Closes, currency: str) -> Valuation:
    """Return what the last close pays for what is known; `currency` is that of the closes."""
    if not known or not closes or known[-1].company.abroad:
        return UNKNOWN
    paid = [*_paid(known, closes[_begin(closes) :], currency)]
    if not paid or paid[-1][0] != closes[-1][0]:
        return UNKNOWN
    days = _alike(paid)
    _, company, worth = days[-1]
    told = [(day, multiples(one, paid_then)) for day, one, paid_then in days]
    now = told[-1][1]
    ranks = {name: _rank(now[name], ((day, one[name]) for day, one in told)) for name in MULTIPLES}
    # A high yield is cheap.
    turned = ranks["fcf_yield_pct"]
    ranks["fcf_yield_pct"] = None if turned is None else 100.0 - turned
    return Valuation(now, ranks, implied_growth(company, worth))


def multiples(company: Company, worth: float) -> dict[str, float | None]:
    """Return the multiples of a market value; what is 0 or less has none."""
    cash, debt = company.cash, company.debt
    whole = None if cash is None or debt is None else worth + debt - cash
    flow = company.free_cash_flow
    return {
        "pe": _times(worth, company.net_income),
        "pb": _times(worth, company.equity),
        "ev_ebitda": _times(whole, company.ebitda),
        "fcf_yield_pct": 100.0 * flow / worth if flow is not None and flow > 0.0 else None,
    }


def implied_growth(company: Company, worth: float) -> float | None:
    """Return the yearly growth of free cash flow that a market value bets on, in percent."""
    flow = company.free_cash_flow
    if flow is None or flow <= 0.0:
        return None
    return 100.0 * (RETURN * worth - flow) / (worth + flow)


def _times(paid: float | None, earned: float | None) -> float | None:
    return None if paid is None or earned is None or earned <= 0.0 else paid / earned


def _begin(closes: Closes) -> int:
    return bisect_left(closes, (closes[-1][0] - FIVE_YEARS, 0.0))


Paid = tuple[date, Company, float]
"""A day, the company as it was known at its end, and its market value."""


def _paid(known: Sequence[Known], closes: Closes, currency: str) -> Iterator[Paid]:
    """Yield the days with a market value."""
    moments = [one.since for one in known]
    jumped, before = date.min, closes[0][1]
    for day, close in closes:
        if not before / JUMP < close < before * JUMP:
            jumped = day
        before = close
        ends = datetime.combine(day, time(), UTC) + timedelta(days=1)
        count = bisect_right(moments, ends)
        if not count:
            continue
        company = known[count - 1].company
        counted, shares = company.counted, company.shares
        good = company.currency == currency and day - company.ends <= company.valid
        if good and counted is not None and shares and jumped <= counted and close > 0.0:
            yield day, company, close * shares


def _alike(paid: Sequence[Paid]) -> Sequence[Paid]:
    """Return the days since the market value jumped last."""
    begin = 0
    for number in range(1, len(paid)):
        ratio = paid[number][2] / paid[number - 1][2]
        if not 1.0 / RESTATED < ratio < RESTATED:
            begin = number
    return paid[begin:]


def _rank(now: float | None, days: Iterable[tuple[date, float | None]]) -> float | None:
    """Return the rank of today's value among the days; None of too few."""
    told = [(day, found) for day, found in days if found is not None]
    if now is None or len(told) < LEAST_VALUES or (told[-1][0] - told[0][0]).days < LEAST_DAYS:
        return None
    ordered = sorted(found for _, found in told)
    below = bisect_left(ordered, now)
    equal = bisect_right(ordered, now) - below
    return 100.0 * (below + equal / 2.0) / len(ordered)
