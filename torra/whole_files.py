"""Writing files so that they are there whole or not at all, whatever cuts the writing off."""

from __future__ import annotations

import os
from pathlib import Path

from torra.clock import token


def write_whole(path: Path, content: bytes) -> None:
    """Write a file into a folder that is there, in the place of any older one; raises OSError.

    After a crash or a power cut it is the old one or the new one. Of two writers at once the later
    one's is whole too.
    """
    partial = path.with_name(f".{path.name}.{token(4)}.partial")
    try:
        write_synced(partial, content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
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
