"""What was asked for a new symbol: the fields of a form as text, understood, or wrong by field.

`read` tells every mistake at once, each by the field that it is about, so that a form can be shown
again with nothing lost. Whether the desk can have what is asked for is torra.desk.setup.adding's
part. Nothing is read from a disk here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from torra.clock import TIMEFRAMES
from torra.config import BROKER_SYMBOL_RULE, SymbolSpec, faults, is_broker_symbol
from torra.desk.setup.bar_sources import FILES, NUMBERS, TERMS, BarSource
from torra.desk.setup.broker_symbols import COUNTS, lookup
from torra.desk.setup.request import (
    SetupRequest,
    amount,
    one_of,
    plain_name,
    read_timeframes,
    symbol_name,
)
from torra.errors import ConfigError
from torra.market.broker_clock import ServerClock

NEW: Final = "new"
"""In place of a profile's name: one of its own."""

EXECUTIONS: Final = ("approve", "off")
"""Who may send what the new symbol decides: a person's yes, or nobody. Never the desk alone."""


AS: Final = "as."
"""Begins the name of a field that says of which timeframe a file is."""

Faults = dict[str, str]
"""What is wrong, by the field that it is about; "" for what no field is to blame for."""


class FieldError(ConfigError):
    """A mistake in a field."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


def read(
    words: Mapping[str, str], known: Mapping[str, BarSource], uploads: list[str]
) -> tuple[SetupRequest | None, Faults]:
    """Return what was asked for, or what is wrong by field; `uploads` are the files there are."""
    errors: Faults = {}

    def take(name: str, reader: Callable[[str], Any], default: Any = None) -> Any:
        try:
            return reader(words.get(name, "").strip())
        except ConfigError as error:
            errors[name] = str(error)
            return default

    source = take("source", lambda text: _source(text, known))
    symbol = take("symbol", _symbol, "")
    broker = words.get("broker", "").strip() or symbol
    if source is not None and symbol and "broker" not in errors:
        take("broker", lambda _: _broker(symbol, broker, source))
    files = take("files", lambda _: _files(words, source, uploads), {})
    if source is not None and source.key == FILES:
        timeframes = tuple(name for name in TIMEFRAMES if name in files)
    else:
        timeframes = take("timeframes", lambda text: read_timeframes(text or "M15,H1"), ())
    clock = take("clock", lambda text: _clock(text, source), "utc")
    profile = take("profile", lambda text: plain_name(text or NEW), NEW)
    named = profile
    spec = None
    if profile == NEW:
        named = take("profile_name", lambda text: plain_name(text or symbol.lower() or "mine"), "")
        spec, wrong = _spec(words)
        errors |= wrong
    request = SetupRequest(
        symbols=((symbol, broker),),
        timeframes=timeframes,
        feed=source.feed if source else "",
        channel=source.channel if source else "",
        files=files,
        clock=clock,
        new_profile=profile == NEW,
        profile_name=named,
        execution=take("execution", lambda text: one_of(EXECUTIONS)(text or EXECUTIONS[0]), "off"),
        capital=take("capital", lambda text: amount(text or "10000"), 0.0),
        risk_per_trade=take("risk", _risk, 0.0),
        spec=spec,
    )
    return (None if errors else request), errors


def _source(text: str, known: Mapping[str, BarSource]) -> BarSource:
    if text not in known:
        raise ConfigError(f"say where its bars come from: {', '.join(known)}")
    return known[text]


def _symbol(text: str) -> str:
    if not text:
        raise ConfigError("name the symbol, such as XAUUSD")
    return symbol_name(text)


def _broker(symbol: str, broker: str, source: BarSource) -> str:
    if not is_broker_symbol(broker):
        raise ConfigError(f"{broker[:40]!r} can be no broker's symbol: {BROKER_SYMBOL_RULE}")
    if source.terms:
        terms = lookup(symbol, broker, source.terms)
        if terms.trade_mode == "disabled":
            raise ConfigError(f"the broker does not let {broker} be traded")
    return broker


def _files(
    words: Mapping[str, str], source: BarSource | None, uploads: list[str]
) -> dict[str, str]:
    if source is None or source.key != FILES:
        return {}
    files: dict[str, str] = {}
    for name in uploads:
        timeframe = words.get(f"{AS}{name}", "").strip().upper()
        if not timeframe:
            continue
        if timeframe not in TIMEFRAMES:
            raise ConfigError(f"{timeframe[:20]!r} is no timeframe; known: {', '.join(TIMEFRAMES)}")
        if timeframe in files:
            raise ConfigError(f"{files[timeframe]} and {name} are both {timeframe}: take one")
        files[timeframe] = name
    if not files:
        raise ConfigError("say of at least one file of which timeframe its bars are")
    return files


def _clock(text: str, source: BarSource | None) -> str:
    if source is None or source.key != FILES:
        return ""
    return str(ServerClock.parse(text) and text) if text else ""


def _risk(text: str) -> float:
    value = amount(text or "0.5")
    if value > 10:
        raise ConfigError("more than 10 percent of the capital is too much to risk on one trade")
    return value


def _spec(words: Mapping[str, str]) -> tuple[SymbolSpec | None, Faults]:
    errors: Faults = {}
    values: dict[str, Any] = {}
    for name in NUMBERS:
        text = words.get(name, "").strip()
        try:
            values[name] = int(text) if name in COUNTS else float(text)
        except ValueError:
            whole = "a whole number" if name in COUNTS else "a number"
            fault = f"{text[:40]!r} is not {whole}" if text else f"write {whole}"
            errors[name] = fault
    values["asset"] = words.get("asset", "").strip()
    parts = words.get("currencies", "").upper().replace(",", " ").split()
    try:
        return SymbolSpec.model_validate(values | {"currencies": parts}), errors
    except ValidationError as error:
        for place, fault in faults(SymbolSpec, error):
            errors.setdefault(place[0] if place and place[0] in TERMS else "", _plainly(fault))
    return None, errors


def _plainly(sentence: str) -> str:
    """Return a sentence of the settings' check without the place that begins it."""
    return sentence.partition(": ")[2] or sentence
