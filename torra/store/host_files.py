"""Feeds a host's own sentiment files with the rows of its symbols, after the desk has stored them.

`symbol_databases` of desk.json maps a symbol to the file of an existing scorer. Two files cannot be
written as one, so the desk's database comes first and this follows. A thread of its own writes each
new row by its torra_key. It compares both files whenever the desk sets to work, and after any
failure. So each row is there once, however often anything crashes. A file that is locked, full or
gone is behind until it can be written again, and never keeps a tick waiting.

The file keeps its journal mode, its rows and the columns that Torra does not know; its sentiment
table gains two columns and an index (after a backup). A file that lacks what Torra needs raises
ConfigError at start.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import sqlite_utils

from torra.config import Instance
from torra.errors import ConfigError, StoreUnavailable
from torra.services import Service
from torra.store.connection import KEY_END, RowDict, Store, connect_guest
from torra.store.faults import LOCKED, explain
from torra.store.migrations import take_over

PAGE_ROWS: Final = 2000
"""Rows that are compared at a time."""

GUEST_BUSY_SECONDS: Final = 2.0
"""Seconds that a write waits for the lock of the host's own program."""

RETRY_SECONDS: Final = 15.0
"""After this time a file that could not be written is tried again, if no new row comes before."""

COMPARE_EVERY: Final = 200
"""Ticks after which an instance's file is compared anew, to find rows that nobody announced."""

FED: Final = (
    "timestamp", "timeframe", "price_action", "key_levels", "momentum", "structure", "ath",
    "composite", "consensus", "verdict", "source_type", "agent_deliberation", "torra_key",
)  # fmt: skip
"""Columns of a row besides its number: what a scorer's table has, and the two that Torra adds."""

# SQL: the upsert of sqlite-utils would make the table in a file whose owner took it out.
WRITE: Final = (
    f"INSERT INTO sentiment ({', '.join(FED)}) VALUES ({', '.join('?' * len(FED))}) "  # noqa: S608
    "ON CONFLICT (torra_key) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in FED[:-1])
)

log = logging.getLogger("torra")


def files_of(
    instances: Iterable[Instance], named: Mapping[str, str], home: Path
) -> dict[str, Path]:
    """Return the host's file of each instance that has one; raises ConfigError.

    `named` maps an instance's name or its symbol to a path, relative to the home.
    """
    watched = list(instances)
    known = sorted({name for item in watched for name in (item.id, item.symbol)})
    for word in named:
        if word not in known:
            raise ConfigError(
                f"symbol_databases names {word}, which this desk does not watch; it watches "
                f"{', '.join(known)}"
            )
    files = {
        item.id: home / Path(name).expanduser()
        for item in watched
        if (name := named.get(item.id) or named.get(item.symbol))
    }
    for path in files.values():
        sharing = [name for name, other in files.items() if other == path]
        if len(sharing) > 1:
            raise ConfigError(
                f"symbol_databases: {', '.join(sharing)} would write to the same file {path}; "
                "name the instance, not the symbol, that feeds it"
            )
    return files


