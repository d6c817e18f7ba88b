"""The desk's SQLite file: one connection per thread, one kind of transaction, checked settings.

This module holds the project's only `sqlite3.connect`. Every connection writes ahead (WAL), syncs
at each commit (synchronous FULL), enforces foreign keys, fires the triggers of rows that are
replaced and waits for a lock as long as it was told. A file or a system that refuses one of these
is not used. Every write of the project is part of a `transaction()`, and the methods of
sqlite-utils join the open one.

sqlite-utils has the connection, the steps of the schema and what they look up in it, single rows of
plain tables (`_upsert`) and counts (`_count`). It reads the schema at every upsert, which takes
0.1 ms. So what every tick writes, what a condition guards and what a page reads is SQL.

After a failure nothing of the transaction is kept, and StoreUnavailable says what a person can do.
A broken rule of the schema (sqlite3.IntegrityError) and a wrong statement are defects of the
program and pass through as they are. A number that is not finite raises ValueError before it is
written.

The stores that inherit from `Store` decide what is stored; the schema is torra.store.migrations'
part.
"""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import sqlite_utils

from torra import owner_only
from torra.clock import System, duration, iso
from torra.errors import ConfigError, StoreBroken, StoreUnavailable
from torra.store.fair_lock import FairLock
from torra.store.faults import RESTORE, explain, refuse

if TYPE_CHECKING:
    from torra.store.trade.rows import Row

Stored = TypeVar("Stored", bound="Row")

RowDict = dict[str, Any]
"""A row by the names of its columns."""

MONOTONIC: Final = System().monotonic

FileIdentity = tuple[int, int]
"""Device and number of a file."""

CLOSE_SECONDS: Final = 1.0
"""How long closing a database waits for other threads to end what they are doing with it."""

BUSY_SECONDS: Final = 5.0
"""How long a connection waits for another writer (facts: promise D3)."""

CACHE_KIB: Final = 512
"""Pages that a connection keeps, in KiB. A desk has thirty, and each would fill SQLite's 2,000 in a
day; the system's own cache has what is left out.
"""

SETTINGS: Final = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL: the log is synced at every commit
    "foreign_keys": 1,
    # A row that INSERT OR REPLACE takes out is a deletion for the triggers against those.
    "recursive_triggers": 1,
    "cache_size": -CACHE_KIB,
}
"""What every connection of ours is set to, and checked for (promise D3)."""


class Keyed(Protocol):
    """What calls and bookings are made for: a tick, or something beside the ticks."""

    @property
    def text(self) -> str:
        """The key as the tables hold it."""
        ...


class TickKey(NamedTuple):
    """The key of a stored tick; `bar_time` is the bar's open time, aware, in UTC."""

    instance: str
    timeframe: str
    bar_time: datetime

    @property
    def text(self) -> str:
        """The key as the tables hold it: instance|timeframe|ISO time."""
        return f"{self.instance}|{self.timeframe}|{stamp(self.bar_time)}"

    @property
    def close_time(self) -> datetime:
        """When the bar closed, UTC: nothing later is visible to the tick."""
        return self.bar_time + duration(self.timeframe)


BEFORE_ALL, AFTER_ALL = "", "~"
"""Texts that sort before and after every time."""

KEY_END: Final = "}"
"""The character after the | that follows an instance's name in a torra_key."""


@dataclass(slots=True)
class ThreadConnection:
    """One thread's connection; entered, it is in use, and `Store.close` leaves it alone.

    Uses may nest: the outermost one counts. SQLite's errors inside a use become ones that a person
    can act on. `depth` counts the inner transactions that are open, and `log` is which file it
    writes ahead to, from its first transaction on.
    """

    store: Store
    db: sqlite_utils.Database
    uses: int = 0
    depth: int = 0
    log: FileIdentity | None = None

    def __enter__(self) -> sqlite_utils.Database:
        if self.uses:  # by this very thread
            self.uses += 1
        else:
            self.store._begin_use(self)  # noqa: SLF001 - two halves of one thing
        return self.db

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.uses > 1:
            self.uses -= 1
        else:
            self.store._end_use(self)  # noqa: SLF001
        refuse(self.store.path, error)


