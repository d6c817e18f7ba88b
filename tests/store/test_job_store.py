"""Jobs in the database: one for the same request, one winner of each change, 200 that ended."""

from __future__ import annotations

import threading

import pytest

from instance_database import Database
from tests.worlds.stores import Hand
from torra.errors import ConfigError
from torra.store import jobs as job_table
from torra.store import streams as stream_table
from torra.store.jobs import KEPT, MOST_WAITING


def queued(database: Database, key: str = "k") -> int:
    row, _ = job_table.queue_job(
        database, "replay", key, title="BTCUSD", parameters="{}", actor="a test"
    )
    return int(row["id"])


def test_two_threads_that_ask_for_the_same_get_one_job(database: Database) -> None:
    together = threading.Barrier(2)
    found: list[int] = []

    def ask() -> None:
        together.wait(10)
        found.append(queued(database))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(found) == 2 and len(set(found)) == 1
    assert len(job_table.jobs(database)) == 1


@pytest.mark.parametrize("state", ["queued", "running", "retrying"])
def test_the_same_request_is_that_job_while_it_goes_on(database: Database, state: str) -> None:
    number = queued(database)
    if state != "queued":
        assert job_table.begin_job(database, number, "queued")
    if state == "retrying":
        assert job_table.lay_job_back(database, number, "later")
    assert queued(database) == number
    assert queued(database, "another") != number


@pytest.mark.parametrize("state", ["done", "error", "cancelled"])
def test_one_that_has_ended_may_be_asked_for_again(database: Database, state: str) -> None:
    number = queued(database)
    job_table.begin_job(database, number, "queued")
    assert job_table.end_job(database, number, "running", state, "It ended.")
    assert queued(database) != number


def test_only_the_first_of_two_changes_counts(database: Database) -> None:
    number = queued(database)
    assert job_table.end_job(database, number, "queued", "cancelled", "by a person")
    assert not job_table.begin_job(database, number, "queued")
    assert not job_table.end_job(database, number, "queued", "done", "too late")
    assert not job_table.ask_to_cancel(database, number)
    row = job_table.job(database, number)
    assert row is not None and (row["state"], row["says"]) == ("cancelled", "by a person")


def test_too_many_may_not_wait(database: Database) -> None:
    for number in range(MOST_WAITING):
        queued(database, f"k{number}")
    with pytest.raises(ConfigError, match=f"{MOST_WAITING} jobs wait already.*--cancel"):
        queued(database, "one more")
    assert queued(database, "k0") == 1, "the same request is no further one"


def test_the_newest_of_those_that_ended_are_kept(database: Database) -> None:
    waits = queued(database, "waits")
    for number in range(KEPT + 5):
        ended = queued(database, f"k{number}")
        job_table.begin_job(database, ended, "queued")
        job_table.end_job(database, ended, "running", "done", "It ended.")
    found = job_table.jobs(database)
    assert len(found) == KEPT + 1
    assert [row["id"] for row in found if row["state"] == "queued"] == [waits]
    assert min(row["id"] for row in found if row["state"] == "done") == waits + 6


def test_every_change_beats_in_the_pulse(database: Database) -> None:
    beats = [stream_table.pulse(database)["jobs"]]
    number = queued(database)
    for change in (
        lambda: job_table.begin_job(database, number, "queued"),
        lambda: job_table.note_progress(database, number, "reads", 1, 2),
        lambda: job_table.ask_to_cancel(database, number),
        lambda: job_table.lay_job_back(database, number, "later"),
        lambda: job_table.begin_job(database, number, "retrying"),
        lambda: job_table.end_job(database, number, "running", "done", "It ended."),
    ):
        change()
        beats.append(stream_table.pulse(database)["jobs"])
    assert beats == sorted(set(beats)), "each change has a beat of its own"


def test_jobs_are_found_by_state_and_by_kind(database: Database, hand: Hand) -> None:
    assert job_table.job(database, 1) is None and job_table.newest_says(database, "replay") == ""
    first, second = queued(database, "a"), queued(database, "b")
    hand.pass_by(1)
    assert job_table.begin_job(database, first, "queued")
    assert not job_table.begin_job(database, 9, "queued")
    assert [row["id"] for row in job_table.jobs_in(database, "queued")] == [second]
    assert [row["id"] for row in job_table.jobs(database)] == [second, first]
    assert [row["id"] for row in job_table.jobs(database, 1)] == [second]
    newest = job_table.newest_job(database, kind="replay")
    running = job_table.newest_job(database, kind="replay", state="running")
    assert newest is not None and running is not None
    assert (newest["id"], running["id"]) == (second, first)
    assert job_table.newest_job(database, kind="sweep") is None
    job_table.end_job(database, first, "running", "done", "x" * 900, "a file")
    row = job_table.job(database, first)
    assert row is not None and (row["made"], row["ended_at"]) == ("a file", "2026-02-13T12:00:01Z")
    assert len(row["says"]) == 500 and job_table.newest_says(database, "replay") == row["says"]


def test_attempts_are_counted_and_the_first_start_stays(database: Database, hand: Hand) -> None:
    number = queued(database)
    job_table.begin_job(database, number, "queued")
    assert job_table.note_progress(database, number, "reads", 3, 7)
    assert job_table.ask_to_cancel(database, number)
    row = job_table.job(database, number)
    assert row is not None and row["started_at"] == "2026-02-13T12:00:00Z"
    assert [row[name] for name in ("attempt", "cancel", "stage", "done", "total")] == [
        1, 1, "reads", 3, 7,
    ]  # fmt: skip
    assert job_table.lay_job_back(database, number, "later")
    assert not job_table.lay_job_back(database, number, "it does not run")
    assert not job_table.note_progress(database, number, "reads", 4, 7)
    hand.pass_by(9)
    for given_back, attempt in ((True, 2), (False, 2), (False, 3)):
        assert job_table.begin_job(database, number, "retrying")
        row = job_table.job(database, number)
        assert row is not None and row["attempt"] == attempt
        assert (row["stage"], row["done"], row["total"], row["says"]) == ("", 0, 0, "")
        job_table.lay_job_back(database, number, "later", given_back=given_back)
    assert row["started_at"] == "2026-02-13T12:00:00Z"
