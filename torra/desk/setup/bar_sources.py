"""Where the bars of a new symbol may come from, and what is known of how it is traded.

A desk's channels to MetaTrader 5 name the broker's symbols with their trading conditions: the
Expert Advisor writes them down, the MetaTrader5 package is asked. Beside them stand files of bars
in the folder `uploads` of the home, and bars that were imported before. A channel that cannot be
read is a source with its trouble told. Nothing is changed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from torra.bridges.mt5.request import terms_of
from torra.bridges.mt5.terminal import Terminal
from torra.bridges.protocol import SymbolTerms
from torra.clock import System
from torra.config import DeskSettings
from torra.desk.setup.broker_symbols import COUNTS, SIZES, kind_of, shipped, spread_of
from torra.desk.setup.request import SetupRequest
from torra.desk.setup.terminal_facts import read_terminal_facts
from torra.errors import BridgeUnavailable, ConfigError
from torra.time_limit import of_folder

FILES: Final = "files"
STORED: Final = "store"
NUMBERS: Final = (*COUNTS, *SIZES, "spread")
"""The numbers of a symbol's trading conditions that a person is asked for."""

TERMS: Final = (*NUMBERS, "asset", "currencies")


@dataclass(frozen=True, slots=True)
class BarSource:
    """A source of bars; `key` names it in a form, `terms` are the broker's symbols, if known."""

    key: str
    feed: str
    says: str
    channel: str = ""
    terms: Mapping[str, SymbolTerms] = field(default_factory=dict)
    trouble: str = ""


def sources(
    settings: DeskSettings,
    environment: Mapping[str, str],
    terminal: Callable[[], Terminal] | None = None,
) -> dict[str, BarSource]:
    """Return every source of a desk by its key; `terminal` is MetaTrader's own package, if any."""
    listed = [
        _channel(name, feed, settings, environment, terminal)
        for name in settings.channels
        for feed in _feeds(settings, name)
    ]
    listed += [
        BarSource(FILES, "store", "files of bars in the folder uploads"),
        BarSource(STORED, "store", "bars that were imported already"),
    ]
    return {one.key: one for one in listed}


def known_terms(symbol: str, broker: str, source: BarSource) -> tuple[dict[str, str], str]:
    """Return what is known of how a symbol is traded, as text, and who says so."""
    asset, currencies = kind_of(symbol)
    usual, terms = shipped(symbol), source.terms.get(broker)
    values, who = usual, "Torra's own notes; check them against your broker's" if usual else ""
    if terms is not None:
        quoted, who = spread_of(terms), "the broker's own list"
        values = {name: getattr(terms, name) for name in (*COUNTS, *SIZES)}
        values["spread"] = usual.get("spread", "") if quoted is None else quoted
        currencies = currencies or ((terms.currency,) if terms.currency else ())
    elif usual:
        asset, currencies = usual["asset"], tuple(usual["currencies"])
    texts = {name: _number(values.get(name, "")) for name in NUMBERS}
    return texts | {"asset": asset, "currencies": ", ".join(currencies)}, who


def _number(value: Any) -> str:
    """Return a number without an exponent; "" for none."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    digits = 0 if value == round(value) else max(1, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits + 6, 12)}f}".rstrip("0").rstrip(".") or "0"


# --- channels -------------------------------------------------------------------------------------


def _feeds(settings: DeskSettings, channel: str) -> list[str]:
    """Return the feeds of a channel: those in use, else by whether it has a folder."""
    used = {item.feed for item in settings.instances if item.channel == channel}
    used |= {item.bridge for item in settings.instances if item.channel == channel}
    direct = "mt5_direct" in used
    files = bool(used & {"mt5_files", "torra_files"}) or not direct
    files = files and bool(settings.channels[channel].folder)
    return [name for name, on in (("mt5_files", files), ("mt5_direct", direct)) if on]


def _channel(
    name: str,
    feed: str,
    settings: DeskSettings,
    environment: Mapping[str, str],
    terminal: Callable[[], Terminal] | None,
) -> BarSource:
    channel = settings.channels[name]
    says = f"MetaTrader 5, channel {name} (account {channel.account})"
    made = partial(BarSource, f"{feed} {name}", feed, says, name)
    try:
        if feed == "mt5_direct":
            if terminal is None:
                return made(trouble="the MetaTrader5 package is not asked here")
            listed, now = terminal().demand("symbols_get"), System().now()
            return made({item.name: terms_of(item, now) for item in listed})
        request = SetupRequest(channel=name, folder=channel.folder, account=channel.account)
        key = environment.get(channel.key_variable, "")
        # The folder may be a share whose server is gone.
        facts = of_folder(Path(channel.folder)).run(partial(read_terminal_facts, request, key))
    except (ConfigError, BridgeUnavailable) as error:
        return made(trouble=str(error))
    except OSError as error:
        return made(trouble=f"{channel.folder}: {error.strerror}")
    trouble = facts.trouble
    if facts.terms is not None and facts.account not in (0, channel.account):
        trouble = f"MetaTrader 5 is logged in to {facts.account}, not to {channel.account}"
        return made(trouble=trouble)
    return made(facts.terms or {}, trouble)