class Store:
    """One SQLite file as several threads see it."""

    def __init__(
        self,
        path: Path,
        *,
        now: Callable[[], datetime],
        busy_seconds: float = BUSY_SECONDS,
        read_only: bool = False,
    ) -> None:
        self.path = path
        self._read_only = read_only
        self._log_path = path.with_name(f"{path.name}-wal")
        self.now = now
        self._busy_seconds = busy_seconds
        self._local = threading.local()
        self._lock = threading.Condition()
        self._line = FairLock()
        self._open: dict[threading.Thread, ThreadConnection] = {}
        self._closed = False
        self._turns = 0
        """Transactions of this store that have begun: one at a time, so it names the open one."""
        self._identity: FileIdentity | None = None

    @contextmanager
    def transaction(self, wait_seconds: float | None = None) -> Iterator[None]:
        """Run what is inside as one unit: all of it is kept, or, after any exception, nothing.

        Waits for another writer up to `wait_seconds` (None: the connection's own patience), then
        raises StoreUnavailable, as it does when the disk fails. A transaction inside another joins
        it; when the inner one raises and the outer goes on, only the inner one's part is undone.
        """
        with self._using() as db:
            if db.conn.in_transaction:
                with self._inner(db.conn):
                    yield
                return
            with self._turn(db, wait_seconds):
                try:
                    yield
                    db.execute("COMMIT")
                # KeyboardInterrupt too: nothing of a transaction that broke may stay.
                except BaseException:
                    db.rollback()
                    raise

    def close(self) -> None:
        """Close the connections of all threads.

        A connection that is in use is closed by its own thread at the end of that use; this waits
        up to CLOSE_SECONDS for it.
        """
        ours = threading.current_thread()
        with self._lock:
            self._closed = True
            for thread, connection in list(self._open.items()):
                # Closing a connection under the thread that uses it crashes the process.
                if thread is ours or not connection.uses:
                    self._open.pop(thread).db.close()
            self._lock.wait_for(lambda: not self._open, CLOSE_SECONDS)
        # The connection that each thread remembers is closed now.
        self._local = threading.local()

    @staticmethod
    def copy(path: Path, target: Path) -> Path:
        """Write a consistent copy of a database to a new file, checked before it gets its name.

        Raises ConfigError when `path` is no database, StoreUnavailable when it cannot be copied.
        """
        try:
            inspect(path)
            with closing(_plain(path, BUSY_SECONDS)) as db:
                return copy(db, target)
        except sqlite3.DatabaseError as error:
            raise StoreUnavailable(explain(path, error)) from error

    def connection(self) -> sqlite_utils.Database:
        """Return this thread's connection; writes belong inside a `transaction()`."""
        return self._using().db

    # --- reading: SQL and its values, of which a time is written by `stamp` -----------------------

    def rows(self, sql: str, *values: object) -> list[RowDict]:
        """Return the rows of a statement, each by the names of its columns."""
        with self._using() as db:
            # db.query would wrap each look in a savepoint
            cursor = db.conn.execute(sql, _stored(values))
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def row(self, sql: str, *values: object) -> RowDict | None:
        """Return the first row of a statement; None without one."""
        rows = self.rows(sql, *values)
        return rows[0] if rows else None

    def tuples(self, sql: str, *values: object) -> list[Any]:
        """Return rows as plain tuples, for a caller that reads many and knows the columns."""
        with self._using() as db:
            return db.conn.execute(sql, _stored(values)).fetchall()

    def column(self, sql: str, *values: object) -> list[Any]:
        """Return the first column of a statement's rows."""
        return [row[0] for row in self.tuples(sql, *values)]

    def value(self, sql: str, *values: object) -> Any:
        """Return the first column of the first row; None without one."""
        with self._using() as db:
            row = db.conn.execute(sql, _stored(values)).fetchone()
            return row[0] if row else None

    def models(self, kind: type[Stored], sql: str, *values: object) -> list[Stored]:
        """Return rows as values of their model."""
        return [kind.load(row) for row in self.rows(sql, *values)]

    def model(self, kind: type[Stored], sql: str, *values: object) -> Stored | None:
        """Return the first row as a value of its model; None without one."""
        return next(iter(self.models(kind, sql, *values)), None)

    # --- writing, for the stores that inherit -----------------------------------------------------

    def change(self, sql: str, *values: object) -> int:
        """Write, in the open transaction or in one of its own; return how many rows changed.

        Raises ValueError for a number that is not finite.
        """
        _refuse_infinite(values, sql)
        return self._write(sql, values).rowcount

    def add(self, table: str, row: Mapping[str, object]) -> int:
        """Insert a row; return its number. Raises ValueError for a number that is not finite."""
        _refuse_infinite(row.values(), table)
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 - names of ours
        return int(self._write(sql, tuple(row.values())).lastrowid or 0)

    def upsert(self, table: str, row: RowDict) -> None:
        """Write a row over the one with its primary key, or add it.

        Columns that are left out keep what they have. Not for every tick: it takes 0.1 ms.
        """
        _refuse_infinite(row.values(), table)
        with self.transaction():
            # The key is the schema's: told by us, sqlite-utils would make a table that is missing.
            values = dict(zip(row, _stored(row.values()), strict=True))
            self.connection().table(table).upsert(values)

    def _write(self, sql: str, values: Sequence[object]) -> sqlite3.Cursor:
        """Execute one statement inside the open transaction, or in one of its own.

        A statement that fails leaves nothing by itself, so inside a transaction it needs none.
        """
        with self._using() as db:
            if db.conn.in_transaction:
                return db.conn.execute(sql, _stored(values))
            with self.transaction():
                return db.conn.execute(sql, _stored(values))

    def moment(self) -> str:
        """Return the present as a column holds it."""
        return stamp(self.now())

    # --- connections ----------------------------------------------------------------------------

    def _begin_use(self, connection: ThreadConnection) -> None:
        """Hold a connection against `close`."""
        with self._lock:
            self._refuse_closed()
            connection.uses = 1

    def _end_use(self, connection: ThreadConnection) -> None:
        """End the last use of a connection, and close it if that was asked for meanwhile."""
        with self._lock:
            connection.uses = 0
            if self._closed:
                self._open.pop(threading.current_thread(), None)
                connection.db.close()
                self._lock.notify_all()

    def _using(self) -> ThreadConnection:
        """Return this thread's connection, to be entered for as long as it is used."""
        connection: ThreadConnection | None = getattr(self._local, "connection", None)
        if connection is not None:
            return connection
        with self._lock:
            self._refuse_closed()
            # A thread that ended left its connection open: nobody else will close it.
            for thread in [thread for thread in self._open if not thread.is_alive()]:
                self._open.pop(thread).db.close()
        self._refuse_moved()
        try:
            connection = ThreadConnection(
                self,
                connect_reader(self.path)
                if self._read_only
                else connect(self.path, self._busy_seconds),
            )
        except sqlite3.DatabaseError as error:
            refuse(self.path, error)
            raise
        with self._lock:
            # Which file it is is known once it is open: SQLite makes a missing one.
            self._identity = self._identity or _identity(self.path)
            if self._closed:
                # `close` came while we connected, and did not see this connection.
                connection.db.close()
            self._refuse_closed()
            self._open[threading.current_thread()] = connection
        self._local.connection = connection
        return connection

    @contextmanager
    def _inner(self, conn: sqlite3.Connection) -> Iterator[None]:
        """Make a part of an open transaction that can be undone alone.

        Savepoints are named by their depth: SQLite then knows the statements already.
        """
        connection: ThreadConnection = self._local.connection
        name = f"inner_{connection.depth}"
        conn.execute(f"SAVEPOINT {name}")
        connection.depth += 1
        try:
            yield
        except BaseException:
            if conn.in_transaction:  # else the error has undone all of it
                conn.execute(f"ROLLBACK TO {name}")
                conn.execute(f"RELEASE {name}")
            raise
        else:
            conn.execute(f"RELEASE {name}")
        finally:
            connection.depth -= 1

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"{self.path} is closed; open the database again")

    def _refuse_moved(self) -> None:
        """Raise StoreBroken when the file is no longer the one that was opened first.

        What is written to a file that was deleted or moved is lost, and to one that took its place
        it is somebody else's.
        """
        if self._identity is not None and _identity(self.path) != self._identity:
            raise StoreBroken(
                f"{self.path} was deleted, moved or replaced while it was open: stop every program "
                f"that works on it; {RESTORE}"
            )

    def _refuse_lost_log(self, connection: ThreadConnection) -> None:
        """Raise StoreBroken when the log that a connection writes to was deleted or replaced.

        SQLite would go on writing to the deleted log, and a kill would lose every commit in it. The
        log is still open here, so its commits are put into the database first. They are not when
        another program has begun a log of its own: the database is that program's then.
        """
        if connection.log is not None and _identity(self._log_path) != connection.log:
            if not _has_content(self._log_path):
                connection.db.execute("PRAGMA wal_checkpoint(FULL)")
            raise StoreBroken(
                f"{self._log_path} was deleted or replaced while the database was open: stop every "
                "program that works on it, gracefully, so that what it did is kept; then start anew"
            )

    @contextmanager
    def _turn(self, db: sqlite_utils.Database, wait_seconds: float | None) -> Iterator[None]:
        """Wait for our turn among threads and programs, and begin a transaction."""
        connection: ThreadConnection = self._local.connection
        usual = self._busy_seconds
        seconds = usual if wait_seconds is None else wait_seconds
        end = MONOTONIC() + seconds
        # SQLite lets waiting writers guess when to try again: threads of ours queue first, or one
        # may starve.
        if not self._line.enter(seconds):
            raise StoreUnavailable(
                f"{self.path}: database is locked; another thread of this program is writing to it"
            )
        try:
            # Checked after the wait: the file may have been replaced meanwhile.
            self._refuse_moved()
            self._refuse_lost_log(connection)
            # The queue took part of the time; SQLite may wait only for what is left of it.
            patience = _milliseconds(end - MONOTONIC())
            other = patience != _milliseconds(usual)
            if other:
                db.execute(f"PRAGMA busy_timeout = {patience}")
            try:
                # A deferred transaction fails at once when it turns from reading to writing behind
                # another writer.
                db.conn.execute("BEGIN IMMEDIATE")
            finally:
                if other:
                    db.execute(f"PRAGMA busy_timeout = {_milliseconds(usual)}")
            self._turns += 1
            # Only now: the log is certain to be there once a transaction has begun.
            connection.log = connection.log or _identity(self._log_path)
            yield
        finally:
            self._line.leave()


