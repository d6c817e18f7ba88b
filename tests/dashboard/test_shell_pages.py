"""What surrounds every page as the server renders it: Halt, the way to resume, the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.entrance import OURS
from tests.doubles.page_reader import Page
from tests.doubles.visitors import ACCESS
from tests.worlds import desks
from torra.config import DeskSettings
from torra.dashboard.app import create_app
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.desk.schedule import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = desks.open_desk(tmp_path, (desks.BTC,))
    yield made
    made.close()


def read(desk, address, scope="admin"):
    settings = DeskSettings(instances=(desks.BTC,))
    backing = PageContext(Path("home"), desk.database, settings, desk, environment={})
    app = create_app(DatabaseView(desk.database, settings, desk), access=ACCESS, backing=backing)
    client = app.test_client()
    if scope:
        client.post("/login", data={"token": ACCESS.tokens[scope]}, headers=OURS)
    return Page(client.get(address).text)


def test_a_halted_desk_offers_no_halt_and_leads_to_resume(desk: Desk) -> None:
    page = read(desk, "/")
    assert "⊘ Halt " in page.text
    assert not [a for a in page.all("button") if "disabled" in a]
    desk.database.halt("a person")
    page = read(desk, "/")
    assert "⊘ Halt " not in page.text
    assert len([a for a in page.all("button") if "disabled" in a]) == 1
    assert "Orders: resume" in page.text


@pytest.mark.journey
def test_every_visitor_finds_the_audit_log_and_no_stranger(desk: Desk) -> None:
    assert "/audit" in [a.get("href") for a in read(desk, "/help", "read").all("a")]
    assert [a["data-login"] for a in read(desk, "/help", "read").all("html")] == ["/login"]
    assert "/audit" not in [a.get("href") for a in read(desk, "/login", "").all("a")]
