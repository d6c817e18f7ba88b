"""Notices: written once, due in order, kept short, and settled at the start of the next desk."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from instance_database import Database
from tests.worlds.stores import NOON, Hand, opening
from torra.store import notices
from torra.store.notices import LONGEST_TITLE

SECOND = timedelta(seconds=1)
SENT = {"tries": 0, "detail": ""}


def add(database: Database, key: str, services: tuple[str, ...] = ("mail",), **more: Any) -> bool:
    row = {
        "key": key, "kind": "halt", "level": "trade", "title": "A title", "text": "A text.",
        "instance": "BTCUSD", "desk_time": NOON, "at": NOON, "silent": False, "more": "left out",
    }  # fmt: skip
    return notices.add_notice(database, {**row, **more}, services)


def due(database: Database, service: str = "mail", after: timedelta = 0 * SECOND) -> str | None:
    row = notices.due_notice(database, service, NOON + after)
    return None if row is None else str(row["key"])


def outbox(database: Database, service: str = "mail") -> dict[str, tuple[str, str]]:
    """Return state and detail of every notice's way to a service, the newest first."""
    return {
        row["key"]: (way["state"], way["detail"])
        for row in notices.notices(database, 99)
        for way in row["sent"]
        if way["service"] == service
    }


def test_a_notice_is_written_once_and_waits_for_each_service(database: Database) -> None:
    assert notices.newest_notice(database) == 0
    assert add(database, "a", ("phone", "mail"), title="t" * 200, text="x" * 900, silent=True)
    assert not add(database, "a", ("pager",), title="again")
    assert add(database, "b", ())
    newest, oldest = notices.notices(database, 9)
    at = "2026-02-13T12:00:00Z"
    assert newest == {
        "id": 2, "key": "b", "kind": "halt", "level": "trade", "title": "A title",
        "text": "A text.", "instance": "BTCUSD", "desk_time": at, "at": at, "silent": 0, "sent": [],
    }  # fmt: skip
    assert (oldest["id"], oldest["silent"]) == (1, 1)
    assert (len(oldest["title"]), len(oldest["text"])) == (LONGEST_TITLE, 500)
    ways = [{"service": name, "state": "waiting", **SENT} for name in ("mail", "phone")]
    assert oldest["sent"] == ways
    assert [row["key"] for row in notices.notices(database, 1)] == ["b"]
    assert notices.newest_notice(database) == 2
    assert [row["key"] for row in notices.notices_after(database, 0, 9)] == ["a", "b"]
    assert [row["key"] for row in notices.notices_after(database, 0, 1)] == ["a"]
    assert [row["key"] for row in notices.notices_after(database, 1, 9)] == ["b"]


def test_what_is_due_comes_alarms_first_then_by_tries_then_by_age(database: Database) -> None:
    assert due(database) is None
    for key in ("old", "new"):
        add(database, key)
    add(database, "alarm", level="alarm")
    for expected in ("alarm", "old", "new"):
        assert due(database) == expected and due(database, "phone") is None
        row = notices.due_notice(database, "mail", NOON)
        assert row is not None and row["tries"] == 0
        notices.mark_notice(database, row["id"], "mail", "sent", tries=1)
    assert due(database) is None
    assert set(outbox(database).values()) == {("sent", "")}


def test_what_was_tried_waits_for_its_next_moment_behind_what_was_not(database: Database) -> None:
    for key in ("a", "b"):
        add(database, key, ("mail", "phone"))
    later = NOON + 60 * SECOND
    notices.mark_notice(database, 1, "mail", "waiting", tries=1, detail="x" * 900, next_try=later)
    assert due(database) == "b" and due(database, "phone") == "a"
    notices.mark_notice(database, 2, "mail", "sent", tries=1)
    assert due(database, after=59 * SECOND) is None and due(database, after=60 * SECOND) == "a"
    assert due(database, "phone", 60 * SECOND) == "a", "the other service's way is its own"
    row = notices.due_notice(database, "mail", later)
    assert row is not None and row["tries"] == 1
    assert len(outbox(database)["a"][1]) == 500
    add(database, "c")
    assert due(database, after=60 * SECOND) == "c", "fewer tries"


