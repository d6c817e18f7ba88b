"""The steps on a channel's files, each within the time limit of its folder.

A share whose server is gone blocks every program that touches a file on it, for minutes or for
ever. Here a step that takes too long is an error like any other: the bridge says that it is dead,
and the tick and the courier go on. The step may still be done later: a signal whose last step was
left behind may still appear in inbox/, where the next look finds it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from torra.bridges.torra.drop_folder import Disk
from torra.time_limit import TimeLimit


class LimitedDisk(Disk):
    """The steps of `Disk`, each raising TimeoutError when it takes too long."""

    def __init__(self, limit: TimeLimit) -> None:
        self._limit = limit

    def make_folder(self, path: Path) -> None:
        """Make a folder."""
        self._limit.run(partial(super().make_folder, path))

    def create(self, path: Path) -> int:
        """Open a new file for writing."""
        return self._limit.run(partial(super().create, path))

    def write(self, handle: int, data: bytes) -> int:
        """Write as much as goes in at once."""
        return self._limit.run(partial(super().write, handle, data))

    def sync(self, handle: int) -> None:
        """Wait until the file is on the disk."""
        self._limit.run(partial(super().sync, handle))

    def close(self, handle: int) -> None:
        """Close a file."""
        self._limit.run(partial(super().close, handle))

    def give(self, source: Path, target: Path) -> None:
        """Rename without ever replacing."""
        self._limit.run(partial(super().give, source, target))

    def rename(self, source: Path, target: Path) -> None:
        """Rename."""
        self._limit.run(partial(super().rename, source, target))

    def replace(self, source: Path, target: Path) -> None:
        """Rename, over a file that is there."""
        self._limit.run(partial(super().replace, source, target))

    def remove(self, path: Path) -> None:
        """Remove a file."""
        self._limit.run(partial(super().remove, path))

    def sync_folder(self, path: Path) -> None:
        """Wait until a folder's names are on the disk."""
        self._limit.run(partial(super().sync_folder, path))

    def read(self, path: Path, limit: int) -> bytes:
        """Return a file's beginning."""
        return self._limit.run(partial(super().read, path, limit))

    def names(self, path: Path) -> list[str]:
        """Return the names in a folder."""
        return self._limit.run(partial(super().names, path))

    def there(self, path: Path) -> bool:
        """Return whether a file or a folder is there."""
        return self._limit.run(partial(super().there, path))

    def writable(self, path: Path) -> bool:
        """Return whether this user may write into a folder."""
        return self._limit.run(partial(super().writable, path))

    def changed(self, path: Path) -> float:
        """Return when a file was changed."""
        return self._limit.run(partial(super().changed, path))
