"""A bridge that does what a test tells it, in memory, and notes what it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from torra.bridges.protocol import BrokerBooks, Health, Order, OrderReport, Recall, SymbolTerms
from torra.errors import BridgeUnavailable
from torra.verdict.risk_engine import DenyReason

READY = Health(None, "")


class ScriptedBridge:
    """One account: orders that were handed over, reports and books that the test lays ready."""

    name = "scripted main"

    def __init__(self, *, down: bool = False) -> None:
        self.down = down
        self.sent: list[Order] = []
        self.recalled: list[str] = []
        self.taken: set[str] = set()
        self.reports: list[OrderReport] = []
        self.settled: list[OrderReport] = []
        self.told = READY
        self.told_books: BrokerBooks | None = None
        self.beats: list[str] = []
        self.closed = False

    def submit(self, order: Order) -> None:
        if self.down:
            raise BridgeUnavailable("down")
        if order.sid not in self.sids:
            self.sent.append(order)

    def recall(self, sid: str, seq: int) -> Recall:
        del seq
        if self.down:
            raise BridgeUnavailable("down")
        if sid in self.taken:
            return Recall.TAKEN
        self.recalled.append(sid)
        return Recall.RECALLED if sid in self.sids else Recall.NEVER_SENT

    def poll(self) -> Sequence[OrderReport]:
        return list(self.reports)

    def settle(self, report: OrderReport) -> None:
        self.settled.append(report)
        self.reports.remove(report)

    def health(self) -> Health:
        return self.told

    def books(self) -> BrokerBooks | None:
        return self.told_books

    def terms(self) -> Mapping[str, SymbolTerms]:
        return {}

    def heartbeat(self, state: str) -> None:
        self.beats.append(state)

    def close(self) -> None:
        self.closed = True

    @property
    def sids(self) -> list[str]:
        """The ids of what was handed over, in order."""
        return [order.sid for order in self.sent]

    def deny(self, reason: DenyReason, detail: str = "because") -> None:
        self.told = Health(reason, detail)

    def say(self, sid: str, status: Any, at: datetime, **more: Any) -> OrderReport:
        """Lay a report ready."""
        report = OrderReport(sid, status, at, **more)
        self.reports.append(report)
        return report
