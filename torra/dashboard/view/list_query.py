"""What the addresses of lists ask for alike: how many rows, from which day on, after which row.

Each raises ConfigError that says what would be understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

from flask import request

from torra.errors import ConfigError
from torra.exhibits import figures


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
