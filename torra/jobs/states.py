"""The life of a job as a table: its states, which may follow which, and how often it is tried.

Pure and without memory: who asks for a job, who cancels it and the worker that runs it read one
table. A final state never changes again. RETRYING is a job that ran and ended through no fault of
its own: its desk is gone, its process died, or a lock that it needs is held by somebody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    "queued": frozenset({"running", "cancelled"}),
    "running": frozenset({"retrying", "done", "error", "cancelled"}),
    "retrying": frozenset({"running", "cancelled"}),
    "done": frozenset(),
    "error": frozenset(),
    "cancelled": frozenset(),
}

FINAL: Final = tuple(state for state, following in TRANSITIONS.items() if not following)
"""States in which a job has ended."""

LIVE: Final = tuple(state for state, following in TRANSITIONS.items() if following)
"""States of a job that goes on: while it is in one of them the same request is this job."""

ATTEMPTS: Final = 2
"""How often a job is begun. A desk that is stopped in order gives its attempt back."""


def check_transition(state: str, following: str) -> None:
    """Raise ValueError when a job in `state` may not become `following`."""
    if following not in TRANSITIONS.get(state, frozenset()):
        raise ValueError(f"a job that is {state} cannot become {following}")


def after_failure(attempt: int) -> str:
    """Return what a job becomes whose attempt of this number, from 1, ended without its fault."""
    return "retrying" if attempt < ATTEMPTS else "error"
