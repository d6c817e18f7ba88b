"""Following a stream over HTTP: from any place, to its one end, without holding anything up."""

from __future__ import annotations

import gc
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from flask import Flask, Response
from flask.testing import FlaskClient
from werkzeug.test import EnvironBuilder

from instance_database import Database
from tests.doubles.entrance import OURS, Moved, csrf_of
from tests.doubles.loopback import served
from tests.doubles.visitors import ACCESS, bearer, open_app
from tests.worlds import stores
from tests.worlds.demo_view import ScriptedView
from torra.clock import System
from torra.config import DeskSettings
from torra.dashboard.app import TorraOverlay, create_app
from torra.dashboard.doors import access_file
from torra.dashboard.doors.access import IDLE_SECONDS, Access
from torra.dashboard.screens import streaming
from torra.dashboard.screens.streaming import Follower
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.stream_slots import LIFE_SECONDS, MOST, MOST_WAITING, SseLimit
from torra.desk.event_stream import EventStream
from torra.store import streams as event_store
from torra.store import streams as stream_table
from torra.store.envelopes import DESK_STREAM, StreamEvent

KEY = "BTCUSD|M15|2026-02-13T11:45:00Z"
START, WORD = (
    StreamEvent("tick_start", '{"a":1}'),
    StreamEvent("agent_start", '{"phase":"analysts"}'),
)
END = StreamEvent("decision", '{"verdict":"BUY"}', terminal=True)
WHOLE = [START, WORD, WORD, WORD, END]
WAIT = 10.0


class Moments:
    """A clock whose sleeps pass at once; each one may bring something about."""

    def __init__(self, *happenings: Callable[[], object]) -> None:
        self.moment = 0.0
        self.happenings = list(happenings)

    def monotonic(self) -> float:
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.moment += seconds
        if self.happenings:
            self.happenings.pop(0)()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = stores.open_database(tmp_path)
    yield database
    database.close()


@pytest.fixture
def backing(database: Database, tmp_path: Path) -> PageContext:
    return PageContext(tmp_path, database, DeskSettings(), None, environment={})


@pytest.fixture
def client(backing: PageContext) -> Any:
    return open_app(ScriptedView(), scope="read", backing=backing).test_client()


def write(database: Database, events: list[StreamEvent], stream_id: str = "t") -> None:
    kind = "desk" if stream_id == DESK_STREAM else "tick"
    if kind == "desk" or stream_table.stream(database, stream_id) is None:
        stream_table.open_stream(database, stream_id, kind, KEY, "we")
    stream_table.append_events(database, stream_id, "we", events)


def read(body: bytes) -> list[dict[str, Any]]:
    """Return the envelopes of a stream's bytes, each held to its frame."""
    found = []
    for block in body.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line and line[0] != ":")
        if "data" not in lines:
            continue
        told = json.loads(lines["data"])
        assert set(told) == {
            "schema_version", "stream_id", "stream_kind", "seq", "event", "terminal", "payload",
        }  # fmt: skip
        assert told["schema_version"] == "1.0"
        assert (lines["id"], lines["event"]) == (str(told["seq"]), told["event"])
        found.append(told)
    return found


def seqs(body: bytes) -> list[int]:
    return [told["seq"] for told in read(body)]


# --- one stream -----------------------------------------------------------------------------------


def test_a_stream_is_replayed_from_its_beginning_to_its_end(
    client: FlaskClient, database: Database, backing: PageContext
) -> None:
    write(database, WHOLE)
    answer = client.get("/api/v1/streams/t")
    assert answer.status_code == 200
    assert answer.mimetype == "text/event-stream"
    assert "no-store" in answer.headers["Cache-Control"]
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert "Content-Encoding" not in answer.headers and "Content-Length" not in answer.headers
    assert answer.data.startswith(b": open\n\nretry: 2000\n\nid: 1\nevent: tick_start\ndata: {")
    told = read(answer.data)
    assert [one["event"] for one in told] == [event.event for event in WHOLE]
    assert [one["terminal"] for one in told] == [False] * 4 + [True]
    assert {(one["stream_id"], one["stream_kind"]) for one in told} == {("t", "tick")}
    assert told[-1]["payload"] == {"verdict": "BUY"}
    assert backing.slots.taken == 0


