"""The steps that make a database's schema, and the way from a file's own schema to the newest.

All pending steps and their record run in one transaction: a file is old or new, never between. A
file that holds anything first gets a checked backup in its `backups` folder. A database from before
Torra (an existing scorer's `sentiment` table) is taken over in place. Its rows keep every byte,
columns that Torra does not know stay as they are, and two columns are added. Its rows have no
torra_key: they stay readable and belong to no chain.

sqlite-utils runs the steps and remembers them in the file; `PRAGMA user_version` is the host's, and
is neither read nor written. A later change is a further step here, `schema_N`, with NEWEST N.

A trigger that somebody put into the file, or a changed table, works inside every transaction of the
desk, behind all checks: it can make 2.00 lots of 0.02. So `structure` compares a file, name by name
and word by word, with what its own schema makes, whenever a desk's database is opened, and a
backup's before it is restored. Refused: a table, an index or a trigger of Torra's that is changed
or gone, and a foreign trigger that touches a table of Torra's. Left alone: tables, views and
indexes of a host, and its triggers that touch nothing of Torra's. The sentiment table may be the
host's own; a trigger on it is left alone as long as that names no table of Torra's.

A file that is not a database, is of another version's schema, or lacks what the overlay needs
raises ConfigError with the file and the remedy. Connections are torra.store.connection's part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import sqlite_utils
from sqlite_utils import Migrations

from torra.errors import ConfigError, SchemaMismatch
from torra.home import BACKUP_FOLDER
from torra.store.connection import copy, stamp
from torra.store.schema import CARDS, CHATS, RADAR_RUNS, SCHEMA, TOOL_CALLS

LEGACY_COLUMNS: Final = (
    "id",
    "timestamp",
    "timeframe",
    "price_action",
    "key_levels",
    "momentum",
    "structure",
    "ath",
    "composite",
    "consensus",
    "verdict",
    "source_type",
)
"""Columns that an existing scorer's sentiment table must have."""

ADDED_COLUMNS: Final = {"agent_deliberation": str, "torra_key": str}

NEWEST: Final = 5
"""The number of the present schema: that of the last step."""

BEFORE: Final = "Torra 0.1.0 before 2026-11-29"
STEP_BEFORE: Final = re.compile(r"\d{4}_\w+")
TABLES_BEFORE: Final = {"chains", "journal", "ticks"}
"""What made schemas before `schema_1`, how its steps were named, and tables of its first one."""

SENTIMENT: Final = "sentiment"

STATEMENT: Final = re.compile("^(?=CREATE )", re.MULTILINE)
"""Where a statement of the schema begins."""

OWN: Final = re.compile("sqlite_|_sqlite_migrations")
"""How the names of SQLite and of sqlite-utils begin: they keep their own tables."""

SPACE: Final = re.compile(r"\s+")
QUOTES: Final = re.compile(r'["`\[\]]')
"""Around names: whether there are any is the wording of a library."""

BODY: Final = re.compile(r"\bBEGIN\b", re.IGNORECASE)

steps: Final = Migrations("torra")


class SchemaRow(NamedTuple):
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
    foreign: tuple[str, ...]


@steps(name="schema_1")
def _schema_1(db: sqlite_utils.Database) -> None:
    if db.table("sentiment").exists():
        _add_to_sentiment(db)
    _execute(db, SCHEMA)


@steps(name="schema_2")
def _schema_2(db: sqlite_utils.Database) -> None:
    _execute(db, TOOL_CALLS)


@steps(name="schema_3")
def _schema_3(db: sqlite_utils.Database) -> None:
    _execute(db, RADAR_RUNS)


@steps(name="schema_4")
def _schema_4(db: sqlite_utils.Database) -> None:
    _execute(db, CHATS)


@steps(name="schema_5")
def _schema_5(db: sqlite_utils.Database) -> None:
    _execute(db, CARDS)


def _execute(db: sqlite_utils.Database, script: str) -> None:
    # One by one: a script as a whole would commit, or be looked through letter by letter.
    for statement in STATEMENT.split(script):
        db.execute(statement)


