"""Judges what a broker tells: which numbers, words and times no report, position or deal can have.

Pure. Each function returns what is wrong as one sentence, "" for nothing. Bounds are wide: only
what no broker can mean is refused. A profit may have any sign, a stop of 0 is none, a price and a
volume of 0 in a report are not known. What is refused is never booked in part: a list with one such
row is not known as a whole, because a list without a row would prove that there is no such
position.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from torra.bridges.protocol import BrokerBooks, BrokerDeal, BrokerPosition, OrderReport
from torra.clock import time_of
from torra.errors import LONGEST_TEXT, bounded
from torra.verdict.signal_states import EXECUTED

MOST_LOTS: Final = 1e9
"""No order is as big: where a lot is one share or one coin, brokers stop at some millions."""

MOST_PRICE: Final = 1e12
"""No price is as high, in any currency."""

LOTS_SLACK: Final = 1e-6
"""Lots that differ by less are the same."""

PRICE_FACTOR: Final = 5.0
"""A fill is this many times the decided price at most, and no less than that part of it.

No market moves so far between a decision and its fill; a slipped decimal point is ten times.
"""

EARLIEST_FILL: Final = timedelta(days=-1)
LATEST_FILL: Final = timedelta(days=14)
"""How far from its decision an order is executed: it may wait for a market to open again, and a
server's clock that is misjudged is hours off."""

AHEAD: Final = timedelta(days=1)
"""A time that lies further in the future than this is no misjudged clock."""

SIDES: Final = ("LONG", "SHORT")
DEAL_SIDES: Final = ("BUY", "SELL")
ENTRIES: Final = ("in", "out")


def amount_fault(name: str, value: object, most: float, *, zero: bool) -> str:
    """Say what is wrong with a quantity or a price: finite, not negative, `most` at most."""
    fine = _is_number(value) and 0.0 <= float(value) <= most  # type: ignore[arg-type]
    return "" if fine and (zero or value) else f"{name} is {value!r}"


def report_fault(
    report: OrderReport,
    row: Mapping[str, Any],
    opening: Mapping[str, Any] | None = None,
    now: datetime | None = None,
) -> str:
    """Say what in a report of an execution cannot be, held against its signal's row.

    `opening` is the row of the opening that a close ends, `now` real time, as far as they are
    known. A report of no execution has no numbers that are booked.
    """
    if report.status not in EXECUTED:
        return ""
    return (
        amount_fault("volume", report.volume, MOST_LOTS, zero=True)
        or amount_fault("price", report.price, MOST_PRICE, zero=True)
        or _time_fault("at", report.at, now)
        or _words_fault(report, ("ticket", "deal", "position", "reason"))
        or _overfill(report, row)
        or _far_price(report, row["entry"] or (opening or {}).get("price"))
        or _far_time(report, row)
    )


def books_fault(books: BrokerBooks, now: datetime) -> str:
    """Say what is wrong with the first row of a broker's books that cannot be; `now` is real."""
    faults = (
        *(f"position {row.ticket}: {said}" for row in books.positions
          if (said := position_fault(row, now))),
        *(f"deal {row.deal}: {said}" for row in books.deals if (said := deal_fault(row, now))),
    )  # fmt: skip
    return bounded(next(iter(faults), ""))


def position_fault(row: BrokerPosition, now: datetime | None = None) -> str:
    """Say what in an open position cannot be."""
    return (
        amount_fault("lots", row.lots, MOST_LOTS, zero=False)
        or amount_fault("entry", row.entry, MOST_PRICE, zero=False)
        or amount_fault("stop", row.stop, MOST_PRICE, zero=True)
        or amount_fault("target", row.target, MOST_PRICE, zero=True)
        or _choice_fault("side", row.side, SIDES)
        or _common_fault(row, ("ticket", "broker_symbol", "comment"))
        or _time_fault("opened_at", row.opened_at, now)
    )


def deal_fault(row: BrokerDeal, now: datetime | None = None) -> str:
    """Say what in an execution cannot be."""
    return (
        amount_fault("lots", row.lots, MOST_LOTS, zero=False)
        or amount_fault("price", row.price, MOST_PRICE, zero=False)
        or _choice_fault("entry", row.entry, ENTRIES)
        or _choice_fault("side", row.side, DEAL_SIDES)
        or _common_fault(row, ("deal", "position", "broker_symbol", "comment", "reason"))
        or _time_fault("time", row.time, now)
    )


def _common_fault(row: BrokerPosition | BrokerDeal, words: tuple[str, ...]) -> str:
    if not _is_number(row.profit):
        return f"profit is {row.profit!r}"
    # Of any size and sign: another program's number is its own affair. True is an int in Python.
    if not isinstance(row.magic, int) or isinstance(row.magic, bool):
        return f"magic is {row.magic!r}"
    return _words_fault(row, words)


def _words_fault(row: object, names: tuple[str, ...]) -> str:
    for name in names:
        value = getattr(row, name)
        if not isinstance(value, str) or len(value) > LONGEST_TEXT:
            return bounded(f"{name} is {value!r}")
    return ""


def _choice_fault(name: str, value: object, choices: tuple[str, ...]) -> str:
    return "" if value in choices else bounded(f"{name} is {value!r}")


def _time_fault(name: str, value: object, now: datetime | None) -> str:
    fine = isinstance(value, datetime) and value.tzinfo is not None
    late = fine and now is not None and value > now + AHEAD  # type: ignore[operator]
    return "" if fine and not late else f"{name} is {value}"


def _overfill(report: OrderReport, row: Mapping[str, Any]) -> str:
    # What was found at the broker may be a netting account's position, with others' lots in it.
    if report.adopted or report.volume <= row["lots"] + LOTS_SLACK:
        return ""
    return f"{report.volume:.8g} lots were filled, and {row['lots']:.8g} were ordered"


def _far_price(report: OrderReport, planned: float | None) -> str:
    if not report.price or not planned:
        return ""
    if planned / PRICE_FACTOR <= report.price <= planned * PRICE_FACTOR:
        return ""
    return f"the price is {report.price:.8g}, and {planned} was the price of the decision"


def _far_time(report: OrderReport, row: Mapping[str, Any]) -> str:
    after = report.at - time_of(row["decided_at"])
    return "" if EARLIEST_FILL <= after <= LATEST_FILL else f"at is {report.at}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
