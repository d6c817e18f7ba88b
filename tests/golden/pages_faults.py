"""What fails: models, rows, the database, the program; and a host without a desk."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.golden import visits

STATES: Final = ("degraded", "hosted", "damaged", "lost", "failing")


def make(folder: Path) -> dict[str, str]:
    """Return the pages, answers and downloads of these states."""
    return visits.texts(STATES, folder)
