"""The figures of a company that are read, as it reported them: their names, units and periods.

`FIGURES` is the closed vocabulary. A figure of a period, such as revenue, begins and ends; one of a
day, such as total assets, holds at that day. Money is in the currency in which the company reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Unit = Literal["money", "shares"]
Over = Literal["period", "day"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: its name for people, its unit, and whether it is of a period or of a day."""

    says: str
    unit: Unit
    over: Over


FIGURES: Final[Mapping[str, Figure]] = {
    "revenue": Figure("revenue", "money", "period"),
    "cost_of_revenue": Figure("cost of revenue", "money", "period"),
    "gross_profit": Figure("gross profit", "money", "period"),
    "operating_income": Figure("operating income", "money", "period"),
    "pretax_income": Figure("income before tax", "money", "period"),
    "income_tax": Figure("income tax", "money", "period"),
    "net_income": Figure("net income", "money", "period"),
    "interest_expense": Figure("interest expense", "money", "period"),
    "depreciation": Figure("depreciation and amortization", "money", "period"),
    "operating_cash_flow": Figure("operating cash flow", "money", "period"),
    "capital_expenditure": Figure("capital expenditure", "money", "period"),
    "diluted_shares": Figure("diluted shares, on average", "shares", "period"),
    "assets": Figure("total assets", "money", "day"),
    "current_assets": Figure("current assets", "money", "day"),
    "current_liabilities": Figure("current liabilities", "money", "day"),
    "equity": Figure("shareholders' equity", "money", "day"),
    "cash": Figure("cash", "money", "day"),
    "long_term_debt": Figure("long-term debt", "money", "day"),
    "short_term_debt": Figure("short-term debt", "money", "day"),
    "shares_outstanding": Figure("shares outstanding", "shares", "day"),
}
"""Every figure by name."""
