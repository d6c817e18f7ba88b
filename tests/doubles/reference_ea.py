"""The Expert Advisor in Python: what mql5/TorraBridge.mq5 does, against a FakeBroker.

It is the other side of the protocol in the tests, written apart from Torra's side: of Torra it uses
the text of the messages and the table of guards, nothing else. `step` is one timer event. All that
it knows lies in the folder and at the broker, so that it may be killed between any two lines and
built anew; `reach` names the places where the tests do that. As a process of its own:

    TORRA_CHANNEL_KEY=... python -m tests.doubles.reference_ea FOLDER --broker FILE --account 1001 \
        --market EURUSD=1.1,1.10012,5

with TORRA_EA_CRASH_AT=<point> it kills itself there.
"""

from __future__ import annotations

import argparse
import os
import re
import signal as signals
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.doubles.fake_broker import (
    DONE,
    FOK,
    INVALID_FILL,
    IOC,
    PARTIAL,
    PLACED,
    RETURN,
    Execution,
    FakeBroker,
    Held,
    Market,
    Request,
    Result,
)
from torra.advisor_protocol import PROTOCOL
from torra.bridges.guards import REASONS, Ask, View, first_objection
from torra.bridges.protocol import BrokerDeal, BrokerPosition, Quote, SymbolTerms
from torra.bridges.torra.book_rows import deal_row, position_row, symbol_row
from torra.bridges.torra.messages import (
    Ack,
    Deals,
    Heartbeat,
    Message,
    MessageError,
    Positions,
    Signal,
    Symbols,
    decode,
    encode,
    fixed,
    plain,
    signature,
    volume,
)
from torra.config import MAGIC_BASE, MAGIC_RANGE

POINTS = (
    "claimed",
    "intent",
    "before_send",
    "after_send",
    "done_written",
    "ack_written",
    "removed",
)
VARIABLE = "TORRA_EA_CRASH_AT"

NAME = re.compile(r"(\d{10})_([A-Za-z0-9]{1,31})\.json")
TRANSIENT = (10004, 10020, 10021, 10024, 10028)
AMBIGUOUS = (10011, 10012, 10031)
MOST_SENDS = 3
WEEK = 7 * 86_400
BEFORE = 60
"""Seconds before a signal's creation from which the broker's history is searched."""


@dataclass(frozen=True)
class Inputs:
    """What a person sets in the terminal; no file loosens it. 0 = no limit, account 0 = refuse."""

    channel: str = "main"
    channel_key: str = ""
    account: int = 0
    demo_only: bool = True
    max_lots: float = 0.1
    max_positions: int = 3
    max_trades_per_day: int = 10
    allow_trading: bool = True


def ours(magic: int) -> bool:
    return MAGIC_BASE <= magic < MAGIC_BASE + MAGIC_RANGE


def kill_here(point: str) -> None:
    """End the process at the point that the environment names."""
    if os.environ.get(VARIABLE) == point:
        os.kill(os.getpid(), signals.SIGKILL)


