"""A bridge to MetaTrader 5 through the MetaTrader5 package, without an Expert Advisor.

This side does what the Expert Advisor does on its own. It looks at the account first and adopts
what is there, asks the guards in their order, checks, writes the intent down, and sends. It sends
again only what the server says it has not accepted, three times at most, and asks the guards anew
each time. After 10030, and nothing else, it also sends once with each other filling mode. The
intent is on disk before the order goes out, and an order with an intent is never sent again in a
later life.

After a crash in between, or an answer that says nothing, the account is looked at. An order that
does not show within CONFIRM_SECONDS of connected time is UNKNOWN_NOT_SENT when nothing says that it
was sent. Otherwise it is UNKNOWN until the account shows it or a person decides. A close always
names its position. Prices are sent in whole ticks, lots as they are or not at all.

A process that stood still for more than LOOK_SECONDS in one step between its first look and the
sending sends nothing and looks anew; a terminal that takes its time with each call is no reason. A
stop in the very call that sends cannot be noticed.

The account must be the channel's, and a real one only with `live`. No password is here: a person
logs the terminal in. What cannot be asked raises BridgeUnavailable, and nothing was sent. The
package has no trading sessions: the server refuses an order in a closed market (10018).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from torra.bridges.guards import ask_of, first_objection
from torra.bridges.mt5.lookup import Mt5Account, executed_status, stop_move_report
from torra.bridges.mt5.request import (
    HEDGING,
    REAL_ACCOUNT,
    OrderMarket,
    facts_of,
    fillings_of,
    request_of,
    terms_of,
    view_of,
)
from torra.bridges.mt5.retcodes import CHECKED, INVALID_FILL, WORDS, Meaning, meaning
from torra.bridges.mt5.terminal import Terminal, TerminalAnswer
from torra.bridges.order_journal import OrderEntry, OrderJournal, halt_in
from torra.bridges.protocol import (
    LOOK_SECONDS,
    STOOD_STILL,
    BrokerBooks,
    Health,
    Order,
    OrderReport,
    Recall,
    Status,
    SymbolTerms,
)
from torra.clock import Clock
from torra.config import Channel
from torra.errors import BridgeUnavailable
from torra.home import HALT
from torra.market.broker_clock import ServerClock
from torra.verdict.risk_engine import DenyReason

JOURNAL: Final = "mt5_orders.jsonl"

CONFIRM_SECONDS: Final = 15.0
"""Connected seconds after which an order that has not shown in the account is UNKNOWN."""

HISTORY: Final = timedelta(days=7)
"""How far back the deals of the books reach."""

LOOK_AGAIN_SECONDS: Final = 5.0
"""How often the account is looked at for an order that is UNKNOWN."""

SENDS: Final = 3
"""How often an order is sent at most when the server does not accept it now."""

PAUSE: Final = 0.25
"""Seconds between two sends: enough for a new quote."""

FUTURE_QUOTE: Final = timedelta(seconds=60)
"""A quote that lies further in the future shows that the server's clock is misjudged."""


log = logging.getLogger("torra")


@dataclass(slots=True)
class _Watch:
    """Connected seconds in which an order has not shown, and when it was looked for last."""

    waited: float = 0.0
    last: float | None = None


class Watched(Terminal):
    """The terminal as one bridge uses it; it notices when this process stood still between calls.

    A computer that sleeps, or a process that is stopped, shows as one long step. A slow terminal
    shows as many short ones, during which the lease is kept.
    """

    def __init__(self, terminal: Terminal, clock: Clock) -> None:
        self._terminal = terminal
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        """Look from now on."""
        self._last, self._slept = self._clock.now(), False

    def step(self) -> None:
        """End a step here."""
        now = self._clock.now()
        self._slept |= now - self._last > timedelta(seconds=LOOK_SECONDS)
        self._last = now

    def stood_still(self) -> bool:
        """End a step here; return whether any step since the beginning was too long."""
        self.step()
        return self._slept

    def ask(self, name: str, *args: Any, **kwargs: Any) -> TerminalAnswer:
        """Call a function of the package, as the terminal does."""
        try:
            return self._terminal.ask(name, *args, **kwargs)
        finally:
            self.step()

    def number(self, name: str) -> int:
        """Return a constant of the package, as the terminal does."""
        return self._terminal.number(name)

    def close(self) -> None:
        """Let the terminal go."""
        self._terminal.close()


