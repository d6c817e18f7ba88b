"""The findings of a comparison of the broker's books with the database, and what each changes.

Values only: `torra.trading.reconciliation` makes them, and the keeper of the signals books them.
`learned` says which columns a finding fills, `alarm_of` what a person must hear of it, and
`apply_to_rows` is the model that every booking follows. torra.verdict.trade_outcome judges what a
closed trade brought.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, Literal, NamedTuple

from torra.clock import iso
from torra.verdict.risk_engine import PositionSide
from torra.verdict.signal_states import TRANSITIONS

LOOKS: Final = 3
"""Comparisons with different books that must have missed something before that counts."""


@dataclass(frozen=True, slots=True)
class ReconciliationEvent:
    """Something that the books prove about the signal `sid` ("" for none).

    `teaches` names the fields that are columns of the table signals (`learned` reads them).
    """

    sid: str
    teaches: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True)
class Filled(ReconciliationEvent):
    """An opening has become a position; `state` is FILLED or PARTIAL, `price` the mean price."""

    state: str
    ticket: str
    price: float
    filled_lots: float
    opened_at: datetime
    deal: str = ""
    misses: int = 0
    teaches = ("state", "ticket", "price", "filled_lots", "opened_at", "deal", "misses")


@dataclass(frozen=True, slots=True)
class Amended(ReconciliationEvent):
    """More is known of a position: its number, or that more of the order has been filled."""

    ticket: str
    filled_lots: float
    teaches = ("ticket", "filled_lots")


@dataclass(frozen=True, slots=True)
class PartlyClosed(ReconciliationEvent):
    """Part of a position is closed: `filled_lots` are left; `by` is the broker's word, if told."""

    ticket: str
    filled_lots: float
    by: str
    teaches = ("ticket", "filled_lots")


@dataclass(frozen=True, slots=True)
class Closed(ReconciliationEvent):
    """A position has ended: it is gone, and closing deals cover it.

    `close_price` is their volume-weighted price, `closed_at` and `deal` the last one's, `profit`
    the sum over all deals of the position that are known, with swap and commission. `by` is the
    broker's word: sl, tp, stop_out, expert, client (by hand).
    """

    ticket: str
    close_price: float
    lots: float
    profit: float
    closed_at: datetime
    close_reason: Literal["STOPPED", "TARGET", "CLOSED"]
    by: str
    deal: str
    state: str = "CLOSED"
    misses: int = 0
    teaches = ("state", "close_price", "closed_at", "profit", "close_reason", "misses")


@dataclass(frozen=True, slots=True)
class CloseDone(ReconciliationEvent):
    """A close under way is over, as the position that it was to end shows.

    With `executed` its own deals did it, and `state` is FILLED, or PARTIAL for a part. Otherwise
    something else was quicker, nothing is left to do, and `state` is the one that says so.
    """

    state: str
    executed: bool
    price: float | None = None
    filled_lots: float | None = None
    closed_at: datetime | None = None
    deal: str = ""
    misses: int = 0
    teaches = ("state", "price", "filled_lots", "closed_at", "deal", "misses")


@dataclass(frozen=True, slots=True)
class LevelsMoved(ReconciliationEvent):
    """Stop or target at the broker are no longer those that were known; 0: there is none.

    `broker_stop` is where the stop stands now, None where there is none. The plan stays what it
    was: one R is still measured from the signal's own levels.
    """

    ticket: str
    stop: float
    target: float

    @property
    def broker_stop(self) -> float | None:
        """The stop as it is booked."""
        return self.stop or None

    teaches = ("broker_stop",)


@dataclass(frozen=True, slots=True)
class UnknownAtBroker(ReconciliationEvent):
    """A position or an order that these books do not show, and no deal says why.

    `state` is the row's, which stays; `misses` counts the looks; `missed_at` is the books' time.
    """

    state: str
    misses: int
    missed_at: datetime
    teaches = ("misses", "missed_at")


