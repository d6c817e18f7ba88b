"""The bridge of somebody else, behind Torra's own guards and a time limit.

Before an order reaches it every guard of torra.bridges.guards is asked, with what the bridge itself
says of account, symbol and quote; an order waits for what it has not said. An order that a guard
refuses is reported as REJECTED and never handed over. Each call has SHARE_SECONDS. A call that
takes longer, raises or answers with something else is "not known": submit and recall raise
BridgeUnavailable, books are None, nothing was reported. So a broken plug-in can delay an order, and
can neither loosen a limit nor hold up another channel for long.

What stays the plug-in's own part: an id that it has seen must not be executed a second time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from torra.bridges.guards import REASONS, WITHOUT_QUOTE, View, ask_of, first_objection, limits_of
from torra.bridges.order_journal import halt_in
from torra.bridges.protocol import (
    QUOTE_SECONDS,
    Bridge,
    BrokerBooks,
    Health,
    Order,
    OrderReport,
    Recall,
    SymbolTerms,
)
from torra.clock import Clock
from torra.config import Channel
from torra.errors import BridgeUnavailable
from torra.time_limit import SHARE_SECONDS, TimeLimit
from torra.verdict.risk_engine import TradingState
from torra.words.deny_reasons import DenyReason

T = TypeVar("T")

log = logging.getLogger("torra")

REAL: Final = "real_account"
"""The fact of a bridge's health that says if orders go to real money; unknown counts as yes."""


