"""Tokens, sessions and the login: who gets in, for how long, and what nobody gets."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from click.testing import CliRunner
from flask import Flask, request
from flask.testing import FlaskClient
from werkzeug.http import parse_cookie

from tests.cases import cases
from tests.conftest import Scale
from tests.doubles.entrance import (
    KEY,
    OURS,
    TOKENS,
    Moved,
    bearer,
    csrf_of,
    log_in,
    make_access,
    scripted_app,
)
from tests.worlds import stores
from tests.worlds.demo_view import ScriptedView
from torra.commands import access as access_commands
from torra.commands import run as running
from torra.dashboard.app import ERRORS, create_app
from torra.dashboard.doors import access as access_module
from torra.dashboard.doors import access_file, limits
from torra.dashboard.doors.access import (
    IDLE_SECONDS,
    LONGEST_SECONDS,
    RENEW_SECONDS,
    SCOPES,
    Access,
    own_path,
)
from torra.dashboard.doors.limits import LONGEST_WAIT, BackOff, RateLimits
from torra.dashboard.screens.agent_effect import PER_MINUTE
from torra.dashboard.screens.entry import LOGINS_A_MINUTE
from torra.dashboard.screens.health import CHECKS_A_MINUTE
from torra.errors import ConfigError
from torra.home import ACCESS, ACCESS_LOCK, PAGES
from torra.store import audit as audit_chain

# --- the file -------------------------------------------------------------------------------------


def test_a_first_start_makes_tokens_that_only_the_owner_reads(tmp_path: Path) -> None:
    access, new = Access.of_home(tmp_path / "home")
    path = tmp_path / "home" / ACCESS
    assert new
    assert path.stat().st_mode & 0o777 == 0o600
    assert [len(access.tokens[scope]) for scope in SCOPES] == [64, 64, 64]
    again, new = Access.of_home(tmp_path / "home")
    assert not new
    assert again.tokens == access.tokens
    assert [item.name for item in path.parent.iterdir()] == [ACCESS]


def test_an_open_umask_does_not_open_the_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Access.of_home(tmp_path)
    finally:
        os.umask(before)
    assert (tmp_path / ACCESS).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("rights", [0o640, 0o604, 0o644, 0o666, 0o620], ids="{:o}".format)
def test_a_file_that_others_can_read_is_refused_with_the_remedy(
    tmp_path: Path, rights: int
) -> None:
    Access.of_home(tmp_path)
    path = tmp_path / ACCESS
    path.chmod(rights)
    with pytest.raises(
        ConfigError, match=r"0\d\d\d: others can read.*torra token --new.*chmod 600"
    ):
        Access.of_home(tmp_path)
    assert path.stat().st_mode & 0o777 == rights, "nothing is repaired behind a person's back"
    access_file.replace(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o600
    Access.of_home(tmp_path)


def told(**changed: Any) -> dict[str, Any]:
    return {"tokens": {scope: scope.ljust(32, ".") for scope in SCOPES}, "key": KEY, **changed}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no list of tokens"),
        ("[]", "no list of tokens"),
        ('{"tokens": {"read": "x"}, "key": "y"}', "no list of tokens"),
        (json.dumps(told(key=7)), "shorter than 32"),
        (json.dumps(told(key="super-secret")), "shorter than 32"),
        (json.dumps(told(tokens=dict.fromkeys(SCOPES, "x" * 40))), "same token twice"),
    ],
    ids=["empty", "list", "scope missing", "number", "word", "twice"],
)
def test_a_file_that_is_no_list_of_good_tokens_is_refused(
    tmp_path: Path, content: str, words: str
) -> None:
    path = tmp_path / ACCESS
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=words) as caught:
        Access.of_home(tmp_path)
    assert "x" * 40 not in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.journey
def test_processes_that_start_together_have_the_same_tokens(tmp_path: Path, scaled: Scale) -> None:
    for turn in range(scaled(40, least=2)):
        home = tmp_path / str(turn)

        def start(number, home=home):
            access, new = Access.of_home(home)
            (home / f"seen-{number}").write_text(json.dumps([dict(access.tokens), new]))
            return new

        made = stores.forked(start, 4)
        seen = [json.loads((home / f"seen-{number}").read_text()) for number in range(4)]
        assert sum(made) == 1
        assert all(tokens == seen[0][0] for tokens, _ in seen)
        assert not list(home.glob("*.partial"))


def test_a_file_that_another_process_makes_while_this_one_looks_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked_too_early(path: Path) -> BinaryIO:
        monkeypatch.undo()
        assert access_file._put(path, access_file.make())
        raise FileNotFoundError(2, "No such file or directory", str(path))

    monkeypatch.setattr(access_file, "open_regular", looked_too_early)
    access, new = Access.of_home(tmp_path)
    assert not new
    assert dict(access.tokens) == access_file.read(tmp_path / ACCESS).by_scope


def test_a_disk_without_links_gets_one_file_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    first, new = Access.of_home(tmp_path)
    assert new
    assert not access_file._put(tmp_path / ACCESS, access_file.make())
    assert Access.of_home(tmp_path)[0].tokens == first.tokens


def test_a_full_disk_keeps_the_old_tokens_and_no_part_of_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    first, _ = Access.of_home(tmp_path)
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        access_file.replace(tmp_path)
    with pytest.raises(ConfigError, match="No space left"):
        access_file.read_or_make(tmp_path / "empty")
    assert {path.name for path in tmp_path.rglob("*")} == {ACCESS, ACCESS_LOCK, "empty"}
    assert Access.of_home(tmp_path)[0].tokens == first.tokens


def test_a_home_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(ConfigError, match=r"cannot (read|write)"):
        Access.of_home(tmp_path / "home")


# --- sessions -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made() -> tuple[Flask, Moved]:
    clock = Moved()
    return scripted_app(make_access(clock)), clock


@pytest.fixture
def clock(made: tuple[Flask, Moved]) -> Moved:
    """The clock of the app, days after whatever another test did."""
    made[1].pass_by(3 * IDLE_SECONDS)
    return made[1]


@pytest.fixture
def app(made: tuple[Flask, Moved], clock: Moved) -> Flask:
    return made[0]


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def code(client: Any, address: str = "/api/v1/desk", **named: Any) -> int:
    return client.get(address, **named).status_code


def test_the_cookie_is_for_this_desk_alone_and_out_of_reach_of_scripts(client: FlaskClient) -> None:
    cookie = log_in(client, "read").headers["Set-Cookie"]
    name = next(iter(parse_cookie(cookie)))
    assert re.fullmatch(r"torra_session_[0-9a-f]{8}", name)
    words = {word.strip() for word in cookie.split(";")[1:]}
    assert {"HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={IDLE_SECONDS}"} <= words
    assert "Secure" not in words
    assert name != Access(TOKENS, "another key").cookie
    assert TOKENS["read"] not in cookie


def test_an_encrypted_request_gets_a_cookie_for_encrypted_ones(app: Flask) -> None:
    headers = {**OURS, "Origin": "https://localhost"}
    answer = app.test_client().post(
        "/login", data={"token": TOKENS["read"]}, headers=headers, base_url="https://localhost"
    )
    assert answer.status_code == 303
    assert "; Secure" in answer.headers["Set-Cookie"]


def test_a_session_ends_after_twelve_idle_hours(client: FlaskClient, clock: Moved) -> None:
    log_in(client, "read")
    clock.pass_by(IDLE_SECONDS - 1)
    assert code(client) == 200
    clock.pass_by(1)
    assert code(client) == 401


def test_pages_that_are_opened_keep_a_session_and_what_they_fetch_does_not(
    client: FlaskClient, clock: Moved
) -> None:
    log_in(client, "read")
    for _ in range(3):
        clock.pass_by(IDLE_SECONDS - 1)
        assert code(client, "/help") == 200
    csrf = csrf_of(client)
    clock.pass_by(IDLE_SECONDS / 2)
    assert code(client) == 200
    clock.pass_by(IDLE_SECONDS / 2 - 1)
    assert csrf_of(client) == csrf, "a form of an open page stays good"
    clock.pass_by(IDLE_SECONDS - 1)
    assert code(client) == 200
    clock.pass_by(1)
    assert code(client) == 401, "figures that a page fetches are no sign of a person"


def test_a_cookie_is_not_written_at_every_page(client: FlaskClient, clock: Moved) -> None:
    log_in(client, "read")
    clock.pass_by(RENEW_SECONDS - 1)
    assert "Set-Cookie" not in client.get("/help").headers
    clock.pass_by(1)
    assert "Max-Age" in client.get("/help").headers["Set-Cookie"]


def test_a_session_ends_at_last_however_much_it_is_used(
    client: FlaskClient, clock: Moved, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LONGEST_SECONDS == 60 * IDLE_SECONDS
    monkeypatch.setattr(access_module, "LONGEST_SECONDS", 3 * IDLE_SECONDS)
    log_in(client, "read")
    for _ in range(5):
        clock.pass_by(IDLE_SECONDS // 2)
        assert code(client, "/help") == 200
        assert code(client) == 200
    clock.pass_by(IDLE_SECONDS // 2)
    assert code(client) == 401


def test_a_logout_ends_copies_of_the_cookie_too(app: Flask, client: FlaskClient) -> None:
    value = parse_cookie(log_in(client, "read").headers["Set-Cookie"])
    name = next(item for item in value if item.startswith("torra_session"))
    csrf = csrf_of(client)
    answer = client.post("/logout", data={"csrf": csrf}, headers=OURS)
    assert answer.status_code == 303
    assert answer.headers.getlist("Set-Cookie")[0].startswith(f"{name}=;")
    assert len(answer.headers.getlist("Set-Cookie")) == 1
    thief = app.test_client()
    thief.set_cookie(name, value[name])
    assert code(thief) == 401
    assert code(client) == 401


@pytest.mark.parametrize("kind", ["data", "json"])
def test_a_login_takes_the_place_of_the_session_before(
    app: Flask, client: FlaskClient, clock: Moved, kind: str
) -> None:
    """Whether it is an older one of this browser, or one that a stranger planted in it."""
    value = parse_cookie(log_in(client, "read").headers["Set-Cookie"])
    name = next(item for item in value if item.startswith("torra_session"))
    stranger = app.test_client()
    stranger.set_cookie(name, value[name])
    clock.pass_by(RENEW_SECONDS)
    assert code(stranger) == 200
    wrong = client.post("/login", headers=OURS, **{kind: {"token": "guess"}})
    assert (wrong.status_code, wrong.headers.getlist("Set-Cookie")) == (401, [])
    assert code(stranger) == 200, "a login that failed ends nothing"
    answer = client.post("/login", headers=OURS, **{kind: {"token": TOKENS["admin"]}})
    (cookie,) = answer.headers.getlist("Set-Cookie")
    assert parse_cookie(cookie)[name] != value[name]
    assert scope_of(app, client) == "admin"
    assert code(stranger) == 401


def scope_of(app: Any, client: Any) -> Any:
    """Return the scope of the session that a browser has by now."""
    cookies = "; ".join(f"{one.key}={one.value}" for one in client._cookies.values())
    with app.test_request_context("/", headers={"Cookie": cookies}):
        return app.extensions["torra_agents"].access.session(request).scope


def test_the_login_page_puts_the_end_of_no_session_off(client: FlaskClient, clock: Moved) -> None:
    log_in(client, "read")
    clock.pass_by(RENEW_SECONDS)
    assert "Set-Cookie" not in client.get("/login").headers
    assert "Set-Cookie" in client.get("/help").headers


@pytest.mark.parametrize(
    "change",
    [
        lambda cookie: cookie[:-3] + ("AAA" if cookie[-3:] != "AAA" else "BBB"),
        lambda cookie: "x" + cookie,
        lambda cookie: cookie.partition(".")[0],
        lambda cookie: "",
    ],
    ids=["signature", "content", "unsigned", "empty"],
)
def test_a_changed_cookie_is_nobody(
    app: Flask, client: FlaskClient, change: Callable[..., Any]
) -> None:
    found = parse_cookie(log_in(client, "admin").headers["Set-Cookie"])
    name = next(item for item in found if item.startswith("torra_session"))
    other = app.test_client()
    other.set_cookie(name, change(found[name]))
    assert code(other) == 401


def test_new_tokens_hold_at_once_and_end_every_session(tmp_path: Path) -> None:
    access, _ = Access.of_home(tmp_path)
    old = dict(access.tokens)
    client = create_app(ScriptedView(), access=access).test_client()
    client.post("/login", data={"token": old["admin"]}, headers=OURS)
    assert code(client) == 200
    new = access_file.replace(tmp_path).by_scope
    assert code(client) == 401
    assert code(client, headers={"Authorization": f"Bearer {old['admin']}"}) == 401
    assert code(client, headers={"Authorization": f"Bearer {new['read']}"}) == 200


@pytest.mark.parametrize("harm", ["missing", "broken", "loose"])
def test_without_a_good_file_nobody_is_let_in_and_then_again(
    tmp_path: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    access, _ = Access.of_home(tmp_path)
    path = tmp_path / ACCESS
    client = create_app(ScriptedView(), access=access).test_client()
    token = {"Authorization": f"Bearer {access.tokens['admin']}"}
    client.post("/login", data={"token": access.tokens["admin"]}, headers=OURS)
    kept = path.read_text()
    assert (code(client), code(client, headers=token)) == (200, 200)
    if harm == "missing":
        path.unlink()
    elif harm == "broken":
        path.write_text("{}")
    else:
        path.chmod(0o644)
    assert [code(client), code(client, headers=token), code(client)] == [401, 401, 401]
    assert caplog.text.count("nobody is let in") == 1
    path.write_text(kept)
    path.chmod(0o600)
    assert (code(client), code(client, headers=token)) == (200, 200)


# --- the login ------------------------------------------------------------------------------------


def test_a_form_logs_in_and_leads_on(client: FlaskClient) -> None:
    answer = client.post(
        "/login", data={"token": f" {TOKENS['read']} ", "next": "/help"}, headers=OURS
    )
    assert (answer.status_code, answer.headers["Location"]) == (303, "/help")
    assert code(client) == 200


def test_a_script_logs_in_with_json(client: FlaskClient) -> None:
    answer = client.post(
        "/login", json={"token": TOKENS["approve"], "next": "/signals"}, headers=OURS
    )
    assert answer.json == {"scope": "approve", "next": "/signals"}
    assert code(client) == 200


@pytest.mark.parametrize(
    "body",
    [
        {"json": {"token": "wrong"}},
        {"json": {}},
        {"json": ["admin"]},
        {"json": {"token": None}},
        {"json": {"token": list(TOKENS["admin"])}},
        {"data": {"token": "wrong"}},
        {"data": {}},
        {"data": b"{", "content_type": "application/json"},
    ],
    ids=["wrong", "none", "list", "null", "letters", "form", "empty form", "broken json"],
)
def test_a_wrong_token_is_refused_with_the_way_in(
    client: FlaskClient, body: dict[str, Any]
) -> None:
    answer = client.post("/login", headers=OURS, **body)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert "Set-Cookie" not in answer.headers
    if "data" in body and body.get("content_type") is None:
        text = answer.text
        assert 'id="login"' in text
        assert "not a token of this desk" in text


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("address", ["/", "/login", "/api/v1/desk", "/help"])
def test_a_token_in_an_address_is_never_taken(
    client: FlaskClient, method: str, address: str
) -> None:
    for name in ("token", "access_token", "auth"):
        answer = getattr(client, method)(
            address, query_string={name: TOKENS["admin"]}, headers=OURS, data=None
        )
        assert "Set-Cookie" not in answer.headers
        assert answer.status_code in (200, 303, 401, 405, 429)
        assert TOKENS["admin"] not in answer.text
        assert (answer.status_code == 200) == (method == "get" and address == "/login")
    assert code(client) == 401


def test_the_login_page_tells_a_stranger_nothing(client: FlaskClient) -> None:
    for address in ("/login", "/login?next=/symbol/BTCUSD"):
        text = client.get(address).text.replace("/symbol/BTCUSD", "")
        for word in ("<nav", "BTCUSD", "Approvals", "data-csrf", "data-live", "0.1.0", "HALT"):
            assert word not in text
        assert 'method="post"' in text


def guess(client: FlaskClient, **more: Any) -> Any:
    return client.post("/login", data={"token": "guess"}, headers=OURS, **more)


def test_five_wrong_tokens_a_minute_from_one_address(
    client: FlaskClient, clock: Moved, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FREE_FAILURES", 100)
    assert [guess(client).status_code for _ in range(6)] == [401] * 5 + [429]
    assert guess(client).headers["Retry-After"] == "12"
    assert guess(client, environ_overrides={"REMOTE_ADDR": "127.0.0.2"}).status_code == 401
    clock.pass_by(12)
    assert [guess(client).status_code for _ in range(2)] == [401, 429]


def test_nobody_at_the_same_address_locks_the_owner_out(
    app: Flask, client: FlaskClient, clock: Moved, scaled: Scale, caplog: pytest.LogCaptureFixture
) -> None:
    """Behind a proxy on this machine, and for its programs, everybody has one address."""
    caplog.set_level("CRITICAL")
    stranger = app.test_client()
    codes = set()
    for _ in range(scaled(400, least=20)):
        codes |= {guess(stranger).status_code for _ in range(3)}
        assert log_in(client, "read").status_code == 303
        assert code(client) == 200
        clock.pass_by(1)
    assert codes == {401, 429}


@cases("address", ["/history?only=changed", "/api/v1/changed?limit=x"])
def test_one_visitor_asks_what_agents_changed_sixty_times_a_minute(
    client: FlaskClient, clock: Moved, address: str
) -> None:
    log_in(client, "read")
    codes = [client.get(address).status_code for _ in range(PER_MINUTE + 1)]
    assert len(set(codes[:-1])) == 1 and codes[0] != 429
    assert codes[-1] == 429
    assert client.get("/").status_code == 200
    clock.pass_by(1)
    assert client.get(address).status_code == codes[0]


def test_one_token_logs_in_sixty_times_a_minute_and_holds_no_other_up(
    client: FlaskClient, clock: Moved
) -> None:
    codes = [log_in(client, "read").status_code for _ in range(LOGINS_A_MINUTE + 1)]
    assert codes == [303] * LOGINS_A_MINUTE + [429]
    assert log_in(client, "read").headers["Retry-After"] == "1"
    assert log_in(client, "admin").status_code == 303
    assert guess(client).status_code == 401
    clock.pass_by(1)
    assert log_in(client, "read").status_code == 303


def test_who_fails_waits_twice_as_long_each_time(client: FlaskClient, clock: Moved) -> None:
    def fail():
        return guess(client)

    waits = []
    for _ in range(14):
        answer = fail()
        while answer.status_code == 429:
            seconds = int(answer.headers["Retry-After"])
            clock.pass_by(seconds)
            waits.append(seconds)
            answer = fail()
        assert answer.status_code == 401
        clock.pass_by(12)  # one more of the five a minute
    assert waits == sorted(waits)
    assert waits[-1] == int(LONGEST_WAIT) - 12
    assert fail().status_code == 429
    assert log_in(client, "read").status_code == 303, "the right token passes meanwhile"
    clock.pass_by(12)
    assert [fail().status_code for _ in range(3)] == [401] * 3, "a success starts anew"
    assert fail().status_code == 429


OUTWARD = (
    "//evil.test", "///evil.test", "/\\evil.test", "\\\\evil.test", "/\t/evil.test",
    "\t//evil.test", "/%09/evil.test", "/%5cevil.test", "https://evil.test", "https:/evil.test",
    "javascript:alert(1)", "evil.test", "//user@evil.test", "http://localhost@evil.test/",
    "/\n/evil.test", "/torra/../evil", "/%2e%2e/x", "/a/./b", "//[::1", "/" + "a" * 3000, "",
    "?next=/", "#x", "/\u202ex", "/x\x00",
)  # fmt: skip


@pytest.mark.parametrize("path", OUTWARD, ids=[f"way {n}" for n in range(len(OUTWARD))])
def test_a_login_never_leads_elsewhere(client: FlaskClient, path: str) -> None:
    assert own_path(path, "/") == "/"
    answer = client.post("/login", data={"token": TOKENS["read"], "next": path}, headers=OURS)
    assert answer.headers["Location"] == "/"


@cases(
    "path",
    ["/torra/", "/torra/help", "/torra/audit?action=halt&actor=a%40b", "/torra/symbol/BTC%20X/M15",
     "/torra/@x", "/torra/help#keys"],
)  # fmt: skip
def test_a_login_leads_to_paths_of_ours(path: str) -> None:
    assert own_path(path, "/torra/") == path


@cases("path", ["/", "/torra", "/torrax", "/other/", "/torra/../"])
def test_a_hosts_own_pages_are_not_ours(path: str) -> None:
    assert own_path(path, "/torra/") == "/torra/"


def test_a_person_is_sent_to_the_login_and_back(client: FlaskClient) -> None:
    answer = client.get("/signals?x=1", headers={"Accept": "text/html"})
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/login?next=/signals?x%3D1"
    page = client.get(answer.headers["Location"]).text
    assert 'name="next" value="/signals?x=1"' in page


@pytest.mark.parametrize("address", ["/api/v1/desk", "/api/v1/nothing"])
def test_a_program_is_told_what_is_missing(client: FlaskClient, address: str) -> None:
    answer = client.get(address, headers={"Accept": "text/html"})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="torra"'
    wrong = client.get(address, headers={"Authorization": "Bearer no"})
    assert wrong.status_code == 401
    assert 'error="invalid_token"' in wrong.headers["WWW-Authenticate"]


@pytest.mark.parametrize(
    "given", ["Basic dXNlcjpwYXNz", "Bearer", "bearer ", "Token x", "Bearer \u00e9\u00ff"]
)
def test_other_words_are_no_token(client: FlaskClient, given: str) -> None:
    assert code(client, headers={"Authorization": given}) == 401


WRONG = {"Authorization": "Bearer guess"}


def test_five_wrong_tokens_a_minute_of_programs_and_logins_together(
    client: FlaskClient,
    clock: Moved,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(limits, "FREE_FAILURES", 100)
    assert [code(client, headers=WRONG) for _ in range(3)] == [401] * 3
    assert [guess(client).status_code for _ in range(3)] == [401, 401, 429]
    answer = client.get("/api/v1/desk", headers=WRONG)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "12")
    assert caplog.text.count("a bearer token from 127.0.0.1 failed") == 3, "one line for each try"
    elsewhere = {"REMOTE_ADDR": "127.0.0.2"}
    assert code(client, headers=WRONG, environ_overrides=elsewhere) == 401
    clock.pass_by(12)
    assert [code(client, headers=WRONG) for _ in range(2)] == [401, 429]


def test_a_program_that_guesses_locks_no_right_token_out(
    app: Flask, client: FlaskClient, clock: Moved, scaled: Scale
) -> None:
    """It has the address of the owner, as every program of this machine."""
    codes = set()
    for _ in range(scaled(300, least=20)):
        codes |= {code(client, headers=WRONG), code(client, "/signals", headers=WRONG)}
        assert code(client, headers=bearer("read")) == 200
        person = app.test_client()
        assert log_in(person, "admin").status_code == 303
        assert code(person) == 200
        clock.pass_by(1)
    assert codes == {401, 429}


@pytest.mark.parametrize("given", ["Basic dXNlcjpwYXNz", "Bearer", "Token x"])
def test_what_is_no_token_is_no_wrong_one(client: FlaskClient, clock: Moved, given: str) -> None:
    """A proxy in front of the pages may have a password of its own, which a browser sends on."""
    assert {code(client, headers={"Authorization": given}) for _ in range(10)} == {401}


def test_a_wrong_bearer_is_not_saved_by_a_cookie(client: FlaskClient) -> None:
    log_in(client, "admin")
    assert code(client, headers={"Authorization": "Bearer wrong"}) == 401


# --- how often ------------------------------------------------------------------------------------


def test_a_bucket_fills_evenly_and_not_above_its_brim() -> None:
    clock = Moved()
    rates = RateLimits(clock.monotonic)
    assert [rates.wait("a", 4) for _ in range(5)] == [0, 0, 0, 0, 15.0]
    assert rates.wait("b", 4) == 0.0
    clock.pass_by(14)
    assert rates.wait("a", 4) == pytest.approx(1.0)
    clock.pass_by(1)
    assert rates.wait("a", 4) == 0.0
    clock.pass_by(3600)
    assert [rates.wait("a", 4) > 0 for _ in range(5)] == [False] * 4 + [True]


@pytest.mark.parametrize("kind", [RateLimits, BackOff])
def test_what_is_remembered_is_bounded_and_the_oldest_goes_first(kind: type) -> None:
    known = kind(Moved().monotonic, most=3)
    for name in ("a", "b", "c", "a", "d"):
        known.wait(name, 1) if kind is RateLimits else known.failed(name)
    assert list(known._counts) == ["c", "a", "d"]


def test_a_failure_is_forgotten_after_an_hour() -> None:
    clock = Moved()
    known = BackOff(clock.monotonic)
    for _ in range(4):
        known.failed("a")
    assert known.wait("a") == 2.0
    clock.pass_by(3601)
    known.failed("a")
    assert known.wait("a") == 0.0


def test_each_visitor_of_an_app_has_a_measure_of_his_own(
    app: Flask, client: FlaskClient, clock: Moved
) -> None:
    addresses = "/audit/check"
    first = [code(client, addresses, headers=bearer("read")) for _ in range(7)]
    assert first == [200] * 6 + [429]
    answer = client.get(addresses, headers=bearer("read"))
    assert answer.headers["Retry-After"] == "10"
    assert code(client, addresses, headers=bearer("admin")) == 200
    log_in(client, "read")
    assert code(client, addresses) == 200
    assert code(client, "/audit", headers=bearer("read")) == 200
    other = scripted_app(make_access(clock)).test_client()
    assert code(other, addresses, headers=bearer("read")) == 200
    clock.pass_by(10)
    assert code(client, addresses, headers=bearer("read")) == 200


# --- how a refusal is told ------------------------------------------------------------------------

FETCH = {"Accept": "application/json"}
FORM = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def refusals(client, clock, rule, sent):
    """Yield each refusal of a command, by its code: one after the other of one visitor."""
    log_in(client, "read")
    csrf = csrf_of(client)
    yield 403, client.post(rule, data={"csrf": csrf}, headers={**OURS, **sent})
    clock.pass_by(IDLE_SECONDS)
    yield 401, client.post(rule, data={"csrf": csrf}, headers={**OURS, **sent})
    log_in(client, "approve")
    yield 403, client.post(rule, data={"csrf": csrf}, headers={**OURS, **sent})
    csrf = csrf_of(client)
    for _ in range(CHECKS_A_MINUTE):
        client.post(rule, data={"csrf": csrf}, headers={**OURS, **sent})
    yield 429, client.post(rule, data={"csrf": csrf}, headers={**OURS, **sent})


@pytest.mark.parametrize("sent", [FETCH, FORM], ids=["a script", "a form"])
def test_a_refusal_is_told_in_the_way_that_was_asked(
    client: FlaskClient, clock: Moved, sent: dict[str, str]
) -> None:
    for code, answer in refusals(client, clock, "/api/v1/health/check", sent):
        assert answer.status_code == code
        assert ("Retry-After" in answer.headers) == (code == 429)
        title, advice = ERRORS[code]
        if sent is FETCH:
            assert answer.json == {"error": title, "advice": advice, "status": code}
        else:
            assert answer.mimetype == "text/html"
            text = html.unescape(answer.text)
            assert f"<h1>{title}</h1>" in text and advice in text


# --- the command line -----------------------------------------------------------------------------


def command(home: Any, *words: str) -> Any:
    return CliRunner().invoke(access_commands.token, words, obj=home, catch_exceptions=False)


def test_the_command_shows_links_that_log_in(tmp_path: Path) -> None:
    done = command(tmp_path, "--json")
    document = json.loads(done.output)
    access, new = Access.of_home(tmp_path)
    assert not new
    assert {row["scope"]: row["token"] for row in document["tokens"]} == dict(access.tokens)
    one = command(tmp_path, "--scope", "read", "--address", "https://desk.test/")
    assert f"https://desk.test/login#token={access.tokens['read']}" in one.output
    assert access.tokens["admin"] not in one.output


def test_new_tokens_are_new_and_on_record(tmp_path: Path) -> None:
    database = stores.open_database(tmp_path)
    before = dict(Access.of_home(tmp_path)[0].tokens)
    (tmp_path / ACCESS).chmod(0o644)
    done = command(tmp_path, "--new")
    assert done.exit_code == 0, done.output
    assert "every session has ended" in done.output
    after = dict(Access.of_home(tmp_path)[0].tokens)
    assert not set(before.values()) & set(after.values())
    (entry,) = audit_chain.audit_entries(database)
    assert (entry["actor"], entry["action"]) == ("command line", "new tokens")
    database.close()
    stored = (tmp_path / "torra.db").read_bytes()
    assert not [token for token in after.values() if token.encode() in stored]


def test_tokens_end_even_where_the_record_cannot_be_written(tmp_path: Path) -> None:
    old = dict(Access.of_home(tmp_path)[0].tokens)
    (tmp_path / "torra.db").write_bytes(b"no database" * 100)
    done = command(tmp_path, "--new")
    assert done.exit_code == 1
    assert "not on record" in done.output
    assert not set(old.values()) & set(Access.of_home(tmp_path)[0].tokens.values())


@pytest.mark.parametrize(
    "words",
    [("--address", "127.0.0.1:5000", "--new"), ("--scope", "root")],
    ids=["address", "scope"],
)
def test_a_mistake_changes_nothing(tmp_path: Path, words: tuple[Any, ...]) -> None:
    old = dict(Access.of_home(tmp_path)[0].tokens)
    assert command(tmp_path, *words).exit_code == 2
    assert dict(Access.of_home(tmp_path)[0].tokens) == old


def links(home: Any, *words: str) -> Any:
    done = command(home, "--json", *words)
    assert done.exit_code == 0, done.output
    return {row["link"].partition("/login")[0] for row in json.loads(done.output)["tokens"]}


def test_the_links_lead_to_where_the_desk_serves(tmp_path: Path) -> None:
    assert links(tmp_path) == {"http://127.0.0.1:5000"}
    access_commands.tell_address(tmp_path, "http://127.0.0.1:5093")
    assert json.loads((tmp_path / "pages.json").read_text()) == {"address": "http://127.0.0.1:5093"}
    assert links(tmp_path) == {"http://127.0.0.1:5093"}
    assert links(tmp_path, "--address", "https://desk.test") == {"https://desk.test"}
    access_commands.tell_address(tmp_path, "http://[::1]:5094")
    assert links(tmp_path) == {"http://[::1]:5094"}


def test_links_of_a_port_that_nobody_told_say_so(tmp_path: Path) -> None:
    assert command(tmp_path).output.endswith(f"{access_commands.PORT_UNKNOWN}\n")
    assert (
        access_commands.PORT_UNKNOWN not in command(tmp_path, "--address", "http://x.test").output
    )
    access_commands.tell_address(tmp_path, "http://127.0.0.1:5093")
    assert access_commands.PORT_UNKNOWN not in command(tmp_path).output


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"address": 7}', b'{"address": "x:1"}', b'{"address": "http://\\n"}',
     b"\xff"],
    ids=["empty", "list", "none", "number", "scheme", "control", "bytes"],
)  # fmt: skip
def test_a_broken_note_of_the_address_is_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / PAGES).write_bytes(content)
    assert links(tmp_path) == {access_commands.ADDRESS}


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")], ids=["four", "six"]
)
def test_a_desk_tells_the_port_that_it_got(tmp_path: Path, host: str, shown: str) -> None:
    assert running._note(tmp_path, host, 5093, "") == f"http://{shown}:5093"
    assert links(tmp_path) == {f"http://{shown}:5093"}


def test_a_home_that_cannot_be_written_keeps_no_desk_from_serving(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shown = running._note(tmp_path / "none", "127.0.0.1", 5093, "")
    assert shown == "http://127.0.0.1:5093"
    assert "will not know" in caplog.text


def test_a_home_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    done = command(tmp_path / "none")
    assert done.exit_code == 2
    assert "there is no home" in done.output
    assert not (tmp_path / "none").exists()
