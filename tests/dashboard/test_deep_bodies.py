"""JSON that is nested deeper than Python reads breaks no door, and costs a stranger a try."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doubles.entrance import OURS, Moved, Place, bearer, ids_of, make_access, scripted_app
from torra.dashboard.doors.routes import Route, every_route

CHANGES = [route for route in every_route() if "POST" in route.methods]
DEPTHS = (400, 3_000, 60_000)
"""Read without trouble, near Python's own limit, and far beyond it."""


def body(depth: int, field: str = "token") -> bytes:
    return b'{"%s": %s1%s}' % (field.encode(), b"[" * depth, b"]" * depth)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("deep"))
    yield made
    made.close()


@pytest.mark.parametrize("route", CHANGES, ids=ids_of(CHANGES))
def test_no_door_breaks_on_a_deep_body(
    place: Place, route: Route, caplog: pytest.LogCaptureFixture
) -> None:
    before = place.changes()
    for depth in DEPTHS:
        answer = place.ask(
            "POST",
            route.rule,
            data=body(depth, "reason"),
            content_type="application/json",
            headers=bearer("admin"),
        )
        assert answer.status_code not in (500, 503), (route.rule, depth)
    assert "Traceback" not in caplog.text
    assert "a page broke" not in caplog.text
    if route.name == "login":
        assert place.changes() == before


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_deep_login_is_a_wrong_token(depth: int, caplog: pytest.LogCaptureFixture) -> None:
    client = scripted_app(make_access(Moved())).test_client()
    codes = [
        client.post(
            "/login", data=body(depth), content_type="application/json", headers=OURS
        ).status_code
        for _ in range(8)
    ]
    assert codes[0] == 401
    assert set(codes[1:]) <= {401, 429}
    assert codes[-1] == 429, "it is limited as every wrong token is"
    failed = [line for line in caplog.text.splitlines() if line.strip()]
    assert len(failed) == codes.count(401), "a line for each try that counted, and no more"
    assert all("a login from 127.0.0.1 failed" in line for line in failed)