class Mt5Direct:
    """One account behind a `Terminal`; `state` is this side's folder of the channel."""

    def __init__(
        self,
        name: str,
        channel: Channel,
        state: Path,
        symbols: Sequence[str],
        clock: Clock,
        terminal: Terminal,
        *,
        halts: Sequence[Path] = (),
    ) -> None:
        """Read the journal of orders; ConfigError where it is damaged.

        A HALT in the channel's folder and each of `halts` stop sending.
        """
        self._name = name
        self._channel = channel
        self._clock = clock
        self._symbols = tuple(dict.fromkeys(symbols))
        self._terminal = Watched(terminal, clock)
        self._account = Mt5Account(self._terminal, ServerClock.parse(channel.server_clock))
        self._halts = (state / HALT, *halts)
        self._journal = OrderJournal(state / JOURNAL, clock.now())
        self._lock = threading.RLock()
        self._watches: dict[str, _Watch] = {}

    @property
    def name(self) -> str:
        """The bridge's name on pages and in messages."""
        return f"mt5_direct {self._name}"

    # --- orders -----------------------------------------------------------------------------------

    def submit(self, order: Order) -> None:
        """Send an order, once; the same id again changes nothing. Raises BridgeUnavailable."""
        with self._lock:
            if self._journal.get(order.sid):
                return
            self._terminal.begin()
            health = self.health()
            if not health.ok:
                raise BridgeUnavailable(health.detail)
            market = self._market(order)
            ticket = str(market.position.ticket) if market.position else ""
            entry = OrderEntry(order, notes={"ticket": ticket})
            # A journal that was lost must not lead to a second order.
            if report := self._account.find(entry, self._clock.now()):
                self._keep(replace(entry, intent=self._clock.now(), report=report))
            elif reason := self._objection(order, market):
                self._keep(replace(entry, report=self._refusal(order, reason)))
            else:
                self._send(entry, market)

    def recall(self, sid: str, seq: int) -> Recall:
        """Take an order back: only one that was never sent can be."""
        del seq
        with self._lock:
            return Recall.TAKEN if self._journal.get(sid) else Recall.NEVER_SENT

    def settle(self, report: OrderReport) -> None:
        """Forget a report: it is committed."""
        with self._lock:
            self._journal.settle(report)

    def heartbeat(self, state: str) -> None:
        """Do nothing: no Expert Advisor of Torra's listens."""

    def poll(self) -> Sequence[OrderReport]:
        """Look for the end of every order; return the unsettled reports, oldest first."""
        with self._lock:
            waiting = [item for item in self._journal.entries if item.intent and not item.ended]
            open_ones = {item.order.sid for item in waiting}
            self._watches = {k: v for k, v in self._watches.items() if k in open_ones}
            if waiting and self._reach():
                for entry in waiting:
                    self._look(entry, self._watches.setdefault(entry.order.sid, _Watch()))
            elif waiting:
                # Time without a connection does not count: nothing could have shown.
                for watch in self._watches.values():
                    watch.last = None
            return self._journal.unsettled()

    def close(self) -> None:
        """Let the terminal go."""
        self._terminal.close()

    # --- what is known ----------------------------------------------------------------------------

    def health(self) -> Health:
        """Return whether orders may be sent now."""
        with self._lock:
            self._journal.mend()
            try:
                terminal = self._terminal.demand("terminal_info")
                account = self._terminal.demand("account_info")
                deny, detail = self._obstacle(terminal, account)
            except BridgeUnavailable as error:
                return Health(DenyReason.BRIDGE_DEAD, str(error))
            return Health(deny, detail, facts_of(terminal, account))

    def books(self) -> BrokerBooks | None:
        """Return every position and the deals of the last days; None when they are not known."""
        with self._lock:
            now = self._clock.now()
            since = now - HISTORY
            if not self._reach():
                return None
            try:
                deals = self._account.deals(since, now)
                return BrokerBooks(self._account.positions(), deals, now, since)
            except (BridgeUnavailable, ValueError):  # ValueError: a time the server never shows
                return None

    def terms(self) -> Mapping[str, SymbolTerms]:
        """Return how the symbols of Market Watch are traded; empty when it is not known."""
        with self._lock:
            try:
                for symbol in self._symbols:
                    self._terminal.ask("symbol_select", symbol, True)
                known = self._terminal.demand("symbols_get")
            except BridgeUnavailable:
                return {}
            now, account = self._clock.now(), self._account
            return {
                item.name: terms_of(item, account.moment(item.time, now))
                for item in known
                if item.visible
            }

    def _reach(self) -> bool:
        """Return whether the terminal is connected, and to the channel's account."""
        try:
            terminal = self._terminal.demand("terminal_info")
            account = self._terminal.demand("account_info")
        except BridgeUnavailable:
            return False
        return bool(terminal.connected) and account.login == self._channel.account

    def _obstacle(self, terminal: Any, account: Any) -> tuple[DenyReason | None, str]:
        """Return why nothing may be sent, with the remedy."""
        channel = f"channels.{self._name}"
        dead = (
            (
                not terminal.connected,
                "the terminal has no connection to the broker: log in there",
            ),
            (
                account.login != self._channel.account,
                f"the terminal is on account {account.login}, not {self._channel.account}: log in "
                f"there, or set {channel}.account",
            ),
            (
                account.trade_mode == REAL_ACCOUNT and not self._channel.live,
                f"account {account.login} is a real one: set {channel}.live to true if orders may "
                "go to real money",
            ),
            (
                not terminal.trade_allowed or terminal.tradeapi_disabled,
                "algo trading is off in the terminal: switch it on, and allow it for Python",
            ),
            (
                not account.trade_allowed or not account.trade_expert,
                f"the broker allows account {account.login} no algo trading",
            ),
            (bool(self._journal.fault), self._journal.fault),
        )
        for is_so, sentence in dead:
            if is_so:
                return DenyReason.BRIDGE_DEAD, sentence
        if skew := self._skew():
            return DenyReason.CLOCK_SKEW, skew
        if halt := halt_in(self._halts):
            return DenyReason.TRADING_HALTED, halt
        return None, f"account {account.login}"

    def _skew(self) -> str:
        """Say how a quote shows that the server's clock is misjudged; empty when none does."""
        now = self._clock.now()
        for symbol in self._symbols:
            tick = self._terminal.ask("symbol_info_tick", symbol).value
            if tick is None:
                continue
            ahead = self._account.moment(tick.time, now) - now
            if ahead > FUTURE_QUOTE:
                return (
                    f"the newest quote of {symbol} would be {ahead.total_seconds():.0f} s in the "
                    f"future: is channels.{self._name}.server_clock right, and this computer's "
                    "clock?"
                )
        return ""

    # --- before an order --------------------------------------------------------------------------

    def _market(self, order: Order) -> OrderMarket:
        """Ask for all that the guards want to know; raises BridgeUnavailable."""
        account = self._terminal.demand("account_info")
        symbol = self._terminal.ask("symbol_info", order.broker_symbol).value
        # The terminal keeps quotes of the symbols in Market Watch only.
        if symbol is not None and not symbol.select:
            self._terminal.ask("symbol_select", order.broker_symbol, True)
            symbol = self._terminal.ask("symbol_info", order.broker_symbol).value
        positions = self._terminal.demand("positions_get")
        opening = self._journal.get(order.closes)
        learned = opening.report.position if opening and opening.report else ""
        hedging = account.margin_mode == HEDGING
        return OrderMarket(
            terminal=self._terminal.demand("terminal_info"),
            account=account,
            symbol=symbol,
            tick=self._terminal.ask("symbol_info_tick", order.broker_symbol).value,
            position=self._account.position_of(order, learned) if order.kind != "open" else None,
            has_position=any(
                # A netting account has one position of a symbol, whoever opened it.
                item.magic == order.magic if hedging else item.symbol == order.broker_symbol
                for item in positions
            ),
        )

    def _objection(self, order: Order, market: OrderMarket) -> str:
        halt = bool(halt_in(self._halts))
        view = view_of(order, market, self._channel, self._clock.now(), halt)
        return first_objection(ask_of(order, self._channel.account), view)

    # --- sending ----------------------------------------------------------------------------------

    def _send(self, entry: OrderEntry, market: OrderMarket) -> None:
        """Check, write the intent down, send; after that nothing is left to the caller."""
        refused: list[int] = []
        # The move of a stop needs no margin, which is what the check is about.
        if entry.order.kind != "modify":
            retcode = self._check(entry.order, market, refused)
            if retcode not in CHECKED:
                # Nothing was sent yet, so the refusal is final whatever the number.
                self._keep(replace(entry, report=self._refusal(entry.order, "retcode", retcode)))
                return
        request = request_of(entry.order, market, refused)
        # From here on a crash leaves an order that nobody sends again.
        entry = self._intend(entry)
        left = SENDS
        while True:
            answer = self._try(request)
            retcode = answer.value.retcode if answer.value else 0
            outcome: Meaning = meaning(retcode)
            if not _other_filling(request, retcode, market, refused):
                left -= 1
                if outcome != "transient" or not left:
                    self._judge(entry, answer, outcome)
                    return
            self._clock.sleep(PAUSE)
            # A pause that took too long means that the process stood still in it.
            self._terminal.step()
            again = self._again(entry, retcode, refused)
            if again is None:
                return
            request = again

    def _intend(self, entry: OrderEntry) -> OrderEntry:
        """Return the entry of an order that goes out now: kept, so that no later life sends it.

        Raises BridgeUnavailable, with nothing left to look for, when it must not go out any more.
        """
        entry = replace(entry, intent=self._clock.now())
        self._keep(entry)
        # Once more: the checks and the disk took their time.
        fault = halt_in(self._halts)
        # Last of all: the lease may be another desk's by now.
        if not fault and self._terminal.stood_still():
            fault = STOOD_STILL
        if fault:
            self._journal.withdraw(entry.order.sid)
            raise BridgeUnavailable(fault)
        return entry

    def _keep(self, entry: OrderEntry) -> None:
        try:
            self._journal.put(entry)
        except OSError as error:
            raise BridgeUnavailable(f"cannot write the journal of orders: {error}") from error

    def _check(self, order: Order, market: OrderMarket, refused: list[int]) -> int:
        """Return what order_check answers, of the first filling mode that passes it."""
        while True:
            request = request_of(order, market, refused)
            retcode: int = self._terminal.demand("order_check", request).retcode
            if not _other_filling(request, retcode, market, refused):
                return retcode

    def _try(self, request: dict[str, Any]) -> TerminalAnswer:
        try:
            return self._terminal.ask("order_send", request)
        except BridgeUnavailable as error:
            # The call may still go through: an answer that says nothing, never a refusal.
            return TerminalAnswer(None, words=str(error))

    def _again(self, entry: OrderEntry, retcode: int, refused: list[int]) -> dict[str, Any] | None:
        """Return the request at the new price; None when the order ends here instead."""
        try:
            market = self._market(entry.order)
        except BridgeUnavailable:
            # The server has not accepted the last send, so nothing is under way.
            self._journal.report(self._refusal(entry.order, "retcode", retcode))
            return None
        slept = "retcode" if self._terminal.stood_still() else ""
        reason = self._objection(entry.order, market) or slept
        if reason:
            self._journal.report(self._refusal(entry.order, reason, retcode))
            return None
        return request_of(entry.order, market, refused)

    def _judge(self, entry: OrderEntry, answer: TerminalAnswer, outcome: Meaning) -> None:
        """Book the server's answer; an answer that says nothing stays open for `poll`."""
        result = answer.value
        if outcome in ("final", "transient"):
            self._journal.report(self._refusal(entry.order, "retcode", result.retcode))
            return
        notes = {**entry.notes, "answer": str(result.retcode) if result else answer.fault}
        if result is not None:
            notes |= {"order": str(result.order or ""), "deal": str(result.deal or "")}
        entry = replace(entry, notes=notes)
        self._journal.learn(entry)
        if outcome == "done" and entry.order.kind == "modify":
            self._journal.report(
                stop_move_report(entry.order, entry.notes["ticket"], self._clock.now())
            )
        # Some brokers answer `done` without price and volume; then the account tells them.
        elif outcome in ("done", "partial") and result.price > 0 and result.volume > 0:
            self._journal.report(self._executed(entry, result, outcome))
        elif outcome != "ambiguous":
            now = self._clock.now()
            self._journal.report(OrderReport(entry.order.sid, "PLACED", now, ticket=notes["order"]))

    def _executed(self, entry: OrderEntry, result: Any, outcome: Meaning) -> OrderReport:
        """Return the report of an order that the server calls executed.

        An opening's position has the number of its order, unless its deal says otherwise.
        """
        deal, now = self._account.deal(result.deal), self._clock.now()
        opened = str(deal.position_id if deal else result.order)
        return OrderReport(
            sid=entry.order.sid,
            status=executed_status(entry.order, result.volume) if outcome == "done" else "PARTIAL",
            at=self._account.moment(deal.time, now) if deal else now,
            retcode=result.retcode,
            ticket=str(result.order),
            deal=entry.notes["deal"],
            position=opened if entry.order.kind == "open" else entry.notes["ticket"],
            price=result.price,
            volume=result.volume,
        )

    def _refusal(self, order: Order, reason: str, retcode: int = 0) -> OrderReport:
        if retcode:
            words = WORDS.get(retcode, "refused")
            log.warning("%s: %s %s: %s (%d)", self.name, order.sid, reason, words, retcode)
        status: Status = "EXPIRED" if reason == "stale" else "REJECTED"
        return OrderReport(order.sid, status, self._clock.now(), reason, retcode)

    # --- afterwards -------------------------------------------------------------------------------

    def _look(self, entry: OrderEntry, watch: _Watch) -> None:
        """Look once more for an order whose end is not known, while the terminal is connected."""
        now = self._clock.monotonic()
        since = 0.0 if watch.last is None else now - watch.last
        if entry.status == "UNKNOWN" and watch.last is not None and since < LOOK_AGAIN_SECONDS:
            return
        try:
            report = self._account.find(entry, self._clock.now())
            # A pending order that never fills is as open as one that never shows.
            late = report is None or report.status == "PLACED"
            watch.last, watch.waited = now, watch.waited + since
            if late and watch.waited >= CONFIRM_SECONDS and entry.status != "UNKNOWN":
                report = self._given_up(entry)
        except BridgeUnavailable:
            watch.last = None
            return
        # PLACED is no news of an UNKNOWN order: only an execution ends it.
        known = {entry.status, "PLACED"} if entry.status == "UNKNOWN" else {entry.status}
        if report is not None and report.status not in known:
            self._journal.report(report)
            self._watches[entry.order.sid] = _Watch()

    def _given_up(self, entry: OrderEntry) -> OrderReport:
        """Return the report of an order that has not shown in time."""
        order, now = entry.order, self._clock.now()
        # A stop or a person was quicker: there is nothing left to close.
        if order.kind != "open" and not self._account.is_open(entry.notes["ticket"]):
            return OrderReport(order.sid, "REJECTED", now, "no_position")
        answer = entry.notes.get("answer", "")
        # No answer is noted, so a crash came before or in the call itself.
        if not answer and entry.report is None:
            return OrderReport(order.sid, "UNKNOWN_NOT_SENT", now)
        retcode = int(answer) if answer.isdigit() else 0
        return OrderReport(order.sid, "UNKNOWN", now, retcode=retcode)


def _other_filling(
    request: dict[str, Any], retcode: int, market: OrderMarket, refused: list[int]
) -> bool:
    """Return whether the answer is about the filling mode alone, and another one is left.

    The mode that was refused is added to `refused`.
    """
    if retcode != INVALID_FILL or "type_filling" not in request:
        return False
    refused.append(request["type_filling"])
    return len(refused) < len(fillings_of(market.symbol))