def quick_check(store: Store) -> str:
    """Read the file through; return "ok" or what is damaged first."""
    try:
        return str(store.value("PRAGMA quick_check(1)"))
    except StoreUnavailable as error:
        return str(error)


def connect(path: Path, busy_seconds: float) -> sqlite_utils.Database:
    """Open a connection and check its settings; raises ConfigError when one cannot be had."""
    db = _plain(path, busy_seconds)
    try:
        _set(db, path, {**SETTINGS, "busy_timeout": _milliseconds(busy_seconds)})
    except BaseException:
        db.close()
        raise
    return db


def _set(db: sqlite_utils.Database, path: Path, wanted: Mapping[str, object]) -> None:
    for name, value in wanted.items():
        db.execute(f"PRAGMA {name} = {value}").fetchone()
    # SQLite ignores a setting that it cannot give, such as WAL on a network share.
    for name, value in wanted.items():
        given = db.execute(f"PRAGMA {name}").fetchone()[0]
        if given != value:
            raise ConfigError(
                f"{path}: SQLite gives {name}={given} where Torra needs {value}; "
                "keep the database on a local disk"
            )


def connect_guest(path: Path, busy_seconds: float) -> sqlite_utils.Database:
    """Open a file of another program as it is: it must exist, and its settings stay."""
    if not path.is_file():
        raise StoreUnavailable(f"{path} is not there; put it back, or take it out of desk.json")
    return _plain(path, busy_seconds)


