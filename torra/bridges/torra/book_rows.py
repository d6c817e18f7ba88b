"""Reads and writes the rows of the Advisor's lists: positions, deals and symbols.

A row is one text with bars between its columns. Reading raises ValueError for a row that is not
exactly as it should be, or tells what cannot be (torra.bridges.plausible), so a list is taken as a
whole or not at all. The Advisor writes these rows; writing them here serves whoever plays its part.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Final, TypeVar

from torra.bridges.plausible import deal_fault, position_fault
from torra.bridges.protocol import BrokerDeal, BrokerPosition, Quote, SymbolTerms
from torra.bridges.torra.messages import DECIMAL, INTEGER, SIDES, moment, plain, plain_name

POSITION_SIDES: Final = ("LONG", "SHORT")
ENTRIES: Final = ("in", "out")
OTHER: Final = "other"
DEAL_REASONS: Final = ("sl", "tp", "stop_out", "expert", "client", OTHER)
Row = TypeVar("Row")

TRADE_MODES: Final = ("disabled", "long_only", "short_only", "close_only", "full")


def read_position(row: str) -> BrokerPosition:
    """Read ticket|symbol|side|volume|price|sl|tp|magic|comment|profit|opened."""
    ticket, symbol, side, lots, price, stop, target, magic, comment, profit, opened = _cut(row, 11)
    found = BrokerPosition(
        ticket=str(_counted(ticket)),
        broker_symbol=symbol,
        side=_word(side, POSITION_SIDES),
        lots=_number(lots),
        entry=_number(price),
        stop=_number(stop),
        target=_number(target),
        magic=_integer(magic),
        comment=comment,
        profit=_number(profit),
        opened_at=moment(_integer(opened)),
    )
    return _sound(found, position_fault(found))


def position_row(position: BrokerPosition) -> str:
    """Write an open position."""
    levels = (position.lots, position.entry, position.stop, position.target)
    rest = (position.magic, position.comment, position.profit, position.opened_at)
    return _join(position.ticket, _Name(position.broker_symbol), position.side, *levels, *rest)


def read_deal(row: str) -> BrokerDeal:
    """Read deal|position|symbol|entry|side|volume|price|profit|magic|comment|time|reason."""
    deal, position, symbol, entry, side, lots, price, profit, magic, comment, time, reason = _cut(
        row, 12
    )
    found = BrokerDeal(
        deal=str(_counted(deal)),
        position=str(_counted(position)),
        broker_symbol=symbol,
        entry=_word(entry, ENTRIES),
        side=_word(side, SIDES),
        lots=_number(lots),
        price=_number(price),
        profit=_number(profit),
        magic=_integer(magic),
        comment=comment,
        time=moment(_integer(time)),
        reason=_word(reason, DEAL_REASONS).removesuffix(OTHER),
    )
    return _sound(found, deal_fault(found))


def deal_row(deal: BrokerDeal) -> str:
    """Write an execution."""
    what = (deal.deal, deal.position, _Name(deal.broker_symbol), deal.entry, deal.side)
    figures = (deal.lots, deal.price, deal.profit)
    return _join(*what, *figures, deal.magic, deal.comment, deal.time, deal.reason or OTHER)


def read_symbol(row: str) -> SymbolTerms:
    """Read the terms of a symbol, in the order in which `symbol_row` writes them."""
    name, digits, tick, tick_value, contract, lot_min, lot_step, lot_max, *rest = _cut(row, 14)
    stops_level, trade_mode, currency, bid, ask, quoted = rest
    quote = Quote(_number(bid), _number(ask), moment(_integer(quoted)))
    return SymbolTerms(
        broker_symbol=name,
        digits=_integer(digits),
        tick_size=_number(tick),
        tick_value=_number(tick_value),
        contract_size=_number(contract),
        lot_min=_number(lot_min),
        lot_step=_number(lot_step),
        lot_max=_number(lot_max),
        stops_level=_integer(stops_level),
        trade_mode=_word(trade_mode, TRADE_MODES),
        currency=currency,
        quote=quote if quote.bid > 0 and quote.ask > 0 else None,
    )


def symbol_row(terms: SymbolTerms) -> str:
    """Write the terms of a symbol: sizes, lots, level, mode, currency, bid, ask, their time.

    A symbol without prices has zeros there, and no quote when it is read.
    """
    sizes = (terms.tick_size, terms.tick_value, terms.contract_size)
    lots = (terms.lot_min, terms.lot_step, terms.lot_max)
    rest = (terms.stops_level, terms.trade_mode, terms.currency)
    quote = (terms.quote.bid, terms.quote.ask, terms.quote.at) if terms.quote else (0.0, 0.0, 0)
    return _join(_Name(terms.broker_symbol), terms.digits, *sizes, *lots, *rest, *quote)


class _Name(str):
    """A symbol as the broker calls it, beyond ASCII too."""


def _join(*columns: object) -> str:
    return "|".join(_column(value) for value in columns)


def _column(value: object) -> str:
    if isinstance(value, float):
        # Never 1e-05: the format of a decimal has no exponent.
        return format(Decimal(repr(value)), "f")
    if isinstance(value, datetime):
        return str(int(value.timestamp()))
    return plain_name(value) if isinstance(value, _Name) else plain(str(value))


def _cut(row: str, columns: int) -> list[str]:
    cut = row.split("|")
    if len(cut) != columns:
        raise ValueError(f"{len(cut)} columns instead of {columns}: {row[:80]}")
    return cut


def _number(text: str) -> float:
    if not DECIMAL.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no decimal")
    return float(text)


def _integer(text: str) -> int:
    if not INTEGER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no integer")
    return int(text)


def _counted(text: str) -> int:
    number = _integer(text)
    if number < 0:
        raise ValueError(f"{number} is no number of a deal or a position")
    return number


def _sound(row: Row, fault: str) -> Row:
    if fault:
        raise ValueError(fault)
    return row


def _word(text: str, words: tuple[str, ...]) -> Any:
    if text not in words:
        raise ValueError(f"{text[:40]!r} is none of {', '.join(words)}")
    return text
