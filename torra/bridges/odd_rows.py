"""Judges a stored signal before anything is made of it: a row that cannot be read stands alone.

Torra writes no such row. A hand in the database, a damaged file or a restored copy may leave one,
and it must stop nobody but itself. `row_fault` says what is wrong, and `aside` is the alarm that a
person hears once. Who finds an odd row leaves it as it is: it is neither sent nor judged.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, get_args

from torra.clock import time_of
from torra.errors import MALFORMED, StoreUnavailable, TorraError, bounded
from torra.verdict.outbox import Outbox
from torra.verdict.risk_engine import Kind
from torra.verdict.signal_states import TRANSITIONS

KIND: Final = "ODD_SIGNAL"

CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "kind": get_args(Kind),
    "side": ("BUY", "SELL"),
    "state": tuple(TRANSITIONS),
}
TIMES: Final = ("bar_time", "decided_at")
LEVELS: Final[Mapping[str, tuple[str, ...]]] = {
    "open": ("entry", "stop", "target"), "close": (), "modify": ("stop",),
}  # fmt: skip
"""Prices that a signal must have, by its kind."""

COMPARED_TIMES: Final = ("missed_at", "opened_at", "closed_at", "expires")
"""Times that a row may be without, and that comparing the books reads."""

log = logging.getLogger("torra")


def row_fault(row: Mapping[str, Any]) -> str:
    """Return what keeps a signal's row from being read; "" for nothing.

    It must have id, instance and timeframe, be of a known kind, side and state, have lots, an
    opening its levels, and times that are times; an expiry, unless it is only compared.
    """
    for name in ("sid", "instance", "symbol", "timeframe"):
        if not isinstance(row.get(name), str) or not row[name]:
            return _said(name, row)
    for name, choices in CHOICES.items():
        if row.get(name) not in choices:
            return _said(name, row)
    for name in ("lots", *LEVELS[row["kind"]]):
        if not _is_amount(row.get(name)):
            return _said(name, row)
    return next((_said(name, row) for name in TIMES if not _is_time(row.get(name))), "")


def sending_fault(row: Mapping[str, Any]) -> str:
    """Return what keeps a signal from being sent or taken back: its expiry must be known too."""
    return row_fault(row) or ("" if _is_time(row.get("expires")) else _said("expires", row))


def comparing_fault(row: Mapping[str, Any]) -> str:
    """Return what keeps a signal from being compared with the books: its steps must be known."""
    if fault := row_fault(row):
        return fault
    if row.get("changed_at") is None:
        return "none of its steps is on record"
    if not _is_time(row["changed_at"]):
        return _said("changed_at", row)
    for name in COMPARED_TIMES:
        if row.get(name) is not None and not _is_time(row[name]):
            return _said(name, row)
    if not isinstance(row.get("misses"), int) or row["misses"] < 0:
        return _said("misses", row)
    filled = row.get("filled_lots")
    return "" if filled is None or filled == 0 or _is_amount(filled) else _said("filled_lots", row)


def aside(store: Outbox, row: Mapping[str, Any], fault: str) -> None:
    """Let a person hear once that a row is odd; nothing else is done to it."""
    name = bounded(str(row.get("sid") or f"number {row.get('seq')}"), 40)
    told = f"{name} cannot be read, it is left alone and never sent: {fault}"
    if store.raise_alarm(f"{KIND} {name}", KIND, told):
        log.error("%s", bounded(told))


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


def _said(name: str, row: Mapping[str, Any]) -> str:
    return bounded(f"{name} is {row.get(name)!r}")


def _is_amount(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value > 0  # type: ignore[arg-type, operator]


def _is_time(value: Any) -> bool:
    with suppress(*MALFORMED):
        return time_of(value).tzinfo is not None
    return False