class SymbolDatabases(Service):
    """The host's files of one desk, and the thread that feeds them."""

    def __init__(
        self, files: Mapping[str, Path], source: Store, now: Callable[[], datetime]
    ) -> None:
        super().__init__("symbol databases", RETRY_SECONDS, self._turn, at_once=True)
        self._files = dict(files)
        self._source = source
        self._now = now
        self._keys: deque[str] = deque()
        self._ticks: Counter[str] = Counter()
        self._behind: dict[str, str] = {}

    def check(self) -> None:
        """Make every file ready; raises ConfigError for one that is no scorer's."""
        for path in self._files.values():
            if not path.is_file():
                raise ConfigError(
                    f"symbol_databases names {path}, and there is no such file; name the "
                    "existing scorer's database, or leave the symbol out"
                )
            try:
                with closing(connect_guest(path, GUEST_BUSY_SECONDS)) as db:
                    take_over(db, path, self._now())
            except sqlite3.DatabaseError as error:
                if LOCKED not in str(error):
                    raise ConfigError(f"symbol_databases: {explain(path, error)}") from error
                # A host that writes just now is no reason not to start.
                log.warning("symbol_databases: %s; it is made ready later", explain(path, error))

    def behind(self) -> dict[str, str]:
        """Return why a file is behind, by instance; empty when all are up to date."""
        return dict(self._behind)

    def start(self) -> None:
        """Compare every file with the desk's database, and write new rows from now on."""
        if self._files:
            super().start()

    def open(self) -> None:
        """Begin with a comparison: what came before is found by it."""
        self._behind = dict.fromkeys(self._files, "not compared yet")

    def on_change(self, change: Mapping[str, Any]) -> None:
        """Note a change that the desk tells (torra.desk.event_stream); returns at once."""
        if change["what"] == "tick" and change["instance"] in self._files:
            self._keys.append(
                "|".join(change[name] for name in ("instance", "timeframe", "bar_time"))
            )
            self.wake()

    def _turn(self) -> None:
        # Files that are behind first: `repair` also finds the rows that wait in the queue.
        for instance in list(self._behind):
            self._try(instance, partial(self.repair, instance))
        while self._keys and not self.ending:
            key = self._keys.popleft()
            instance = key.partition("|")[0]
            self._ticks[instance] += 1
            if not self._ticks[instance] % COMPARE_EVERY:
                self._try(instance, partial(self.repair, instance))
            elif instance not in self._behind:
                self._try(instance, partial(self._feed, key))

    def _try(self, instance: str, step: Callable[[], object]) -> None:
        path = self._files[instance]
        try:
            step()
        except (sqlite3.Error, StoreUnavailable, ConfigError, OSError) as error:
            # One message when it falls behind, not one at every try.
            if instance not in self._behind:
                log.error("the file %s of %s is behind: %s", path, instance, error)
            self._behind[instance] = str(error)
        else:
            self._behind.pop(instance, None)

    def _feed(self, key: str) -> None:
        path = self._files[key.partition("|")[0]]
        if row := sentiment_row(self._source, key):
            with closing(connect_guest(path, GUEST_BUSY_SECONDS)) as db:
                _write(db, [row])

    def repair(self, instance: str) -> int:
        """Write the rows that an instance's file lacks; return how many.

        Rows older than the oldest that the file holds of their timeframe are left alone: its owner
        has taken them out.
        """
        path, after, written = self._files[instance], "", 0
        with closing(connect_guest(path, GUEST_BUSY_SECONDS)) as db:
            take_over(db, path, self._now())
            oldest = cache(partial(_first_key, db))
            while rows := sentiment_page(self._source, instance, after, PAGE_ROWS):
                first, after = rows[0]["torra_key"], rows[-1]["torra_key"]
                sql = "SELECT torra_key FROM sentiment WHERE torra_key BETWEEN ? AND ?"
                there = {key for (key,) in db.execute(sql, (first, after))}
                missing = [
                    row for row in rows
                    if (key := row["torra_key"]) not in there
                    and key >= oldest(key.rpartition("|")[0])
                ]  # fmt: skip
                _write(db, missing)
                written += len(missing)
        return written


def _write(db: sqlite_utils.Database, rows: Sequence[Mapping[str, Any]]) -> None:
    with db.atomic():
        db.conn.executemany(WRITE, [[row[name] for name in FED] for row in rows])


def _first_key(db: sqlite_utils.Database, stream: str) -> str:
    """Return the first key of a stream in a file, "" when it holds none of it."""
    sql = "SELECT min(torra_key) FROM sentiment WHERE torra_key > ? AND torra_key < ?"
    return str(db.execute(sql, (f"{stream}|", f"{stream}{KEY_END}")).fetchone()[0] or "")


def sentiment_page(store: Store, instance: str, after: str, limit: int) -> list[RowDict]:
    """Return an instance's rows in the order of their keys, those above `after`.

    `after` is "" for the first page. The columns are FED.
    """
    return store.rows(
        f"SELECT {', '.join(FED)} FROM sentiment "  # noqa: S608 - names of ours
        "WHERE torra_key > ? AND torra_key < ? ORDER BY torra_key LIMIT ?",
        after or f"{instance}|", f"{instance}{KEY_END}", limit,
    )  # fmt: skip


def sentiment_row(store: Store, torra_key: str) -> RowDict | None:
    """Return the row of a tick, None when there is none."""
    return store.row(
        f"SELECT {', '.join(FED)} FROM sentiment WHERE torra_key = ?",  # noqa: S608
        torra_key,
    )
