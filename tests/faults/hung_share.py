"""A folder that stops answering, as one on a share whose server is gone.

While it hangs every call of the operating system that names something below it waits, in whatever
thread, until it is healed.
"""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path
from typing import Any

import pytest

CALLS = (
    "access", "link", "listdir", "lstat", "mkdir", "open", "rename", "replace", "scandir", "stat",
    "unlink", "utime",
)  # fmt: skip


class Share:
    """One folder that may be hung and healed; `waiting` tells how many calls wait now."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self._root = str(root)
        self._answers = threading.Event()
        self._answers.set()
        self._lock = threading.Lock()
        self.waiting = self.most = 0
        for name in CALLS:
            patch.setattr(os, name, self._slowed(getattr(os, name)))
        patch.setattr(io, "open", self._slowed(io.open))

    def hang(self) -> None:
        self._answers.clear()

    def heal(self) -> None:
        """Let every call go on that waits, and wait for the threads that made them."""
        self._answers.set()
        for thread in threading.enumerate():
            if thread.name == "limited":
                thread.join(10)

    def _slowed(self, call: Any) -> Any:
        def slowed(*words: Any, **more: Any) -> Any:
            names = [str(one) for one in words[:2] if isinstance(one, str | os.PathLike)]
            if any(name.startswith(self._root) for name in names) and not self._answers.is_set():
                self._count(1)
                self._answers.wait(60)
                self._count(-1)
            return call(*words, **more)

        return slowed

    def _count(self, step: int) -> None:
        with self._lock:
            self.waiting += step
            self.most = max(self.most, self.waiting)
