"""The request for a desk of one's own symbols: one value behind `torra init` and the page.

The readers turn a text into a value. A text that says none raises ConfigError with what is wrong;
where it was asked for is the caller's to add.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from torra.clock import EPOCH, TIMEFRAMES
from torra.errors import ConfigError

if TYPE_CHECKING:
    from torra.bridges.protocol import SymbolTerms
    from torra.config import SymbolSpec


@dataclass(frozen=True, slots=True)
class TerminalFacts:
    """What MetaTrader 5 said of itself; None, 0 or "" where nothing is known.

    `offset` is by how many seconds the server was ahead of UTC at `at`. `terms` are the symbols
    that the broker trades. `trouble` says why something is not known.
    """

    terms: Mapping[str, SymbolTerms] | None = None
    account: int = 0
    trade_mode: str = ""
    offset: int | None = None
    at: datetime = EPOCH
    balance: float = 0.0
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class SetupRequest:
    """The symbols of a desk, and how they are traded. `symbols` pairs own names with the broker's.

    `companions` pairs own names with the broker's: every symbol gets those that are not it itself.
    An empty `server_clock` is derived from the server's offset. `files` are names in the folder
    uploads, by timeframe, with times of `clock`. `spec` are the trading conditions of a new profile
    where the broker's list is not asked; without `new_profile` the named one is there already.
    """

    symbols: tuple[tuple[str, str], ...] = ()
    companions: tuple[tuple[str, str], ...] = ()
    timeframes: tuple[str, ...] = ("M15", "H1")
    feed: str = "mt5_files"
    bridge: str = "paper"
    channel: str = "main"
    folder: str = ""
    account: int = 0
    live: bool = False
    server_clock: str = ""
    capital: float = 10_000.0
    risk_per_trade: float = 0.5
    execution: str = "auto"
    provider: str = "rules"
    profile_name: str = "mine"
    files: Mapping[str, str] = field(default_factory=dict)
    clock: str = ""
    spec: SymbolSpec | None = None
    new_profile: bool = True

    @property
    def symbol(self) -> str:
        """The first symbol: that of the page, which has one."""
        return self.symbols[0][0]

    @property
    def needs_channel(self) -> bool:
        """Whether the desk talks to MetaTrader 5."""
        return self.feed != "store" or self.bridge != "paper"

    @property
    def needs_key(self) -> bool:
        """Whether Torra and MetaTrader 5 share a folder, and sign their messages there."""
        return self.feed == "mt5_files" or self.bridge == "torra_files"


# --- readers --------------------------------------------------------------------------------------


def one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    """Return a reader that accepts these words only."""

    def read(text: str) -> str:
        if text not in names:
            raise ConfigError(f"{text[:40]!r} is none of {', '.join(names)}")
        return text

    return read


def amount(text: str) -> float:
    """Read a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(f"{text!r} is not a number above 0")
    return value


def plain_name(text: str) -> str:
    """Read the name of a channel or a profile."""
    from torra.config import NAME  # noqa: PLC0415

    if not NAME.fullmatch(text):
        raise ConfigError(f"{text!r}: use letters, digits, dot, dash and underscore, 32 at most")
    return text


def symbol_name(text: str) -> str:
    """Read the canonical name of a symbol; the error proposes one where the broker's was given."""
    from torra.config import NAME, is_broker_symbol  # noqa: PLC0415

    own = "".join(re.findall("[A-Z0-9._-]", text.upper())).strip("._-")
    if NAME.fullmatch(text) or not (own and is_broker_symbol(text)):
        return plain_name(text).upper()
    raise ConfigError(
        f"{text!r} can be the broker's name alone: call the symbol {own} ({own}={text})"
    )


def read_timeframes(text: str) -> tuple[str, ...]:
    """Read timeframes between commas; the shortest comes first."""
    names = {name.strip().upper() for name in text.split(",")}
    if unknown := sorted(names - set(TIMEFRAMES)):
        raise ConfigError(f"{unknown[0]!r} is no timeframe; known: {', '.join(TIMEFRAMES)}")
    return tuple(name for name in TIMEFRAMES if name in names)
