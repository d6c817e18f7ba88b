"""The tables of a desk's database, after a few ticks, are those of the goldens."""

from __future__ import annotations

from tests.golden import parts


def test_the_tables_are_as_in_the_goldens() -> None:
    parts.check("tables")
