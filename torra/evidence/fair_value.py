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
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple

from torra.evidence.company_facts import Books, Filed
from torra.evidence.company_figures import LARGEST, CompanyFigures
from torra.evidence.company_figures import read as read_company

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
    company: CompanyFigures


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
    # Of a file with a moment for each value the newest moments.
    late = sorted({row.known_at for row in filed})[-MOST_MOMENTS:]
    since = max(since, late[0])
    for row, following in zip(filed, (*filed[1:], None), strict=True):
        books.hear(row)
        whole = following is None or following.known_at != row.known_at
        if whole and row.known_at >= since:
            company = read_company(books)
            if company is not None:
                found.append(Known(row.known_at, company))
    return tuple(found)


def value(
    known: Sequence[Known], closes: Closes, currencies: Collection[str], today: date
) -> Valuation:
    """Return what the last close pays for what is known; the closes count in `currencies`."""
    if not known or not closes or today - closes[-1][0] > NEAR_CLOSE:
        return UNKNOWN
    company = known[-1].company
    if company.abroad or company.currency in HUNDREDTHS or company.currency not in currencies:
        return UNKNOWN
    days = [*_paid(known, closes[_begin(closes) :])]
    if not days or days[-1][0] != closes[-1][0]:
        return UNKNOWN
    worth = days[-1][2]
    told = [(day, multiples(one, paid)) for day, one, paid in days]
    now = told[-1][1]
    ranks = {name: _rank(now[name], ((day, one[name]) for day, one in told)) for name in MULTIPLES}
    # A high yield is cheap.
    turned = ranks["fcf_yield_pct"]
    ranks["fcf_yield_pct"] = None if turned is None else 100.0 - turned
    return Valuation(now, ranks, implied_growth(company, worth))


def multiples(company: CompanyFigures, worth: float) -> dict[str, float | None]:
    """Return the multiples of a market value; what is 0 or less has none."""
    cash, debt = company.cash, company.debt
    whole = None if cash is None or debt is None else worth + debt - cash
    whole = None if whole is not None and whole <= 0.0 else whole
    flow = company.free_cash_flow
    return {
        "pe": _times(worth, company.net_income),
        "pb": _times(worth, company.equity),
        "ev_ebitda": _times(whole, company.ebitda),
        "fcf_yield_pct": 100.0 * flow / worth if flow is not None and flow > 0.0 else None,
    }


def implied_growth(company: CompanyFigures, worth: float) -> float | None:
    """Return the yearly growth of free cash flow that a market value bets on, in percent."""
    flow = company.free_cash_flow
    if flow is None or flow <= 0.0:
        return None
    return 100.0 * (RETURN * worth - flow) / (worth + flow)


def _times(paid: float | None, earned: float | None) -> float | None:
    if paid is None or earned is None or earned <= 0.0:
        return None
    found = paid / earned
    return found if found <= LARGEST else None


def _begin(closes: Closes) -> int:
    return bisect_left(closes, (closes[-1][0] - FIVE_YEARS, 0.0))


Paid = tuple[date, CompanyFigures, float]
"""A day, the company as it was known at its end, and its market value."""


def _paid(known: Sequence[Known], closes: Closes) -> list[Paid]:
    """Return the days with a market value, of the shares that are counted today.

    A day counts with what was known at its end, the last one with what is known now.
    """
    moments = [one.since for one in known]
    currency = known[-1].company.currency
    jumped, before = date.min, closes[0][1]
    found, last, held = list[Paid](), closes[-1][0], 0.0
    moved = 1.0
    for day, close in closes:
        if not before / JUMP < close < before * JUMP:
            jumped, moved = day, moved * close / before
        before = close
        ends = datetime.combine(day, time(), UTC) + timedelta(days=1)
        count = len(known) if day == last else bisect_right(moments, ends)
        company = known[count - 1].company if count else None
        if company is None or company.currency != currency or close <= 0.0:
            continue
        counted, shares = company.counted, company.shares
        if counted is None or not shares or jumped > counted:
            continue
        if held and _recounted(shares / held, moved):
            found.clear()
        if shares != held:
            held, moved = shares, 1.0
        if day - company.ends <= company.valid:
            found.append((day, company, close * shares))
    return found


def _recounted(shares: float, moved: float) -> bool:
    """Tell whether shares were counted anew, and prices did not move against that.

    `shares` is the new count over the old one, `moved` the price's own jumps meanwhile.
    """
    if 1.0 / RECOUNTED < shares < RECOUNTED:
        return False
    return not 1.0 / JUMP < shares * moved < JUMP


def _rank(now: float | None, days: Iterable[tuple[date, float | None]]) -> float | None:
    """Return the rank of today's value among the days; None of too few."""
    told = [(day, found) for day, found in days if found is not None]
    if now is None or len(told) < LEAST_VALUES or (told[-1][0] - told[0][0]).days < LEAST_DAYS:
        return None
    ordered = sorted(found for _, found in told)
    below = bisect_left(ordered, now)
    equal = bisect_right(ordered, now) - below
    return 100.0 * (below + equal / 2.0) / len(ordered)
