"""The goldens of pages hold every route, and what is shortened in them is told by its hash."""

from __future__ import annotations

from contextlib import ExitStack

from werkzeug.exceptions import HTTPException

from tests.golden import (
    brevity,
    pages_debates,
    pages_demo,
    pages_desks,
    pages_faults,
    pages_live,
    visits,
)
from tests.golden.states import STATES, failing
from torra.dashboard.doors.routes import every_route
from torra.dashboard.view.rendering import EXTENSION


def test_every_route_stands_in_a_golden() -> None:
    app = failing(visits.REQUESTS.parent, ExitStack())
    adapter, reached = app.url_map.bind("127.0.0.1"), set[tuple[str, str]]()
    for request in (one for many in visits.requests().values() for one in many):
        sent = {"get": request[4:]} if isinstance(request, str) else request
        method = "POST" if "post" in sent else "GET"
        address = str(sent.get("post", sent.get("get"))).partition("?")[0]
        try:
            name, _ = adapter.match(address, method)
        except HTTPException:
            continue
        reached.add((method, name.removeprefix(f"{EXTENSION}.")))
    known = {(method, route.name) for route in every_route() for method in route.methods}
    assert known - reached == set(), "add a request to tests/golden/requests.json"


def test_every_state_is_visited() -> None:
    parts = (pages_demo, pages_desks, pages_live, pages_debates, pages_faults)
    assert sorted(name for part in parts for name in part.STATES) == sorted(STATES)
    assert sorted(visits.requests()) == sorted(STATES)


def test_a_shortened_value_tells_that_its_middle_differs() -> None:
    items = [{"a": number} for number in range(40)]
    other = [*items[:20], {"a": -1}, *items[21:]]
    assert len(brevity.shortened(items)) == 4
    assert brevity.shortened(items) != brevity.shortened(other)
    assert brevity.shortened("x" * 400) != brevity.shortened("x" * 200 + "y" + "x" * 199)
    lines, changed = [f"row {item}" for item in items], [f"row {item}" for item in other]
    assert [*brevity.brief(lines, len)] != [*brevity.brief(changed, len)]
