"""Files of bars that a person handed in: the folder `uploads` of a home, and the door before it.

A file comes whole or in parts, each of them small; parts lie under a name that nothing reads until
the last one is there. Then the bars are read as a replay reads them, and only a file of bars gets a
name. The name is cleaned, never that of another file: nothing that lies there is replaced. What is
refused leaves nothing behind, parts that nobody ended go with the next file. Everything raises
ConfigError with the reason and the remedy.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from torra.clock import TIMEFRAMES, System, iso, token
from torra.errors import ConfigError
from torra.exhibits.documents import DEVICES
from torra.home import UPLOADS
from torra.regular_files import read_regular
from torra.whole_files import write_whole

MOST_BYTES: Final = 16 << 20
"""Bytes of a file: M15 bars of ten years have some twelve million."""

MOST_UNPACKED: Final = 32 << 20
"""Bytes of what a packed file holds."""

MOST_FILES: Final = 100
"""Files that lie in the folder when no more is taken: a disk is not filled from a page."""

MOST_BEGUN: Final = 4
"""Files at once of which some parts are there."""

FORGOTTEN_SECONDS: Final = 3600
"""Parts that are older than this are nobody's any more."""

FILE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
"""The name of a file of bars."""

ENDINGS: Final = (".csv", ".txt", ".zip", ".csv.gz")
MOST_NAMED: Final = 100
LONGEST: Final = 60
"""Characters of a name that are kept, before its ending."""

BEGUN: Final = re.compile(r"[0-9a-f]{32}")
PARTIAL: Final = re.compile(r"\.[0-9a-f]{32}\.part(?:\.csv|\.csv\.gz)?")
ADD: Final = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A file that was taken, with what it holds in a sentence."""

    name: str
    says: str


def folder_of(home: Path) -> Path:
    """Return the folder, made if it is not there."""
    found = home / UPLOADS
    try:
        found.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{found} cannot be made: {error.strerror}") from error
    return found


def names(home: Path) -> list[str]:
    """Return the names of the files of bars that lie in the folder."""
    try:
        return sorted(path.name for path in (home / UPLOADS).iterdir() if _is_bars(path))
    except OSError:
        return []


def timeframe_of(home: Path, name: str) -> str:
    """Return the timeframe that a file's name tells, else its bars; "" where neither does."""
    from torra.feeds.bar_file import NEGATIVE, admit  # noqa: PLC0415

    parts = re.findall("[A-Z0-9]+", name.upper())
    if said := next((one for one in TIMEFRAMES if one in parts), ""):
        return said
    path = home / UPLOADS / name
    with suppress(ConfigError):
        return admit(
            path, clock=None, leave_out=NEGATIVE, most=MOST_UNPACKED, clock_optional=True
        ).timeframe
    return ""


def _is_bars(path: Path) -> bool:
    plain = path.is_file() and not path.is_symlink()
    return plain and bool(FILE.fullmatch(path.name)) and path.name.endswith((*ENDINGS, ".gz"))


def begin(home: Path) -> str:
    """Begin a file and return the word by which its parts are known."""
    folder, begun = folder_of(home), token(16)
    if len(names(home)) >= MOST_FILES:
        raise ConfigError(f"{folder} holds {MOST_FILES} files: remove those that nobody needs")
    if _tidied(folder) >= MOST_BEGUN:
        raise ConfigError(
            f"{MOST_BEGUN} files are being handed in already: wait for them, or an hour"
        )
    try:
        _partial(folder, begun).open("xb").close()
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}") from error
    return begun


def add(home: Path, begun: str, content: bytes) -> None:
    """Add a part to a file that was begun; a file that grows too large is thrown away."""
    path = _known(home, begun)
    try:
        with os.fdopen(os.open(path, ADD), "ab") as file:
            held = os.fstat(file.fileno())
            if not stat.S_ISREG(held.st_mode):
                raise ConfigError(f"{path.name} is no file any more: hand it in again")
            large = held.st_size + len(content) > MOST_BYTES
            if not large:
                file.write(content)
    except OSError as error:
        give_up(home, begun)
        raise ConfigError(f"{path.parent} cannot be written: {error.strerror}") from error
    if large:
        give_up(home, begun)
        raise ConfigError(
            f"the file has more than the {MOST_BYTES:,} bytes that are taken: cut its oldest bars "
            "off, pack it (.csv.gz), or use torra replay --bars"
        )


