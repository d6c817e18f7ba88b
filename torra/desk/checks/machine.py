"""The checks of the machine and of the files of a home; a desk makes most of them at its start.

The whole database is read (`quick_check`, about a second for a million ticks), the tables on which
money depends are compared with their indexes, and stored times are parsed. Nothing is changed but
by `take_rights`.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from torra import owner_only
from torra.backup.log_end import lacks_newest_commit
from torra.backup.restore import cut_off, repair
from torra.clock import System, iso, parse
from torra.config import ROOT
from torra.desk.checks.result import CheckResult, Context
from torra.errors import SchemaMismatch
from torra.home import LOST, lost
from torra.store.connection import connect_reader
from torra.store.faults import LOCKED, WANTED_BYTES
from torra.store.migrations import altered, structure
from torra.store.stored_times import unreadable
from torra.store.ticks import CLOCK_SET_BACK
from torra.store.trade.signals import altered_orders

TESTED_PYTHONS: Final = ((3, 11), (3, 12), (3, 13))
PACKAGES: Final = (
    "flask", "numpy", "pandas", "pandas-ta-classic", "sqlite-utils", "apscheduler", "pydantic",
    "click", "waitress", "anthropic", "google-genai", "openai", "genai-prices", "finnhub-python",
)  # fmt: skip
SAMPLE: Final = ("BTCUSD_M15.csv", "BTCUSD_H1.csv", "EURUSD_H1.csv")

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


def log(context: Context) -> Iterator[CheckResult]:
    """Report a log that lost its newest commits; only before this process opens the database."""
    database = context.database
    if lacks_newest_commit(database):
        lost_part = "was cut off or replaced: the newest steps of this desk are missing in it"
        yield CheckResult(
            "log",
            "alert",
            f"{database.with_name(f'{database.name}-wal')} {lost_part}",
            "compare its pages with positions and orders in MetaTrader 5",
        )


def python(_: Context) -> Iterator[CheckResult]:
    """Check the version of Python."""
    name = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] in TESTED_PYTHONS:
        yield CheckResult("python", "ok", name)
    else:
        yield CheckResult("python", "warn", f"{name} is untested", "use Python 3.11, 3.12 or 3.13")


def packages(_: Context) -> Iterator[CheckResult]:
    """Check that every package is installed."""
    installed = []
    for package in PACKAGES:
        try:
            installed.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            yield CheckResult("package", "alert", f"{package} is missing", "run make run again")
    if installed:
        yield CheckResult("packages", "ok", ", ".join(installed))


def sqlite(_: Context) -> Iterator[CheckResult]:
    """Report an SQLite that has the fault of two connections which reset the log at once.

    It is a note: nobody can mend it from here.
    """
    if sqlite3.sqlite_version_info >= SAFE_SQLITE:
        yield CheckResult("sqlite", "ok", sqlite3.sqlite_version)
        return
    yield CheckResult(
        "sqlite",
        "note",
        f"SQLite {sqlite3.sqlite_version} has a rare fault when two connections checkpoint at once",
        "one desk per database keeps clear of it; SQLite 3.51.3 or newer ends it",
    )


def restore(context: Context) -> Iterator[CheckResult]:
    """Report a restore that was cut off."""
    if again := cut_off(context.home):
        what = f"a restore of {context.home} was cut off"
        yield CheckResult("home", "alert", what, f"end it: {again}")


def rights(context: Context) -> Iterator[CheckResult]:
    """Check that nobody else can read the home."""
    if owner_only.open_to_others(context.home):
        what = f"others of this machine can read {context.home}"
        yield CheckResult(
            "home", "warn", what, f"start the desk once, or: chmod 700 {context.home}"
        )


def take_rights(context: Context) -> Iterator[CheckResult]:
    """Take the rights of others away from a home with a database."""
    if what := owner_only.mend(context.home):
        yield CheckResult("home", "note", what)


def disk(context: Context) -> Iterator[CheckResult]:
    """Check that the volume of a home has room."""
    home = context.home
    # Before the first start there is no home yet; its volume is that of the next folder above.
    folder = next(path for path in (home.absolute(), *home.absolute().parents) if path.exists())
    free = shutil.disk_usage(folder).free
    if free >= MIN_FREE_BYTES:
        yield CheckResult("home", "ok", f"{home}: {free // 1_000_000} MB free")
        return
    what = f"{folder} has {free // 1_000_000} MB free, and a desk needs {MIN_FREE_BYTES // 10**6}"
    yield CheckResult("home", "alert", what, "make room there")


def clock(context: Context) -> Iterator[CheckResult]:
    """Report a clock that cannot be right: unset, or behind what the desk wrote."""
    now = context.now
    remedy = "set this machine's clock (timedatectl set-ntp true)"
    if now < EARLIEST:
        yield CheckResult(
            "clock", "alert", f"the clock says {iso(now)}, which is long past", remedy
        )
        return
    last = None
    if context.database.exists():
        try:
            with closing(connect_reader(context.database)) as db:
                row = db.execute("SELECT seen_at FROM desk_run").fetchone()
                last = parse(row[0]) if row else None
        except (sqlite3.DatabaseError, ValueError):  # no desk yet, or a text that is no time
            pass
    if last is None or now >= last - CLOCK_SET_BACK:
        yield CheckResult("clock", "ok", iso(now.replace(microsecond=0)))
        return
    behind = timedelta(seconds=round((last - now).total_seconds()))
    what = f"the clock says {iso(now)}, {behind} before this desk's last sign of life"
    yield CheckResult("clock", "alert", what, f"{remedy}, if it was not ahead until now")


def sample(_: Context) -> Iterator[CheckResult]:
    """Check that the shipped bars are there."""
    if missing := [name for name in SAMPLE if not (ROOT / "sample_data" / name).exists()]:
        yield CheckResult("sample", "alert", f"missing {', '.join(missing)}", "get the files again")
    else:
        now = iso(System().now())[:16]
        yield CheckResult("sample", "ok", f"shipped bars are there; it is {now}Z")


# --- the database ---------------------------------------------------------------------------------


def database(context: Context) -> Iterator[CheckResult]:
    """Report what keeps a desk from relying on its database."""
    path, home = context.database, context.home
    if lost(path):
        yield _unusable(context, f"{path} {LOST}")
        return
    if not path.exists():
        yield CheckResult("database", "ok", f"{path} will be made at the first start")
        return
    damage, refused = "", tuple[str, ...]()
    try:
        # torra.store.connection says it of what is no file, and of one that a power cut emptied.
        if path.is_file() and path.stat().st_size:
            damage = _damage(path)
            with closing(connect_reader(path)) as db:
                # The schema of a damaged file may not even be readable.
                refused = () if damage else structure(db).refused
    except SchemaMismatch as error:
        yield CheckResult("database", "alert", error.what, f"{error.remedy}: {repair(home)}")
        return
    except sqlite3.DatabaseError as error:
        if any(word in str(error) for word in NO_DAMAGE):
            return  # torra.store.connection says what it is
        damage = str(error)
    if damage or refused:
        what = f"{path} is damaged ({damage})" if damage else altered(path, refused)
        yield _unusable(context, what)
    else:
        yield CheckResult("database", "ok", f"{path}: sound, {path.stat().st_size // 1000} kB")


def _unusable(context: Context, what: str) -> CheckResult:
    # First the HALT files: looking through the backups takes time, and terminals trade meanwhile.
    context.alarm(what)
    remedy = f"put a backup in its place: {repair(context.home)} (torra restore lists all)"
    return CheckResult("database", "alert", what, remedy)


def _damage(path: Path) -> str:
    """Return what is damaged in a database first, "" for nothing; raises sqlite3.DatabaseError.

    The two looks read side by side: SQLite lets go of the interpreter while it reads.
    """
    looks = (_broken, _unreadable_time)
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


def _unreadable_time(path: Path) -> str:
    with closing(connect_reader(path)) as db:
        return next(unreadable(db.conn, MONEY), "")


def strangers(context: Context) -> Iterator[CheckResult]:
    """Say what in a database is not Torra's; it is left alone."""
    path = context.database
    if not path.is_file() or not path.stat().st_size:
        return
    try:
        with closing(connect_reader(path)) as db:
            foreign = structure(db).foreign
    except (sqlite3.DatabaseError, SchemaMismatch):  # `database` reports it
        return
    for name in foreign:
        yield CheckResult("database", "note", f"{path} also holds {name}, which is not Torra's")


def orders(context: Context) -> Iterator[CheckResult]:
    """Report orders and positions that are not finished and not as they were decided."""
    if not context.database.exists():
        return
    try:
        with closing(connect_reader(context.database)) as db:
            wrong = altered_orders(db) if db.table("signals").exists() else []
    except sqlite3.DatabaseError:  # torra.store.connection says it
        return
    if wrong:
        what = f"{len(wrong)} unfinished orders are not as they were decided"
        yield CheckResult(
            "orders",
            "alert",
            f"{what} ({', '.join(wrong[:3])})",
            "compare them with MetaTrader 5 and with torra signals, or restore a backup",
        )