def schema(db: sqlite_utils.Database) -> int:
    """Return the number of the database's schema, 0 before Torra; raises SchemaMismatch."""
    names = {step.name for step in steps.applied(db)}
    unknown = sorted(names - {f"schema_{number + 1}" for number in range(NEWEST)})
    path = db.execute("PRAGMA database_list").fetchone()[2]
    if any(map(STEP_BEFORE.fullmatch, unknown)) or (
        not names and set(db.table_names()) >= TABLES_BEFORE
    ):
        what, remedy = f"{path} was made by {BEFORE}", "export it with that version, or begin anew"
        raise SchemaMismatch(what, remedy, "`torra restore --empty`")
    if unknown:
        what = f"{path} has {unknown[-1]}, newer than this program's schema_{NEWEST}"
        remedy = "update Torra, or go back to a backup"
        raise SchemaMismatch(what, remedy, "`torra restore` lists them")
    return len(names)


def migrate(
    db: sqlite_utils.Database,
    path: Path,
    transaction: Callable[[], AbstractContextManager[None]],
    now: Callable[[], datetime],
) -> Path | None:
    """Bring an open database to the present schema; return the backup that was made, if any.

    Raises ConfigError for a structure that is not the one of the file's own schema.
    """
    number = schema(db)
    if refused := structure(db).refused:
        raise ConfigError(f"{altered(path, refused)}; `torra restore` lists the backups")
    if number == NEWEST:
        return None
    # Before the backup and the first change: a file that is refused stays as it is.
    # Before the number: another process may migrate the file at this moment.
    there = db.conn.execute("SELECT type, name FROM sqlite_master").fetchall()
    # SQLite does not tell capital letters apart in names.
    newest = {row.name.lower() for row in _made(NEWEST) if row.table != SENTIMENT}
    made = newest - {row.name.lower() for row in _made(schema(db))}
    for kind, name in there:
        if name.lower() in made:
            raise ConfigError(
                f"{path} has a {kind} {name} that Torra did not make; rename that {kind}, or name "
                "another database file"
            )
    if not number:
        _check_legacy(db, path)
    backup = _back_up(db, path, now()) if db.table_names() else None
    # Asked again inside: another process may have migrated the file while we waited.
    with transaction():
        if schema(db) < NEWEST:
            steps.apply(db)
    return backup


def take_over(db: sqlite_utils.Database, path: Path, now: datetime) -> Path | None:
    """Let an existing scorer's own file take Torra's rows; return the backup that was made, if any.

    Its sentiment table gains the two columns and the index, once. Raises ConfigError when it has no
    such table, or one that demands what Torra does not know.
    """
    if "sentiment" not in db.table_names():
        raise ConfigError(f"{path} has no table sentiment: name the database of a scorer")
    _check_legacy(db, path)
    indexes = [index for index in db.table("sentiment").indexes if index.unique]
    for index in indexes:
        # It would refuse rows of ours.
        if index.columns not in (["torra_key"], ["id"]):
            named = ", ".join(index.columns)
            raise ConfigError(
                f"{path}: the index {index.name} of the sentiment table lets no two rows have the "
                f"same {named}, and rows of several timeframes may; drop it, or add torra_key to it"
            )
    there = set(db.table("sentiment").columns_dict)
    if set(ADDED_COLUMNS) <= there and any(index.columns == ["torra_key"] for index in indexes):
        return None
    backup = _back_up(db, path, now)
    with db.atomic():
        _add_to_sentiment(db)
    return backup


def _add_to_sentiment(db: sqlite_utils.Database) -> None:
    sentiment = db.table("sentiment")
    for name, kind in ADDED_COLUMNS.items():
        if name not in sentiment.columns_dict:
            sentiment.add_column(name, kind)
    sentiment.create_index(
        ["torra_key"], index_name="sentiment_torra_key", unique=True, if_not_exists=True
    )


def structure(db: sqlite_utils.Database, ignored: Collection[str] = ()) -> Structure:
    """Compare a database with what its own schema made; tables of the names `ignored` do not count.

    Raises SchemaMismatch.
    """
    alone = not db.conn.in_transaction
    # One moment for number and structure: another program may be migrating the file.
    if alone:
        db.execute("BEGIN")
    try:
        return compare(schema_rows(db, ignored), _made(schema(db)), _made(NEWEST))
    finally:
        if alone:
            db.execute("COMMIT")


