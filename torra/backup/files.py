"""Decides which files of a home belong to a backup, and where each goes back.

They are the settings (desk.json, prices.json, profiles with their history), the calendars and
headline files that profiles name, the log of what replays tried, the HALT file, and what this side
remembers of a channel, such as the journal of orders that were handed over. `access.json` is never
among them: its tokens are made anew.

A backup may come from a stranger, and what a desk obeys at its start must not. So a name that would
lead out of the home, or to a file that no backup holds, raises ConfigError.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final

from torra.config import load_profile
from torra.errors import MALFORMED, ConfigError, TorraError
from torra.home import (
    ACCESS,
    ACCESS_LOCK,
    BACKUP_FOLDER,
    DATABASE,
    DESK,
    DESK_LOCK,
    HALT,
    LIVED,
    PAGES,
    PRICES,
    STATE_FOLDER,
)

MARK: Final = "restore.json"
"""In a home: a restore has begun and has not ended."""

PROFILES: Final = "profiles/*.json"
TRIALS: Final = "replays/trials.jsonl"
ALL: Final = "**/*"
PATTERNS: Final = (
    DESK,
    PRICES,
    PROFILES,
    "profiles/.history/*/*.json",
    TRIALS,
    f"{STATE_FOLDER}/{ALL}",
    HALT.as_posix(),
)
"""Files that belong to a backup if they exist."""

NAMED: Final = (("events", "calendar"), ("news", "file"))
"""Where a profile names another file of the home."""

OWN: Final = (ACCESS, ACCESS_LOCK, BACKUP_FOLDER, DESK_LOCK, LIVED, MARK, PAGES)
"""Names that Torra alone writes in a home; a profile can bring none of them, nor any name that
begins as the database's."""

LARGEST: Final = 64_000_000
"""Most bytes of a file in a backup; a larger file is left out, and reported."""

PASSING: Final = (".partial", ".tmp", ".new", ".kept")
"""Endings of files that are being written."""

REMEMBERED: Final = (STATE_FOLDER, HALT.parts[0])
"""Folders whose files a restore never replaces: what was sent stays sent, a halt stays. TRIALS is
never replaced either: what was tried stays tried."""


def collect(home: Path) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of a home that belong to a backup, by name, and what was left out and why.

    Raises ConfigError for one that cannot be read.
    """
    files: dict[str, bytes] = {}
    named, left_out = _named_by_profiles(home)
    for path in sorted(set(_there(home, named))):
        name = path.relative_to(home).as_posix()
        try:
            if path.stat().st_size > LARGEST:
                left_out.append(f"{name}: larger than {LARGEST / 1e6:.0f} MB")
            else:
                files[name] = path.read_bytes()
        except FileNotFoundError:
            continue  # gone since it was listed
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    return files, left_out


def _there(home: Path, named: list[Path]) -> Iterator[Path]:
    # Resolved: a link under a harmless name must not carry the tokens out.
    secret = (home / ACCESS).resolve()
    usual = [path for pattern in PATTERNS for path in home.glob(pattern)]
    for path in [*usual, *named]:
        passing = path.name.endswith(PASSING)
        if path.is_file() and not passing and path.resolve() != secret:
            yield path


def _named_by_profiles(home: Path) -> tuple[list[Path], list[str]]:
    """Return the files of a home that its profiles name, and those that they name outside of it.

    A broken profile names none.
    """
    named: list[Path] = []
    left_out: dict[str, str] = {}
    for path in sorted(home.glob(PROFILES)):
        with suppress(TorraError):
            profile = load_profile(path, home)
            for name in filter(None, (profile.events.calendar, profile.news.file)):
                inside = Path(name).as_posix()
                try:
                    named.append(place_of(home, inside, {inside}))
                except ConfigError:
                    reason = (
                        f"{name}: profile {path.stem} names it, a backup cannot hold it; copy it"
                    )
                    left_out.setdefault(name, reason)
    return named, list(left_out.values())


def _named_within(files: Mapping[str, bytes]) -> set[str]:
    """Return the names of files in the profiles of a backup, which is not in a home yet."""
    named: set[str] = set()
    for name, content in files.items():
        for group, key in NAMED if _fits(name, PROFILES) else ():
            with suppress(*MALFORMED):  # then a desk cannot read this profile either
                path = json.loads(content)[group][key]
                named.add(PurePosixPath(path.replace("\\", "/")).as_posix())
    return named


def _fits(name: str, pattern: str) -> bool:
    """Return whether Path.glob would find a name by one of our patterns, letters of either case."""
    parts, wanted = (PurePosixPath(text.lower()).parts for text in (name, pattern))
    if pattern.endswith(ALL):
        folder = wanted[: -len(PurePosixPath(ALL).parts)]
        return len(parts) > len(folder) and parts[: len(folder)] == folder
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def place_of(home: Path, name: str, named: Container[str] = ()) -> Path:
    """Return where a file of a backup belongs; raises ConfigError for a name that leads astray.

    `named` are names that are taken beside the usual ones, because a profile names those files.
    """
    parts = PurePosixPath(name).parts
    astray = not parts or PurePosixPath(name).is_absolute() or ".." in parts
    # A backup travels: on Windows a backslash or a colon leads elsewhere.
    foreign = "\\" in name or ":" in name or "\0" in name
    first = "" if astray else parts[0].lower().rstrip(". ")  # as Windows reads it
    taken = first in OWN or first.startswith(DATABASE)
    strange = name not in named and not any(_fits(name, pattern) for pattern in PATTERNS)
    if astray or foreign or taken or strange:
        raise ConfigError(f"the backup holds a file {name!r}, which is none of a home's settings")
    return home.joinpath(*parts)


def remembered(name: str) -> bool:
    """Return whether a file keeps what was done, so that an older state must not replace it."""
    return PurePosixPath(name).parts[0] in REMEMBERED or name == TRIALS


def compare(home: Path, files: Mapping[str, bytes]) -> tuple[list[str], list[str]]:
    """Return the files of a backup that a home lacks, and the settings that differ there.

    Raises ConfigError when one belongs to no home.
    """
    missing: list[str] = []
    differing: list[str] = []
    named = _named_within(files)
    for name, content in sorted(files.items()):
        place = place_of(home, name, named)
        if not place.exists():
            missing.append(name)
        elif not remembered(name) and place.read_bytes() != content:
            differing.append(name)
    return missing, differing
