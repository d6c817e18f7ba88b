"""What fails: models, rows, the database, the program; and a host without a desk."""

from __future__ import annotations

from tests.golden import parts


def test_pages_and_answers() -> None:
    parts.check("pages_faults")
