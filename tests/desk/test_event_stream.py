"""What a tick tells becomes a stream with one end, whatever becomes of the tick or of the desk."""

from __future__ import annotations

import json
import logging
import math
import re
import threading
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import torra_trader
from instance_database import Database
from tests.doubles import scripted
from tests.worlds import desks, stores
from torra.config import ROOT
from torra.desk import event_stream, wiring
from torra.desk.event_stream import EventStream
from torra.desk.schedule import Desk
from torra.errors import DataUnavailable, StoreUnavailable
from torra.store import envelopes
from torra.store import streams as stream_table
from torra.store.connection import Store
from torra.store.envelopes import DESK_STREAM

KEY = "BTCUSD|M15|2026-02-13T11:45:00Z"
START = {
    "torra_key": KEY, "instance": "BTCUSD", "timeframe": "M15",
    "bar_time": "2026-02-13T11:45:00Z", "close_time": "2026-02-13T12:00:00Z",
}  # fmt: skip
ABOUT = {"torra_key": KEY, "agent": "technical", "stage": "analysts", "round": 1}
RECORD = {"torra_key": KEY, "verdict": "HOLD", "signals": ()}
OPINIONS = ("technical", "bull_researcher", "bear_researcher")
PATIENT = 10.0


Open = Callable[..., Any]


@pytest.fixture
def opened(database: Database) -> Iterator[Open]:
    made: list[EventStream] = []

    def make(**how: Any) -> EventStream:
        made.append(EventStream(database, **{"gather": 0.0, **how}))
        return made[-1]

    yield make
    for one in made:
        one.close()


def settled(events: EventStream) -> None:
    """Wait until everything that was heard is written."""
    while events._queue:
        events.wait(events.written, 0.05)


def told(database: Database, key: str = KEY) -> list[list[dict[str, Any]]]:
    """Return the streams of a tick, oldest first, each held to what every stream promises."""
    return [whole(database, row) for row in reversed(stream_table.streams(database, key))]


def whole(database: Database, row: dict[str, Any]) -> list[dict[str, Any]]:
    rows = stream_table.events_after(database, row["stream_id"], 0, 10_000)
    assert [one.seq for one in rows] == list(range(1, len(rows) + 1))
    ends = [one.seq for one in rows if one.terminal]
    assert ends == ([len(rows)] if row["ended"] else [])
    return [{"event": one.event, **json.loads(one.payload)} for one in rows]


def kinds(stream: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in stream]


def changes(database: Database) -> list[dict[str, Any]]:
    return [
        json.loads(row.payload)
        for row in stream_table.events_after(database, DESK_STREAM, 0, 10_000)
    ]


# --- a tick ---------------------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = desks.open_desk(tmp_path / "desk", (desks.BTC,))
    desk.events = EventStream(desk.database, gather=0.0)
    desks.open_for_work(desk)
    yield desk
    desk.events.close()
    desk.close()


def ticked(desk: Desk) -> list[dict[str, Any]]:
    assert desk.events is not None
    desk.wake("BTCUSD")
    settled(desk.events)
    keys = [row["torra_key"] for row in stream_table.streams(desk.database, limit=2)]
    # H1 closes with it: which of the two began last is chance.
    (stream,) = told(desk.database, next(key for key in keys if "|M15|" in key))
    return stream


