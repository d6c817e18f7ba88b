"""A storm: ticks whose agents fail, desks that die, readers that leave, lag and come again.

Whatever happens, each stream has its numbers without a gap and one end, every reader saw what is
stored, and nothing is left behind: no thread, no slot. Ticks, server and readers are real.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

import torra_trader
from agents.contracts import Completion, Request
from instance_database import Database
from tests.conftest import Scale
from tests.doubles.loopback import served
from tests.doubles.visitors import ACCESS, bearer, open_app
from tests.worlds import desks
from tests.worlds.demo_view import ScriptedView
from torra.config import DeskSettings, Profile
from torra.dashboard.screens import streaming
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.stream_slots import MOST
from torra.desk.event_stream import EventStream
from torra.desk.schedule import Desk
from torra.errors import DataUnavailable, StoreUnavailable
from torra.providers.registry import open_provider
from torra.store import streams as stream_table
from torra.store.envelopes import DESK_STREAM
from torra.tick import decision

WAIT = 20.0
READERS = 6


class Erring:
    """The rules provider, whose calls now and then fail, or give garbage."""

    name = "erring"

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.rules = open_provider(Profile().agents)

    def submit(self, request: Request) -> Future[Completion]:
        drawn = self.chance.random()
        if drawn > 0.3:
            return self.rules.submit(request)
        future: Future[Completion] = Future()
        if drawn < 0.15:
            future.set_exception(RuntimeError("no"))
        else:
            future.set_result(Completion("}{ not json", "erring"))
        return future

    def close(self) -> None: ...


class Mortal:
    """The event stream of a desk that may be killed in the middle of a tick.

    What is asked of it is asked of the living one; `revive` is the next desk, that takes over.
    """

    def __init__(self, database: Database, chance: random.Random) -> None:
        self.database, self.chance = database, chance
        self.killed = 0
        self.every: list[EventStream] = []
        self.revive()

    def revive(self) -> None:
        self.now = EventStream(self.database, gather=self.chance.choice((0.0, 0.005)))
        self.now.start()
        self.every.append(self.now)
        self.left = self.chance.choice((self.chance.randrange(1, 40), 60, 80))

    def on_event(self, kind: str, payload: Any) -> None:
        self.left -= 1
        if self.left == 0:
            self.killed += 1
            self.now.close(within=0.0)
        self.now.on_event(kind, payload)

    # what a reader in the desk's own process uses

    closed, active = False, True

    @property
    def written(self) -> int:
        return self.now.written

    def wait(self, written: int, seconds: float) -> None:
        self.now.wait(written, min(seconds, 0.05))


class Reader(threading.Thread):
    """Follows streams over HTTP in its own manner, and notes every event it was sent."""

    def __init__(self, port: int, database: Database, scope: str, seed: int) -> None:
        super().__init__(name=f"reader {seed}", daemon=True)
        self.port, self.database, self.scope = port, database, scope
        self.chance = random.Random(seed)
        self.over, self.faults = threading.Event(), list[Any]()
        self.seen: dict[str, dict[int, str]] = {}
        self.answers: dict[int, int] = {}

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self.read_one()
            except (OSError, http.client.HTTPException) as error:
                self.faults.append(f"{type(error).__name__}: {error}")
            except AssertionError as error:
                self.faults.append(str(error))

    def read_one(self) -> None:
        known = stream_table.streams(self.database, limit=3)
        if not known or self.chance.random() < 0.1:
            self.follow(DESK_STREAM, "/api/v1/events")
            return
        stream_id = self.chance.choice(known)["stream_id"]
        self.follow(stream_id, f"/api/v1/streams/{stream_id}")

    def follow(self, stream_id: str, path: str) -> None:
        seen = self.seen.setdefault(stream_id, {})
        after = self.chance.choice((0, max(seen, default=0), self.chance.randrange(len(seen) + 1)))
        where = {**bearer(self.scope), "Last-Event-ID": str(after)}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        with closing(connection):
            connection.request("GET", path, headers=where)
            with connection.getresponse() as answer:
                self.answers[answer.status] = self.answers.get(answer.status, 0) + 1
                if answer.status == 200:
                    self.take(answer, stream_id, after, self.chance.choice((1, 3, 8, 1000)))
                elif answer.status == 204:
                    row = stream_table.stream(self.database, stream_id)
                    assert row and row["ended"] and after >= row["seq"], f"204 after {after}"
                else:
                    assert answer.status == 503, f"{answer.status} for {path}"
                    self.over.wait(0.01)

    def take(self, answer: Any, stream_id: str, after: int, most: int) -> None:
        """Read at most so many events, sometimes slowly, and hang up."""
        slow = self.chance.random() < 0.3
        ended = False
        for line in answer:
            if not line.startswith(b"data: "):
                if self.over.is_set() and not ended:
                    return
                continue
            told = json.loads(line.removeprefix(b"data: "))
            assert not ended, "something follows the end"
            if told["event"] == "reset":
                after = told["seq"]
                continue
            assert told["seq"] == after + 1, f"{stream_id}: {told['seq']} after {after}"
            after = told["seq"]
            text = json.dumps([told["event"], told["payload"]])
            assert self.seen[stream_id].setdefault(after, text) == text, "a replay differs"
            ended, most = told["terminal"], most - 1
            if most <= 0 and not ended:
                return
            if slow:
                self.over.wait(0.003)


@pytest.fixture
def stormy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Any, Mortal, random.Random]]:
    """Yield a desk whose agents and ticks fail, and whose event stream dies now and then."""
    chance = random.Random(6)
    desk = desks.open_desk(tmp_path, (desks.BTC,), provider=Erring(chance))
    desks.open_for_work(desk)
    decide = decision.decide

    def erring(*given: Any, **more: Any) -> Any:
        drawn = chance.random()
        if drawn < 0.12:
            raise (RuntimeError("x"), DataUnavailable("nan", "x"), StoreUnavailable("x"))[
                int(drawn / 0.04)
            ]
        return decide(*given, **more)

    monkeypatch.setattr(torra_trader, "decide", erring)
    monkeypatch.setattr(torra_trader.log, "exception", lambda *_: None)
    monkeypatch.setattr(streaming, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(streaming, "LOOK_SECONDS", 0.02)
    events = Mortal(desk.database, chance)
    desk.events = events  # type: ignore[assignment]
    yield desk, events, chance
    for one in events.every:
        one.close()
    desk.close()


def blow(desk: Any, events: Mortal, wanted: int) -> None:
    """Run ticks until there are so many streams; a dead desk is followed by the next."""
    while True:
        with suppress(StoreUnavailable):
            desks.step(desk)
        if events.now.closed:
            events.revive()
        if len(stream_table.streams(desk.database, limit=wanted)) >= wanted:
            return


def until(met: Callable[[], bool]) -> bool:
    pause = threading.Event()
    for _ in range(int(WAIT / 0.01)):
        if met():
            return True
        pause.wait(0.01)
    return met()


@pytest.mark.journey
@pytest.mark.timeout(1500)
def test_a_thousand_streams_in_a_storm(
    stormy: tuple[Desk, Mortal, Random],
    scaled: Scale,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    desk, events, chance = stormy
    database, before = desk.database, set(threading.enumerate())
    backing = PageContext(
        tmp_path, database, DeskSettings(), desk, environment={}, events=cast(EventStream, events),
    )  # fmt: skip
    scopes = list(ACCESS.tokens)
    wanted = scaled(1000, least=8)
    with served(open_app(ScriptedView(), backing=backing)) as port:
        readers = [Reader(port, database, scopes[number % 3], number) for number in range(READERS)]
        for reader in readers:
            reader.start()
        blow(desk, events, wanted)
        events.now.close()
        events.revive()
        assert until(
            lambda: all(row["ended"] for row in stream_table.streams(database, limit=2 * wanted))
        )
        for reader in readers:
            reader.over.set()
        for reader in readers:
            reader.join(WAIT)
        assert until(lambda: backing.slots.taken == 0), "a slot is not given back"
    assert [fault for reader in readers for fault in reader.faults] == []
    for one in events.every:
        one.close()
    rows = stream_table.streams(database, limit=2 * wanted)
    assert len(rows) >= wanted
    stored = {row["stream_id"]: check_stream(database, row["stream_id"]) for row in rows}
    for reader in readers:
        for stream_id, seen in reader.seen.items():
            if stream_id != DESK_STREAM:
                assert seen.items() <= stored[stream_id].items(), stream_id
    client = open_app(ScriptedView(), backing=backing).test_client()
    for stream_id in chance.sample(sorted(stored), min(len(stored), 40)):
        check_replay(client, stream_id, stored[stream_id], chance)
    assert until(lambda: not left_behind(before)), left_behind(before)
    record_property("seen", told(readers, events, stored))


def left_behind(before: set[threading.Thread]) -> list[str]:
    return [thread.name for thread in set(threading.enumerate()) - before]


def check_stream(database: Database, stream_id: str) -> dict[int, str]:
    rows = stream_table.events_after(database, stream_id, 0, 10_000)
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert [row.terminal for row in rows] == [0] * (len(rows) - 1) + [1]
    assert rows[-1].event in ("decision", "error")
    payloads = [json.loads(row.payload) for row in rows]
    for row, payload in zip(rows, payloads, strict=True):
        if row.event.startswith("agent_") or row.event == "debate_round":
            assert payload["round"] == 1 and payload["phase"] in (
                "analysts",
                "debate",
                "gate",
                "fallback",
            )
    return {
        row.seq: json.dumps([row.event, payload])
        for row, payload in zip(rows, payloads, strict=True)
    }


def check_replay(
    client: Any, stream_id: str, stored: dict[int, str], chance: random.Random
) -> None:
    seen = chance.randrange(len(stored))
    body = client.get(f"/api/v1/streams/{stream_id}", headers={"Last-Event-ID": str(seen)}).data
    lines = [line for line in body.split(b"\n") if line.startswith(b"data: ")]
    told = [json.loads(line.removeprefix(b"data: ")) for line in lines]
    assert {one["seq"]: json.dumps([one["event"], one["payload"]]) for one in told} == {
        seq: text for seq, text in stored.items() if seq > seen
    }


def told(readers: list[Reader], events: Mortal, stored: dict[str, dict[int, str]]) -> str:
    """Return how the streams ended and what the readers were answered."""
    ends = [json.loads(stream[max(stream)]) for stream in stored.values()]
    codes: dict[str, int] = {}
    for event, payload in ends:
        name = event if event == "decision" else payload["code"]
        codes[name] = codes.get(name, 0) + 1
    answers: dict[int, int] = {}
    for reader in readers:
        for status, number in reader.answers.items():
            answers[status] = answers.get(status, 0) + number
    ended = ", ".join(f"{number:,} {name}" for name, number in sorted(codes.items()))
    answered = ", ".join(f"{number:,} x {status}" for status, number in sorted(answers.items()))
    events_told = sum(map(len, stored.values()))
    return (
        f"{len(stored):,} streams, {events_told:,} events, {events.killed} kills: {ended}; "
        f"answers {answered}"
    )


def test_with_six_streams_held_a_page_still_answers(tmp_path: Path) -> None:
    desk = desks.open_desk(tmp_path, (desks.BTC,))
    backing = PageContext(tmp_path, desk.database, DeskSettings(), desk, environment={})
    held = []
    with served(open_app(ScriptedView(), backing=backing)) as port:
        for number in range(MOST):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
            connection.request(
                "GET", "/api/v1/events", headers=bearer(list(ACCESS.tokens)[number % 3])
            )
            held.append((connection, connection.getresponse()))
            assert held[-1][1].status == 200
            assert held[-1][1].readline() == b": open\n"
        assert backing.slots.taken == MOST
        for _ in range(3):
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)) as page:
                page.request("GET", "/help", headers=bearer("read"))
                answer = page.getresponse()
                assert answer.status == 200 and b"</html>" in answer.read()
        desk.close()  # a database that is closed ends those who read it
        for connection, answer in held:
            answer.read()
            connection.close()
        assert until(lambda: backing.slots.taken == 0)
