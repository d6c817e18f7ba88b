"""A film in a real browser: its video plays with its captions, its scenes by keys and buttons."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.doubles.browser import Site, Visit, findings, needs_browser
from tests.doubles.visitors import ACCESS
from tests.tries import until
from tests.worlds.films import open_studio
from torra.dashboard.app import create_app
from torra.dashboard.view.desk_view import DatabaseView
from torra.film import job as film_job

pytest.importorskip("imageio_ffmpeg", reason="needs the extra film")
pytestmark = needs_browser

VIDEO = "document.querySelector('video')"
STATE = "[...document.querySelectorAll('figure')].map((one) => one.hidden ? 0 : 1).join('')"


def test_the_video_plays_and_the_scenes_have_keys(browser: Browser, tmp_path: Path) -> None:
    backing = open_studio(tmp_path / "home").backing
    film_job.make(backing.home, {"run": "2"}, lambda *_: None)
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    app = create_app(view, access=ACCESS, backing=backing)
    with Site(app) as site, Visit(browser) as visit:
        visit.admit(site, "approve")
        page = visit.page
        page.goto(site.url + "/film/2")
        count = page.locator("figure").count()
        until(lambda: page.evaluate(VIDEO + ".readyState >= 1"), 30.0, "readyState >= 1")
        told = page.evaluate(
            f"((v) => [v.duration, v.videoWidth, v.videoHeight, v.muted, v.paused])({VIDEO})"
        )
        assert told == [4 * count, 1280, 720, True, True]
        page.evaluate(VIDEO + ".play()")
        until(lambda: page.evaluate(VIDEO + ".currentTime > 0.3"), 30.0, "currentTime > 0.3")
        until(
            lambda: page.evaluate(VIDEO + ".textTracks[0].cues.length > 5"),
            30.0,
            "textTracks[0].cues.length > 5",
        )
        page.evaluate(VIDEO + ".pause()")
        assert page.evaluate(STATE) == "1".ljust(count, "0")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")
        assert page.evaluate(STATE) == "01".ljust(count, "0")
        expect(page.locator("figure:not([hidden]) h3")).to_contain_text("Changed since")
        page.click("text=Next →")
        assert page.evaluate(STATE) == "001".ljust(count, "0")
        page.click("text=▶ Play")
        expect(page.locator("[data-play]")).to_have_attribute("aria-pressed", "true")
        page.click("text=Pause")
        assert findings(page) == []
        page.click("text=Make a new film")
        expect(page.locator(".jobs")).to_contain_text("the film of scan 2")
    backing.database.close()
