"""The provider of somebody else: whatever it does, the caller gets a future.

What submit raises, or returns that is no future, is a future that failed; it counts as billed,
because nobody knows. Deadline, retries, parsing and bounds are the framework's; the ceiling is the
purse's, and there a plug-in's models cost the worst case until prices.json prices them.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any

from agents.contracts import Completion, ModelUnavailable, Request

log = logging.getLogger("torra")


class GuardedProvider:
    """A plug-in as the desk may use it."""

    def __init__(self, provider: Any, name: str) -> None:
        self.name: str = name
        self._provider = provider

    def submit(self, request: Request) -> Future[Completion]:
        """Take a request and return its answer to come; never raises."""
        try:
            answer = self._provider.submit(request)
            if isinstance(answer, Future):
                return answer
            told = f"it returned {type(answer).__name__} instead of a future"
        except Exception as error:
            log.exception("the provider %s", self.name)
            told = type(error).__name__
        failed: Future[Completion] = Future()
        failed.set_exception(ModelUnavailable("error", f"{self.name}: {told}", again=None))
        return failed

    def close(self) -> None:
        """Let the plug-in go."""
        try:
            self._provider.close()
        except Exception:
            log.exception("the provider %s", self.name)
