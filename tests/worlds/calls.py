"""Calls to models that never were, stored as a tick stores its own."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from types import SimpleNamespace
from typing import Any, Final

from instance_database import Database, TickKey
from tests.worlds.stores import NOON

HAIKU: Final = "claude-haiku-5-5"
_NUMBERS: Final = count(1)


def a_call(**changes: Any) -> Any:
    """Return a call with every field of a record (agents.debate.deliberation.CALL_FIELDS)."""
    fields: dict[str, Any] = {
        "role_id": "technical", "stage": "analysts", "round": 1, "attempt": 1, "status": "ok",
        "model": HAIKU, "provider": "anthropic", "system": "", "user": "", "reply": "",
        "input_tokens": 1, "output_tokens": 1, "cost_usd": 0.0, "elapsed_ms": 90.0,
        "request_hash": "", "detail": "", "stop_reason": "", "cached_tokens": 0,
    }  # fmt: skip
    return SimpleNamespace(**(fields | changes))


def store(database: Database, statuses: Iterable[str], **more: Any) -> None:
    """Store the calls of one tick to Anthropic's quick model, in this order."""
    calls = []
    for status in statuses:
        # A call without any answer has no vendor on record.
        answered = status in ("ok", "garbage", "refused", "wrong_symbol", "late")
        provider = "anthropic" if answered else ""
        role = f"role{next(_NUMBERS)}"
        calls.append(a_call(**{"role_id": role, "status": status, "provider": provider, **more}))
    database.write_calls(TickKey("EURUSD", "H1", NOON), calls)
