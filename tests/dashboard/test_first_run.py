"""The first steps: what is done is read from what happened, and looking changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.doubles.page_reader import Page
from tests.doubles.visitors import bearer
from tests.worlds import desks
from tests.worlds.desk_pages import Pages, open_pages
from torra.clock import Simulated, System, iso
from torra.config import DeskSettings, Instance, load_profile
from torra.store import jobs as job_table
from torra.store.trade import proposals_and_alarms as execution_table


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    found = open_pages(tmp_path / "home", (desks.BTC,), steps=2)
    lived(found, timedelta())
    yield found
    found.desk.close()


def lived(pages: Pages, ago: timedelta) -> None:
    since = iso((System().real_now() - ago).replace(microsecond=0))
    (pages.backing.home / "lived.json").write_text(json.dumps({"since": since}))


def done(pages: Pages) -> set[str]:
    return {step["step"] for step in pages.json("/api/v1/first-run")["steps"] if step["done"]}


def test_the_demo_asks_a_newcomer_within_the_first_hour(tmp_path: Path) -> None:
    """At 180 times the pace of its bars, 19 closes of H1 are six minutes."""
    instance = DeskSettings().instances[1]
    profile = load_profile(instance.profile, tmp_path)
    assert profile.execution == "approve"
    begin, _ = desks.sample().period()
    desk = desks.open_desk(
        tmp_path, (instance,), profile=profile, make_clock=lambda _: Simulated(begin)
    )
    desks.open_for_work(desk)
    desks.step(desk, 19)
    assert [row.state for row in desk.database.proposals()] == ["WAITING"]
    desk.close()


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
    assert done(pages) == {"tick", "model"}, "time decided, and no person"
    database.propose({**row, "sid": "TAAAAAAAAAAAA"})
    execution_table.decide_proposal(database, "TAAAAAAAAAAAA", "REJECTED", "weak case")
    assert "approval" in done(pages)
    database.audit(actor="a", action="add symbol", outcome="failed: no")
    assert "symbol" not in done(pages)
    database.audit(actor="a", action="add symbol", outcome="done: XAUUSD")
    assert "symbol" in done(pages)
    vars(pages.backing)["environment"] = {"GOOGLE_API_KEY": "a key of the test"}
    database.audit(actor="a", action="test model", after={"ok": False})
    assert "model" not in done(pages)
    assert "A key is set: test its model." in pages.text("/first-run")
    database.audit(actor="a", action="test model", after={"ok": True})
    assert "model" in done(pages)
    job, _ = job_table.queue_job(database, "replay", "k", title="t", parameters="{}", actor="a")
    assert "replay" not in done(pages)
    with database.transaction():
        database.connection().execute(
            "UPDATE jobs SET state = 'done', ended_at = ? WHERE id = ?",
            ("2026-01-01T00:00:00Z", job["id"]),
        )
    assert "replay" in done(pages)


def test_the_strip_is_for_who_may_approve_in_a_young_home(pages: Pages) -> None:
    assert "First steps 2 of 5 Approve a trade." in Page(pages.text("/")).text
    assert "First steps" not in pages.client().get("/", headers=bearer("read")).text
    lived(pages, timedelta(days=15))
    assert "First steps" not in Page(pages.text("/")).text
    assert "See a tick" in Page(pages.text("/first-run")).text


def test_symbols_of_ones_own_need_no_step(pages: Pages) -> None:
    own = Instance(symbol="BTCUSD", feed="store")
    settings = pages.backing.settings.model_copy(update={"instances": (own,)})
    vars(pages.backing)["settings"] = settings
    assert "symbol" in done(pages)
