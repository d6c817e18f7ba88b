"""A bridge to DWX Connect's own Expert Advisor: at-most-once, no server receipt.

That Expert Advisor answers without a signal's id or a ticket and knows no expiry. When it starts
again it forgets which commands it has done, and drops the command that waits for it. So this side
writes an order into its own journal first, hands it over once, and never again, whatever happens.
The account shows what became of it: a position, or a deal of the history, with the signal's magic
number and its id in the comment. An order that has not shown CONFIRM_SECONDS after its command was
gone is UNKNOWN, and stays so until the account shows it or a person decides. A refusal is believed
only where the Expert Advisor's message proves that nothing was sent.

The Expert Advisor asks none of Torra's guards, so this side asks them right before the command,
with what is known. DWX Connect reports neither stops level nor lot limits nor whether the account
is netting, so any position of the symbol stands in the way of an opening. It does not tell a demo
account from a real one: without `live` in the channel nothing is sent. Two things nobody can see or
prevent: whether the terminal is connected, and an expiry while this side is down.

Lots have two decimals there; others are refused, never rounded. One desk must be the only client,
with nobody else's commands in the folder. Orders go one at a time: the next waits, briefly, for the
confirmation of the one before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from torra.bridges.at_most_once import CONFIRM_SECONDS, HISTORY, LOTS_SLACK, AtMostOnce
from torra.bridges.dwx.deals import Opening, linked, position_of
from torra.bridges.dwx.files import (
    ORDERS,
    TRADES,
    DealRow,
    DwxAccount,
    DwxFolder,
    Message,
    OrderRow,
)
from torra.bridges.dwx.outcome import (
    DwxView,
    filled,
    late_outcome,
    opening_of,
    outcome,
    position_meant,
    refusal,
)
from torra.bridges.dwx.questions import PAUSE, TURN_SECONDS, Questions
from torra.bridges.guards import REASONS, WITHOUT_QUOTE, View, ask_of, first_objection
from torra.bridges.order_journal import OrderEntry, halt_in
from torra.bridges.protocol import (
    ALIVE_SECONDS,
    LOOK_SECONDS,
    BrokerBooks,
    BrokerDeal,
    Health,
    Order,
    Quote,
    Recall,
    Report,
    SymbolTerms,
)
from torra.clock import Clock
from torra.config import Channel, is_broker_symbol
from torra.errors import BridgeUnavailable, ConfigError
from torra.market.broker_clock import ServerClock
from torra.verdict.risk_engine import DenyReason

JOURNAL: Final = "dwx_orders.jsonl"

ASK_SECONDS: Final = 1.0
ASK_AGAIN_SECONDS: Final = 4.0
"""Seconds until the history is asked for an order that does not show, first and then again."""

SURE_SECONDS: Final = 1.0
"""A refusal counts when the order has not shown this long after it was read."""

LOT_STEP: Final = 0.01
"""The Expert Advisor's lotSizeDigits = 2 rounds everything finer, up as well as down."""

COMMENT: Final = re.compile(r"[A-Za-z0-9]{1,26}")
"""Letters and digits: a comma, a bar or a quotation mark would break a command or an answer."""


@dataclass(slots=True)
class _Watch:
    """The memory of an order under way in this life; `messages` are those from before it."""

    messages: dict[str, Message] | None = None
    gone: float | None = None
    refused: float | None = None


