"""Streams as they are stored: numbers without a gap, one end, one owner, and no look at a table."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instance_database import Database
from tests.worlds import stores
from tests.worlds.query_plans import plans
from torra.store import streams as stream_table
from torra.store.envelopes import DESK_STREAM, StreamEvent

KEY = "BTCUSD|M15|2026-02-13T11:45:00Z"
START, WORD = StreamEvent("tick_start", "{}"), StreamEvent("agent_start", "{}")
END, LOST = (
    StreamEvent("decision", "{}", terminal=True),
    StreamEvent("error", '{"code":1}', terminal=True),
)
DAY = timedelta(days=1)


def told(database: Database, stream_id: str, after: int = 0) -> list[tuple[int, str]]:
    rows = stream_table.events_after(database, stream_id, after, 10_000)
    return [(row.seq, row.event) for row in rows]


def test_numbers_start_at_one_and_go_on(database: Database) -> None:
    stream_table.open_stream(database, "t", "tick", KEY, "we")
    assert stream_table.append_events(database, "t", "we", [START, WORD]) == 2
    assert stream_table.append_events(database, "t", "we", []) == 2
    assert stream_table.append_events(database, "t", "we", [WORD, END]) == 4
    assert told(database, "t") == [
        (1, "tick_start"), (2, "agent_start"), (3, "agent_start"), (4, "decision"),
    ]  # fmt: skip
    row = stream_table.stream(database, "t")
    assert row is not None
    assert (row["seq"], row["first"], row["ended"], row["kind"]) == (4, 1, 1, "tick")
    assert row["torra_key"] == KEY and row["at"] == "2026-02-13T12:00:00.000Z"
    assert told(database, "t", 2) == [(3, "agent_start"), (4, "decision")]
    assert told(database, "t", 4) == []
    assert stream_table.events_after(database, "t", 0, 1)[0].seq == 1


def test_nothing_follows_the_end(database: Database) -> None:
    stream_table.open_stream(database, "t", "tick", KEY, "we")
    assert stream_table.append_events(database, "t", "we", [START, END, WORD, LOST]) == 2
    assert stream_table.append_events(database, "t", "we", [WORD]) == 0
    assert stream_table.append_events(database, "t", "we", [LOST]) == 0
    assert told(database, "t") == [(1, "tick_start"), (2, "decision")]


def test_a_stranger_writes_nothing(database: Database) -> None:
    stream_table.open_stream(database, "t", "tick", KEY, "we")
    assert stream_table.append_events(database, "t", "others", [START]) == 0
    assert stream_table.append_events(database, "nowhere", "we", [START]) == 0
    assert told(database, "t") == told(database, "nowhere") == []


def test_what_others_left_open_is_ended_once(database: Database) -> None:
    owners = {"a": "an", "b": "before", "m": "me", "z": "zoe"}
    for name, owner in owners.items():
        stream_table.open_stream(database, name, "tick", KEY, owner)
        stream_table.append_events(database, name, owner, [START])
    stream_table.open_stream(database, DESK_STREAM, "desk", "", "an")
    stream_table.open_stream(database, "done", "tick", KEY, "an")
    stream_table.append_events(database, "done", "an", [START, END])
    assert sorted(stream_table.orphans(database, "me")) == ["a", "b", "z"]
    assert stream_table.end_orphans(database, "me", LOST, 2) == 2
    assert stream_table.end_orphans(database, "me", LOST) == 1
    assert stream_table.end_orphans(database, "me", LOST) == 0
    for name in ("a", "b", "z"):
        assert told(database, name) == [(1, "tick_start"), (2, "error")]
        assert stream_table.append_events(database, name, owners[name], [WORD]) == 0, (
            "its desk woke up again"
        )
    assert told(database, "m") == [(1, "tick_start")]
    assert told(database, "done")[-1] == (2, "decision")
    assert told(database, DESK_STREAM) == []


def test_the_desks_stream_changes_hands_and_stays_short(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_table, "DESK_EVENTS", 3)
    for owner, number in (("one", 2), ("two", 4), ("one", 1)):
        stream_table.open_stream(database, DESK_STREAM, "desk", "", owner)
        stream_table.append_events(
            database, DESK_STREAM, owner, [StreamEvent("changed", "{}")] * number
        )
    assert [seq for seq, _ in told(database, DESK_STREAM)] == [5, 6, 7]
    row = stream_table.stream(database, DESK_STREAM)
    assert row is not None and (row["first"], row["seq"], row["ended"]) == (5, 7, 0)
    assert stream_table.append_events(database, DESK_STREAM, "two", [WORD]) == 0


def test_a_tick_has_a_stream_for_each_attempt(database: Database, hand: stores.Hand) -> None:
    for name in ("b", "c", "a"):
        stream_table.open_stream(database, name, "tick", KEY, "we")
        hand.pass_by(0.25)
    stream_table.open_stream(database, "other", "tick", KEY.replace("BTC", "EUR"), "we")
    stream_table.open_stream(database, DESK_STREAM, "desk", "", "we")
    assert [row["stream_id"] for row in stream_table.streams(database, KEY)] == ["a", "c", "b"]
    newest = [row["stream_id"] for row in stream_table.streams(database, limit=2)]
    assert newest == ["other", "a"]
    assert (
        stream_table.stream(database, "nowhere") is None
        and stream_table.streams(database, "nowhere") == []
    )


@pytest.mark.journey
@settings(max_examples=12)
@given(sizes=st.lists(st.integers(1, 7), min_size=1, max_size=9), limit=st.integers(1, 9))
def test_batches_end_where_one_sweep_does(
    tmp_path_factory: Any, sizes: list[int], limit: int
) -> None:
    hand = stores.Hand(stores.NOON)
    database = stores.open_database(tmp_path_factory.mktemp("streams"), hand)
    stream_table.open_stream(database, DESK_STREAM, "desk", "", "we")
    for number, size in enumerate(sizes):
        stream_table.open_stream(database, f"t{number}", "tick", KEY, "we")
        stream_table.append_events(database, f"t{number}", "we", [WORD] * size)
        hand.pass_by(DAY.total_seconds())
    old = len(sizes) // 2
    border = stores.NOON + old * DAY
    for gone in iter(lambda: stream_table.prune_streams(database, border, limit=limit), 0):
        assert gone <= limit
    left = {row["stream_id"] for row in stream_table.streams(database, limit=100)}
    assert left == {f"t{number}" for number in range(old, len(sizes))}
    assert stores.count(database, "stream_events") == sum(sizes[old:])
    assert stream_table.stream(database, DESK_STREAM) is not None


def test_the_pulse_beats_when_something_changes(database: Database) -> None:
    beats = [stream_table.pulse(database)]
    for change in (
        lambda: database.set_trading_state("HALTED", "a test"),
        lambda: database.apply_profile("BTCUSD", "{}", "digest"),
        lambda: database.enqueue_signal({**stores.opening(), "state": "PENDING"}),
    ):
        change()
        beats.append(stream_table.pulse(database))
    moved = [
        {name for name in before if before[name] != after[name]}
        for before, after in itertools.pairwise(beats)
    ]
    assert moved == [{"state"}, {"profile"}, {"signals"}]
    assert stream_table.pulse(database) == beats[-1]


def test_no_query_looks_through_a_table(database: Database) -> None:
    """Not even a small one: an index of open streams, too, is searched and not read through."""

    def ask() -> None:
        stream_table.open_stream(database, "t", "tick", KEY, "we")
        stream_table.open_stream(database, "left", "tick", KEY, "others")
        stream_table.open_stream(database, DESK_STREAM, "desk", "", "we")
        for name in ("t", DESK_STREAM):
            stream_table.append_events(database, name, "we", [START, END])
        stream_table.stream(database, "t")
        stream_table.streams(database, KEY)
        stream_table.streams(database)
        stream_table.events_after(database, "t", 1)
        stream_table.end_orphans(database, "we", LOST)
        stream_table.prune_streams(database, stores.NOON + DAY, limit=5)
        stream_table.pulse(database)

    found = plans(database, ask)
    assert len(found) > 12
    for text, plan in found.items():
        scans = [step for step in plan if step.startswith("SCAN") and "CONSTANT" not in step]
        assert scans == [], text


def test_debates_that_go_on_are_listed_newest_first(database: Database, hand: stores.Hand) -> None:
    for number, kind in enumerate(("tick", "tick", "desk", "tick")):
        stream_table.open_stream(database, f"s{number}", kind, f"key {number}", "me")
        hand.pass_by(1)
    stream_table.append_events(database, "s1", "me", [StreamEvent("decision", "{}", True)])
    since = stores.NOON - timedelta(seconds=1)
    rows = stream_table.running_debates(database, since)
    assert [(row["stream_id"], row["torra_key"]) for row in rows] == [
        ("s3", "key 3"), ("s0", "key 0"),
    ]  # fmt: skip
    rows = stream_table.running_debates(database, stores.NOON + timedelta(seconds=1))
    assert [row["stream_id"] for row in rows] == ["s3"]
