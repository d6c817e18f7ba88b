"""Finds the position that each deal of DWX Connect's history belongs to; a deal does not say.

Pure. A deal that opened a position is known by the signal's id in its comment. Where the broker
changed the comment, magic number, symbol, side and time must fit. A deal that closed a position is
given to the opening before it: by its magic number, which stops and targets carry. Another number
counts only when nothing else fits, because the Expert Advisor closes under the number of whatever
it opened last, and a person closes under none.

A deal that fits nowhere, or in two places, keeps no position. A position that was never seen open
has no number here: "d" and its opening deal's number stand for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from torra.bridges.at_most_once import LOTS_SLACK, OrderMarks
from torra.bridges.dwx.files import DealRow, OrderRow
from torra.bridges.protocol import BrokerDeal, BrokerPosition
from torra.clock import EPOCH
from torra.market.broker_clock import ServerClock
from torra.verdict.risk_engine import CLOSES, OPENS, Side

TIME: Final = "%Y.%m.%d %H:%M:%S"
SIDES: Final[Mapping[str, Side]] = {"buy": "BUY", "sell": "SELL"}
REASONS: Final = (("[sl", "sl"), ("[tp", "tp"), ("[so", "stop_out"), ("so:", "stop_out"))
"""How the comment of a deal begins that the broker made by itself."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A position that a signal opened, as far as it is known; `since` is when it was sent.

    `closed_by` are the deals that were found to close it, once they all were.
    """

    sid: str
    position: str
    magic: int
    symbol: str
    side: Side
    lots: float
    since: datetime
    closed_by: tuple[str, ...] = ()


def moment_of(text: str, server: ServerClock) -> datetime:
    """Return the moment that a time on the server's wall clock stands for; raises ValueError."""
    wall = datetime.strptime(text, TIME).replace(tzinfo=UTC)
    return server.to_utc((wall - EPOCH) // timedelta(seconds=1))


def position_of(row: OrderRow, server: ServerClock) -> BrokerPosition:
    """Return a position as every bridge tells it; raises ValueError for a time that never was."""
    return BrokerPosition(
        ticket=row.ticket,
        broker_symbol=row.symbol,
        side=OPENS[SIDES[row.kind]],
        lots=row.lots,
        entry=row.price,
        stop=row.stop,
        target=row.target,
        magic=row.magic,
        comment=row.comment,
        profit=row.profit,
        opened_at=moment_of(row.time, server),
    )


def opened_by(row: DealRow | OrderRow, opening: Opening, at: datetime | None) -> bool:
    """Return whether a deal or position is what a signal opened; `at` is its own time if known."""
    if SIDES.get(row.kind) != opening.side:
        return False
    return OrderMarks(opening.sid, opening.magic, opening.symbol, opening.since).on(row, lambda: at)


def linked(
    rows: Sequence[DealRow],
    openings: Sequence[Opening],
    held: Sequence[OrderRow],
    server: ServerClock,
) -> tuple[BrokerDeal, ...]:
    """Return the deals with their positions; `rows` are in the order of time."""
    times = [moment_of(row.time, server) for row in rows]
    ins = _ins(rows, times, openings)
    names: dict[int, str] = {}
    for number, row in enumerate(rows):
        if _entry(row) == "in" and number not in ins:
            names[number] = next((h.ticket for h in held if _same(h, row)), "")
    # Of several parts of one fill the last counts: closes are looked for after it.
    starts = {opening.sid: number for number, opening in ins.items()}
    stand_in: dict[str, str] = {}
    for number, opening in ins.items():
        # All parts of one fill share the number of the first.
        first = stand_in.setdefault(opening.sid, f"d{rows[number].deal}")
        names[number] = opening.position or first
    # Oldest first: a closing deal goes to the first opening that it fits.
    for opening in sorted(openings, key=lambda item: starts.get(item.sid, -1)):
        start = starts.get(opening.sid, -1)
        outs = _outs(rows, opening, start, _end(opening, openings, starts, rows), names, held)
        for number in outs:
            names[number] = names[start] if start >= 0 else opening.position
    return tuple(
        _deal(row, names.get(number, ""), times[number])
        for number, row in enumerate(rows)
        if _entry(row)
    )


def _ins(
    rows: Sequence[DealRow], times: Sequence[datetime], openings: Sequence[Opening]
) -> dict[int, Opening]:
    """Return the opening of each row that opened a position, by the row's number."""
    found: dict[int, Opening] = {}
    for number, (row, at) in enumerate(zip(rows, times, strict=True)):
        fits = [item for item in openings if _entry(row) == "in" and opened_by(row, item, at)]
        named = [item for item in fits if item.sid in row.comment] or fits
        # With two candidates nobody can tell: rather no position than a wrong one.
        if len(named) == 1:
            found[number] = named[0]
    return found


def _end(
    opening: Opening,
    openings: Sequence[Opening],
    starts: Mapping[str, int],
    rows: Sequence[DealRow],
) -> int:
    """Return where the next position under this number begins: one is open at a time."""
    start = starts.get(opening.sid, -1)
    later = [
        starts[item.sid]
        for item in openings
        if item.magic == opening.magic and starts.get(item.sid, -1) > start
    ]
    return min(later, default=len(rows))


def _outs(
    rows: Sequence[DealRow],
    opening: Opening,
    start: int,
    end: int,
    names: Mapping[int, str],
    held: Sequence[OrderRow],
) -> list[int]:
    """Return the rows that closed a position, or parts of it."""
    # A link that was complete once stands, though a later deal may fit as well.
    if opening.closed_by:
        return [number for number, row in enumerate(rows) if row.deal in opening.closed_by]
    # What is still open cannot have been closed.
    left = opening.lots - sum(row.lots for row in held if row.ticket == opening.position)
    free = [
        number
        for number in range(start + 1, end)
        if number not in names and _closes(rows[number], opening)
    ]
    taken: list[int] = []
    for number in [item for item in free if rows[item].magic == opening.magic]:
        if rows[number].lots <= left + LOTS_SLACK:
            taken.append(number)
            left -= rows[number].lots
    rest = [
        number
        for number in free
        if number not in taken and left > LOTS_SLACK and abs(rows[number].lots - left) <= LOTS_SLACK
    ]
    # Of two foreign deals that would both fit, neither is taken.
    return [*taken, *rest] if len(rest) == 1 else taken


def _closes(row: DealRow, opening: Opening) -> bool:
    side = CLOSES[OPENS[opening.side]]
    return _entry(row) == "out" and row.symbol == opening.symbol and SIDES.get(row.kind) == side


def _same(held: OrderRow, row: DealRow) -> bool:
    return (held.symbol, held.kind, held.time, held.magic) == (
        row.symbol,
        row.kind,
        row.time,
        row.magic,
    )


def _entry(row: DealRow) -> Literal["in", "out", ""]:
    if row.entry == "entry_in":
        return "in"
    return "out" if row.entry in ("entry_out", "entry_out_by", "in_out") else ""


def _deal(row: DealRow, position: str, at: datetime) -> BrokerDeal:
    return BrokerDeal(
        deal=row.deal,
        position=position,
        broker_symbol=row.symbol,
        entry="in" if _entry(row) == "in" else "out",
        side=SIDES[row.kind],
        lots=row.lots,
        price=row.price,
        profit=row.profit,
        magic=row.magic,
        comment=row.comment,
        time=at,
        reason=next((why for start, why in REASONS if row.comment.startswith(start)), ""),
    )
