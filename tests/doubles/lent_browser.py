"""One Chromium for all who ask one process of tests for it: a start takes as long as five pages.

Playwright holds the thread that speaks to it: asyncio believes a loop to run there. So whoever gave
the browser back has the thread back too, until somebody borrows it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any


class Lent:
    """A browser that is opened for the first who asks, and closed at the end of all tests."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._browser: Any = None
        self._is_lent = False

    @contextmanager
    def lend(self, opened: Callable[[], Any]) -> Iterator[Any]:
        """Lend the browser, `opened` anew where there is none; no page of it is left open."""
        if self._is_lent:
            raise RuntimeError("the browser is lent: a test module keeps it in a fixture")
        if self._browser is not None:
            self._take_thread()
        if self._browser is None or not self._browser.is_connected():
            self.close()
            self._browser = self._open.enter_context(opened())
        self._is_lent = True
        try:
            yield self._browser
        finally:
            self._is_lent = False
            for context in list(self._browser.contexts):
                context.close()
            asyncio._set_running_loop(None)

    def close(self) -> None:
        """Close the browser, if there is one."""
        if self._browser is not None:
            self._take_thread()
        self._browser = None
        self._open.close()

    def _take_thread(self) -> None:
        asyncio._set_running_loop(self._browser._loop)


lent = Lent()
