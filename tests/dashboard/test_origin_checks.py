"""A change comes from a page of ours or from a program; whatever else asks for one is refused."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.cases import cases
from tests.doubles.entrance import (
    OURS,
    TOKENS,
    Place,
    bearer,
    csrf_of,
    ids_of,
    log_in,
    scripted_app,
)
from torra.dashboard.doors.access import CSRF_HEADER, LARGEST_BODY, Visitor
from torra.dashboard.doors.routes import Route, every_route

UNSAFE = [route for route in every_route() if set(route.methods) - {"GET"}]
SCOPED = [route for route in UNSAFE if route.scope]
REFUSED = {400, 401, 403, 405, 413, 415, 500}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, FlaskClient, str]]:
    place = Place(tmp_path_factory.mktemp("origins"))
    client = place.app.test_client()
    assert log_in(client, "admin").status_code == 303
    yield place, client, csrf_of(client)
    place.close()


@pytest.fixture
def place(made: tuple[Place, FlaskClient, str]) -> Place:
    return made[0]


@pytest.fixture
def person(made: tuple[Place, FlaskClient, str]) -> tuple[FlaskClient, str]:
    """A browser that is logged in as admin, and the token of its session."""
    return made[1:]


def site(value: Any, **more: Any) -> dict[str, Any]:
    return {**OURS, "Sec-Fetch-Site": value, **more}


def origin(value: Any) -> dict[str, Any]:
    return {**OURS, "Origin": value}


ELSEWHERE = {
    "another port": site("same-site", Origin="http://localhost:8000"),
    "another port that hides its origin": site("same-site", Origin="null"),
    "another site": site("cross-site", Origin="http://evil.test"),
    "another site that hides its origin": site("cross-site", Origin="null"),
    "another site that claims our origin": site("cross-site"),
    "the address bar": site("none"),
    "a word that browsers do not say": site("same-origin, same-origin"),
    "nobody says from where": {"Origin": OURS["Origin"]},
    "nothing is said": {},
    "no origin": {"Sec-Fetch-Site": "same-origin"},
    "the origin of another port": origin("http://localhost:8000"),
    "the origin of another name": origin("http://127.0.0.1"),
    "the origin of another scheme": origin("https://localhost"),
    "an origin that begins like ours": origin("http://localhost.evil.test"),
    "an origin that names us as a user": origin("http://localhost@evil.test"),
    "an origin that ends with a slash": origin("http://localhost/"),
}


@pytest.mark.parametrize("route", SCOPED, ids=ids_of(SCOPED))
def test_a_session_alone_changes_nothing(
    place: Place, person: tuple[FlaskClient, str], route: Route
) -> None:
    client, csrf = person
    before = place.changes()
    wrong = {
        "none": {},
        "empty": {CSRF_HEADER: ""},
        "wrong": {CSRF_HEADER: "0" * len(csrf)},
        "another session's": {CSRF_HEADER: place.access.csrf(Visitor("admin", "", "another"))},
        "the access token": {CSRF_HEADER: TOKENS["admin"]},
    }
    for words, headers in wrong.items():
        answer = place.ask("POST", route.rule, client=client, data={}, headers={**OURS, **headers})
        assert answer.status_code == 403, words
        assert not place.reached
    answer = place.ask("POST", f"{route.rule}?csrf={csrf}", client=client, data={}, headers=OURS)
    assert answer.status_code == 403, "nor does the token of the session in the address"
    assert place.changes() == before


@pytest.mark.parametrize("route", SCOPED, ids=ids_of(SCOPED))
def test_a_page_from_elsewhere_changes_nothing(
    place: Place, person: tuple[FlaskClient, str], route: Route
) -> None:
    client, csrf = person
    before = place.changes()
    for words, headers in ELSEWHERE.items():
        answer = place.ask("POST", route.rule, client=client, data={"csrf": csrf}, headers=headers)
        assert answer.status_code == 403, words
        assert not place.reached
    for words in ("another port", "another site", "the address bar", "the origin of another port"):
        headers = {**ELSEWHERE[words], **bearer("admin")}
        assert place.ask("POST", route.rule, json={}, headers=headers).status_code == 403, words
        del headers["Sec-Fetch-Site"]
        refused = headers["Origin"] != OURS["Origin"]
        place.real = False
        answer = place.ask("POST", route.rule, json={}, headers=headers)
        assert (answer.status_code == 403) == refused == (not place.reached), words
        place.real = True
    assert place.changes() == before


@pytest.mark.parametrize("route", SCOPED, ids=ids_of(SCOPED))
def test_our_own_pages_are_heard(
    place: Place, person: tuple[FlaskClient, str], route: Route
) -> None:
    client, csrf = person
    if route.name == "logout":
        place.clock.passed += 600
        log_in(client := place.app.test_client(), "admin")
        csrf = csrf_of(client)
    sent = {"data": {}, "headers": {**OURS, CSRF_HEADER: csrf}}
    answer = place.ask("POST", route.rule, client=client, **sent)
    assert answer.status_code not in REFUSED


@pytest.mark.parametrize(
    "headers", [OURS, origin("null")], ids=["a script", "a form under no-referrer"]
)
def test_a_form_of_ours_is_heard(place: Place, headers: dict[str, str]) -> None:
    place.clock.passed += 600
    log_in(client := place.app.test_client(), "read")
    csrf = csrf_of(client)
    answer = place.ask("POST", "/logout", client=client, data={"csrf": csrf}, headers=headers)
    assert answer.status_code == 303


@pytest.mark.parametrize("words", list(ELSEWHERE))
def test_a_login_from_elsewhere_is_refused_and_costs_no_try(place: Place, words: str) -> None:
    place.clock.passed += 600
    client = place.app.test_client()
    for _ in range(7):
        answer = client.post("/login", data={"token": TOKENS["admin"]}, headers=ELSEWHERE[words])
        assert answer.status_code == 403
        assert "Set-Cookie" not in answer.headers
    assert log_in(client, "admin").status_code == 303


@cases(
    ("host", "headers", "code"),
    [
        ("desk.lan:5000", {"Origin": "http://desk.lan:5000"}, 303),
        ("desk.lan:5000", {"Origin": "http://desk.lan"}, 403),
        ("desk.lan:5000", {"Origin": "null"}, 403),
        ("desk.lan:5000", {"Origin": "http://evil.test"}, 403),
        ("desk.lan:5000", {}, 403),
        ("localhost:5000", {"Origin": "http://localhost:5000"}, 403),
        ("127.0.0.1", {"Origin": "http://127.0.0.1"}, 403),
        ("[::1]:5000", {"Origin": "http://[::1]:5000"}, 403),
    ],
    ids=["ours", "port", "hidden", "evil", "none", "localhost", "address", "ipv6"],
)
def test_in_the_clear_from_another_machine_the_origin_decides(
    host: str, headers: dict[Any, Any], code: int
) -> None:
    """Browsers say Sec-Fetch-Site to encrypted addresses and to this machine only."""
    client = scripted_app(trusted_hosts=["desk.lan"]).test_client()
    sent = {"data": {"token": TOKENS["read"]}, "headers": {"Host": host, **headers}}
    assert client.post("/login", **sent).status_code == code
    page = client.get("/login", headers={"Host": host}).text
    assert ("NOT ENCRYPTED" in page) == host.startswith("desk.lan")


# --- how a refusal is told ------------------------------------------------------------------------

FETCH = {"Accept": "application/json"}
COMMANDS = [route for route in SCOPED if route.rule.startswith("/api/")]


@pytest.mark.parametrize("route", COMMANDS, ids=ids_of(COMMANDS))
def test_no_command_refuses_a_script_or_a_program_with_a_page(
    place: Place, person: tuple[FlaskClient, str], route: Route
) -> None:
    client, _ = person
    stranger = {"Authorization": "Bearer wrong"}
    for headers, asker, code in (
        ({**OURS, **FETCH}, None, 401),
        ({**OURS, **FETCH}, client, 403),
        (stranger, None, 401),
        ({**stranger, "Accept": "*/*"}, None, 401),
    ):
        answer = place.ask("POST", route.rule, client=asker, data={}, headers=headers)
        assert (answer.status_code, answer.mimetype) == (code, "application/json")
        assert not place.reached


# --- bodies ---------------------------------------------------------------------------------------


class Untouched(io.BytesIO):
    """A body that nobody may read."""

    def read(self, *_: object) -> None:
        raise AssertionError("the body was read")

    readinto = readline = read1 = readlines = read


@pytest.mark.parametrize("route", UNSAFE, ids=ids_of(UNSAFE))
@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded"])
def test_a_body_that_is_too_large_is_not_even_read(
    place: Place, person: tuple[FlaskClient, str], route: Route, kind: str
) -> None:
    client, csrf = person
    answer = place.ask(
        "POST",
        route.rule,
        client=client,
        headers={**OURS, CSRF_HEADER: csrf},
        content_type=kind,
        input_stream=Untouched(),
        environ_overrides={"CONTENT_LENGTH": str(LARGEST_BODY + 1)},
    )
    assert answer.status_code == 413


def test_a_body_that_does_not_say_its_length_is_refused() -> None:
    chunked = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    answer = (
        scripted_app()
        .test_client()
        .post(
            "/login",
            input_stream=Untouched(),
            headers=OURS,
            content_type="application/x-www-form-urlencoded",
            environ_overrides=chunked,
        )
    )
    assert answer.status_code == 413


def test_the_largest_body_is_taken() -> None:
    client = scripted_app().test_client()
    room = LARGEST_BODY - len(f"token={TOKENS['read']}&x=")
    for more, code in ((0, 303), (1, 413)):
        data = f"token={TOKENS['read']}&x={'y' * (room + more)}"
        answer = client.post(
            "/login", data=data, headers=OURS, content_type="application/x-www-form-urlencoded"
        )
        assert answer.status_code == code


def test_a_large_body_of_a_get_is_refused_too(place: Place) -> None:
    answer = place.ask("GET", "/help", data=b"x" * (LARGEST_BODY + 1), headers=bearer("read"))
    assert answer.status_code == 413


KINDS = ("text/plain", "multipart/form-data; boundary=x", "application/xml", "text/html", "",
         "application/json-patch+json", "application/octet-stream")  # fmt: skip


@pytest.mark.parametrize("route", UNSAFE, ids=ids_of(UNSAFE))
def test_other_kinds_of_bodies_are_refused(
    place: Place, person: tuple[FlaskClient, str], route: Route
) -> None:
    client, csrf = person
    before = place.changes()
    for kind in KINDS:
        if route.files and kind.startswith("multipart"):
            continue  # how a file is handed in
        answer = place.ask(
            "POST",
            route.rule,
            client=client,
            data=b'{"token": "x"}',
            content_type=kind,
            headers={**OURS, CSRF_HEADER: csrf},
        )
        assert answer.status_code == 415, kind
    assert place.changes() == before
