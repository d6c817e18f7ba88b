"""The commands in a home that lived for hours, and replays, say what stands in the goldens."""

from __future__ import annotations

from tests.golden import parts


def test_the_commands_are_as_in_the_goldens() -> None:
    parts.check("commands_days")
