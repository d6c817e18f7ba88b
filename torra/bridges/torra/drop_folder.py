"""The folder shared by Torra and the Expert Advisor: the only module that touches its files.

A signal is one file that appears whole in inbox/, under a name that is used once: it is written to
tmp/, flushed to the disk and renamed. A name that is taken is never replaced. Whoever renames a
file out of inbox/ has it: the Advisor into work/, Torra into cancelled/ or expired/, never both. A
file only moves forward (inbox, work, done and ack, arch) and is in the later place before it leaves
the earlier one, so looking in that order misses none.

What cannot be written is BridgeUnavailable with a remedy, and nothing of it is in inbox/. While
Windows keeps a file from us because another program has it open, the step is repeated for PATIENCE
seconds at most. `messages` reads the text of the files, `bridge` gives it its meaning. Old files of
arch/, cancelled/, expired/ and bad/ are removed here, those of done/ by the Advisor.

Files are not written by torra.whole_files: each step has its own time limit and its own patience
with Windows, a HALT is looked for between text and name, and the Advisor must never see an empty
file under a signal's name, whatever the disk can do.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from torra.clock import real_sleep, token
from torra.errors import BridgeUnavailable
from torra.failpoints import failpoint
from torra.home import HALT
from torra.regular_files import NotRegular, lies, put_new, read_regular
from torra.time_limit import Run, at_once
from torra.whole_files import name_once, sync_folder

T = TypeVar("T")

FOLDERS: Final = (
    "tmp",
    "inbox",
    "work",
    "ack",
    "done",
    "cancelled",
    "expired",
    "arch",
    "bad",
    "state",
    "bars",
    "control",
)
FORWARD: Final = ("inbox", "work", "done", "ack", "arch", "cancelled", "expired")
"""Where the file of a signal or its answer may lie, in the order in which to look."""

NAME: Final = re.compile(r"([0-9]{10})_([A-Za-z0-9]{1,31})\.json")
"""A signal's file, and that of its answer: number and id."""

SETTLING: Final = ".settling"
"""Ending of an answer that is on its way from ack/ to arch/."""

OURS: Final = "torra."
"""Beginning of Torra's names in tmp/, which the Advisor uses too."""

SHARING: Final = (5, 32)
"""Windows error numbers for a file that another program has open."""

TRIES: Final = 10
PAUSE: Final = 0.05
"""Seconds between two tries, half to one and a half times as long."""

PATIENCE: Final = 2.5
"""Most seconds that one call waits for other programs."""

UNREADABLE_SECONDS: Final = 10.0
"""Seconds after which an answer that is still not whole goes to bad/."""

KEPT: Final = timedelta(days=30)
PRUNED: Final = ("arch", "cancelled", "expired", "bad")

FULL: Final = (errno.ENOSPC, errno.EDQUOT)
FORBIDDEN: Final = (errno.EROFS, errno.EACCES, errno.EPERM)
GONE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.ENOTCONN)
NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
NO_FLUSH: Final = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)


def file_name(seq: int, sid: str) -> str:
    """Return the name of a signal's file; raises ValueError for a bad number or id."""
    name = f"{seq:010d}_{sid}.json"
    if not NAME.fullmatch(name):
        raise ValueError(f"no name for a signal's file: {name!r}")
    return name


