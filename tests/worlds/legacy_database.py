"""Builds a database from before Torra: an existing scorer's sentiment table with rows of its own.

    python -m tests.worlds.legacy_database FILE [ROWS]

The table has one column that Torra does not know, and values that a careless migration would
change: NULLs, integers where numbers are due, odd Unicode, empty text, many digits.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

COLUMNS = {
    "id": "INTEGER PRIMARY KEY",
    "timestamp": "TEXT",
    "timeframe": "TEXT",
    "price_action": "REAL",
    "key_levels": "REAL",
    "momentum": "REAL",
    "structure": "REAL",
    "ath": "REAL",
    "composite": "REAL",
    "consensus": "REAL",
    "verdict": "TEXT",
    "source_type": "TEXT",
}
UNKNOWN = "chart_note"
START = datetime(2025, 1, 1, tzinfo=UTC)


def build(path: Path, rows: int = 50, *, without: str = "", extra: str = "TEXT") -> Path:
    """Write the file; `without` leaves a column out, `extra` declares the unknown one."""
    columns = {**COLUMNS, UNKNOWN: extra}
    columns.pop(without, None)
    declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    marks = ", ".join("?" for _ in columns)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE sentiment ({declared})")
        connection.executemany(
            f"INSERT INTO sentiment ({', '.join(columns)}) VALUES ({marks})",
            ([row[name] for name in columns] for row in told(rows)),
        )
    return path


def told(rows: int) -> Iterator[dict[str, Any]]:
    for number in range(rows):
        score = ((number * 37) % 200 - 100) / 97.0
        yield {
            "id": number * 2 + 1,
            "timestamp": (START + number * timedelta(minutes=15)).isoformat(),
            "timeframe": ("M15", "H1", "h4 ", None)[number % 4],
            "price_action": score,
            "key_levels": None if number % 7 == 0 else -score,
            "momentum": 1,
            "structure": 1e-300 * number,
            "ath": 0.1 + 0.2,
            "composite": score / 3,
            "consensus": score,
            "verdict": ("BUY", "SELL", "HOLD", "")[number % 4],
            "source_type": ("VISION", "LEGACY")[number % 2],
            UNKNOWN: f"Zürich → 東京 {number}\r\n\t'quoted' \x00 end",
        }


def read(path: Path) -> list[tuple[Any, ...]]:
    """Return every kept value with its storage class, as SQLite writes it down."""
    names = [*COLUMNS, UNKNOWN]
    shown = ", ".join(f"typeof({name}), hex({name}), quote({name})" for name in names)
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT {shown} FROM sentiment ORDER BY id").fetchall()


if __name__ == "__main__":
    build(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 50)
