"""What a company's figures come to, of what was known at a moment: growth, margins, strength.

`read` takes what a company had reported and returns a `Company` of the newest period that it told.
Every figure is of a trailing year that ends with that period, or of that very day, and is compared
with the same a year before: no quarter is set against a year. Where a part is missing the figure is
None, and never 0. A ratio above 1e9 is none. Percent where a name says so:

    revenue growth    100 (revenue / revenue a year before - 1); earnings alike, from a profit
    gross margin      100 gross profit / revenue; without a gross profit, revenue less its cost
    return on equity  100 net income / mean equity of the year's two ends, both above 0
    ROIC              100 operating income (1 - tax / income before tax) / mean invested capital;
                      invested are equity and debt less cash
    interest cover    operating income / interest expense
    free cash flow    operating cash flow less capital expenditure
    accruals          100 (net income - operating cash flow) / mean assets (Sloan, 1996)
    dilution          percent by which the diluted shares of the newest period grew in a year
    F-score           nine signs of strength, 0 to 9 (Piotroski, 2000); issuing is a growth of the
                      diluted shares

A bank tells neither gross profit nor cost of revenue, so it has no gross margin. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Final

from torra.evidence.company_facts import (
    ANNUAL,
    NEAR_END,
    SLACK,
    TO_DATE,
    Books,
    FigureHistory,
    Period,
    at_day,
    days,
    of_year,
)
from torra.evidence.outside_numbers import FactRow

REPORT_DELAY: Final = timedelta(days=120)
"""How long after its end a period may be reported: a late year of a foreign company."""

LAST_ENDS: Final = 4
"""Ends of periods from which it is told how often a company reports."""

LOOKED_BACK: Final = timedelta(days=4 * 366)
"""How far back periods count: the F-score compares the year before last, and its parts begin a year
before that.
"""

SAME_COUNT: Final = 1.5
"""Factor by which a count of shares and the diluted mean may differ; beyond it one is wrong."""

SHARE_CLASS: Final = re.compile(r".+[.\-][A-Z]")
"""A ticker of one class of shares, such as BRK.B; means of all classes say nothing of its price."""

LARGEST: Final = 1e9
"""No ratio of a company is larger."""

MOST_TAX: Final = 0.5
"""A tax of more than this share of the income is no tax of a usual year."""


@dataclass(frozen=True, slots=True)
class CompanyFigures:
    """A company's figures at the newest period that was known: `ends`, known since `filed`.

    Amounts are in `currency` of a trailing year or of the day `ends`; `shares` were counted at
    `counted`. `valid` is how long after `ends` they count. `abroad` says that it files as a foreign
    company does, whose shares may trade in bundles of another number. `reported` is the net income
    of the newest period itself, however short.
    """

    ends: date
    filed: datetime
    source: str
    currency: str
    valid: timedelta
    abroad: bool = False
    reported: float = 0.0
    revenue: float | None = None
    net_income: float | None = None
    ebitda: float | None = None
    free_cash_flow: float | None = None
    equity: float | None = None
    debt: float | None = None
    cash: float | None = None
    shares: float | None = None
    counted: date | None = None
    revenue_growth_pct: float | None = None
    earnings_growth_pct: float | None = None
    gross_margin_pct: float | None = None
    operating_margin_pct: float | None = None
    net_margin_pct: float | None = None
    fcf_margin_pct: float | None = None
    roe_pct: float | None = None
    roic_pct: float | None = None
    debt_to_equity: float | None = None
    interest_cover: float | None = None
    accruals_pct: float | None = None
    dilution_pct: float | None = None
    f_score: float | None = None


RATIOS: Final[Mapping[str, tuple[str, int]]] = {
    **dict.fromkeys(
        (
            *("revenue_growth_pct", "earnings_growth_pct", "gross_margin_pct"),
            *("operating_margin_pct", "net_margin_pct", "fcf_margin_pct", "roe_pct", "roic_pct"),
        ),
        ("%", 2),
    ),
    "debt_to_equity": ("x", 2),
    "interest_cover": ("x", 2),
    "accruals_pct": ("% of assets", 2),
    "dilution_pct": ("%", 2),
    "f_score": ("of 9", 0),
}
"""What a company is judged by, with unit and decimals; features are named so (company.roe_pct)."""


def read(books: Books) -> CompanyFigures | None:
    """Return the figures of the newest period of a net income; None before there is one."""
    newest = books.newest("net_income")
    if newest is None:
        return None
    year = _Years(books, newest)
    revenue, income = year.of("revenue"), year.of("net_income")
    operating, cash_flow = year.of("operating_income"), _less(year, "capital_expenditure")
    filed = books.known_at(year.ends)
    shares = year.shares()
    return CompanyFigures(
        ends=year.ends,
        filed=filed or newest.known_at,
        source=newest.source,
        currency=newest.unit,
        valid=year.valid,
        abroad=" 20-F" in newest.source or " 40-F" in newest.source,
        reported=newest.value,
        revenue=revenue,
        net_income=income,
        ebitda=_sum(operating, year.of("depreciation")),
        free_cash_flow=cash_flow,
        equity=year.at("equity"),
        debt=_sum(year.at("long_term_debt"), year.at("short_term_debt")),
        cash=year.at("cash"),
        shares=shares[1] if shares else None,
        counted=shares[0] if shares else None,
        revenue_growth_pct=_growth(revenue, year.before("revenue")),
        earnings_growth_pct=_growth(income, year.before("net_income")),
        gross_margin_pct=_percent(_gross(year, 0), revenue),
        operating_margin_pct=_percent(operating, revenue),
        net_margin_pct=_percent(income, revenue),
        fcf_margin_pct=_percent(cash_flow, revenue),
        roe_pct=_on_equity(year, income),
        roic_pct=_on_capital(year, operating),
        debt_to_equity=_ratio(_debt(year, 0), _positive(year.at("equity"))),
        interest_cover=_ratio(operating, year.of("interest_expense")),
        accruals_pct=_accruals(year, income),
        dilution_pct=year.dilution(),
        f_score=_f_score(year),
    )


class _Years:
    """Figures of the year that ends at a day and of those before it, told in one currency."""

    def __init__(self, books: Books, newest: FactRow) -> None:
        self.ends = newest.ends.date()
        self._books = books
        self._currency = newest.unit
        self._ticker = newest.ticker
        self._told: dict[str, FigureHistory] = {}
        self._ends = [self.ends, *self._former(self.ends)]

    def _former(self, ends: date) -> list[date]:
        """Return the ends of the two years before."""
        found: list[date] = []
        known = {period[1] for name in ("net_income", "assets") for period in self.told(name).said}
        for _ in range(2):
            near = [day for day in known if (ends - day).days in ANNUAL]
            if not near:
                break
            ends = min(near, key=lambda day: abs((ends - day).days - 365))
            found.append(ends)
        return found

    def told(self, figure: str, unit: str = "") -> FigureHistory:
        """Return a figure by its periods."""
        held = self._told.get(figure)
        if held is None:
            since = self.ends - LOOKED_BACK
            held = self._told[figure] = self._books.told(figure, unit or self._currency, since)
        return held

    def of(self, figure: str, back: int = 0) -> float | None:
        """Return a figure of the year that ended so many years before."""
        if back >= len(self._ends):
            return None
        return of_year(self.told(figure), self._ends[back])

    def before(self, figure: str) -> float | None:
        """Return a figure of the year before."""
        return self.of(figure, 1)

    def at(self, figure: str, back: int = 0) -> float | None:
        """Return a figure of the day so many years before."""
        if back >= len(self._ends):
            return None
        return at_day(self.told(figure), self._ends[back])

    def mean(self, figure: str, back: int = 0) -> float | None:
        """Return the mean of a figure of a day, over the two ends of a year."""
        return _mean(self.at(figure, back), self.at(figure, back + 1))

    def shares(self) -> tuple[date, float] | None:
        """Return the newest count of shares and its day; the mean of a period where none is.

        None where count and mean differ so much that one of them is no count of all shares.
        """
        told = self.told("shares_outstanding", "shares")
        counted = {day: said.value for (_, day), said in told.said.items()}
        averaged = self._newest_diluted()
        mean = None if averaged is None else averaged[1]
        if counted and (newest := max(counted)) >= self.ends - timedelta(days=SLACK):
            count = counted[newest]
            good = mean is None or mean / SAME_COUNT < count < mean * SAME_COUNT
            return (newest, count) if good else None
        if mean is None or SHARE_CLASS.fullmatch(self._ticker):
            return None
        return self.ends, mean

    def dilution(self) -> float | None:
        """Return by how many percent the diluted shares grew in a year."""
        newest = self._newest_diluted()
        if newest is None or len(self._ends) == 1:
            return None
        period, value = newest
        former = [
            before.value
            for (begins, ends), before in self.told("diluted_shares", "shares").said.items()
            if abs((ends - self._ends[1]).days) <= NEAR_END
            and abs(days((begins, ends)) - days(period)) <= SLACK
        ]
        return _growth(value, former[0]) if former else None

    def _newest_diluted(self) -> tuple[Period, float] | None:
        """Return the shortest period that ends with the year, and its diluted shares."""
        told = self.told("diluted_shares", "shares").said
        ending = [one for one in told if abs((one[1] - self.ends).days) <= NEAR_END]
        return (found := min(ending, key=days), told[found].value) if ending else None

    @property
    def valid(self) -> timedelta:
        """How long after its end the newest period counts: until the next one is reported."""
        ends = sorted({period[1] for period in self.told("net_income").said})[-LAST_ENDS:]
        steps = [(last - first).days for first, last in pairwise(ends)]
        usual = min((step for step in steps if step >= TO_DATE.start), default=ANNUAL.start)
        return timedelta(days=min(usual, ANNUAL.stop)) + REPORT_DELAY


def _less(year: _Years, spent: str, back: int = 0) -> float | None:
    """Return the free cash flow of a year."""
    earned, out = year.of("operating_cash_flow", back), year.of(spent, back)
    return None if earned is None or out is None else earned - out


def _gross(year: _Years, back: int) -> float | None:
    told = year.of("gross_profit", back)
    if told is not None:
        return told
    revenue, cost = year.of("revenue", back), year.of("cost_of_revenue", back)
    return None if revenue is None or cost is None else revenue - cost


def _debt(year: _Years, back: int) -> float | None:
    return _sum(year.at("long_term_debt", back), year.at("short_term_debt", back))


def _on_equity(year: _Years, income: float | None) -> float | None:
    if _positive(year.at("equity")) is None or _positive(year.at("equity", 1)) is None:
        return None
    return _percent(income, year.mean("equity"))


def _on_capital(year: _Years, operating: float | None) -> float | None:
    """Return what the invested capital earns after tax; a loss before tax has no rate of tax."""
    tax = _ratio(year.of("income_tax"), _positive(year.of("pretax_income")))
    if operating is None or tax is None or not 0.0 <= tax <= MOST_TAX:
        return None
    return _percent(operating * (1.0 - tax), _mean(_invested(year, 0), _invested(year, 1)))


def _invested(year: _Years, back: int) -> float | None:
    invested = _sum(year.at("equity", back), _debt(year, back))
    cash = year.at("cash", back)
    return None if invested is None or cash is None else invested - cash


def _accruals(year: _Years, income: float | None) -> float | None:
    cash_flow = year.of("operating_cash_flow")
    apart = None if income is None or cash_flow is None else income - cash_flow
    return _percent(apart, year.mean("assets"))


def _f_score(year: _Years) -> float | None:
    """Return how many of the nine signs hold; None where one cannot be told."""
    begun, former = year.at("assets", 1), year.at("assets", 2)
    income, earlier = year.of("net_income"), year.before("net_income")
    revenue, before = year.of("revenue"), year.before("revenue")
    cash_flow, dilution = year.of("operating_cash_flow"), year.dilution()
    signs = (
        (income, 0.0),
        (cash_flow, 0.0),
        (_ratio(income, begun), _ratio(earlier, former)),
        (cash_flow, income),
        # The signs that are better when they fall stand the other way round.
        (_leverage(year, 1), _leverage(year, 0)),
        (_current(year, 0), _current(year, 1)),
        (_ratio(_gross(year, 0), revenue), _ratio(_gross(year, 1), before)),
        (_ratio(revenue, begun), _ratio(before, former)),
    )
    if dilution is None or any(one is None or other is None for one, other in signs):
        return None
    held = sum(one > other for one, other in signs if one is not None and other is not None)
    return float(held + (dilution <= 0.0))


def _leverage(year: _Years, back: int) -> float | None:
    return _ratio(year.at("long_term_debt", back), year.mean("assets", back))


def _current(year: _Years, back: int) -> float | None:
    return _ratio(year.at("current_assets", back), year.at("current_liabilities", back))


def _positive(value: float | None) -> float | None:
    return value if value is not None and value > 0.0 else None


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _mean(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else (one + other) / 2.0


def _ratio(part: float | None, whole: float | None) -> float | None:
    """Return a part of a whole; a whole of 0 or less, or next to it, is no whole."""
    if part is None or whole is None or whole <= 0.0:
        return None
    found = part / whole
    return found if abs(found) <= LARGEST else None


def _percent(part: float | None, whole: float | None) -> float | None:
    found = _ratio(part, whole)
    return None if found is None else 100.0 * found


def _growth(now: float | None, before: float | None) -> float | None:
    found = _ratio(now, before)
    return None if found is None else 100.0 * (found - 1.0)
