"""Why a tool gives no facts: the closed list of codes, each with its word and its meaning."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

from agents.features import rows_of
from torra.tools.contract import ToolError
from torra.words.badge import capital

ROWS: Final = {row.pop("code"): row for row in rows_of(Path(__file__).with_name("codes.csv"))}
"""Word and meaning by code."""


class ToolCode(StrEnum):
    """Why a call gave no facts."""

    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    NOT_ALLOWED = "NOT_ALLOWED"
    BAD_ARGUMENT = "BAD_ARGUMENT"
    UNKNOWN_SYMBOL = "UNKNOWN_SYMBOL"
    TURN_LIMIT = "TURN_LIMIT"
    AGENT_LIMIT = "AGENT_LIMIT"
    RUN_LIMIT = "RUN_LIMIT"
    MINUTE_LIMIT = "MINUTE_LIMIT"
    LOOP_LIMIT = "LOOP_LIMIT"
    TIMEOUT = "TIMEOUT"
    FAILED = "FAILED"
    UNREADABLE = "UNREADABLE"
    NO_AUDIT = "NO_AUDIT"
    NOT_FOUND = "NOT_FOUND"
    NO_BARS = "NO_BARS"
    NO_TICK = "NO_TICK"
    NO_STUDY = "NO_STUDY"
    NO_RUN = "NO_RUN"

    def error(self, more: str = "") -> ToolError:
        """Return the error of this code: its meaning, and what is known beyond it."""
        meaning = f"{capital(ROWS[self]['meaning'])}."
        return ToolError(code=self, message=f"{meaning} {more}".rstrip())


def code_table() -> str:
    """Return the codes as a table of Markdown, for docs/mcp.md."""
    lines = ["| code | meaning |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{code}` | {ROWS[code]['meaning']} |" for code in ToolCode)])