def compare(
    there: Sequence[SchemaRow], made: Sequence[SchemaRow], newest: Sequence[SchemaRow]
) -> Structure:
    """Compare what a file holds with what its schema made.

    No foreign trigger may touch a table of the `newest` schema, so that a file is refused before it
    is taken over and not after.
    """
    tables = {row.table.lower() for row in newest}
    ours, theirs = ({(row.kind, row.name.lower()): row for row in rows} for rows in (made, there))
    refused, foreign = [], []
    for key, row in ours.items():
        if key == ("table", SENTIMENT):
            continue
        if key not in theirs:
            refused.append(f"the {row.kind} {row.name} is gone")
        # Word by word the same, which nearly every one is, needs no plainer words.
        elif theirs[key] != row and _plain(theirs[key]) != _plain(row):
            refused.append(f"the {row.kind} {row.name} is not as Torra made it")
    for row in [row for key, row in theirs.items() if key not in ours]:
        what = f"the {row.kind} {row.name}"
        if row.kind == "trigger" and _touches(row, tables):
            refused.append(f"{what} on {row.table} is not Torra's and touches Torra's tables")
        else:
            foreign.append(f"{what} on {row.table}" if row.kind in ("index", "trigger") else what)
    return Structure(tuple(refused), tuple(foreign))


def altered(path: Path, refused: Sequence[str]) -> str:
    """Say what was altered in a file, and what that means."""
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    return f"{path} was altered: {refused[0]}{more}. It could change orders"


def schema_rows(db: sqlite_utils.Database, ignored: Collection[str] = ()) -> list[SchemaRow]:
    """Return what a file holds, without what SQLite and sqlite-utils keep for themselves."""
    rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return [
        SchemaRow(kind, name, table, sql or "")
        for kind, name, table, sql in rows
        if not (name in ignored or OWN.match(name) or OWN.match(table))
    ]


def _plain(row: SchemaRow) -> tuple[str, str]:
    """Return what counts of a row: its table and its words, however they are spaced."""
    return row.table.lower(), SPACE.sub(" ", QUOTES.sub("", row.sql)).strip()


def _touches(trigger: SchemaRow, tables: Collection[str]) -> bool:
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
    return not {word.lower() for word in re.findall(r"\w+", text)}.isdisjoint(tables)


@cache
def _made(number: int) -> tuple[SchemaRow, ...]:
    """Return what the steps up to a schema's number make in a new database."""
    db = sqlite_utils.Database(memory=True, execute_plugins=False)
    try:
        steps.apply(db, stop_before=f"schema_{number + 1}")
        return tuple(schema_rows(db))
    finally:
        db.close()


def _check_legacy(db: sqlite_utils.Database, path: Path) -> None:
    """Raise ConfigError when a database from before Torra cannot be taken over."""
    if "sentiment" not in db.table_names():
        return
    columns = {column.name: column for column in db.table("sentiment").columns}
    for name in LEGACY_COLUMNS:
        if name not in columns:
            raise ConfigError(
                f"{path}: the sentiment table has no column {name}; add it with "
                f"ALTER TABLE sentiment ADD COLUMN {name}, or name another database file"
            )
    if not columns["id"].is_pk or columns["id"].type.upper() != "INTEGER":
        raise ConfigError(f"{path}: sentiment.id is not INTEGER PRIMARY KEY; rebuild that table")
    for name, column in columns.items():
        unknown = name not in LEGACY_COLUMNS and name not in ADDED_COLUMNS
        # Every row of ours would fail for want of it.
        if unknown and column.notnull and column.default_value is None:
            raise ConfigError(
                f"{path}: the sentiment table demands a value for {name}, which Torra does not "
                "know; give that column a default"
            )


def _back_up(db: sqlite_utils.Database, path: Path, now: datetime) -> Path:
    moment = stamp(now).replace(":", "").replace("-", "")
    target = path.parent / BACKUP_FOLDER / f"{path.stem}-{schema(db)}-{moment}.db"
    # A copy has its name only when it was checked: one of this second serves as well.
    return target if target.exists() else copy(db, target)
