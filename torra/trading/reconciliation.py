"""Compares the broker's books with the database: what happened that no report told of.

`reconcile` compares the signals of one bridge with the broker's positions and deals and returns
findings. It is pure, and what is in doubt stays in doubt: a position that
cannot be seen is not a position that was closed, and an order that cannot be seen is not an order
that was never sent. A close needs closing deals. "Never sent" needs several looks at different
books, a minute, a list of deals that reaches back far enough, and no unexplained position or deal
of the same magic number. A position of ours that no signal explains is reported and left alone; one
with another magic number does not exist here.

The same books a second time change nothing: booking the findings leads to the same rows. A row is
left out until the books are `SETTLE_SECONDS` younger than its last step: clocks differ, and an
order needs a moment to show. Books must come in the order of their time.
torra.trading.settlement books the findings and raises their alarms;
torra.verdict.trade_outcome judges what a close brought.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from torra.bridges.protocol import OFFSET_TOLERANCE, BrokerBooks, BrokerDeal, BrokerPosition
from torra.clock import iso, time_of
from torra.verdict.risk_engine import OPENS
from torra.verdict.signal_states import EXECUTED, SENT, TRANSITIONS, UNEXECUTED

Row = Mapping[str, Any]

LOOKS: Final = 3
"""Comparisons with different books that must have missed something before that counts."""

SETTLE_SECONDS: Final = OFFSET_TOLERANCE
"""Seconds by which books must be younger than a row's last step, or than a position."""

UNSEEN_SECONDS: Final = 60.0
"""Seconds that an order must have been UNKNOWN before it can count as never sent.

An order without an answer is looked for this long after its expiry.
"""

SURE_PREFIX: Final = 8
"""Characters of a signal's id that identify it in a comment that a broker cut or changed.

With the first letter these are 35 bits, and the magic number must fit as well.
"""

WAYS: Final = 3
"""Ways to tell which position is an opening's: by number, by name, by the beginning of the name."""

LOTS: Final = 1e-9
"""Lots that binary fractions may be off."""

PRICE_SHARE: Final = 1e-9
"""Share of a price by which two writings of the same level may differ."""

REASONS: Final[Mapping[str, Literal["STOPPED", "TARGET"]]] = {"sl": "STOPPED", "tp": "TARGET"}
"""The broker's word for the deal that ended a position; every other one is CLOSED."""

BY_ADVISOR: Final = ("expert", "")
"""The broker's words for a deal that a program asked for; some bridges cannot tell."""

NO_DEALS: Final = {
    "price": None, "filled_lots": None, "closed_at": None, "deal": "", "misses": 0,
}  # fmt: skip
"""The columns of a close that no deals have made."""

ENDED: Final = (*UNEXECUTED, "CLOSED")
"""States of an opening that holds no position, as far as is known here."""


FindingKind = Literal[
    "FILLED", "AMENDED", "PARTLY_CLOSED", "CLOSED", "CLOSE_DONE", "LEVELS_MOVED", "UNSEEN",
    "REAPPEARED", "NOT_SENT", "EXTERNAL", "LATE", "LATE_ENDED",
]  # fmt: skip
"""What the books prove:

FILLED        an opening has become a position, whole or in part
AMENDED       more is known of a position: its number, or that more of the order has been filled
PARTLY_CLOSED part of a position is closed: `filled_lots` are left
CLOSED        a position is gone, and closing deals cover it; `profit` is the sum over all deals
              of the position that are known, with swap and commission
CLOSE_DONE    a close or a stop's move is over: executed, or something else was quicker
LEVELS_MOVED  stop or target at the broker are no longer those that were known; the plan stays
UNSEEN        a position or an order that these books do not show, and no deal says why
REAPPEARED    what was missing is there again
NOT_SENT      an order whose fate was UNKNOWN has never reached the market
EXTERNAL      a position with a magic number of ours that no signal explains; with a `sid` it is
              that signal's, but bigger than it ordered. It is never closed by itself
LATE          the market has executed an opening that had ended here, and holds the position;
              LATE_ENDED: it is over
"""


class Alarm(NamedTuple):
    """A message that a person must hear, under one key while it stands.

    `reduces` means that nothing may open until then.
    """

    key: str
    kind: str
    detail: str
    reduces: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the books prove about the signal `sid` ("" for none) or a position.

    `values` are columns of the table signals, `state` among them where the signal ends its state.
    """

    kind: FindingKind
    sid: str
    ticket: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    alarm: Alarm | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The columns as the table keeps them."""
        return {
            name: iso(value) if isinstance(value, datetime) else value
            for name, value in self.values.items()
        }


