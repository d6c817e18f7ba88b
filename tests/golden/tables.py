"""All tables of a desk's database after a few ticks, read with plain SQL, a field a line.

A file for each desk has its rows in the order of their keys; schema.txt has the schema. JSON in a
cell is shown as JSON (a large one in the first WHOLE rows of its table, then by hash), long words
and bytes by length and hash, and tables of many plain rows by count and hash.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from tests.doubles.vendor_line import prices
from tests.golden.brevity import digest
from tests.golden.exact import with_machine
from tests.golden.frozen import frozen, masked, versionless
from tests.golden.projection import projected
from tests.worlds import (
    demo_orders,
    desks,
    firm_ticks,
    journals,
    stored_days,
    swarm_ticks,
    told_lessons,
)
from torra.config import Profile

MANY: Final = frozenset(("bars", "record_highs", "record_lows", "series", "facts", "flow"))
"""Tables that are shown by count and hash."""

HELPERS: Final = ("_sqlite_migrations", "sqlite_sequence")
"""Tables of SQLite and of its helper, which are left out."""

LONGEST: Final = 200
"""Characters of a cell that are shown."""

RACE: Final = re.compile(r'("signal_event": ?)\d+')
"""The newest step of a signal that a tick knew: the ticks of one close race for it."""

LARGE: Final = 3000
"""Characters of a cell of JSON that is large."""

WHOLE: Final = 4


def make(folder: Path) -> dict[str, str]:
    """Return the tables of each desk, and the schema."""
    texts = {}
    for name, live in DESKS.items():
        home = folder / name
        with frozen():
            live(home)
        with closing(sqlite3.connect(home / "torra.db")) as database:
            database.row_factory = sqlite3.Row
            rows = {table: _rows(database, table) for table in _tables(database)}
            texts["schema.txt"] = "\n".join(_schema(database))
        shown = {name: _shown(name, many) for name, many in projected(rows, "tables").items()}
        text = masked(json.dumps(shown, indent=1, sort_keys=True), home)
        texts[f"{name}.json"] = versionless(text)
    return with_machine(texts)


def _tables(database: sqlite3.Connection) -> list[str]:
    """Return the names of all tables but HELPERS and the search's own."""
    tables = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    own = tuple(f"{name}_" for name, sql in tables if sql.startswith("CREATE VIRTUAL"))
    return sorted(name for name, _ in tables if not name.startswith((*HELPERS, *own)))


def _schema(database: sqlite3.Connection) -> Iterator[str]:
    for name, sql in database.execute("SELECT name, sql FROM sqlite_master ORDER BY type, name"):
        yield f"-- {name}\n{sql or '(made by SQLite)'};\n"
    yield f"PRAGMA user_version = {database.execute('PRAGMA user_version').fetchone()[0]};"


def _rows(database: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table in the order of its primary key, whatever column that is."""
    key = "SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk"
    names = [f'"{name}"' for (name,) in database.execute(key, (table,))] or ["rowid"]
    rows = database.execute(f'SELECT * FROM "{table}" ORDER BY {", ".join(names)}')
    return [dict(row) for row in rows]


def _shown(table: str, rows: list[dict[str, Any]]) -> Any:
    """Return the rows of a table as they are shown, or their count and hash."""
    if table in MANY:
        return {"rows": len(rows), "hash": digest(rows)}
    if table == "desk_run":  # no two runs have the same process; 0 is a desk that has ended
        rows = [row | {"process": min(row["process"], 1)} for row in rows]
    return [
        {name: _cell(value, number) for name, value in row.items()}
        for number, row in enumerate(rows)
    ]


def _cell(value: Any, number: int) -> Any:
    """Return what is shown of a cell in a row of this number."""
    if isinstance(value, bytes):
        return f"<{len(value)} bytes, {digest(value.hex())}>"
    if not isinstance(value, str):
        return value
    value = versionless(value)
    if value.startswith(("{", "[")):
        try:
            value = RACE.sub(r"\g<1>0", value)
            document = projected(json.loads(value), "record")
        except ValueError:
            document = None
        if document is not None and (len(value) < LARGE or number < WHOLE):
            return document
        value = json.dumps(document, sort_keys=True) if document is not None else value
    return value if len(value) <= LONGEST else f"<{len(value)} characters, {digest(value)}>"


def _pay(home: Path) -> None:
    """Run ticks whose calls a vendor is paid for, until the hour's ceiling is felt."""
    profile = Profile().with_agents(provider="anthropic", max_api_cost_per_hour=0.3)
    desk = desks.open_desk(home, profile=profile, provider=journals.Moody())
    desks.charge(desk, prices(), desk.clock.real_now, "default")
    desks.open_for_work(desk)
    for _ in range(4):
        desks.step(desk)
    desk.close()


class Quick(journals.Moody):
    """Answers at once, and no person acts meanwhile: records depend on no order of asking."""

    clock = property(lambda self: None, lambda self, _: None)
    person = property(lambda self: lambda _: None, lambda self, _: None)


def _trade(home: Path) -> None:
    journals.live(home, 10, Quick()).close()


def _last(home: Path) -> None:
    with patch.object(journals, "Moody", Quick):
        stored_days.live(home, 2)


def _learn(home: Path) -> None:
    with told_lessons.desk(home) as backing:
        told_lessons.write(backing.database)


def orders(home: Path) -> None:
    """Make the home of the desk that asks a person; elsewhere it is made at another time."""
    demo_orders._ran.cache_clear()
    demo_orders.build(home).database.close()
    demo_orders._ran.cache_clear()


DESKS: Final[Mapping[str, Callable[[Path], object]]] = {
    "paper": _trade,
    "firm": lambda home: firm_ticks.lived(home, steps=2).desk.close(),
    "swarm": lambda home: swarm_ticks.asked_to_close(home).desk.close(),
    "paid": _pay,
    "approve": orders,
    "lessons": _learn,
    "days": _last,
}
"""What lets each desk live."""
