"""The courier of a desk: it carries signals to the bridges and reports back, four times a second.

Each turn it looks at the kill switch, books what the bridges report, compares the books, sends what
may be sent, and lets proposals expire. Ticks send for themselves too, at once. One lock for each
bridge keeps the two apart.

The bridges are opened when the desk sets to work. Without the desk's lock nothing is touched. A
bridge whose books were not compared since then is sent nothing: start-up is recovery. Nothing that
fails here ends the courier: it is logged, the signal waits, and the next turn tries again. A
database that is broken halts the desk.
"""

from __future__ import annotations

import logging
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import signal_bridge
from instance_database import Database
from torra.bridges.guards import limits
from torra.bridges.plausible import books_fault
from torra.bridges.protocol import OFFSET_TOLERANCE, QUOTE_SECONDS, Bridge, Health, Order
from torra.clock import Clock, parse
from torra.config import Channel, Instance, Profile
from torra.errors import StoreBroken, StoreUnavailable
from torra.services import Service
from torra.store.trade import accounts as account_table
from torra.store.trade import proposals_and_alarms as execution_table
from torra.trading.channels import account_figures, taken
from torra.trading.kill_switch import KillSwitch
from torra.verdict import order_seal
from torra.verdict.risk_engine import DenyReason, TradingState
from torra.verdict.signal_states import UNEXECUTED

TURN_SECONDS: Final = 0.25
"""Real seconds between two turns: the Expert Advisor looks as often."""

RECONCILE_SECONDS: Final = 60.0
"""Real seconds between two comparisons of the books, when nothing happens."""

BOOKS_AGE: Final = timedelta(seconds=30)
"""Older books, or books from the future, are no comparison."""

SHOWN_SECONDS: Final = OFFSET_TOLERANCE + 1.0
"""Real seconds after a report until the books must show what it said."""

BEAT_SECONDS: Final = 1.0
"""Real seconds between two signs of life towards a bridge."""

HANDS_SECONDS: Final = 2.0
"""Real seconds between two looks at what became of closes by hand."""

HAND_CLOSE: Final = "HAND_CLOSE"
"""Kind of the alarm of a person's close that ended without one."""

ENDED_SHORT: Final = (*UNEXECUTED, "PARTIAL")
"""States in which a close ends that has not closed all of its position."""

NOTE_SECONDS: Final = 60.0
"""Real seconds after which an unchanged bridge is noted in the database again."""

ROWS: Final = 1000
"""Waiting signals that one turn looks at; an instance has two at most."""

BEGINNING: Final = re.compile(r"[A-Za-z_./]*")
"""The beginning of a bridge's word that names the file, without the numbers of a signal's file."""

log = logging.getLogger("torra")


@dataclass(frozen=True, slots=True)
class RoutedInstance:
    """An instance with its profile and its channel by name, None for the paper bridge.

    `venue` is what desk.json says of that channel.
    """

    instance: Instance
    profile: Profile
    channel: str | None
    venue: Channel | None = None


@dataclass(slots=True)
class BridgeSession:
    """One bridge, and the courier's memory of it (monotonic seconds)."""

    bridge: Bridge
    lock: threading.RLock = field(default_factory=threading.RLock)
    reconciled: float = -math.inf
    soon: float = math.inf
    compared_at: datetime | None = None
    beaten: float = -math.inf
    noted: float = -math.inf
    status: tuple[str, str] = ("", "")

    @property
    def ready(self) -> bool:
        """Whether its books were compared since the desk began."""
        return self.reconciled > -math.inf


