"""Judges what a broker tells: which numbers, words and times no report, position or deal can have.

Pure. Each function returns what is wrong as one sentence, "" for nothing. Bounds are wide: only
what no broker can mean is refused. A profit may have any sign, a stop of 0 is none, a price and a
volume of 0 in a report are not known. What is refused is never booked in part: a list with one such
row is not known as a whole, because a list without a row would prove that there is no such
position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any, Final

from torra.bridges.protocol import BrokerBooks, OrderReport
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

Rule = Callable[[Any], bool]
"""Whether a value can be meant."""


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number; True is an int in Python and none here."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number, of any size and sign."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_text(value: Any) -> bool:
    """Return whether a value is a text of LONGEST_TEXT characters at most."""
    return isinstance(value, str) and len(value) <= LONGEST_TEXT


def is_moment(value: Any) -> bool:
    """Return whether a value is a time with its zone."""
    return isinstance(value, datetime) and value.tzinfo is not None


def quantity(most: float = math.inf, *, zero: bool = True) -> Rule:
    """Return the rule of a quantity or a price: finite, not negative, `most` at most."""
    return lambda value: is_number(value) and 0.0 <= value <= most and bool(zero or value)


REPORT: Final[Mapping[str, Rule]] = {
    "volume": quantity(MOST_LOTS),
    "price": quantity(MOST_PRICE),
    "at": is_moment,
    **dict.fromkeys(("ticket", "deal", "position", "reason"), is_text),
}
POSITION: Final[Mapping[str, Rule]] = {
    "lots": quantity(MOST_LOTS, zero=False),
    "entry": quantity(MOST_PRICE, zero=False),
    "stop": quantity(MOST_PRICE),
    "target": quantity(MOST_PRICE),
    "side": ("LONG", "SHORT").__contains__,
    "profit": is_number,
    "magic": is_whole,
    **dict.fromkeys(("ticket", "broker_symbol", "comment"), is_text),
    "opened_at": is_moment,
}
DEAL: Final[Mapping[str, Rule]] = {
    "lots": quantity(MOST_LOTS, zero=False),
    "price": quantity(MOST_PRICE, zero=False),
    "entry": ("in", "out").__contains__,
    "side": ("BUY", "SELL").__contains__,
    "profit": is_number,
    "magic": is_whole,
    **dict.fromkeys(("deal", "position", "broker_symbol", "comment", "reason"), is_text),
    "time": is_moment,
}


def first_fault(value_of: Callable[[str], Any], rules: Mapping[str, Rule]) -> str:
    """Name the first field whose value breaks its rule, with the value; "" for none."""
    for name, fits in rules.items():
        value = value_of(name)
        if not fits(value):
            return bounded(f"{name} is {value if isinstance(value, datetime) else repr(value)}")
    return ""


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
    fault = first_fault(partial(getattr, report), REPORT) or _from_the_future("at", report.at, now)
    if fault:
        return fault
    # What was found at the broker may be a netting account's position, with others' lots in it.
    if not report.adopted and report.volume > row["lots"] + LOTS_SLACK:
        return f"{report.volume:.8g} lots were filled, and {row['lots']:.8g} were ordered"
    planned = row["entry"] or (opening or {}).get("price")
    factor = report.price / planned if report.price and planned else 1.0
    if not 1.0 / PRICE_FACTOR <= factor <= PRICE_FACTOR:
        return f"the price is {report.price:.8g}, and {planned} was the price of the decision"
    after = report.at - time_of(row["decided_at"])
    return "" if EARLIEST_FILL <= after <= LATEST_FILL else f"at is {report.at}"


def books_fault(books: BrokerBooks, now: datetime) -> str:
    """Say what is wrong with the first row of a broker's books that cannot be; `now` is real."""
    rows: Iterator[tuple[str, Any, Mapping[str, Rule], str]] = chain(
        ((f"position {row.ticket}", row, POSITION, "opened_at") for row in books.positions),
        ((f"deal {row.deal}", row, DEAL, "time") for row in books.deals),
    )
    for name, row, rules, time in rows:
        value_of = partial(getattr, row)
        fault = first_fault(value_of, rules) or _from_the_future(time, value_of(time), now)
        if fault:
            return bounded(f"{name}: {fault}")
    return ""


def _from_the_future(name: str, value: datetime, now: datetime | None) -> str:
    return "" if now is None or value <= now + AHEAD else f"{name} is {value}"
