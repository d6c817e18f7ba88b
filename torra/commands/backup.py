"""`torra backup` and `torra restore`: copy what a desk knows, and put it back.

A backup needs no stop: a desk may work meanwhile. A restore shows what would happen and asks; where
nobody can be asked it does nothing without --yes. A mistake is one line and exit code 2, and then
nothing was changed; a restore that was cut off half-way is exit code 1 and says what ends it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from torra.backup import copies, files
from torra.backup import restore as backup_restore
from torra.backup.restore import advice, command
from torra.clock import System
from torra.commands.answer import CommandAnswer, answering, answering_with, wants_json
from torra.commands.options import ANY_PATH, flag, on_terminal
from torra.commands.terminal import say
from torra.errors import ConfigError
from torra.home import BACKUP_FOLDER, DATABASE, backups

SHOWN: Final = 10
"""Number of backups, and of signals under way, that are listed."""


@click.command()
@click.argument("path", type=ANY_PATH, required=False)
@click.option(
    "--keep",
    type=click.IntRange(1, 10_000),
    help="Afterwards remove all but the newest N backups of this desk that were named there.",
)
@answering
def backup(home: Path, /, path: Path | None, keep: int | None) -> CommandAnswer:
    """Write a checked backup of the desk to PATH, a file or a folder; a desk may run meanwhile.

    Without PATH it goes to the folder backups of the home.
    """
    return CommandAnswer(back_up(home, path, keep), backup_table)


@click.command()
@click.argument("path", type=ANY_PATH, required=False)
@flag("--settings", "Put back its settings too, not only missing ones.")
@flag("--empty", "Without a backup: begin with an empty database.")
@flag("--yes", "Do it without a question.")
@answering_with("Print one JSON document: what would be done, or, with --yes, what was done.")
def restore(
    home: Path, /, path: Path | None, settings: bool, empty: bool, yes: bool
) -> CommandAnswer:
    """Go back to a backup: shows what would happen and asks first; the desk is halted afterwards.

    PATH is the backup. What the desk knows now is kept beside, so that nothing is lost. Without
    PATH the backups of the home are listed, for a folder those that lie in it.
    """
    if (path is None or path.is_dir()) and not empty:
        return CommandAnswer(list_backups(home, path), list_table)
    if path is not None and empty:
        raise ConfigError("give a backup or --empty, not both")
    backup_path = path.absolute() if path is not None else None
    plan = backup_restore.plan(home, backup_path, System().real_now(), settings=settings)
    document = plan.as_dict()
    if not wants_json():
        say(plan_table(document))
    if yes or _agreed():
        return CommandAnswer({**backup_restore.carry_out(plan), "restored": True}, done_table)
    return CommandAnswer({**document, "restored": False}, "Nothing was changed.")


def _agreed() -> bool:
    """Return whether a person says yes to the plan that was shown."""
    if wants_json():
        return False
    if not on_terminal():
        raise ConfigError("nothing was changed: there is nobody to ask, so add --yes to do it")
    return click.confirm("Do it", default=False, err=True)


# --- what they do ---------------------------------------------------------------------------------


def back_up(home: Path, path: Path | None, keep: int | None = None) -> dict[str, Any]:
    """Write a backup and return what is in it; raises ConfigError, and then none was made."""
    database = home / DATABASE
    if not database.exists():
        raise ConfigError(f"no desk has run in {home} yet: there is nothing to back up; see --home")
    now = System().real_now()
    if path is None or path.is_dir():
        target = (path or home / BACKUP_FOLDER) / copies.name_of(database, now)
    else:
        target = path
        if keep is not None:
            raise ConfigError(
                f"--keep: there is no folder {path}; make it first, or leave PATH out"
            )
        if path.suffix != ".db":
            raise ConfigError(
                f"there is no folder {path}; make it, or name a file that ends in .db"
            )
    # The files come last: what was handed over since the database's moment is in them then.
    copy, left_out = copies.write(database, target.absolute(), lambda: files.collect(home), now)
    # After the new one is whole: a failed backup costs no old one.
    removed = copies.surplus(copy.path, keep) if keep else []
    for old in removed:
        try:
            copies.remove(old)
        except OSError as error:
            raise ConfigError(
                f"the backup was made, but {old} cannot be removed: {error.strerror}"
            ) from error
    return {
        **copy.as_dict(),
        "home": str(home.absolute()),
        "left_out": left_out,
        "removed": [str(old) for old in removed],
    }


def list_backups(home: Path, where: Path | None = None) -> dict[str, Any]:
    """Return the backups of a folder by their names, the newest first; none is read.

    Without a folder those of the home.
    """
    folder = home / BACKUP_FOLDER if where is None else where.absolute()
    rows = [
        {"path": str(path), "bytes": path.stat().st_size, "restore": command(home, "restore", path)}
        for path in backups(folder)
    ]
    return {"folder": str(folder), "backups": rows, "empty": command(home, "restore", "--empty")}


# --- a terminal -----------------------------------------------------------------------------------


def backup_table(document: Mapping[str, Any]) -> str:
    """Return what a backup holds, for a terminal."""
    rows = document["rows"]
    lines = [
        f"Backed up to {document['path']}: {_mb(document['bytes'])}, {_content(document)}, "
        f"{len(document['files'])} files of the home.",
        f"It was read through and is whole; {rows.get('signals', 0):,} signals, "
        f"SHA-256 {document['sha256'][:16]}...",
    ]
    lines += [f"Left out: {reason}" for reason in document["left_out"]]
    lines += [f"Removed: {path}" for path in document["removed"]]
    return "\n".join([*lines, "Keep a copy on another disk. Keys and tokens are not in it."])


def list_table(document: Mapping[str, Any]) -> str:
    """Return the backups of a home, each as the command that puts it in place."""
    if not document["backups"]:
        return (
            f"There is no backup in {document['folder']}. One that lies elsewhere: torra restore "
            f"PATH. Without any: {document['empty']}"
        )
    shown: Sequence[Mapping[str, Any]] = document["backups"][:SHOWN]
    lines = [f"{_mb(row['bytes']):>12}  {row['restore']}" for row in shown]
    more = len(document["backups"]) - len(shown)
    return "\n".join(
        ["The newest first:", *lines, *([f"and {more} older ones"] if more > 0 else [])]
    )


def plan_table(document: Mapping[str, Any]) -> str:
    """Return what a restore would do, for a terminal."""
    backup, now = document["backup"], document["present"]
    lines = [
        f"{backup['path']}: whole, {_content(backup)}, "
        f"made {backup['made_at'] or 'at a migration'}."
        if backup
        else "An empty database: the desk forgets every tick, signal, position and cost."
    ]
    if backup and not backup["sha256"]:
        lines.append("No file .sha256 lies beside it, so its bytes were compared with nothing.")
    if backup:
        lines += [f"Not Torra's, and left alone: {thing}" for thing in backup["foreign"]]
    if backup and (altered := backup["altered_orders"]):
        more = f" and {len(altered) - SHOWN} more" if len(altered) > SHOWN else ""
        lines.append(
            f"NOT as they were decided: {', '.join(altered[:SHOWN])}{more}. Such an order is not "
            "sent; compare such a position with MetaTrader 5, or take an older backup"
        )
    if document["replaced"]:
        state = "" if now["sound"] else ", which is damaged,"
        lines.append(f"The database of now{state} goes to {document['replaced']}")
        lost = "an unknown number of" if now["ticks_lost"] is None else f"{now['ticks_lost']:,}"
        lines.append(f"The desk forgets {lost} ticks that came after it.")
    lines += _in_the_market(now)
    settings = document["settings"]
    for name in settings["brought_back"]:
        lines.append(f"Setting brought back: {name}")
    for name in settings["left_as_they_are"]:
        lines.append(f"Setting left as it is, the backup has another: {name} (--settings)")
    return "\n".join([*lines, "Trading is HALTED afterwards, until a person resumes."])


def done_table(document: Mapping[str, Any]) -> str:
    """Return what a restore did, for a terminal."""
    advice_line = advice(Path(document["home"]))
    lines = [f"NOT halted: {reason}" for reason in document["not_halted"]]
    return "\n".join([f"Restored. Trading is HALTED. Now: {advice_line}", *lines])


def _in_the_market(now: Mapping[str, Any]) -> list[str]:
    """Return what may be in the market without the desk's knowledge after a restore."""
    rows = now["under_way"]
    if rows is None:
        return ["Which orders may be in the market cannot be read: look in MetaTrader 5."]
    lines = [
        f"May be in the market now: {row['kind']} {row['side']} "
        f"{f'{lots:g}' if isinstance(lots := row['lots'], float) else lots} of "
        f"{row['instance']}, {row['sid']} {row['state']} ({row['bridge']})"
        for row in rows[:SHOWN]
    ]
    if len(rows) > SHOWN:
        lines.append(f"and {len(rows) - SHOWN} more: add --json to see all")
    if not now["sound"]:
        lines.append("The damage may hide orders that are in the market: look in MetaTrader 5.")
    return lines


def _content(backup: Mapping[str, Any]) -> str:
    newest = backup["newest_tick"]
    since = f", the newest of {newest.replace('T', ' ').replace('Z', ' UTC')}" if newest else ""
    return f"{backup['rows'].get('sentiment', 0):,} ticks{since}"


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