class ReferenceEa:
    """One Advisor on one chart."""

    def __init__(
        self,
        folder: Path,
        broker: FakeBroker,
        inputs: Inputs,
        *,
        reach: Callable[[str], None] = kill_here,
        patience: float = 15.0,
        server_offset: int = 10_800,
        version: int = PROTOCOL,
    ) -> None:
        self.folder = folder
        self.broker = broker
        self.inputs = inputs
        self.reach = reach
        self.patience = patience
        self.server_offset = server_offset
        self.version = version
        self.now = 0.0
        self.ticks = 0.0
        self.connected_for = 0.0
        self.counters = dict.fromkeys(("ea", "positions", "deals", "symbols"), 0)
        self.written = dict.fromkeys(self.counters, -1e9)
        self.shown: dict[str, Any] = {}
        self.waiting: dict[str, float] = {}
        self.last_seq = 0

    def step(self, now: float, ticks: float | None = None) -> None:
        """Run one timer event at `now` (TimeGMT); `ticks` counts seconds and never jumps."""
        before, self.ticks = self.ticks, now if ticks is None else ticks
        self.now = now
        if self.broker.connected and before:
            self.connected_for += max(0.0, self.ticks - before)
        if not self.inputs.channel_key:
            return
        self._heartbeat()
        self._claim()
        for name in self._names("work"):
            with suppress(OSError):
                self._handle(name)
        self._books()

    # --- files ------------------------------------------------------------------------------------

    def _names(self, folder: str) -> list[str]:
        with suppress(OSError):
            names = [path.name for path in (self.folder / folder).iterdir()]
            return sorted(name for name in names if NAME.fullmatch(name))
        return []

    def _claim(self) -> None:
        for name in self._names("inbox"):
            work = self.folder / "work" / name
            if work.exists():
                continue  # FileMove does not replace
            try:
                (self.folder / "inbox" / name).rename(work)
            except OSError:
                continue  # another has it
            self.reach("claimed")

    def _scratch(self, text: bytes) -> Path:
        path = self.folder / "tmp" / f"ea.{os.getpid()}.{id(self)}"
        path.write_bytes(text)
        return path

    def _put(self, place: str, text: bytes) -> None:
        self._scratch(text).replace(self.folder / place)

    def _put_new(self, place: str, text: bytes) -> bool:
        """Write a file unless there is one of that name."""
        scratch = self._scratch(text)
        try:
            os.link(scratch, self.folder / place)
        except FileExistsError:
            return False
        finally:
            scratch.unlink()
        return True

    def _remove(self, name: str) -> None:
        for place in (f"work/{name}", f"work/{name}.sending"):
            (self.folder / place).unlink(missing_ok=True)
        self.waiting.pop(name, None)
        self.reach("removed")

    def _halted(self) -> bool:
        return (self.folder / "control" / "HALT").exists()

    def _journal(self, sid: str) -> Path | None:
        """Return the done file of a signal, whatever number it had."""
        found = [n for n in self._names("done") if n.endswith(f"_{sid}.json")]
        return self.folder / "done" / found[0] if found else None

    def _marker(self, name: str) -> str | None:
        try:
            return (self.folder / "work" / f"{name}.sending").read_text(encoding="ascii")
        except OSError:
            return None

    # --- one signal -------------------------------------------------------------------------------

    def _handle(self, name: str) -> None:
        found = NAME.fullmatch(name)
        assert found
        seq, sid = int(found[1]), found[2]
        journal = self._journal(sid)
        if journal:
            self._put(f"ack/{journal.name}", journal.read_bytes())
            self._remove(name)
            return
        signal, ask = self._read(name)
        self.last_seq = max(self.last_seq, seq)
        marker = self._marker(name)
        if signal is None:
            self._illegible(name, seq, sid, ask, marker)
        elif signal.kind in ("open", "close"):
            self._order(name, signal, ask, marker)
        else:
            self._other(name, signal, ask)

    def _read(self, name: str) -> tuple[Signal | None, Ask]:
        raw = (self.folder / "work" / name).read_bytes()
        try:
            signal = decode(raw, Signal, self.inputs.channel_key, version=self.version)
        except MessageError as error:
            flags = {
                "authentic": error.reason != "auth",
                "version": PROTOCOL + (error.reason == "version"),
                "whole": error.reason != "schema",
            }
            return None, Ask(kind="", side="", lots=0.0, **flags)  # type: ignore[arg-type]
        return signal, Ask(
            kind=signal.kind,
            side=signal.side,
            lots=float(signal.lots),
            entry=float(signal.entry),
            stop=float(signal.sl),
            target=float(signal.tp),
            created=signal.created,
            expires=signal.expires,
            max_spread_pts=signal.max_spread_pts,
            max_dev_pts=signal.max_dev_pts,
            channel=signal.channel,
            account=signal.account,
            as_decided=signal.as_decided,
        )

    def _illegible(self, name: str, seq: int, sid: str, ask: Ask, marker: str | None) -> None:
        """Refuse what cannot be read, unless an order of that id may be under way."""
        if marker is not None:
            found = self._at_broker(lambda magic, comment: comment == sid and ours(magic), 0)
            if found:
                self._finish(name, self._adopted(seq, sid, "", found))
            else:
                self._wait(name, seq, sid, "", marker)
            return
        reason = first_objection(ask, self._view(None))
        self._finish(name, self._ack(seq, sid, "", "REJECTED", reason))

    def _order(self, name: str, signal: Signal, ask: Ask, marker: str | None) -> None:
        found = self._executed(signal)
        if found:
            self._finish(name, self._adopted(signal.seq, signal.sid, signal.kind, found))
        elif marker is not None:
            self._wait(name, signal.seq, signal.sid, signal.kind, marker)
        elif not self._refused(name, signal, ask):
            self._execute(name, signal, ask)

    def _refused(self, name: str, signal: Signal, ask: Ask, only: tuple[str, ...] = ()) -> bool:
        """Ask the guards; `only` those when the signal is in hand already."""
        reason = first_objection(ask, self._view(signal), only=only or REASONS)
        if reason and (only or self._alone(name, signal)):
            status = "EXPIRED" if reason == "stale" else "REJECTED"
            self._finish(name, self._ack_of(signal, status, reason))
        return bool(reason)

    def _alone(self, name: str, signal: Signal) -> bool:
        """Set the marker; False when another Advisor has set it, or has just finished."""
        if not self._put_new(f"work/{name}.sending", b"intent"):
            return False
        over = self._journal(signal.sid) or not (self.folder / "work" / name).exists()
        if over:
            (self.folder / "work" / f"{name}.sending").unlink(missing_ok=True)
        return not over

    def _execute(self, name: str, signal: Signal, ask: Ask) -> None:
        if not self._alone(name, signal):
            return
        self.reach("intent")
        code = self.broker.check(self._request(signal))
        if code:
            self._finish(name, self._ack_of(signal, "REJECTED", "retcode", retcode=code))
            return
        sends, fillings = 0, _fillings(self.broker.markets[signal.broker_symbol])
        again: tuple[str, ...] = ()
        while True:
            if self._refused(name, signal, ask, ("kill", *again)):
                return
            self.reach("before_send")
            request = replace(self._request(signal), filling=fillings[0])
            result = self.broker.send(request, self.now)
            self.reach("after_send")
            again = ("stale", "spread", "deviation")
            if result.retcode == INVALID_FILL and len(fillings) > 1:
                del fillings[0]
                continue
            sends += 1
            if result.retcode not in TRANSIENT or sends == MOST_SENDS:
                break
        self._concluded(name, signal, result)

    def _concluded(self, name: str, signal: Signal, result: Result) -> None:
        if result.retcode in (DONE, PARTIAL):
            status = "FILLED" if result.retcode == DONE else "PARTIAL"
            self._finish(name, self._ack_of(signal, status, **self._figures(result)))
        elif result.retcode in (PLACED, *AMBIGUOUS):
            self._put(f"work/{name}.sending", str(result.retcode).encode())
            if result.retcode == PLACED:
                interim = self._ack_of(
                    signal, "PLACED", retcode=result.retcode, ticket=result.order
                )
                self._put(f"ack/{name}", self._text(interim))
            found = self._executed(signal)
            if found:
                self._finish(name, self._adopted(signal.seq, signal.sid, signal.kind, found))
            else:
                self._wait(name, signal.seq, signal.sid, signal.kind, str(result.retcode))
        else:
            self._finish(name, self._ack_of(signal, "REJECTED", "retcode", retcode=result.retcode))

    def _wait(self, name: str, seq: int, sid: str, kind: str, marker: str) -> None:
        """Give the broker time to show an order; after that say that nothing is known of it."""
        since = self.waiting.setdefault(name, self.connected_for)
        if self.connected_for - since < self.patience:
            return
        if marker.isdigit():
            self._finish(name, self._ack(seq, sid, kind, "UNKNOWN", "retcode", int(marker)))
        else:
            self._finish(name, self._ack(seq, sid, kind, "UNKNOWN_NOT_SENT"))

    def _finish(self, name: str, ack: Ack) -> None:
        text = self._text(ack)
        self._put(f"done/{name}", text)
        self.reach("done_written")
        self._put(f"ack/{name}", text)
        self.reach("ack_written")
        self._remove(name)

    def _other(self, name: str, signal: Signal, ask: Ask) -> None:
        """Do what may safely be done again: modify, close_all, ping. No marker is needed."""
        if self._refused(name, signal, ask, REASONS):
            return
        if signal.kind == "ping":
            self._finish(name, self._ack_of(signal, "FILLED"))
            return
        if signal.kind == "modify":
            held = self._held(signal)
            assert held
            requests = [self._levels(signal, held)]
        else:
            mine = [p for p in self.broker.positions(self.now) if p.magic == signal.magic]
            requests = [self._closing(signal, p, p.volume) for p in mine]
        results = []
        for request in requests:
            if self._refused(name, signal, ask, ("kill",)):
                return
            for filling in _fillings(self.broker.markets[request.symbol]):
                self.reach("before_send")
                result = self.broker.send(replace(request, filling=filling), self.now)
                self.reach("after_send")
                if result.retcode != INVALID_FILL:
                    break
            results.append(result)
        bad = next((r.retcode for r in results if r.retcode not in (DONE, PARTIAL)), 0)
        status, reason = ("REJECTED", "retcode") if bad else ("FILLED", "")
        done = sum(result.volume for result in results)
        ack = self._ack_of(signal, status, reason, retcode=bad, volume=volume(done))
        self._finish(name, ack)

    # --- at the broker ----------------------------------------------------------------------------

    def _executed(self, signal: Signal) -> Execution | Held | None:
        """Find the order of a signal by magic and comment."""
        since = signal.created - BEFORE
        return self._at_broker(lambda m, c: m == signal.magic and c == signal.comment, since)

    def _at_broker(self, fits: Callable[[int, str], bool], since: float) -> Execution | Held | None:
        if not self.broker.connected:
            return None
        history: Iterable[Execution | Held] = self.broker.history(since, self.now)
        candidates = (*history, *self.broker.positions(self.now))
        return next((item for item in candidates if fits(item.magic, item.comment)), None)

    def _adopted(self, seq: int, sid: str, kind: str, found: Execution | Held) -> Ack:
        if isinstance(found, Held):
            numbers: dict[str, Any] = {"ticket": found.ticket, "deal": 0, "position": found.ticket}
        else:
            numbers = {"ticket": found.order, "deal": found.deal, "position": found.position}
        digits = self.broker.markets[found.symbol].digits
        return self._ack(
            seq,
            sid,
            kind,
            "FILLED",
            retcode=DONE,
            price=fixed(found.price, digits),
            volume=volume(found.volume),
            adopted=True,
            **numbers,
        )

    def _held(self, signal: Signal) -> Held | None:
        """Find the position of a close or a modify: by number, by comment, by our own journal."""
        positions = self.broker.positions(self.now)
        tests: list[Callable[[Held], bool]] = [
            lambda p: bool(signal.ticket) and p.ticket == signal.ticket,
            lambda p: bool(signal.ref) and p.comment == signal.ref and p.magic == signal.magic,
        ]
        journal = self._journal(signal.ref) if signal.ref else None
        if journal:
            with suppress(MessageError):
                key = self.inputs.channel_key
                told = decode(journal.read_bytes(), Ack, key, version=self.version)
                tests.append(lambda p: bool(told.position) and p.ticket == told.position)
        if signal.ticket:
            tests = tests[:1]
        return next((p for fits in tests for p in positions if fits(p)), None)

    def _request(self, signal: Signal) -> Request:
        market = self.broker.markets[signal.broker_symbol]
        if signal.kind == "close":
            held = self._held(signal)
            assert held
            return self._closing(signal, held, float(signal.lots))
        return Request(
            "deal",
            signal.broker_symbol,
            signal.side,
            float(signal.lots),
            market.ask if signal.side == "BUY" else market.bid,
            _rounded(signal.sl, market),
            _rounded(signal.tp, market),
            signal.max_dev_pts,
            signal.magic,
            signal.comment,
        )

    def _closing(self, signal: Signal, held: Held, lots: float) -> Request:
        market = self.broker.markets[held.symbol]
        side = "SELL" if held.side == "BUY" else "BUY"
        return Request(
            "deal",
            held.symbol,
            side,
            lots,
            market.ask if side == "BUY" else market.bid,
            deviation=signal.max_dev_pts,
            magic=signal.magic,
            comment=signal.comment,
            position=held.ticket,
        )

    def _levels(self, signal: Signal, held: Held) -> Request:
        market = self.broker.markets[held.symbol]
        # 0 means "as it is": the broker would take a level of 0 away.
        stop, target = _rounded(signal.sl, market), _rounded(signal.tp, market)
        levels = (stop or held.sl, target or held.tp)
        return Request("sltp", held.symbol, "", 0.0, 0.0, *levels, position=held.ticket)

    def _figures(self, result: Result) -> dict[str, Any]:
        return {
            "retcode": result.retcode,
            "ticket": result.order,
            "deal": result.deal,
            "position": result.position,
            "price": Decimal(str(result.price)),
            "volume": volume(result.volume),
        }

    def _view(self, signal: Signal | None) -> View:
        """Return what the guards may know."""
        broker, inputs = self.broker, self.inputs
        logged_in = broker.account if broker.account == inputs.account else -1
        common: dict[str, Any] = {
            "now": int(self.now),
            "channel": inputs.channel,
            "account": logged_in if inputs.account else -1,
            "real_account": broker.real,
            "demo_only": inputs.demo_only,
            "halted": self._halted(),
            "connected": broker.connected,
            "algo_allowed": broker.algo_allowed and broker.trade_allowed and inputs.allow_trading,
        }
        market = broker.markets.get(signal.broker_symbol) if signal else None
        if signal is None or market is None:
            return View(bid=0.0, ask=0.0, digits=5, trade_mode="disabled", **common)
        positions = broker.positions(self.now)
        held = self._held(signal) if signal.kind in ("close", "modify") else None
        if broker.hedging:
            stands = any(p.magic == signal.magic for p in positions)
        else:
            stands = any(p.symbol == signal.broker_symbol for p in positions)
        return View(
            bid=market.bid,
            ask=market.ask,
            digits=market.digits,
            trade_mode=market.trade_mode,
            session_open=market.session_open,
            stops_level=market.stops_level,
            lot_min=market.lot_min,
            lot_step=market.lot_step,
            lot_max=market.lot_max,
            max_lots=inputs.max_lots,
            positions=sum(ours(p.magic) for p in positions),
            max_positions=inputs.max_positions,
            trades_today=self._trades_today(),
            max_trades_per_day=inputs.max_trades_per_day,
            held=stands,
            found=held is not None,
            found_lots=held.volume if held else 0.0,
            found_stop=held.sl if held else 0.0,
            **common,
        )

    def _trades_today(self) -> int:
        midnight = int(self.now) // 86_400 * 86_400
        deals = self.broker.history(midnight, self.now)
        return sum(item.entry == "in" and ours(item.magic) for item in deals)

    # --- acks -------------------------------------------------------------------------------------

    def _ack_of(self, signal: Signal, status: str, reason: str = "", **more: Any) -> Ack:
        market = self.broker.markets.get(signal.broker_symbol)
        if market:
            more["bid"] = fixed(market.bid, market.digits)
            more["ask"] = fixed(market.ask, market.digits)
        return self._ack(signal.seq, signal.sid, signal.kind, status, reason, **more)

    def _ack(
        self,
        seq: int,
        sid: str,
        kind: str,
        status: str,
        reason: str = "",
        retcode: int = 0,
        **more: Any,
    ) -> Ack:
        return Ack(
            sid=sid,
            seq=seq,
            channel=self.inputs.channel,
            kind=kind,
            status=status,
            reason=reason,
            retcode=retcode,
            server_time=int(self.now) + self.server_offset,
            gmt=int(self.now),
            **more,
        )

    def _text(self, message: Message) -> bytes:
        return encode(message, self.inputs.channel_key, version=self.version)

    # --- state ------------------------------------------------------------------------------------

    def _due(self, name: str, every: float, shown: object = None) -> int:
        """Return the next number of a state file that is due or has changed, else 0."""
        changed = shown is not None and self.shown.get(name) != shown
        if not changed and self.ticks - self.written[name] < every:
            return 0
        self.shown[name], self.written[name] = shown, self.ticks
        self.counters[name] += 1
        return self.counters[name]

    def _write_state(self, name: str, message: Message) -> None:
        with suppress(OSError):
            self._put(f"state/{name}.json", self._text(message))

    def _heartbeat(self) -> None:
        n = self._due("ea", 1.0)
        if not n:
            return
        broker = self.broker
        money = fixed(broker.balance, 2)
        self._write_state(
            "ea",
            Heartbeat(
                n=n,
                gmt=int(self.now),
                server_offset_s=self.server_offset,
                account=broker.account,
                trade_mode="real" if broker.real else "demo",
                margin_mode="hedging" if broker.hedging else "netting",
                connected=broker.connected,
                algo_allowed=broker.algo_allowed,
                trade_allowed=broker.trade_allowed and self.inputs.allow_trading,
                kill=self._halted(),
                ea_version="2.0",
                last_seq=self.last_seq,
                inbox=len(self._names("inbox")),
                work=len(self._names("work")),
                balance=money,
                equity=money,
                free_margin=money,
                leverage=broker.leverage,
                currency=broker.currency,
                channel=self.inputs.channel,
            ),
        )

    def _books(self) -> None:
        if not self.broker.connected:
            return
        positions = tuple(position_row(self._position(p)) for p in self.broker.positions(self.now))
        since = int(self.now) - WEEK
        deals = tuple(deal_row(deal) for deal in self._deals(since))
        account = self.broker.account
        stamp: dict[str, Any] = {
            "gmt": int(self.now),
            "channel": self.inputs.channel,
            "account": account,
        }
        if n := self._due("positions", 5.0, positions):
            self._write_state("positions", Positions(n=n, rows=positions, **stamp))
        if n := self._due("deals", 5.0, deals):
            self._write_state("deals", Deals(n=n, since=since, rows=deals, **stamp))
        if n := self._due("symbols", 5.0):
            symbols = tuple(symbol_row(self._terms(m)) for m in self.broker.markets.values())
            self._write_state("symbols", Symbols(n=n, rows=symbols, **stamp))

    def _position(self, held: Held) -> BrokerPosition:
        return BrokerPosition(
            str(held.ticket),
            held.symbol,
            "LONG" if held.side == "BUY" else "SHORT",
            held.volume,
            held.price,
            held.sl,
            held.tp,
            held.magic,
            plain(held.comment),
            self.broker.profit_of(held),
            _moment(held.time),
        )

    def _deals(self, since: int) -> list[BrokerDeal]:
        history = self.broker.history(since, self.now)
        started = {e.position for e in history if e.entry == "in" and ours(e.magic)}
        mine = [e for e in history if ours(e.magic) or e.position in started]
        return [
            BrokerDeal(
                str(e.deal),
                str(e.position),
                e.symbol,
                e.entry,  # type: ignore[arg-type]
                e.side,  # type: ignore[arg-type]
                e.volume,
                e.price,
                e.profit,
                e.magic,
                plain(e.comment),
                _moment(e.time),
                e.reason,
            )
            for e in mine[-500:]
        ]

    def _terms(self, market: Market) -> SymbolTerms:
        return SymbolTerms(
            market.name,
            market.digits,
            market.tick_size,
            market.tick_value,
            market.contract_size,
            market.lot_min,
            market.lot_step,
            market.lot_max,
            market.stops_level,
            market.trade_mode,  # type: ignore[arg-type]
            market.currency,
            Quote(market.bid, market.ask, _moment(market.quoted or int(self.now))),
        )

    def write_bars(self, symbol: str, timeframe: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write closed bars (time in server wall clock, open, high, low, close, ticks, spread)."""
        bars = [",".join(str(value) for value in row) for row in rows]
        first = (
            f'{{"v":{self.version},"msg":"bars","channel":"{self.inputs.channel}",'
            f'"account":{self.broker.account},"broker_symbol":"{symbol}","tf":"{timeframe}",'
            f'"count":{len(bars)},"server_offset_s":{self.server_offset}}}'
        )
        lines = [first, "time,open,high,low,close,tick_volume,spread", *bars]
        body = "".join(f"{line}\n" for line in lines)
        end = f"end,{signature(body, self.inputs.channel_key)}\n"
        self._put(
            f"bars/{quote(symbol).replace('.', '%2E')}_{timeframe}.csv", (body + end).encode()
        )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _rounded(price: Decimal, market: Market) -> float:
    """Round to the tick size, then to the digits."""
    ticks = round(float(price) / market.tick_size)
    return round(ticks * market.tick_size, market.digits)


def _fillings(market: Market) -> list[str]:
    """Order the filling modes: what the symbol's mask allows, RETURN, and the others."""
    masked = [mode for mode, bit in ((FOK, 1), (IOC, 2)) if market.filling & bit]
    return [*masked, RETURN, *(mode for mode in (FOK, IOC) if mode not in masked)]


def main() -> None:
    """Run until killed, or for so many seconds."""
    parser = argparse.ArgumentParser(description="the Expert Advisor in Python")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--broker", type=Path, required=True)
    parser.add_argument("--account", type=int, default=1001)
    parser.add_argument("--channel", default="main")
    parser.add_argument("--key-variable", default="TORRA_CHANNEL_KEY")
    parser.add_argument("--market", action="append", default=[], help="NAME=bid,ask,digits")
    parser.add_argument("--netting", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--timer", type=float, default=0.25)
    parser.add_argument("--patience", type=float, default=15.0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    broker = FakeBroker(given.broker, given.account, given.real, not given.netting)
    for market in given.market:
        name, _, terms = market.partition("=")
        bid, ask, digits = terms.split(",")
        tick = 10.0 ** -int(digits)
        broker.market(name, bid=float(bid), ask=float(ask), digits=int(digits), tick_size=tick)
    inputs = Inputs(
        given.channel,
        os.environ.get(given.key_variable, ""),
        given.account,
        max_lots=0.0,
        max_positions=0,
        max_trades_per_day=0,
    )
    ea = ReferenceEa(given.folder, broker, inputs, patience=given.patience)
    end = time.monotonic() + given.seconds
    while time.monotonic() < end:
        ea.step(time.time(), time.monotonic())
        time.sleep(given.timer)


if __name__ == "__main__":
    main()
