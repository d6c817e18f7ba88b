"""The folder shared by Torra and the Expert Advisor: the only module that touches its files.

A signal is one file that appears whole in inbox/, under a name that is used once: it is written to
tmp/, flushed to the disk and renamed. A name that is taken is never replaced. Whoever renames a
file out of inbox/ has it: the Advisor into work/, Torra into cancelled/ or expired/, never both. A
file only moves forward (inbox, work, done and ack, arch) and is in the later place before it leaves
the earlier one, so looking in that order misses none.

What cannot be written is BridgeUnavailable with a remedy, and nothing of it is in inbox/. While
Windows keeps a file from us because another program has it open, the step is repeated, TRIES times
in all. `messages` reads the text of the files, `bridge` gives it its meaning. Old files of
arch/, cancelled/, expired/ and bad/ are removed here, those of done/ by the Advisor.

Files are not written by torra.whole_files: each step has its own time limit and its own patience
with Windows, a HALT is looked for between text and name, and the Advisor must never see an empty
file under a signal's name, whatever the disk can do.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

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
"""Seconds between two tries, half to one and a half times as long: 0.7 s at most for a step."""

UNREADABLE_SECONDS: Final = 10.0
"""Seconds after which an answer that is still not whole goes to bad/."""

NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
"""How a new file is opened: FileExistsError when there is one."""

KEPT: Final = timedelta(days=30)
PRUNED: Final = ("arch", "cancelled", "expired", "bad")

REMEDIES: Final[Mapping[str, tuple[int, ...]]] = {
    "the disk of {} is full: make room on it": (errno.ENOSPC, errno.EDQUOT),
    "{} cannot be written: let this user write there": (errno.EROFS, errno.EACCES, errno.EPERM),
    "{} is not there: mount the share, make the folder or mend its path": (
        errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.ENOTCONN,
    ),
}  # fmt: skip
"""What is wrong with the folder and what to do, by the system's numbers."""

NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
NO_FLUSH: Final = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)


