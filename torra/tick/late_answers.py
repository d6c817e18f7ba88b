"""Late answers of a tick: recorded with what they cost after the tick was stored, never used.

A call that a stage no longer waits for goes on until the tick's deadline. The debate's own record
holds, as late, what it brings before the debate ends. `LateReplies` adds what comes after that to
the stored call. A failure is logged and nothing else: nothing waits for these answers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Final

from agents.contracts import Completion, Request, Submit
from agents.debate.deliberation import Call
from instance_database import TickKey
from torra.errors import StoreUnavailable
from torra.services import in_background
from torra.tick.tick_database import TickDatabase

log = logging.getLogger("torra")

STORE_WAIT: Final = 1.0
"""Seconds that a late answer waits for the database's lock."""


class LateReplies:
    """The calls of one tick, watched beyond its end."""

    def __init__(self, submit: Submit, monotonic: Callable[[], float]) -> None:
        """Stand between the desk and `submit`."""
        self._submit = submit
        self._monotonic = monotonic
        self._calls: list[Call] = []

    def submit(self, request: Request) -> Future[Completion]:
        """Send a request and keep an eye on it."""
        call = Call(request, "", self._monotonic())
        call.future = future = self._submit(request)
        # Noted at once: `watch` may add its callback long after the answer came.
        future.add_done_callback(lambda _: self._ended(call))
        self._calls.append(call)
        return future

    def watch(self, database: TickDatabase, key: TickKey) -> None:
        """Record, from now on, what comes for the calls of the tick, which is stored."""
        for call in self._calls:
            if call.future is not None:
                call.future.add_done_callback(partial(self._came, database, key, call))

    def _ended(self, call: Call) -> None:
        call.ended = self._monotonic()

    def _came(
        self, database: TickDatabase, key: TickKey, call: Call, future: Future[Completion]
    ) -> None:
        """Take an answer on the thread that brings it; that thread serves every desk."""
        took = (call.ended or self._monotonic()) - call.started
        failed = future.cancelled() or future.exception(timeout=0) is not None
        if failed or took <= call.request.limit_s:  # what came in time the tick has
            return
        call.completion = future.result(timeout=0)

        def record() -> None:
            try:
                with database.transaction(STORE_WAIT):
                    database.record_late(key, call.recorded(self._monotonic()))
            except StoreUnavailable as error:
                log.warning("a late answer of %s is not recorded: %s", key.text, error)
            except Exception:
                log.exception("a late answer of %s is not recorded", key.text)

        # Not on this thread: it must not wait for a lock.
        in_background("torra-late", record)
