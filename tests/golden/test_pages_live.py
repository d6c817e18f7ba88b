"""A desk on a live channel."""

from __future__ import annotations

from tests.golden import parts


def test_pages_and_answers() -> None:
    parts.check("pages_live")
