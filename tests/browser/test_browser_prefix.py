"""Pages below a path, in a real browser: no module, question, stream or link leaves the path."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.doubles.browser import Site, Visit, chromium, needs_browser
from tests.worlds.screens import desk_app

pytestmark = [needs_browser, pytest.mark.journey]

PREFIX = "/desk/torra"


def test_a_visit_stays_below_the_path(tmp_path: Path) -> None:
    app = desk_app(tmp_path)
    with chromium() as browser, Site(app, PREFIX) as site, Visit(browser) as visit:
        asked: list[str] = []
        visit.page.on("request", lambda request: asked.append(urlsplit(request.url).path))
        visit.enter(site)
        visit.page.locator('nav a[href$="/trades"]').first.click()
        visit.page.wait_for_url(f"{site.url}/trades")
        visit.page.goto(f"{site.url}/symbols")
        visit.page.wait_for_load_state("load")
        visit.page.wait_for_function("performance.getEntriesByType('resource').length > 3")
        visit.page.goto("about:blank")
        paths = [path for path in asked if path != "blank"]
        assert any(path.endswith(".js") for path in paths)
        assert any("/api/" in path for path in paths), "the pages ask for what is new"
        assert not [path for path in paths if not path.startswith(f"{PREFIX}/")]
        assert {cookie["path"] for cookie in visit.context.cookies()} == {f"{PREFIX}/"}
    app.extensions["torra_agents"].backing.database.close()
