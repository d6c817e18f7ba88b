"""Every route, every kind of visitor, every method: who gets what is told by the table's scopes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import cases
from tests.conftest import Scale
from tests.doubles.entrance import Place, bearer, ids_of
from torra.dashboard.doors.routes import Route, every_route

ROUTES = every_route()
RANK = {"read": 0, "approve": 1, "admin": 2}
VISITORS = {
    "nobody": {},
    "a stranger": {"Authorization": "Bearer " + "f" * 64},
    **{scope: bearer(scope) for scope in RANK},
}
REFUSED = {400, 401, 403, 405, 500}
"""What nobody who may ask is ever answered."""

FOREIGN = (
    "evil.test", "evil.test:5000", "localhost.evil.test", "127.0.0.1.evil.test", "127.0.0.2",
    "evil.test@localhost", "localhost@evil.test", "local host", "", "0.0.0.0", "[::2]",
    "localhost:99999", "localhost:x", "xn--e1afmkfd.test",
)  # fmt: skip


WRONG = ("DELETE", "POST", "OPTIONS", "PUT", "PATCH", "TRACE")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp("matrix"))
    yield place
    place.close()


@pytest.fixture
def place(made: Place) -> Place:
    made.real = True
    return made


def expected(route, method, visitor):
    """Return the code for a visitor that is refused, None where the route answers."""
    if route.scope is None:
        return 403 if method == "POST" and visitor not in RANK else None
    if visitor in RANK:
        return 403 if RANK[visitor] < RANK[route.scope] else None
    to_login = visitor == "nobody" and method == "GET" and not route.rule.startswith("/api/")
    return 303 if to_login else 401


def check(place, route, method, visitor, headers) -> None:
    named: dict[str, Any] = {"json": {}} if method != "GET" else {}
    sent = {"Accept": "text/html", **headers}
    answer = place.ask(method, route.rule, headers=sent, **named)
    told = (method, route.rule, visitor, answer.status_code)
    code = expected(route, method, visitor)
    assert place.reached == ([] if code else [route.name]), told
    if code:
        assert answer.status_code == code, told
    elif route.name != "login":
        assert answer.status_code not in REFUSED, told
    if code == 303:
        assert answer.headers["Location"].startswith("/login?next="), told
    challenged = code == 401 or (code == 403 and visitor in RANK)
    assert ("WWW-Authenticate" in answer.headers) == challenged or route.name == "login", told
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"], told
    assert answer.headers["X-Content-Type-Options"] == "nosniff", told
    assert "no-store" in answer.headers["Cache-Control"], told
    assert not [name for name, _ in answer.headers if "Access-Control" in name], told


@cases("route", ROUTES, ids=ids_of(ROUTES))
def test_who_may_ask(place: Place, route: Route, scaled: Scale) -> None:
    """The first who may ask is answered by the screen itself, at night all of them."""
    for method in route.methods:
        answered = 0
        for visitor, headers in VISITORS.items():
            place.real = answered < scaled(3)
            check(place, route, method, visitor, headers)
            answered += bool(place.reached)


@cases("route", ROUTES, ids=ids_of(ROUTES))
def test_no_other_method_is_answered(place: Place, route: Route, scaled: Scale) -> None:
    place.real = False
    at_rule = {method for one in ROUTES if one.rule == route.rule for method in one.methods}
    wrong = [method for method in WRONG if method not in at_rule]
    for method in wrong:
        asked = VISITORS if method in wrong[: scaled(6)] else {"admin": VISITORS["admin"]}
        for visitor, headers in asked.items():
            answer = place.ask(method, route.rule, headers=headers)
            assert answer.status_code == 405, (method, route.rule, visitor)
            assert method not in answer.headers["Allow"]
            assert not place.reached
    if "GET" not in at_rule:
        for visitor, headers in VISITORS.items():
            answer = place.ask("GET", route.rule, headers={"Accept": "text/html", **headers})
            assert route.name not in place.reached
            assert answer.status_code in ({200, 405} if visitor in RANK else {303, 401})


@cases("route", ROUTES, ids=ids_of(ROUTES))
def test_a_rebound_name_is_refused_before_all_else(place: Place, route: Route) -> None:
    for method in route.methods:
        answer = place.ask(method, route.rule, headers={"Host": "evil.test", **bearer("admin")})
        assert answer.status_code == 400, (method, route.rule)
        assert not place.reached


@pytest.mark.parametrize("host", FOREIGN, ids=[f"host {n}" for n in range(len(FOREIGN))])
def test_names_that_are_not_ours_are_refused(place: Place, host: str) -> None:
    answer = place.ask("GET", "/help", headers={"Host": host, **bearer("admin")})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:5000", "127.0.0.1:80", "[::1]", "[::1]:5"]
)
def test_names_of_this_machine_are_answered(place: Place, host: str) -> None:
    answer = place.ask("GET", "/help", headers={"Host": host, **bearer("read")})
    assert answer.status_code == 200


def test_asking_changes_nothing_and_a_head_is_like_a_get(place: Place) -> None:
    before = place.changes()
    for route in ROUTES:
        if "GET" in route.methods:
            get, head = (
                place.ask(method, route.rule, headers=bearer("admin")) for method in ("GET", "HEAD")
            )
            assert head.status_code == get.status_code, route.rule
            assert head.mimetype == get.mimetype, route.rule
            assert route.reply == "events" or head.get_data() == b"", route.rule
            assert place.changes() == before, route.rule


def test_the_table_has_what_the_matrix_is_for() -> None:
    scopes = {route.scope for route in ROUTES}
    assert scopes == {None, *RANK}
    assert {route.name for route in ROUTES if route.scope is None} == {
        "login", "login_page", "healthz",
    }  # fmt: skip
    changing = [route for route in ROUTES if set(route.methods) - {"GET"}]
    assert len(changing) >= 8
    assert all(set(route.methods) <= {"GET", "POST"} for route in ROUTES)
    assert all(route.scope != "read" for route in changing if "/halt" in route.rule)
