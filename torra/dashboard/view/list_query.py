"""What the address of a list asks for, read by the fields that describe it to the API's reader.

The fields of a query (torra.dashboard.doors.routes) name the words that narrow a list, the choices
of each, the days, the cursor and the number of rows. A word that means nothing ends the request
with 400; a program is told what would be understood.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final, NamedTuple, NoReturn

from flask import abort, jsonify, make_response, request, url_for

from torra.dashboard.doors.access import asks_api
from torra.dashboard.doors.routes import Fields
from torra.exhibits import figures

LONGEST_WORD: Final = 120
"""Characters of a word of a filter that are read."""

CURSORS: Final = {
    "integer": re.compile(r"(\d{1,15})", re.ASCII),
    "string": re.compile(r"([\x00-\x7f]{1,39})\|(\d{1,15})", re.ASCII),
}
"""What `before` is, by the type of its field."""

PLACES: Final = ("before", "limit")
"""Fields that do not narrow a list."""


class ListQuery(NamedTuple):
    """What a list is narrowed to by which `words`, in which days, and where it goes on.

    `begin` and `end` are ISO 8601, "" and "~" where no day is named.
    """

    words: Mapping[str, str]
    begin: str
    end: str
    before: Any
    limit: int


def read(fields: Fields) -> ListQuery:
    """Return what a request asks for; ends it for words that mean nothing."""
    written = words(fields)
    for name in written:
        require_known(name, written[name], fields[name].get("enum"))
    rows, before = fields["limit"], cursor(fields["before"]["type"])
    return ListQuery(written, *days(written), before, limit(rows["default"], rows["maximum"]))


def address(endpoint: str, fields: Fields, **other: Any) -> str:
    """Return the address of a list as it is filtered now, but for some words; None leaves out."""
    return url_for(endpoint, **{**words(fields), **other})


def words(names: Iterable[str]) -> dict[str, str]:
    """Return the words of a filter as they were written, without what is empty."""
    narrowing = (name for name in names if name not in PLACES)
    written = {name: request.args.get(name, "")[:LONGEST_WORD].strip() for name in narrowing}
    return {name: word for name, word in written.items() if word}


def refuse(why: str) -> NoReturn:
    """End the request with 400; a program is told why."""
    if asks_api():
        abort(make_response(jsonify(error=why, status=400), 400))
    abort(400)


def require_known(name: str, word: str, choices: Collection[str] | None) -> None:
    """End the request for a word that is none of the choices of its name; None is any word."""
    if choices is not None and word not in choices:
        wrong = figures.sanitize(word, 40)
        refuse(f"{name} is one of {', '.join(choices)}, not {wrong}")


def offered(name: str, known: Sequence[str]) -> list[str]:
    """Return what can be chosen, and what is chosen now: also one that is not known any more."""
    word = words([name]).get(name)
    return [*known] if word is None or word in known else [*known, word]


def limit(usual: int, most: int) -> int:
    """Return how many rows are asked for: `usual` without a word, 1 to `most`."""
    text = request.args.get("limit") or str(usual)
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= most):
        refuse(f"limit is 1 to {most}")
    return int(text)


def day(name: str, word: str, after: int = 0) -> date:
    """Return the UTC day that a parameter names, or one some days `after`."""
    try:
        return date.fromisoformat(word) + timedelta(days=after)
    except (ValueError, OverflowError):
        refuse(f"{name} is a UTC day, such as 2026-05-01, not {figures.sanitize(word, 40)}")


def days(written: Mapping[str, str]) -> tuple[str, str]:
    """Return the first moment of the days `from` and `to`, and the first after them (ISO 8601).

    A day that is left out lets the list go on: "" sorts before every moment, "~" after.
    """
    begin, end = written.get("from", ""), written.get("to", "")
    return (
        day("from", begin).isoformat() if begin else "",
        day("to", end, after=1).isoformat() if end else "~",
    )


def cursor(kind: str) -> Any:
    """Return `before`, the `next` of an earlier answer of a list; None for the first page.

    It is a number of a list by number ("integer"), else a moment and a number.
    """
    text = request.args.get("before")
    if not text:
        return None
    match = CURSORS[kind].fullmatch(text)
    if match is None:
        refuse("before is the `next` of an earlier answer")
    *moment, number = match.groups()
    return (*moment, int(number)) if moment else int(number)
