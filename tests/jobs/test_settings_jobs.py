"""Trying settings as a job: asked for on the profile's page, run beside the desk, shown on both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.doubles.page_reader import Page, check_policy, check_structure
from tests.doubles.visitors import bearer
from tests.worlds import desks
from tests.worlds.desk_pages import Pages, open_pages
from tests.worlds.jobs import done_here, turned
from torra.clock import parse
from torra.jobs.worker import Worker
from torra.replay import job_kinds
from torra.replay.shards import trials
from torra.replay.tried import kind
from torra.store import jobs as job_table

END = parse("2021-11-20T00:00:00Z")
TRY = "/api/v1/profiles/default/try"
PAGE = "/profiles/default"
JSON = {"Accept": "application/json"}
LOWER = {"thresholds.buy": 0.2, "risk.risk_per_trade_pct": 1.0}


BARS = {"M15": 4000, "H1": 1200}
"""The days that are tried, and as many bars before them as warm up."""


def pages_in(home: Path) -> Pages:
    found = open_pages(home)
    for item in (desks.BTC, desks.EUR):
        for name in item.timeframes:
            bars = desks.sample().bars(item.symbol, name, END, BARS[name])
            found.database.store_bars(item.id, name, bars)
    return found


def ask(pages: Pages, status: int = 202, headers: Any = JSON, **asked: Any) -> Any:
    answer = pages.client().post(TRY, json=asked, headers=headers)
    assert answer.status_code == status, answer.get_data(as_text=True)
    return answer.get_json()


def tried(pages: Pages, number: int) -> str:
    """Do a job in this process; return what it says."""
    return done_here(pages.database, pages.backing.home, job_kinds.SETTINGS, number)


@pytest.mark.journey
def test_what_was_tried_stands_beside_the_settings_and_on_the_jobs_page(
    pages: Pages, worker: Worker
) -> None:
    assert "Not tried yet." in pages.text(PAGE)
    told = ask(pages, settings=LOWER)
    assert told["new"] and told["address"] == "/jobs/1"
    assert "Job 1: default: thresholds.buy 0.2, risk.risk_per_trade_pct 1.0" in told["reason"]
    assert 'data-job="1"' in pages.text(PAGE), "the page follows the job that goes on"
    done = turned(pages.database, worker, 1, state="done")
    found = kind.read(pages.backing.home, done["made"])
    assert found is not None and found.says == done["says"]
    for address in (PAGE, "/jobs/1"):
        text = pages.text(address)
        assert "Buy from: 0.5 → 0.2 · Risk per trade: 0.5 → 1.0" in text
        rows = {row[0]: row[1:] for row in Page(text).rows if row}
        assert rows["Trades"][:2] == [
            f"{found.before[0].trades:,}", f"{found.after[0].trades:,}",
        ]  # fmt: skip
        assert rows["Result"][0].endswith(" USD")
    assert "<strong>0.5 → 1.0</strong> alone, last 30 days: " in pages.text(PAGE)
    assert 'href="/profiles/default"' in pages.text("/jobs/1")
    assert trials.count(pages.backing.home, "BTCUSD") == 4


@pytest.mark.parametrize("days", ["7", "week", 7.5, True, None])
def test_days_that_are_no_whole_number_are_refused(idle: Pages, days: object) -> None:
    answer = idle.client().post(TRY, json={"settings": LOWER, "days": days}, headers=JSON)
    assert answer.status_code == 409
    assert "is no whole number: write it as 30" in answer.get_json()["reason"]
    assert job_table.jobs(idle.database, 5) == []


def test_a_form_tries_what_stands_in_it(pages: Pages) -> None:
    sent = {"csrf": "", "digest": "", "thresholds.buy": "0.2", "risk.max_positions": "3"}
    answer = pages.client().post(TRY, data=sent, headers={"Accept": "text/html"})
    assert answer.status_code == 202
    assert "default: thresholds.buy 0.2, last 30 days" in answer.get_data(as_text=True)


def test_without_bars_nothing_is_queued_and_the_reason_is_told(tmp_path: Path) -> None:
    empty = open_pages(tmp_path / "home", steps=0)
    told = ask(empty, 409, settings=LOWER)
    assert told["reason"].startswith("No bar of BTCUSD is stored yet")
    assert job_table.jobs(empty.database) == []
    empty.desk.close()


def test_whoever_may_approve_may_try_and_whoever_may_read_sees_it(pages: Pages) -> None:
    ask(pages, 403, {**JSON, **bearer("read")}, settings=LOWER)
    ask(pages, 202, {**JSON, **bearer("approve")}, settings=LOWER)
    headers = {**bearer("read"), "Accept": "text/html"}
    seen = pages.client().get(PAGE, headers=headers).get_data(as_text=True)
    assert 'href="/jobs/1">Job 1</a>' in seen
    assert "data-try>" not in seen and "Cancel job" not in seen


def test_what_other_settings_came_to_is_said_to_be_of_an_earlier_state(pages: Pages) -> None:
    ask(pages, settings=LOWER)
    tried(pages, 1)
    assert "Other settings are saved by now" not in pages.text(PAGE)
    digest = pages.json("/api/v1/profiles/default")["digest"]
    body = {"digest": digest, "settings": {"risk.max_positions": 2}}
    saved = pages.client().post("/api/v1/profiles/default/save", json=body, headers=JSON)
    assert saved.status_code in (200, 202)
    assert "Other settings are saved by now" in pages.text(PAGE)


def test_a_change_that_lets_more_trades_through_is_told_with_what_a_try_showed(
    pages: Pages,
) -> None:
    def warnings(**settings: Any) -> Any:
        told = {name.replace("__", "."): value for name, value in settings.items()}
        body = {"settings": told}
        check = pages.client().post("/api/v1/profiles/default/check", json=body, headers=JSON)
        return check.get_json()["warnings"]

    assert warnings(thresholds__buy=0.2) == [
        "More trades come through with this change of Buy from. Try it on the last 30 days before "
        "you save it."
    ]
    assert warnings(thresholds__buy=0.6) == []
    ask(pages, settings={"thresholds.buy": 0.2})
    says = tried(pages, 1)
    assert warnings(thresholds__buy=0.2) == [
        f"More trades come through with this change of Buy from. {says}"
    ]
    assert warnings(thresholds__buy=0.3)[0].endswith("before you save it.")


@pytest.mark.journey
def test_the_pages_are_whole_with_a_try_on_them(pages: Pages) -> None:
    ask(pages, settings=LOWER)
    for waits in (True, False):
        for address in (PAGE, "/jobs/1", "/jobs"):
            page = Page(pages.text(address))
            check_structure(page)
            check_policy(page, forms=True)
        if waits:
            tried(pages, 1)
