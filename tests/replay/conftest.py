"""What the tests of replays share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import technical_calculator
from instance_database import Database
from tests.worlds import journals
from tests.worlds.tables_once import tables_once
from torra.replay.changed import without_agents
from torra.replay.l1 import verdicts


@pytest.fixture(scope="module")
def scored_once() -> Iterator[None]:
    """Scores of the same bars, which most tests of a file ask for, worked out once."""
    with tables_once(technical_calculator, verdicts, without_agents):
        yield


@pytest.fixture
def source(lived: Path, tmp_path: Path) -> Iterator[Database]:
    """A copy of the file of a desk, which the test's own module lets live."""
    with journals.copied(lived, tmp_path / "source") as database:
        yield database
