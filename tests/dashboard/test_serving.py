"""The pages are served on this machine only unless a person says otherwise; what cannot start says
what to do; what reaches the server is limited before it reaches the pages."""

from __future__ import annotations

import http.client
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from flask import request

from tests.cases import cases
from tests.doubles import loopback
from tests.doubles.visitors import open_app
from tests.worlds.demo_view import ScriptedView
from torra.dashboard import server
from torra.dashboard.doors.access import LARGEST_BODY
from torra.errors import ConfigError

SELECT_ENDS = 1024


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


@pytest.mark.parametrize("start", ["open_server", "serve", "check_port"])
def test_a_taken_port_is_one_line_with_the_remedy(taken: int, start: str) -> None:
    where = ("127.0.0.1", taken)
    arguments = where if start == "check_port" else (open_app(ScriptedView()), *where)
    with pytest.raises(ConfigError) as caught:
        getattr(server, start)(*arguments)
    line = str(caught.value)
    assert f"port {taken}" in line
    assert f"PORT={taken + 1}" in line
    assert "\n" not in line


@cases("host", ["0.0.0.0", "192.168.1.4", "::", "example.org", ""])
def test_an_address_beyond_this_machine_is_refused(host: str) -> None:
    for start in (server.check_port, lambda *at: server.serve(open_app(ScriptedView()), *at)):
        with pytest.raises(ConfigError, match=r"this machine only.*SSH tunnel.*--allow-remote"):
            start(host, 5150)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_machines_are_served_when_a_person_says_so(host: str) -> None:
    server.check_port(host, 0, allow_remote=True)


def test_leave_without_an_address_is_not_leave_for_every_address() -> None:
    with pytest.raises(ConfigError, match="this machine only"):
        server.check_port("", 0, allow_remote=True)


def test_who_serves_other_machines_names_what_the_pages_answer_to() -> None:
    assert server.trusted_names((), allow_remote=False) == ()
    named = ("Desk.lan", "10.8.0.1", "[fd00::1]", "a")
    assert server.trusted_names(named, allow_remote=True) == ("desk.lan", *named[1:])
    with pytest.raises(ConfigError, match="needs the names"):
        server.trusted_names((), allow_remote=True)
    with pytest.raises(ConfigError, match="add --allow-remote"):
        server.trusted_names(("desk.lan",), allow_remote=False)


@cases(
    "name",
    ["", "*", "*.lan", ".lan", "http://desk.lan", "desk.lan:5000", "desk.lan/", "a b", "fd00::1",
     "desk.lan\n", "-desk"],
    ids=[f"name {n}" for n in range(11)],
)  # fmt: skip
def test_a_name_is_a_name_and_no_pattern(name: str) -> None:
    with pytest.raises(ConfigError, match="is no host name"):
        server.trusted_names((name,), allow_remote=True)


def test_a_free_port_is_left_free() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server.check_port("127.0.0.1", port)
    server.check_port("localhost", port)


@pytest.fixture
def running() -> Iterator[Callable[..., Any]]:
    """A served app, and a function that asks it and returns the answer with its body."""
    app = open_app(ScriptedView(), trusted_hosts=["desk.lan"])
    app.add_url_rule("/seen", view_func=lambda: f"{request.scheme} {request.remote_addr}")
    found = loopback.open_warm(app)
    thread = threading.Thread(target=found.run, daemon=True)
    thread.start()

    def ask(method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", found.effective_port, timeout=10)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    yield ask
    loopback.end(found)
    thread.join(10)
    cast(Any, found).task_dispatcher.shutdown()
    assert not thread.is_alive()


@pytest.mark.journey
def test_the_server_answers_and_ends(running: Callable[..., Any]) -> None:
    answer, _ = running("GET", "/healthz")
    assert answer.status == 200
    assert answer.getheader("Server") is None
    assert running("GET", "/", Host="evil.test")[0].status == 400


@pytest.fixture
def many_files() -> Iterator[None]:
    """A process that already has more files open than select() can name."""
    resource = pytest.importorskip("resource", reason="files are counted on POSIX")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(2048, hard)), hard))
    with ExitStack() as held:
        while held.enter_context(Path(os.devnull).open()).fileno() < SELECT_ENDS:
            pass
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_a_process_with_many_open_files_still_answers(running: Callable[..., Any]) -> None:
    assert running("GET", "/healthz")[0].status == 200


def test_a_body_is_limited_before_it_is_taken_off_the_line(running: Callable[..., Any]) -> None:
    answer, _ = running("POST", "/login", Content_Length=str(server.MOST_BYTES + 1))
    assert answer.status == 413


def test_a_body_in_pieces_is_measured_as_a_whole(running: Callable[..., Any]) -> None:
    ours = {"Sec_Fetch_Site": "same-origin", "Content_Type": "application/json"}
    for size, status in ((10, 401), (LARGEST_BODY + 1, 413)):
        pieces = iter([b"x" * (size // 2), b"x" * (size - size // 2)])
        answer, _ = running(
            "POST", "/login", pieces, Host="127.0.0.1", Origin="http://127.0.0.1", **ours
        )
        assert answer.status == status


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        ({}, "http"),
        ({"X_Forwarded_Proto": "https"}, "https"),
        ({"Forwarded": "proto=https;for=10.9.9.9"}, "http"),
        ({"X_Forwarded_For": "10.9.9.9", "X_Forwarded_Host": "evil.test"}, "http"),
    ],
    ids=["nothing", "proto", "forwarded", "for and host"],
)
def test_a_proxy_on_this_machine_is_believed_about_encryption_alone(
    running: Callable[..., Any], told: dict[Any, Any], seen: str
) -> None:
    assert running("GET", "/seen", **told)[1] == f"{seen} 127.0.0.1"