class GuardedBridge:
    """A plug-in as the courier may use it."""

    def __init__(
        self, bridge: Bridge, name: str, channel: Channel, clock: Clock, halts: tuple[Path, ...]
    ) -> None:
        self._bridge = bridge
        self._name = name
        self._channel = channel
        self._clock = clock
        self._halts = halts
        self._limit = TimeLimit(name, SHARE_SECONDS)
        self._refused: dict[str, OrderReport] = {}

    @property
    def name(self) -> str:
        """What pages and messages call it."""
        return self._name

    def submit(self, order: Order) -> None:
        """Ask the guards, then hand the order over; raises BridgeUnavailable."""
        if order.sid in self._refused:
            return
        health = self.health()
        if not health.ok:
            raise BridgeUnavailable(f"{self._name}: {health.detail}")
        if reason := self._objection(order, health.facts):
            now = self._clock.real_now()
            self._refused[order.sid] = OrderReport(order.sid, "REJECTED", now, reason=reason)
            return
        self._demand(partial(self._bridge.submit, order))

    def recall(self, sid: str, seq: int) -> Recall:
        """Take an order back; raises BridgeUnavailable when that cannot even be tried."""
        if sid in self._refused:
            return Recall.NEVER_SENT
        answer = self._demand(partial(self._bridge.recall, sid, seq))
        if not isinstance(answer, Recall):
            raise BridgeUnavailable(f"{self._name} gave no answer to a recall")
        return answer

    def poll(self) -> Sequence[OrderReport]:
        """Return every report that is not settled yet: the guards' own, then the bridge's."""
        reports = self._ask(self._bridge.poll, ())
        if not isinstance(reports, Sequence) or isinstance(reports, str | bytes):
            reports = ()
        theirs = [report for report in reports if isinstance(report, OrderReport)]
        return [*self._refused.values(), *theirs]

    def settle(self, report: OrderReport) -> None:
        """Forget a report: it is committed."""
        if self._refused.pop(report.sid, None) is None:
            self._ask(partial(self._bridge.settle, report), None)

    def health(self) -> Health:
        """Return whether orders may be handed over now: to the channel's own account only."""
        answer = self._ask(self._bridge.health, None)
        if not isinstance(answer, Health):
            return Health(DenyReason.BRIDGE_DEAD, "the plug-in gave no answer: see the log")
        facts = answer.facts if isinstance(answer.facts, Mapping) else {}
        if not answer.ok:
            return answer
        if halt := halt_in(self._halts):
            return Health(DenyReason.TRADING_HALTED, halt, facts)
        if facts.get("account") != self._channel.account:
            detail = f"it is on account {facts.get('account')}, not {self._channel.account}"
            return Health(DenyReason.BRIDGE_DEAD, detail, facts)
        return answer

    def books(self) -> BrokerBooks | None:
        """Return positions and deals; None when they are not known."""
        answer = self._ask(self._bridge.books, None)
        return answer if isinstance(answer, BrokerBooks) else None

    def terms(self) -> Mapping[str, SymbolTerms]:
        """Return what the broker trades, by broker symbol; empty when it is not known."""
        answer = self._ask(self._bridge.terms, {})
        if not isinstance(answer, Mapping):
            return {}
        return {name: one for name, one in answer.items() if isinstance(one, SymbolTerms)}

    def heartbeat(self, state: TradingState) -> None:
        """Tell the other side that this one lives, and its trading state."""
        self._ask(partial(self._bridge.heartbeat, state), None)

    def close(self) -> None:
        """Let go of what is held."""
        self._ask(self._bridge.close, None)

    def _demand(self, work: Callable[[], T]) -> T:
        """Return what a call returns; BridgeUnavailable for whatever else becomes of it."""
        try:
            return self._limit.run(work)
        except BridgeUnavailable:
            raise
        except Exception as error:
            log.exception("the bridge %s", self._name)
            raise BridgeUnavailable(f"{self._name}: {type(error).__name__}: {error}") from error

    def _ask(self, work: Callable[[], Any], otherwise: Any) -> Any:
        """Return what a call that must not raise returns; `otherwise` when it did not keep that."""
        try:
            return self._limit.run(work)
        except Exception:
            log.exception("the bridge %s", self._name)
            return otherwise

    def _objection(self, order: Order, facts: Mapping[str, object]) -> str:
        """Return the reason of the first guard that objects, "" when none does."""
        # One that was written before stops could be moved might take it for an opening.
        if order.kind == "modify" and getattr(self._bridge, "moves_stops", False) is not True:
            return "schema"
        only = REASONS if order.kind == "open" else WITHOUT_QUOTE
        ask = ask_of(order, self._channel.account)
        return first_objection(ask, self._view(order, facts), only=only)

    def _view(self, order: Order, facts: Mapping[str, object]) -> View:
        """Return the market as the bridge tells it.

        Raises BridgeUnavailable for what it has not told yet: the signal waits for it until it
        expires, for a refusal would be final.
        """
        now = self._clock.real_now()
        terms, books = self.terms().get(order.broker_symbol), self.books()
        if terms is None or books is None:
            what = "positions" if terms else f"trading conditions of {order.broker_symbol}"
            raise BridgeUnavailable(f"{self._name} has not told the {what}")
        quote = terms.quote
        fresh = quote is not None and abs((now - quote.at).total_seconds()) <= QUOTE_SECONDS
        if not fresh and order.kind == "open":
            raise BridgeUnavailable(f"{self._name} has no quote of {order.broker_symbol}")
        positions = books.positions
        # The position that a close names, or the instance's own.
        meant = [
            row
            for row in positions
            if (row.ticket == order.ticket if order.ticket else row.magic == order.magic)
        ]
        return View(
            now=int(now.timestamp()),
            bid=quote.bid if quote and fresh else 0.0,
            ask=quote.ask if quote and fresh else 0.0,
            digits=order.digits,
            account=self._channel.account,
            real_account=facts.get(REAL) is not False,
            demo_only=not self._channel.live,
            halted=bool(halt_in(self._halts)),
            **limits_of(terms),
            positions=len(positions),
            has_position=any(row.magic == order.magic for row in positions),
            is_open=bool(meant),
            position_lots=sum(row.lots for row in meant),
            position_stop=meant[0].stop if meant else 0.0,
        )