def end(home: Path, begun: str, called: str) -> HandedIn:
    """Check a file whose parts are all there, and give it its name; what is no bars is gone."""
    path = _known(home, begun)
    try:
        wanted, ending = _named(called)
        checked = path.with_name(path.name + ending)
        path.rename(checked)
        try:
            told = _checked(home, checked, f"{wanted}{ending}")
            name = _put(checked, wanted, ending)
        finally:
            checked.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"{path.parent} cannot be written: {error.strerror}") from error
    finally:
        give_up(home, begun)
    return HandedIn(name, f"{name} is there: {told}")


def give_up(home: Path, begun: str) -> None:
    """Throw away what there is of a file."""
    with suppress(OSError):
        _partial(home / UPLOADS, begun).unlink(missing_ok=True)


def _named(called: str) -> tuple[str, str]:
    """Return a harmless name and its ending; raises ConfigError for what is no CSV."""
    plain = re.split(r"[/\\]", called)[-1].strip()
    ending = next((one for one in reversed(ENDINGS) if plain.lower().endswith(one)), "")
    if not ending:
        raise ConfigError(
            f"{plain[:LONGEST] or 'the file'}: only {', '.join(ENDINGS)} are taken; export the "
            "bars as CSV"
        )
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", plain[: -len(ending)]).strip("._-")[:LONGEST]
    if not stem or DEVICES.fullmatch(f"{stem}{ending}"):
        stem = f"bars_{stem}".rstrip("_")
    return stem, ending


def _checked(home: Path, path: Path, called: str) -> str:
    """Return what a file of bars holds; raises ConfigError, by its own name, for what is none.

    Its name begins with the symbol, as in XAUUSD_M15.csv.
    """
    # Not before a file is there: a page alone must not load what reads bars.
    from torra.feeds.bar_file import NEGATIVE, admit  # noqa: PLC0415
    from torra.market.plausibility import usual_ranges  # noqa: PLC0415
    from torra.replay.shards.history import home_closes  # noqa: PLC0415

    parts = re.findall("[A-Z0-9]+", called.upper())
    symbol = next(filter(usual_ranges, parts), parts[0])
    try:
        taken = admit(
            path, clock=None, leave_out=NEGATIVE, symbol=symbol,
            known=home_closes(home, symbol), most=MOST_UNPACKED, clock_optional=True,
        )  # fmt: skip
    except ConfigError as error:
        said = str(error).replace(str(path), called).replace(path.name, called)
        said = said.replace("--leave-out", "Leave out")
        raise ConfigError(said.replace("--clock", "Clock").replace("--bars", "Bars")) from error
    report = taken.report
    asks = "" if report.clock else "; choose the broker's clock for it"
    first, last = (iso(taken.frame.index[at].to_pydatetime())[:10] for at in (0, -1))
    held = f"{len(taken.frame):,} bars of {taken.timeframe}, {first} to {last}{asks}."
    return " ".join((held, *report.notes, *report.warnings))


def _put(path: Path, stem: str, ending: str) -> str:
    """Give a checked file its name, or the next free one; a name that is taken stays."""
    content = read_regular(path)
    for number in range(1, MOST_NAMED):
        name = f"{stem}{ending}" if number == 1 else f"{stem}-{number}{ending}"
        with suppress(FileExistsError):
            write_whole(path.with_name(name), content, replace=False)
            return name
    raise ConfigError(f"{stem}{ending}: there are too many of that name; give it another one")


def _known(home: Path, begun: str) -> Path:
    path = _partial(home / UPLOADS, begun)
    if not BEGUN.fullmatch(begun) or not path.is_file() or path.is_symlink():
        raise ConfigError("the parts of this file are gone: hand it in again")
    return path


def _partial(folder: Path, begun: str) -> Path:
    return folder / f".{begun}.part"


def _tidied(folder: Path) -> int:
    """Remove parts that nobody ended; return how many are left."""
    # the real time, as the disk has it: the clock of a demo is another one
    now = System().real_now().timestamp()
    return sum(not _removed(path, now) for path in _parts(folder))


def _parts(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from (path for path in folder.iterdir() if PARTIAL.fullmatch(path.name))


def _removed(path: Path, now: float) -> bool:
    try:
        if now - path.lstat().st_mtime < FORGOTTEN_SECONDS:
            return False
        path.unlink()
    except OSError:
        return not path.exists()
    return True
