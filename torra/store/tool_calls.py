"""The audit of tools: one row for each invocation, with every fact that it gave.

Rows are appended by `append_tool_call` alone and never changed; triggers hold that (torra.store.
schema). `prune_tool_calls` takes the oldest away. Evidence is read elsewhere, through a connection
that cannot write.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from torra.store.connection import RowDict, Store


def append_tool_call(store: Store, row: Mapping[str, object]) -> int:
    """Append a row and return its number; `seq` counts the rows of its run from 1.

    Its other keys are run, agent, turn, tool, args (JSON text), args_hash, status (ok, cached,
    error, refused or timeout), code, elapsed_ms, result_hash, facts (JSON text) and as_of.
    """
    with store.transaction():
        seq = store.value("SELECT max(seq) FROM tool_calls WHERE run = ?", row["run"]) or 0
        return store.add("tool_calls", {"at": store.moment(), "seq": seq + 1, **row})


def tool_calls(store: Store, run: str) -> list[RowDict]:
    """Return the rows of a run, oldest first."""
    return store.rows("SELECT * FROM tool_calls WHERE run = ? ORDER BY seq", run)


def prune_tool_calls(store: Store, before: datetime, *, limit: int) -> int:
    """Remove the oldest rows that were written before a moment (real time); return how many."""
    return store.change(
        "DELETE FROM tool_calls WHERE number IN "
        "(SELECT number FROM tool_calls WHERE at < ? ORDER BY number LIMIT ?)",
        before, limit,
    )  # fmt: skip
