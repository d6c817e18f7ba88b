"""Decides what became of an order behind DWX Connect, from account, history and messages.

Pure. A position or a deal proves an execution. A refusal is proven only by a message that the
Expert Advisor gives before it has sent anything. Everything else stays open here; the caller
decides how long to wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from torra.bridges.at_most_once import LOTS_SLACK, executed_as, moved, opened, stands
from torra.bridges.dwx.deals import Opening, moment_of, opened_by
from torra.bridges.dwx.files import DealRow, DwxAccount, Message, OrderRow
from torra.bridges.order_journal import OrderEntry
from torra.bridges.protocol import Order, Report
from torra.market.broker_clock import ServerClock

REFUSALS: Final[Mapping[str, str]] = {
    "OPEN_ORDER_WRONG_FORMAT": "schema",
    "OPEN_ORDER_TYPE": "schema",
    "OPEN_ORDER_MAXIMUM_NUMBER": "max_positions",
    "OPEN_ORDER_LOTSIZE_OUT_OF_RANGE": "volume",
    "OPEN_ORDER_LOTSIZE_TOO_LARGE": "max_lots",
    "OPEN_ORDER_PRICE_ZERO": "quote",
}
"""Errors that the Expert Advisor gives before it has sent anything, as reasons of our guards."""

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "close": ("CLOSE_ORDER", "CLOSE_ORDER_TICKET"),
    "modify": ("MODIFY_ORDER", "MODIFY_ORDER"),
}
"""By the kind of an order about a position: its command, and the error of a send that failed."""

TRADING_FORBIDDEN: Final = "ErrorCode: 4752"
"""The terminal's own refusal to let an Expert Advisor trade."""

JUST_BEFORE: Final = timedelta(minutes=1)
"""How much earlier than its order a deal may seem to be: the clocks of the two sides differ."""


@dataclass(frozen=True, slots=True)
class DwxView:
    """What the Expert Advisor shows at a moment; `account` is None when it is not known."""

    account: DwxAccount | None
    deals: Sequence[DealRow]
    server: ServerClock
    now: datetime

    def moment(self, row: OrderRow | DealRow) -> datetime | None:
        """Return a row's time in UTC; None for one that the server never shows."""
        try:
            return moment_of(row.time, self.server)
        except ValueError:
            return None


def outcome(entry: OrderEntry, seen: DwxView) -> Report | None:
    """Return the report of an order whose execution is proven, None while it is not."""
    if entry.order.kind == "modify":
        return _moved(entry, seen)
    if entry.order.kind == "close":
        deals = _closing_deals(entry, seen)
        # Another close of this size may have made the deal: the position must be smaller too.
        done = _closed_lots(entry, seen) >= entry.order.lots - LOTS_SLACK
        return _closed(entry, seen, deals[-1], entry.order.lots) if deals and done else None
    opening = opening_of(entry)
    rows = seen.account.positions if seen.account else ()
    # With a mangled comment a position of before would fit as well as the new one.
    before = entry.notes["held"].split(",")
    positions = [row for row in rows if row.ticket not in before and _fits(row, opening, seen)]
    # A stop may have ended the position within the second: then only deals show it.
    deals = [row for row in seen.deals if row.entry == "entry_in" and _fits(row, opening, seen)]
    found = positions or deals
    return filled(entry.order, found, seen, adopted=entry.loaded) if found else None


def late_outcome(entry: OrderEntry, seen: DwxView) -> Report:
    """Return the report of an order that nothing has proven executed in time.

    A close whose position is smaller, or gone, is done all the same; its price is 0, not known.
    """
    lots = _closed_lots(entry, seen) if entry.order.kind == "close" else 0.0
    if lots > LOTS_SLACK:
        return _closed(entry, seen, None, min(lots, entry.order.lots))
    return Report(entry.order.sid, "UNKNOWN", seen.now)


def refusal(entry: OrderEntry, messages: Iterable[Message]) -> str:
    """Return the reason, one of a guard's, that messages since the order prove; "" for none."""
    reasons = (_reason(entry, message) for message in messages)
    return next(filter(None, reasons), "")


