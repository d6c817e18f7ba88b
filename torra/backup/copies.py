"""Makes and reads backups of a desk: what one file holds, how it is written, checked and found.

A backup is a copy of the desk's database with two more tables: what it was made of, and the files
of the home that belong to it (settings, order journals, the HALT file), byte for byte. So it is one
SQLite file, which any tool opens. It is made beside a desk at work, of one moment, under another
name. It gets its own name only when it was read through again; its SHA-256 lies beside it. Backups
that a migration made are such copies without the two tables and the sum.

Anything wrong with a backup raises a ConfigError that says what; nothing here changes a database or
a home. torra.backup.files decides which files belong to a backup, torra.backup.restore puts one
back.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import sqlite_utils

from torra import owner_only
from torra.clock import token
from torra.errors import MALFORMED, ConfigError, StoreUnavailable
from torra.home import BACKUP_NAME, backups
from torra.regular_files import open_regular
from torra.store.connection import BUSY_SECONDS, connect_guest, connect_reader, copy, stamp
from torra.store.faults import explain
from torra.store.migrations import altered, schema, structure
from torra.store.trade.signals import altered_orders
from torra.whole_files import sync_folder, write_whole

MARK_DIGITS: Final = 8
"""Hexadecimal digits of a desk's mark in the names of its backups."""

SUM: Final = ".sha256"
"""Ending of the file with the sum, after the whole name of the backup."""

ROOM: Final = 1.1
"""Times the size of what is copied that must be free."""

FACTS: Final = "torra_backup"
FILES: Final = "torra_backup_files"
"""The tables of a backup that a database does not have. No step of the schema makes such names."""

TABLES: Final = (
    "CREATE TABLE torra_backup (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE torra_backup_files (path TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID",
)

TICKS: Final = "ticks"
SENTIMENT: Final = "sentiment"
SIGNALS: Final = "signals"
"""Tables by which a desk's database is recognised, and one from before Torra."""

BEGUN: Final = "SELECT applied_at FROM _sqlite_migrations ORDER BY rowid LIMIT 1"
"""When a database was begun, or taken over: no two desks have the same microsecond."""


