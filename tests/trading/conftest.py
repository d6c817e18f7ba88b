"""Fixtures that the tests of trading share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trading.test_courier import World
from tests.worlds.hands import PAPER, Market


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def market(tmp_path: Path) -> Market:
    return Market(tmp_path)


@pytest.fixture
def paper(tmp_path: Path) -> Market:
    found = Market(tmp_path, PAPER)
    found.bar()
    return found
