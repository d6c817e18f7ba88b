"""The pages stay reachable while strangers hold connections that say nothing, or little (V10)."""

from __future__ import annotations

import http.client
import logging
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from flask import request

from tests.conftest import Scale
from tests.doubles import loopback
from tests.doubles.entrance import Moved
from tests.doubles.strangers import HEAD, LOGIN, PAGE, besieged
from tests.doubles.visitors import bearer, open_app
from tests.tries import Tries, until
from tests.worlds.demo_view import ScriptedView
from torra.dashboard.doors import connections
from torra.dashboard.doors.connections import (
    ANSWER_SECONDS,
    FILES,
    IDLE_SECONDS,
    LARGE_BODY,
    MOST,
    MOST_OF_SELECT,
    REQUEST_SECONDS,
    TELL_SECONDS,
    YOUNG_SECONDS,
)

PAGE_SECONDS = 1.0
"""A page may take so long in a siege."""

WAIT = 10.0
MORE_THAN_THE_SYSTEM_HOLDS = 16 << 20


class Served:
    """A server of pages, and visitors of it."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        app = open_app(ScriptedView())
        app.add_url_rule("/held", "held", view_func=self._hold)
        app.add_url_rule("/large", "large", view_func=lambda: b"x" * MORE_THAN_THE_SYSTEM_HOLDS)
        app.add_url_rule(
            "/size", "size", view_func=lambda: str(len(request.data)), methods=["POST"]
        )
        self.server = loopback.open_warm(app)
        self.port: int = self.server.effective_port
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.made: list[socket.socket] = []

    def _hold(self) -> str:
        self.let_go.wait(WAIT)
        return "held"

    def end(self) -> None:
        self.let_go.set()
        for one in self.made:
            one.close()
        loopback.end(self.server)
        self.thread.join(WAIT)
        self.server.task_dispatcher.shutdown()
        assert not self.thread.is_alive()

    def come(self, said: bytes = b"") -> socket.socket:
        """Return a new connection that the server has taken in, and what it said."""
        made = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)
        self.made.append(made)
        here = made.getsockname()
        until(lambda: any(one.addr == here for one in self.every()))
        made.sendall(said)
        return made

    def every(self) -> list[Any]:
        """Return the connections as the server has them, the newest last."""
        return list(self.server.active_channels.values())

    def connection(self, place: int = 0) -> Any:
        """Return one of them."""
        return self.every()[place]

    def page(self) -> float:
        """Ask for a page as one who is logged in; return the seconds that it took."""
        begun = time.monotonic()
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2 * PAGE_SECONDS)
        with closing(asked):
            asked.request("GET", "/help", headers=bearer("read"))
            answer = asked.getresponse()
            assert answer.status == 200 and b"</html>" in answer.read()
        return time.monotonic() - begun

    def is_open(self, one: socket.socket) -> bool:
        """Return whether a connection is open after the server has looked at all of them."""
        self.server.pull_trigger()
        self.page()
        one.setblocking(False)
        try:
            return bool(one.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return True
        except OSError:
            return False


def read(one: socket.socket) -> bytes:
    """Return the body of an answer."""
    answer = http.client.HTTPResponse(one)
    answer.begin()
    return answer.read()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Moved:
    """The clock of the connections."""
    made = Moved()
    monkeypatch.setattr(connections, "CLOCK", made)
    return made


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    made.thread.start()
    yield made
    made.end()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """A server that has few places, and gives one after the other."""
    monkeypatch.setattr(connections, "MOST", 8)
    monkeypatch.setattr(connections, "AT_ONCE", 1)
    return 8


def test_strangers_without_a_word_take_no_page_away(
    served: Served, scaled: Scale, tries: Tries
) -> None:
    silent, slow = scaled(1000, least=120), scaled(200, least=24)
    pages = scaled(400, least=10)
    for attempt in tries():
        with attempt, besieged(served.port, silent, slow) as siege:
            took = sorted(served.page() for _ in range(pages))
            assert siege.holds()
            assert took[int(0.95 * len(took))] <= PAGE_SECONDS


def test_more_strangers_than_there_are_places_take_no_page_away(
    scaled: Scale, tries: Tries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is where a process may have no more than 1,024 files open."""
    monkeypatch.setattr(connections, "MOST", 512 if scaled.whole else 64)
    silent, slow = scaled(1000, least=120), scaled(200, least=24)
    pages = scaled(100, least=5)
    for attempt in tries():
        served = Served()
        served.thread.start()
        try:
            with attempt, besieged(served.port, silent, slow) as siege:
                took = sorted(served.page() for _ in range(pages))
                assert siege.holds()
                assert took[int(0.95 * len(took))] <= PAGE_SECONDS
            assert siege.ended > 0
        finally:
            served.end()


def test_a_silent_connection_is_closed(clock: Moved, served: Served) -> None:
    one = served.come()
    clock.pass_by(IDLE_SECONDS)
    assert served.is_open(one)
    clock.pass_by(1)
    assert not served.is_open(one)


