"""The features company.*: a company's figures and what its price pays for them.

`look` works out how a company looked, once for as long as nothing new is known; `piece` sets that
against the closes of a day. A company that has told nothing has no features but Nones, and so
has one whose newest period is too old to count. Pure functions.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Final

from torra.evidence import company_figures, fair_value
from torra.evidence.company_facts import Filed
from torra.evidence.company_figures import RATIOS, CompanyFigures
from torra.evidence.fair_value import MULTIPLES, Closes, Known, Valuation
from torra.evidence.news_digest import NewsSubject
from torra.evidence.outside_readings import Piece, SeriesValue
from torra.evidence.scheduled_events import EVERY_CURRENCY

STOCK: Final = "stock"
CURRENCY: Final = "USD"
"""What the closes of a symbol count in whose profile names no currency."""

NEWEST: Final = "company.net_income"
"""Name under which a record keeps the report that the figures are of."""

NOBODY: Final = Piece(
    dict.fromkeys(
        (
            *(f"company.{name}" for name in RATIOS),
            *(f"company.{name}" for name in MULTIPLES),
            *(f"company.{name.removesuffix('_pct')}_rank" for name in MULTIPLES),
            *("company.valuation_rank", "company.valuation", "company.implied_growth_pct"),
            *("company.period_end", "company.filed"),
        )
    ),
    None,
    company_figures.REPORT_DELAY,
)
"""The features of a company of which nothing is known."""


DATED: Final = ("company.period_end", "company.filed")
"""What says of when a report is, and nothing of the company."""


def reads_company(subject: NewsSubject) -> bool:
    """Tell whether a subject has a company to read."""
    return subject.asset == STOCK and bool(subject.ticker)


def look(filed: Filed) -> tuple[Known, ...]:
    """Return how a company looked over the last five years (torra.evidence.fair_value.course)."""
    return fair_value.course(filed)


def piece(known: tuple[Known, ...], subject: NewsSubject, closes: Closes, today: date) -> Piece:
    """Return the features of a company at the last of the closes.

    A report of which nothing can be told, as the first quarter of a company, has no features.
    """
    if not known:
        return NOBODY
    company = known[-1].company
    currencies = {*subject.currencies} - {EVERY_CURRENCY} or {CURRENCY}
    valued = fair_value.value(known, closes, currencies, today)
    told = {
        **{f"company.{name}": getattr(company, name) for name in RATIOS},
        **_valued(valued),
        "company.period_end": company.ends.isoformat(),
        "company.filed": company.filed.date().isoformat(),
    }
    ends = datetime.combine(company.ends, time(), UTC)
    numbers = {name: told[name] for name in NOBODY.numbers}
    if all(value is None for name, value in numbers.items() if name not in DATED):
        numbers = dict(NOBODY.numbers)
    return Piece(numbers, ends, company.valid, _report(company, ends))


def _valued(valued: Valuation) -> dict[str, float | str | None]:
    return {
        **{f"company.{name}": found for name, found in valued.multiples.items()},
        **{
            f"company.{name.removesuffix('_pct')}_rank": found
            for name, found in valued.ranks.items()
        },
        "company.valuation_rank": valued.rank,
        "company.valuation": valued.word,
        "company.implied_growth_pct": valued.implied_growth_pct,
    }


def _report(company: CompanyFigures, ends: datetime) -> tuple[tuple[str, SeriesValue], ...]:
    return ((NEWEST, SeriesValue(company.reported, ends, company.filed, company.source)),)
