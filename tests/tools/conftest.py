"""A home whose desk traded for some hours, made once, and copies of it for tests that write."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from instance_database import Database, open_home, open_reader
from tests.worlds import busy_desk, desks
from torra.config import DeskSettings
from torra.tools.desk_reader import DeskReader
from torra.tools.executor import ToolCall
from torra.tools.registry import TOOLS

QUARTERS = 40


class World(NamedTuple):
    """A home at the moment at which its desk stopped."""

    home: Path
    settings: DeskSettings
    audit: Database
    reader: DeskReader


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, datetime]:
    home = tmp_path_factory.mktemp("tools") / "home"
    desk = busy_desk.run(home, None, "full", QUARTERS)
    as_of = desk.clock.now()
    desk.close()
    return home, as_of


@pytest.fixture
def world(made: tuple[Path, datetime], tmp_path: Path) -> Iterator[World]:
    home = shutil.copytree(made[0], tmp_path / "home")
    settings = DeskSettings(instances=(desks.BTC,))
    (home / "desk.json").write_text(settings.model_dump_json(), encoding="utf-8")
    profiles = {"BTCUSD": busy_desk.trading("full")}
    with closing(open_home(home)) as audit, closing(open_reader(home / "torra.db")) as evidence:
        reader = DeskReader(home, evidence, settings, profiles, made[1], made[1])
        yield World(home, settings, audit, reader)


def every_call(**more: object) -> list[ToolCall]:
    """Return a call of each tool with arguments that fit."""
    usual = {"symbol": "BTCUSD", "pattern": "double_top", "words": "kill switch", **more}
    return [
        ToolCall(name, {key: usual[key] for key in spec.args.model_fields if key in usual})
        for name, spec in TOOLS.items()
    ]
