"""DWX Connect's Expert Advisor as far as a client can tell, with every quirk that hurts.

It deletes a command before it looks at it, stops at the first index that is missing, forgets the
numbers of commands when it starts again and deletes the commands that wait at that moment, answers
without ids and tickets, writes its files in place, closes under the magic number of whatever it
opened last, and counts everybody's positions against MaximumOrders.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from torra.clock import System
from torra.market.broker_clock import ServerClock, shown

SERVER = ServerClock.parse("new_york+7")
START = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


class HandClock(System):
    """A clock that only moves when it is told to; whoever sleeps lets the others work."""

    accelerated = False
    rate = None

    def __init__(self, start: datetime = START) -> None:
        self.moment = start
        self.elapsed = 0.0
        self.others: list[Callable[[], None]] = []

    def now(self) -> datetime:
        return self.moment

    def real_now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.elapsed

    def real_time_of(self, moment: datetime) -> datetime:
        return moment

    def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)
        self.elapsed += seconds
        for work in self.others:
            work()

    def pass_by(self, seconds: float, step: float = 0.25) -> None:
        end = self.elapsed + seconds
        while self.elapsed < end - 1e-9:
            self.sleep(min(step, end - self.elapsed))


@dataclass
class Row:
    """A position as the terminal holds it."""

    ticket: int
    magic: int
    symbol: str
    lots: float
    kind: str
    price: float
    time: str
    stop: float
    target: float
    comment: str


@dataclass
class FakeDwx:
    """The Expert Advisor, its terminal and its broker; `step` is one turn of its timer."""

    folder: Path
    clock: HandClock
    account: int = 12345678
    owner: str = "Jane Trader"
    maximum_orders: int = 1000
    maximum_lots: float = 2.0
    symbols: tuple[str, ...] = ("XAUUSD.m", "EURUSD")
    prices: dict[str, tuple[float, float]] = field(
        default_factory=lambda: {"XAUUSD.m": (2345.00, 2345.20), "EURUSD": (1.10000, 1.10012)}
    )
    running: bool = True
    encoding: str = "utf-8"
    error: int = 0
    """GetLastError of every trade from now on; 0: trades succeed."""

    mute: bool = False
    """Trades are done, and the account's file does not show it."""

    mangle: Callable[[str], str] = str
    fill: float = 1.0
    on_half: Callable[[], None] | None = None
    on_read: Callable[[str], None] | None = None
    positions: dict[int, Row] = field(default_factory=dict)
    deals: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    strays: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._next = 700_000
        self._magic = 0
        self._written = -1e9
        self._texts: dict[str, str] = {}
        self.init()

    # --- its life ---------------------------------------------------------------------------------

    def init(self) -> None:
        """OnInit: delete what lies there, forget the numbers."""
        self.reset_folder()
        self.ids: list[int] = []
        self.messages: list[tuple[int, str]] = []
        self.subscribed: list[str] = []
        self._texts = {}
        self.running = True

    def deinit(self) -> None:
        self.running = False
        self.reset_folder()

    def killed(self) -> None:
        """The terminal is gone; its files stay."""
        self.running = False

    def reset_folder(self) -> None:
        for name in ("Market_Data", "Bar_Data", "Orders", "Messages"):
            (self.folder / f"DWX_{name}.txt").unlink(missing_ok=True)
        for index in range(50):
            (self.folder / f"DWX_Commands_{index}.txt").unlink(missing_ok=True)

    def step(self) -> None:
        known = re.compile(r"DWX_[A-Za-z_]+\.txt|DWX_Commands_0\.txt|torra_\d+\.tmp")
        self.strays |= {
            path.name for path in self.folder.iterdir() if not known.fullmatch(path.name)
        }
        if not self.running:
            return
        self.check_commands()
        self.check_orders()
        self.check_quotes()

    # --- commands ---------------------------------------------------------------------------------

    def check_commands(self) -> None:
        for index in range(50):
            path = self.folder / f"DWX_Commands_{index}.txt"
            if not path.exists():
                return
            text = path.read_text(encoding="ascii")
            if self.on_read:
                self.on_read(text)
            path.unlink(missing_ok=True)
            if not self.command(text):
                return

    def command(self, text: str) -> bool:
        self.taken.append(text)
        if not text.startswith("<:"):
            return self.fail("WRONG_FORMAT_START_IDENTIFIER", text)
        if not text.endswith(":>"):
            return self.fail("WRONG_FORMAT_END_IDENTIFIER", text)
        parts = text[2:-2].split("|")
        if len(parts) != 3:
            return self.fail("WRONG_FORMAT_COMMAND", text)
        number, name, content = int(parts[0]), parts[1], parts[2]
        if name != "RESET_COMMAND_IDS" and number in self.ids:
            self.repeated.append(text)  # Print() to the journal of the terminal, and no answer
            return False
        self.ids = [*self.ids, number][-1000:]
        {
            "OPEN_ORDER": self.open_order,
            "CLOSE_ORDER": self.close_order,
            "MODIFY_ORDER": self.modify_order,
            "SUBSCRIBE_SYMBOLS": self.subscribe,
            "GET_HISTORIC_TRADES": self.historic_trades,
        }[name](content)
        return True

    def open_order(self, content: str) -> None:
        data = content.split(",")
        if len(data) != 9:
            self.fail("OPEN_ORDER_WRONG_FORMAT", content)
            return
        symbol, kind, lots, _price, stop, target, magic, comment, _expiration = data
        if len(self.positions) >= self.maximum_orders:
            self.fail("OPEN_ORDER_MAXIMUM_NUMBER", f"Number of orders ({len(self.positions)})")
            return
        volume = round(float(lots), 2)
        if not 0.01 <= volume <= 100:
            self.fail("OPEN_ORDER_LOTSIZE_OUT_OF_RANGE", f"Lot size out of range: {lots}")
            return
        if volume > self.maximum_lots:
            self.fail("OPEN_ORDER_LOTSIZE_TOO_LARGE", f"Lot size ({volume:.2f}) larger")
            return
        if symbol not in self.prices:
            self.fail("OPEN_ORDER_PRICE_ZERO", f"Price is zero: {content}")
            return
        self._magic = int(magic)
        if self.error:
            self.fail("OPEN_ORDER", f"Could not open order: ErrorCode: {self.error}")
            return
        self.opened.append(comment)
        bid, ask = self.prices[symbol]
        price = ask if kind == "buy" else bid
        done = max(0.01, int(volume * 100 * self.fill) / 100)
        ticket = self.number()
        row = Row(
            ticket, self._magic, symbol, done, kind, price, self.wall(), float(stop),
            float(target), self.mangle(comment),
        )  # fmt: skip
        self.positions[ticket] = row
        self.deal(row, "entry_in", kind, done, price, row.comment, self._magic, -0.07)
        self.info(f"Successfully sent order: {symbol}, {kind}, {lots}, {price}")

    def close_order(self, content: str) -> None:
        data = content.split(",")
        if len(data) != 2:
            self.fail("CLOSE_ORDER_WRONG_FORMAT", content)
            return
        ticket, lots = int(data[0]), round(float(data[1]), 2)
        row = self.positions.get(ticket)
        if row is None:
            self.fail("CLOSE_ORDER_SELECT_TICKET", f"Could not select order with ticket: {ticket}")
            return
        if self.error:
            self.fail(
                "CLOSE_ORDER_TICKET",
                f"Could not close position {ticket}: ErrorCode: {self.error}",
            )
            return
        self.closed.append(ticket)
        self.end(ticket, self.price_out(row), "", self._magic, lots or row.lots)
        self.info(f"Successfully closed order: {ticket}, {row.symbol}, {lots}")

    def modify_order(self, content: str) -> None:
        data = content.split(",")
        if len(data) != 5:
            self.fail("MODIFY_ORDER_WRONG_FORMAT", content)
            return
        ticket, stop, target = int(data[0]), float(data[2]), float(data[3])
        row = self.positions.get(ticket)
        if row is None:
            text = f"Could not select order with ticket: {ticket}"
            self.fail("MODIFY_ORDER_SELECT_TICKET", text)
            return
        if self.error:
            self.fail("MODIFY_ORDER", f"Could not modify order {ticket}: ErrorCode: {self.error}")
            return
        self.positions[ticket] = replace(row, stop=stop, target=target)
        self.info(f"Successfully modified order {ticket}: {row.symbol}, {stop}, {target}")

    def subscribe(self, content: str) -> None:
        names = [name for name in content.split(",") if name]
        bad = [name for name in names if name not in self.symbols]
        self.subscribed = [name for name in names if name in self.symbols]
        if bad:
            self.fail("SUBSCRIBE_SYMBOL", f"Could not subscribe to symbols: {', '.join(bad)}")
        if self.subscribed:
            self.info(f"Successfully subscribed to: {', '.join(self.subscribed)}")

    def historic_trades(self, content: str) -> None:
        since = shown(SERVER.from_utc(self.clock.now() - timedelta(days=int(content))))
        stamp = since.replace("-", ".")
        rows = [row for row in self.deals if re.findall(r'"deal_time": "([^"]+)"', row)[0] >= stamp]
        self.write("Historic_Trades", "{" + ", ".join(reversed(rows)) + "}")
        self.info("Successfully read historic trades.")

    # --- the broker -------------------------------------------------------------------------------

    def number(self) -> int:
        self._next += 1
        return self._next

    def price_out(self, row: Row) -> float:
        bid, ask = self.prices.get(row.symbol, (1.0, 1.0))
        return bid if row.kind == "buy" else ask

    def hold(self, symbol: str, kind: str = "buy", lots: float = 0.1, **more: Any) -> int:
        """Let somebody else open a position."""
        ticket = self.number()
        values = {"magic": 0, "comment": "", "stop": 0.0, "target": 0.0, **more}
        row = Row(
            ticket, symbol=symbol, kind=kind, lots=lots, price=1.5, time=self.wall(), **values
        )
        self.positions[ticket] = row
        self.deal(row, "entry_in", kind, lots, 1.5, row.comment, row.magic, 0.0)
        return ticket

    def end(self, ticket: int, price: float, comment: str, magic: int, lots: float) -> None:
        """Close a position or a part of it: by a stop, a target, a person."""
        row = self.positions[ticket]
        lots = min(lots, row.lots)
        kind = "sell" if row.kind == "buy" else "buy"
        gain = (price - row.price) * lots * (100 if row.kind == "buy" else -100)
        self.deal(row, "entry_out", kind, lots, price, comment, magic, gain)
        row.lots = round(row.lots - lots, 2)
        if row.lots <= 0:
            del self.positions[ticket]

    def deal(
        self, row: Row, entry: str, kind: str, lots: float, price: float, comment: str,
        magic: int, profit: float,
    ) -> None:  # fmt: skip
        self.deals.append(
            f'"{self.number()}": {{"magic": {magic}, "symbol": "{row.symbol}", "lots": {lots:.2f}, '
            f'"type": "{kind}", "entry": "{entry}", "deal_time": "{self.wall()}", '
            f'"deal_price": {price:.5f}, "pnl": {profit:.2f}, "commission": -0.50, "swap": 0.00, '
            f'"comment": "{comment}"}}'
        )

    def wall(self) -> str:
        return shown(SERVER.from_utc(self.clock.now())).replace("-", ".")

    # --- what it writes ---------------------------------------------------------------------------

    def check_orders(self) -> None:
        rows = [] if self.mute else [
            f'"{row.ticket}": {{"magic": {row.magic}, "symbol": "{row.symbol}", '
            f'"lots": {row.lots:.2f}, "type": "{row.kind}", "open_price": {row.price:.5f}, '
            f'"open_time": "{row.time}", "SL": {row.stop:.5f}, "TP": {row.target:.5f}, '
            f'"pnl": 1.25, "swap": -0.25, "comment": "{row.comment}"}}'
            for row in reversed(self.positions.values())
        ]  # fmt: skip
        text = (
            f'{{"account_info": {{"name": "{self.owner}", "number": {self.account}, '
            '"currency": "USD", "leverage": 100, "free_margin": 9900.000000, '
            '"balance": 10000.000000, "equity": 10000.500000}, "orders": {' + ", ".join(rows) + "}}"
        )
        if text == self._texts.get("Orders") and self.clock.elapsed < self._written + 1:
            return
        self._written = self.clock.elapsed
        self.write("Orders", text)

    def check_quotes(self) -> None:
        rows = [
            f'"{name}": {{"bid": {self.prices[name][0]:.5f}, "ask": {self.prices[name][1]:.5f}, '
            '"last": 0.00000, "tick_value": 1.00000}'
            for name in self.subscribed
        ]
        text = "{" + ", ".join(rows) + "}"
        if text != self._texts.get("Market_Data"):
            self.write("Market_Data", text)

    def info(self, message: str) -> None:
        self.say(f'{{"type": "INFO", "time": "{self.gmt()}", "message": "{message}"}}')

    def fail(self, kind: str, text: str) -> bool:
        self.say(
            f'{{"type": "ERROR", "time": "{self.gmt()}", "error_type": "{kind}", '
            f'"description": "{text}"}}'
        )
        return False

    def say(self, message: str) -> None:
        millis = int(self.clock.elapsed * 1000)
        last = self.messages[-1][0] if self.messages else -1
        self.messages = [*self.messages, (max(millis, last + 1), message)][-50:]
        told = ", ".join(f'"{key}": {value}' for key, value in self.messages)
        self.write("Messages", "{" + told + "}")

    def gmt(self) -> str:
        return self.clock.now().strftime("%Y.%m.%d %H:%M:%S")

    def write(self, name: str, text: str) -> None:
        """Write a file in place, as FileOpen(FILE_WRITE) does; `on_half` looks in between."""
        path, raw = self.folder / f"DWX_{name}.txt", (text + "\r\n").encode(self.encoding)
        self._texts[name] = text
        if self.on_half:
            path.write_bytes(b"")
            self.touch(path)
            self.on_half()
            path.write_bytes(raw[: len(raw) // 2])
            self.touch(path)
            self.on_half()
        path.write_bytes(raw)
        self.touch(path)

    def touch(self, path: Path) -> None:
        stamp = self.clock.now().timestamp()
        os.utime(path, (stamp, stamp))
