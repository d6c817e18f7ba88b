"""What a company's figures come to, of what was known at a moment: growth, margins, strength.

`read` takes what a company had reported and returns the figures of the newest period that it told.
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

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

from torra.evidence.company_facts import (
    ANNUAL,
    FIGURES,
    SLACK,
    TO_DATE,
    Books,
    FigureHistory,
    at_day,
    days,
    of_year,
)

REPORT_DELAY: Final = timedelta(days=120)
"""How long after its end a period may be reported: a late year of a foreign company."""

LAST_ENDS: Final = 4
"""Ends of periods from which it is told how often a company reports."""

READ_BACK: Final = timedelta(days=4 * 366)
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

    `amounts` are in `currency` of a trailing year or of the day `ends`, its `shares` were counted
    at `counted`; `ratios` are named as their features (company.roe_pct). `valid` is how long after
    `ends` they count. `abroad` says that it files as a foreign company does, whose shares may trade
    in bundles of another number. `reported` is the net income of the newest period itself, however
    short.
    """

    ends: date
    filed: datetime
    source: str
    currency: str
    valid: timedelta
    abroad: bool = False
    reported: float = 0.0
    counted: date | None = None
    amounts: Mapping[str, float | None] = field(default_factory=dict)
    ratios: Mapping[str, float | None] = field(default_factory=dict)


class _Year(NamedTuple):
    """What was reported of the year up to a day; nothing where no report tells of such a year.

    A number that is not known is NaN, and so is all that is made of it.
    """

    history: Callable[[str], FigureHistory]
    ends: date | None

    def of(self, figure: str) -> float:
        """Return a figure of the year."""
        return self._read(of_year, figure)

    def at(self, figure: str) -> float:
        """Return a figure of the year's last day."""
        return self._read(at_day, figure)

    def _read(self, of: Callable[[FigureHistory, date], float | None], figure: str) -> float:
        value = None if self.ends is None else of(self.history(figure), self.ends)
        return math.nan if value is None else value

    @property
    def gross(self) -> float:
        """Gross profit; without one, revenue less its cost."""
        reported = self.of("gross_profit")
        computed = self.of("revenue") - self.of("cost_of_revenue")
        return computed if math.isnan(reported) else reported

    @property
    def debt(self) -> float:
        """Long-term and short-term debt."""
        return self.at("long_term_debt") + self.at("short_term_debt")

    @property
    def invested(self) -> float:
        """Equity and debt less cash."""
        return self.at("equity") + self.debt - self.at("cash")

    @property
    def liquidity(self) -> float:
        """Current assets over current liabilities."""
        return _ratio(self.at("current_assets"), self.at("current_liabilities"))


def read(books: Books) -> CompanyFigures | None:
    """Return the figures of the newest period of a net income; None before there is one."""
    newest = books.newest("net_income")
    if newest is None:
        return None
    ends = newest.ends.date()

    @cache
    def history(figure: str) -> FigureHistory:
        unit = "shares" if FIGURES[figure].unit == "shares" else newest.unit
        return books.history(figure, unit, ends - READ_BACK)

    year_ends = _year_ends(history, ends)
    years = [_Year(history, day) for day in (*year_ends, None, None)][:3]
    now = years[0]
    counted, shares = _shares(history, ends, newest.ticker)
    amounts = {
        "revenue": now.of("revenue"),
        "net_income": now.of("net_income"),
        "ebitda": now.of("operating_income") + now.of("depreciation"),
        "free_cash_flow": now.of("operating_cash_flow") - now.of("capital_expenditure"),
        "equity": now.at("equity"),
        "debt": now.debt,
        "cash": now.at("cash"),
        "shares": shares,
    }
    ratios = _ratios(years, amounts, _dilution(history, year_ends))
    return CompanyFigures(
        ends=ends,
        filed=books.known_at(ends) or newest.known_at,
        source=newest.source,
        currency=newest.unit,
        valid=_valid(history),
        abroad=" 20-F" in newest.source or " 40-F" in newest.source,
        reported=newest.value,
        counted=counted,
        amounts=_without_nan(amounts),
        ratios=_without_nan(ratios),
    )


def _without_nan(numbers: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in numbers.items()}


