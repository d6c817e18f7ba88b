"""Numbers to the bit: rows of a database file and JSON in which every float is its shortest repr.

A part of exact numbers also gives MADE_WITH (`parts`): what decides about the last bits.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.golden.parts import MADE_WITH
from tests.golden.projection import keys, projected
from tests.worlds import rule_outcomes


def with_machine(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts, and beside them the libraries and the machine that computed them."""
    return {**texts, MADE_WITH: as_json(rule_outcomes.made_with())}


def as_json(value: Any) -> str:
    """Return indented JSON with sorted keys."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table, which has its golden name; JSON in a column is read."""
    today = keys("tables").get(table) or table
    with closing(sqlite3.connect(folder / "torra.db")) as database:
        database.row_factory = sqlite3.Row
        result = [dict(row) for row in database.execute(f"SELECT * FROM {today}")]
    golden = projected({today: result}, "tables")[table]
    return [{name: _read(value) for name, value in row.items()} for row in golden]


def _read(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("{", "[")):
        return projected(json.loads(value), "record")
    return value


def in_lines(value: Any) -> Any:
    """Return JSON in which a text of several lines is a list of them, so that a diff is short."""
    if isinstance(value, Mapping):
        return {name: in_lines(item) for name, item in value.items()}
    if isinstance(value, str) and "\n" in value:
        return value.split("\n")
    return [in_lines(item) for item in value] if isinstance(value, list) else value