def test_replay_from_any_event_gives_the_same_rest(client: FlaskClient, database: Database) -> None:
    write(database, WHOLE)
    every = read(client.get("/api/v1/streams/t").data)
    for seen in range(len(WHOLE)):
        rest = every[seen:]
        asked = client.get("/api/v1/streams/t", headers={"Last-Event-ID": str(seen)})
        assert read(asked.data) == rest
        assert read(client.get(f"/api/v1/streams/t?after={seen}").data) == rest
    both = client.get("/api/v1/streams/t?after=1", headers={"Last-Event-ID": "3"})
    assert seqs(both.data) == [4, 5], "what the browser says itself is newer"


@pytest.mark.parametrize("seen", ["5", "6", "9" * 40])
def test_who_has_seen_the_end_is_told_to_stop(
    client: FlaskClient, database: Database, backing: PageContext, seen: str
) -> None:
    write(database, WHOLE)
    answer = client.get("/api/v1/streams/t", headers={"Last-Event-ID": seen})
    assert (answer.status_code, answer.data) == (204, b"")
    assert backing.slots.taken == 0


@pytest.mark.parametrize("seen", ["", "-1", "x", "1.5", "٣", "0"])
def test_a_number_that_is_none_is_the_beginning(
    client: FlaskClient, database: Database, seen: str
) -> None:
    write(database, WHOLE)
    answer = client.get("/api/v1/streams/t", query_string={"after": seen})
    assert seqs(answer.data) == [1, 2, 3, 4, 5]


def test_an_unknown_stream_is_not_there(client: FlaskClient) -> None:
    answer = client.get("/api/v1/streams/nowhere")
    assert answer.status_code == 404 and answer.json["status"] == 404


def test_without_a_desk_there_is_nothing_to_follow() -> None:
    client = open_app(ScriptedView()).test_client()
    assert client.get("/api/v1/events").status_code == 204, "a browser does not come again"
    assert client.get("/api/v1/streams/t").status_code == 404
    assert client.get("/api/v1/streams").status_code == 404


def test_a_history_that_was_cut_is_said_to_be(client: FlaskClient, database: Database) -> None:
    write(database, WHOLE)
    database.change("DELETE FROM stream_events WHERE seq < 3")
    told = read(client.get("/api/v1/streams/t").data)
    assert [(one["event"], one["seq"], one["terminal"]) for one in told] == [("reset", 5, False)]
    assert told[0]["payload"] == {"seq": 5}
    assert seqs(client.get("/api/v1/streams/t?after=2").data) == [3, 4, 5]


def test_a_question_about_the_answer_alone_holds_nothing(
    client: FlaskClient, database: Database, backing: PageContext
) -> None:
    write(database, [START])
    answer = client.head("/api/v1/streams/t")
    assert answer.mimetype == "text/event-stream" and answer.data == b""
    assert backing.slots.taken == 0


@pytest.mark.parametrize("begun", [False, True])
def test_an_answer_that_is_dropped_gives_its_slot_back(
    client: FlaskClient, database: Database, backing: PageContext, begun: bool
) -> None:
    write(database, [START])
    environ = EnvironBuilder("/api/v1/streams/t", base_url="http://127.0.0.1/").get_environ()
    body = client.application.wsgi_app(environ, lambda *_: None)
    if begun:
        next(iter(body))
    assert backing.slots.taken == 1
    del body
    gc.collect()
    assert backing.slots.taken == 0


