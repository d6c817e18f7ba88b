"""Pages of a desk that the tests of jobs share; a module says how they are opened: `pages_in`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.desk_pages import Pages, behind_a_new_app
from torra.jobs.worker import Worker
from torra.replay.job_kinds import KINDS


@pytest.fixture
def pages(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pages]:
    found = request.module.pages_in(tmp_path / "home")
    yield found
    found.desk.close()


@pytest.fixture(scope="module")
def unasked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pages]:
    found = request.module.pages_in(tmp_path_factory.mktemp("idle") / "home")
    yield found
    found.desk.close()


@pytest.fixture
def idle(unasked: Pages) -> Pages:
    """Pages of a desk that no test gives a job: what is refused leaves nothing."""
    return behind_a_new_app(unasked.desk, unasked.backing)


@pytest.fixture
def worker(pages: Pages) -> Iterator[Worker]:
    found = Worker(pages.database, pages.backing.home, KINDS, retry_seconds=0.2)
    yield found
    found.close()