class Courier(Service):
    """Everything of a desk that goes to a market or comes from it."""

    def __init__(
        self,
        database: Database,
        addressees: Sequence[RoutedInstance],
        open_bridges: Callable[[], Mapping[str, Bridge]],
        kill_switch: KillSwitch,
        clock: Callable[[], Clock],
    ) -> None:
        super().__init__("courier", TURN_SECONDS, self._turn, fence=lambda: database.fence())  # noqa: PLW0108
        self._database = database
        self._addressees = {item.instance.id: item for item in addressees}
        self._open_bridges = open_bridges
        self._lines: dict[str, BridgeSession] = {}
        self._kill_switch = kill_switch
        self._clock = clock
        self._hands_checked = -math.inf

    def adopt(self, instance: str, profile: Profile) -> None:
        """Use another profile for an instance from now on."""
        known = replace(self._addressees[instance], profile=profile)
        # A new dict: the courier's thread may be going through the old one.
        self._addressees = {**self._addressees, instance: known}

    def open(self) -> None:
        """Open the bridges; each one's books are compared before it is sent anything."""
        self._lines = {name: BridgeSession(bridge) for name, bridge in self._open_bridges().items()}

    def shut(self) -> None:
        """Let the bridges go."""
        lines, self._lines = self._lines, {}
        for line in lines.values():
            line.bridge.close()

    # --- a turn -----------------------------------------------------------------------------------

    def _turn(self) -> None:
        self._try("kill switch", self._kill_switch.keep)
        for name, line in list(self._lines.items()):
            self._try(f"bridge {name}", partial(self._visit, name, line))
        self._try("paper", self._paper)
        self._try("closes by hand", self._hands)
        self._try("proposals", self._expire)

    def send(self, instance: str) -> None:
        """Send what an instance has to send now; its tick calls this. May raise."""
        line = self._line(instance)
        if line is not None and self._database.fence():
            with line.lock:
                self._send(line, instance)

    def settle(self, instance: str) -> None:
        """Book what has been reported for an instance; its tick calls this. May raise."""
        line = self._line(instance)
        if line is not None and self._database.fence():
            with line.lock:
                self._take(line)

    def _line(self, instance: str) -> BridgeSession | None:
        return self._lines.get(self._addressees[instance].channel or "")

    def figures(self, instance: str) -> dict[str, Any]:
        """Return what the broker says of account and symbol now; what is not known is left out."""
        item, line = self._addressees[instance], self._line(instance)
        if line is None:
            # What desk.json says of a channel holds before its bridge is open.
            return taken(item.venue, "")
        bridge, now = line.bridge, self._clock().real_now()
        health = bridge.health()
        figures: dict[str, Any] = {"clock_ok": health.clocks_agree}
        figures |= account_figures(health.facts)
        if not (item.profile.risk.leverage_caps or (item.venue and item.venue.leverage)):
            figures.pop("equity", None)  # nobody asks for it
        terms = bridge.terms().get(item.instance.broker_name)
        figures |= taken(item.venue, "" if terms is None else terms.trade_mode)
        if terms is None:
            return figures
        figures["market_open"] = terms.trade_mode not in ("disabled", "close_only")
        if terms.quote is not None and abs((now - terms.quote.at).total_seconds()) <= QUOTE_SECONDS:
            # Bars are bid prices, so this one is the bid too.
            figures["last_price"] = terms.quote.bid
            figures["live_spread"] = round(terms.quote.ask - terms.quote.bid, terms.digits)
        return figures

    def _try(self, what: str, step: Callable[[], Any]) -> None:
        try:
            step()
        except StoreBroken as error:
            self._kill_switch.fault(f"store: {error}")
        except StoreUnavailable as error:
            log.warning("%s: %s", what, error)
        except Exception:
            log.exception("%s: the next turn tries again", what)

    def _visit(self, name: str, line: BridgeSession) -> None:
        with line.lock:
            # Reports before books: else the books would find what a report has told already.
            taken = self._take(line)
            now = self._clock().monotonic()
            if taken:
                # A comparison leaves out rows that are younger than OFFSET_TOLERANCE.
                line.soon = min(line.soon, now + SHOWN_SECONDS)
            if now >= min(line.soon, line.reconciled + RECONCILE_SECONDS):
                first, line.soon = not line.ready, math.inf
                self._compare(line, name)
                if first and line.ready:  # what an earlier desk was told may not show yet
                    line.soon = now + SHOWN_SECONDS
            for item in self._on(name):
                self._try(item.instance.id, partial(self._send, line, item.instance.id))
            self._note(line, now)
            if now - line.beaten >= BEAT_SECONDS:
                line.bridge.heartbeat(self._database.trading_state())
                line.beaten = now

    def _take(self, line: BridgeSession) -> bool:
        now = self._clock().real_now()
        return bool(signal_bridge.take_reports(self._database, line.bridge, now=now))

    def _compare(self, line: BridgeSession, name: str) -> None:
        from torra.trading import settlement  # noqa: PLC0415 - a desk on paper has nothing to settle

        books = line.bridge.books()
        now = self._clock().real_now()
        # No comparison took place, so the next turn tries again.
        if books is None or abs(now - books.at) > BOOKS_AGE:
            return
        key = f"ODD_BOOKS {line.bridge.name}"
        with self._fenced():
            if fault := books_fault(books, now):
                detail = f"{line.bridge.name} tells of a {fault}: its books are not compared"
                self._database.raise_alarm(key, "ODD_BOOKS", detail)
                return
            self._database.end_alarm(key)
            settlement.settle(
                self._database,
                {item.instance.id: item.instance.magic for item in self._on(name)},
                books,
                now=now,
            )
        line.reconciled, line.compared_at = self._clock().monotonic(), now

    def _send(self, line: BridgeSession, instance: str) -> None:
        signal_bridge.send_pending(
            self._database,
            line.bridge,
            self._order,
            now=self._clock().now,
            stopped=lambda kind: signal_bridge.refusal(self._trading_state(), kind),
            health=partial(_health, line),
            instance=instance,
        )

    def _trading_state(self) -> TradingState:
        return "HALTED" if self._kill_switch.engaged() else self._database.trading_state()

    def _note(self, line: BridgeSession, now: float) -> None:
        health = _health(line)
        self._pass_on(line.bridge.name, health.facts.get("last_alarm"))
        status = (str(health.deny or ""), health.detail if health.deny else "")
        # Else each bridge would be written to the database four times a second.
        if status == line.status and now - line.noted < NOTE_SECONDS:
            return
        line.status, line.noted = status, now
        with self._fenced():
            execution_table.note_bridge(
                self._database,
                line.bridge.name,
                deny=status[0],
                detail=health.detail,
                facts=health.facts,
                reconciled_at=line.compared_at,
            )
            if health.ok:  # else its last words may be old
                account_table.mark_account(self._database, line.bridge.name, health.facts)

    def _pass_on(self, name: str, alarm: object) -> None:
        """Let a person hear what a bridge refused to believe: one alarm for each kind of file."""
        if isinstance(alarm, str) and alarm:
            key = f"BRIDGE {name} {BEGINNING.match(alarm)[0]}"  # type: ignore[index]
            self._database.raise_alarm(key, "BRIDGE", f"{name}: {alarm}")

    def _paper(self) -> None:
        state = self._trading_state()
        # A halt also ends what paper has accepted and what waits for its close.
        states = ("PENDING",) if state == "ACTIVE" else signal_bridge.UNDONE
        waiting = {row["instance"] for row in self._database.signals(states, limit=ROWS)}
        for item in self._on(None):
            if item.instance.id in waiting:
                with self._fenced():
                    signal_bridge.publish_pending(
                        self._database,
                        now=self._clock().now(),
                        state=state,
                        instance=item.instance.id,
                    )

    def _hands(self) -> None:
        """Let a person hear that their close ended without one: a verdict says itself again."""
        now = self._clock().monotonic()
        if now < self._hands_checked + HANDS_SECONDS:
            return
        self._hands_checked = now
        database, failed = self._database, dict[str, str]()
        for opening in database.openings():
            orders = database.closes_of(opening["instance"], opening["sid"])
            # The newest one counts, where it is a person's and ended without closing.
            close = next((row for row in reversed(orders) if row["kind"] == "close"), None)
            if close and close["authority"] == "person" and close["state"] in ENDED_SHORT:
                failed[f"{HAND_CLOSE} {opening['sid']}"] = (
                    f"{opening['instance']}: the close by hand {close['sid']} ended "
                    f"{close['state']}, and the position is still open or not known"
                )
        stands = {row.key for row in database.alarms() if row.kind == HAND_CLOSE}
        for key, detail in failed.items():
            if key not in stands:
                database.raise_alarm(key, HAND_CLOSE, detail)
        for key in stands - failed.keys():
            database.end_alarm(key)

    def _expire(self) -> None:
        now = self._clock().now()
        # Looked at first: the courier asks all the time, and a transaction takes the write lock.
        if execution_table.proposals_due(self._database, now):
            with self._fenced():
                execution_table.expire_proposals(
                    self._database, now, DenyReason.SIGNAL_EXPIRED.value
                )

    @contextmanager
    def _fenced(self) -> Iterator[None]:
        """Begin a transaction of the desk; raises StoreUnavailable without its lock.

        Asked inside: a courier may have stood still since its turn began.
        """
        with self._database.transaction():
            self._database.require_desk()
            yield

    def _on(self, channel: str | None) -> list[RoutedInstance]:
        return [item for item in self._addressees.values() if item.channel == channel]

    def _order(self, row: Mapping[str, Any]) -> Order:
        item = self._addressees[row["instance"]]
        opening = self._database.signal(row["closes"]) if row["kind"] != "open" else None
        return order_of(row, item.instance, item.profile, (opening or {}).get("ticket") or "")


