"""A desk on a live channel, whose Expert Advisor is compiled: only where there is g++."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.golden import visits

STATES: Final = ("live",)


def make(folder: Path) -> dict[str, str]:
    """Return the pages, answers and downloads of this state."""
    return visits.texts(STATES, folder)