@pytest.mark.parametrize(
    ("begun", "more"),
    [(HEAD, b"x"), (LOGIN, b"x"), (b"", b"\r"), (b"GET", b" ")],
    ids=["head", "body", "blank lines", "method"],
)
def test_a_request_that_comes_byte_by_byte_is_ended(
    clock: Moved, served: Served, begun: bytes, more: bytes
) -> None:
    one = served.come(begun + more)
    until(lambda: served.connection().request is not None)
    for _ in range(int(REQUEST_SECONDS)):
        clock.pass_by(1)
        one.send(more)
    assert served.is_open(one)
    clock.pass_by(1)
    assert not served.is_open(one), "20 s are for a whole request, however many bytes come"


def test_blank_lines_put_no_end_off(clock: Moved, served: Served) -> None:
    one = served.come()
    for _ in range(int(IDLE_SECONDS)):
        clock.pass_by(1)
        one.send(b"\r\n\r\n")
    assert served.is_open(one)
    clock.pass_by(1)
    assert not served.is_open(one)


def test_a_connection_is_kept_from_one_request_to_the_next(clock: Moved, served: Served) -> None:
    one = served.come()
    for _ in range(4):
        one.sendall(PAGE)
        assert read(one)
        until(lambda: served.connection().waits())
        clock.pass_by(IDLE_SECONDS)
        assert served.is_open(one), "its time begins anew with each answer"
        one.settimeout(WAIT)


def test_who_is_answered_is_ended_by_nothing(few: int, clock: Moved, served: Served) -> None:
    one = served.come(b"GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n")
    until(lambda: not served.connection().waits())
    clock.pass_by(1000)
    for _ in range(2 * few):
        served.come()
        clock.pass_by(YOUNG_SECONDS)
    assert served.is_open(one)
    served.let_go.set()
    one.settimeout(WAIT)
    assert read(one) == b"held"


def test_those_that_waited_longest_make_room(few: int, clock: Moved, served: Served) -> None:
    silent = []
    for _ in range(few - 2):
        silent.append(served.come())
        clock.pass_by(YOUNG_SECONDS)
    assert [served.is_open(one) for one in silent] == [True] * len(silent)
    for _ in range(3):
        silent.append(served.come())
        clock.pass_by(YOUNG_SECONDS)
        served.page()
    there = [served.is_open(one) for one in silent]
    assert there == sorted(there), "the first ones made room"
    assert 0 < sum(there) < few


def test_a_young_connection_keeps_its_place(few: int, clock: Moved, served: Served) -> None:
    """Else who opens some thousand a second would have each other one before its request came."""
    silent = [served.come() for _ in range(few)]
    asked = socket.create_connection(("127.0.0.1", served.port), timeout=WAIT)
    served.made.append(asked)
    asked.sendall(PAGE)
    served.server.pull_trigger()
    threading.Event().wait(0.05)
    assert len(served.server.active_channels) == few
    clock.pass_by(YOUNG_SECONDS)
    assert read(asked)
    assert not served.is_open(silent[0])


def test_who_makes_room_is_told_once_a_minute(
    few: int, clock: Moved, served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "torra.dashboard")
    for _ in range(3 * few):
        served.come()
        clock.pass_by(YOUNG_SECONDS)
    assert caplog.text.count("were closed to make room") == 1
    clock.pass_by(TELL_SECONDS)
    # More than there are places: the silent ones of before may have been ended by now.
    for _ in range(3 * few):
        served.come()
        clock.pass_by(YOUNG_SECONDS)
    assert caplog.text.count("were closed to make room") == 2


def test_an_answer_that_nobody_takes_is_ended(clock: Moved, served: Served) -> None:
    served.come(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    until(lambda: served.connection().waits() and served.connection().total_outbufs_len)
    clock.pass_by(ANSWER_SECONDS)
    served.server.pull_trigger()
    served.page()
    assert served.server.active_channels
    clock.pass_by(1)
    served.server.pull_trigger()
    until(lambda: not served.server.active_channels)


def test_large_bodies_that_are_not_whole_are_few(
    clock: Moved, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_LARGE", 2)
    whole = b"x" * (LARGE_BODY + 1)
    head = b"POST /size HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    begun = []
    for _ in range(5):
        begun.append(served.come(head % (len(whole) + 1) + whole))
        until(lambda: served.connection(-1).has_large_body())
    assert [served.is_open(one) for one in begun] == [False] * 3 + [True] * 2
    begun[-1].settimeout(WAIT)
    begun[-1].sendall(b"x")
    assert read(begun[-1]) == str(len(whole) + 1).encode()


@pytest.mark.parametrize(
    ("soft", "hard", "asked", "most"),
    [
        (1024, 1 << 20, FILES, MOST),
        (1024, -1, FILES, MOST),
        (256, 2000, 2000, 1000),
        (1024, 1024, 1024, 512),
        (20_000, 20_000, None, MOST),
        (-1, -1, None, MOST),
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
    assert connections.most_connections() == most
    assert limits == ([] if asked is None else [(asked, hard)])


def test_a_system_without_poll_gets_as_many_as_select_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(select, "poll", raising=False)
    monkeypatch.setattr(connections, "resource", None)
    assert connections.most_connections() == MOST_OF_SELECT < 512


def test_a_system_that_allows_no_more_files_gets_fewer_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")

    resource = pytest.importorskip("resource", reason="files are counted on POSIX")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, -1))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert connections.most_connections() == 128