def connect_reader(path: Path, *, still: bool = False) -> sqlite_utils.Database:
    """Open an existing file for reading only; nothing is written, and its log stays as it is.

    `still` promises that nobody writes to it; such a file opens on a read-only volume too.
    """
    place = f"{uri_of(path.absolute())}?mode=ro{'&immutable=1' if still else ''}"
    db = _plain(place, BUSY_SECONDS, uri=True)
    db.execute("PRAGMA query_only = ON")
    return db


def uri_of(path: PurePath) -> str:
    """Return a file's URI as SQLite takes it: a share of Windows is a part of the path there.

    SQLite refuses a host (sqlite.org/uri.html: the authority is empty or `localhost`).
    """
    uri = path.as_uri()
    return uri if uri.startswith("file:///") else uri.replace("file://", "file:////", 1)


def inspect(path: Path, busy_seconds: float = BUSY_SECONDS) -> None:
    """Raise ConfigError when there is a file that is no SQLite database; change nothing."""
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; name a database file")
    if not path.exists():
        return
    with closing(_plain(path, busy_seconds)) as db:
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        # Locked, or a failing disk: that says nothing about what the file is.
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            raise ConfigError(
                f"{path} is not a database ({error}); move it away, or: {RESTORE}"
            ) from error


def copy(db: sqlite_utils.Database, target: Path) -> Path:
    """Copy a database to a new file; the copy is read through before it gets its name."""
    owner_only.make_folder(target.parent)
    partial = target.with_name(target.name + ".partial")
    # Left by a copy that was interrupted.
    partial.unlink(missing_ok=True)
    owner_only.make_file(partial)
    try:
        _copy_into(db, partial)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return partial.replace(target)


