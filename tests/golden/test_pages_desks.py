"""Desks at work: asking a person, halted, fresh."""

from __future__ import annotations

from tests.golden import parts


def test_pages_and_answers() -> None:
    parts.check("pages_desks")
