"""What keeps goldens short: long lists by their ends and a hash, and what stands elsewhere by name.

A hash tells that something differs, not what: each kind of row and of item stands somewhere whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

LONG_LIST: Final = 12
LONG_TEXT: Final = 300
LONG_RUN: Final = 30
"""Items, characters and lines from which the middle is a hash."""

SHOWN_LINES: Final = 10
REPEATED: Final = 200
"""Characters from which a text that stands elsewhere is named by its place."""


class Known:
    """Texts by the place where each stands first."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}

    def elsewhere(self, text: str, place: str) -> str:
        """Return the place where a text stands already, "" where it is new or short."""
        if len(text) < REPEATED:
            return ""
        first = self._places.setdefault(text, place)
        return "" if first == place else first


def digest(value: Any) -> str:
    """Return the beginning of a hash of JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def shortened(value: Any) -> Any:
    """Return JSON whose long lists and texts are their ends and a hash of the whole."""
    if isinstance(value, str) and len(value) > LONG_TEXT:
        return f"{value[:80]} ... {value[-40:]} ({len(value)} characters, {digest(value)})"
    if isinstance(value, dict):
        return {name: shortened(item) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    items = [shortened(item) for item in value]
    if len(items) <= LONG_LIST:
        return items
    return [*items[:2], f"... {len(items)} items, {digest(value)} ...", items[-1]]


def brief(lines: Sequence[str], kind: Callable[[str], object]) -> Iterator[str]:
    """Yield lines, of a long run of one kind only its ends and a hash of the whole."""
    for _, group in groupby(lines, kind):
        run = [*group]
        if len(run) <= LONG_RUN:
            yield from run
        else:
            yield from run[:SHOWN_LINES]
            yield f"... {len(run)} lines, {digest(run)} ..."
            yield run[-1]
