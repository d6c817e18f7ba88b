"""A stand-in for the MetaTrader5 package: its names, tuples, dtypes, return codes and moods.

An object of `FakeMetaTrader5` is handed over where the module would be. Times are the server's wall
clock as the package gives them. The broker behind it fills at the quote, as hedging or netting
account, and can be told to refuse, to lose an answer, to fill in part, to block and to say nothing.
"""

# ruff: noqa: PYI024 - every field is Any, and a string of names is how MetaTrader5 tells them
from __future__ import annotations

import threading
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.doubles.hand_clock import HandClock
from torra.market.broker_clock import ServerClock

TerminalInfo = namedtuple(
    "TerminalInfo",
    "community_account community_connection connected dlls_allowed trade_allowed "
    "tradeapi_disabled email_enabled ftp_enabled notifications_enabled mqid build maxbars codepage "
    "ping_last community_balance retransmission company name language path data_path "
    "commondata_path",
)
AccountInfo = namedtuple(
    "AccountInfo",
    "login trade_mode leverage limit_orders margin_so_mode trade_allowed trade_expert margin_mode "
    "currency_digits fifo_close balance credit profit equity margin margin_free margin_level "
    "margin_so_call margin_so_so margin_initial margin_maintenance assets liabilities "
    "commission_blocked name server currency company",
)
SymbolInfo = namedtuple(
    "SymbolInfo",
    "select visible time digits spread trade_mode trade_stops_level trade_freeze_level "
    "trade_exemode filling_mode bid ask point trade_tick_value trade_tick_size "
    "trade_contract_size volume_min volume_max volume_step currency_profit name path",
)
Tick = namedtuple("Tick", "time bid ask last volume time_msc flags volume_real")
BookInfo = namedtuple("BookInfo", "type price volume volume_dbl")
TradePosition = namedtuple(
    "TradePosition",
    "ticket time time_msc time_update time_update_msc type magic identifier reason volume "
    "price_open sl tp price_current swap profit symbol comment external_id",
)
TradeOrder = namedtuple(
    "TradeOrder",
    "ticket time_setup time_setup_msc time_done time_done_msc time_expiration type type_time "
    "type_filling state magic position_id position_by_id reason volume_initial volume_current "
    "price_open sl tp price_current price_stoplimit symbol comment external_id",
)
TradeDeal = namedtuple(
    "TradeDeal",
    "ticket order time time_msc type entry magic position_id reason volume price commission swap "
    "profit fee symbol comment external_id",
)
OrderCheckResult = namedtuple(
    "OrderCheckResult",
    "retcode balance equity profit margin margin_free margin_level comment request",
)
OrderSendResult = namedtuple(
    "OrderSendResult",
    "retcode deal order volume price bid ask comment request_id retcode_external request",
)

RATES = np.dtype(
    [
        ("time", "<i8"),
        ("open", "<f8"),
        ("high", "<f8"),
        ("low", "<f8"),
        ("close", "<f8"),
        ("tick_volume", "<u8"),
        ("spread", "<i4"),
        ("real_volume", "<u8"),
    ]
)
REQUEST = {
    "action": int, "symbol": str, "volume": float, "type": int, "price": float, "sl": float,
    "tp": float, "deviation": int, "magic": int, "comment": str, "type_time": int,
    "type_filling": int, "position": int,
}  # fmt: skip
REFUSED = 10006
NO_IPC = (-10004, "No IPC connection")


