"""A file that a person edits: strict at first, later the last good reading stands.

The first reading raises ConfigError, so that a desk does not start with a file that it cannot read.
Later, `refresh` reads the file again whenever it has changed. When the file is then missing or
broken, the last good reading stands, with the trouble beside it, which is logged once. Only
`refresh` touches the disk.
"""

from __future__ import annotations

import codecs
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

from torra.errors import ConfigError
from torra.regular_files import NotRegular, read_regular

log = logging.getLogger("torra")

T = TypeVar("T")

UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

Signature = tuple[int, int, int]
"""What changes when a file does: its time, its size, its place on the disk."""


class Unreachable(ConfigError):
    """The file could not be read; its contents may be good."""


class FileReading(NamedTuple, Generic[T]):
    """The content of the last good reading, and the trouble with the file as it is now."""

    content: T
    trouble: ConfigError | None = None


class WatchedFile(Generic[T]):
    """A file and how it is read. Safe to share between threads.

    `grows`: a line more is no half of a version, so what was read while somebody wrote is used.
    """

    def __init__(self, path: Path, read: Callable[[Path], T], *, grows: bool = False) -> None:
        self.path = path
        self._read = read
        self._grows = grows
        self._lock = threading.Lock()
        self._signature: Signature | None = None
        self._reading: FileReading[T] | None = None

    def latest(self) -> FileReading[T]:
        """Return the last reading; waits for no disk once a reading has succeeded.

        Raises ConfigError while none has.
        """
        return self._reading or self.refresh()

    def refresh(self) -> FileReading[T]:
        """Read the file again if it has changed, or could not be read to its end.

        Raises ConfigError while no reading has succeeded yet.
        """
        with self._lock:
            mark, last = signature(self.path), self._reading
            # A file that cannot be seen is tried each time, so that its return is noticed.
            if last is None or mark is None or mark != self._signature:
                self._reading = self._read_again(mark, last)
            return self._reading or last  # type: ignore[return-value]  # one of them is there

    def _read_again(self, mark: Signature | None, last: FileReading[T] | None) -> FileReading[T]:
        """Return the content of the file; the last one while it changes or cannot be read."""
        try:
            reading = FileReading(self._read(self.path))
        except ConfigError as error:
            if last is None:
                raise
            reading = FileReading(last.content, error)
        unreachable = isinstance(reading.trouble, Unreachable)
        # A file that changed while it was read may be half of each version.
        whole = mark == signature(self.path)
        self._signature = mark if whole and not unreachable else None
        if last is None:
            return reading
        # Somebody is writing: nothing is wrong yet, the next look reads it.
        if not whole and not unreachable and (reading.trouble or not self._grows):
            return last
        if str(reading.trouble) != str(last.trouble):
            if reading.trouble is None:
                log.warning("%s can be read again", self.path)
            else:
                log.warning("%s; the last good reading is used", reading.trouble)
        return reading


def signature(path: Path) -> Signature | None:
    """Return what changes when a file does; None when it cannot be seen."""
    try:
        state = path.stat()
    except (OSError, ValueError):
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


def read_bytes(path: Path, most: int, remedy: str) -> bytes:
    """Return the bytes of a file; raises Unreachable, and ConfigError for more than `most`.

    An OSError is the cause where the file could not be opened or read.
    """
    try:
        raw = read_regular(path, most + 1)
    except (FileNotFoundError, NotRegular) as error:
        raise Unreachable(f"{path} is not there or no file: {remedy}") from error
    except OSError as error:
        raise Unreachable(f"cannot read {path}: {error.strerror}; {remedy}") from error
    except ValueError as error:
        raise Unreachable(f"{str(path)!a} is no name of a file; {remedy}") from error
    if len(raw) > most:
        raise ConfigError(f"{path} is larger than {most // 1_000_000} MB: cut or split it")
    return raw


def decoded(path: Path, raw: bytes) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with its mark at the beginning.

    Raises ConfigError with the line of another byte.
    """
    try:
        return raw.decode("utf-16" if raw[:2] in UTF_16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8; save the file as UTF-8") from error
