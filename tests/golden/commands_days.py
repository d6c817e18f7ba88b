"""What a person at a terminal gets: the commands in a home that lived for hours, and replays."""

from __future__ import annotations

from pathlib import Path

from tests.golden import commands


def make(folder: Path) -> dict[str, str]:
    """Return the transcripts and JSON documents; see `tests.golden.commands`."""
    return commands.transcripts(folder, ("days", "replays"))
