"""`torra X --json` and the API answer alike: both hand out the same objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worlds import demo_orders
from tests.worlds.hands import torra

SUMS = "currency last_hour today last_24_hours roles models days blocked kept late"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("desk") / "home"


@pytest.fixture(scope="module")
def api(home: Path) -> Iterator[Any]:
    backing = demo_orders.build(home)
    backing.database.audit(actor="p", action="halt", target="desk", before={"why": "lunch"})
    yield demo_orders.open_pages(backing, "admin").test_client()
    backing.database.close()


@pytest.mark.parametrize(
    ("command", "address", "fields"),
    [
        ("jobs", "jobs", "jobs"),
        ("notices", "notices", "notices"),
        ("audit", "audit", "entries"),
        ("signals", "signals", "bridges alarms"),
        ("results", "money", "day lost_today warm_up_today"),
        ("models", "models", "currency vendors traders"),
        ("cost", "costs", SUMS),
        ("profile show default", "profiles/default", "profile digest values"),
        ("effect", "changed", "changed needed next says ticks verdicts_changed"),
    ],
)
def test_a_command_answers_as_the_api(
    home: Path, api: Any, command: str, address: str, fields: str
) -> None:
    answer = api.get(f"/api/v1/{address}").get_json()
    answer = answer.get("report", answer)
    document = json.loads(torra(home, *command.split(), "--json").stdout)
    assert {name: document[name] for name in fields.split()} == {
        name: answer[name] for name in fields.split()
    }