@dataclass
class FakeMetaTrader5:
    """The module, its terminal and its broker."""

    TIMEFRAME_M1 = 1
    TIMEFRAME_M5 = 5
    TIMEFRAME_M15 = 15
    TIMEFRAME_M30 = 30
    TIMEFRAME_H1 = 16385
    TIMEFRAME_H4 = 16388
    TIMEFRAME_D1 = 16408
    COPY_TICKS_ALL = -1

    clock: HandClock
    server: ServerClock = field(default_factory=lambda: ServerClock.parse("new_york+7"))
    login: int = 12345678
    trade_mode: int = 0
    margin_mode: int = 2
    connected: bool = True
    trade_allowed: bool = True
    tradeapi_disabled: bool = False
    trade_expert: bool = True
    filling_mode: int = 1
    fillings: set[int] | None = None
    """What the server takes, where the mask of the symbol is wrong; None: what the mask says."""

    check_knows_fillings: bool = True
    exchange: bool = False
    symbol_mode: int = 4
    stops_level: int = 0
    lots: tuple[float, float, float] = (0.01, 50.0, 0.01)
    """Least, most and step of a symbol."""

    quotes: dict[str, tuple[float, float]] = field(
        default_factory=lambda: {"XAUUSD.m": (2345.00, 2345.20), "EURUSD": (1.1, 1.10012)}
    )
    selected: set[str] = field(default_factory=lambda: {"XAUUSD.m"})
    quote_ahead: int = 0

    # faults
    silent: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Functions that give None, with what last_error says then."""

    blocked: dict[str, threading.Event] = field(default_factory=dict)
    """Functions that do not return before their event."""

    retcodes: list[int] = field(default_factory=list)
    """What order_send answers next; after these it does its work."""

    arrives: bool = False
    """Whether an order is done all the same when its answer is one of `retcodes`."""

    no_answer: bool = False
    """Let order_send do its work and give None."""

    check: int = 0
    part: float = 1.0
    bare: bool = False
    """Answer done without price and volume."""

    hidden: bool = False
    """Let history and positions show nothing of what was done."""

    mangle: Callable[[str], str] = str
    before_send: Callable[[], object] | None = None
    after_send: Callable[[], object] | None = None

    initialized: bool = False
    starts: int = 0
    calls: list[str] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    requests: list[dict[str, Any]] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    held: dict[int, TradePosition] = field(default_factory=dict)
    working: dict[int, TradeOrder] = field(default_factory=dict)
    orders: list[TradeOrder] = field(default_factory=list)
    deals: list[TradeDeal] = field(default_factory=list)
    rates: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    ticks: dict[str, np.ndarray] = field(default_factory=dict)
    books: dict[str, tuple[BookInfo, ...]] = field(default_factory=dict)
    watched: set[str] = field(default_factory=set)
    error: tuple[int, str] = (1, "Success")
    number: int = 500_000

    # --- connection -------------------------------------------------------------------------------

    def initialize(self, *path: str) -> bool:
        self.starts += 1
        if "initialize" in self.silent:
            self.error = self.silent["initialize"]
            return False
        self.initialized = True
        return True

    def shutdown(self) -> None:
        self.initialized = False

    def last_error(self) -> tuple[int, str]:
        return self.error

    def _ok(self, name: str) -> bool:
        self.calls.append(name)
        self.threads.add(threading.get_ident())
        if name in self.blocked:
            assert self.blocked[name].wait(30)
        if not self.initialized:
            self.error = NO_IPC
            return False
        if name in self.silent:
            self.error = self.silent[name]
            return False
        self.error = (1, "Success")
        return True

    def terminal_info(self) -> TerminalInfo | None:
        if not self._ok("terminal_info"):
            return None
        return TerminalInfo(
            False, False, self.connected, False, self.trade_allowed, self.tradeapi_disabled, False,
            False, False, False, 5231, 100_000, 0, 1200, 0.0, 0.0, "Broker", "MetaTrader 5",
            "English", "C:/MT5", "C:/data", "C:/common",
        )  # fmt: skip

    def account_info(self) -> AccountInfo | None:
        if not self._ok("account_info"):
            return None
        return AccountInfo(
            self.login, self.trade_mode, 100, 200, 0, True, self.trade_expert, self.margin_mode, 2,
            False, 10_000.0, 0.0, 0.5, 10_000.5, 100.0, 9_900.5, 0.0, 50.0, 30.0, 0.0, 0.0, 0.0,
            0.0, 0.0, "Jürgen", "Broker-Demo", "USD", "Broker",
        )  # fmt: skip

    # --- symbols ----------------------------------------------------------------------------------

    def symbol_info(self, name: str) -> SymbolInfo | None:
        if not self._ok("symbol_info"):
            return None
        if name not in self.quotes:
            self.error = (-4, "Terminal: Not found")
            return None
        return self._symbol(name)

    def _symbol(self, name: str) -> SymbolInfo:
        bid, ask = self.quotes[name] if name in self.selected else (0.0, 0.0)
        digits = 5 if name == "EURUSD" else 2
        return SymbolInfo(
            name in self.selected, name in self.selected, self._wall(), digits, 20,
            self.symbol_mode, self.stops_level, 0, 2, self.filling_mode, bid, ask, 10.0**-digits,
            1.0, 10.0**-digits, 100.0, *self.lots, "USD", name, f"Metals\\{name}",
        )  # fmt: skip

    def symbols_get(self, group: str = "*") -> tuple[SymbolInfo, ...] | None:
        if not self._ok("symbols_get"):
            return None
        return tuple(self._symbol(name) for name in self.quotes)

    def symbol_select(self, name: str, enable: bool = True) -> bool | None:
        if not self._ok("symbol_select"):
            return None
        if name not in self.quotes:
            self.error = (-4, "Terminal: Not found")
            return False
        self.selected.add(name)
        return True

    def symbol_info_tick(self, name: str) -> Tick | None:
        if not self._ok("symbol_info_tick"):
            return None
        if name not in self.selected:
            self.error = (-4, "Terminal: Not found")
            return None
        wall = self._wall() + self.quote_ahead
        return Tick(wall, *self.quotes[name], 0.0, 0, wall * 1000, 6, 0.0)

    def _wall(self) -> int:
        return self.server.from_utc(self.clock.now())

    # --- orders -----------------------------------------------------------------------------------

    def order_check(self, request: dict[str, Any]) -> OrderCheckResult | None:
        if not self._ok("order_check") or not self._valid(request):
            return None
        retcode = self.check
        if self.check_knows_fillings and not self._fills(request):
            retcode = 10030
        return OrderCheckResult(retcode, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "", request)

    def _fills(self, request: dict[str, Any]) -> bool:
        allowed = {number for number, bit in ((0, 1), (1, 2)) if self.filling_mode & bit} or {2}
        return request["type_filling"] in (allowed if self.fillings is None else self.fillings)

    def _valid(self, request: dict[str, Any]) -> bool:
        for name, value in request.items():
            if name not in REQUEST or not isinstance(value, REQUEST[name]):
                self.error = (-2, f'Invalid "{name}" argument')
                return False
        if len(request["comment"]) > 31:
            self.error = (-2, 'Invalid "comment" argument')
            return False
        return True

    def order_send(self, request: dict[str, Any]) -> OrderSendResult | None:
        if not self._ok("order_send") or not self._valid(request):
            return None
        if self.before_send:
            self.before_send()
        self.requests.append(dict(request))
        forced = self.retcodes.pop(0) if self.retcodes else None
        if request["action"] == 1 and not self._fills(request):
            forced = 10030
        result = self._work(request) if forced is None or self.arrives else None
        if self.after_send:
            self.after_send()
        if self.no_answer:
            self.error = (-10005, "IPC timeout")
            return None
        bid, ask = self.quotes[request["symbol"]]
        empty = OrderSendResult(REFUSED, 0, 0, 0.0, 0.0, bid, ask, "", 7, 0, request)
        if forced is not None:
            return empty._replace(retcode=forced)
        return result or empty

    def _work(self, request: dict[str, Any]) -> OrderSendResult:
        bid, ask = self.quotes[request["symbol"]]
        if request["action"] == 6:
            ticket = request["position"]
            if ticket not in self.held:
                return OrderSendResult(10036, 0, 0, 0.0, 0.0, bid, ask, "", 7, 0, request)
            self.held[ticket] = self.held[ticket]._replace(sl=request["sl"], tp=request["tp"])
            return OrderSendResult(10009, 0, 0, 0.0, 0.0, bid, ask, "done", 7, 0, request)
        price = ask if request["type"] == 0 else bid
        volume = round(request["volume"] * self.part, 2)
        order, deal = self._next(), self._next()
        self.opened.append(request["comment"])
        comment = self.mangle(request["comment"])
        position = self._book(request, order, volume, price, comment)
        self._past(order, position, request, comment)
        entry = 1 if "position" in request else 0
        wall = self._wall()
        self.deals.append(
            TradeDeal(deal, order, wall, wall * 1000, request["type"], entry, request["magic"],
                      position, 3, volume, price, -0.5, 0.0, 0.0, -0.1, request["symbol"], comment,
                      "")
        )  # fmt: skip
        retcode = 10009 if self.part == 1.0 else 10010
        lots, fill = (0.0, 0.0) if self.bare else (volume, price)
        return OrderSendResult(
            retcode, 0 if self.bare else deal, order, lots, fill, bid, ask, "done", 7, 0, request
        )

    def _book(
        self, request: dict[str, Any], order: int, volume: float, price: float, comment: str
    ) -> int:
        """Open, or close what the request names; without a name a hedging account opens another."""
        symbol, wall = request["symbol"], self._wall()
        ticket = request.get("position", 0)
        if ticket:
            old = self.held[ticket]
            left = round(old.volume - volume, 2)
            if left > 0:
                self.held[ticket] = old._replace(volume=left)
            else:
                del self.held[ticket]
            return int(ticket)
        if self.margin_mode != 2 and any(item.symbol == symbol for item in self.held.values()):
            raise AssertionError("a netting account would have merged two positions")
        self.held[order] = TradePosition(
            order, wall, wall * 1000, wall, wall * 1000, request["type"], request["magic"], order,
            3, volume, price, request.get("sl", 0.0), request.get("tp", 0.0), price, -0.25, 1.25,
            symbol, comment, "",
        )  # fmt: skip
        return order

    def _past(
        self, order: int, position: int, request: dict[str, Any], comment: str, state: int = 4
    ) -> None:
        wall = self._wall()
        self.orders.append(
            TradeOrder(order, wall, wall * 1000, wall, wall * 1000, 0, request["type"], 0,
                       request["type_filling"], state, request["magic"], position, 0, 3,
                       request["volume"], 0.0, request["price"], 0.0, 0.0, request["price"], 0.0,
                       request["symbol"], comment, "")
        )  # fmt: skip

    def _next(self) -> int:
        self.number += 1
        return self.number

    # --- the account ------------------------------------------------------------------------------

    def positions_get(self, symbol: str = "") -> tuple[TradePosition, ...] | None:
        if not self._ok("positions_get"):
            return None
        return self._shown(item for item in self.held.values() if symbol in ("", item.symbol))

    def orders_get(self, symbol: str = "") -> tuple[TradeOrder, ...] | None:
        if not self._ok("orders_get"):
            return None
        return self._shown(item for item in self.working.values() if symbol in ("", item.symbol))

    def history_orders_get(self, start: int, end: int) -> tuple[TradeOrder, ...] | None:
        if not self._ok("history_orders_get"):
            return None
        return self._shown(item for item in self.orders if start <= item.time_setup <= end)

    def history_deals_get(
        self, start: int = 0, end: int = 0, *, ticket: int = 0
    ) -> tuple[TradeDeal, ...] | None:
        if not self._ok("history_deals_get"):
            return None
        if ticket:
            return self._shown(item for item in self.deals if item.ticket == ticket)
        return self._shown(item for item in self.deals if start <= item.time <= end)

    def _shown(self, items: Any) -> tuple[Any, ...]:
        return () if self.hidden else tuple(items)

    def stop_out(self, ticket: int, price: float, reason: int = 4, comment: str = "[sl]") -> None:
        """Let the broker, or a person, end a position."""
        old, wall = self.held.pop(ticket), self._wall()
        self.deals.append(
            TradeDeal(self._next(), self._next(), wall, wall * 1000, 1 - old.type, 1, old.magic,
                      ticket, reason, old.volume, price, -0.5, -0.2, -68.0, -0.1, old.symbol,
                      comment, "")
        )  # fmt: skip

    def hold(self, symbol: str, magic: int = 0, comment: str = "") -> int:
        """Let somebody else open a position."""
        ticket, wall = self._next(), self._wall()
        self.held[ticket] = TradePosition(
            ticket, wall, wall * 1000, wall, wall * 1000, 0, magic, ticket, 0, 0.3, 1.5, 0.0, 0.0,
            1.5, 0.0, 0.0, symbol, comment, "",
        )  # fmt: skip
        return ticket

    # --- bars -------------------------------------------------------------------------------------

    def copy_rates_from_pos(
        self, symbol: str, timeframe: int, start: int, count: int
    ) -> np.ndarray | None:
        rates = self._rates("copy_rates_from_pos", symbol, timeframe)
        if rates is None or count <= 0 or count > 100_000:
            return None
        end = len(rates) - start
        return rates[max(0, end - count) : max(0, end)]

    def copy_rates_range(
        self, symbol: str, timeframe: int, start: int, end: int
    ) -> np.ndarray | None:
        rates = self._rates("copy_rates_range", symbol, timeframe)
        if rates is None:
            return None
        return rates[(rates["time"] >= start) & (rates["time"] <= end)]

    # --- order flow -------------------------------------------------------------------------------

    def copy_ticks_range(self, symbol: str, start: int, end: int, flags: int) -> np.ndarray | None:
        """Return the ticks of whole seconds, both ends included."""
        if not self._ok("copy_ticks_range"):
            return None
        if flags != self.COPY_TICKS_ALL or symbol not in self.ticks:
            self.error = (-1, "Terminal: Call failed")
            return None
        ticks = self.ticks[symbol]
        return ticks[(ticks["time"] >= start) & (ticks["time"] <= end)]

    def market_book_add(self, symbol: str) -> bool | None:
        if not self._ok("market_book_add"):
            return None
        if symbol not in self.books:
            return False
        self.watched.add(symbol)
        return True

    def market_book_get(self, symbol: str) -> tuple[BookInfo, ...] | None:
        if not self._ok("market_book_get"):
            return None
        if symbol not in self.watched:
            self.error = (-1, "Terminal: Call failed")
            return None
        return self.books[symbol]

    def _rates(self, name: str, symbol: str, timeframe: int) -> np.ndarray | None:
        """Return the bars that have begun, the forming one last."""
        if not self._ok(name):
            return None
        if (symbol, timeframe) not in self.rates or symbol not in self.selected:
            self.error = (-1, "Terminal: Call failed")
            return None
        rates = self.rates[symbol, timeframe]
        return rates[rates["time"] <= self._wall()] if len(rates) else rates
