"""Vendors are sent what they were, and the ledger books the same amounts."""

from __future__ import annotations

from tests.golden import parts


def test_vendors_are_sent_and_paid_the_same() -> None:
    parts.check("bytes_vendors")
