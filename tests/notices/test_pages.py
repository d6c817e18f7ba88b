"""The pages' notices by number, cleaned again; and what Health says of a service that fails."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.doubles.visitors import open_app
from tests.worlds.demo_view import ScriptedView
from tests.worlds.desk_pages import Pages, open_pages
from torra.dashboard.answers import adapters
from torra.notices.listing import ROWS
from torra.store import notices as notice_table

NOW = datetime(2026, 2, 13, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    found = open_pages(tmp_path_factory.mktemp("home"), steps=0)
    yield found
    found.database.close()


@pytest.fixture
def pages(made: Pages) -> Pages:
    for table in ("notice_outbox", "notices", "notice_services"):
        made.database.connection().conn.execute(f"DELETE FROM {table}")
    made.database.connection().conn.commit()
    return made


def tell(pages: Pages, key: str, services: tuple[str, ...] = (), **more: Any) -> None:
    row = {
        "key": key, "kind": "halt", "level": "alarm", "title": "Torra: HALTED", "text": "Why.",
        "instance": "", "desk_time": NOW, "at": NOW, "silent": False, **more,
    }  # fmt: skip
    assert notice_table.add_notice(pages.database, row, services)


def test_notices_come_by_number_oldest_first(pages: Pages) -> None:
    assert pages.json("/api/v1/notices") == {"notices": [], "newest": 0, "services": []}
    for number in range(ROWS + 3):
        tell(pages, f"k{number}", silent=number == 2)
    found = pages.json("/api/v1/notices?after=0")
    assert [one["key"] for one in found["notices"]] == [f"k{n}" for n in range(ROWS)]
    assert [one["silent"] for one in found["notices"][:4]] == [False, False, True, False]
    assert found["notices"][0] == {
        "id": found["notices"][0]["id"], "key": "k0", "kind": "halt", "level": "alarm",
        "title": "Torra: HALTED", "text": "Why.", "instance": "",
        "desk_time": "2026-02-13T12:00:00Z", "at": "2026-02-13T12:00:00Z", "silent": False,
        "sent": [],
    }  # fmt: skip
    rest = pages.json(f"/api/v1/notices?after={found['newest']}")
    assert [one["key"] for one in rest["notices"]] == ["k50", "k51", "k52"]
    assert pages.json(f"/api/v1/notices?after={rest['newest']}")["notices"] == []
    newest = pages.json("/api/v1/notices")
    assert newest["newest"] == rest["newest"] and newest["notices"][-1]["key"] == "k52"


def test_a_number_of_another_database_begins_anew(pages: Pages) -> None:
    tell(pages, "k")
    newest = pages.json("/api/v1/notices")["newest"]
    again = pages.json("/api/v1/notices?after=9999")
    assert (again["notices"], again["newest"]) == ([], newest)


@pytest.mark.parametrize("after", ["-1", "x", "", "1.5", "9" * 19, "٣"])
def test_what_is_no_number_is_refused(pages: Pages, after: str) -> None:
    assert pages.json(f"/api/v1/notices?after={after}", 400)["error"] == "after is a number"


def test_what_stands_in_the_database_is_cleaned_again(pages: Pages) -> None:
    tell(pages, "k\u202e", ("1 json",), title="<b>x</b>\u0000\u202e", text="a\u200bb")
    notice_table.note_service(pages.database, "1 json", "not taken")
    answer = pages.json("/api/v1/notices")
    adapters()["api_notices"].validate_python(answer, extra="forbid")
    (one,) = answer["notices"]
    assert [way["service"] for way in one["sent"]] == ["1 json"]
    assert (one["key"], one["title"], one["text"]) == ("k", "<b>x</b>", "ab")


def test_pages_without_a_database_have_none() -> None:
    answer = open_app(ScriptedView()).test_client().get("/api/v1/notices")
    assert answer.get_json() == {"notices": [], "newest": 0, "services": []}


def test_health_says_when_the_last_notice_was_not_taken(pages: Pages) -> None:
    def signs() -> list[Any]:
        found = pages.json("/api/v1/health")["signs"]["events"]
        return [one for one in found if one["name"] == "notices"]

    assert signs() == [], "nothing was ever sent"
    notice_table.note_service(pages.database, "1 json", "")
    assert signs()[0]["level"] == "ok"
    notice_table.note_service(pages.database, "2 mailto", "not taken: unreachable, or it refused")
    (one,) = signs()
    assert one["level"] == "warn" and "2 mailto: not taken" in one["detail"]
    assert "torra notices" in one["remedy"]