LEFT_BEHIND: Final = timedelta(days=1)
"""Age from which a half-written backup counts as left behind."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was read through. `rows` counts the rows of every table.

    `made_at` is ISO UTC, "" where the file does not tell; `newest_tick` the newest close of a tick
    that was finished, "" for none; `sha256` "" where no sum lies beside it; `desk` the mark of
    the desk that made it, "" where the file does not tell. `foreign` are the things in the file
    that are not Torra's (torra.store.migrations), `altered` the ids of its orders and positions
    that are not as they were decided.
    """

    path: Path
    size: int
    schema: int
    made_at: str
    newest_tick: str
    rows: Mapping[str, int]
    sha256: str
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    desk: str = ""
    foreign: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the backup as a document, without the contents of its files."""
        return {
            "path": str(self.path),
            "bytes": self.size,
            "schema": self.schema,
            "desk": self.desk,
            "made_at": self.made_at,
            "newest_tick": self.newest_tick,
            "sha256": self.sha256,
            "files": sorted(self.files),
            "rows": dict(self.rows),
            "foreign": list(self.foreign),
            "altered_orders": list(self.altered),
        }


# --- names ----------------------------------------------------------------------------------------


def identity(source: Path) -> tuple[int, str]:
    """Return the number of a database's schema, 0 before Torra, and the mark of its desk.

    The mark distinguishes this desk's backups from another's: a hash of where the database lies and
    when it was begun. A desk that moved, or began anew, has another one: --keep then leaves its
    older backups alone. Raises ConfigError.
    """
    begun: list[str] = []
    try:
        with closing(connect_reader(source)) as db:
            number = schema(db)
            # A database from before Torra has no table of migrations.
            with suppress(sqlite3.OperationalError):
                begun = [str(row[0]) for row in db.execute(BEGUN)]
    except sqlite3.DatabaseError as error:
        raise ConfigError(f"no backup was made: {explain(source, error)}") from error
    text = "\n".join([str(source.resolve()), *begun])
    # surrogatepass: a path may hold bytes that are no text.
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return number, mark[:MARK_DIGITS]


def name_of(source: Path, moment: datetime) -> str:
    """Return the name of a backup of a database at a moment; raises ConfigError."""
    number, mark = identity(source)
    return f"desk-{number}-{mark}-{stamp(moment).replace(':', '').replace('-', '')}.db"


def surplus(newest: Path, keep: int) -> list[Path]:
    """Return the backups of the same desk beside one, beyond the newest `keep`; keep > 0.

    The one that was just made counts as the newest: a clock may have been ahead of it once. What
    other desks keep in that folder is theirs.
    """

    def mark(path: Path) -> str:
        parts = BACKUP_NAME.fullmatch(path.name)
        return (parts[1] or "") if parts else ""

    others = [path for path in backups(newest.parent) if path.name != newest.name]
    return [path for path in others if mark(path) == mark(newest)][keep - 1 :]


def remove(path: Path) -> None:
    """Remove a backup with its sum; raises OSError."""
    path.unlink()
    _sum_of(path).unlink(missing_ok=True)


def _sum_of(path: Path) -> Path:
    return path.with_name(path.name + SUM)


# --- writing --------------------------------------------------------------------------------------


def write(
    source: Path,
    target: Path,
    files: Callable[[], tuple[Mapping[str, bytes], list[str]]],
    now: datetime,
) -> tuple[Backup, list[str]]:
    """Copy a database of one moment into a new file, and the home's files after it.

    Returns the backup as it was read through and what `files` says was left out. A desk may work
    meanwhile. Raises ConfigError when the database is damaged, the target is there or there is no
    room for it; then nothing is left behind.
    """
    if target.exists():
        raise ConfigError(f"{target} is there already; name another file")
    # A name of its own: two backups at once must not write into one file.
    partial = target.with_name(f"{target.name}.{token(4)}.partial")
    desk = identity(source)[1]  # before a folder is made: of no database nothing is left behind
    with _plainly(source, target):
        owner_only.make_folder(target.parent)
        _sweep(target.parent, now)
        check_room(source, target.parent)
        try:
            rows = _copied(source, partial)
            taken, left_out = files()
            facts = {"made_at": stamp(now), "rows": json.dumps(rows), "desk": desk}
            with closing(connect_guest(partial, BUSY_SECONDS)) as db, db.atomic():
                for statement in TABLES:
                    db.execute(statement)
                db.conn.executemany("INSERT INTO torra_backup VALUES (?, ?)", facts.items())
                db.conn.executemany("INSERT INTO torra_backup_files VALUES (?, ?)", taken.items())
            # Read back from the disk before it gets a name that somebody will trust.
            backup = examine(partial)
            partial.replace(target)
            sha256 = _digest(target)
            # In the form that sha256sum reads.
            line = f"{sha256}  {target.name}\n".encode()
            write_whole(_sum_of(target), line, mode=owner_only.FILE)
            sync_folder(target.parent)
        finally:
            # `copy` writes under a name of its own first.
            for left in (partial, partial.with_name(f"{partial.name}.partial")):
                left.unlink(missing_ok=True)
    return replace(backup, path=target, sha256=sha256), left_out


def check_room(source: Path, folder: Path) -> None:
    """Raise ConfigError when a folder has no room for a copy of a database; raises OSError."""
    logs = [path for path in (source, source.with_name(f"{source.name}-wal")) if path.exists()]
    needed = int(sum(path.stat().st_size for path in logs) * ROOM)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ConfigError(
            f"{folder} has {_mb(free)} free, and a copy of {source} may take {_mb(needed)}: make "
            "room, or name a folder on another volume"
        )


def _sweep(folder: Path, now: datetime) -> None:
    """Remove what a backup that was killed a day ago or more has left in a folder."""
    for path in (*folder.glob("desk-*.db.*.partial"), *folder.glob(".desk-*.db.*.partial")):
        with suppress(OSError):
            # A backup that is being made has such a file too: only an old one is nobody's.
            if datetime.fromtimestamp(path.stat().st_mtime, UTC) < now - LEFT_BEHIND:
                path.unlink()


def _copied(source: Path, partial: Path) -> dict[str, int]:
    """Copy the database as it is at one moment; return the rows of its tables at that moment."""
    with closing(connect_reader(source)) as db:
        db.execute("BEGIN")
        # Inside one reading transaction, so that the rows are those of the copy while a desk goes
        # on.
        rows = count(db)
        if SENTIMENT not in rows:
            raise ConfigError(f"{source} holds no desk; name its home with --home")
        try:
            copy(db, partial)
        except StoreUnavailable as error:
            verdict = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
            # The copy is bad because its source is: say that, and not that the volume is.
            if verdict != "ok":
                verdict = " ".join(verdict.split())
                raise sqlite3.DatabaseError(f"malformed: {verdict}") from error
            raise
    return rows


# --- reading --------------------------------------------------------------------------------------


def examine(path: Path) -> Backup:
    """Read a backup through; raises ConfigError when it is damaged, altered, newer or no desk's.

    Looked at are its sum, the build of the file, the rows against those that were counted when it
    was made, the number of its schema, and its structure against that schema's.
    """
    if not path.is_file():
        raise ConfigError(f"there is no backup {path}")
    try:
        sha256 = _summed(path)
        with closing(reader(path)) as db:
            return _read(db, path, sha256)
    except sqlite3.DatabaseError as error:
        raise ConfigError(f"{path} is no whole backup: {' '.join(str(error).split())}") from error
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except MALFORMED as error:
        raise ConfigError(f"{path} is damaged: what it tells of itself is none: {error}") from error


def reader(path: Path) -> sqlite_utils.Database:
    """Open a backup to read it; a raw copy of a database with its log beside it counts as one."""
    return connect_reader(path, still=not path.with_name(f"{path.name}-wal").exists())


def _read(db: sqlite_utils.Database, path: Path, sha256: str) -> Backup:
    verdict = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    if verdict != "ok":
        raise ConfigError(f"{path} is damaged: {' '.join(verdict.split())}")
    rows = count(db)
    if SENTIMENT not in rows:
        raise ConfigError(f"{path} holds no desk")
    marked = FACTS in _names(db)
    facts = dict(db.execute("SELECT name, value FROM torra_backup")) if marked else {}
    # quick_check sees a damaged page, not a missing row.
    if facts and json.loads(facts["rows"]) != rows:
        raise ConfigError(f"{path} is damaged: it has not the rows that it was made with")
    number = schema(db)
    built = structure(db, (FACTS, FILES))
    if built.refused:
        raise ConfigError(altered(path, built.refused))
    files = dict(db.execute("SELECT path, content FROM torra_backup_files")) if marked else {}
    for name, content in files.items():
        if not (isinstance(name, str) and isinstance(content, bytes)):
            raise TypeError(f"{name!r} is no file")
    orders = altered_orders(db) if SIGNALS in rows else []
    return Backup(
        path, path.stat().st_size, number, str(facts.get("made_at", "")), newest_tick(db), rows,
        sha256, files, str(facts.get("desk", "")), built.foreign, tuple(orders),
    )  # fmt: skip


def count(db: sqlite_utils.Database) -> dict[str, int]:
    """Return the rows of every table of a database, without those that make it a backup."""
    names = [name for name in _names(db) if name not in (FACTS, FILES)]
    return {name: db.table(name).count for name in names}


def newest_tick(db: sqlite_utils.Database) -> str:
    """Return the newest close of a tick that was finished, ISO UTC; "" for none."""
    if TICKS not in _names(db):
        return ""
    row = db.execute(f"SELECT max(close_time) FROM {TICKS} WHERE state = 'done'").fetchone()  # noqa: S608
    return str(row[0] or "")


def _names(db: sqlite_utils.Database) -> list[str]:
    return sorted(name for name in db.table_names() if not name.startswith("sqlite_"))


def _summed(path: Path) -> str:
    """Return a backup's sum, "" where none lies beside it; raises ConfigError when it is another's.

    A sum that cannot be read is no sum: what counts is that one is never found wrong.
    """
    try:
        noted = _sum_of(path).read_text(encoding="utf-8").split()[0]
    except (OSError, UnicodeDecodeError, IndexError):
        return ""
    digest = _digest(path)
    if noted != digest:
        raise ConfigError(f"{path} is damaged: its sum is not the one in {_sum_of(path).name}")
    return digest


def _digest(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _plainly(source: Path, target: Path) -> Iterator[None]:
    """Say in one line why a backup could not be made."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise ConfigError(f"no backup was made: {explain(source, error)}") from error
    except StoreUnavailable as error:
        raise ConfigError(f"no backup was made: {error}") from error
    except OSError as error:
        raise ConfigError(f"no backup was made: cannot write {target}: {error.strerror}") from error


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
