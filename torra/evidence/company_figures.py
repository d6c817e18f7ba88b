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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Final

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

    `amounts` are in `currency`, of a trailing year or of the day `ends`, NaN where they are not
    known; its `shares` were counted at `counted`. `ratios` are named as their features
    (company.roe_pct). `valid` is how long after `ends` they count. `abroad` says that it files as a
    foreign company does, whose shares may trade in bundles of another number. `reported` is the net
    income of the newest period itself, however short.
    """

    ends: date
    filed: datetime
    source: str
    currency: str
    valid: timedelta
    abroad: bool = False
    reported: float = 0.0
    counted: date | None = None
    amounts: Mapping[str, float] = field(default_factory=dict)
    ratios: Mapping[str, float | None] = field(default_factory=dict)


Histories = Mapping[str, FigureHistory]
Year = Mapping[str, float]
"""Every figure of the year up to a day, and what is made of some; NaN where it is not known."""


def read(books: Books) -> CompanyFigures | None:
    """Return the figures of the newest period of a net income; None before there is one."""
    newest = books.newest("net_income")
    if newest is None:
        return None
    ends = newest.ends.date()
    histories = {
        name: books.history(
            name, newest.unit if kind.unit == "money" else kind.unit, ends - READ_BACK
        )
        for name, kind in FIGURES.items()
    }
    year_ends = _year_ends(histories, ends)
    years = [_year(histories, day) for day in (*year_ends, None, None)][:3]
    counted, shares = _shares(histories, ends, newest.ticker)
    ratios = _ratios(years, _dilution(histories["diluted_shares"], year_ends))
    return CompanyFigures(
        ends=ends,
        filed=books.known_at(ends) or newest.known_at,
        source=newest.source,
        currency=newest.unit,
        valid=_valid(histories),
        abroad=" 20-F" in newest.source or " 40-F" in newest.source,
        reported=newest.value,
        counted=counted,
        amounts={**years[0], "shares": shares},
        ratios=without_nan(ratios),
    )


def without_nan(numbers: Mapping[str, float]) -> dict[str, float | None]:
    """Return numbers with None for what is not known."""
    return {name: None if math.isnan(value) else value for name, value in numbers.items()}


def _year(histories: Histories, ends: date | None) -> Year:
    """Return the year up to a day; nothing of it is known where no report tells of such a year."""
    figure_of = {"day": at_day, "period": of_year}
    year = {
        name: figure_of[kind.over](histories[name], ends) if ends else math.nan
        for name, kind in FIGURES.items()
    }
    if math.isnan(year["gross_profit"]):
        year["gross_profit"] = year["revenue"] - year["cost_of_revenue"]
    year["debt"] = year["long_term_debt"] + year["short_term_debt"]
    year["invested"] = year["equity"] + year["debt"] - year["cash"]
    year["ebitda"] = year["operating_income"] + year["depreciation"]
    year["free_cash_flow"] = year["operating_cash_flow"] - year["capital_expenditure"]
    return year


def _ratios(years: Sequence[Year], dilution: float) -> dict[str, float]:
    now, before, _ = years
    revenue, income, operating = (
        now[name] for name in ("revenue", "net_income", "operating_income")
    )
    least_equity = min(now["equity"], before["equity"])
    # A loss before tax has no rate of tax.
    tax = ratio(now["income_tax"], now["pretax_income"])
    earned = operating * (1.0 - tax) if 0.0 <= tax <= MOST_TAX else math.nan
    return {
        "revenue_growth_pct": _growth(revenue, before["revenue"]),
        "earnings_growth_pct": _growth(income, before["net_income"]),
        "gross_margin_pct": 100.0 * ratio(now["gross_profit"], revenue),
        "operating_margin_pct": 100.0 * ratio(operating, revenue),
        "net_margin_pct": 100.0 * ratio(income, revenue),
        "fcf_margin_pct": 100.0 * ratio(now["free_cash_flow"], revenue),
        "roe_pct": 100.0 * ratio(income, _mean("equity", now, before))
        if least_equity > 0.0
        else math.nan,
        "roic_pct": 100.0 * ratio(earned, _mean("invested", now, before)),
        "debt_to_equity": ratio(now["debt"], now["equity"]),
        "interest_cover": ratio(operating, now["interest_expense"]),
        "accruals_pct": 100.0
        * ratio(income - now["operating_cash_flow"], _mean("assets", now, before)),
        "dilution_pct": dilution,
        "f_score": _f_score(years, dilution),
    }


def _f_score(years: Sequence[Year], dilution: float) -> float:
    """Return how many of the nine signs hold; NaN where one cannot be told."""
    now, before, earlier = years
    income, cash_flow = now["net_income"], now["operating_cash_flow"]
    signs = (
        (income, 0.0),
        (cash_flow, 0.0),
        (ratio(income, before["assets"]), ratio(before["net_income"], earlier["assets"])),
        (cash_flow, income),
        # The signs that are better when they fall stand the other way round.
        (
            ratio(before["long_term_debt"], _mean("assets", before, earlier)),
            ratio(now["long_term_debt"], _mean("assets", now, before)),
        ),
        tuple(ratio(year["current_assets"], year["current_liabilities"]) for year in (now, before)),
        tuple(ratio(year["gross_profit"], year["revenue"]) for year in (now, before)),
        (ratio(now["revenue"], before["assets"]), ratio(before["revenue"], earlier["assets"])),
        (0.0, dilution),
    )
    if any(math.isnan(better + worse) for better, worse in signs):
        return math.nan
    return float(sum(better > worse for better, worse in signs) + (dilution == 0.0))


def _year_ends(histories: Histories, ends: date) -> list[date]:
    """Return the end of the newest year, and the ends of the two before as far as they are told."""
    year_ends = [ends]
    known = {end for name in ("net_income", "assets") for _, end in histories[name].periods}
    for _ in range(2):
        near = [day for day in known if (year_ends[-1] - day).days in ANNUAL]
        if not near:
            break
        year_ends.append(min(near, key=lambda day: abs((year_ends[-1] - day).days - 365)))
    return year_ends


def _valid(histories: Histories) -> timedelta:
    """Return how long after its end the newest period counts: until the next one is reported."""
    ends = sorted({end for _, end in histories["net_income"].periods})[-LAST_ENDS:]
    steps = [(last - first).days for first, last in pairwise(ends)]
    usual = min((step for step in steps if step >= TO_DATE.start), default=ANNUAL.start)
    return timedelta(days=min(usual, ANNUAL.stop)) + REPORT_DELAY


def _shares(histories: Histories, ends: date, ticker: str) -> tuple[date | None, float]:
    """Return the day of the newest count of shares, and it; the mean of a period where none is.

    NaN where count and mean differ so much that one of them is no count of all shares.
    """
    counts = histories["shares_outstanding"].periods
    mean = _shortest(histories["diluted_shares"], ends)[1]
    newest = max(counts, default=(date.min, date.min))
    if newest[1] >= ends - timedelta(days=SLACK):
        count = counts[newest].value
        if math.isnan(mean) or mean / SAME_COUNT < count < mean * SAME_COUNT:
            return newest[1], count
        return None, math.nan
    if math.isnan(mean) or SHARE_CLASS.fullmatch(ticker):
        return None, math.nan
    return ends, mean


def _dilution(diluted: FigureHistory, year_ends: Sequence[date]) -> float:
    """Return by how many percent the diluted shares grew in a year."""
    length, now = _shortest(diluted, year_ends[0])
    former = (
        diluted.periods[period].value
        for day in year_ends[1:2]
        for period in diluted.ending(day)
        if abs(days(period) - length) <= SLACK
    )
    return _growth(now, next(former, math.nan))


def _shortest(history: FigureHistory, ends: date) -> tuple[int, float]:
    """Return the days of the shortest period up to a day, and its figure; NaN without one."""
    period = min(history.ending(ends), key=days, default=None)
    return (days(period), history.periods[period].value) if period else (0, math.nan)


def _mean(name: str, year: Year, before: Year) -> float:
    return (before[name] + year[name]) / 2.0


def ratio(part: float, whole: float) -> float:
    """Return a part of a whole; a whole of 0 or less, or next to it, is no whole: NaN."""
    share = part / whole if whole > 0.0 else math.nan
    return share if abs(share) <= LARGEST else math.nan


def _growth(now: float, before: float) -> float:
    return 100.0 * (ratio(now, before) - 1.0)
