"""What the program has for those outside of it is what is committed."""

from __future__ import annotations

from tests.golden import parts


def test_the_inventory_is_complete() -> None:
    parts.check("inventory")
