"""`torra X --json` and the API answer alike: both hand out the same objects, whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worlds import demo_orders
from tests.worlds.hands import torra
from torra.clock import System
from torra.dashboard.view.backing import context_of
from torra.desk.looking_desk import look_at


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("desk") / "home"
    backing = demo_orders.build(home)
    backing.database.audit(actor="p", action="halt", target="desk", before={"why": "lunch"})
    backing.database.close()
    (home / "desk.json").write_text(demo_orders.settings().model_dump_json())
    (home / "profiles").mkdir()
    (home / "profiles" / "default.json").write_text(demo_orders.PROFILE.model_dump_json())
    return home


@pytest.fixture(scope="module")
def api(home: Path) -> Iterator[Any]:
    looked = context_of(look_at(home))
    yield demo_orders.open_pages(looked, "admin").test_client()
    looked.database.close()


@pytest.mark.parametrize(
    ("command", "address"),
    [
        ("jobs", "jobs"),
        ("notices", "notices"),
        ("audit", "audit"),
        ("audit --action halt --limit 1", "audit?action=halt&limit=1"),
        ("signals", "signals"),
        ("signals --instance gold-h1", "signals?instance=gold-h1"),
        ("results", "money"),
        ("models", "models"),
        ("cost", "costs"),
        ("lessons", "lessons"),
        ("lessons --side SHORT --limit 1", "lessons?side=SHORT&limit=1"),
        ("profile show", "profiles"),
        ("profile show default", "profiles/default"),
        ("effect", "changed"),
        ("effect --what size --limit 2", "changed?what=size&limit=2"),
    ],
)
def test_a_command_answers_as_the_api(
    home: Path, api: Any, command: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = System().real_now()
    monkeypatch.setattr(System, "real_now", lambda _: now)
    answer = api.get(f"/api/v1/{address}")
    assert answer.status_code == 200
    assert json.loads(torra(home, *command.split(), "--json").stdout) == answer.get_json()


def test_health_shows_the_checks_of_doctor(
    home: Path, api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, free = System().real_now(), shutil.disk_usage(home)
    for name in ("real_now", "now"):
        monkeypatch.setattr(System, name, lambda _: now)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    checks = json.loads(torra(home, "doctor", "--json").stdout)["checks"]
    signs = api.get("/api/v1/health").get_json()["signs"]
    rows = [*signs["checklist"], *signs["lasting"]]
    assert {"python", "packages", "sqlite", "clock", "home"} <= {row["name"] for row in rows}
    assert [row for row in rows if row not in checks] == []
