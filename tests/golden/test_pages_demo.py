"""The demo with everything in it, and a desk with lessons."""

from __future__ import annotations

from tests.golden import parts


def test_pages_and_answers() -> None:
    parts.check("pages_demo")
