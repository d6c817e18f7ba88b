"""Converts orders into the words of the MetaTrader5 package, and its answers into Torra's.

Pure. The package names filling modes twice: a symbol has a mask of what is allowed, a request wants
one ORDER_FILLING_*. Prices go out in whole ticks, lots in whole steps and never more of them than
were asked for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from torra.bridges.guards import View, limits_of
from torra.bridges.mt5.lookup import BUY_TYPE, SELL_TYPE
from torra.bridges.protocol import Order, Quote, SymbolTerms
from torra.config import Channel

TRADE_ACTION_DEAL: Final = 1
TRADE_ACTION_SLTP: Final = 6
ORDER_TIME_GTC: Final = 0
FILLING_FOK: Final = 0
FILLING_IOC: Final = 1
FILLING_RETURN: Final = 2
"""ORDER_FILLING_*."""

MASK_FOK: Final = 1
MASK_IOC: Final = 2
"""SYMBOL_FILLING_*, bits of a symbol's filling_mode."""

REAL_ACCOUNT: Final = 2
HEDGING: Final = 2
"""ACCOUNT_TRADE_MODE_REAL and ACCOUNT_MARGIN_MODE_RETAIL_HEDGING."""

TRADE_MODES: Final = ("demo", "contest", "real")
MARGIN_MODES: Final = ("netting", "exchange", "hedging")
SymbolMode = Literal["disabled", "long_only", "short_only", "close_only", "full"]
SYMBOL_MODES: Final[tuple[SymbolMode, ...]] = (
    "disabled",
    "long_only",
    "short_only",
    "close_only",
    "full",
)


class OrderMarket(NamedTuple):
    """The package's answers before an order.

    Symbol, quote or position is None where there is none.
    """

    terminal: Any
    account: Any
    symbol: Any | None
    tick: Any | None
    position: Any | None
    has_position: bool


def view_of(order: Order, market: OrderMarket, channel: Channel, now: datetime, halt: bool) -> View:
    """Return the market as the guards see it; an unknown symbol is one that is not traded."""
    terminal, account, symbol, tick, position, has_position = market
    return View(
        now=int(now.timestamp()),
        bid=tick.bid if tick else 0.0,
        ask=tick.ask if tick else 0.0,
        digits=symbol.digits if symbol else order.digits,
        account=account.login,
        real_account=account.trade_mode == REAL_ACCOUNT,
        demo_only=not channel.live,
        halted=halt,
        connected=bool(terminal.connected),
        algo_allowed=algo_allowed(terminal, account),
        has_position=has_position,
        is_open=position is not None,
        position_lots=position.volume if position else 0.0,
        position_stop=position.sl if position else 0.0,
        **(limits_of(terms_of(symbol, now)) if symbol else {"trade_mode": "disabled"}),
    )


def request_of(order: Order, market: OrderMarket, refused: Collection[int] = ()) -> dict[str, Any]:
    """Return the request of an order that the guards have passed: symbol and quote are there.

    A request with a position closes it; without one the same request would open another. `refused`
    are the filling modes that the server has not taken; one at least is left.
    """
    symbol, tick, position = market.symbol, market.tick, market.position
    # The guards have asked this; a mistake here would open a position instead of closing one.
    if symbol is None or tick is None or (order.kind != "open" and position is None):
        raise ValueError(f"{order.sid} has no symbol, no quote or no position")
    if order.kind == "modify" and position is not None:
        return {
            "action": TRADE_ACTION_SLTP,
            "symbol": order.broker_symbol,
            "position": int(position.ticket),
            "sl": price_of(order.stop, symbol),
            # As it is: a level that a request leaves out is taken away.
            "tp": float(position.tp),
            "magic": order.magic,
            "comment": order.sid,
        }
    request = {
        "action": TRADE_ACTION_DEAL,
        "symbol": order.broker_symbol,
        "volume": lots_of(order.lots, symbol),
        "type": BUY_TYPE if order.side == "BUY" else SELL_TYPE,
        "price": price_of(tick.ask if order.side == "BUY" else tick.bid, symbol),
        "deviation": order.max_dev_pts,
        "magic": order.magic,
        "comment": order.sid,
        "type_time": ORDER_TIME_GTC,
        "type_filling": next(mode for mode in fillings_of(symbol) if mode not in refused),
    }
    if position is not None:
        return {**request, "position": int(position.ticket)}
    return {**request, "sl": price_of(order.stop, symbol), "tp": price_of(order.target, symbol)}


def lots_of(lots: float, symbol: Any) -> float:
    """Return lots in whole steps, never more than asked for."""
    # A millionth of a step: 0.3 / 0.1 is a little less than 3 in binary.
    steps = math.floor(lots / symbol.volume_step + 1e-6)
    return float(round(steps * symbol.volume_step, 8))


def price_of(price: float, symbol: Any) -> float:
    """Return a price in whole ticks and with the symbol's digits."""
    tick = symbol.trade_tick_size or 10.0**-symbol.digits
    return float(round(math.floor(price / tick + 0.5) * tick, symbol.digits))


def fillings_of(symbol: Any) -> list[int]:
    """Return the ORDER_FILLING_* in the order in which they are tried.

    Those that the symbol allows come first: fill or kill, immediate or cancel, return. The mask has
    no bit for return. Brokers' masks are wrong at times, so the others follow.
    """
    bits = {FILLING_FOK: MASK_FOK, FILLING_IOC: MASK_IOC}
    return sorted(
        (FILLING_FOK, FILLING_IOC, FILLING_RETURN),
        key=lambda mode: mode in bits and not symbol.filling_mode & bits[mode],
    )


def algo_allowed(terminal: Any, account: Any) -> bool:
    """Return whether terminal and broker let a program trade."""
    return bool(
        terminal.trade_allowed
        and not terminal.tradeapi_disabled
        and account.trade_allowed
        and account.trade_expert
    )


def terms_of(symbol: Any, quoted_at: datetime) -> SymbolTerms:
    """Return how the broker quotes and trades a symbol."""
    mode = symbol.trade_mode
    return SymbolTerms(
        broker_symbol=symbol.name,
        digits=symbol.digits,
        tick_size=symbol.trade_tick_size,
        tick_value=symbol.trade_tick_value,
        contract_size=symbol.trade_contract_size,
        lot_min=symbol.volume_min,
        lot_step=symbol.volume_step,
        lot_max=symbol.volume_max,
        stops_level=symbol.trade_stops_level,
        # A number that is not known forbids trading.
        trade_mode=SYMBOL_MODES[mode if 0 <= mode < len(SYMBOL_MODES) else 0],
        currency=symbol.currency_profit,
        quote=Quote(symbol.bid, symbol.ask, quoted_at) if symbol.bid > 0 else None,
    )


def facts_of(terminal: Any, account: Any) -> dict[str, object]:
    """Return what is shown of an account and its terminal."""
    return {
        "account": account.login,
        "server": account.server,
        "trade_mode": _word(TRADE_MODES, account.trade_mode),
        "margin_mode": _word(MARGIN_MODES, account.margin_mode),
        "connected": bool(terminal.connected),
        "algo_allowed": algo_allowed(terminal, account),
        "build": terminal.build,
        "balance": account.balance,
        "equity": account.equity,
        "free_margin": account.margin_free,
        "leverage": account.leverage,
        "currency": account.currency,
    }


def _word(words: Sequence[str], number: int) -> str:
    return words[number] if 0 <= number < len(words) else str(number)
