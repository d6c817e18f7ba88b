"""Writes the rows of the Advisor's lists as it does: positions, deals and symbols."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from torra.bridges.protocol import BrokerDeal, BrokerPosition, Quote, SymbolTerms
from torra.bridges.torra.book_rows import OTHER
from torra.clock import EPOCH


def position_row(position: BrokerPosition) -> str:
    """Write an open position."""
    return "|".join(_columns(position))


def deal_row(deal: BrokerDeal) -> str:
    """Write an execution."""
    return "|".join(_columns(replace(deal, reason=deal.reason or OTHER)))


def symbol_row(terms: SymbolTerms) -> str:
    """Write the terms of a symbol; one without prices has zeros there, and no quote when read."""
    return "|".join([*_columns(terms), *_columns(terms.quote or Quote(0.0, 0.0, EPOCH))])


def _columns(row: Any) -> list[str]:
    names = [field.name for field in fields(row) if field.name != "quote"]
    return [_column(getattr(row, name)) for name in names]


def _column(value: object) -> str:
    if isinstance(value, float):
        # Never 1e-05: the format of a decimal has no exponent.
        return format(Decimal(repr(value)), "f")
    if isinstance(value, datetime):
        return str(int(value.timestamp()))
    return str(value)
