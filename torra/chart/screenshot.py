"""Reads the chart as the terminal wrote it: a screenshot in a file, checked before anyone sees it.

`read_picture` returns the picture or, as a value, the reason why there is none: missing, stale,
type, size or unreadable. It never raises for what it finds on the disk, so a tick goes on without a
picture. A picture that was written for another bar is stale. What is no whole PNG or JPEG, or no
regular file, is not read on. The pixels are not decoded: only the frame of the format and the
dimensions in its header are checked.

A path that names anything but {symbol} and {timeframe} raises ConfigError; `check_template` says so
at start. The file should lie on a disk of this machine: reading a dead network share waits.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from agents.contracts import JPEG, PNG
from torra.clock import duration
from torra.errors import ConfigError
from torra.regular_files import NO_FILE, NotRegular, open_regular

LEAST_BYTES: Final = 1024
"""A chart of LEAST_PIXELS takes more than this."""

MOST_BYTES: Final = 2 * 2**20
"""A third more as base64, well below the 5 MiB that the strictest vendor takes."""

LEAST_PIXELS: Final = 200
MOST_PIXELS: Final = 2000
"""Width and height. Below it nothing can be read; above it vendors scale down what they charge."""

CLOCK_SLACK: Final = timedelta(seconds=2)
"""How far in the future a file's time may lie: file systems round it."""

PNG_HEADER: Final = b"\0\0\0\x0dIHDR"
"""Length and name of the first chunk."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the chart, or why there is none: a reason, and a sentence.

    Reasons: missing; stale (not written for the bar of the tick, or later than now); type (neither
    PNG nor JPEG, or no regular file); size (its bytes or its pixels); unreadable (it cannot be
    opened, or it is broken or only half written).
    """

    data: bytes | None
    reason: str = ""
    detail: str = ""

    @property
    def flag(self) -> str:
        """Its flag in the record of the tick: picture:<reason>, or nothing."""
        return f"picture:{self.reason}" if self.reason else ""


def check_template(path_template: str) -> None:
    """Raise ConfigError unless the path is absolute and names symbol and timeframe, no more."""
    problem = ""
    if not _nameable(path_template):
        problem = "has characters that no file name can have"
    elif any(name not in path_template for name in ("{symbol}", "{timeframe}")):
        problem = "must name {symbol} and {timeframe}, else one chart would be shown for another"
    elif any(brace in _filled(path_template, "", "") for brace in "{}"):
        problem = "may have {symbol} and {timeframe} in braces, nothing else"
    elif not _path(path_template).is_absolute():
        problem = "must be absolute"
    if problem:
        raise ConfigError(f"agents.picture_file {problem} (found {path_template[:200]!r})")


def read_picture(
    path_template: str,
    *,
    symbol: str,
    timeframe: str,
    close_time: datetime,
    now: datetime,
) -> Picture:
    """Return the screenshot of the bar that closed at `close_time`, or why there is none.

    `now` is real time: it was written less than a bar before or after the close, and not after
    `now`. At most MOST_BYTES + 1 bytes are read, from a regular file only. Raises ConfigError for
    what `check_template` refuses.
    """
    check_template(path_template)
    path = _path(_filled(path_template, symbol, timeframe))
    bar = duration(timeframe)
    earliest, latest = close_time - bar, min(now + CLOCK_SLACK, close_time + bar)
    try:
        with open_regular(path) as file:
            written = os.fstat(file.fileno()).st_mtime
            if not earliest.timestamp() < written <= latest.timestamp():
                side = "before" if written <= earliest.timestamp() else "after"
                return Picture(None, "stale", f"it was written {side} its time")
            # One byte more than is allowed tells a file that is too large, whatever its size.
            return check_picture(file.read(MOST_BYTES + 1))
    except (FileNotFoundError, NotADirectoryError):
        return Picture(None, "missing", "there is no such file")
    except NotRegular:
        return Picture(None, "type", NO_FILE)
    except OSError as error:
        return Picture(None, "unreadable", type(error).__name__)


def check_picture(data: object) -> Picture:
    """Return a picture of a chart, or why it cannot be shown: what a file or a host holds."""
    if not isinstance(data, bytes | bytearray | memoryview):
        return Picture(None, "type", NO_FILE)
    whole = bytes(data)
    if not LEAST_BYTES <= len(whole) <= MOST_BYTES:
        least = min(len(whole), MOST_BYTES)
        return Picture(None, "size", f"{'more than ' * (least < len(whole))}{least} bytes")
    sides = next((sides for head, sides in FORMATS.items() if whole.startswith(head)), None)
    if sides is None:
        return Picture(None, "type", "it is neither PNG nor JPEG")
    try:
        width, height = sides(whole)
    except (struct.error, ValueError) as error:
        early = isinstance(error, struct.error)
        return Picture(None, "unreadable", "it ends too early" if early else str(error))
    if not all(LEAST_PIXELS <= side <= MOST_PIXELS for side in (width, height)):
        return Picture(None, "size", f"{width} x {height} pixels")
    return Picture(whole)


def _filled(path_template: str, symbol: str, timeframe: str) -> str:
    return path_template.replace("{symbol}", symbol).replace("{timeframe}", timeframe)


def _nameable(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # there is no home to put in place of ~
        return Path(text)


def _png_sides(data: bytes) -> tuple[int, int]:
    """Walk the chunks: IHDR first, pixels, IEND last, every checksum right, nothing behind."""
    at = len(PNG)
    kinds: list[bytes] = []
    while not kinds or kinds[-1] != b"IEND":
        length, kind = struct.unpack_from(">I4s", data, at)
        (checksum,) = struct.unpack_from(">I", data, at + 8 + length)
        if zlib.crc32(data[at + 4 : at + 8 + length]) != checksum:
            raise ValueError("a checksum is wrong")
        kinds.append(kind)
        at += 12 + length
    if not data.startswith(PNG + PNG_HEADER) or b"IDAT" not in kinds or at != len(data):
        raise ValueError("its parts are out of order")
    width, height = struct.unpack_from(">II", data, len(PNG) + 8)
    return width, height


def _jpeg_sides(data: bytes) -> tuple[int, int]:
    """Walk the segments up to the first scan, past the one that holds the dimensions."""
    if not data.endswith(b"\xff\xd9"):
        raise ValueError("it ends too early")
    at, marker, sides = 2, 0, None
    while marker != START_OF_SCAN:
        start, marker, length = struct.unpack_from(">BBH", data, at)
        # A length counts its own two bytes.
        if start != 0xFF or length < 2:
            raise ValueError("its parts are out of order")
        if marker in FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            sides = width, height
        at += 2 + length
    if sides is None:
        raise ValueError("it does not say how large it is")
    return sides


FORMATS: Final = {PNG: _png_sides, JPEG: _jpeg_sides}
START_OF_SCAN: Final = 0xDA
FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of JPEG segments that hold height and width (ITU T.81, table B.1)."""
