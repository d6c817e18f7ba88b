"""Puts a backup in the place of a home's database, safely enough to be typed at night.

`plan` reads everything through and changes nothing; `carry_out` does what was planned. The database
that is there is never deleted: it goes into a folder beside the backups, with its log. No restore
happens under a desk, or under a program that has the database open. Settings that are there stay,
unless their return is asked for; what was handed to a market stays remembered in any case.
Afterwards trading is HALTED and only a person resumes, because the broker may know of orders that
the backup does not.

A restore that was cut off at any point leaves a mark, with which no desk starts
(torra.desk.checks says what to type); the same command again ends it. A mistake raises
ConfigError, and then nothing was changed; a failure half-way raises a TorraError that says so.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from instance_database import open_home
from torra import owner_only
from torra.backup.copies import (
    FACTS,
    FILES,
    SENTIMENT,
    Backup,
    check_room,
    examine,
    newest_tick,
    reader,
)
from torra.backup.files import MARK, compare, place_of
from torra.config import load_desk
from torra.desk_lock import DeskLock, is_locked
from torra.errors import MALFORMED, ConfigError, TorraError
from torra.home import BACKUP_FOLDER, DATABASE, HALT, SIDE_FILES, backups
from torra.regular_files import lies
from torra.store.connection import BUSY_SECONDS, connect_guest, connect_reader, copy, stamp
from torra.trading.commanding import COMMAND_LINE
from torra.trading.kill_switch import files_to_halt, put_down
from torra.verdict.signal_states import POSITION_STATES, UNDER_WAY
from torra.whole_files import sync_folder, write_whole

SYSTEM: Final = os.name
"""`nt` for Windows, where files that are open cannot be renamed and quotation marks are double."""

REPLACED: Final = re.compile(r"replaced-\d{8}T\d{6}Z")
"""A folder beside the backups with what a restore has replaced."""

SIGNALS: Final = "signals"
STAGED: Final = f"{DATABASE}.restoring"
EMPTY: Final = "an empty database"
LATER: Final = "SELECT count(*) FROM ticks WHERE state = 'done' AND close_time > ?"

SHARED_FIRST: Final = 0x40000002
SHARED_SIZE: Final = 510
"""Bytes of a database file on which SQLite holds a lock while somebody has it open in WAL mode
(sqlite.org, os.h: PENDING_BYTE + 2)."""

ADVICE: Final = (
    "look at the positions and orders in MetaTrader 5, start the desk, compare them with its "
    "pages, then: "
)
"""Advice for the person after a restore; the command that resumes follows."""


NOT_THERE: Final[Mapping[str, Any]] = {
    "sound": True, "newest_tick": "", "ticks_lost": 0, "under_way": [],
}  # fmt: skip
"""What a plan says of the database that it replaces where there is none.

