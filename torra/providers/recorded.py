"""The recorded provider: it gives the answers that a journal holds, and no others.

A request is looked up by its tick, role, round and attempt. It is answered only when the hash of
the canonical request is the stored one. The nonce of a fence counts as its placeholder, in the
request as in the stored reply, so replies are handed over as they are stored. A call that failed
then fails again at once, for the same reason. An answer that came too late then is a timeout again.
Answers cost nothing: the journal has what they cost then.

A request that the journal does not know, or knows otherwise, is a miss: ModelUnavailable("miss"),
counted with its reason. It is never answered with something similar. `History` does the look-up.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, Final

from agents.contracts import ASKED_AGAIN, Completion, ModelUnavailable, Request, synchronous
from agents.texts.door import MAX_REPLY_CHARS
from scoring_rubric import request_hash
from torra.time_limit import settle

NAME: Final = "recorded"

History = Callable[[Request], Mapping[str, Any] | None]
"""Returns the stored calls row of (tick, role, round, attempt), None when there is none.

A request that was not made then is {"status": why not, "unasked": True}. Any thread may call it.
"""

NO_ANSWER: Final = frozenset(("timeout", "late"))
"""Statuses of a call whose answer came too late, or never."""

SAME: Final = (
    "model", "provider", "input_tokens", "output_tokens", "stop_reason", "cached_tokens",
)  # fmt: skip
"""Fields of a stored call that its answer has again."""


class RecordedProvider:
    """Answers from a journal. `answered` counts answers, failures of then included."""

    name = NAME

    def __init__(self, history: History) -> None:
        self._history = history
        self._lock = threading.Lock()
        self.answered = 0
        self.misses: Counter[str] = Counter()

    @synchronous
    def submit(self, request: Request) -> Future[Completion]:
        """Return the finished answer to a request."""
        future: Future[Completion] = Future()
        settle(future, partial(self._answer, request))
        return future

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _answer(self, request: Request) -> Completion:
        row = self._history(request)
        if row is None:
            raise self._miss("no row")
        status, detail = row["status"], row.get("detail", "")
        if row.get("unasked"):
            raise ModelUnavailable(status, "not asked then", again=None, billed=False)
        if row["request_hash"] != request_hash(request):
            raise self._miss("other request")
        with self._lock:
            self.answered += 1
        if status in NO_ANSWER:
            raise ModelUnavailable("timeout", detail)
        # Without a further attempt then, nothing may be tried again: it would be a miss.
        later = self._history(replace(request, attempt=request.attempt + 1))
        repeated = later is not None and not later.get("unasked")
        came = row["reply"] or row["stop_reason"] or row["provider"]
        given_up = status in ASKED_AGAIN and not repeated
        if status != "ok" and (given_up or not came):
            raise ModelUnavailable(status, detail, again=0.0 if repeated else None)
        text = str(row["reply"])
        if status == "garbage" and len(text) > MAX_REPLY_CHARS // 2:
            # Perhaps it was too long: what is kept of it is cut, and shorter by its nonces.
            text = text.ljust(MAX_REPLY_CHARS + 1)
        return Completion(text, **{name: row[name] for name in SAME}, final=not repeated)

    def _miss(self, reason: str) -> ModelUnavailable:
        with self._lock:
            self.misses[reason] += 1
        return ModelUnavailable("miss", reason, billed=False)
