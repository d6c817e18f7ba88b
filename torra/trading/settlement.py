"""Books what a comparison of the broker's books with the database has found.

One transaction for one comparison: the findings of torra.trading.reconciliation become steps and
columns of the signals, and alarms where a person must look. A second booking changes nothing.
torra.trading.reconciliation decides what a finding is, the courier fetches the books, and the store
judges what a trade brought as it closes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from instance_database import Database
from torra.bridges.odd_rows import aside, comparing_fault, isolate_row_errors
from torra.bridges.protocol import BrokerBooks
from torra.store.trade import proposals_and_alarms as execution_table
from torra.trading.reconciliation import Finding, head, missing_key, reconcile
from torra.verdict.risk_engine import OPENS
from torra.verdict.signal_states import EXECUTED
from torra.verdict.trade_outcome import r_of

REMEMBERED: Final = timedelta(days=8)
"""Signals that ended longer ago are not looked for: the books tell of seven days."""

IN_BOOKS: Final = "found at the broker"
"""Detail of a step that the books have shown and no report."""


def settle(
    database: Database, magics: Mapping[str, int], books: BrokerBooks, *, now: datetime
) -> Sequence[Finding]:
    """Compare the books of a bridge with its signals and book the findings; return them.

    `magics` maps each instance of the bridge to its magic number, `now` is real time. A row that
    cannot be read, and a finding that cannot be booked, are told once and stop no other; a position
    of such a row is no stranger's. Raises StoreUnavailable and keeps nothing.
    """
    with database.transaction():
        # Read after the books: a row may know more than they do, never less.
        rows = database.unsettled(list(magics), ended_after=now - REMEMBERED)
        odd = {number: fault for number, row in enumerate(rows) if (fault := comparing_fault(row))}
        for number, fault in odd.items():
            aside(database, rows[number], fault)
        legible = [row for number, row in enumerate(rows) if number not in odd]
        positions = _positions_of([rows[number] for number in odd], books)
        findings = [
            finding
            for finding in reconcile(legible, books, now=now, magics=magics)
            if not (finding.kind == "EXTERNAL" and finding.ticket in positions)
        ]
        openings = {row["sid"]: row for row in legible}
        for finding in findings:
            row = openings.get(finding.sid)
            # A transaction of its own inside the other: only this finding's part is undone.
            with isolate_row_errors(database, row or {"sid": finding.sid}), database.transaction():
                _book(database, finding, row, now)
                _tell(database, finding)
    return findings


def _positions_of(rows: Sequence[Mapping[str, Any]], books: BrokerBooks) -> set[str]:
    """Return the numbers of the positions that bear the number or the id of some rows."""
    tickets = {str(row["ticket"]) for row in rows if row["ticket"]}
    names = {head(str(row["sid"])) for row in rows}
    return tickets | {item.ticket for item in books.positions if head(item.comment) in names}


def _book(
    database: Database, finding: Finding, row: Mapping[str, Any] | None, now: datetime
) -> None:
    columns = finding.columns
    if row is None or not columns:
        return
    state = columns.pop("state", row["state"])
    if finding.kind == "CLOSED":
        _close(database, finding, row, now)
        return
    if row["kind"] == "modify" and state in EXECUTED:
        database.learn(str(row["closes"]), broker_stop=None)  # it stands where it was moved to
    if state != row["state"]:
        database.move_signal(finding.sid, state, detail=IN_BOOKS, fields=columns)
    elif any(row[name] != value for name, value in columns.items()):
        database.learn(finding.sid, **columns)


def _close(database: Database, finding: Finding, row: Mapping[str, Any], now: datetime) -> None:
    row = database.signal(finding.sid) or row  # the same books may have told of its fill
    fill, end = row["entry"] if row["price"] is None else row["price"], finding.values
    price = end["close_price"]
    database.learn(finding.sid, misses=end["misses"])
    database.close_position(
        finding.sid,
        price=price,
        time=end["closed_at"],
        profit=end["profit"],
        r_multiple=r_of(OPENS[row["side"]], fill, price, row["stop"], row["target"]),
        reason=end["close_reason"],
        known_at=now,
    )


def _tell(database: Database, finding: Finding) -> None:
    alarm = finding.alarm
    if alarm is not None:
        if finding.kind == "LATE_ENDED" and execution_table.alarm(database, alarm.key) is not None:
            return  # a person has heard of it; the deals tell of it for days
        new = database.raise_alarm(alarm.key, alarm.kind, alarm.detail)
        if new and alarm.reduces:
            database.reduce(f"{alarm.kind}: {alarm.detail}")
        return
    if finding.sid and finding.kind != "UNSEEN":
        database.end_alarm(missing_key(finding.sid))
    if finding.kind in ("FILLED", "NOT_SENT", "CLOSE_DONE"):
        database.end_alarm(f"UNKNOWN {finding.sid}")
