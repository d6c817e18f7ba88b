"""A replay in a real browser: a mistake beside its field, a start, progress, a cancel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.doubles.browser import Site, Visit, findings, needs_browser
from tests.doubles.visitors import ACCESS
from tests.worlds import demo_orders
from torra.dashboard.app import create_app
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.store import jobs as job_table

pytestmark = needs_browser

CHANGED = "document.dispatchEvent(new CustomEvent('torra:changed', {detail: {what: 'jobs'}}))"
"""What the stream of a desk brings about; none runs here."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[PageContext, Site]]:
    backing = demo_orders.build(tmp_path)
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    app = create_app(view, access=ACCESS, backing=backing)
    with Site(app) as site:
        yield backing, site
    backing.database.close()


def test_a_replay_is_asked_for_watched_and_cancelled(
    browser: Browser, place: tuple[PageContext, Site]
) -> None:
    backing, site = place
    database = backing.database
    with Visit(browser) as visit:
        visit.admit(site, "approve")
        page = visit.page
        page.goto(site.url + "/replays")
        page.select_option("#start-bars", "sample")
        page.fill("#start-from", "2021-11-22")
        page.fill("#start-to", "2021-11-20")
        page.click("text=Start the replay")
        fault = page.locator("#start-from-fault")
        expect(fault).to_have_text("2021-11-22 is not before to 2021-11-20")
        assert page.evaluate("document.activeElement.id") == "start-from"
        assert findings(page) == []
        visit.forgive("409", f"{site.url}/api/v1/jobs/replay")
        page.fill("#start-to", "2021-11-24")
        page.click("text=Start the replay")
        going = page.locator("[aria-labelledby=going-name]")
        expect(going).to_contain_text("2021-11-22 to 2021-11-24")
        expect(fault).to_be_hidden()
        assert job_table.begin_job(database, 3, "queued")
        job_table.note_progress(database, 3, "runs the ticks", 60, 240)
        page.evaluate(CHANGED)
        state = page.locator("#job-3 .stage-of")
        expect(state).to_have_text("runs the ticks, 60 of 240 (25 %)")
        job_table.note_progress(database, 3, "runs the ticks", 120, 240)
        page.evaluate(CHANGED)
        expect(state).to_have_text("runs the ticks, 120 of 240 (50 %)")
        page.locator("form[action='/api/v1/jobs/3/cancel'] button").click()
        expect(page.locator("#job-3 td[data-label=State]")).to_have_text("◐ is being stopped")
        assert (job_table.job(database, 3) or {})["cancel"] == 1
        job_table.end_job(database, 3, "running", "done", "It was ready before.", "")
        page.goto(site.url + "/jobs/3")
        expect(page.locator("main")).to_contain_text("It was ready before.")
