"""Making new names in a folder outlive a power cut: the last step of writing a file whole."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Wait until a folder's names are on the disk, where the system has a way; raises OSError."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
