"""Ticks of every mode come to what they did, to the last bit."""

from __future__ import annotations

from tests.golden import parts


def test_ticks_come_to_the_same_bits() -> None:
    parts.check("bytes_ticks")