def _copy_into(db: sqlite_utils.Database, partial: Path) -> None:
    with closing(_plain(partial, BUSY_SECONDS)) as written:
        db.conn.backup(written.conn)
        # The copy takes over WAL, and would be a file with two others beside it.
        written.execute("PRAGMA journal_mode = DELETE").fetchone()
        result = written.execute("PRAGMA quick_check").fetchone()[0]
    if result != "ok":
        raise StoreUnavailable(
            f"the copy {partial} is damaged: {' '.join(result.split())}; `torra doctor` tells "
            "whether the database is, else check the volume"
        )


def _identity(path: Path) -> FileIdentity | None:
    """Return which file lies at a path, None when none does."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def stamp(moment: datetime) -> str:
    """Write a time for a column that is compared as text: whole seconds, ISO, Z."""
    return iso(moment.replace(microsecond=0) if moment.microsecond else moment)


def _stored(values: Iterable[object]) -> list[object]:
    return [stamp(value) if isinstance(value, datetime) else value for value in values]


def to_json(value: object) -> str:
    """Write JSON; raises ValueError on a number that is not finite."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _plain(place: Path | str, busy_seconds: float, *, uri: bool = False) -> sqlite_utils.Database:
    connection = sqlite3.connect(
        # isolation_level=None: Python begins no transaction behind our back.
        # check_same_thread=False: `close` closes the idle connections of other threads.
        place,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
        uri=uri,
    )
    # What lies in a file may not call functions that reach beyond it.
    connection.execute("PRAGMA trusted_schema = OFF")
    return sqlite_utils.Database(connection, execute_plugins=False)


def _milliseconds(seconds: float) -> int:
    """Return a wait as SQLite counts it."""
    return max(0, round(seconds * 1000))


def _refuse_infinite(values: Iterable[object], place: str) -> None:
    for value in values:
        if isinstance(value, float) and not math.isfinite(value):
            # SQLite would quietly store NaN as NULL.
            raise ValueError(f"a number that is not finite may not be stored: {value} in {place}")
