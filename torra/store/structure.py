"""Whether a database has the structure that Torra made, and what else lies in the file.

A trigger that somebody put into the file, or a changed table, works inside every transaction of the
desk, behind all checks: it can make 2.00 lots of 0.02. So the structure is compared, name by name
and word by word, with that of the file's own schema, whenever a desk's database is opened, and a
backup's before it is restored.

Refused: a table, an index or a trigger of Torra's that is changed or gone, and a foreign trigger
that touches a table of Torra's. Told and left alone: the tables, views and indexes of a host, and
its triggers that touch nothing of Torra's. The sentiment table may be the host's own. Its columns
are torra.store.migrations' part, and a trigger of the host on it is told as long as that names no
table of Torra's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import sqlite_utils

SENTIMENT: Final = "sentiment"
OWN: Final = re.compile("sqlite_|_sqlite_migrations")
"""How the names of SQLite and of sqlite-utils begin: they keep their own tables."""

SPACE: Final = re.compile(r"\s+")
QUOTES: Final = re.compile(r'["`\[\]]')
"""Around names: whether there are any is the wording of a library."""

BODY: Final = re.compile(r"\bBEGIN\b", re.IGNORECASE)


class Thing(NamedTuple):
    """One row of sqlite_master; `table` is the one that an index or a trigger belongs to.

    `kind` is table, view, index or trigger.
    """

    kind: str
    name: str
    table: str
    sql: str


class Structure(NamedTuple):
    """What is wrong with a structure, and what is merely not Torra's; sentences without an end."""

    refused: tuple[str, ...]
    told: tuple[str, ...]


def compare(
    db: sqlite_utils.Database,
    made: Sequence[Thing],
    tables: Collection[str],
    ignored: Collection[str] = (),
) -> Structure:
    """Compare a database with what its schema made; tables of the names `ignored` do not count.

    No foreign trigger may touch one of `tables` (lower case): those that the present program makes,
    so that a file is refused before it is taken over and not after.
    """
    there = {(row.kind, row.name.lower()): row for row in things(db) if row.name not in ignored}
    ours = {(row.kind, row.name.lower()): row for row in made}
    refused, told = [], []
    for key, row in ours.items():
        if key == ("table", SENTIMENT):
            continue
        found = there.get(key)
        if found is None:
            refused.append(f"the {row.kind} {row.name} is gone")
        # Word by word the same, which nearly every one is, needs no plainer words.
        elif found != row and _plain(found) != _plain(row):
            refused.append(f"the {row.kind} {row.name} is not as Torra made it")
    for key, row in there.items():
        if key in ours:
            continue
        what = f"the {row.kind} {row.name}"
        if row.kind == "trigger" and _touches(row, tables):
            refused.append(f"{what} on {row.table} is not Torra's and touches Torra's tables")
        else:
            told.append(f"{what} on {row.table}" if row.kind in ("index", "trigger") else what)
    return Structure(tuple(refused), tuple(told))


def words(path: Path, refused: Sequence[str]) -> str:
    """Say what was altered in a file, and what that means."""
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    return f"{path} was altered: {refused[0]}{more}. It could change orders"


def things(db: sqlite_utils.Database) -> list[Thing]:
    """Return what a file holds, without what SQLite and sqlite-utils keep for themselves."""
    rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return [
        Thing(kind, name, table, sql or "")
        for kind, name, table, sql in rows
        if not (OWN.match(name) or OWN.match(table))
    ]


def _plain(row: Thing) -> tuple[str, str]:
    """Return what counts of a thing: its table and its words, however they are spaced."""
    return row.table.lower(), SPACE.sub(" ", QUOTES.sub("", row.sql)).strip()


def _touches(trigger: Thing, tables: Collection[str]) -> bool:
    """Tell whether a foreign trigger stands on a table of Torra's, or names one.

    One that stands on the sentiment table may be a host's, which fills a table of its own by it.
    """
    text = trigger.sql
    if trigger.table.lower() == SENTIMENT:
        text = "".join(BODY.split(text, maxsplit=1)[1:])
    elif trigger.table.lower() in tables:
        return True
    else:
        tables = set(tables) - {SENTIMENT}
    words = {word.lower() for word in re.findall(r"\w+", text)}
    return not words.isdisjoint(tables)