`ticks_lost` counts ticks that closed after the backup's newest, None where it cannot be told.
`under_way` are its signals that may be in the market now: sid, instance, kind, side, lots, state
and bridge; None where they cannot be read.
"""


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The plan of a restore; `backup` is None for an empty database.

    `present` is the database that it would replace, as far as it can be read, None for none.
    """

    home: Path
    backup: Backup | None
    present: Mapping[str, Any] | None
    missing: list[str]
    differing: list[str]
    settings: bool
    kept: Path

    @property
    def what(self) -> str:
        """The words for what takes the database's place."""
        return str(self.backup.path) if self.backup else EMPTY

    @property
    def brought_back(self) -> list[str]:
        """The settings that are written."""
        return [*self.missing, *(self.differing if self.settings else ())]

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as a document."""
        return {
            "home": str(self.home),
            "backup": self.backup.as_dict() if self.backup else None,
            "replaced": str(self.kept) if self.present or self.kept.exists() else "",
            "present": dict(self.present or NOT_THERE),
            "settings": {
                "brought_back": self.brought_back,
                "left_as_they_are": [] if self.settings else self.differing,
            },
        }


# --- commands to type -----------------------------------------------------------------------------


def command(home: Path, *words: str | Path) -> str:
    """Return a command line that works wherever it is typed, in the quotation of the system."""
    parts = [str(word.absolute() if isinstance(word, Path) else word) for word in words]
    called = Path(sys.argv[0])
    # By its name, or where that is not found by its path.
    named = called.stem != "torra" or shutil.which("torra")
    program = "torra" if named else str(called.absolute())
    joined = subprocess.list2cmdline if SYSTEM == "nt" else shlex.join
    return joined([program, "--home", str(home.absolute()), *parts])


def repair(home: Path) -> str:
    """Return the command that puts the newest whole backup in place, or begins without one."""
    for path in backups(home / BACKUP_FOLDER):
        with suppress(ConfigError):
            return command(home, "restore", examine(path).path)
    return command(home, "restore", "--empty")


# --- looking --------------------------------------------------------------------------------------


def plan(home: Path, path: Path | None, now: datetime, *, settings: bool = False) -> RestorePlan:
    """Return what restoring a backup, or an empty database for None, would do; raises ConfigError.

    Reads the whole backup and changes nothing.
    """
    database = home / DATABASE
    if path is not None and path.exists() and database.exists() and path.samefile(database):
        raise ConfigError(f"{path} is the desk's database itself; name a backup")
    if is_locked(home):
        raise _desk_works(home)
    backup = _sound(home, path) if path is not None else None
    with alone(database):
        present = _present(database, backup.newest_tick if backup else "")
    missing, differing = compare(home, backup.files) if backup else ([], [])
    if backup is not None:
        places = (home.absolute(), *home.absolute().parents)
        check_room(backup.path, next(place for place in places if place.exists()))
    name = _marked(home).get("kept", "")
    # Where a restore that was cut off moved what was there.
    begun = home / BACKUP_FOLDER / name if REPLACED.fullmatch(name) else None
    if begun is not None and (begun / database.name).exists():  # the desk's own is there already
        present = {**(present or NOT_THERE), "ticks_lost": None, "under_way": None}
    folder = _folder(home, begun, now)
    return RestorePlan(home, backup, present, missing, differing, settings, folder)


def _folder(home: Path, begun: Path | None, now: datetime) -> Path:
    """Return the folder for what is there now; raises ConfigError when there is one of this second.

    What a restore began to move is moved to the end, for a log belongs to its database. Where its
    folder has a file already, the present one is another: nothing that was kept is written over.
    """
    parts = [part for part in _parts(home / DATABASE) if part.exists()]
    if begun is not None and not any((begun / part.name).exists() for part in parts):
        return begun
    moment = stamp(now).replace(":", "").replace("-", "")
    folder = home / BACKUP_FOLDER / f"replaced-{moment}"
    if folder.exists():
        raise ConfigError(f"{folder} is there already: try again in a second")
    return folder


def _sound(home: Path, path: Path) -> Backup:
    """Read a backup through; if it is not whole, name one that is."""
    try:
        return examine(path)
    except ConfigError as error:
        reason = f"{error}; nothing was changed"
        if home.exists() and any(other != path for other in backups(home / BACKUP_FOLDER)):
            reason += f". What can be done instead: {repair(home)}"
        raise ConfigError(reason) from error


@contextmanager
def alone(database: Path) -> Iterator[None]:
    """Keep every other program out of a database; raises ConfigError while one has it open."""
    with ExitStack() as files:
        if database.exists() and not _is_free(database, files):
            raise ConfigError(
                f"a program has {database} open, such as a viewer: end "
                "it first (Ctrl-C where it runs), then type this again; nothing was changed"
            )
        yield


def _is_free(database: Path, files: ExitStack) -> bool:
    """Return whether no program has a database open, and keep it so until `files` are closed.

    Windows renames no open file, not even to its own name. So a rename asks there, and we may not
    hold the file open ourselves either. Elsewhere the bytes that every open SQLite connection
    shares are locked.
    """
    try:
        if SYSTEM == "nt":
            database.rename(database)
        else:
            import fcntl  # noqa: PLC0415 - not everywhere

            handle = files.enter_context(database.open("r+b")).fileno()
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, SHARED_SIZE, SHARED_FIRST)
    except OSError:
        return False
    return True


def _desk_works(home: Path) -> ConfigError:
    return ConfigError(
        f"a desk works on {home}: end it first (Ctrl-C where it runs), then type this again; "
        "nothing was changed"
    )


def _present(database: Path, since: str) -> dict[str, Any] | None:
    """Return what is known of the database that is there, as far as it can be read.

    It may be damaged or older: each part is unknown where it cannot be read.
    """
    if not database.exists():
        return None
    present: dict[str, Any] = {
        "sound": False, "newest_tick": "", "ticks_lost": None, "under_way": None,
    }  # fmt: skip
    unreadable = suppress(sqlite3.DatabaseError)
    with unreadable, closing(connect_reader(database)) as db:
        verdict = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
        newest, tables = newest_tick(db), db.table_names()
        present |= {"sound": verdict == "ok", "newest_tick": newest}
        with unreadable:
            (present["ticks_lost"],) = db.execute(LATER, (since,)).fetchone()
        if SIGNALS in tables:
            marks = [f"({', '.join('?' * len(states))})" for states in (POSITION_STATES, UNDER_WAY)]
            sql = (
                "SELECT sid, instance, kind, side, lots, state, bridge FROM signals "  # noqa: S608
                f"WHERE (kind = 'open' AND state IN {marks[0]}) OR state IN {marks[1]} ORDER BY seq"
            )
            with unreadable:
                present["under_way"] = list(db.query(sql, (*POSITION_STATES, *UNDER_WAY)))
        elif SENTIMENT in tables:  # a scorer's from before Torra has sent none
            present["under_way"] = []
    return present


# --- doing ----------------------------------------------------------------------------------------


def carry_out(planned: RestorePlan) -> dict[str, Any]:
    """Do what was planned and return it as a document; raises ConfigError, and TorraError half-way.

    The order matters: the backup's copy is whole before anything of the desk is touched, the HALT
    files are down and the mark is set before its database moves, and the mark goes last.
    """
    home = planned.home
    database, staged = home / DATABASE, home / STAGED
    begun = False
    lock = DeskLock(home)
    try:
        owner_only.make_folder(home)
        locked = lock.acquire()
    except OSError as error:
        raise _failed(planned, error, begun=False) from error
    if not locked:  # another restore may be under way: its copy is left alone
        raise _desk_works(home)
    try:
        if planned.backup is not None:
            _stage(planned.backup.path, staged)
        with alone(database):
            files = files_to_halt(home, lambda: load_desk(home))
            # The terminals first: they may still hold orders that the backup does not know.
            not_halted = put_down(files, _reason(planned))
            # The desk's own HALT file is the least: the channels may be on drives that are gone.
            if not lies(home / HALT):
                raise ConfigError(f"nothing was changed: cannot halt first: {not_halted[0]}")
            # From here on no desk starts until the restore has ended.
            mark = {"again": _again(planned), "kept": planned.kept.name}
            write_whole(planned.home / MARK, (json.dumps(mark) + "\n").encode())
            begun = True
            _set_aside(database, planned.kept)
            if planned.backup is not None:
                # Copied and read through before: only a rename is left to go wrong.
                staged.replace(database)
            sync_folder(home)
        _bring_back(planned)
        _halt(planned)
        # Last: all that comes before can be done again by the same command.
        (home / MARK).unlink()
        sync_folder(home)
    except (OSError, sqlite3.DatabaseError, TorraError) as error:
        if isinstance(error, ConfigError) and not begun:
            raise
        raise _failed(planned, error, begun=begun) from error
    finally:
        with suppress(OSError):
            staged.unlink(missing_ok=True)
        lock.release()
    return {**planned.as_dict(), "trading_state": "HALTED", "not_halted": not_halted}


def _stage(path: Path, staged: Path) -> None:
    """Copy a backup beside the database, as a database again, and read the copy through."""
    staged.unlink(missing_ok=True)
    with closing(reader(path)) as db:
        copy(db, staged)
    with closing(connect_guest(staged, BUSY_SECONDS)) as db, db.atomic():
        for table in (FACTS, FILES):
            db.execute(f"DROP TABLE IF EXISTS {table}")


def _again(planned: RestorePlan) -> str:
    """Return the command that does the same."""
    what = planned.backup.path if planned.backup else "--empty"
    more = ["--settings"] if planned.settings else []
    return command(planned.home, "restore", what, *more)


def _parts(database: Path) -> list[Path]:
    return [database, *(database.with_name(database.name + end) for end in SIDE_FILES)]


def _set_aside(database: Path, folder: Path) -> None:
    """Move a database away with its log and the log's index."""
    for part in _parts(database):
        if part.exists():
            owner_only.make_folder(folder)
            part.replace(folder / part.name)
    if folder.exists():
        sync_folder(folder)


