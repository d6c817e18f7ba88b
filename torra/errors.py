"""Torra's exceptions: as many types as there are reactions.

    TorraError
     |- ConfigError        do not start: one clear line, exit code 2
     |   |- Busy            somebody else works there now: later may do
     |   |- SchemaMismatch  another version works there: no HALT file is put down
     |- DataUnavailable    skip the tick and record why
     |- StoreUnavailable   try again; what was to be written was not
     |   |- StoreBroken     halt the desk: the disk is full, the file damaged
     |- BridgeUnavailable  leave the signal pending

`agents.contracts.ModelUnavailable` (skip the agent) stands apart, because the agents lift out
without this package. Abstaining and denying are values with a reason, never exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping
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


class SchemaMismatch(ConfigError):
    """The schema of another version of Torra, newer or before `schema_1`; the file stays as it is.

    `what` is the file with its schema, `remedy` what a person can do.
    """

    def __init__(self, what: str, remedy: str, command: str) -> None:
        super().__init__(f"{what}; {remedy}: {command}")
        self.what, self.remedy = what, remedy


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


REQUIREMENTS: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a text",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object, in braces",
    "model_type": "must be an object, in braces",
    "datetime_type": "must be a time, as 2024-05-01T10:00Z",
    "datetime_parsing": "must be a time, as 2024-05-01T10:00Z",
    "datetime_from_date_parsing": "must be a time, as 2024-05-01T10:00Z",
    "timezone_aware": "must be a time with its zone, such as a Z at its end",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be {le} at most",
    "multiple_of": "must be a multiple of {multiple_of}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "string_too_short": "must have {min_length} characters or more",
    "string_too_long": "must have {max_length} characters at most",
    "string_pattern_mismatch": "is not written as it must be ({pattern})",
    "too_short": "must have {min_length} entries or more",
    "too_long": "must have {max_length} entries at most",
    "extra_forbidden": "is no key that is known",
}
"""What a settings model asks for, by the kind of its error; in braces what belongs to the kind."""


def in_words(fault: Mapping[str, Any]) -> str:
    """Return what is wrong with a value, of one error of pydantic, as a person says it."""
    requirement = REQUIREMENTS.get(str(fault["type"]))
    if requirement is None:
        text = str(fault["msg"]).removeprefix("Value error, ")
        return text.replace("Input should be", "must be")
    context = {
        name: f"{value:g}" if isinstance(value, float) else value
        for name, value in fault.get("ctx", {}).items()
    }
    try:
        return requirement.format(**context)
    except (KeyError, IndexError):
        return str(fault["msg"])
