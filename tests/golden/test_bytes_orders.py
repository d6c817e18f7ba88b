"""The drop folder holds the same bytes, and signals end as they did."""

from __future__ import annotations

from tests.golden import parts


def test_the_drop_folder_holds_the_same_bytes() -> None:
    parts.check("bytes_orders")