def _health(line: BridgeSession) -> Health:
    """Return how a bridge is; before its books were compared it is not well."""
    health = line.bridge.health()
    if line.ready or not health.ok:
        return health
    detail = "its positions and deals were not compared yet: it has not told them"
    return Health(DenyReason.BRIDGE_DEAD, detail, health.facts)


def order_of(
    row: Mapping[str, Any], instance: Instance, profile: Profile, ticket: str = ""
) -> Order:
    """Return a signal as a bridge sends it; `ticket` is the number of the position it is about."""
    spec = profile.symbol(instance.symbol)
    # A close has no ATR, and neither limit is asked of it.
    allowed = limits(
        row["atr"] or 0.0,
        spec.digits,
        spread_share=profile.gate.max_spread_atr,
        deviation_share=profile.risk.max_deviation_atr,
    )
    return Order(
        **{name: row[name] for name in ("sid", "seq", "kind", "timeframe", "side", "lots")},
        entry=row["entry"] or 0.0,
        stop=row["stop"] or 0.0,
        target=row["target"] or 0.0,
        instance=instance.id,
        symbol=instance.symbol,
        broker_symbol=instance.broker_name,
        bar_time=parse(row["bar_time"]),
        created=parse(row["decided_at"]),
        expires=parse(row["expires"]),
        magic=instance.magic,
        **allowed._asdict(),
        digits=spec.digits,
        # An opening that has waited names a position too: the one that made way for it.
        closes=row["closes"] or "" if row["kind"] != "open" else "",
        ticket=ticket,
        origin=order_seal.origin_of(row),
        seal=row["seal"] or "",
    )