def missing_key(sid: str) -> str:
    """Return the key of the alarm that a signal is missing."""
    return f"Missing {sid}"


def reconcile(
    rows: Sequence[Row], books: BrokerBooks, *, now: datetime, magics: Mapping[str, int]
) -> tuple[Finding, ...]:
    """Return what the books prove about the signals of one bridge, openings before closes.

    `rows` are its signals as the table keeps them: all that are not finished with the openings that
    they name, and those that ended lately, so that a position of theirs can be told from a
    stranger's. Each has `changed_at`, the time of its last step, and may have `missed_at`, the time
    of the books that missed it last. They must be read after the books. `magics` maps every
    instance of the bridge to its magic number. `now` is real time: books from the future prove
    nothing.
    """
    if books.at > now + timedelta(seconds=OFFSET_TOLERANCE):
        return ()
    desk = _Desk(rows, _Index(books), magics)
    # Openings first: a close asks whether its position was found closed.
    openings = [finding for row in desk.openings for finding in desk.opening(row)]
    closed = {finding.sid for finding in openings if finding.kind == "CLOSED"}
    ends = [
        finding
        for kind in ("close", "modify")
        for row in rows
        if row["kind"] == kind
        for finding in desk.end(row, closed)
    ]
    return (*openings, *ends, *desk.strangers())


class _Trace(NamedTuple):
    """One sign of a position: the position itself, or the deal that opened it."""

    at: datetime
    ticket: str
    magic: int
    comment: str


class _Index:
    """The books by position number and by the comments of positions."""

    def __init__(self, books: BrokerBooks) -> None:
        self.at, self.since = books.at, books.since
        self.positions = {item.ticket: item for item in books.positions}
        self.ins: dict[str, list[BrokerDeal]] = defaultdict(list)
        self.outs: dict[str, list[BrokerDeal]] = defaultdict(list)
        for deal in sorted(filter(_placed, books.deals), key=_in_time):
            (self.ins if deal.entry == "in" else self.outs)[deal.position].append(deal)
        self.traces = sorted(_traces(books))
        self._called: dict[tuple[int | None, str], list[_Trace]] = defaultdict(list)
        for trace in self.traces:
            for name in {trace.comment, head(trace.comment)}:
                self._called[trace.magic, name].append(trace)

    def knows(self, ticket: str) -> bool:
        """Return whether a position shows anywhere."""
        return ticket in self.positions or ticket in self.ins or ticket in self.outs

    def called(self, magic: int | None, name: str) -> list[str]:
        """Return the positions of a magic number whose comment is, or begins, so."""
        traces = self._called.get((magic, name), ())
        return [trace.ticket for trace in traces if trace.ticket]

    def passed(self, moment: str | datetime, seconds: float) -> bool:
        """Return whether so many seconds had passed since a moment when the books were written."""
        return self.at >= time_of(moment) + timedelta(seconds=seconds)


