"""Apps whose pages have something to show, and the addresses of their screens.

`desk_app` is a desk that asks a person (demo_orders), `view_app` the scripted full desk, whose
ticks have everything, `hosted_app` a home of another program's scorer. `addresses_of` walks an
app's links as a visitor would and returns for every endpoint that answers with a page an address
(of the orders one for each stage): of the first few that are found the one with the longest page.
Pages without a parameter are asked for even where nothing leads to them.
"""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from werkzeug.exceptions import HTTPException

from tests.doubles.visitors import ACCESS, bearer
from tests.worlds import cards, scorers
from tests.worlds.demo_full_desk import FullDeskView
from tests.worlds.demo_orders import build
from tests.worlds.films import store_runs
from torra.dashboard.app import create_app
from torra.dashboard.doors.access import Access
from torra.dashboard.doors.routes import by_name, every_route
from torra.dashboard.view.backing import context_of
from torra.dashboard.view.desk_view import DatabaseView
from torra.desk.looking_desk import look_at

OF_A_KIND = 3
"""Pages of one kind that are asked for while looking for addresses."""

UNLINKED = {
    "login_page", "missing", "changed", "approvals", "approval", "signals", "signal", "trades",
}  # fmt: skip
"""Pages that no page of a visitor leads to: the login, and addresses of before."""


def view_app(state: str = "demo") -> Any:
    return create_app(FullDeskView(state), access=ACCESS)


def desk_app(folder: Path) -> Any:
    backing = build(folder)
    store_runs(backing.database)
    cards.stored(backing.database)
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    return create_app(view, access=ACCESS, backing=backing)


def hosted_app(folder: Path, access: Access = ACCESS) -> Any:
    """Return the pages of a home on which another program's scorer has asked, and no desk runs."""
    overlay = scorers.overlay(folder, strict=True)
    for size in range(396, 401):
        told = {"rsi": 61.2, "spread": 12.5}
        scorers.asked(overlay, scorers.bars(size), scores=scorers.L1, extra=told)
    overlay.close()
    backing = context_of(look_at(folder / "home"))
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    return create_app(view, access=access, backing=backing)


def page_routes() -> set[str]:
    """Return the names of all routes that answer with a page."""
    return {
        route.name for route in every_route() if route.reply == "html" and "GET" in route.methods
    }


def addresses_of(app: Any, of_a_kind: int = OF_A_KIND) -> dict[str, str]:
    """Return {endpoint: address} of the pages that links lead to, beginning with the overview."""
    return {name: address for name, (address, _) in pages_of(app, of_a_kind).items()}


def pages_of(app: Any, of_a_kind: int = OF_A_KIND) -> dict[str, tuple[str, str]]:
    """Return {endpoint: (address, page)}, as `addresses_of`."""
    client = app.test_client()
    adapter = app.url_map.bind("127.0.0.1")
    wanted = page_routes() - UNLINKED
    waiting, found = ["/"], dict[str, tuple[str, str]]()
    asked, sizes = Counter[str](), Counter[str]()
    for address in waiting:  # grows while it is walked
        kind = endpoint_of(adapter, address)
        if asked[kind] == of_a_kind:
            continue
        asked[kind] += 1
        answer = client.get(address, headers=bearer("admin"))
        if answer.status_code == 200 and answer.mimetype == "text/html":
            if len(answer.data) > sizes[kind]:
                found[kind], sizes[kind] = (address, answer.text), len(answer.data)
            known = set(waiting)
            waiting += [one for one in links_of(answer.text) if one not in known]
    for route in every_route():
        if route.name in wanted - set(found) and "<" not in route.rule:
            answer = client.get(route.rule, headers=bearer("admin"))
            if answer.status_code == 200 and answer.mimetype == "text/html":
                found[route.name] = (route.rule, answer.text)
    return {name: page for name, page in found.items() if name.partition("-")[0] in wanted}


def links_of(text: str) -> list[str]:
    links = re.findall(r'href="(/[^"#?]*(?:\?stage=\w+)?)"', text)
    found = dict.fromkeys(map(unescape, links))
    return [link for link in found if not link.startswith(("/assets/", "/api/"))]


def endpoint_of(adapter: Any, address: str) -> str:
    try:
        name = adapter.match(urlsplit(address).path)[0].removeprefix("torra_agents.")
    except HTTPException:
        return ""
    stage = parse_qs(urlsplit(address).query).get("stage", [])
    known = name in by_name() and by_name()[name].reply == "html"
    return "-".join([name, *stage]) if known else ""
