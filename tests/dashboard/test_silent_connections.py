"""The pages stay reachable while strangers hold connections that say nothing, or little (V10)."""

from __future__ import annotations

import http.client
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.conftest import Scale
from tests.doubles import loopback
from tests.doubles.strangers import besieged
from tests.doubles.visitors import bearer, open_app
from tests.tries import Tries
from tests.worlds.demo_view import ScriptedView
from torra.dashboard import server as pages_server
from torra.dashboard.server import CONNECTIONS, CONNECTIONS_OF_SELECT, FILES, connection_limit

PAGE_SECONDS = 1.0
"""A page may take so long in a siege."""

WAIT = 10.0


class Pages:
    """A server of pages and a visitor of it."""

    def __init__(self) -> None:
        self.release = threading.Event()
        app = open_app(ScriptedView())
        app.add_url_rule("/slow", "slow", view_func=self._slow)
        self.server = loopback.open_warm(app)
        self.port: int = self.server.effective_port
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()

    def _slow(self) -> str:
        self.release.wait(WAIT)
        return "slow"

    def end(self) -> None:
        self.release.set()
        loopback.end(self.server)
        self.thread.join(WAIT)
        self.server.task_dispatcher.shutdown()
        assert not self.thread.is_alive()

    def read(self) -> float:
        """Ask for a page as somebody who is logged in; return the seconds that it took."""
        begun = time.monotonic()
        visitor = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2 * PAGE_SECONDS)
        with closing(visitor):
            visitor.request("GET", "/help", headers=bearer("read"))
            answer = visitor.getresponse()
            assert answer.status == 200 and b"</html>" in answer.read()
        return time.monotonic() - begun


@pytest.fixture
def pages() -> Iterator[Pages]:
    served = Pages()
    yield served
    served.end()


def test_strangers_without_a_word_take_no_page_away(
    pages: Pages, scaled: Scale, tries: Tries
) -> None:
    silent, slow = scaled(1000, least=120), scaled(200, least=24)
    visits = scaled(400, least=10)
    for attempt in tries():
        with attempt, besieged(pages.port, silent, slow) as siege:
            seconds = sorted(pages.read() for _ in range(visits))
            assert siege.holds()
            assert seconds[int(0.95 * len(seconds))] <= PAGE_SECONDS


def test_a_silent_connection_is_closed_and_one_that_is_answered_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages_server, "SILENT_SECONDS", 1)
    monkeypatch.setattr(pages_server, "CLEANUP_SECONDS", 1)
    pages = Pages()
    try:
        reader = socket.create_connection(("127.0.0.1", pages.port), timeout=WAIT)
        reader.sendall(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        silent = socket.create_connection(("127.0.0.1", pages.port), timeout=10 * WAIT)
        with closing(reader), closing(silent):
            assert silent.recv(1) == b"", "the server closed it"
            pages.release.set()
            answer = http.client.HTTPResponse(reader)
            answer.begin()
            assert answer.read() == b"slow"
    finally:
        pages.end()


@pytest.mark.parametrize(
    ("soft", "hard", "asked", "most"),
    [
        (1024, 1 << 20, FILES, CONNECTIONS),
        (1024, -1, FILES, CONNECTIONS),
        (256, 2000, 2000, 1000),
        (1024, 1024, 1024, 512),
        (20_000, 20_000, None, CONNECTIONS),
        (-1, -1, None, CONNECTIONS),
    ],
    ids=["usual", "no end", "some", "no more", "enough", "any"],
)
def test_connections_leave_files_for_the_desk(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, asked: int | None, most: int
) -> None:
    limits = []
    resource = pytest.importorskip("resource", reason="files are counted on POSIX")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, found: limits.append(found))
    assert connection_limit() == most
    assert limits == ([] if asked is None else [(asked, hard)])


def test_a_system_without_poll_gets_as_many_as_select_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(select, "poll", raising=False)
    monkeypatch.setattr(pages_server, "resource", None)
    assert connection_limit() == CONNECTIONS_OF_SELECT < 512


def test_a_system_that_allows_no_more_files_gets_fewer_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")

    resource = pytest.importorskip("resource", reason="files are counted on POSIX")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, -1))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert connection_limit() == 128