@pytest.mark.parametrize("part", ["Response", "Follower.frames"])
def test_an_answer_that_cannot_be_made_holds_nothing(
    client: FlaskClient,
    database: Database,
    backing: PageContext,
    monkeypatch: pytest.MonkeyPatch,
    part: str,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("not now")

    write(database, [START])
    monkeypatch.setattr(f"torra.dashboard.screens.streaming.{part}", fail)
    assert client.get("/api/v1/streams/t").status_code == 500
    assert backing.slots.taken == 0


@pytest.mark.journey
@pytest.mark.parametrize("way", ["fails", "replaces"])
def test_a_host_that_drops_an_answer_holds_nothing(
    backing: PageContext, database: Database, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether its own after_request breaks, or answers something else in its place."""

    def after(response: Response) -> Response:
        assert way == "replaces", "the host's own"
        return Response("something else")

    caplog.set_level("CRITICAL")
    write(database, [START])
    app = app_of(backing, ACCESS, hosted=True)
    app.after_request(after)
    answer = app.test_client().get("/torra/api/v1/streams/t", headers=bearer("read"))
    assert answer.status_code == (500 if way == "fails" else 200)
    gc.collect()
    assert backing.slots.taken == 0


def test_what_strangers_said_comes_without_hostile_characters(
    client: FlaskClient, database: Database
) -> None:
    hostile = {
        "summary": "a\u202eb\u0007\u2066c <img onerror=x>",
        "evidence": [{"\u202eid": "\x1b"}],
    }
    write(database, [StreamEvent("agent_complete", json.dumps(hostile)), END])
    (told, _) = read(client.get("/api/v1/streams/t").data)
    assert told["payload"] == {"summary": "abc <img onerror=x>", "evidence": [{"id": ""}]}


def test_the_streams_of_a_tick_are_listed_newest_first(
    client: FlaskClient, database: Database
) -> None:
    write(database, [START, END], "first")
    database.change("UPDATE streams SET at = '2026-02-13T11:00:00.000Z'")
    write(database, [START], "second")
    write(database, [WORD], DESK_STREAM)
    listed = client.get("/api/v1/streams", query_string={"torra_key": KEY}).json
    assert [(one["stream_id"], one["ended"], one["seq"]) for one in listed] == [
        ("second", False, 1), ("first", True, 2),
    ]  # fmt: skip
    assert listed[0]["torra_key"] == KEY
    assert client.get("/api/v1/streams").json == listed
    assert client.get("/api/v1/streams?torra_key=other").json == []


# --- while it runs --------------------------------------------------------------------------------


def followed(database: Database, clock: Moments, **how: Any) -> bytes:
    released: list[bool] = []
    follower = Follower(database, "t", "tick", **{"after": 0, "clock": clock, **how})
    body = b"".join(follower.frames(lambda: released.append(True)))
    assert released == [True]
    return body


def test_what_is_written_meanwhile_is_sent_in_order(database: Database) -> None:
    write(database, [START])
    clock = Moments(
        lambda: None,
        lambda: write(database, [WORD, WORD]),
        lambda: write(database, [WORD]),
        lambda: write(database, [END]),
    )
    assert seqs(followed(database, clock)) == [1, 2, 3, 4, 5]
    assert clock.moment == 4 * streaming.POLL_SECONDS


def test_a_silent_stream_beats_and_ends_with_its_life(database: Database) -> None:
    write(database, [START])
    clock = Moments()
    body = followed(database, clock)
    assert body.count(b": hb\n\n") == LIFE_SECONDS // streaming.BEAT_SECONDS - 1
    assert clock.moment == LIFE_SECONDS
    assert seqs(body) == [1]


@pytest.mark.parametrize(
    ("how", "ends_at"),
    [
        ({"left": lambda clock: clock.moment >= 2.0}, 2.0),
        ({"still_in": lambda clock: clock.moment < 3.0}, 3.0),
    ],
    ids=["gone", "out"],
)
def test_a_reader_that_is_gone_or_let_in_no_more_is_noticed(
    database: Database, how: dict[str, Callable[[Moments], bool]], ends_at: float
) -> None:
    write(database, [START])
    clock = Moments()
    body = followed(database, clock, **{name: partial(ask, clock) for name, ask in how.items()})
    assert (clock.moment, seqs(body)) == (ends_at, [1])


def test_a_stream_that_is_removed_meanwhile_ends(database: Database) -> None:
    write(database, [START])
    clock = Moments(lambda: database.change("DELETE FROM streams"))
    followed(database, clock)
    assert clock.moment == streaming.BEAT_SECONDS


def test_a_database_that_fails_ends_the_stream(database: Database) -> None:
    write(database, [START])
    assert seqs(followed(database, Moments(database.close))) == [1]


def test_more_than_is_read_at_once_comes_whole(database: Database) -> None:
    write(database, [START, *[WORD] * (3 * streaming.AT_ONCE), END])
    assert seqs(followed(database, Moments())) == list(range(1, 3 * streaming.AT_ONCE + 3))


def test_a_reader_waits_in_no_transaction(database: Database) -> None:
    write(database, [START])
    seen = []
    clock = Moments(
        lambda: seen.append(database.connection().conn.in_transaction),
        lambda: write(database, [END]),
    )
    followed(database, clock)
    assert seen == [False]


def test_a_reader_that_falls_behind_is_told(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_store, "DESK_EVENTS", 3)
    write(database, [WORD] * 2, DESK_STREAM)
    clock = Moments(
        lambda: write(database, [WORD] * 9, DESK_STREAM),
        lambda: write(database, [WORD] * 1, DESK_STREAM),
    )
    follower = Follower(
        database, DESK_STREAM, "desk", 0, clock=cast(Any, clock), left=lambda: clock.moment > 1.0
    )
    told = read(b"".join(follower.frames(lambda: None)))
    assert [(one["event"], one["seq"]) for one in told] == [
        ("agent_start", 1), ("agent_start", 2), ("reset", 11), ("agent_start", 12),
    ]  # fmt: skip


# --- who is let in no more ------------------------------------------------------------------------


def log_out(client: Any, **_: Any) -> None:
    answer = client.post("/logout", data={"csrf": csrf_of(client)}, headers=OURS)
    assert answer.status_code == 303


def new_tokens(home: Path, **_: Any) -> None:
    access_file.replace(home)


def idle(clock: Moved, **_: Any) -> None:
    clock.pass_by(IDLE_SECONDS)


def log_in_again(client: Any, access: Access, **_: Any) -> None:
    client.post("/login", data={"token": access.tokens["read"]}, headers=OURS)


def lose_the_file(home: Path, **_: Any) -> None:
    (home / "access.json").unlink()


def nothing(**_: Any) -> None: ...


@pytest.mark.parametrize("hosted", [False, True], ids=["desk", "host"])
@pytest.mark.parametrize(
    ("happens", "by", "ends"),
    [
        (nothing, "session", False),
        (nothing, "bearer", False),
        (log_out, "session", True),
        (log_out, "bearer", False),
        (new_tokens, "session", True),
        (new_tokens, "bearer", True),
        (idle, "session", True),
        (idle, "bearer", False),
        (log_in_again, "session", True),
        (lose_the_file, "session", True),
        (lose_the_file, "bearer", True),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_stream_tells_nothing_more_to_who_is_let_in_no_more(
    backing: PageContext,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[..., None],
    by: str,
    ends: bool,
    hosted: bool,
) -> None:
    """The stream reads on after its request is over, as a server lets it."""
    monkeypatch.setattr(streaming, "POLL_SECONDS", 0.0)
    access, _ = Access.of_home(backing.home)
    access.clock = clock = Moved()
    app = app_of(backing, access, hosted=hosted)
    person = Below(app.test_client(), "/torra" if hosted else "")
    person.post("/login", data={"token": access.tokens["read"]}, headers=OURS)
    write(database, [START])
    token = {"Authorization": f"Bearer {access.tokens['read']}"} if by == "bearer" else {}
    answer = person.get("/api/v1/streams/t", headers=token, buffered=False)
    body = iter(answer.response)
    assert [b"tick_start" in next(body) for _ in range(3)] == [False, False, True]
    happens(client=person, home=backing.home, clock=clock, access=access)
    write(database, [END])
    rest = b"".join(body)
    assert rest.count(b"event: ") == (0 if ends else 1)
    assert backing.slots.taken == 0
    answer.close()


@dataclass
class Below:
    """A browser of pages that lie below a root."""

    client: Any
    root: str

    def get(self, path: str, **how: Any) -> Any:
        return self.client.get(self.root + path, **how)

    def post(self, path: str, **how: Any) -> Any:
        return self.client.post(self.root + path, **how)


def app_of(backing: PageContext, access: Access, *, hosted: bool) -> Flask:
    """Return the pages as an app of their own, or in a host that runs no desk."""
    if not hosted:
        return create_app(ScriptedView(), access=access, backing=backing)
    host = Flask("host")
    TorraOverlay(host, desk_view=ScriptedView(), access=access, backing=backing)
    return host


def test_a_quiet_stream_notices_within_a_second(database: Database) -> None:
    write(database, [START])
    clock = Moments()
    events = EventStream(database, owner="we", gather=0.0)  # not another desk's stream
    events.start()
    waits: list[float] = []
    events.wait = lambda written, seconds: waits.append(seconds)  # type: ignore[method-assign]
    followed(database, clock, events=events, still_in=lambda: len(waits) < 2)
    events.close()
    assert waits == [streaming.LOOK_SECONDS] * 2
    assert max(streaming.LOOK_SECONDS, streaming.POLL_SECONDS) <= 1.0


# --- the stream of a browser ----------------------------------------------------------------------


def shared(
    client: Any, database: Database, address: str = "/api/v1/events", **how: Any
) -> list[Any]:
    """Return what the shared stream says before it waits."""
    with closing(client.get(address, buffered=False, **how)) as answer:
        assert answer.status_code == 200
        found: list[dict[str, Any]] = []
        for chunk in answer.response:
            found.extend(read(chunk))
            if (
                found
                and found[-1]["seq"]
                >= (stream_table.stream(database, DESK_STREAM) or {"seq": 0})["seq"]
            ):
                return found
        return found


def test_the_shared_stream_begins_now_and_goes_on_after_what_was_seen(
    client: FlaskClient, database: Database
) -> None:
    assert [one["event"] for one in shared(client, database)] == ["reset"]
    write(database, [WORD] * 5, DESK_STREAM)
    (first,) = shared(client, database)
    assert (first["event"], first["seq"], first["stream_id"]) == ("reset", 5, DESK_STREAM)
    again = shared(client, database, headers={"Last-Event-ID": "3"})
    assert [(one["event"], one["seq"]) for one in again] == [("agent_start", 4), ("agent_start", 5)]
    assert [one["seq"] for one in shared(client, database, "/api/v1/events?after=4")] == [5]
    assert [one["event"] for one in shared(client, database, "/api/v1/events?after=6")] == ["reset"]
    assert [one["seq"] for one in shared(client, database, "/api/v1/streams/desk?after=4")] == [5]


def test_six_streams_two_to_a_session(
    backing: PageContext, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SseLimit.take, "__defaults__", (0.0,))  # without patience
    write(database, [START])
    app = open_app(ScriptedView(), backing=backing)
    held = []
    sessions = [app.test_client() for _ in range(4)]
    for session in sessions:
        token = {"token": ACCESS.tokens["read"]}
        assert session.post("/login", data=token).status_code in (200, 204, 303)
    for session in sessions[:3]:
        for _ in range(2):
            held.append(session.get("/api/v1/streams/t", buffered=False))
            assert held[-1].status_code == 200
            next(iter(held[-1].response))
    assert backing.slots.taken == MOST
    refused = sessions[3].get("/api/v1/events")
    assert refused.status_code == 503 and int(refused.headers["Retry-After"]) > 0
    assert sessions[3].get("/help").status_code == 200
    held.pop().close()
    last = sessions[3].get("/api/v1/events", buffered=False)
    assert last.status_code == 200
    for answer in (*held, last):
        answer.close()
    assert backing.slots.taken == 0


def test_the_oldest_stream_of_a_session_gives_way_to_fast_changes_of_page(
    backing: PageContext, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SseLimit.take, "__defaults__", (0.0,))  # without patience
    write(database, [START])
    session = open_app(ScriptedView(), backing=backing).test_client()
    session.post("/login", data={"token": ACCESS.tokens["read"]})
    opened = []
    for number in range(3 * MOST):
        opened.append(session.get("/api/v1/streams/t", buffered=False))
        assert opened[-1].status_code == 200, number
        next(iter(opened[-1].response))
        if number >= 2:
            for _ in opened[number - 2].response:
                pass  # its reader is gone from sight, and it ends by itself
        assert backing.slots.taken <= 2
    for answer in opened:
        answer.close()
    assert backing.slots.taken == 0 and not backing.slots._leaving


def test_one_session_cannot_take_the_slots_of_the_others() -> None:
    slots = SseLimit()

    def take(who: str) -> int | None:
        return slots.take(who, lambda: 0.0, 0.0)

    taken = [take("greedy") for _ in range(2 * MOST)]
    assert taken == [1, 2, 3, *[None] * (2 * MOST - 3)], "the third while the first still leaves"
    assert [slots.leaving(number) for number in (1, 2, 3)] == [True, True, False]
    assert (take("a"), take("b"), take("b")) == (4, 5, 6)
    slots.release(1)
    assert take("greedy") == 7, "its own leaver made room"


def test_three_readers_of_a_session_do_not_end_each_other_for_ever() -> None:
    slots = SseLimit()

    def take(again: bool = False) -> int | None:
        return slots.take("a", lambda: 0.0, 0.0, again=again)

    assert [take(), take(), take()] == [1, 2, 3]
    slots.release(1)
    assert take(again=True) is None, "it gave way, and ends no other when it comes again"
    assert not slots.leaving(2) and not slots.leaving(3)
    slots.release(3)
    assert take(again=True) == 4


@pytest.mark.parametrize("how", ["Last-Event-ID", "after"])
def test_a_reader_that_comes_again_ends_no_other_of_its_session(
    client: FlaskClient, database: Database, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(SseLimit.take, "__defaults__", (0.0,))  # without patience
    write(database, [START])
    held = [client.get("/api/v1/streams/t", buffered=False) for _ in range(2)]
    where: Any = {"headers": {how: "0"}} if how != "after" else {"query_string": {how: "0"}}
    assert client.get("/api/v1/streams/t", **where).status_code == 503
    held.append(client.get("/api/v1/streams/t", buffered=False))
    assert held[-1].status_code == 200, "a page that begins finds room"
    for answer in held:
        answer.close()


def test_a_slot_that_was_lost_comes_back_by_itself() -> None:
    slots = SseLimit()

    def take(now: float) -> int | None:
        return slots.take(str(now), lambda: now, 0.0)

    for number in range(MOST):
        assert take(float(number)) is not None
    assert take(LIFE_SECONDS) is None
    assert take(2 * LIFE_SECONDS) is not None
    assert slots.taken == 1


def test_who_finds_no_slot_gets_the_one_that_a_page_gives_back() -> None:
    slots, monotonic = SseLimit(), System().monotonic
    held = [slots.take(str(number), monotonic) for number in range(MOST)]
    found: list[int | None] = []
    waiting = threading.Thread(target=lambda: found.append(slots.take("a", monotonic, 30.0)))
    waiting.start()
    while not slots._waiting:
        pass
    slots.release(held[0] or 0)
    waiting.join(30)
    assert found == [MOST + 1]
    assert slots.take("a", monotonic, 0.01) is None, "nobody gave one back"


def test_only_a_few_wait_for_a_slot_at_once() -> None:
    slots, monotonic = SseLimit(), System().monotonic
    slots._waiting = MOST_WAITING
    for _ in range(MOST):
        slots.take("a", monotonic)
    assert slots.take("a", monotonic, 600.0) is None


# --- through the server ---------------------------------------------------------------------------


@contextmanager
def asked(port: int, path: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    connection.request("GET", path, headers={**bearer("read"), **headers})
    with closing(connection), connection.getresponse() as answer:
        yield answer


def line_with(answer: http.client.HTTPResponse, word: bytes) -> bytes:
    for line in answer:
        if word in line:
            return line
    pytest.fail(f"the stream ended without {word!r}")


def test_a_reader_is_woken_by_what_is_written(backing: PageContext, database: Database) -> None:
    events = EventStream(database, gather=0.0)
    backing = PageContext(
        backing.home, database, backing.settings, backing.desk, environment={}, events=events
    )
    start = {"torra_key": KEY, "instance": "BTCUSD", "timeframe": "M15"}
    with (
        served(open_app(ScriptedView(), backing=backing)) as port,
        asked(port, "/api/v1/events") as shared,
    ):
        assert shared.getheader("Content-Type") == "text/event-stream; charset=utf-8"
        line_with(shared, b"event: reset")
        events.on_event("tick_start", start)
        told = json.loads(line_with(shared, b'changed",').removeprefix(b"data: "))
        assert told["payload"]["what"] == "running"
        with asked(port, f"/api/v1/streams/{told['payload']['stream_id']}") as tick:
            line_with(tick, b"event: tick_start")
            events.on_event("tick", {"torra_key": KEY, "verdict": "BUY"})
            line_with(tick, b"event: decision")
            assert tick.read().count(b"event:") == 0, "nothing follows the end"
        line_with(shared, b'"what":"tick"')
        events.close()
        assert b"event:" not in shared.read(), "the stream ends with the desk"
    assert backing.slots.taken == 0