def _ratios(years: list[_Year], amounts: Mapping[str, float], dilution: float) -> dict[str, float]:
    now, before, _ = years
    revenue, income = amounts["revenue"], amounts["net_income"]
    operating, equity = now.of("operating_income"), (now.at("equity"), before.at("equity"))
    # A loss before tax has no rate of tax.
    tax = _ratio(now.of("income_tax"), now.of("pretax_income"))
    earned = operating * (1.0 - tax) if 0.0 <= tax <= MOST_TAX else math.nan
    return {
        "revenue_growth_pct": _growth(revenue, before.of("revenue")),
        "earnings_growth_pct": _growth(income, before.of("net_income")),
        "gross_margin_pct": 100.0 * _ratio(now.gross, revenue),
        "operating_margin_pct": 100.0 * _ratio(operating, revenue),
        "net_margin_pct": 100.0 * _ratio(income, revenue),
        "fcf_margin_pct": 100.0 * _ratio(amounts["free_cash_flow"], revenue),
        "roe_pct": 100.0 * _ratio(income, _mean(*equity)) if min(equity) > 0.0 else math.nan,
        "roic_pct": 100.0 * _ratio(earned, _mean(now.invested, before.invested)),
        "debt_to_equity": _ratio(now.debt, equity[0]),
        "interest_cover": _ratio(operating, now.of("interest_expense")),
        "accruals_pct": 100.0
        * _ratio(
            income - now.of("operating_cash_flow"), _mean(now.at("assets"), before.at("assets"))
        ),
        "dilution_pct": dilution,
        "f_score": _f_score(years, dilution),
    }


def _f_score(years: list[_Year], dilution: float) -> float:
    """Return how many of the nine signs hold; NaN where one cannot be told."""
    now, before, _ = years
    income, cash_flow = now.of("net_income"), now.of("operating_cash_flow")
    assets = [year.at("assets") for year in years]
    signs = (
        (income, 0.0),
        (cash_flow, 0.0),
        (_ratio(income, assets[1]), _ratio(before.of("net_income"), assets[2])),
        (cash_flow, income),
        # The signs that are better when they fall stand the other way round.
        (
            _ratio(before.at("long_term_debt"), _mean(assets[1], assets[2])),
            _ratio(now.at("long_term_debt"), _mean(assets[0], assets[1])),
        ),
        (now.liquidity, before.liquidity),
        (_ratio(now.gross, now.of("revenue")), _ratio(before.gross, before.of("revenue"))),
        (_ratio(now.of("revenue"), assets[1]), _ratio(before.of("revenue"), assets[2])),
        (0.0, dilution),
    )
    if any(math.isnan(better + worse) for better, worse in signs):
        return math.nan
    return float(sum(better > worse for better, worse in signs) + (dilution == 0.0))


def _year_ends(history: Callable[[str], FigureHistory], ends: date) -> list[date]:
    """Return the end of the newest year, and the ends of the two before as far as they are told."""
    year_ends = [ends]
    known = {end for name in ("net_income", "assets") for _, end in history(name).periods}
    for _ in range(2):
        near = [day for day in known if (year_ends[-1] - day).days in ANNUAL]
        if not near:
            break
        year_ends.append(min(near, key=lambda day: abs((year_ends[-1] - day).days - 365)))
    return year_ends


def _valid(history: Callable[[str], FigureHistory]) -> timedelta:
    """Return how long after its end the newest period counts: until the next one is reported."""
    ends = sorted({end for _, end in history("net_income").periods})[-LAST_ENDS:]
    steps = [(last - first).days for first, last in pairwise(ends)]
    usual = min((step for step in steps if step >= TO_DATE.start), default=ANNUAL.start)
    return timedelta(days=min(usual, ANNUAL.stop)) + REPORT_DELAY


def _shares(
    history: Callable[[str], FigureHistory], ends: date, ticker: str
) -> tuple[date | None, float]:
    """Return the day of the newest count of shares, and it; the mean of a period where none is.

    NaN where count and mean differ so much that one of them is no count of all shares.
    """
    counts = {day: count.value for (_, day), count in history("shares_outstanding").periods.items()}
    diluted = history("diluted_shares")
    period = min(diluted.ending(ends), key=days, default=None)
    mean = None if period is None else diluted.periods[period].value
    newest = max(counts, default=None)
    if newest is not None and newest >= ends - timedelta(days=SLACK):
        good = mean is None or mean / SAME_COUNT < counts[newest] < mean * SAME_COUNT
        return (newest, counts[newest]) if good else (None, math.nan)
    if mean is None or SHARE_CLASS.fullmatch(ticker):
        return None, math.nan
    return ends, mean


def _dilution(history: Callable[[str], FigureHistory], year_ends: list[date]) -> float:
    """Return by how many percent the diluted shares grew in a year."""
    diluted = history("diluted_shares")
    newest = min(diluted.ending(year_ends[0]), key=days, default=None)
    if newest is None or len(year_ends) == 1:
        return math.nan
    former = (
        diluted.periods[period].value
        for period in diluted.ending(year_ends[1])
        if abs(days(period) - days(newest)) <= SLACK
    )
    return _growth(diluted.periods[newest].value, next(former, math.nan))


def _mean(begin: float, end: float) -> float:
    return (begin + end) / 2.0


def _ratio(part: float, whole: float) -> float:
    """Return a part of a whole; a whole of 0 or less, or next to it, is no whole."""
    ratio = part / whole if whole > 0.0 else math.nan
    return ratio if abs(ratio) <= LARGEST else math.nan


def _growth(now: float, before: float) -> float:
    return 100.0 * (_ratio(now, before) - 1.0)
