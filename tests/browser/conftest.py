"""The browser of a file: each borrows the one of its process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.doubles.browser import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened
