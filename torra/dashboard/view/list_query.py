"""What the addresses of lists ask for alike: how many rows, from which day on, after which row.

Each raises ConfigError that says what would be understood.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

from flask import request

from torra.errors import ConfigError
from torra.exhibits import figures

LONGEST_WORD: Final = 120
"""Characters of a word of a filter that are read."""


class ListQuery(NamedTuple):
    """What a list is narrowed to, and where it goes on; `only` by name as the store takes it."""

    only: Mapping[str, str]
    words: Mapping[str, str]
    before: Any
    limit: int


def words(names: Iterable[str]) -> dict[str, str]:
    """Return the words of a filter as they were written, without what is empty."""
    written = {name: request.args.get(name, "")[:LONGEST_WORD].strip() for name in names}
    return {name: word for name, word in written.items() if word}


def require_known(written: Mapping[str, str], choices: Mapping[str, Collection[str]]) -> None:
    """Raise ConfigError for a word that is none of the choices of its name."""
    for name, known in choices.items():
        word = written.get(name)
        if word is not None and word not in known:
            wrong = figures.sanitize(word, 40)
            raise ConfigError(f"{name} is one of {', '.join(known)}, not {wrong}")


def offered(name: str, known: Sequence[str]) -> list[str]:
    """Return what can be chosen, and what is chosen now: also one that is not known any more."""
    word = words([name]).get(name)
    return [*known] if word is None or word in known else [*known, word]


def limit(usual: int, most: int) -> int:
    """Return how many rows are asked for: `usual` without a word, 1 to `most`."""
    text = request.args.get("limit") or str(usual)
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= most):
        raise ConfigError(f"limit is 1 to {most}")
    return int(text)


def day(name: str, word: str, after: int = 0) -> date:
    """Return the UTC day that a parameter names, or one some days `after`."""
    try:
        return date.fromisoformat(word) + timedelta(days=after)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{name} is a UTC day, such as 2026-05-01, not {figures.sanitize(word, 40)}"
        ) from None


def days(told: Mapping[str, str]) -> tuple[str, str]:
    """Return the first moment of the days `from` and `to`, and the first after them (ISO 8601).

    A day that is left out lets the list go on: "" sorts before every moment, "~" after.
    """
    begin, end = told.get("from", ""), told.get("to", "")
    return (
        day("from", begin).isoformat() if begin else "",
        day("to", end, after=1).isoformat() if end else "~",
    )


def number() -> int | None:
    """Return the cursor `before` of a list by number; None for the first page."""
    text = request.args.get("before") or ""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise ConfigError("before is the `next` of an earlier answer")
    return int(text)


def place() -> tuple[str, int] | None:
    """Return the cursor `before`, the `next` of an earlier answer; None for the first page."""
    text = request.args.get("before") or ""
    if not text:
        return None
    moment, _, number = text.rpartition("|")
    plain = moment.isascii() and len(moment) < 40 and number.isascii() and number.isdigit()
    if not (plain and moment and len(number) < 16):
        raise ConfigError("before is the `next` of an earlier answer")
    return moment, int(number)
