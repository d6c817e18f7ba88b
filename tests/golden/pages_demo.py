"""The demo with everything in it, and a desk with lessons."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.golden import visits

STATES: Final = ("demo", "lessons")


def make(folder: Path) -> dict[str, str]:
    """Return the pages, answers and downloads of these states."""
    return visits.texts(STATES, folder)
