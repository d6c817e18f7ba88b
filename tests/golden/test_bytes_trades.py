"""Replays of every mode make the same trades."""

from __future__ import annotations

from tests.golden import parts


def test_replays_make_the_same_trades() -> None:
    parts.check("bytes_trades")
