"""Desks that several files of this room look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds import demo_orders
from torra.dashboard.view.backing import PageContext


@pytest.fixture
def backing(tmp_path: Path) -> Iterator[PageContext]:
    """Lend a desk that asks a person: proposals and signals in every state."""
    made = demo_orders.build(tmp_path / "home")
    yield made
    made.database.close()


@pytest.fixture
def traded(backing: PageContext, monkeypatch: pytest.MonkeyPatch) -> PageContext:
    """Lend that desk so that its closed trades count.

    Its clock stood at each close, which is the mark of a warm-up.
    """
    monkeypatch.setattr("torra.store.standings.warm_up_end", lambda *_: None)
    return backing
