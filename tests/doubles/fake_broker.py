"""A broker for the tests: quotes, orders, positions and deals, with the faults that brokers have.

What has been executed is appended to a file, one JSON line each, before `send` returns, so that it
outlives a killed Advisor, and several Advisors in several processes may share it. Everything else
(quotes, connection, faults to come) is set by the test. Times are epoch seconds and come in.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # one process at a time will do
    fcntl = None

DONE, PLACED, PARTIAL = 10009, 10008, 10010
REQUOTE, INVALID, INVALID_VOLUME, INVALID_STOPS = 10004, 10013, 10014, 10016
NO_MONEY, UNKNOWN_SYMBOL, INVALID_FILL, CLOSED_ALREADY = 10019, 10013, 10030, 10036

FOK, IOC, RETURN = "FOK", "IOC", "RETURN"
ALLOWS = {FOK: 1, IOC: 2}


@dataclass
class Market:
    """One symbol's terms and quote."""

    name: str
    bid: float = 1.1
    ask: float = 1.10012
    digits: int = 5
    tick_size: float = 0.00001
    tick_value: float = 1.0
    contract_size: float = 100_000.0
    lot_min: float = 0.01
    lot_step: float = 0.01
    lot_max: float = 50.0
    stops_level: int = 0
    trade_mode: str = "full"
    currency: str = "USD"
    session_open: bool = True
    filling: int = 3
    fills: tuple[str, ...] | None = None
    """Modes that are taken where the mask is wrong; None: those of the mask."""

    quoted: int = 0


@dataclass(frozen=True)
class Request:
    """What OrderSend is given: `action` deal or sltp, `position` 0 for an opening."""

    action: str
    symbol: str
    side: str = ""
    volume: float = 0.0
    price: float = 0.0
    sl: float = 0.0
    tp: float = 0.0
    deviation: int = 0
    magic: int = 0
    comment: str = ""
    position: int = 0
    filling: str = FOK


@dataclass(frozen=True)
class Result:
    """What OrderSend answers."""

    retcode: int
    order: int = 0
    deal: int = 0
    position: int = 0
    price: float = 0.0
    volume: float = 0.0


@dataclass(frozen=True)
class Fault:
    """How the next send goes: what it answers, whether and how much it executes, what is seen.

    `retcode` 0 answers truly. The books show an execution `delay` seconds late, `comment` replaces
    that of the order, and `quote` moves the market (bid, ask) after the answer.
    """

    retcode: int = 0
    executes: bool = True
    share: float = 1.0
    delay: float = 0.0
    comment: str | None = None
    quote: tuple[float, float] | None = None


@dataclass
class Held:
    """An open position."""

    ticket: int
    symbol: str
    side: str
    volume: float
    price: float
    sl: float
    tp: float
    magic: int
    comment: str
    time: int
    visible: float = 0.0


@dataclass(frozen=True)
class Execution:
    """An order that was executed and its deal; `entry` in or out."""

    order: int
    deal: int
    position: int
    symbol: str
    entry: str
    side: str
    volume: float
    price: float
    profit: float
    magic: int
    comment: str
    time: int
    reason: str
    sl: float = 0.0
    tp: float = 0.0
    visible: float = 0.0


