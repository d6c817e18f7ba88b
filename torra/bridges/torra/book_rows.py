"""Reads the rows of the Advisor's lists: positions, deals and symbols.

A row is one text with bars between its columns. The dataclasses of torra.bridges.protocol are the
schema: their fields are the columns, in that order; a quote's come last. Reading raises ValueError
for a row that is not exactly as it should be, so a list is taken as a whole or not at all. Whether
what it tells can be is asked of every bridge's books alike (torra.bridges.plausible).
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Literal, TypeVar

from torra.bridges.protocol import BrokerDeal, BrokerPosition, Quote, SymbolTerms
from torra.bridges.torra.messages import DECIMAL, INTEGER, moment

Row = TypeVar("Row")

OTHER: Final = "other"
DEAL_REASONS: Final = ("sl", "tp", "stop_out", "expert", "client", OTHER)

COUNTED: Final = frozenset({"ticket", "deal", "position"})
"""Numbers of the broker's: words here, digits in a row."""

NUMBERS: Final[Mapping[Any, Callable[[str], Any]]] = {
    float: float,
    int: int,
    datetime: lambda text: moment(int(text)),
}


def read_position(row: str) -> BrokerPosition:
    """Read ticket|symbol|side|volume|price|sl|tp|magic|comment|profit|opened."""
    return _read(BrokerPosition, row.split("|"))


def read_deal(row: str) -> BrokerDeal:
    """Read deal|position|symbol|entry|side|volume|price|profit|magic|comment|time|reason."""
    deal = _read(BrokerDeal, row.split("|"))
    if deal.reason not in DEAL_REASONS:
        raise ValueError(f"{deal.reason[:40]!r} is none of {', '.join(DEAL_REASONS)}")
    return replace(deal, reason=deal.reason.removesuffix(OTHER))


def read_symbol(row: str) -> SymbolTerms:
    """Read the terms of a symbol: sizes, lots, level, mode, currency, bid, ask, their time."""
    columns = row.split("|")
    terms, quote = _read(SymbolTerms, columns[:-3]), _read(Quote, columns[-3:])
    return replace(terms, quote=quote) if quote.bid > 0 and quote.ask > 0 else terms


@functools.cache
def _schema(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {name: hint for name, hint in hints.items() if name != "quote"}


def _read(kind: Callable[..., Row], columns: Sequence[str]) -> Row:
    schema = _schema(kind)
    if len(columns) != len(schema):
        text = "|".join(columns)[:80]
        raise ValueError(f"{len(columns)} columns instead of {len(schema)}: {text}")
    pairs = zip(schema.items(), columns, strict=True)
    return kind(**{name: _value(name, hint, text) for (name, hint), text in pairs})


def _value(name: str, hint: Any, text: str) -> Any:
    if name in COUNTED:
        if _number(int, text) < 0:
            raise ValueError(f"{text} is no number of a deal or a position")
        return text
    if hint in NUMBERS:
        return _number(hint, text)
    if typing.get_origin(hint) is Literal and text not in (words := typing.get_args(hint)):
        raise ValueError(f"{text[:40]!r} is none of {', '.join(words)}")
    return text


def _number(hint: Any, text: str) -> Any:
    form, name = (DECIMAL, "decimal") if hint is float else (INTEGER, "integer")
    if not form.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no {name}")
    return NUMBERS[hint](text)
