"""A company as a world has it: its quarters, and the reports in which it tells them.

A quarter's report tells the quarter and the year so far, each beside the same of the year before,
and the balance of its end beside that of the last year's. A year's report tells years and balances
alone. Cash flows are told for the year so far, never for a quarter, as companies do.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta

from torra.evidence.company_facts import FIGURES
from torra.evidence.outside_numbers import FactRow, StoredFact

Quarters = Mapping[str, Sequence[float]]
"""Each figure by its quarters: an amount of the quarter, or the count at its end."""

FIRST_YEAR = 2017
ENDS = ((3, 31), (6, 30), (9, 30), (12, 31))
TO_DATE_ONLY = ("operating_cash_flow", "capital_expenditure", "depreciation")
QUARTER_DELAY = timedelta(days=35)
YEAR_DELAY = timedelta(days=60)
CURRENCY = "USD"


def end(number: int) -> date:
    """Return the last day of a quarter, counted from the first of FIRST_YEAR."""
    return date(FIRST_YEAR + number // 4, *ENDS[number % 4])


def begin(number: int) -> date:
    """Return the first day of a quarter."""
    return end(number - 1) + timedelta(days=1)


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def known(number: int) -> datetime:
    """Return when the report of a quarter became known."""
    delay = YEAR_DELAY if number % 4 == 3 else QUARTER_DELAY
    return midnight(end(number)) + delay + timedelta(hours=21)


def of_quarters(values: Sequence[float], figure: str) -> float:
    """Return what quarters come to: their sum, of average shares their mean."""
    total = math.fsum(values)
    return total / len(values) if figure == "diluted_shares" else total


def reports(
    quarters: Quarters,
    *,
    ticker: str = "ACME",
    currency: str = CURRENCY,
    forms: tuple[str, str] = ("10-Q", "10-K"),
    restated: Mapping[int, float] | None = None,
) -> list[FactRow]:
    """Return all that a company reported, in the order of knowing.

    From the report of a quarter that is a key of `restated` on, all shares count so many times.
    """
    count = max(len(values) for values in quarters.values())
    found: list[FactRow] = []
    times = 1.0
    for number in range(count):
        times *= (restated or {}).get(number, 1.0)
        form = forms[number % 4 == 3]
        source = f"edgar {form} 0000000001-{number:02d}-000001"
        for figure, values in quarters.items():
            unit = currency if FIGURES[figure].unit == "money" else "shares"
            factor = 1.0 if unit == currency else times
            for (first, last), value in _told(figure, values, number):
                times_of = (midnight(first), midnight(last), known(number))
                found.append(FactRow(ticker, figure, *times_of, value * factor, unit, source))
    return found


def _told(
    figure: str, values: Sequence[float], number: int
) -> Iterator[tuple[tuple[date, date], float]]:
    """Yield the periods of a figure that the report of a quarter tells."""
    if number >= len(values):
        return
    if FIGURES[figure].over == "day":
        for told in (number, number - number % 4 - 1):
            if told >= 0:
                yield (end(told), end(told)), values[told]
        return
    for last in (number, number - 4):
        if last < 0:
            continue
        whole = last % 4 == 3
        starts = {last - last % 4} | (set() if whole or figure in TO_DATE_ONLY else {last})
        for start in sorted(starts):
            span = values[start : last + 1]
            yield (begin(start), end(last)), of_quarters(span, figure)


def moved(rows: Iterable[FactRow], later: timedelta) -> list[FactRow]:
    """Return reports as they would have come so much later, dated by whole days."""
    days = timedelta(days=later.days)
    return [
        row._replace(begins=row.begins + days, ends=row.ends + days, known_at=row.known_at + later)
        for row in rows
    ]


def stored(rows: Iterable[FactRow], first_seen: datetime | None = None) -> list[StoredFact]:
    """Return reports as the store has them, seen when they were known or at one moment."""
    return [
        StoredFact(row, first_seen or row.known_at, number)
        for number, row in enumerate(rows, start=1)
    ]


def grown(seed: int = 1, count: int = 40) -> dict[str, list[float]]:
    """Return the quarters of a company that grows unevenly: every figure is told."""
    chance = random.Random(seed)
    found: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    revenue, assets, shares = 100.0 + 10.0 * (seed % 7), 800.0, 50.0
    for _ in range(count):
        revenue *= 1.0 + chance.gauss(0.015, 0.03)
        assets *= 1.0 + chance.gauss(0.012, 0.01)
        shares *= 1.0 + chance.gauss(0.0, 0.004)
        cost = revenue * chance.uniform(0.5, 0.6)
        operating = (revenue - cost) * chance.uniform(0.3, 0.6)
        pretax = operating - chance.uniform(1.0, 2.0)
        tax = pretax * chance.uniform(0.15, 0.25)
        made = {
            "revenue": revenue,
            "cost_of_revenue": cost,
            "gross_profit": revenue - cost,
            "operating_income": operating,
            "pretax_income": pretax,
            "income_tax": tax,
            "net_income": pretax - tax,
            "interest_expense": operating - pretax,
            "depreciation": chance.uniform(4.0, 6.0),
            "operating_cash_flow": (pretax - tax) * chance.uniform(0.8, 1.5),
            "capital_expenditure": chance.uniform(3.0, 8.0),
            "diluted_shares": shares * 1.01,
            "assets": assets,
            "current_assets": assets * chance.uniform(0.3, 0.4),
            "current_liabilities": assets * chance.uniform(0.15, 0.25),
            "equity": assets * chance.uniform(0.4, 0.5),
            "cash": assets * chance.uniform(0.05, 0.15),
            "long_term_debt": assets * chance.uniform(0.1, 0.2),
            "short_term_debt": assets * chance.uniform(0.01, 0.04),
            "shares_outstanding": shares,
        }
        for figure, value in made.items():
            found[figure].append(value)
    return found
