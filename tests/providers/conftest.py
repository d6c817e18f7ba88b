"""Benches end with the file that opened them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doubles.vendor_bench import close_all


@pytest.fixture(scope="module", autouse=True)
def _closed_at_the_end() -> Iterator[None]:
    yield
    close_all()
