"""Desks at work: asking a person, halted, fresh, on a live channel."""

from __future__ import annotations

from tests.golden import parts


def test_pages_and_answers() -> None:
    parts.check("pages_desks")