def test_a_debate_can_be_followed_from_its_start_to_its_decision(desk: Desk) -> None:
    stream = ticked(desk)
    record = desks.newest(desk)
    start, end = stream[0], stream[-1]
    assert start == {
        "event": "tick_start",
        "torra_key": f"BTCUSD|M15|{record['bar_time']}",
        "instance": "BTCUSD",
        "timeframe": "M15",
        "bar_time": record["bar_time"],
        "close_time": record["as_of"],
    }
    assert (end["event"], end["phase"]) == ("decision", "decision")
    for name in (
        "verdict",
        "l1_verdict",
        "consensus",
        "action",
        "reason",
        "source_type",
        "sentence",
    ):
        assert end[name] == record[name], name
    assert [one["sid"] for one in end["signals"]] == [one["sid"] for one in record["signals"]]
    assert kinds(stream).count("debate_round") == 1 and kinds(stream)[-2] == "synthesis"
    agents = [event for event in stream if event["event"].startswith("agent_")]
    assert [(event["event"], event["agent"], event["phase"]) for event in agents] == [
        ("agent_start", "technical", "analysts"),
        ("agent_complete", "technical", "analysts"),
        ("agent_start", "bull_researcher", "debate"),
        ("agent_start", "bear_researcher", "debate"),
        *sorted(
            [("agent_complete", f"{side}_researcher", "debate") for side in ("bull", "bear")],
            key=[(event["event"], event["agent"], event["phase"]) for event in agents].index,
        ),
        ("agent_start", "risk_gate", "gate"),
        ("agent_complete", "risk_gate", "gate"),
    ]
    assert {event["round"] for event in agents} == {1}
    reports = {report["agent_id"]: report for report in record["deliberation"]["reports"]}
    for event in agents:
        if event["event"] == "agent_complete":
            report = reports[event["agent"]]
            assert event["summary"] == (report["claim"] or report["reasoning"])[:600] != ""
            assert event["adjustments"] == report["adjustments"]
            assert len(event["evidence"]) == len(report["evidence"])
            assert event["ms"] >= 0 and not event["abstained"]
    (spoke,) = [event for event in stream if event["event"] == "debate_round"]
    assert {one["agent"] for one in spoke["statements"]} == {"bull_researcher", "bear_researcher"}
    assert all(one["summary"] == reports[one["agent"]]["claim"] for one in spoke["statements"])


def test_the_pages_are_told_that_a_tick_runs_and_has_ended(desk: Desk) -> None:
    ticked(desk)
    rows = stream_table.streams(
        desk.database, limit=9
    )  # of one close: two may begin in one millisecond
    (stream_id,) = [row["stream_id"] for row in rows if "|M15|" in row["torra_key"]]
    about = [one for one in changes(desk.database) if one.get("stream_id") == stream_id]
    assert [one["what"] for one in about] == ["running", "tick"]
    assert {(one["instance"], one["timeframe"]) for one in about} == {("BTCUSD", "M15")}


def test_warm_up_tells_nothing(desk: Desk) -> None:
    done = list(desk.warm_up(desks.START, bars=3))
    assert len(done) >= 3 and desk.events is not None
    settled(desk.events)
    assert stream_table.streams(desk.database) == [] and changes(desk.database) == []
    assert desk.database.latest_tick("BTCUSD", "M15") is not None


