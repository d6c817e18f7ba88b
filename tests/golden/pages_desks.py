"""Desks at work: asking a person, halted, fresh."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.golden import visits

STATES: Final = ("approve", "halted", "empty")


def make(folder: Path) -> dict[str, str]:
    """Return the pages, answers and downloads of these states."""
    return visits.texts(STATES, folder)