class Disk:
    """The single steps on files, each made by `run`; a test can make each of them fail.

    A share whose server is gone blocks every program that touches a file on it. With the `run` of
    the folder's TimeLimit a step that takes too long is TimeoutError, an error like any other. It
    may still be done later: a signal may appear in inbox/, where the next look finds it.
    """

    def __init__(self, run: Run = at_once) -> None:
        self._run = run

    def make_folder(self, path: Path) -> None:
        """Make a folder inside one that is there; no error when it is there itself."""
        self._run(partial(path.mkdir, exist_ok=True))

    def create(self, path: Path) -> int:
        """Open a new file for writing; FileExistsError when there is one."""
        mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        return self._run(partial(os.open, path, mode, 0o666))

    def write(self, handle: int, data: bytes) -> int:
        """Write as much as goes in at once."""
        return self._run(partial(os.write, handle, data))

    def sync(self, handle: int) -> None:
        """Wait until the file is on the disk."""
        self._run(partial(os.fsync, handle))

    def close(self, handle: int) -> None:
        """Close a file."""
        self._run(partial(os.close, handle))

    def give(self, source: Path, target: Path) -> None:
        """Rename without ever replacing: FileExistsError. Nobody else may know the source."""
        self._run(partial(_give, source, target))

    def rename(self, source: Path, target: Path) -> None:
        """Rename; of two attempts at the same file one gets FileNotFoundError."""
        self._run(partial(source.rename, target))

    def replace(self, source: Path, target: Path) -> None:
        """Rename, over a file that is there."""
        self._run(partial(source.replace, target))

    def remove(self, path: Path) -> None:
        """Remove a file."""
        self._run(path.unlink)

    def sync_folder(self, path: Path) -> None:
        """Wait until a folder's names are on the disk, where the system can do that."""
        self._run(partial(_sync_folder, path))

    def read(self, path: Path, limit: int) -> bytes:
        """Return a file's beginning, `limit` bytes at most."""
        return self._run(partial(read_regular, path, limit))

    def names(self, path: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        return sorted(self._run(partial(os.listdir, path)))

    def there(self, path: Path) -> bool:
        """Return whether a file or a folder is there; raises OSError when that cannot be told."""
        try:
            self._run(path.stat)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def taken(self, path: Path) -> bool:
        """Return whether a name is taken, by whatever; raises OSError when that cannot be told."""
        return self._run(partial(lies, path))

    def writable(self, path: Path) -> bool:
        """Return whether this user may write into a folder."""
        return self._run(partial(os.access, path, os.W_OK))

    def changed(self, path: Path) -> float:
        """Return when a file was changed, epoch seconds."""
        return self._run(path.stat).st_mtime


class SharingRetry:
    """Repeats a step while Windows says that another program has the file open."""

    def __init__(self, sleep: Callable[[float], None], chance: Callable[[], float]) -> None:
        self._sleep = sleep
        self._chance = chance
        self._left = PATIENCE

    def __call__(self, step: Callable[[], T]) -> T:
        """Return what the step returns; raises its error after TRIES or PATIENCE."""
        for _ in range(TRIES - 1):
            pause = PAUSE * (0.5 + self._chance())
            try:
                return step()
            except PermissionError as error:
                # Other errors do not pass by waiting.
                if getattr(error, "winerror", None) not in SHARING or pause > self._left:
                    raise
            self._left -= pause
            self._sleep(pause)
        return step()


def random_share() -> float:
    """Return a fresh random number in [0, 1)."""
    return int(token(4), 16) / 2**32


class DropFolder:
    """One channel's folder. Methods raise BridgeUnavailable unless they say something else."""

    def __init__(
        self,
        root: Path,
        *,
        monotonic: Callable[[], float],
        disk: Disk | None = None,
        sleep: Callable[[float], None] = real_sleep,
        chance: Callable[[], float] = random_share,
        halts: Sequence[Path] = (),
    ) -> None:
        """Know a folder; `halts` are further files that stop sending as its own HALT does."""
        self.root = root
        self._halts = tuple(halts)
        self._monotonic = monotonic
        self._disk = disk or Disk()
        self._sleep = sleep
        self._chance = chance
        self._illegible: dict[str, float] = {}

    def prepare(self) -> None:
        """Make the folders and remove what an earlier life left in tmp/.

        The folder above the root must exist: on the empty mount point of a share nothing is made.
        """
        with self._explained():
            for path in (self.root, *(self.root / name for name in FOLDERS)):
                self._disk.make_folder(path)
            for name in self._disk.names(self.root / "tmp"):
                # The Advisor writes in tmp/ too, perhaps right now.
                if name.startswith(OURS):
                    self._forget(self.root / "tmp" / name)

    def check(self) -> None:
        """Raise BridgeUnavailable when the folder is not there or cannot be written."""
        with self._explained():
            self._look_round()
            if not self._disk.writable(self.root / "inbox"):
                raise PermissionError(errno.EACCES, "no right to write", str(self.root / "inbox"))

    # --- signals ----------------------------------------------------------------------------------

    def publish(self, name: str, data: bytes) -> None:
        """Let a signal appear in inbox/, whole and on the disk, unless a HALT file is there."""
        patience = self._patience()
        temporary = self._temporary(name)
        with self._explained():
            try:
                self._write(temporary, data, patience)
                self._heed_halt()
                # Nothing comes between the look for a HALT and the name.
                patience(lambda: self._disk.give(temporary, self.root / "inbox" / name))
            except (OSError, BridgeUnavailable):
                self._forget(temporary)
                raise
            failpoint("renamed")
            self.sync_inbox()

    def sync_inbox(self) -> None:
        """Wait until the names in inbox/ are on the disk."""
        with self._explained():
            self._disk.sync_folder(self.root / "inbox")

    def where(self, name: str) -> str:
        """Return the first folder of FORWARD that holds a name, "" when none does."""
        with self._explained():
            for folder in FORWARD:
                if self._disk.there(self.root / folder / name):
                    return folder
                # An answer that is being settled is still an answer.
                if folder == "ack" and self._disk.there(self.root / folder / (name + SETTLING)):
                    return folder
            self._look_round()
        # Nowhere means something only if the folder itself is there.
        return ""

    def recall(self, name: str) -> bool:
        """Move a signal from inbox/ to cancelled/; False when it is not in inbox/ any more."""
        inbox, cancelled = self.root / "inbox" / name, self.root / "cancelled" / name
        with self._explained():
            try:
                self._patience()(lambda: self._disk.rename(inbox, cancelled))
            except FileNotFoundError:
                # Either the Advisor has taken the file, or the whole share is gone.
                self._look_round()
                return False
        return True

    def file_as_expired(self, name: str) -> None:
        """Move a recalled signal on to expired/, if that is possible; never raises."""
        with suppress(OSError):
            self._disk.rename(self.root / "cancelled" / name, self.root / "expired" / name)

    def claimed(self) -> list[str]:
        """Return the names in work/, oldest first."""
        return self._signals_in("work")

    # --- answers ----------------------------------------------------------------------------------

    def acks(self) -> list[str]:
        """Return the names of the answers, oldest first; those on their way to arch/ too."""
        names = self._signals_in("ack", SETTLING)
        self._illegible = {n: since for n, since in self._illegible.items() if n in names}
        # Of two answers to one signal the one that is being settled is the older.
        return sorted(names, key=lambda name: (name.split(".")[0], not name.endswith(SETTLING)))

    def answer_is_lost(self, name: str) -> bool:
        """Return whether done/ has an answer that was taken out of ack/ without being archived."""
        places = (f"work/{name}", f"ack/{name}", f"ack/{name}{SETTLING}", f"arch/{name}")
        with self._explained():
            there = [place for place in places if self._disk.there(self.root / place)]
            return not there and self._disk.there(self.root / "done" / name)

    def answer_again(self, name: str, limit: int) -> None:
        """Put a copy of done/ into ack/, where somebody has lost the answer."""
        data = self.read(f"done/{name}", limit)
        if data is None:
            return
        temporary = self._temporary(name)
        with self._explained():
            try:
                self._write(temporary, data, self._patience())
                self._disk.give(temporary, self.root / "ack" / name)
            except OSError:
                self._forget(temporary)
                raise

    def take(self, name: str) -> str:
        """Put an answer under a name that the Advisor does not replace, and return that name."""
        if name.endswith(SETTLING):
            return name
        taken = name + SETTLING
        with self._explained():
            if not self._disk.there(self.root / "ack" / taken):
                self._patience()(
                    lambda: self._disk.rename(self.root / "ack" / name, self.root / "ack" / taken)
                )
        return taken

    def archive(self, taken: str) -> None:
        """Move an answer that `take` named to arch/."""
        target = self.root / "arch" / taken.removesuffix(SETTLING)
        with self._explained():
            self._patience()(lambda: self._disk.replace(self.root / "ack" / taken, target))
        failpoint("archived")

    def legible(self, name: str) -> None:
        """Note that an answer could be read."""
        self._illegible.pop(name, None)

    def reject(self, name: str, *, at_once: bool) -> bool:
        """Move a file that is no answer to bad/; return whether it is there now. Never raises.

        Unless `at_once` it may only be half written, and has UNREADABLE_SECONDS to become whole.
        """
        since = self._illegible.setdefault(name, self._monotonic())
        if not at_once and self._monotonic() - since < UNREADABLE_SECONDS:
            return False
        try:
            # The Advisor may answer wrongly again under the same name.
            self._disk.rename(self.root / "ack" / name, self.root / "bad" / f"{name}.{token(4)}")
        except OSError:
            return False
        self._illegible.pop(name, None)
        return True

    # --- state and control ------------------------------------------------------------------------

    def read(self, place: str, limit: int) -> bytes | None:
        """Return a file below the root, None when it is not there; of a longer one the beginning.

        `limit` counts characters; a file in UTF-16 has two bytes for each. What is no regular file
        holds nothing, so that it is put aside as a damaged one is.
        """
        with self._explained():
            try:
                return self._disk.read(self.root / place, 2 * limit + 4)
            except FileNotFoundError:
                return None
            except NotRegular:
                return b""

    def write_state(self, name: str, data: bytes) -> None:
        """Replace a file of state/; a reader sees the old one or the new one, whole."""
        patience = self._patience()
        temporary = self._temporary(name)
        with self._explained():
            try:
                handle = patience(lambda: self._disk.create(temporary))
                try:
                    self._pour(handle, data)
                finally:
                    self._disk.close(handle)
                # Not flushed first: what a power cut takes is written anew a second later.
                patience(lambda: self._disk.replace(temporary, self.root / "state" / name))
            except OSError:
                self._forget(temporary)
                raise

    def halted(self) -> bool:
        """Return whether control/HALT is there; raises OSError when that cannot be told."""
        return self._disk.taken(self.root / HALT)

    def set_halt(self, reason: str | None) -> None:
        """Make control/HALT, or remove it with None. Raises OSError.

        The file is there before its text is: on a full disk it is empty and halts all the same.
        """
        path = self.root / HALT
        if reason is None:
            self._patience()(lambda: path.unlink(missing_ok=True))
            return
        try:
            self._patience()(partial(put_new, path, f"{reason}\n"))
        except FileExistsError:
            return  # whatever it is, it halts
        except OSError:
            if not lies(path):
                raise
        with suppress(OSError):
            self._disk.sync_folder(path.parent)

    def prune(self, now: datetime) -> None:
        """Remove files that are older than KEPT from PRUNED; never raises."""
        oldest = (now - KEPT).timestamp()
        for folder in PRUNED:
            with suppress(OSError):
                for name in self._disk.names(self.root / folder):
                    path = self.root / folder / name
                    with suppress(OSError):
                        # One file that cannot go must not keep the others.
                        if self._disk.changed(path) < oldest:
                            self._disk.remove(path)

    # --- inside -----------------------------------------------------------------------------------

    def _heed_halt(self) -> None:
        for path in (self.root / HALT, *self._halts):
            if self._disk.taken(path):
                raise BridgeUnavailable(f"{path} is there: nothing is sent")

    def _signals_in(self, folder: str, ending: str = "") -> list[str]:
        with self._explained():
            names = self._disk.names(self.root / folder)
        return [name for name in names if NAME.fullmatch(name.removesuffix(ending or "\0"))]

    def _temporary(self, name: str) -> Path:
        return self.root / "tmp" / f"{OURS}{name}.{token(4)}"

    def _write(self, path: Path, data: bytes, patience: SharingRetry) -> None:
        handle = patience(lambda: self._disk.create(path))
        try:
            self._pour(handle, data[: len(data) // 2])
            failpoint("tmp_half")
            self._pour(handle, data[len(data) // 2 :])
            # The text must be on the disk before it has its name.
            self._disk.sync(handle)
        finally:
            self._disk.close(handle)
        failpoint("tmp_done")

    def _pour(self, handle: int, data: bytes) -> None:
        while data:
            # A write may take a part only.
            data = data[self._disk.write(handle, data) :]

    def _forget(self, path: Path) -> None:
        with suppress(OSError):
            self._disk.remove(path)

    def _patience(self) -> SharingRetry:
        return SharingRetry(self._sleep, self._chance)

    def _look_round(self) -> None:
        """Raise FileNotFoundError unless this is the folder: without it, nothing is known."""
        for name in ("inbox", "work", "done"):
            if not self._disk.there(self.root / name):
                raise FileNotFoundError(errno.ENOENT, "no such folder", str(self.root / name))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BridgeUnavailable(self.explain(error)) from error

    def explain(self, error: OSError) -> str:
        """Return what is wrong with the folder, and what to do about it."""
        if getattr(error, "winerror", None) in SHARING:
            return f"another program keeps {error.filename or self.root} open: see what scans it"
        if error.errno in FULL:
            return f"the disk of {self.root} is full: make room on it"
        if error.errno in FORBIDDEN:
            return f"{self.root} cannot be written: let this user write there"
        if error.errno in GONE:
            return f"{self.root} is not there: mount the share, make the folder or mend its path"
        return f"{self.root}: {error.strerror or error}: look at its disk or share"


def _give(source: Path, target: Path) -> None:
    try:
        name_once(source, target)
    except OSError as error:
        # A disk without hard links: look first, then rename. Only this side writes new names.
        if os.name == "nt" or error.errno not in NO_LINKS:
            raise
        if target.exists():
            raise FileExistsError(errno.EEXIST, "there is such a file", str(target)) from error
        source.rename(target)
    with suppress(OSError):
        # The signal has its name: a leftover in tmp/ must not pass for a failure.
        source.unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    try:
        sync_folder(path)
    except OSError as error:
        # Some shares cannot flush a folder at all; that alone is no failure.
        if error.errno not in NO_FLUSH:
            raise
