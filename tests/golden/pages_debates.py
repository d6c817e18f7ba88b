"""Desks that argue: eight agents in every case, a firm, a swarm."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.golden import visits

STATES: Final = ("crowded", "firm", "swarm")


def make(folder: Path) -> dict[str, str]:
    """Return the pages, answers and downloads of these states."""
    return visits.texts(STATES, folder)
