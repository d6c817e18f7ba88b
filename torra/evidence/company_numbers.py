"""The features company.*: a company's figures and what its price pays for them.

`piece` sets how a company looked (torra.evidence.fair_value.course) against the closes of a day. A
company that has told nothing has no features but Nones, and so has one whose newest period is too
old to count. Pure functions.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Final

from agents.features import ids_of
from torra.evidence import company_figures, fair_value
from torra.evidence.fair_value import Closes, Known
from torra.evidence.news_digest import NewsSubject
from torra.evidence.outside_readings import Piece, SeriesValue
from torra.evidence.scheduled_events import EVERY_CURRENCY

STOCK: Final = "stock"
CURRENCY: Final = "USD"
"""What the closes of a symbol count in whose profile names no currency."""

NEWEST: Final = "company.net_income"
"""Name under which a record keeps the report that the figures are of."""

NOBODY: Final = Piece(dict.fromkeys(ids_of("company")), None, company_figures.REPORT_DELAY)
"""The features of a company of which nothing is known."""


def reads_company(subject: NewsSubject) -> bool:
    """Tell whether a subject has a company to read."""
    return subject.asset == STOCK and bool(subject.ticker)


def piece(known: tuple[Known, ...], subject: NewsSubject, closes: Closes, today: date) -> Piece:
    """Return the features of a company at the last of the closes.

    A report of which nothing can be told, as the first quarter of a company, has no features.
    """
    if not known:
        return NOBODY
    company = known[-1].company
    currencies = {*subject.currencies} - {EVERY_CURRENCY} or {CURRENCY}
    values = {**company.ratios, **fair_value.value(known, closes, currencies, today)}
    numbers = {name: values.get(name.partition(".")[2]) for name in NOBODY.numbers}
    if any(value is not None for value in numbers.values()):
        numbers["company.period_end"] = company.ends.isoformat()
        numbers["company.filed"] = company.filed.date().isoformat()
    ends = datetime.combine(company.ends, time(), UTC)
    seen = SeriesValue(company.reported, ends, company.filed, company.source)
    return Piece(numbers, ends, company.valid, {NEWEST: seen})
