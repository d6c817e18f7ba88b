"""The example of a host: its own pages read their own file unchanged, and a desk's rows in it."""

from __future__ import annotations

import runpy
import threading
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from tests.worlds import desks, legacy_database
from torra.clock import System
from torra.config import ROOT
from torra.dashboard.doors.access import Access
from torra.exhibits import figures
from torra.store.host_files import SymbolDatabases

STEPS = 5


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A home in which a desk ran for some closes, and the host's file that it fed."""
    folder = tmp_path_factory.mktemp("host")
    file = legacy_database.build(folder / "sentiment.db", 3)
    desk = desks.open_desk(folder / "home", (desks.BTC, desks.EUR))
    files = SymbolDatabases({"BTCUSD": file}, desk.database, System().real_now)
    files.check()
    desks.open_for_work(desk)
    for _ in range(STEPS):
        desks.step(desk)
    desk.database.set_trading_state("REDUCING", "a person asked for it")
    files.start()
    files.close()
    newest = desk.database.latest_tick("BTCUSD", "M15")
    desk.close()
    return folder, newest


@pytest.fixture
def app(place: tuple[Path, dict[str, Any]]) -> Flask:
    folder, _ = place
    example = runpy.run_path(str(ROOT / "examples" / "existing_flask_app.py"))
    return example["create_app"](str(folder / "sentiment.db"), str(folder / "home"))


@pytest.fixture
def reader(place: tuple[Path, dict[str, Any]]) -> dict[str, str]:
    access, _ = Access.of_home(place[0] / "home")
    return {"Authorization": f"Bearer {access.tokens['read']}"}


def test_the_hosts_own_page_shows_the_desks_rows(
    app: Flask, place: tuple[Path, dict[str, Any]]
) -> None:
    rows = app.test_client().get("/sentiment").json
    newest = place[1]
    row = next(row for row in rows if row["timeframe"] == "M15")
    assert row["timestamp"] == newest["as_of"]
    assert (row["composite"], row["consensus"], row["verdict"]) == (
        newest["composite"], newest["consensus"], newest["verdict"],
    )  # fmt: skip
    assert [row["timestamp"][:4] for row in rows[-3:]] == ["2025"] * 3, "its own rows are there"


@pytest.mark.journey
def test_torras_pages_stand_beside_it_and_show_the_same(
    app: Flask, place: tuple[Path, dict[str, Any]], reader: dict[str, str]
) -> None:
    client = app.test_client()
    assert client.get("/torra/").status_code == 401
    page = client.get("/torra/", headers=reader)
    assert page.status_code == 200
    text = page.text
    assert figures.format_signed(place[1]["consensus"]) in text
    assert "REDUCING" in text
    assert client.get("/").text.startswith("<h1>Golden charts</h1>")
    assert client.get("/nothing").text == "Golden charts has no such page"
    assert "Content-Security-Policy" not in client.get("/").headers


def test_no_thread_and_no_scheduler_is_started(app: Flask, reader: dict[str, str]) -> None:
    before = {thread.name for thread in threading.enumerate()}
    app.test_client().get("/torra/", headers=reader)
    assert {thread.name for thread in threading.enumerate()} == before
    assert not [name for name in before if "APScheduler" in name]


def test_a_desk_that_stands_shows_the_time_at_which_it_stopped(
    app: Flask, place: tuple[Path, dict[str, Any]], reader: dict[str, str]
) -> None:
    desk = app.test_client().get("/torra/api/v1/overview", headers=reader).json["desk"]
    assert desk["role"] == "STOPPED"
    assert desk["now"] == place[1]["as_of"]
    assert desk["demo"] is True


def test_a_host_without_a_desk_yet_is_told_so(tmp_path: Path) -> None:
    example = runpy.run_path(str(ROOT / "examples" / "existing_flask_app.py"))
    with pytest.raises(Exception, match="no desk has run in"):
        example["create_app"]("none.db", str(tmp_path / "home"))
    assert not (tmp_path / "home").exists()
