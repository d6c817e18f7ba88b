"""Names of fields and columns, as the goldens know them, whatever they are called by now.

keys.json maps, by kind (`record`, `tables`, `api`), the name that stands in a golden to today's
name, or to null for a field that is gone. A key is a bare name, or `parent.name` where only the
field of that parent changed; the parent's name is the golden's too. The map only ever grows: a
field that is renamed twice keeps one row. Null takes nothing out of a golden: one renewal does, in
which the golden loses the field and its row gets null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

KEYS: Final = Path(__file__).with_name("keys.json")
KINDS: Final = ("record", "tables", "api")


def keys(kind: str) -> dict[str, str | None]:
    """Return today's name, or None, by the name in a golden."""
    names: dict[str, dict[str, str | None]] = json.loads(KEYS.read_text(encoding="utf-8"))
    return names[kind]


def projected(value: Any, kind: str, renamed: Mapping[str, str | None] | None = None) -> Any:
    """Return JSON with the fields' golden names in the place of today's; raises ValueError.

    Two fields that would get one name are an error: a map may not lose a value.
    """
    pairs = keys(kind) if renamed is None else renamed
    former = {
        f"{parent}{dot}{today}": golden
        for name, today in pairs.items()
        for parent, dot, golden in (name.rpartition("."),)
        if today is not None
    }
    return _renamed(value, former, "")


def _renamed(value: Any, former: Mapping[str, str], parent: str) -> Any:
    if isinstance(value, list | tuple):
        return [_renamed(item, former, parent) for item in value]
    if not isinstance(value, Mapping):
        return value
    result: dict[str, Any] = {}
    for name, item in value.items():
        golden = former.get(f"{parent}.{name}", former.get(name, name))
        if golden in result:
            raise ValueError(f"two fields of {parent or 'the value'} are {golden!r} in the golden")
        result[golden] = _renamed(item, former, golden)
    return result