@dataclass(frozen=True, slots=True)
class ReappearedAtBroker(ReconciliationEvent):
    """What was missing is there again."""

    misses: int = 0
    teaches = ("misses",)


@dataclass(frozen=True, slots=True)
class NotSent(ReconciliationEvent):
    """An order whose fate was UNKNOWN has never reached the market."""

    misses: int
    state: str = "NOT_SENT"
    teaches = ("state", "misses")


@dataclass(frozen=True, slots=True)
class External(ReconciliationEvent):
    """A position with a magic number of ours that no signal explains.

    With a `sid` it is that signal's, but bigger than it ordered. It is never closed by itself.
    """

    ticket: str
    broker_symbol: str
    side: PositionSide
    lots: float
    instance: str


@dataclass(frozen=True, slots=True)
class Late(ReconciliationEvent):
    """The market has executed an opening that had ended here as `state`.

    `is_open` says whether it is held now. A position that is open while its signal is CLOSED here
    is one of them too.
    """

    state: str
    ticket: str
    is_open: bool


class Alarm(NamedTuple):
    """A message that a person must hear, under one key while it stands.

    `reduces` means that nothing may open until then.
    """

    key: str
    kind: str
    detail: str
    reduces: bool


def learned(finding: ReconciliationEvent) -> dict[str, Any]:
    """Return the columns of the table signals that a finding fills; `state` only where it moves."""
    told = {name: getattr(finding, name) for name in finding.teaches}
    return {
        name: iso(value) if isinstance(value, datetime) else value for name, value in told.items()
    }


def apply_to_rows(
    rows: Iterable[Mapping[str, Any]], findings: Iterable[ReconciliationEvent], *, at: datetime
) -> tuple[dict[str, Any], ...]:
    """Return the rows once findings are booked at a time: the model that every booking follows.

    Raises ValueError for a step that torra.verdict.signal_states does not allow.
    """
    after = {row["sid"]: dict(row) for row in rows}
    for finding in findings:
        row = after.get(finding.sid, {"state": ""})
        known = learned(finding)
        state = known.get("state", row["state"])
        if state != row["state"]:
            if state not in TRANSITIONS[row["state"]]:
                raise ValueError(f"{finding.sid} is {row['state']} and cannot become {state}")
            known["changed_at"] = iso(at)
        row.update(known)
    return tuple(after.values())


def alarm_of(finding: ReconciliationEvent) -> Alarm | None:
    """Return the alarm that a finding raises, None for no alarm."""
    sid = finding.sid
    match finding:
        case External(ticket=ticket):
            what = f"has more lots than {sid} ordered" if sid else "belongs to no signal"
            text = f"{finding.side} {finding.lots:.8g} {finding.broker_symbol}"
            text = f"position {ticket} ({text}, magic number of {finding.instance}) {what}"
            return Alarm(f"External {ticket}", "EXTERNAL", text, reduces=True)
        case Late(ticket=ticket, state=state):
            held = "is open" if finding.is_open else "was opened"
            text = f"position {ticket} of {sid} {held}, but the signal had ended {state}"
            return Alarm(f"Late {sid}", "LATE_EXECUTION", text, reduces=True)
        # A position may be slow to show after a fill: the first few misses are no news.
        case UnknownAtBroker(state=state, misses=misses) if misses > LOOKS:
            text = f"{sid} is {state}, but neither positions nor deals at the broker show it"
            return Alarm(missing_key(sid), "MISSING", text, reduces=False)
        # Levels may be moved by hand; a position without any stop is a danger.
        case LevelsMoved(stop=0.0, ticket=ticket):
            text = f"position {ticket} of {sid} has no stop at the broker"
            return Alarm(f"Unprotected {sid}", "UNPROTECTED", text, reduces=False)
    return None


def missing_key(sid: str) -> str:
    """Return the key of the alarm that a signal is missing; a finding with 0 misses ends it."""
    return f"Missing {sid}"