class _Desk:
    """One comparison: the rows beside the index of the books."""

    def __init__(self, rows: Sequence[Row], index: _Index, magics: Mapping[str, int]) -> None:
        self._index = index
        self._rows = {row["sid"]: row for row in rows}
        self._magics = magics
        self.openings = [row for row in rows if row["kind"] == "open"]
        self._closes = {head(row["sid"]): row["deal"] for row in rows if row["kind"] == "close"}
        # In their order: the last move of a stop that was executed is where it stands.
        moves = [row for row in rows if row["kind"] == "modify" and row["state"] == "FILLED"]
        self._stops = {str(row["closes"]): float(row["stop"]) for row in moves}
        self._tickets = self._match()
        self._explained = set(self._tickets.values())

    # --- which position is whose ------------------------------------------------------------------

    def _match(self) -> dict[str, str]:
        """Return the position of each opening: by its number, by its name, by the name's head.

        No position belongs to two openings; of two for one opening the earlier is its own.
        """
        matches: dict[str, str] = {}
        candidates = {row["sid"]: [*self._candidates(row)] for row in self.openings}
        # The surest way for every row before the next way for any: no guess takes a sure match.
        for way in range(WAYS):
            for sid, ways in candidates.items():
                taken = set(matches.values())
                ticket = next((one for one in ways[way] if one not in taken), "")
                if sid not in matches and ticket:
                    matches[sid] = ticket
        return matches

    def _candidates(self, row: Row) -> Iterator[list[str]]:
        """Yield the positions that may be an opening's: by its number, its name, the name's head.

        One that is open must still be on the side of its opening.
        """
        name, magic = head(row["sid"]), self._magics.get(row["instance"])
        number, index = row["ticket"] or "", self._index
        for tickets in (
            [number] if number and index.knows(number) else [],
            index.called(magic, _plain(row["sid"])),
            index.called(magic, name) if len(name) == SURE_PREFIX else [],
        ):
            yield [
                ticket
                for ticket in tickets
                if ticket not in index.positions
                or index.positions[ticket].side == OPENS[row["side"]]
            ]

    # --- openings ---------------------------------------------------------------------------------

    def opening(self, row: Row) -> Iterator[Finding]:
        """Yield what the books say of an opening."""
        ticket = self._tickets.get(row["sid"], "")
        if self._young(row):
            return
        if row["state"] in SENT:
            filled = self._filled(row, ticket)
            if filled is None:
                yield from self._unseen(row)
            else:
                yield filled
                # The same books may show its end too.
                yield from self._attributed({**row, **filled.columns}, ticket)
        elif row["state"] in EXECUTED:
            yield from self._attributed(row, ticket)
        elif row["state"] in ENDED and ticket:
            is_open = ticket in self._index.positions
            # A trade that was booked as closed shows in the deals for days: no news.
            if is_open or row["state"] in UNEXECUTED:
                yield _late(row, ticket, is_open)

    def _filled(self, row: Row, ticket: str) -> Finding | None:
        """Return the fill by its deals, or by the position where the deals are too old."""
        deals, position = self._index.ins.get(ticket, []), self._index.positions.get(ticket)
        if deals:
            lots, price, at = _volume(deals), _mean(deals), deals[0].time
        elif position is not None:
            lots, price, at = position.lots, position.entry, position.opened_at
        else:
            return None
        values = {
            "state": _filled_state(row, lots),
            "ticket": ticket,
            "price": price,
            "filled_lots": lots,
            "opened_at": at,
            "deal": deals[0].deal if deals else "",
            "misses": 0,
        }
        return Finding("FILLED", row["sid"], ticket, values)

    def _attributed(self, row: Row, ticket: str) -> Iterator[Finding]:
        position = self._index.positions.get(ticket)
        if position is not None:
            yield from self._open(row, position)
        elif closed := self._closed(row, ticket):
            yield closed
        else:
            yield from self._unseen(row)

    def _open(self, row: Row, position: BrokerPosition) -> Iterator[Finding]:
        sid, lots, number = row["sid"], _filled_lots(row), position.ticket
        if row["misses"]:
            yield Finding("REAPPEARED", sid, number, {"misses": 0})
        values = {"ticket": number, "filled_lots": position.lots}
        if position.lots < lots - LOTS:
            yield Finding("PARTLY_CLOSED", sid, number, values)
        elif position.lots > lots + LOTS or number != row["ticket"]:
            yield Finding("AMENDED", sid, number, values)
        if position.lots > row["lots"] + LOTS:
            yield _external(position, row["instance"], sid)
        booked, known = row.get("broker_stop"), self._stops.get(sid, float(row["stop"]))
        back = booked is not None and not _same(position.stop, float(booked))
        if back or not (_same(position.stop, known) and _same(position.target, row["target"])):
            yield _levels_moved(sid, position)

    def _closed(self, row: Row, ticket: str) -> Finding | None:
        """Return the end of a position that is gone; None while no deals explain that."""
        ins, outs = self._index.ins.get(ticket, []), self._index.outs.get(ticket, [])
        # A position that is gone without deals may only be missing from these books.
        if not outs or not self._covered(row, _volume(ins), _volume(outs)):
            return None
        values = {
            "state": "CLOSED",
            "close_price": _mean(outs),
            "closed_at": outs[-1].time,
            "profit": _sum(deal.profit for deal in (*ins, *outs)),
            "close_reason": REASONS.get(outs[-1].reason, "CLOSED"),
            "misses": 0,
        }
        return Finding("CLOSED", row["sid"], ticket, values)

    def _covered(self, row: Row, opened: float, closed: float) -> bool:
        """Return whether closing deals account for a whole position.

        Where the opening deals are too old to be listed, the order says how much that was. Then
        earlier closes may be too old too, and after some looks it is enough to cover what was left.
        """
        if not opened:
            opened = row["lots"] if row["state"] == "FILLED" else _filled_lots(row)
            # Still missing after some looks: the earlier closes are too old to be listed.
            if self._looks(row) > LOOKS:
                opened = min(opened, _filled_lots(row))
        return bool(closed > opened - LOTS)

    # --- closes and moves of a stop ---------------------------------------------------------------

    def end(self, row: Row, closed: set[str]) -> Iterator[Finding]:
        """Yield what the books prove about a close or the move of a stop.

        `closed` are openings found to be closed: what was to be done with one is over.
        """
        # PENDING too: a close that waits may have nothing left to close.
        if row["state"] not in (*SENT, "PENDING") or self._young(row):
            return
        opening = self._rows.get(row["closes"])
        if opening is None or opening["state"] in ENDED or opening["sid"] in closed:
            yield self._close_done(row, self._own_deals(row, opening))
            return
        position = self._index.positions.get(self._tickets.get(opening["sid"], ""))
        if position is None:
            return
        if row["kind"] == "modify":
            yield from self._move(row, position)
            return
        deals = self._own_deals(row, opening)
        if deals and row["state"] == "UNKNOWN":
            yield self._close_done(row, deals)
        elif row["state"] in SENT:
            yield from self._unseen(row)

    def _move(self, row: Row, position: BrokerPosition) -> Iterator[Finding]:
        """Yield the end of a stop's move: done where the stop stands where it was to go.

        One that stands elsewhere long after the other side has refused what had expired was not.
        """
        if row["state"] == "PENDING":
            return
        if _same(position.stop, row["stop"]):
            values = {"state": "FILLED", "closed_at": self._index.at}
            yield Finding("CLOSE_DONE", row["sid"], values={**NO_DEALS, **values})
        elif self._overdue(row):
            yield self._close_done(row, ())

    def _own_deals(self, row: Row, opening: Row | None) -> list[BrokerDeal]:
        """Return the closing deals that a close made: they bear its name, or the advisor's mark."""
        if opening is None or row["state"] == "PENDING" or row["kind"] == "modify":
            return []
        ticket = self._tickets.get(opening["sid"], "") or opening["ticket"] or ""
        outs = self._index.outs.get(ticket, [])
        return [deal for deal in outs if self._made(row, deal)]

    def _made(self, row: Row, deal: BrokerDeal) -> bool:
        name = head(deal.comment)
        # A deal that another close has made, by name or number, is not this one's.
        if name in self._closes or deal.deal in self._closes.values():
            return name == head(row["sid"])
        decided = time_of(row["decided_at"]) - timedelta(seconds=SETTLE_SECONDS)
        ours = deal.magic == self._magics.get(row["instance"]) and deal.reason in BY_ADVISOR
        return ours and deal.time >= decided

    def _close_done(self, row: Row, deals: Sequence[BrokerDeal]) -> Finding:
        if not deals:
            # The first end that the row's state allows: a PENDING one was never sent.
            allowed = TRANSITIONS[row["state"]]
            ends = (name for name in ("CANCELLED", "REJECTED", "NOT_SENT") if name in allowed)
            return Finding("CLOSE_DONE", row["sid"], values={**NO_DEALS, "state": next(ends)})
        lots, last = _volume(deals), deals[-1]
        values = {
            "state": _filled_state(row, lots),
            "price": _mean(deals),
            "filled_lots": lots,
            "closed_at": last.time,
            "deal": last.deal,
        }
        return Finding("CLOSE_DONE", row["sid"], values={**NO_DEALS, **values})

    # --- what cannot be seen ----------------------------------------------------------------------

    def _unseen(self, row: Row) -> Iterator[Finding]:
        """Yield that a signal does not show in these books, once for each of them."""
        misses, unknown = self._looks(row), row["state"] == "UNKNOWN"
        # The same books again prove nothing new.
        if misses == row["misses"]:
            return
        if unknown and misses >= LOOKS and self._surely_absent(row):
            yield Finding("NOT_SENT", row["sid"], values={"state": "NOT_SENT", "misses": misses})
        elif unknown or row["state"] in EXECUTED or self._overdue(row):
            yield _unseen(row, misses, self._index.at)

    def _looks(self, row: Row) -> int:
        """Return how many books have missed it, with these: the same ones count once."""
        missed_at = row.get("missed_at")
        again = missed_at is not None and self._index.at <= time_of(missed_at)
        return int(row["misses"]) + (not again)

    def _overdue(self, row: Row) -> bool:
        """Return whether an answer should have come: the other side refuses what has expired."""
        return bool(row["expires"]) and self._index.passed(row["expires"], UNSEEN_SECONDS)

    def _surely_absent(self, row: Row) -> bool:
        """Return whether these books would show an order if it had been executed.

        A position that nobody explains casts doubt on an opening however old it looks, on a close
        (its own position is there, or this is not asked) only when it is younger.
        """
        decided = time_of(row["decided_at"]) - timedelta(seconds=SETTLE_SECONDS)
        # The clocks of the two sides may differ by this much.
        if not self._index.passed(row["changed_at"], UNSEEN_SECONDS) or self._index.since > decided:
            return False
        magic = self._magics.get(row["instance"])
        now_open = self._index.positions if row["kind"] == "open" else {}
        return not any(
            trace.magic == magic
            and trace.ticket not in self._explained
            and (trace.at >= decided or trace.ticket in now_open)
            for trace in self._index.traces
        )

    def _young(self, row: Row) -> bool:
        return not self._index.passed(row["changed_at"], SETTLE_SECONDS)

    # --- positions without a signal ---------------------------------------------------------------

    def strangers(self) -> Iterator[Finding]:
        """Yield every position with a magic number of ours that no opening explains."""
        ours = {magic: instance for instance, magic in self._magics.items()}
        for ticket, position in sorted(self._index.positions.items()):
            known = ticket in self._explained or position.magic not in ours
            # A new position may show before the report that explains it is booked.
            if not known and self._index.passed(position.opened_at, SETTLE_SECONDS):
                yield _external(position, ours[position.magic])