class Dwx(AtMostOnce[DwxAccount]):
    """One account behind DWX Connect; `state` is this side's folder of the channel."""

    def __init__(
        self,
        name: str,
        channel: Channel,
        state: Path,
        symbols: Sequence[str],
        clock: Clock,
        *,
        halts: Sequence[Path] = (),
    ) -> None:
        """Take a channel up; `halts` are further files that stop sending as its own HALT does."""
        if not channel.folder:
            raise ConfigError(
                f"channels.{name}.folder is empty: name the folder of DWX Connect, "
                "<data folder>/MQL5/Files/DWX"
            )
        self._account = channel.account
        self._live = channel.live
        self._server = ServerClock.parse(channel.server_clock)
        super().__init__(name, state / JOURNAL, clock, halts)
        self._folder = DwxFolder(Path(channel.folder).expanduser(), state, clock)
        self._folder.tidy()
        self._questions = Questions(self._folder, symbols, clock)
        self._watches: dict[str, _Watch] = {}
        self._asked = -math.inf
        self._looked = clock.now()

    @property
    def name(self) -> str:
        """The bridge's name on pages and in messages."""
        return f"dwx {self._name}"

    # --- orders -----------------------------------------------------------------------------------

    def recall(self, sid: str, seq: int) -> Recall:
        """Withdraw an order's command if it still waits in the folder, which proves nothing."""
        with self._lock:
            entry = self._journal.get(sid)
            if entry and entry.under_way:
                self._folder.withdraw(entry.notes["command"])
            return super().recall(sid, seq)

    def poll(self) -> Sequence[Report]:
        """Look for the end of every order; return the unsettled reports, oldest first."""
        with self._lock:
            self._look()
            if not self._silence():
                self._questions.subscribe()
            return self._journal.unsettled()

    def close(self) -> None:
        """Do nothing: nothing is held."""

    # --- what is known ----------------------------------------------------------------------------

    def health(self) -> Health:
        """Return whether orders may be handed over now."""
        with self._lock:
            self._journal.mend()
            deny, detail = self._obstacle()
            return Health(deny, detail, self._facts())

    def books(self) -> BrokerBooks | None:
        """Return every position and the deals of the last days; asks for them and waits a little.

        None while the Expert Advisor does not answer, or for another account.
        """
        with self._lock:
            if self._silence():
                return None
            rows = self._questions.history(HISTORY.days)
            account = self._folder.account.read()
            # The history takes up to two seconds, in which the Expert Advisor may have stopped.
            if rows is None or account is None or self._silence():
                return None
            self._look()
            return self._books(rows, account)

    def terms(self) -> Mapping[str, SymbolTerms]:
        """Return nothing: DWX has a symbol's prices, but not its trading terms."""
        return {}

    def quote(self, symbol: str) -> Quote | None:
        """Return the Expert Advisor's prices of now, None while it is silent."""
        with self._lock:
            prices = (self._folder.quotes.read() or {}).get(symbol)
            if prices is None or self._silence():
                return None
            return Quote(*prices, self._clock.now())

    def _facts(self) -> dict[str, object]:
        account, age = self._folder.account.read(), self._folder.age()
        return {
            "delivery": "at-most-once, no server receipt",
            "folder": str(self._folder.path),
            "account": account.number if account else None,
            "balance": account.balance if account else None,
            "equity": account.equity if account else None,
            "free_margin": account.free_margin if account else None,
            "leverage": account.leverage if account else None,
            "currency": account.currency if account else None,
            "age_seconds": None if age is None else round(age, 1),
            "quotes": sorted(self._folder.quotes.read() or {}),
            "symbols_refused": sorted(self._questions.refused),
            "command_waiting": self._folder.waiting() is not None,
            "last_alarm": self._odd(),
        }

    def _odd(self) -> str:
        """Say what the files tell that cannot be, and in which; "" for nothing."""
        told = {ORDERS: self._folder.account.odd, TRADES: self._folder.trades.odd}
        return next((f"{name}: {odd}" for name, odd in told.items() if odd), "")

    def _obstacle(self) -> tuple[DenyReason | None, str]:
        """Return why nothing may be handed over, with the remedy."""
        if silence := self._silence():
            return DenyReason.BRIDGE_DEAD, silence
        if not self._live:
            return DenyReason.BRIDGE_DEAD, (
                "DWX Connect cannot tell a demo account from a real one: set "
                f"channels.{self._name}.live to true if orders may go to real money, or use "
                "torra_files"
            )
        if self._journal.fault:
            return DenyReason.BRIDGE_DEAD, self._journal.fault
        if halt := halt_in(self._halts):
            return DenyReason.TRADING_HALTED, halt
        return None, f"account {self._account}"

    def _silence(self) -> str:
        """Say why the account is not known now; empty when it is."""
        age, folder = self._folder.age(), self._folder.path
        if age is None:
            return f"DWX Connect does not run: there is no DWX_Orders.txt in {folder}"
        if age > ALIVE_SECONDS:
            return f"DWX Connect is silent: DWX_Orders.txt in {folder} is {age:.0f} s old"
        if age < -ALIVE_SECONDS:
            return f"DWX_Orders.txt in {folder} is {-age:.0f} s ahead of this computer's clock"
        account = self._folder.account.read()
        if account is None or self._folder.account_age() > ALIVE_SECONDS:
            odd = self._folder.account.odd
            return f"DWX_Orders.txt in {folder} cannot be read{f': {odd}' if odd else ''}"
        if account.number != self._account:
            return self._wrong_account(account.number, self._account)
        return ""

    # --- towards the Expert Advisor ---------------------------------------------------------------

    def _begin(self, order: Order) -> tuple[OrderEntry, DwxAccount]:
        # Ask before the turn: it waits for seconds, in vain if nothing may be sent.
        deny, detail = self._obstacle()
        if deny:
            raise BridgeUnavailable(detail)
        self._take_turn()
        # Read the account after the wait: the order before may have changed it.
        account, self._looked = self._folder.account.read(), self._clock.now()
        if account is None:
            raise BridgeUnavailable(self._silence())
        return OrderEntry(order), account

    def _take_turn(self) -> None:
        """Wait until no order is under way and no command waits; raises BridgeUnavailable."""
        end = self._clock.monotonic() + TURN_SECONDS
        while True:
            self._look()
            before = next((item for item in self._journal.entries if item.under_way), None)
            if before is None and self._questions.slot_free():
                return
            if self._clock.monotonic() >= end:
                waits = f"{before.order.sid} is not confirmed yet" if before else "a command waits"
                raise BridgeUnavailable(f"{waits}; DWX Connect gets one order at a time")
            self._clock.sleep(PAUSE)

    def _adopted(self, entry: OrderEntry, account: DwxAccount) -> OrderEntry | None:
        order = entry.order
        if order.kind != "open":
            return None
        rows = [row for row in account.positions if order.sid in row.comment]
        held = [row for row in rows if row.magic == order.magic]
        found = filled(order, held, self._seen(), adopted=True) if held else None
        return replace(entry, report=found) if found else None

    def _objection(self, order: Order, account: DwxAccount) -> str:
        """Return the reason of the first guard that objects, with what DWX lets one know."""
        symbol = order.broker_symbol
        named = COMMENT.fullmatch(order.sid) and is_broker_symbol(symbol) and symbol.isascii()
        prices = (self._folder.quotes.read() or {}).get(order.broker_symbol)
        if prices is None and order.kind == "open" and self._expects_quote(order):
            # The order stays pending: its quote may come within the next looks.
            raise BridgeUnavailable(f"no quote of {order.broker_symbol} yet")
        ask = ask_of(order, self._account, whole=bool(named))
        asked = REASONS if order.kind == "open" else WITHOUT_QUOTE
        return first_objection(ask, self._view(order, account, prices), only=asked)

    def _expects_quote(self, order: Order) -> bool:
        """Ask for a symbol's quotes; False where they will not come or the order cannot wait."""
        self._questions.want(order.broker_symbol)
        self._questions.subscribe()
        lasts = self._clock.now() < order.expires
        return lasts and order.broker_symbol not in self._questions.refused

    def _view(self, order: Order, account: DwxAccount, prices: tuple[float, float] | None) -> View:
        bid, ask = prices or (0.0, 0.0)
        position = position_meant(order, account)
        known = order.broker_symbol not in self._questions.refused
        return View(
            now=int(self._clock.now().timestamp()),
            bid=bid,
            ask=ask,
            digits=order.digits,
            account=account.number,
            demo_only=False,
            halted=bool(halt_in(self._halts)),
            trade_mode="full" if known else "disabled",
            lot_min=LOT_STEP,
            lot_step=LOT_STEP,
            # Not known here; the Expert Advisor's own refusal comes back as `volume` or `max_lots`.
            lot_max=math.inf,
            positions=len(account.positions),
            held=any(
                row.symbol == order.broker_symbol or row.magic == order.magic
                for row in account.rows
            ),
            found=position is not None,
            found_lots=position.lots if position else 0.0,
            found_stop=position.stop if position else 0.0,
        )

    def _send(self, entry: OrderEntry, account: DwxAccount) -> None:
        """Remember the order, then hand it over; between the two it counts as handed over."""
        order = entry.order
        position = position_meant(order, account)
        text = self._folder.next_command(*_command(order, position))
        notes = {
            "command": text,
            "ticket": position.ticket if position else "",
            "lots": f"{position.lots:.2f}" if position else "",
            # What was there before: a position without our id in its comment may only be new.
            "held": ",".join(row.ticket for row in account.rows if row.magic == order.magic),
        }
        # Before the order is out, so that only later messages can be about it.
        messages = dict(self._folder.messages.read() or {})
        late = timedelta(seconds=LOOK_SECONDS)
        entry = replace(entry, notes=notes)
        self._intend(entry, lambda: self._clock.now() - self._looked > late)
        self._watches[order.sid] = _Watch(messages)
        try:
            self._folder.publish(text)
        except BridgeUnavailable:
            # The command was surely not laid down: the order may be tried again.
            self._journal.withdraw(order.sid)
            raise

    # --- what became of an order ------------------------------------------------------------------

    def _look(self) -> None:
        """Find out what became of every order that may have gone out."""
        for entry in self._open_orders():
            report = outcome(entry, self._seen())
            # UNKNOWN is told once; after that only a proof counts.
            if report is None and entry.report is None:
                report = self._wait(entry, self._watches.setdefault(entry.order.sid, _Watch()))
            if report is not None:
                self._journal.report(report)
                self._watches.pop(entry.order.sid, None)

    def _wait(self, entry: OrderEntry, watch: _Watch) -> Report | None:
        """Return how an order ended that the account does not show; None while it may yet."""
        if self._still_waits(entry):
            return None
        now = self._clock.monotonic()
        watch.gone = now if watch.gone is None else watch.gone
        if refused := self._refused(entry, watch):
            return refused
        if now - watch.gone >= CONFIRM_SECONDS:
            return late_outcome(entry, self._seen())
        due = now - watch.gone >= ASK_SECONDS and now - self._asked >= ASK_AGAIN_SECONDS
        if due and not self._silence() and self._questions.ask_history(1):
            self._asked = now
        return None

    def _still_waits(self, entry: OrderEntry) -> bool:
        """Return whether the command has not been taken; one that expired is taken away."""
        text = entry.notes["command"]
        left = entry.order.expires - self._clock.now()
        if left <= timedelta(0):
            self._folder.withdraw(text)
        # A file that cannot be read may be our command; long after the expiry it is not waited for.
        unreadable = "" if left > -timedelta(seconds=CONFIRM_SECONDS) else text
        return self._folder.waiting() in (text, unreadable)

    def _seen(self) -> DwxView:
        account = self._folder.account.read()
        # Another account's positions prove nothing about our order.
        if account is not None and account.number != self._account:
            account = None
        return DwxView(account, self._folder.trades.read() or (), self._server, self._clock.now())

    def _refused(self, entry: OrderEntry, watch: _Watch) -> Report | None:
        """Return the refusal that the Expert Advisor's own words prove; None without one."""
        # An order of an earlier life: nobody knows which messages are older than it.
        if watch.messages is None:
            return None
        told = self._folder.messages.read() or {}
        before = watch.messages
        reason = refusal(entry, [item for key, item in told.items() if before.get(key) != item])
        if not reason:
            return None
        now = self._clock.monotonic()
        watch.refused = now if watch.refused is None else watch.refused
        sure = now - watch.refused >= SURE_SECONDS and not self._silence()
        return self._refusal(entry.order, reason) if sure else None

    # --- books ------------------------------------------------------------------------------------

    def _books(self, rows: Sequence[DealRow], account: DwxAccount) -> BrokerBooks | None:
        openings = [
            opening_of(entry)
            for entry in self._journal.entries
            if entry.order.kind == "open" and entry.status in ("FILLED", "PARTIAL")
        ]
        now = self._clock.now()
        try:
            deals = linked(rows, openings, account.positions, self._server)
            positions = tuple(position_of(row, self._server) for row in account.positions)
        except ValueError:  # a time that this server clock never shows
            return None
        for opening in openings:
            self._note_closed(opening, deals)
        return BrokerBooks(positions, deals, now, now - HISTORY)

    def _note_closed(self, opening: Opening, deals: Sequence[BrokerDeal]) -> None:
        """Remember the deals that closed a position: later, other deals may seem to fit as well."""
        outs = [x for x in deals if x.entry == "out" and x.position == opening.position]
        whole = sum(deal.lots for deal in outs) >= opening.lots - LOTS_SLACK
        entry = self._journal.get(opening.sid)
        if entry and whole and not opening.closed_by:
            told = ",".join(deal.deal for deal in outs)
            self._journal.learn(replace(entry, notes={**entry.notes, "closed_by": told}))


def _command(order: Order, position: OrderRow | None) -> tuple[str, str]:
    """Return name and content of an order's command."""
    if order.kind == "close":
        return "CLOSE_ORDER", f"{position.ticket if position else ''},{order.lots:.2f}"
    if order.kind == "modify":
        # The price is of pending orders only; a level of 0 would be taken away.
        ticket, there = (position.ticket, position.target) if position else ("", 0.0)
        levels = (f"{price:.{order.digits}f}" for price in (order.stop, there))
        return "MODIFY_ORDER", ",".join((ticket, "0", *levels, "0"))
    side = "buy" if order.side == "BUY" else "sell"
    stop, target = (f"{price:.{order.digits}f}" for price in (order.stop, order.target))
    return "OPEN_ORDER", (
        # The price 0 stands for the market, the last 0 for no expiry.
        f"{order.broker_symbol},{side},{order.lots:.2f},0,{stop},{target},{order.magic},"
        f"{order.sid},0"
    )