@pytest.mark.parametrize(
    ("error", "code", "recoverable"),
    [
        (DataUnavailable("nan", "a hole"), "skipped:nan", False),
        (StoreUnavailable("/home/somebody/torra.db is locked"), "store", True),
        (RuntimeError("key sk-123"), "failed", True),
        (KeyboardInterrupt(), "failed", True),
    ],
    ids=["skipped", "store", "raised", "interrupted"],
)
def test_a_tick_that_comes_to_nothing_ends_in_an_error(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: str, recoverable: bool
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(torra_trader, "decide", fail)
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            desk.wake("BTCUSD")
    else:
        desk.wake("BTCUSD")
    assert desk.events is not None
    settled(desk.events)
    (stream,) = told(desk.database, stream_table.streams(desk.database, limit=1)[0]["torra_key"])
    assert kinds(stream)[0] == "tick_start" and "synthesis" in kinds(stream)
    end = stream[-1]
    assert (end["event"], end["code"], end["recoverable"]) == ("error", code, recoverable)
    assert "sk-123" not in json.dumps(stream) and "somebody" not in json.dumps(stream)
    assert ("a hole" in end["message"]) is (code == "skipped:nan")


def test_a_listener_that_fails_does_not_fail_the_tick(
    desk: Desk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(kind: str, payload: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(desk.events, "on_event", fail)
    with caplog.at_level(logging.ERROR):
        (outcome,) = desk.wake("BTCUSD")[-1:]
    assert outcome.state == "done"
    assert "a listener failed at tick_start" in caplog.text
    assert "a listener failed at tick of" in caplog.text


@pytest.mark.parametrize("answers", [True, False], ids=["answers", "fails"])
def test_the_fallback_is_heard_too(answers: bool) -> None:
    heard: list[tuple[str, dict[str, Any]]] = []

    def score_chart(context: Any, ask: Any) -> Any:
        return stores.flat(0.1) if answers else {}

    scripted.debate(
        scripted.Scripted(dict.fromkeys(OPINIONS, RuntimeError())),
        fallback=score_chart,
        on_event=lambda kind, payload: heard.append((kind, payload)),
    )
    about = [(kind, said) for kind, said in heard if said.get("stage") == "fallback"]
    assert [kind for kind, _ in about] == [
        "agent_start", "agent_complete" if answers else "agent_error",
    ]  # fmt: skip
    assert heard[-1][0] == "decision"
    shaped = envelopes.shaped(*about[-1])
    assert shaped is not None and shaped.payload["phase"] == "fallback"


# --- hearing --------------------------------------------------------------------------------------


def test_what_comes_too_late_changes_nothing(opened: Open, database: Database) -> None:
    events = opened()
    events.on_event("agent_start", ABOUT)
    events.on_event("tick_start", START)
    events.on_event("nonsense", ABOUT)
    events.on_event("tick", RECORD)
    events.on_event("agent_complete", ABOUT)
    events.on_event("tick", RECORD)
    events.on_event("tick_error", {"torra_key": KEY, "code": "failed", "message": ""})
    settled(events)
    assert [kinds(stream) for stream in told(database)] == [["tick_start", "decision"]]


def test_an_attempt_that_never_ended_is_ended_by_the_next(opened: Open, database: Database) -> None:
    events = opened()
    events.on_event("tick_start", START)
    settled(events)
    events.on_event("tick_start", START)
    events.on_event("tick", RECORD)
    settled(events)
    found = told(database)
    assert sorted(map(kinds, found)) == [["tick_start", "decision"], ["tick_start", "error"]]
    (error,) = [stream[-1] for stream in found if stream[-1]["event"] == "error"]
    assert error["code"] == "producer_lost" and error["recoverable"] is True


def test_a_full_queue_leaves_out_all_but_the_end(opened: Open, database: Database) -> None:
    """The writer is held up by another that writes; nobody who tells has to wait for it."""
    events = opened(capacity=8)
    with held(database):
        events.on_event("tick_start", START)
        for number in range(50):
            events.on_event("agent_complete", {**ABOUT, "summary": str(number)})
        events.on_event("tick", RECORD)
        other = {**START, "torra_key": "another"}
        events.on_event("tick_start", other)
        events.on_event("tick", {**RECORD, "torra_key": "another"})
        assert len(events._queue) <= 8 + 1
    settled(events)
    (stream,) = told(database)
    assert kinds(stream) == ["tick_start", *["agent_complete"] * 6, "decision"]
    assert stream[-1]["dropped"] == 44
    assert told(database, "another") == []
    events.on_event("tick_start", START)
    events.on_event("tick", RECORD)
    settled(events)
    assert sorted("dropped" in stream[-1] for stream in told(database)) == [False, True]


class held:  # noqa: N801 - reads as a word
    """Another thread writes to the database meanwhile."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.begun, self.over = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._hold)

    def _hold(self) -> None:
        with self.database.transaction(PATIENT):
            self.begun.set()
            self.over.wait(PATIENT)

    def __enter__(self) -> None:
        self.thread.start()
        assert self.begun.wait(PATIENT)

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


def test_events_wait_while_the_database_cannot_be_written(
    opened: Open,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(event_stream, "RETRY_SECONDS", 0.01)
    append, refused = stream_table.append_events, []

    def full(*given: Any) -> int:
        refused.append(given)
        if len(refused) < 5:
            raise StoreUnavailable("the disk is full")
        return append(*given)

    monkeypatch.setattr(stream_table, "append_events", full)
    events = opened()
    with caplog.at_level(logging.WARNING):
        events.on_event("tick_start", START)
        events.on_event("tick", RECORD)
        settled(events)
    assert [kinds(stream) for stream in told(database)] == [["tick_start", "decision"]]
    assert caplog.text.count("the disk is full") == 1


def test_what_cannot_be_written_ends_its_stream(
    opened: Open,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    append = stream_table.append_events

    def picky(store: Store, stream_id: str, owner: str, rows: Any) -> int:
        if any(row.event == "agent_start" for row in rows):
            raise ValueError("a defect")
        return append(store, stream_id, owner, rows)

    monkeypatch.setattr(stream_table, "append_events", picky)
    events = opened(gather=0.05)
    events.on_event("tick_start", START)
    events.on_event("agent_start", ABOUT)
    settled(events)
    events.on_event("tick", RECORD)
    settled(events)
    (stream,) = told(database)
    assert stream[-1]["event"] == "error" and stream[-1]["code"] == "store"
    assert "a defect" in caplog.text


def test_nothing_that_is_told_raises(
    opened: Open, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    events = opened()
    events.on_event("tick_start", {})
    events.on_event("tick_start", START)
    events.on_event("debate_round", {"torra_key": KEY, "statements": 3})
    assert "was left out" in caplog.text
    deep: list[Any] = []
    deep.append(deep)
    events.on_event("agent_complete", {**ABOUT, "summary": "\ud800 \u202e \x00", "evidence": deep})
    events.on_event("tick", {**RECORD, "consensus": math.nan, "cost_usd": object()})
    settled(events)
    (stream,) = told(database)
    assert kinds(stream) == ["tick_start", "agent_complete", "decision"]
    assert stream[-1]["consensus"] is None


# --- life -----------------------------------------------------------------------------------------


def test_the_next_desk_ends_what_a_killed_one_left_open(opened: Open, database: Database) -> None:
    killed, after = opened(owner="killed"), opened(owner="after")
    killed.on_event("tick_start", START)
    settled(killed)
    after.on_event("tick_start", {**START, "torra_key": "mine"})
    settled(after)
    after.start()
    while not any(row["ended"] for row in stream_table.streams(database, KEY)):
        after.wait(after.written, 0.05)
    assert after.active
    (stream,) = told(database)
    assert kinds(stream) == ["tick_start", "error"] and stream[-1]["code"] == "producer_lost"
    assert stream[-1]["recoverable"] is True
    killed.on_event("agent_start", ABOUT)
    killed.on_event("tick", RECORD)
    settled(killed)
    assert [kinds(stream) for stream in told(database)] == [["tick_start", "error"]]
    assert [kinds(stream) for stream in told(database, "mine")] == [["tick_start"]]
    after.close()
    assert not after.active


def test_closing_writes_what_waits_and_ends_what_runs(opened: Open, database: Database) -> None:
    events = opened(gather=5.0)
    events.on_event("tick_start", START)
    events.on_event("tick_start", {**START, "torra_key": "done"})
    events.on_event("tick", {**RECORD, "torra_key": "done"})
    events.close()
    assert events.closed
    events.on_event("tick_start", {**START, "torra_key": "late"})
    events.changed("state")
    events.start()
    events.close()
    assert kinds(told(database)[0]) == ["tick_start", "error"]
    assert kinds(told(database, "done")[0]) == ["tick_start", "decision"]
    assert told(database, "late") == []


def test_a_desk_that_is_killed_writes_nothing_more(opened: Open, database: Database) -> None:
    events = opened(gather=0.05)
    events.on_event("tick_start", START)
    settled(events)
    events.on_event("agent_start", ABOUT)
    events.close(within=0.0)
    assert [kinds(stream) for stream in told(database)] == [["tick_start"]]
    assert events._thread is not None and not events._thread.is_alive()


def test_changes_by_others_are_seen_and_told(opened: Open, database: Database) -> None:
    moments = iter(range(0, 10_000, 2))
    heard: list[str] = []
    events = opened(monotonic=lambda: float(next(moments)))
    events.listen(lambda change: heard.append(change["what"]))
    events.start()
    database.set_trading_state("HALTED", "by a person")
    events.changed("proposals", instance="BTCUSD")
    while "proposals" not in heard:
        events.wait(events.written, 0.05)
    # What is told may be told before its writer looks at the state: a person acts again then.
    states = cycle(("ACTIVE", "HALTED"))
    while "state" not in heard:
        written = events.written
        database.set_trading_state(next(states), "by a person")
        events.changed("tick")
        events.wait(written, 0.05)
    assert {one["what"] for one in changes(database)} >= {"proposals", "tick", "state"}


def test_changes_of_one_sort_in_one_batch_are_one(opened: Open, database: Database) -> None:
    events = opened(gather=0.05)
    for number in range(5):
        events.changed("running", instance="BTCUSD", timeframe="M15", bar_time=str(number))
    events.changed("running", instance="BTCUSD", timeframe="H1")
    settled(events)
    assert [(one.get("timeframe"), one.get("bar_time")) for one in changes(database)] == [
        ("M15", "4"), ("H1", None),
    ]  # fmt: skip


def test_every_tick_of_a_batch_is_told(opened: Open, database: Database) -> None:
    events = opened(gather=0.05)
    for number in range(3):
        events.changed("tick", instance="BTCUSD", timeframe="M15", bar_time=str(number))
    settled(events)
    assert [one["bar_time"] for one in changes(database)] == ["0", "1", "2"]


def test_a_listener_that_raises_stops_nobody(
    opened: Open, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    events, heard = opened(), list[Any]()

    def fail(change: Any) -> None:
        raise RuntimeError("a host's own")

    events.listen(fail)
    events.listen(heard.append)
    events.changed("state")
    events.changed("profile")
    settled(events)
    while len(heard) < 2:
        events.wait(events.written, 0.05)
    assert [one["what"] for one in heard] == ["state", "profile"]
    assert "a host's own" in caplog.text


def test_the_desk_of_a_home_has_its_stream(tmp_path: Path) -> None:
    desk, _ = wiring.open_desk(tmp_path)
    assert desk.events is not None and not desk.events.active
    desk.close()
    assert desk.events.closed
    one_off = desks.open_desk(tmp_path / "one")
    assert one_off.events is None
    desks.open_for_work(one_off)
    assert (
        one_off._edges(
            one_off.setups["BTCUSD"],
            None,
        ).on_event
        is None
    )
    one_off.close()


def test_streams_go_with_the_texts_of_their_age(desk: Desk) -> None:
    ticked(desk)
    sql = "UPDATE streams SET at = '2020-01-01T00:00:00.000Z' WHERE kind = 'tick'"
    desk.database.change(sql)
    assert desk.prune() > 5
    assert stream_table.streams(desk.database) == []
    assert stores.count(desk.database, "stream_events") == len(changes(desk.database))


# --- payloads -------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=20,
)


@settings(max_examples=8)
@given(payload=st.dictionaries(st.text(max_size=9), VALUES), times=st.sampled_from((1, 600, 4000)))
def test_every_payload_fits_on_one_line(payload: dict[str, Any], times: int) -> None:
    payload = {**payload, "many": ["word" * 20] * times}
    text = envelopes.fitted(payload)
    assert len(text) <= envelopes.PAYLOAD_BYTES and text.isascii() and "\n" not in text
    read = json.loads(text, parse_constant=pytest.fail)
    assert ("shortened" in read) == (times == 4000 or "shortened" in payload)


def test_what_is_too_long_is_shortened_as_little_as_it_must() -> None:
    small = {"summary": "x" * 600, "evidence": [{"id": "a", "value": 1.5}] * 40}
    assert json.loads(envelopes.fitted(small)) == small
    large = {"code": "failed", "message": "y" * 100_000, "recoverable": True}
    read = json.loads(envelopes.fitted(large))
    assert read["shortened"] is True and read["code"] == "failed" and read["recoverable"] is True
    assert len(read["message"]) == 4000 and read["message"].endswith("…")
    wide = {f"{'name' * 2000}{number}": number for number in range(4000)}
    assert len(envelopes.fitted(wide)) <= envelopes.PAYLOAD_BYTES
    assert json.loads(envelopes.fitted({"n": 2**53 + 1, "m": 2**53})) == {
        "n": "9007199254740993", "m": 2**53,
    }  # fmt: skip


def test_the_docs_name_every_event_with_its_fields() -> None:
    told = {**START, "stage": "analysts"}
    shapes = [envelopes.shaped(kind, told) for kind in envelopes.SHAPES]
    fields = {one.event: list(one.payload) for one in shapes if one is not None}
    text = (ROOT / "docs" / "streams.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ((?:\w+, )*\w+) \|$", text, re.MULTILINE))
    assert {name: row.split(", ") for name, row in rows.items()} == fields
    codes = {envelopes.LOST[0], envelopes.UNWRITABLE[0], "failed", "skipped:<reason>"}
    assert set(re.findall(r"^\| `([\w:<>]+)` \| .* \| (?:yes|no) \|$", text, re.MULTILINE)) == codes