def _traces(books: BrokerBooks) -> Iterator[_Trace]:
    for item in books.positions:
        yield _Trace(item.opened_at, item.ticket, item.magic, _plain(item.comment))
    for deal in books.deals:
        if deal.entry == "in":
            yield _Trace(deal.time, deal.position, deal.magic, _plain(deal.comment))


def _external(position: BrokerPosition, instance: str, sid: str = "") -> Finding:
    what = f"has more lots than {sid} ordered" if sid else "belongs to no signal"
    size = f"{position.side} {position.lots:.8g} {position.broker_symbol}"
    text = f"position {position.ticket} ({size}, magic number of {instance}) {what}"
    alarm = Alarm(f"External {position.ticket}", "EXTERNAL", text, reduces=True)
    return Finding("EXTERNAL", sid, position.ticket, alarm=alarm)


def _late(row: Row, ticket: str, is_open: bool) -> Finding:
    sid, state = row["sid"], "is open" if is_open else "was opened"
    text = f"position {ticket} of {sid} {state}, but the signal had ended {row['state']}"
    alarm = Alarm(f"Late {sid}", "LATE_EXECUTION", text, reduces=True)
    return Finding("LATE" if is_open else "LATE_ENDED", sid, ticket, alarm=alarm)


def _levels_moved(sid: str, position: BrokerPosition) -> Finding:
    values, alarm = {"broker_stop": position.stop or None}, None
    # Levels may be moved by hand; a position without any stop is a danger.
    if not position.stop:
        text = f"position {position.ticket} of {sid} has no stop at the broker"
        alarm = Alarm(f"Unprotected {sid}", "UNPROTECTED", text, reduces=False)
    return Finding("LEVELS_MOVED", sid, position.ticket, values, alarm)