def file_name(seq: int, sid: str) -> str:
    """Return the name of a signal's file; raises ValueError for a bad number or id."""
    name = f"{seq:010d}_{sid}.json"
    if not NAME.fullmatch(name):
        raise ValueError(f"no name for a signal's file: {name!r}")
    return name


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
        run: Run = at_once,
        sleep: Callable[[float], None] = real_sleep,
        halts: Sequence[Path] = (),
    ) -> None:
        """Know a folder; `halts` are further files that stop sending as its own HALT does.

        Each single step on a file is made by `run`. A share whose server is gone blocks every
        program that touches a file on it. With the `run` of the folder's TimeLimit a step that
        takes too long is TimeoutError, an error like any other. It may still be done later: a
        signal may appear in inbox/, where the next look finds it.
        """
        self.root = root
        self._halts = tuple(halts)
        self._monotonic = monotonic
        self._run = run
        self._sleep = sleep
        self._illegible: dict[str, float] = {}

    def prepare(self) -> None:
        """Make the folders and remove what an earlier life left in tmp/.

        The folder above the root must exist: on the empty mount point of a share nothing is made.
        """
        with self._explained():
            for path in (self.root, *(self.root / name for name in FOLDERS)):
                self._step(partial(path.mkdir, exist_ok=True))
            for name in self._names("tmp"):
                # The Advisor writes in tmp/ too, perhaps right now.
                if name.startswith(OURS):
                    self._forget(self.root / "tmp" / name)

    def check(self) -> None:
        """Raise BridgeUnavailable when the folder is not there or cannot be written."""
        with self._explained():
            self._look_round()
            if not self._step(os.access, self.root / "inbox", os.W_OK):
                raise PermissionError(errno.EACCES, "no right to write", str(self.root / "inbox"))

    # --- signals ----------------------------------------------------------------------------------

    def publish(self, name: str, data: bytes) -> None:
        """Let a signal appear in inbox/, whole and on the disk, unless a HALT file is there."""
        with self._new_file(name, data) as temporary:
            for path in (self.root / HALT, *self._halts):
                if self._step(lies, path):
                    raise BridgeUnavailable(f"{path} is there: nothing is sent")
            # Nothing comes between the look for a HALT and the name.
            self._patiently(give, temporary, self.root / "inbox" / name)
        failpoint("renamed")
        self.sync_inbox()

    def sync_inbox(self) -> None:
        """Wait until the names in inbox/ are on the disk."""
        with self._explained():
            self._step(flush_names, self.root / "inbox")

    def where(self, name: str) -> str:
        """Return the first folder of FORWARD that holds a name, "" when none does."""
        with self._explained():
            for folder in FORWARD:
                if self._there(self.root / folder / name):
                    return folder
                # An answer that is being settled is still an answer.
                if folder == "ack" and self._there(self.root / folder / (name + SETTLING)):
                    return folder
            self._look_round()
        # Nowhere means something only if the folder itself is there.
        return ""

    def recall(self, name: str) -> bool:
        """Move a signal from inbox/ to cancelled/; False when it is not in inbox/ any more."""
        inbox, cancelled = self.root / "inbox" / name, self.root / "cancelled" / name
        with self._explained():
            try:
                self._patiently(inbox.rename, cancelled)
            except FileNotFoundError:
                # Either the Advisor has taken the file, or the whole share is gone.
                self._look_round()
                return False
        return True

    def file_as_expired(self, name: str) -> None:
        """Move a recalled signal on to expired/, if that is possible; never raises."""
        with suppress(OSError):
            cancelled = self.root / "cancelled" / name
            self._step(cancelled.rename, self.root / "expired" / name)

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

    def restore_answer(self, name: str, limit: int) -> None:
        """Copy an answer from done/ to ack/ where it was taken away without being archived."""
        places = (f"work/{name}", f"ack/{name}", f"ack/{name}{SETTLING}", f"arch/{name}")
        with self._explained():
            if any(self._there(self.root / place) for place in places):
                return
        data = self.read(f"done/{name}", limit)
        if data is not None:
            with self._new_file(name, data) as temporary:
                self._step(give, temporary, self.root / "ack" / name)

    def take(self, name: str) -> str:
        """Put an answer under a name that the Advisor does not replace, and return that name."""
        if name.endswith(SETTLING):
            return name
        answer, settling = self.root / "ack" / name, self.root / "ack" / (name + SETTLING)
        with self._explained():
            if not self._there(settling):
                self._patiently(answer.rename, settling)
        return settling.name

    def archive(self, taken: str) -> None:
        """Move an answer that `take` named to arch/."""
        target = self.root / "arch" / taken.removesuffix(SETTLING)
        with self._explained():
            self._patiently((self.root / "ack" / taken).replace, target)
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
            answer = self.root / "ack" / name
            self._step(answer.rename, self.root / "bad" / f"{name}.{token(4)}")
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
                return self._step(read_regular, self.root / place, 2 * limit + 4)
            except FileNotFoundError:
                return None
            except NotRegular:
                return b""

    def write_state(self, name: str, data: bytes) -> None:
        """Replace a file of state/; a reader sees the old one or the new one, whole."""
        # Not flushed first: what a power cut takes is written anew a second later.
        with self._new_file(name, data, flushed=False) as temporary:
            self._patiently(temporary.replace, self.root / "state" / name)

    def halted(self) -> bool:
        """Return whether control/HALT is there; raises OSError when that cannot be told."""
        return self._step(lies, self.root / HALT)

    def set_halt(self, reason: str | None) -> None:
        """Make control/HALT, or remove it with None. Raises OSError.

        The file is there before its text is: on a full disk it is empty and halts all the same.
        """
        path = self.root / HALT
        if reason is None:
            self._patiently(path.unlink, True, run=at_once)
            return
        try:
            self._patiently(put_new, path, f"{reason}\n", run=at_once)
        except FileExistsError:
            return  # whatever it is, it halts
        except OSError:
            if not lies(path):
                raise
        with suppress(OSError):
            self._step(flush_names, path.parent)

    def prune(self, now: datetime) -> None:
        """Remove files that are older than KEPT from PRUNED; never raises."""
        oldest = (now - KEPT).timestamp()
        for folder in PRUNED:
            with suppress(OSError):
                for name in self._names(folder):
                    path = self.root / folder / name
                    with suppress(OSError):
                        # One file that cannot go must not keep the others.
                        if self._step(path.stat).st_mtime < oldest:
                            self._step(path.unlink)

    # --- inside -----------------------------------------------------------------------------------

    def _step(self, call: Callable[..., T], *arguments: Any) -> T:
        return self._run(partial(call, *arguments))

    def _patiently(self, call: Callable[..., T], *arguments: Any, run: Run | None = None) -> T:
        """Make a step, and repeat it while Windows says that another program has the file open."""
        step, run = partial(call, *arguments), run or self._run
        for _ in range(TRIES - 1):
            try:
                return run(step)
            except PermissionError as error:
                # Other errors do not pass by waiting.
                if getattr(error, "winerror", None) not in SHARING:
                    raise
            self._sleep(PAUSE * (0.5 + random_share()))
        return run(step)

    def _there(self, path: Path) -> bool:
        try:
            self._step(path.stat)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def _names(self, folder: str) -> list[str]:
        return sorted(self._step(os.listdir, self.root / folder))

    def _signals_in(self, folder: str, ending: str = "") -> list[str]:
        with self._explained():
            names = self._names(folder)
        return [name for name in names if NAME.fullmatch(name.removesuffix(ending or "\0"))]

    @contextmanager
    def _new_file(self, name: str, data: bytes, *, flushed: bool = True) -> Iterator[Path]:
        """Yield a file of tmp/ that holds the data.

        The file is removed where it cannot be written, or what is done with it fails.
        """
        temporary = self.root / "tmp" / f"{OURS}{name}.{token(4)}"
        with self._explained():
            try:
                handle = self._patiently(os.open, temporary, NEW, 0o666)
                try:
                    self._write(handle, data, flushed)
                finally:
                    self._step(os.close, handle)
                if flushed:
                    failpoint("tmp_done")
                yield temporary
            except (OSError, BridgeUnavailable):
                self._forget(temporary)
                raise

    def _write(self, handle: int, data: bytes, flushed: bool) -> None:
        if not flushed:
            self._pour(handle, data)
            return
        half = len(data) // 2
        self._pour(handle, data[:half])
        failpoint("tmp_half")
        self._pour(handle, data[half:])
        # The text must be on the disk before it has its name.
        self._step(os.fsync, handle)

    def _pour(self, handle: int, data: bytes) -> None:
        while data:
            # A write may take a part only.
            data = data[self._step(os.write, handle, data) :]

    def _forget(self, path: Path) -> None:
        with suppress(OSError):
            self._step(path.unlink)

    def _look_round(self) -> None:
        """Raise FileNotFoundError unless this is the folder: without it, nothing is known."""
        for name in ("inbox", "work", "done"):
            if not self._there(self.root / name):
                raise FileNotFoundError(errno.ENOENT, "no such folder", str(self.root / name))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BridgeUnavailable(self._explanation(error)) from error

    def _explanation(self, error: OSError) -> str:
        """Return what is wrong with the folder, and what to do about it."""
        if getattr(error, "winerror", None) in SHARING:
            return f"another program keeps {error.filename or self.root} open: see what scans it"
        for sentence, numbers in REMEDIES.items():
            if error.errno in numbers:
                return sentence.format(self.root)
        return f"{self.root}: {error.strerror or error}: look at its disk or share"


def give(source: Path, target: Path) -> None:
    """Rename without ever replacing: FileExistsError. Nobody else may know the source."""
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


def flush_names(path: Path) -> None:
    """Wait until a folder's names are on the disk, where the system can do that."""
    try:
        sync_folder(path)
    except OSError as error:
        # Some shares cannot flush a folder at all; that alone is no failure.
        if error.errno not in NO_FLUSH:
            raise
