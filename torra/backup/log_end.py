"""Whether a write-ahead log still has the newest commit that its index names.

SQLite takes a log that was cut off for one that ended there: what is left is a whole prefix of its
commits, and nothing says that newer ones are missing. Beside the log lies its index (`-shm`), which
names the last frame of the newest commit and that frame's checksum. It is written only when the log
is on the disk, so a log without that frame has lost commits.

This can be seen before the first program opens the database: that one makes the index anew. Where
there is no index, as after a copy of database and log alone, nobody can tell, and nothing is said.
Formats: sqlite.org/fileformat2.html section 4, sqlite.org/walformat.html section 2. Nothing raises.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final, NamedTuple

LOG_HEADER: Final = 32
FRAME_HEADER: Final = 24
"""Bytes of the log before its first frame, and of a frame before its page."""

INDEX_HEADER: Final = 48
"""Bytes of the index's header, which stands there twice."""

VERSION: Final = 3_007_000
"""The version of the index's format: no other was ever made."""

HEADER: Final = "=I8xBxHI4xII8s"
"""Of it, in the machine's byte order: version, whether it is ready, size of a page, last frame of
the newest commit, that frame's checksum, the log's salts."""

LARGEST_PAGE: Final = 65_536
"""Bytes of a page whose size is written as 1."""


class End(NamedTuple):
    """The newest commit as an index names it."""

    frame: int
    page_bytes: int
    checksum: tuple[int, int]
    salts: bytes
    copied: int
    """Frames that are in the database already: nobody needs them in the log."""


def lacks_newest_commit(database: Path) -> bool:
    """Return whether the log of a database has lost commits that its index names.

    Only before this process opens the database: closing a file that SQLite has open too would drop
    its locks on it (sqlite.org/howtocorrupt.html, section 2.2).
    """
    log, index = (database.with_name(database.name + end) for end in ("-wal", "-shm"))
    try:
        end = _end(index)
        if end is None or end.frame <= end.copied:
            return False
        if _has(log, end) is not False:
            return False
        # A desk that works meanwhile may have begun the log anew between the two looks.
        return _end(index) == end
    except OSError:
        return False


def _end(index: Path) -> End | None:
    """Return the newest commit that an index names; None where it names none for certain."""
    try:
        header = _read(index, 0, 2 * INDEX_HEADER + 4)
    except FileNotFoundError:
        return None
    first, second = header[:INDEX_HEADER], header[INDEX_HEADER : 2 * INDEX_HEADER]
    # Two copies that differ were written while somebody died.
    if len(header) < 2 * INDEX_HEADER + 4 or first != second:
        return None
    version, ready, page, frame, low, two, salts = struct.unpack_from(HEADER, first)
    if version != VERSION or ready != 1:
        return None
    (copied,) = struct.unpack_from("=I", header, 2 * INDEX_HEADER)
    return End(frame, LARGEST_PAGE if page == 1 else page, (low, two), salts, copied)


def _has(log: Path, end: End) -> bool | None:
    """Return whether a log has a commit's last frame; None where it is a log of another round."""
    try:
        head = _read(log, 0, LOG_HEADER)
    except FileNotFoundError:
        return False
    if not head:
        return False
    if head[16:24] != end.salts:
        return None
    at = LOG_HEADER + (end.frame - 1) * (FRAME_HEADER + end.page_bytes)
    frame = _read(log, at, FRAME_HEADER + end.page_bytes)
    if len(frame) < FRAME_HEADER + end.page_bytes:
        return False
    return frame[8:16] == end.salts and struct.unpack_from(">II", frame, 16) == end.checksum


def _read(path: Path, at: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(at)
        return file.read(size)
