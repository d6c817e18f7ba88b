"""What the tests of bridges share: channels of an Expert Advisor, a terminal of the package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.advisor_channel import AdvisorChannel
from tests.worlds.mt5_package import World


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[AdvisorChannel]:
    with AdvisorChannel(tmp_path) as channel:
        yield channel


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdvisorChannel]:
    """A channel for many signals: `ack_of` puts everything back after each."""
    with AdvisorChannel(tmp_path_factory.mktemp("guarded")) as channel:
        yield channel


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()
