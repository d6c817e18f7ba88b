"""Judges a stored signal before anything is made of it: a row that cannot be read stands alone.

Torra writes no such row. A hand in the database, a damaged file or a restored copy may leave one,
and it must stop nobody but itself. `row_fault` says what is wrong, and `aside` is the alarm that a
person hears once. Who finds an odd row leaves it as it is: it is neither sent nor judged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, get_args

from torra.bridges.plausible import Rule, first_fault, quantity
from torra.clock import time_of
from torra.errors import MALFORMED, StoreUnavailable, TorraError, bounded
from torra.verdict.outbox import Outbox
from torra.verdict.risk_engine import Kind
from torra.verdict.signal_states import TRANSITIONS

KIND: Final = "ODD_SIGNAL"

log = logging.getLogger("torra")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_time(value: Any) -> bool:
    with suppress(*MALFORMED):
        return time_of(value).tzinfo is not None
    return False


def _or_none(rule: Rule) -> Rule:
    return lambda value: value is None or rule(value)


POSITIVE: Final = quantity(zero=False)

SIGNAL: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(("sid", "instance", "symbol", "timeframe"), _is_name),
    "kind": get_args(Kind).__contains__,
    "side": ("BUY", "SELL").__contains__,
    "state": tuple(TRANSITIONS).__contains__,
    "lots": POSITIVE,
    "bar_time": _is_time,
    "decided_at": _is_time,
}
LEVELS: Final[Mapping[str, Mapping[str, Rule]]] = {
    "open": dict.fromkeys(("entry", "stop", "target"), POSITIVE),
    "close": {},
    "modify": {"stop": POSITIVE},
}
"""Prices that a signal must have, by its kind."""

COMPARED: Final[Mapping[str, Rule]] = {
    "changed_at": _is_time,
    **dict.fromkeys(("missed_at", "opened_at", "closed_at", "expires"), _or_none(_is_time)),
    "misses": lambda value: isinstance(value, int) and value >= 0,
    "filled_lots": _or_none(quantity()),
}
"""What comparing the books reads besides."""


def row_fault(row: Mapping[str, Any]) -> str:
    """Return what keeps a signal's row from being read; "" for nothing.

    It must have id, instance and timeframe, be of a known kind, side and state, have lots, an
    opening its levels, and times that are times; an expiry, unless it is only compared.
    """
    return first_fault(row.get, SIGNAL) or first_fault(row.get, LEVELS[row["kind"]])


def sending_fault(row: Mapping[str, Any]) -> str:
    """Return what keeps a signal from being sent or taken back: its expiry must be known too."""
    return row_fault(row) or first_fault(row.get, {"expires": _is_time})


def comparing_fault(row: Mapping[str, Any]) -> str:
    """Return what keeps a signal from being compared with the books: its steps must be known."""
    if fault := row_fault(row):
        return fault
    if row.get("changed_at") is None:
        return "none of its steps is on record"
    return first_fault(row.get, COMPARED)


def aside(store: Outbox, row: Mapping[str, Any], fault: str) -> None:
    """Let a person hear once that a row is odd; nothing else is done to it."""
    name = bounded(str(row.get("sid") or f"number {row.get('seq')}"), 40)
    detail = f"{name} cannot be read, it is left alone and never sent: {fault}"
    if store.raise_alarm(f"{KIND} {name}", KIND, detail):
        log.error("%s", bounded(detail))


@contextmanager
def isolate_row_errors(store: Outbox, row: Mapping[str, Any]) -> Iterator[None]:
    """Let what goes wrong with one row be told once, and stop no other.

    A database that fails is no fault of the row, and a defect of another kind passes through.
    """
    try:
        yield
    except StoreUnavailable:
        raise
    except (*MALFORMED, TorraError) as error:
        aside(store, row, f"{type(error).__name__}: {error}")