def test_beyond_its_limit_a_service_drops_its_oldest_that_are_no_alarms(
    database: Database,
) -> None:
    for number in range(4):
        add(database, f"n{number}", ("mail", "phone"))
    add(database, "alarm", level="alarm")
    notices.mark_notice(database, 1, "mail", "sending", tries=0)
    assert notices.trim_outbox(database, "mail", 4) == 0
    assert notices.trim_outbox(database, "mail", 2) == 2
    dropped = ("dropped", "too many waited")
    assert outbox(database) == {
        "alarm": ("waiting", ""), "n3": ("waiting", ""), "n2": dropped, "n1": dropped,
        "n0": ("sending", ""),
    }  # fmt: skip
    assert notices.trim_outbox(database, "mail", 0) == 1, "an alarm waits for ever"
    assert {state for state, _ in outbox(database, "phone").values()} == {"waiting"}


def test_a_start_settles_what_the_desk_before_left(database: Database) -> None:
    for key, level in (("alarm", "alarm"), ("trade", "trade"), ("waits", "trade")):
        add(database, key, ("mail", "gone"), level=level)
    for number in (1, 2):
        notices.mark_notice(database, number, "mail", "sending", tries=1, next_try=NOON + SECOND)
    for service in ("mail", "gone"):
        notices.note_service(database, service, "refused")
    notices.keep_services(database, ["mail"])
    assert outbox(database) == {
        "waits": ("waiting", ""), "trade": ("failed", "the desk ended while it was sent"),
        "alarm": ("waiting", ""),
    }  # fmt: skip
    assert due(database) == "alarm", "at once, for it may not have arrived"
    gone = ("dropped", "this service is not set any more")
    assert set(outbox(database, "gone").values()) == {gone}
    assert [row["service"] for row in notices.notice_services(database)] == ["mail"]
    notices.keep_services(database, ["mail", "gone"])
    assert due(database, "gone") is None, "dropped for good"


def test_how_the_last_try_of_a_service_went(database: Database, hand: Hand) -> None:
    notices.note_service(database, "phone", "x" * 900)
    notices.note_service(database, "mail", "refused")
    hand.pass_by(5)
    notices.note_service(database, "mail", "")
    mail, phone = notices.notice_services(database)
    assert mail == {"service": "mail", "detail": "", "at": "2026-02-13T12:00:05Z"}
    assert (phone["service"], len(phone["detail"])) == ("phone", 500)


def test_only_the_newest_are_kept_and_what_still_waits(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "KEPT", 3)
    add(database, "waits")
    add(database, "sending")
    notices.mark_notice(database, 2, "mail", "sending", tries=1)
    for number in range(5):
        add(database, f"n{number}")
        notices.mark_notice(database, number + 3, "mail", "sent", tries=1)
    assert list(outbox(database)) == ["n4", "n3", "n2", "sending", "waits"]
    notices.mark_notice(database, 1, "mail", "failed", tries=9)
    add(database, "last", ())
    listed = [row["key"] for row in notices.notices(database, 99)]
    assert listed == ["last", "n4", "n3", "sending"]


def test_a_cursor_stands_where_it_was_set(database: Database) -> None:
    assert notices.notice_cursor(database, "steps") is None
    for name, place in (("steps", "7"), ("states", "3"), ("steps", "9")):
        notices.set_notice_cursor(database, name, place)
    assert notices.notice_cursor(database, "steps") == "9"
    assert notices.notice_cursor(database, "states") == "3"


def test_steps_and_states_are_read_on_from_a_number(database: Database) -> None:
    assert notices.newest_state(database) == 0 and notices.steps_after(database, 0, 9) == []
    for sid, instance in (("T1", "BTCUSD"), ("T2", "EURUSD")):
        database.enqueue_signal(opening(sid, instance=instance))
    database.move_signal("T1", "PUBLISHED", detail="sent")
    steps = [(row.step, row.sid, row.to_state, row.state) for row in
             notices.steps_after(database, 0, 9)]  # fmt: skip
    assert steps == [
        (1, "T1", "PENDING", "PUBLISHED"), (2, "T2", "PENDING", "PENDING"),
        (3, "T1", "PUBLISHED", "PUBLISHED"),
    ]  # fmt: skip
    assert [row.step for row in notices.steps_after(database, 1, 1)] == [2]
    for state in ("REDUCING", "HALTED", "ACTIVE"):
        database.set_trading_state(state, f"now {state}")
    found = [(row.id, row.state, row.reason) for row in notices.states_after(database, 1, 9)]
    assert found == [(2, "HALTED", "now HALTED"), (3, "ACTIVE", "now ACTIVE")]
    assert [row.id for row in notices.states_after(database, 0, 2)] == [1, 2]
    assert notices.newest_state(database) == 3