def opening_of(entry: OrderEntry) -> Opening:
    """Return the position that an entry has opened or is to open, as far as it is known."""
    report = entry.report
    return Opening(
        sid=entry.order.sid,
        position=report.position if report else "",
        magic=entry.order.magic,
        symbol=entry.order.broker_symbol,
        side=entry.order.side,
        lots=report.volume if report and report.volume else entry.order.lots,
        since=entry.intent or (report.at if report else entry.order.created),
        closed_by=tuple(filter(None, entry.notes.get("closed_by", "").split(","))),
    )


def position_meant(order: Order, account: DwxAccount) -> OrderRow | None:
    """Return the position that an order is about: by its number, else by its opening's id."""
    rows = account.positions
    if order.ticket:
        return next((row for row in rows if row.ticket == order.ticket), None)
    return next((row for row in rows if opened(row, order)), None)


def filled(
    order: Order, rows: Sequence[OrderRow | DealRow], seen: DwxView, *, adopted: bool
) -> Report:
    """Return the report of an opening that became these positions, or these deals."""
    first = rows[0]
    lots = round(sum(row.lots for row in rows), 2)
    value = sum(row.lots * row.price for row in rows)
    held = isinstance(first, OrderRow)
    return Report(
        order.sid,
        executed_as(order, lots),
        seen.moment(first) or seen.now,
        ticket=first.ticket if isinstance(first, OrderRow) else "",
        deal=first.deal if isinstance(first, DealRow) else "",
        # The history has no position numbers: the deal stands for one (see deals).
        position=first.ticket if isinstance(first, OrderRow) else f"d{first.deal}",
        price=first.price if held or not lots else round(value / lots, order.digits),
        volume=lots,
        adopted=adopted,
    )


def _moved(entry: OrderEntry, seen: DwxView) -> Report | None:
    """Return the report of the move of a stop, None while the stop stands elsewhere."""
    ticket = entry.notes["ticket"]
    rows = seen.account.positions if seen.account else ()
    found = any(row.ticket == ticket and stands(row.stop, entry.order) for row in rows)
    return moved(entry.order, ticket, seen.now, adopted=entry.loaded) if found else None


def _fits(row: OrderRow | DealRow, opening: Opening, seen: DwxView) -> bool:
    return opened_by(row, opening, seen.moment(row))


def _closing_deals(entry: OrderEntry, seen: DwxView) -> list[DealRow]:
    """Return the deals that may be a close's own: of its symbol, side, lots and time."""
    order, since = entry.order, (entry.intent or seen.now) - JUST_BEFORE
    fits = [
        row
        for row in seen.deals
        if (row.symbol, row.kind) == (order.broker_symbol, order.side.lower())
        and row.entry != "entry_in"
        and abs(row.lots - order.lots) <= LOTS_SLACK
    ]
    return [row for row in fits if (seen.moment(row) or seen.now) >= since]


def _closed_lots(entry: OrderEntry, seen: DwxView) -> float:
    """Return by how much the position of a close is smaller than before it."""
    if seen.account is None:
        return 0.0
    ticket = entry.notes["ticket"]
    left = sum(row.lots for row in seen.account.positions if row.ticket == ticket)
    return float(entry.notes["lots"]) - left


def _closed(entry: OrderEntry, seen: DwxView, deal: DealRow | None, lots: float) -> Report:
    at = seen.moment(deal) if deal else None
    return Report(
        entry.order.sid,
        executed_as(entry.order, lots),
        at or seen.now,
        deal=deal.deal if deal else "",
        position=entry.notes["ticket"],
        price=deal.price if deal else 0.0,
        volume=round(lots, 2),
        adopted=entry.loaded,
    )


def _reason(entry: OrderEntry, message: Message) -> str:
    """Return the guard's reason that one message stands for; "" for none."""
    forbidden = "autotrading_off" if message.text.endswith(TRADING_FORBIDDEN) else ""
    if entry.order.kind == "open":
        # OPEN_ORDER also stands for a send that failed and may have arrived: no refusal.
        return forbidden if message.error == "OPEN_ORDER" else REFUSALS.get(message.error, "")
    ticket = entry.notes["ticket"]
    command, failed = COMMANDS[entry.order.kind]
    if message.error == f"{command}_SELECT_TICKET" and message.text.endswith(f" {ticket}"):
        return "no_position"
    # The message must name our ticket: another order's refusal is none of ours.
    ours = message.error == failed and f" {ticket}:" in message.text
    return forbidden if ours else ""
