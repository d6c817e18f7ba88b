"""Torra's exceptions: as many types as there are reactions.

    TorraError
     |- ConfigError        do not start: one clear line, exit code 2
     |   |- Busy            somebody else works there now: later may do
     |- DataUnavailable    skip the tick and record why
     |- StoreUnavailable   try again; what was to be written was not
     |   |- StoreBroken     halt the desk: the disk is full, the file damaged
     |- BridgeUnavailable  leave the signal pending

`agents.contracts.ModelUnavailable` (skip the agent) stands apart, because the agents lift out
without this package. Abstaining and denying are values with a reason, never exceptions.
"""

from __future__ import annotations

from typing import Any, Final

MALFORMED: Final = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What it may raise to read a text from outside as if it had the shape that it should have."""


LONGEST_TEXT: Final = 500
"""Characters of a message that comes from outside, wherever it is shown or kept."""

BEGINNING: Final = 300
"""Characters of a longer one that are kept of its beginning; its end often has the remedy."""

CUT: Final = " [...] "


def bounded(text: str, most: int = LONGEST_TEXT) -> str:
    """Return a text of `most` characters at most: of a longer one its beginning and its end."""
    if len(text) <= most:
        return text
    beginning = most * BEGINNING // LONGEST_TEXT
    return text[:beginning] + CUT + text[beginning + len(CUT) - most :]


def no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object that json has read; raises ValueError for a key that stands twice."""
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice} stands twice")
    return values


class TorraError(Exception):
    """Base of everything that Torra raises on purpose."""


class ConfigError(TorraError):
    """Something that a person must mend; the message names the thing and the remedy."""


class Busy(ConfigError):
    """A place that another process works in; the same may be tried later."""


class DataUnavailable(TorraError):
    """The bars of a tick cannot be used.

    `reason` is a short code for the record, `detail` a sentence of LONGEST_TEXT characters at most.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        self.detail = bounded(detail)
        super().__init__(f"{reason}: {self.detail}")


class StoreUnavailable(TorraError):
    """The database cannot be read or written; nothing of the transaction was kept."""


class StoreBroken(StoreUnavailable):
    """The database cannot be written until a person mends something; trading halts."""


class BridgeUnavailable(TorraError):
    """The way to the market is closed for now; the signal stays pending."""
