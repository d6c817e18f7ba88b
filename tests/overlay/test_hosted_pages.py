"""Hosted streams on the pages: in a host without a desk, and beside one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from tests.doubles.page_reader import Page, check_structure
from tests.doubles.scripted import Scripted
from tests.doubles.visitors import ACCESS, bearer
from tests.worlds import scorers
from torra.dashboard import TorraOverlay
from torra.dashboard.doors.routes import every_route
from torra.overlay import Overlay
from torra.store import replay_queries

BASE = "http://127.0.0.1"
OPEN_ENDED = ("stream", "watch", "picture", "<path")


@pytest.fixture(autouse=True)
def homes(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[Path, None]]:
    """The homes of this test's overlays alone."""
    found: dict[Path, None] = {}
    for module in ("torra.overlay.overlay", "torra.dashboard.app"):
        monkeypatch.setattr(f"{module}.HOSTED", found)
    monkeypatch.setattr("torra.desk.looking_desk.HOSTED", found)
    monkeypatch.delenv("TORRA_HOME", raising=False)
    return iter([found])


def visited(overlay: Overlay | None = None, home: Path | None = None) -> Any:
    del overlay
    app = Flask("host")
    if home is not None:
        app.config["TORRA_AGENTS_HOME"] = str(home)
    TorraOverlay(app, access=ACCESS)
    client = app.test_client()

    def get(address: str) -> Any:
        return client.get(
            f"/torra{address}", headers=bearer("admin"), base_url=BASE, follow_redirects=True
        )

    return get


def status(address: str) -> int:
    """Return what an address answers where no scan was made: no other has nothing to show."""
    return 404 if address == "/api/v1/radar/latest" else 200


def addresses(answer: Any) -> list[str]:
    """Return every address that can be read without more than a stream and a bar."""
    stream = f"{answer.record['instance']}"
    known = {
        "<instance>": stream, "<timeframe>": "M15", "<bar_time>": answer.record["bar_time"],
    }  # fmt: skip
    found = []
    for route in every_route():
        rule = str(route.rule)
        for name, value in known.items():
            rule = rule.replace(name, value)
        if "GET" in route.methods and "<" not in rule and not any(w in rule for w in OPEN_ENDED):
            found.append(rule)
    return found


def test_the_login_page_of_a_host_names_no_command_of_a_desk(tmp_path: Path) -> None:
    scorers.asked(scorers.overlay(tmp_path, strict=True), scores=scorers.L1)
    app = Flask("host")
    TorraOverlay(app, access=ACCESS)
    told = app.test_client().get("/torra/login", base_url=BASE).get_data(as_text=True)
    check_structure(Page(told))
    assert "flask --app YOUR_APP torra link" in told and "torra run" not in told


@pytest.mark.journey
def test_every_page_works_in_a_host_without_a_desk(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    get = visited()
    assert get("/").status_code == 200, "before the first question"
    answer = scorers.asked(overlay, scores=scorers.L1, extra={"rsi": 61.2})
    scorers.asked(overlay, scorers.bars(399), scores=scorers.L1)
    shown = addresses(answer)
    assert len(shown) > 30
    for address in shown:
        page = get(address)
        assert page.status_code == status(address), address
        if page.mimetype == "text/html":
            check_structure(Page(page.get_data(as_text=True)))


def test_the_pages_say_who_decides(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    answer = scorers.asked(overlay, scores=scorers.L1, extra={"rsi": 61.2})
    get = visited()
    home = get("/").get_data(as_text=True)
    assert "host:scorer:BTCUSD" in home and "your scorer decides" in home
    assert "Torra sends nothing here" in home
    tick = get(f"/symbol/host:scorer:BTCUSD/M15/{answer.record['bar_time']}").get_data(as_text=True)
    assert "as your scorer gave it" in tick and "host.rsi" in tick
    assert "the scorer&#39;s own score; Torra reads" in tick.replace("'", "&#39;")


def test_a_revision_replaces_what_the_page_showed(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, Scripted(), strict=True)
    get = visited()
    scorers.asked(overlay, scores=scorers.L1)
    address = "/symbol/host:scorer:BTCUSD/M15/2021-10-01T17:30:00Z"
    assert "+0.42" in get(address).get_data(as_text=True)
    first = get("/").get_data(as_text=True)
    scorers.asked(overlay, scores={**scorers.L1, "price_action": -0.77})
    page = get(address).get_data(as_text=True)
    assert "0.77" in page and "+0.42" not in page
    assert get("/").get_data(as_text=True) != first
    assert address in get("/symbol/host:scorer:BTCUSD/M15").get_data(as_text=True)


@pytest.mark.journey
def test_beside_a_desk_both_are_shown_and_neither_disturbs_the_other(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "desk.json").write_text(
        '{"instances": [{"symbol": "BTCUSD", "feed": "store", "timeframes": ["M15"]}]}'
    )
    with closing(scorers.stored(tmp_path)) as database:
        database.apply_profile("BTCUSD", "{}", "x")
    overlay = scorers.overlay(tmp_path, strict=True)
    answer = scorers.asked(overlay, scores=scorers.L1)
    get = visited(home=home)
    page = get("/").get_data(as_text=True)
    assert page.index("/symbol/BTCUSD") and page.index("/symbol/host:scorer:BTCUSD")
    assert "No desk works on this home" in page
    for address in addresses(answer):
        assert get(address).status_code == status(address), address
    with closing(scorers.stored(tmp_path)) as database:
        assert database.desk_time() is None, "no clock of a desk goes by a host's bars"
        assert replay_queries.ticked_instances(database) == []


def test_only_the_home_of_the_overlay_is_shown_by_itself(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path)
    get = visited(overlay)
    assert get("/").status_code == 200
    assert (tmp_path / "home" / "torra.db").exists(), "made on first use"
