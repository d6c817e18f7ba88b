"""Desks that argue: eight agents in every case, a firm, a swarm."""

from __future__ import annotations

from tests.golden import parts


def test_pages_and_answers() -> None:
    parts.check("pages_debates")
