"""The checks of `torra run` before it trades: refuse to start, start HALTED, or say something.

The answer depends on what can still be relied on. If the database cannot be (damaged, gone, half
restored, of a newer program), the desk does not start: ConfigError, with the command that repairs
it. A damaged one also puts the HALT files down, for terminals must not go on with what a desk
without a memory has sent. If the machine cannot be (hardly any disk, a clock that is wrong), or the
newest steps of the desk are lost, it starts, shows its pages and is HALTED, until a person has
repaired that and resumes. What is merely worth knowing is said. torra.desk.wiring refuses bad
settings, keys and channels; torra.store.connection refuses a disk that cannot keep a write-ahead
log.

The whole file is read (`quick_check`, about a second for a million ticks), the tables on which
money depends are compared with their indexes, and stored times are parsed. Only `check` changes
something: those HALT files, what a cut-off `torra init` left half done, and the rights of others
to a home. `torra doctor` uses the single checks too.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from torra import owner_only
from torra.backup.log_end import lacks_newest_commit
from torra.backup.restore import command, cut_off, repair
from torra.clock import System, iso, parse
from torra.config import load_desk
from torra.errors import ConfigError, SchemaMismatch
from torra.home import DATABASE, LOST, lost
from torra.store.connection import LOCKED, WANTED_BYTES, connect_reader
from torra.store.migrations import altered, structure
from torra.store.stored_times import unreadable
from torra.store.ticks import CLOCK_SET_BACK
from torra.store.trade.signals import altered_orders
from torra.trading.kill_switch import files_to_halt, put_down

SAFE_SQLITE: Final = (3, 51, 3)
"""Older releases can corrupt a WAL that two connections reset at once (sqlite.org, 2026-03)."""

MIN_FREE_BYTES: Final = WANTED_BYTES
"""With less a desk starts HALTED; on a volume without any room it does not start, because SQLite
cannot even open the database (torra.store.connection says it)."""

EARLIEST: Final = parse("2026-01-01")
"""No Torra existed before this: a clock that shows an earlier time was never set."""

MONEY: Final = (
    "signals", "signal_events", "proposals", "latches", "desk_state", "desk_run", "trading_config",
    "ledger", "alarms", "bridges", "paper_cursor", "win_rates", "audit",
)  # fmt: skip
"""Tables whose indexes are compared with their rows too: small, and orders depend on them."""

NO_DAMAGE: Final = (LOCKED, "unable to open", "disk I/O")
"""Words in errors of SQLite which a restore would not mend."""

ZEROES: Final = 0
"""Bytes of a database that a power cut emptied."""


@dataclass(frozen=True, slots=True)
class StartupProblem:
    """One thing that keeps the desk from trading, and what repairs it."""

    what: str
    remedy: str

    @property
    def line(self) -> str:
        """Both in a line."""
        return f"{self.what}; {self.remedy}"


def check(home: Path, say: Callable[[str], None]) -> str:
    """Return why a desk must begin HALTED, "" when it need not; raises ConfigError to refuse.

    `say` is called with what is worth knowing.
    """
    cut = of_log(home / DATABASE)  # first: whoever opens the database makes the log's index anew
    trouble = of_restore(home) or of_database(home / DATABASE, partial(_halt, home))
    if trouble is not None:
        raise ConfigError(f"the desk does not start: {trouble.line}")
    for told in of_rights(home):
        say(told)
    if old := of_sqlite(sqlite3.sqlite_version_info):
        say(f"note: {old.line}")
    for told in of_strangers(home / DATABASE):
        say(f"note: {told}")
    now = System().real_now()
    found = [*cut, *of_disk(home), *of_clock(home / DATABASE, now), *of_orders(home / DATABASE)]
    return "; ".join(f"start: {item.line}, then: {command(home, 'resume')}" for item in found)


def of_rights(home: Path) -> list[str]:
    """Take the rights of others away from a home with a database; return what is to be said."""
    mended = owner_only.mend(home)
    return [f"note: {mended}"] if mended else []


# --- what refuses ---------------------------------------------------------------------------------


def of_restore(home: Path) -> StartupProblem | None:
    """Report a restore that was cut off."""
    again = cut_off(home)
    return StartupProblem(f"a restore of {home} was cut off", f"end it: {again}") if again else None


def of_database(
    path: Path, alarm: Callable[[str], object] = lambda _: None
) -> StartupProblem | None:
    """Report what keeps a desk from relying on its database; None when it can.

    `alarm` is called with what makes it unusable before the remedy is worked out, which reads
    backups.
    """
    home = path.parent
    if lost(path):
        return _unusable(home, f"{path} {LOST}", alarm)
    if not path.is_file() or path.stat().st_size == ZEROES:
        return None  # torra.store.connection says it
    try:
        damage = _damage(path)
        with closing(connect_reader(path)) as db:
            # The schema of a damaged file may not even be readable.
            refused = () if damage else structure(db).refused
    except SchemaMismatch as error:
        return StartupProblem(error.what, f"{error.remedy}: {repair(home)}")
    except sqlite3.DatabaseError as error:
        if any(word in str(error) for word in NO_DAMAGE):
            return None  # torra.store.connection says what it is
        damage, refused = str(error), ()
    if damage or refused:
        what = f"{path} is damaged ({damage})" if damage else altered(path, refused)
        return _unusable(home, what, alarm)
    return None


def _unusable(home: Path, what: str, alarm: Callable[[str], object]) -> StartupProblem:
    # First the HALT files: looking through the backups takes time, and terminals trade meanwhile.
    alarm(what)
    return StartupProblem(
        what, f"put a backup in its place: {repair(home)} (torra restore lists all)"
    )


def _halt(home: Path, why: str) -> None:
    put_down(files_to_halt(home, lambda: load_desk(home)), why)


def _damage(path: Path) -> str:
    """Return what is damaged in a database first, "" for nothing; raises sqlite3.DatabaseError.

    The two looks read side by side: SQLite lets go of the interpreter while it reads.
    """
    looks = (_broken, _no_times)
    with ThreadPoolExecutor(len(looks)) as pool:
        return next(filter(None, pool.map(lambda look: look(path), looks)), "")


def _broken(path: Path) -> str:
    """Return what SQLite itself finds: broken pages, rows against their rules and indexes."""
    with closing(connect_reader(path)) as db:
        there = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
        looks = ["quick_check(1)"]
        looks += [f"integrity_check('{name}')" for name in MONEY if name in there]
        for look in looks:
            verdict = str(db.execute(f"PRAGMA {look}").fetchone()[0])
            if verdict != "ok":
                return " ".join(verdict.split())
    return ""


def _no_times(path: Path) -> str:
    """Return a stored time that cannot be read, "" for none."""
    with closing(connect_reader(path)) as db:
        return next(unreadable(db.conn, MONEY), "")


# --- what halts -----------------------------------------------------------------------------------


def of_log(database: Path) -> list[StartupProblem]:
    """Report a log that lost its newest commits; only before this process opens the database."""
    if not lacks_newest_commit(database):
        return []
    log = database.with_name(f"{database.name}-wal")
    what = f"{log} was cut off or replaced: the newest steps of this desk are missing in it"
    return [StartupProblem(what, "compare its pages with positions and orders in MetaTrader 5")]


def of_disk(home: Path) -> list[StartupProblem]:
    """Report a volume that has no room for a home to work."""
    # Before the first start there is no home yet; its volume is that of the next folder above.
    folder = next(path for path in (home.absolute(), *home.absolute().parents) if path.exists())
    free = shutil.disk_usage(folder).free
    if free >= MIN_FREE_BYTES:
        return []
    what = f"{folder} has {free // 1_000_000} MB free, and a desk needs {MIN_FREE_BYTES // 10**6}"
    return [StartupProblem(what, "make room there")]


def of_clock(database: Path, now: datetime) -> list[StartupProblem]:
    """Report a clock that cannot be right: unset, or behind what the desk wrote."""
    remedy = "set this machine's clock (timedatectl set-ntp true)"
    if now < EARLIEST:
        return [StartupProblem(f"the clock says {iso(now)}, which is long past", remedy)]
    last = _last_sign(database)
    if last is None or now >= last - CLOCK_SET_BACK:
        return []
    behind = timedelta(seconds=round((last - now).total_seconds()))
    what = f"the clock says {iso(now)}, {behind} before this desk's last sign of life"
    return [StartupProblem(what, f"{remedy}, if it was not ahead until now")]


def of_orders(database: Path) -> list[StartupProblem]:
    """Report orders and positions that are not finished and not as they were decided."""
    if not database.exists():
        return []
    try:
        with closing(connect_reader(database)) as db:
            found = altered_orders(db) if db.table("signals").exists() else []
    except sqlite3.DatabaseError:  # torra.store.connection says it
        return []
    if not found:
        return []
    what = f"{len(found)} unfinished orders are not as they were decided ({', '.join(found[:3])})"
    return [
        StartupProblem(
            what, "compare them with MetaTrader 5 and with torra signals, or restore a backup"
        )
    ]


def _last_sign(database: Path) -> datetime | None:
    if not database.exists():
        return None
    try:
        with closing(connect_reader(database)) as db:
            row = db.execute("SELECT seen_at FROM desk_run").fetchone()
    except sqlite3.DatabaseError:  # before its first desk it has no such table
        return None
    return parse(row[0]) if row else None


# --- what is told ---------------------------------------------------------------------------------


def of_strangers(database: Path) -> list[str]:
    """Tell what in a database is not Torra's; it is left alone."""
    if not database.is_file() or database.stat().st_size == ZEROES:
        return []
    try:
        with closing(connect_reader(database)) as db:
            found = structure(db).foreign
    except (sqlite3.DatabaseError, SchemaMismatch):  # said elsewhere
        return []
    return [f"{database} also holds {said}, which is not Torra's" for said in found]


def of_sqlite(found: Sequence[int]) -> StartupProblem | None:
    """Report an SQLite that has the fault of two connections which reset the log at once."""
    if tuple(found[:3]) >= SAFE_SQLITE:
        return None
    told = ".".join(str(part) for part in found[:3])
    return StartupProblem(
        f"SQLite {told} has a rare fault when two connections checkpoint at once",
        "one desk per database keeps clear of it; SQLite 3.51.3 or newer ends it",
    )
