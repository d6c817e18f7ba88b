"""The journal of a bridge that has no Expert Advisor of Torra's: which orders may have gone out.

One file for a channel, in this side's own folder. The bridge writes an order here, durably, before
it hands anything to the market. An order that is found here is never sent again, in this life or
the next. Every line is the whole record of one order and the newest line counts, so a reader needs
no history. A last line that the machine was writing when it stopped is cut off: what it announced
had not happened yet. Any other damage is a ConfigError, because an order may be missing.

`put` raises OSError, and keeps nothing, when the disk does not take the line. `learn` keeps what
was found out afterwards in memory at least; after a restart the bridge finds it out again. Two
processes must not share a journal (the lock of the home sees to that), and the caller
locks threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from torra.bridges.protocol import Order, OrderReport, Status
from torra.errors import MALFORMED, ConfigError
from torra.owner_only import make_folder
from torra.regular_files import lies
from torra.whole_files import sync_folder, write_whole

KEEP: Final = timedelta(days=30)
"""An order whose end is settled is forgotten this long after its expiry.

It could not be sent by then in any case: the guards refuse what has expired.
"""

INTERIM: Final = ("CLAIMED", "PLACED", "UNKNOWN")
"""Reports that a later one may replace."""


@dataclass(frozen=True, slots=True)
class OrderEntry:
    """One order and what is known of it.

    `intent` is the moment from which on it may have reached the market, None: it never has. `notes`
    are the bridge's own. `settled` is the status of the newest report that was settled.
    """

    order: Order
    intent: datetime | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    report: OrderReport | None = None
    settled: str = ""

    @property
    def status(self) -> Status | None:
        """The newest report's, None while there is none."""
        return self.report.status if self.report else None

    @property
    def ended(self) -> bool:
        """Whether nothing more is to be found out."""
        return self.report is not None and self.report.status not in INTERIM


ENTRY: Final = TypeAdapter(OrderEntry)


class OrderJournal:
    """The orders of one channel, by id, the oldest first."""

    def __init__(self, path: Path, now: datetime) -> None:
        self._path = path
        self._entries: dict[str, OrderEntry] = {}
        self._size = 0
        self._unwritten: dict[str, None] = {}
        self.fault = ""
        """Why what was learned is not on disk; empty when all of it is."""
        try:
            make_folder(path.parent)
            self._load(now)
        except OSError as error:
            raise ConfigError(
                f"cannot keep the journal of orders {path}: {error}; give its folder room and the "
                "right to write"
            ) from error

    @property
    def entries(self) -> tuple[OrderEntry, ...]:
        """Every order that is remembered."""
        return tuple(self._entries.values())

    def get(self, sid: str) -> OrderEntry | None:
        """Return one order's entry; None when it was never handed over."""
        entry = self._entries.get(sid)
        return entry if entry and (entry.intent or entry.report) else None

    def unsettled(self) -> list[OrderReport]:
        """Return the newest report of each order as long as it is not settled."""
        entries = [item for item in self.entries if item.report and item.settled != item.status]
        return [item.report for item in entries if item.report]

    def put(self, entry: OrderEntry) -> None:
        """Remember an entry on disk, then in memory; raises OSError, with nothing kept."""
        self._append(_line(entry))
        self._entries[entry.order.sid] = entry
        self._unwritten.pop(entry.order.sid, None)

    def learn(self, entry: OrderEntry) -> None:
        """Remember an entry in memory and, if the disk takes it, there too; never raises."""
        self._entries[entry.order.sid] = entry
        self._unwritten[entry.order.sid] = None
        self.mend()

    def mend(self) -> None:
        """Write the lines that the disk did not take before; never raises."""
        try:
            for sid in list(self._unwritten):
                self._append(_line(self._entries[sid]))
                del self._unwritten[sid]
        except OSError as error:
            self.fault = f"cannot write the journal of orders {self._path}: {error}"
        else:
            self.fault = ""

    def withdraw(self, sid: str) -> None:
        """Take an intent back: the order has surely not been handed over. Never raises.

        If the disk does not take that, the next life finds out that nothing became of it.
        """
        self.learn(replace(self._entries[sid], intent=None))

    def report(self, report: OrderReport) -> None:
        """Remember what became of an order that is known; never raises."""
        self.learn(replace(self._entries[report.sid], report=report))

    def settle(self, report: OrderReport) -> None:
        """Remember that a report is committed; one that was overtaken changes nothing."""
        entry = self._entries.get(report.sid)
        if entry is not None and entry.status == report.status != entry.settled:
            self.learn(replace(entry, settled=report.status))

    def _load(self, now: datetime) -> None:
        raw = self._path.read_bytes() if self._path.exists() else b""
        # What follows the last newline was being written when the machine stopped.
        *lines, _torn = raw.split(b"\n")
        whole = [len(line) + 1 for line in lines]
        for number, line in enumerate(lines, start=1):
            try:
                entry = ENTRY.validate_json(line)
            except MALFORMED:
                # A crash may leave zeros and a newline: its end does not make a line whole.
                if number == len(lines):
                    whole.pop()
                    break
                raise ConfigError(
                    f"the journal of orders {self._path} is damaged in line {number}: compare the "
                    "account's positions and orders with torra signals, then move the file away"
                ) from None
            self._entries[entry.order.sid] = entry
        self._size = sum(whole)
        left = {sid: entry for sid, entry in self._entries.items() if not _over(entry, now)}
        if len(left) < len(self._entries):  # rewritten: no other process uses the file
            body = b"".join(map(_line, left.values()))
            write_whole(self._path, body)
            self._entries, self._size = left, len(body)

    def _append(self, line: bytes) -> None:
        """Write one line behind the last whole one, and wait until it is on the disk."""
        fresh = not self._path.exists()
        if fresh:  # the first order, or somebody took the file away
            line, self._size = b"".join(map(_line, self.entries)) + line, 0
        with self._path.open("xb" if fresh else "r+b", buffering=0) as file:
            # A write that failed may have left half a line here.
            file.seek(self._size)
            file.truncate()
            # Unbuffered, a full disk may take a part of the line without an error.
            if file.write(line) != len(line):
                raise OSError(f"no room for a line in {self._path}")
            os.fsync(file.fileno())
        if fresh:
            sync_folder(self._path.parent)
        # Only now: after an error the next write begins at the last whole line again.
        self._size += len(line)


def halt_in(files: Iterable[Path]) -> str:
    """Say which kill switch is set, with the remedy; "" when none is.

    One that cannot be looked at counts as set.
    """
    return next((f"{path} is there: torra resume" for path in files if _is_set(path)), "")


def _is_set(path: Path) -> bool:
    try:
        return lies(path)
    except OSError:
        # A file that cannot be looked at may be there: rather halt than trade past it.
        return True


def _over(entry: OrderEntry, now: datetime) -> bool:
    settled = entry.ended and entry.settled == entry.status
    never = entry.intent is None and entry.report is None
    return (settled or never) and entry.order.expires < now - KEEP


def _line(entry: OrderEntry) -> bytes:
    return ENTRY.dump_json(entry) + b"\n"