@dataclass
class FakeBroker:
    """One account."""

    path: Path
    account: int = 1001
    real: bool = False
    hedging: bool = True
    connected: bool = True
    algo_allowed: bool = True
    trade_allowed: bool = True
    balance: float = 10_000.0
    leverage: int = 100
    currency: str = "USD"
    markets: dict[str, Market] = field(default_factory=dict)
    faults: deque[Fault] = field(default_factory=deque)
    check_codes: deque[int] = field(default_factory=deque)
    sends: list[Request] = field(default_factory=list)
    on_send: Any = None

    def __post_init__(self) -> None:
        self.executions: list[Execution] = []
        self.held: dict[int, Held] = {}
        self._offset = 0
        self._lock = threading.RLock()
        self._sync()

    def market(self, name: str, **terms: Any) -> Market:
        """Add a symbol or change it."""
        self.markets[name] = replace(self.markets.get(name, Market(name)), **terms)
        return self.markets[name]

    # --- what an Advisor may ask ------------------------------------------------------------------

    def check(self, request: Request) -> int:
        """OrderCheck: 0 or a return code."""
        with self._lock:
            return self.check_codes.popleft() if self.check_codes else 0

    def send(self, request: Request, now: float) -> Result:
        """OrderSend."""
        with self._exclusive():
            self.sends.append(request)
            if self.on_send:
                self.on_send(request)
            fault = self.faults.popleft() if self.faults else Fault()
            wrong = self._wrong(request)
            if wrong and not fault.retcode:
                return Result(wrong)
            result = self._execute(request, fault, now) if fault.executes else Result(0)
            if fault.quote:
                market = self.markets[request.symbol]
                market.bid, market.ask = fault.quote
            if fault.retcode and fault.retcode not in (DONE, PARTIAL):
                return Result(fault.retcode, order=result.order)
            return replace(result, retcode=fault.retcode or result.retcode)

    def positions(self, now: float) -> list[Held]:
        """PositionsTotal and so on: copies."""
        with self._exclusive():
            return [replace(item) for item in self.held.values() if item.visible <= now]

    def history(self, since: float, now: float) -> list[Execution]:
        """HistorySelect: executed orders with their deals."""
        with self._exclusive():
            return [item for item in self.executions if since <= item.time and item.visible <= now]

    def profit_of(self, held: Held) -> float:
        """Return the floating profit."""
        market = self.markets[held.symbol]
        return self._profit(held, market.bid if held.side == "BUY" else market.ask, held.volume)

    # --- what happens without an Advisor ----------------------------------------------------------

    def by_hand(self, symbol: str, side: str, volume: float, now: float, **more: Any) -> Result:
        """Open a position as a person does in the terminal."""
        request = Request("deal", symbol, side, volume, filling=RETURN, **more)
        with self._exclusive():
            return self._execute(request, Fault(), now, reason="client")

    def end(self, ticket: int, price: float, now: float, reason: str = "client") -> None:
        """Close a position: by hand, by its stop or by its target."""
        with self._exclusive():
            held = self.held[ticket]
            side = "SELL" if held.side == "BUY" else "BUY"
            comment = f"[{reason} {price}]" if reason in ("sl", "tp") else ""
            request = Request("deal", held.symbol, side, held.volume, position=ticket)
            request = replace(request, comment=comment)
            self._execute(request, Fault(), now, reason=reason, price=price)

    def tick(self, symbol: str, bid: float, ask: float, now: float) -> None:
        """Move the market; stops and targets that it reaches end their positions."""
        market = self.market(symbol, bid=bid, ask=ask, quoted=int(now))
        for held in [item for item in self.held.values() if item.symbol == symbol]:
            price = market.bid if held.side == "BUY" else market.ask
            towards = 1 if held.side == "BUY" else -1
            if held.sl and (price - held.sl) * towards <= 0:
                self.end(held.ticket, held.sl, now, "sl")
            elif held.tp and (held.tp - price) * towards <= 0:
                self.end(held.ticket, held.tp, now, "tp")

    # --- inside -----------------------------------------------------------------------------------

    def _wrong(self, request: Request) -> int:
        market = self.markets.get(request.symbol)
        if market is None:
            return UNKNOWN_SYMBOL
        if request.action == "sltp":
            return 0 if request.position in self.held else CLOSED_ALREADY
        steps = request.volume / market.lot_step
        if request.volume <= 0 or abs(steps - round(steps)) > 1e-6:
            return INVALID_VOLUME
        masked = request.filling not in ALLOWS or market.filling & ALLOWS[request.filling]
        if not (masked if market.fills is None else request.filling in market.fills):
            return INVALID_FILL
        if request.position:
            held = self.held.get(request.position)
            if held is None:
                return CLOSED_ALREADY
            return INVALID if held.side == request.side else 0
        price = market.ask if request.side == "BUY" else market.bid
        if round(abs(request.price - price) * 10**market.digits) > request.deviation:
            return REQUOTE
        towards = 1 if request.side == "BUY" else -1
        if request.sl and (price - request.sl) * towards <= 0:
            return INVALID_STOPS
        return 0

    def _execute(
        self,
        request: Request,
        fault: Fault,
        now: float,
        *,
        reason: str = "expert",
        price: float = 0.0,
    ) -> Result:
        if request.action == "sltp":
            self._append({"levels": request.position, "sl": request.sl, "tp": request.tp})
            return Result(DONE)
        market = self.markets[request.symbol]
        number = 10 * (len(self.executions) + 1)
        held = self.held.get(request.position)
        if held is None and not self.hedging:
            held = next((h for h in self.held.values() if h.symbol == request.symbol), None)
        closes = held is not None and held.side != request.side
        volume = request.volume * fault.share
        volume = max(market.lot_step, round(volume / market.lot_step) * market.lot_step)
        volume = round(min(volume, held.volume) if closes and held else volume, 8)
        price = price or (market.ask if request.side == "BUY" else market.bid)
        execution = Execution(
            order=number,
            deal=number + 1,
            position=held.ticket if held else number,
            symbol=request.symbol,
            entry="out" if closes else "in",
            side=request.side,
            volume=volume,
            price=price,
            profit=self._profit(held, price, volume) if closes and held else 0.0,
            magic=request.magic,
            comment=request.comment if fault.comment is None else fault.comment,
            time=int(now),
            reason=reason,
            sl=request.sl,
            tp=request.tp,
            visible=now + fault.delay if fault.delay else 0.0,
        )
        self._append(asdict(execution))
        code = PARTIAL if volume < request.volume - 1e-9 else DONE
        return Result(code, number, number + 1, execution.position, price, volume)

    def _profit(self, held: Held, price: float, volume: float) -> float:
        market = self.markets[held.symbol]
        towards = 1 if held.side == "BUY" else -1
        ticks = (price - held.price) * towards / market.tick_size
        return round(ticks * market.tick_value * volume, 2)

    def _append(self, line: dict[str, Any]) -> None:
        with self.path.open("ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
        self._sync()

    def _sync(self) -> None:
        """Read what is new in the file: one's own lines, and those of others."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                self._offset += len(line)
                self._apply(json.loads(line))

    def _apply(self, line: dict[str, Any]) -> None:
        if "levels" in line:
            changed = self.held[line["levels"]]
            changed.sl, changed.tp = line["sl"], line["tp"]
            return
        execution = Execution(**line)
        self.executions.append(execution)
        if execution.entry == "out":
            self.balance = round(self.balance + execution.profit, 2)
        held = self.held.get(execution.position)
        if execution.entry == "out" and held:
            held.volume = round(held.volume - execution.volume, 8)
            if held.volume <= 0:
                del self.held[execution.position]
        elif held:
            held.volume = round(held.volume + execution.volume, 8)
        else:
            kept = ("symbol", "side", "volume", "price", "sl", "tp", "magic", "comment", "time")
            more = {name: line[name] for name in (*kept, "visible")}
            self.held[execution.position] = Held(ticket=execution.position, **more)

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Let one caller in at a time, of all threads and processes."""
        with self._lock:
            handle = os.open(f"{self.path}.lock", os.O_WRONLY | os.O_CREAT) if fcntl else -1
            try:
                if fcntl:
                    fcntl.flock(handle, fcntl.LOCK_EX)
                self._sync()
                yield
            finally:
                if fcntl:
                    os.close(handle)
