"""A broker's list of symbols, turned into a profile's trading conditions.

The list comes from MetaTrader 5 by a bridge or, where there is none, from a JSON file of the same
content. Its values (digits, tick, contract, lots, stops level, spread of the quote) replace what
Torra ships. Asset class and currencies are set only where the symbol's name makes them certain. A
symbol that the list does not have raises ConfigError with the names most like it: none is ever
chosen for the user.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from torra.bridges.protocol import Quote, SymbolTerms
from torra.clock import EPOCH
from torra.config import SYMBOLS
from torra.errors import ConfigError, no_key_twice
from torra.regular_files import read_regular

COUNTS: Final = ("digits", "stops_level")
SIZES: Final = ("tick_size", "tick_value", "contract_size", "lot_min", "lot_step", "lot_max")
"""Values that a profile takes from the broker's list unchanged: whole numbers, and others."""

PLAIN: Final[Mapping[str, Any]] = {"stops_level": 0, "asset": "", "currencies": []}
"""Values that a profile need not name for a symbol that is not shipped."""

NEAREST: Final = 5
"""Names of the broker that an error offers."""

CURRENCIES: Final = (
    "USD", "EUR", "GBP", "JPY", "CHF", "AUD", "NZD", "CAD", "SEK", "NOK", "DKK", "PLN", "HUF",
    "CZK", "ZAR", "MXN", "SGD", "HKD", "CNH", "TRY",
)  # fmt: skip
COINS: Final = ("BTC", "ETH", "LTC", "XRP", "BCH", "SOL", "ADA", "DOT", "BNB", "XLM")
OILS: Final = ("XTIUSD", "XBRUSD", "USOIL", "UKOIL", "WTI", "BRENT", "WTIUSD", "BRENTUSD")
INDICES: Final = {
    "USD": ("US30", "US100", "US500", "US2000", "USTEC", "NAS100", "SPX500", "DJ30", "WS30"),
    "EUR": ("DE40", "GER40", "GER30", "EU50", "EUSTX50", "FRA40", "ESP35"),
    "GBP": ("UK100",),
    "JPY": ("JP225",),
    "AUD": ("AUS200",),
    "HKD": ("HK50",),
}
"""Names whose kind is certain; indices by the currency in which they are quoted."""


def shipped(symbol: str) -> dict[str, Any]:
    """Return the shipped trading conditions of a symbol; empty when there are none."""
    return SYMBOLS[symbol].model_dump(mode="json") if symbol in SYMBOLS else {}


def conditions(symbol: str, terms: SymbolTerms) -> dict[str, Any]:
    """Return what a profile must say of a symbol that the broker trades like this.

    Raises ConfigError when the spread is not known.
    """
    asset, currencies = kind_of(symbol)
    if not currencies and re.fullmatch("[A-Z]{3}", terms.currency):
        currencies = (terms.currency,)
    spec = {
        **{name: getattr(terms, name) for name in (*COUNTS, *SIZES)},
        "spread": _spread(symbol, terms),
        "asset": asset,
        "currencies": list(currencies),
    }
    usual = shipped(symbol) or PLAIN
    return {name: value for name, value in spec.items() if value != usual.get(name)}


def spread_of(terms: SymbolTerms) -> float | None:
    """Return ask minus bid of the broker's quote; None without a quote."""
    quote = terms.quote
    # A closed market quotes 0: that is no spread.
    if quote is None or not 0 < quote.bid <= quote.ask:
        return None
    # The difference of two prices has binary noise behind their digits.
    return round(quote.ask - quote.bid, min(terms.digits, 10))


def _spread(symbol: str, terms: SymbolTerms) -> float:
    quoted = spread_of(terms)
    if quoted is not None:
        return quoted
    if usual := shipped(symbol):
        return float(usual["spread"])
    raise ConfigError(
        f"the broker has no quote of {terms.broker_symbol} and so no spread: try again while its "
        "market is open, or give bid and ask with --terms FILE"
    )


def kind_of(symbol: str) -> tuple[str, tuple[str, ...]]:
    """Return the asset class and the currencies of a symbol where its name is certain of both."""
    base, quote = symbol[:3], symbol[3:]
    for currency, names in INDICES.items():
        if symbol in names:
            return "index", (currency,)
    if symbol in OILS:
        return "oil", ("USD",)
    if symbol == "GOLD":
        return "gold", ("USD",)
    if quote in CURRENCIES:
        if base in CURRENCIES and base != quote:
            return "fx", (base, quote)
        if base == "XAU" or base in COINS:
            return ("gold" if base == "XAU" else "crypto"), (quote,)
    return "", ()


def lookup(symbol: str, broker: str, terms: Mapping[str, SymbolTerms]) -> SymbolTerms:
    """Return the broker's conditions; raises ConfigError with the names most like this one."""
    if broker in terms:
        return terms[broker]
    near = nearest(broker, symbol, terms)
    if not near:
        raise ConfigError(
            f"the broker's list has no {broker}: show it in Market Watch, or give another name"
        )
    raise ConfigError(
        f"the broker's list has no {broker}; nearest: {', '.join(near)}. Write "
        f"{symbol}={near[0]}, or show {broker} in Market Watch"
    )


def nearest(broker: str, symbol: str, names: Iterable[str]) -> list[str]:
    """Return the broker's names that are most like what was asked for, the likest first."""
    known = {name.upper(): name for name in sorted(names)}
    wanted = (broker.upper(), symbol.upper())
    matches = [name for name in known if any(word in name for word in wanted)]
    for word in wanted:
        matches += difflib.get_close_matches(word, known, n=NEAREST, cutoff=0.5)
    return [known[name] for name in dict.fromkeys(matches)][:NEAREST]


# --- a list from a file ---------------------------------------------------------------------------


def read_terms(path: Path) -> dict[str, SymbolTerms]:
    """Read a list {"XAUUSD.m": {"digits": 2, "tick_size": 0.01, ...}, ...}; raises ConfigError.

    A symbol has all of COUNTS and SIZES, of which `stops_level` may be missing (0), and may have
    `bid` and `ask`, `trade_mode` ("full") and `currency` ("").
    """
    try:
        values = json.loads(read_regular(path).decode("utf-8-sig"), object_pairs_hook=no_key_twice)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    if not isinstance(values, dict) or not all(isinstance(row, dict) for row in values.values()):
        raise ConfigError(f'{path}: write {{"XAUUSD.m": {{"digits": 2, "tick_size": 0.01, ...}}}}')
    return {name: _terms(path, name, row) for name, row in values.items()}


def _terms(path: Path, name: str, row: Mapping[str, Any]) -> SymbolTerms:
    def number(key: str, default: float | None = None) -> Any:
        value = row.get(key, default)
        # JSON's true is an int to Python.
        if isinstance(value, bool) or not isinstance(value, int if key in COUNTS else int | float):
            fault = f"is {value!r}, not a number" if key in row else "is missing"
            raise ConfigError(f"{path}: {key} of {name} {fault}")
        try:
            finite = math.isfinite(value)
        except OverflowError:  # an int of JSON may have any number of digits
            finite = False
        if not finite:
            raise ConfigError(f"{path}: {key} of {name} is no number that a price can have")
        return value

    return SymbolTerms(
        broker_symbol=name,
        digits=number("digits"),
        stops_level=number("stops_level", 0),
        **{key: float(number(key)) for key in SIZES},
        trade_mode=row.get("trade_mode", "full"),
        currency=str(row.get("currency", "")),
        # EPOCH: a file does not say when its quote was made.
        quote=Quote(float(number("bid")), float(number("ask")), EPOCH) if "bid" in row else None,
    )
