"""Atomic file writing: after a crash or power cut a file is there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from torra.clock import token


def write_whole(path: Path, content: bytes) -> None:
    """Write a file into an existing folder, in place of any older one; raises OSError.

    After a crash or a power cut it is the old one or the new one. Of two writers at once the later
    one's is whole too.
    """
    # A name of chance: two writers at once must not share a partial file.
    partial = path.with_name(f".{path.name}.{token(4)}.partial")
    try:
        write_synced(partial, content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    # The rename itself is on the disk only when the folder is.
    sync_folder(path.parent)


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and wait until the disk has it; raises OSError."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until a folder's names are on the disk, where the system has a way; raises OSError."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
