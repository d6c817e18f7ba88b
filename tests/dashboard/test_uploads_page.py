"""A file of bars that is handed in on the page Replays: who may, how large, what becomes of it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.conftest import Scale
from tests.doubles.browser import PHONE, Site, Visit, chromium, findings, needs_browser
from tests.doubles.page_reader import Page
from tests.doubles.visitors import ACCESS, bearer
from tests.worlds import demo_orders
from tests.worlds.desk_pages import Pages, open_pages
from torra.config import ROOT
from torra.dashboard.app import create_app
from torra.dashboard.doors.access import LARGEST_BODY, MOST_FIELDS
from torra.dashboard.view.desk_view import DatabaseView
from torra.home import UPLOADS
from torra.replay import uploads
from torra.store import audit as audit_chain

SAMPLE = ROOT / "sample_data" / "BTCUSD_M15.csv"
BARS = (ROOT / "sample_data" / "BTCUSD_H1.csv").read_bytes()
ADDRESS = "/api/v1/uploads"


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    found = open_pages(tmp_path / "home")
    yield found
    found.desk.close()


def send(pages: Pages, content: bytes, file_name: str = "btc.csv", **more: Any) -> Any:
    headers = {"Accept": "application/json", **more.pop("headers", {})}
    data = {"file": (io.BytesIO(content), file_name), **more}
    return pages.client().post(ADDRESS, data=data, headers=headers)


def in_parts(pages: Pages, content: bytes, name: str, part: int = 200_000) -> Any:
    begun = ""
    *parts, last = [content[at : at + part] for at in range(0, len(content), part)]
    for one in parts:
        answer = send(pages, one, "blob", name=name, more="1", begun=begun)
        assert answer.status_code == 202, answer.text
        begun = answer.json["begun"]
    return send(pages, last, "blob", name=name, begun=begun)


def test_a_file_is_taken_offered_and_on_record(pages: Pages) -> None:
    answer = send(pages, BARS)
    assert answer.status_code == 200
    assert answer.json == {
        "status": "done",
        "reason": "btc.csv is there: 2,165 bars of H1, 2021-09-27 to 2021-12-29. "
        "Read as a table: ISO dates. Clock utc: its times carry a zone. Of the usual hours of "
        "trade 67 bars are missing, in 8 holes; the longest, of 56, begins on 2021-11-27.",
        "name": "btc.csv",
    }
    page = Page(pages.text("/replays"))
    assert "btc.csv of the folder uploads" in page.text
    (entry,) = audit_chain.audit_entries(pages.database, limit=1)
    assert (entry["action"], entry["target"]) == ("upload", "btc.csv")
    assert entry["outcome"].startswith("done: btc.csv is there")


def test_a_file_larger_than_a_body_comes_in_parts(pages: Pages) -> None:
    content = SAMPLE.read_bytes()
    assert len(content) > LARGEST_BODY
    assert send(pages, content[: LARGEST_BODY + 1]).status_code == 413
    assert in_parts(pages, content, "m15.csv").json["name"] == "m15.csv"
    assert (pages.backing.home / UPLOADS / "m15.csv").read_bytes() == content
    assert len(audit_chain.audit_entries(pages.database, limit=9)) == 1, (
        "parts are not on record one by one"
    )


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"date,price\n1,2\n", "a.csv", "a.csv needs time, open, high, low, close; found"),
        (BARS, "a.exe", "a.exe: only .csv, .txt, .zip, .csv.gz are taken"),
    ],
)
def test_what_is_no_bars_is_refused_with_the_reason(
    pages: Pages, content: bytes, name: str, said: str
) -> None:
    answer = send(pages, content, name)
    assert answer.status_code == 409 and answer.json["reason"].startswith(said)
    assert list((pages.backing.home / UPLOADS).iterdir()) == []
    assert audit_chain.audit_entries(pages.database, limit=1)[0]["outcome"].startswith(
        f"failed: {said}"
    )


def test_a_form_without_scripts_gets_a_page(pages: Pages) -> None:
    answer = pages.client().post(
        ADDRESS, data={"file": (io.BytesIO(BARS), "btc.csv")}, headers={"Accept": "text/html"}
    )
    page = Page(answer.text)
    assert "btc.csv is there" in page.text
    nothing = pages.client().post(ADDRESS, data={}, headers={"Accept": "text/html"})
    assert nothing.status_code == 409
    assert "choose a file of bars first" in nothing.text


def test_only_who_may_start_a_replay_may_hand_a_file_in(pages: Pages) -> None:
    assert send(pages, BARS, headers=bearer("read")).status_code == 403
    assert uploads.names(pages.backing.home) == []
    assert send(pages, BARS, headers=bearer("approve")).status_code == 200
    text = pages.client().get("/replays", headers=bearer("read")).text
    assert ADDRESS not in text


def test_no_other_address_takes_files_and_no_form_too_many_fields(pages: Pages) -> None:
    data = {"file": (io.BytesIO(b"x"), "a.csv")}
    assert pages.client().post("/api/v1/jobs/replay", data=data).status_code == 415
    many = {f"f{number}": "x" for number in range(MOST_FIELDS + 1)}
    assert send(pages, BARS, **many).status_code == 413
    assert uploads.names(pages.backing.home) == []


@pytest.mark.journey
@needs_browser
def test_a_person_hands_a_large_file_in(tmp_path: Path, scaled: Scale) -> None:
    backing = demo_orders.build(tmp_path)
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    bad = tmp_path / "bad.csv"
    bad.write_text("date,price\n1,2\n", encoding="utf-8")
    app = create_app(view, access=ACCESS, backing=backing)
    with Site(app) as site, chromium() as browser, Visit(browser, screen=PHONE) as visit:
        visit.admit(site, "approve")
        page = visit.page
        page.goto(site.url + "/replays")
        page.set_input_files("#upload-file", str(bad))
        page.click("text=Hand the file in")
        expect(page.locator("#upload-told")).to_contain_text("bad.csv needs time, open")
        visit.forgive("409", site.url + ADDRESS)
        page.set_input_files("#upload-file", str(SAMPLE))
        page.click("text=Hand the file in")
        expect(page.locator("#start-bars")).to_contain_text("BTCUSD_M15.csv of the folder uploads")
        expect(page.locator("#toasts")).to_contain_text("BTCUSD_M15.csv is there: 8,")
        assert visit.overhang() <= 0
        if scaled.whole:
            assert findings(page) == []
    backing.database.close()
