"""Every notice that the program can send says what stands in the goldens."""

from __future__ import annotations

from tests.golden import parts


def test_the_notices_are_as_in_the_goldens() -> None:
    parts.check("notices")
