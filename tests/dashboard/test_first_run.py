"""The first steps: what is done is read from what happened; a page that is opened is noted once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.doubles.page_reader import Page
from tests.doubles.visitors import bearer
from tests.worlds import desks
from tests.worlds.desk_pages import Pages, open_pages
from torra.clock import System, iso
from torra.config import Instance
from torra.dashboard.settings import first_run
from torra.dashboard.settings.first_run import STEPS
from torra.dashboard.view.backing import PageContext
from torra.home import FIRST_RUN
from torra.store import jobs as job_table
from torra.store.trade import proposals_and_alarms as execution_table

JSON = {"Accept": "application/json"}
SKIP = "/api/v1/first-run/note"


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    found = open_pages(tmp_path / "home", (desks.BTC,), steps=2)
    since = iso(System().real_now().replace(microsecond=0))
    (found.backing.home / "lived.json").write_text(json.dumps({"since": since}))
    yield found
    found.desk.close()


def marks(pages: Pages) -> dict[str, str]:
    told = pages.json("/api/v1/first-run")
    return {one["step"]: one["mark"] for one in told["steps"]}


def note(pages: Pages, what: str, step: str = "") -> int:
    answer = pages.client().post(SKIP, json={"what": what, "step": step}, headers=JSON)
    return int(answer.status_code)


def done(pages: Pages) -> set[str]:
    return {name for name, mark in marks(pages).items() if mark == "done"}


def test_a_page_that_was_opened_is_noted_once(pages: Pages) -> None:
    assert 'data-step="home"' in pages.text("/")
    assert note(pages, "seen", "home") == 200
    assert done(pages) == {"home"}
    assert "tour-seen" not in pages.text("/")
    newest = pages.database.latest_tick("BTCUSD", "M15")
    assert newest
    assert 'data-step="tick"' in pages.text(f"/symbol/BTCUSD/M15/{newest['bar_time']}")
    assert json.loads((pages.backing.home / FIRST_RUN).read_text())["seen"] == ["home"]


def test_of_two_pages_at_once_none_loses_its_mark(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep, other = first_run._keep, threading.Thread(target=note, args=(pages, "seen", "tick"))

    def meanwhile(known: PageContext, noted: first_run.Noted) -> None:
        if threading.current_thread() is not other:
            other.start()
            other.join(0.5)  # without a lock it has written by then
        keep(known, noted)

    monkeypatch.setattr(first_run, "_keep", meanwhile)
    assert note(pages, "seen", "home") == 200
    other.join(10)
    assert done(pages) == {"home", "tick"}


def test_looking_changes_nothing(pages: Pages) -> None:
    for address in ("/", "/first-run", "/models", "/api/v1/first-run"):
        pages.text(address)
    assert not (pages.backing.home / FIRST_RUN).exists()


def test_what_happened_is_done(pages: Pages) -> None:
    database = pages.database
    row = {
        "sid": "TQC7T2AN4XUX6", "torra_key": "x", "instance": "BTCUSD", "symbol": "BTCUSD",
        "timeframe": "M15", "bar_time": "2021-11-08T02:45:00Z", "verdict": "BUY",
        "action": "OPEN_BUY", "drafts": [], "price": 1.0, "atr": 1.0, "multiplier": 1.0,
        "created_at": "2021-11-08T03:00:00Z", "expires": "2021-11-08T03:15:00Z",
    }  # fmt: skip
    database.propose(row)
    execution_table.decide_proposal(database, "TQC7T2AN4XUX6", "EXPIRED", "time")
    assert "approval" not in done(pages), "time decided, and no person"
    database.propose({**row, "sid": "TAAAAAAAAAAAA"})
    execution_table.decide_proposal(database, "TAAAAAAAAAAAA", "REJECTED", "weak case")
    assert "approval" in done(pages)
    database.audit(actor="a", action="add symbol", outcome="failed: no")
    assert "symbol" not in done(pages)
    database.audit(actor="a", action="add symbol", outcome="done: XAUUSD")
    assert "symbol" in done(pages)
    database.audit(actor="a", action="test model", after={"ok": False})
    assert "model" not in done(pages)
    database.audit(actor="a", action="test model", after={"ok": True})
    assert "model" in done(pages)
    job, _ = job_table.queue_job(database, "replay", "k", title="t", parameters="{}", asked_by="a")
    assert "replay" not in done(pages)
    with database.transaction():
        database.connection().execute(
            "UPDATE jobs SET state = 'done', ended_at = ? WHERE id = ?",
            ("2026-01-01T00:00:00Z", job["id"]),
        )
    assert "replay" in done(pages)


def test_without_a_key_looking_at_the_models_is_enough(pages: Pages) -> None:
    assert "No key: rules decide, that is fine." in pages.text("/first-run")
    note(pages, "seen", "model")
    assert "model" in done(pages)
    vars(pages.backing)["environment"] = {"GOOGLE_API_KEY": "a key of the test"}
    assert "model" not in done(pages)
    assert "A key is set: test its model." in pages.text("/first-run")


def test_the_strip_leads_on_until_all_is_done_or_skipped(pages: Pages) -> None:
    words = Page(pages.text("/")).text
    assert "First steps 1 of 6" in words, "whoever reads it has seen Home"
    note(pages, "seen", "home")
    words = Page(pages.text("/")).text
    assert "1 of 6" in words and "Open a tick." in words
    note(pages, "skip", "tick")
    assert "Approve a trade." in Page(pages.text("/")).text
    note(pages, "skip", "all")
    assert "First steps" not in Page(pages.text("/")).text
    assert marks(pages) == {"home": "done"} | {
        one.name: "skipped" for one in STEPS if one.name != "home"
    }
    note(pages, "again")
    assert "First steps" in Page(pages.text("/")).text


def test_the_help_leads_there(pages: Pages) -> None:
    assert 'href="/first-run"' in pages.text("/help")


def test_a_desk_that_has_lived_is_not_taught(pages: Pages) -> None:
    since = iso((System().real_now() - timedelta(days=15)).replace(microsecond=0))
    (pages.backing.home / "lived.json").write_text(json.dumps({"since": since}))
    assert "First steps" not in Page(pages.text("/")).text
    assert "Look at Home" in Page(pages.text("/first-run")).text


def test_a_reader_is_asked_for_nothing(pages: Pages) -> None:
    client = pages.client()
    assert "First steps" not in client.get("/", headers=bearer("read")).text
    page = client.get("/first-run", headers=bearer("read")).text
    assert "<form" not in page.partition("<main")[2]
    answer = client.post(SKIP, json={"what": "skip", "step": "all"}, headers=JSON | bearer("read"))
    assert answer.status_code == 403


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"seen": 5, "skipped": []}', '{"seen": [1]}'])
def test_a_broken_note_is_none(pages: Pages, broken: str) -> None:
    (pages.backing.home / FIRST_RUN).write_text(broken)
    assert not done(pages)
    assert note(pages, "seen", "home") == 200
    assert done(pages) == {"home"}


@pytest.mark.parametrize(("what", "step"), [("", ""), ("seen", "all"), ("skip", "x"), ("no", "")])
def test_a_mistake_is_told(pages: Pages, what: str, step: str) -> None:
    assert note(pages, what, step) == 409
    assert not (pages.backing.home / FIRST_RUN).exists()


def test_symbols_of_ones_own_need_no_step(pages: Pages) -> None:
    own = Instance(symbol="BTCUSD", feed="store")
    settings = pages.backing.settings.model_copy(update={"instances": (own,)})
    vars(pages.backing)["settings"] = settings
    assert "symbol" in done(pages)
