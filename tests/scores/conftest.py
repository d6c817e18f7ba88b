"""What the tests of the scorer share: for them it scores anew, whatever was scored before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.worlds.scored_once import Kept


@pytest.fixture(autouse=True, scope="module")
def _scored_anew(bars_are_scored_once: Kept | None) -> Iterator[None]:
    if bars_are_scored_once is None:
        yield
        return
    bars_are_scored_once.forgotten = True
    yield
    bars_are_scored_once.forgotten = False