def _unseen(row: Row, misses: int, at: datetime) -> Finding:
    sid, alarm = row["sid"], None
    # A position may be slow to show after a fill: the first few misses are no news.
    if misses > LOOKS:
        text = f"{sid} is {row['state']}, but neither positions nor deals at the broker show it"
        alarm = Alarm(missing_key(sid), "MISSING", text, reduces=False)
    return Finding("UNSEEN", sid, values={"misses": misses, "missed_at": at}, alarm=alarm)


def _filled_state(row: Row, lots: float) -> str:
    return "FILLED" if lots > row["lots"] - LOTS else "PARTIAL"


def _filled_lots(row: Row) -> float:
    filled = row["filled_lots"]
    return float(row["lots"] if filled is None else filled)


def _same(level: float, planned: float) -> bool:
    return math.isclose(level, planned, rel_tol=PRICE_SHARE)


def _volume(deals: Iterable[BrokerDeal]) -> float:
    return _sum(deal.lots for deal in deals)


def _mean(deals: Sequence[BrokerDeal]) -> float:
    """Return the volume-weighted price."""
    return round(_sum(deal.lots * deal.price for deal in deals) / _volume(deals), 8)


def _sum(values: Iterable[float]) -> float:
    # fsum and a rounding: the same deals in another order give the same number.
    return round(math.fsum(values), 8)


def _placed(deal: BrokerDeal) -> bool:
    """Return whether the position of a deal is known; any other deal is only a doubt."""
    return bool(deal.position)


def _in_time(deal: BrokerDeal) -> tuple[datetime, int, str]:
    """Order deals by time, then by number: numbers are text, and the longer is the later."""
    return deal.time, len(deal.deal), deal.deal


def _plain(text: str) -> str:
    return text.strip().upper()


def head(text: str) -> str:
    """Return the part of a signal's id that a comment surely keeps."""
    return _plain(text)[:SURE_PREFIX]