def _bring_back(planned: RestorePlan) -> None:
    """Write the settings that are missing, or, if that is asked for, all of the backup's."""
    if planned.backup is None:
        return
    for name in planned.brought_back:
        place = place_of(planned.home, name, {name})
        if place.exists():
            # The present one is kept first: a restore deletes nothing.
            _put(place_of(planned.kept, name, {name}), place.read_bytes())
        _put(place, planned.backup.files[name])


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)


def _halt(planned: RestorePlan) -> None:
    """Halt the desk in its new database, with an entry in its log."""
    # anew: with --empty there is no database, and that is what was asked for.
    with closing(open_home(planned.home, anew=True)) as store, store.transaction():
        before = store.trading_state()
        store.set_trading_state("HALTED", _reason(planned))
        store.audit(
            actor=COMMAND_LINE.actor,
            action="restore",
            target=planned.what,
            before={"trading_state": before},
            after={"trading_state": "HALTED"},
        )


def _reason(planned: RestorePlan) -> str:
    return f"restored from {planned.what}: the broker may know more; {advice(planned.home)}"


def advice(home: Path) -> str:
    """Return what a person does after a restore."""
    return ADVICE + command(home, "resume")


def _failed(planned: RestorePlan, error: Exception, *, begun: bool) -> TorraError:
    why = error.strerror if isinstance(error, OSError) else str(error)
    if not begun:
        return ConfigError(f"not restored, nothing was changed: {why}")
    return TorraError(
        f"the restore was cut off: {why}; no desk starts until it has ended. Mend that, then: "
        f"{_again(planned)}. What was there is in {planned.kept}"
    )


def cut_off(home: Path) -> str:
    """Return the command that ends a restore that was cut off, "" when none was."""
    if not (home / MARK).exists():
        return ""
    return _marked(home).get("again") or repair(home)


def _marked(home: Path) -> dict[str, str]:
    """Return the contents of the mark of a cut-off restore, as far as they can be read."""
    try:
        mark = json.loads((home / MARK).read_text(encoding="utf-8"))
        return {name: value for name, value in mark.items() if isinstance(value, str)}
    except (OSError, *MALFORMED):
        return {}
