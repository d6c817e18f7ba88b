"""Answers about a desk that is to be written: text to values, for `torra init` and the pages.

A text that says none raises ConfigError with what is wrong; where it was asked for is the caller's
to add.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from torra.clock import TIMEFRAMES
from torra.errors import ConfigError


def one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    """Return a reader that accepts these words only."""

    def read(text: str) -> str:
        if text not in names:
            raise ConfigError(f"{text!r} is none of {', '.join(names)}")
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
