"""A worker runs jobs in two lanes, tells how far they are, and cancels them in time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.job_works import LIGHT, SCRIPTED, notes
from tests.tries import Tries, until
from tests.worlds.jobs import Office, alive
from torra.errors import ConfigError
from torra.jobs import asking, worker
from torra.jobs.kinds import JobKind
from torra.store import audit as audit_chain
from torra.store import jobs as job_table
from torra.trading import commanding
from torra.trading.commanding import COMMAND_LINE

CANCELLED_SECONDS = 2.0
BEGUN_SECONDS = 2.0

LANES = pytest.mark.parametrize("kind", [SCRIPTED, LIGHT[0]], ids=["heavy", "light"])
KINDS_AT_ONCE = (SCRIPTED, LIGHT[0], LIGHT[1])


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    found = Office(tmp_path / "home")
    yield found
    found.close()


def cancel(office: Office, number: int) -> None:
    asking.cancel(commanding.context_of(office.home, office.database), COMMAND_LINE, number)


def test_a_job_is_done_and_says_so(office: Office) -> None:
    number = office.ask("a", steps=3)
    row = office.turn_until(number)
    assert (row["state"], row["attempt"]) == ("done", 1)
    assert (row["says"], row["made"]) == ("a took 3 steps.", "a")
    assert row["started_at"] and row["ended_at"] and row["asked_by"] == "command line"
    assert len(notes(office.home, "a", "end")) == 1
    office.worker.turn()
    assert not office.worker.children


@pytest.mark.journey
def test_jobs_run_one_after_the_other_in_their_order(office: Office) -> None:
    numbers = [office.ask(name, seconds=0.05) for name in "abc"]
    seen = set()
    while any(office.row(number)["state"] != "done" for number in numbers):
        office.worker.turn()
        running = tuple(number for number in numbers if office.row(number)["state"] == "running")
        seen.add(running)
        time.sleep(0.01)
    assert all(len(running) <= 1 for running in seen)
    assert [told["job"] for told in office.told if told["state"] == "done"] == ["1", "2", "3"]


def test_progress_is_noted_and_told(office: Office) -> None:
    number = office.ask("a", steps=40, seconds=0.05)
    row = office.turn_until_begun(number)
    assert row["total"] == 40 and 0 < row["done"] <= 40
    stages = [told["stage"] for told in office.told if "stage" in told]
    assert stages[-1] == "works"
    assert {"job": "1", "state": "running"} in office.told


def test_what_a_work_prints_is_no_word(office: Office) -> None:
    row = office.turn_until(office.ask("a", how="loud"))
    assert row["state"] == "done"


@LANES
@pytest.mark.parametrize("how", ["done", "deaf"])
def test_a_running_job_is_cancelled_within_two_seconds(
    how: str, kind: JobKind, tmp_path: Path, tries: Tries
) -> None:
    """Also one that does not stop when it is asked to."""
    for attempt in tries():
        office = Office(attempt.folder(tmp_path) / "home")
        number = office.ask("a", kind, how=how, steps=100_000, seconds=0.1)
        office.worker.start()
        until(lambda: office.row(number)["stage"] == "works")  # noqa: B023
        [child] = office.worker.children
        begun = time.monotonic()
        cancel(office, number)
        until(lambda: office.row(number)["state"] == "cancelled")  # noqa: B023
        took = time.monotonic() - begun
        with attempt:
            assert took <= CANCELLED_SECONDS
        assert not alive(child)
        assert office.row(number)["says"] == "Cancelled by a person."
        assert notes(office.home, "a", "end") == []
        assert len(notes(office.home, "a", "begin")) == 1
        office.close()


def test_a_job_that_waits_is_cancelled_at_once(office: Office) -> None:
    number = office.ask("a")
    cancel(office, number)
    assert office.row(number)["state"] == "cancelled"
    office.worker.turn()
    assert notes(office.home, "a") == []
    with pytest.raises(ConfigError, match="job 1 has ended already: it is cancelled"):
        cancel(office, number)
    with pytest.raises(ConfigError, match=r"there is no job 7; `torra jobs` lists them"):
        cancel(office, 7)


def test_every_command_is_on_record(office: Office) -> None:
    number = office.ask("a")
    cancel(office, number)
    rows = audit_chain.audit_entries(office.database, limit=5)
    assert [(row["action"], row["target"], row["outcome"]) for row in rows] == [
        ("cancel job", "1", "done"),
        ("job", "scripted", "done"),
    ]


@pytest.mark.journey
@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("bad", "There is no such thing."),
        ("break", "It broke: ZeroDivisionError: by zero."),
        ("hungry", "It needs more memory than a job may have, 2.0 GB: ask for less."),
    ],
)
def test_what_trying_again_would_not_mend_is_not_tried_again(
    office: Office, how: str, says: str
) -> None:
    row = office.turn_until(office.ask("a", how=how))
    assert (row["state"], row["attempt"], row["says"]) == ("error", 1, says)
    assert len(notes(office.home, "a", "begin")) == 1


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("busy", "the folder is held by another process; it was tried 2 times."),
        ("die", "Its process was ended by the signal 9; it was tried 2 times."),
    ],
)
def test_what_may_pass_by_is_tried_twice(office: Office, how: str, says: str) -> None:
    number = office.ask("a", how=how)
    row = office.turn_until(number, "retrying")
    assert row["attempt"] == 1 and row["says"].endswith("; it is tried again.")
    row = office.turn_until(number)
    assert (row["state"], row["attempt"]) == ("error", 2)
    assert row["says"].casefold() == says.casefold()
    assert len(notes(office.home, "a", "begin")) == 2


def test_a_child_that_died_once_is_tried_again_and_done(office: Office) -> None:
    row = office.turn_until(office.ask("a", how="die once"))
    assert (row["state"], row["attempt"]) == ("done", 2)


def test_a_job_that_waits_to_be_tried_again_lets_the_next_one_by(tmp_path: Path) -> None:
    office = Office(tmp_path / "home", retry_seconds=60.0)
    first, second = office.ask("a", how="die once"), office.ask("b")
    office.turn_until(second, "done")
    assert office.row(first)["state"] == "retrying"
    office.close()


def test_a_kind_that_nobody_knows_is_an_error(office: Office) -> None:
    row, _ = job_table.queue_job(
        office.database, "gone", "k", title="", parameters="{}", actor="a test"
    )
    found = office.turn_until(row["id"])
    assert (found["state"], found["says"]) == (
        "error",
        "This program knows no job of the kind gone.",
    )


@pytest.mark.journey
@pytest.mark.parametrize("odd", ["[}", "7", "", b"\xff"])
def test_what_cannot_be_read_is_an_error_and_the_next_job_is_done(
    office: Office, odd: str | bytes
) -> None:
    first, second = office.ask("a"), office.ask("b")
    change: Any = office.database.connection()
    with office.database.transaction():
        change.execute("UPDATE jobs SET parameters = ? WHERE id = ?", [odd, first])
    found = office.turn_until(first)
    assert (found["state"], found["says"]) == (
        "error",
        "What it was asked for with cannot be read.",
    )
    assert office.turn_until(second)["state"] == "done"


def test_a_worker_without_the_lock_begins_nothing(office: Office) -> None:
    number = office.ask("a")
    office.works = False
    office.worker.turn()
    assert office.row(number)["state"] == "queued" and not office.worker.children


def test_a_worker_that_lost_the_lock_ends_its_child_and_writes_nothing(office: Office) -> None:
    number = office.ask("a", steps=100_000, seconds=0.1)
    before = office.turn_until_begun(number)
    [child] = office.worker.children
    office.works = False
    office.worker.turn()
    assert not alive(child) and not office.worker.children
    assert {**office.row(number), "done": 0} == {**before, "done": 0}
    office.works = True
    row = office.turn_until(number, "retrying")
    assert row["says"] == "The desk that ran it is gone; it is tried again."


def test_one_that_was_cancelled_while_its_desk_died_is_not_tried_again(office: Office) -> None:
    number = office.ask("a", steps=100_000, seconds=0.1)
    office.turn_until_begun(number)
    cancel(office, number)
    assert asking.shown(office.row(number))["stops"]
    office.works = False
    office.worker.turn()
    office.works = True
    row = office.turn_until(number)
    assert (row["state"], len(notes(office.home, "a", "begin"))) == ("cancelled", 1)


def test_what_is_decided_in_the_turn_in_which_the_lock_is_lost_is_not_written(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker stood still between its look at the lock and its write."""
    number = office.ask("a")
    looks = iter([True])
    monkeypatch.setattr(office.database, "fence", lambda: next(looks, False))
    office.worker.turn()
    assert office.row(number)["state"] == "queued"


@LANES
def test_a_desk_that_is_stopped_gives_the_attempt_back(office: Office, kind: JobKind) -> None:
    number = office.ask("a", kind, steps=100_000, seconds=0.1)
    office.turn_until_begun(number)
    [child] = office.worker.children
    office.worker.close()
    row = office.row(number)
    assert (row["state"], row["attempt"]) == ("retrying", 0)
    assert row["says"] == "The desk was stopped; the job goes on where one runs."
    assert not alive(child)


def test_a_work_that_ends_as_its_desk_stops_is_done(office: Office) -> None:
    number = office.ask("a", how="deaf", steps=2, seconds=0.7)
    office.turn_until_begun(number)
    office.worker.close()
    assert office.row(number)["state"] == "done"


def test_kinds_are_asked_at_the_first_turn_and_soon_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fresh desk has its first scan at once, and the one after its first ticks soon."""
    asked, now = [], [0.0]
    kind = replace(SCRIPTED, keep_up=lambda _: asked.append(now[0]))
    office.worker._kinds = {kind.name: kind}
    monkeypatch.setattr("torra.jobs.worker.CLOCK.monotonic", lambda: now[0])
    for moment in range(12):
        now[0] = float(moment)
        office.worker._keep_up()
    assert asked == [0.0, 5.0, 10.0]


# --- the light lane -------------------------------------------------------------------------------


def test_a_light_job_begins_at_once_beside_a_heavy_one_and_one_that_hangs(
    tmp_path: Path, tries: Tries
) -> None:
    for attempt in tries():
        office = Office(attempt.folder(tmp_path) / "home")
        office.ask("replay", steps=1, seconds=1800.0)
        office.ask("hangs", LIGHT[0], how="deaf", steps=1, seconds=1800.0)
        office.worker.start()
        until(lambda: len(notes(office.home, "hangs", "begin")) == 1)  # noqa: B023
        until(lambda: len(notes(office.home, "replay", "begin")) == 1)  # noqa: B023
        begun = time.monotonic()
        scan = office.ask("scan", LIGHT[1], steps=1)
        until(lambda: notes(office.home, "scan", "begin"))  # noqa: B023
        took = time.monotonic() - begun
        until(lambda: office.row(scan)["state"] == "done")  # noqa: B023
        office.close()
        with attempt:
            assert took <= BEGUN_SECONDS


def test_two_light_jobs_run_at_a_time_and_one_of_a_kind(office: Office) -> None:
    long = {"steps": 1, "seconds": 600.0}
    first = office.ask("a", LIGHT[0], **long)
    same, other = office.ask("b", LIGHT[0], **long), office.ask("c", LIGHT[1], **long)
    third = office.ask("d", LIGHT[2], **long)
    for _ in range(8):
        office.worker.turn()
    states = [office.row(number)["state"] for number in (first, same, other, third)]
    assert states == ["running", "queued", "running", "queued"]
    cancel(office, first)
    office.turn_until(first)
    office.turn_until(same, "running")
    assert len(office.worker.children) == 2


@pytest.mark.parametrize("how", ["done", "deaf"])
def test_a_light_job_that_takes_too_long_is_stopped_and_is_an_error(
    office: Office, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LIGHT_SECONDS", 1.0)
    heavy = office.ask("heavy", steps=1, seconds=600.0)
    number = office.ask("a", LIGHT[0], how=how, steps=100_000, seconds=0.1)
    row = office.turn_until(number)
    assert (row["state"], row["attempt"]) == ("error", 1)
    assert row["says"] == "It was stopped after 1 seconds, the most that such a job may take."
    assert office.row(heavy)["state"] == "running" and len(office.worker.children) == 1


def test_a_full_heavy_lane_takes_light_jobs(office: Office) -> None:
    for number in range(job_table.MOST_WAITING):
        office.ask(f"heavy {number}")
    with pytest.raises(ConfigError, match="20 jobs wait already"):
        office.ask("one more")
    number = office.ask("scan", LIGHT[0])
    assert office.turn_until(number)["state"] == "done"


def test_each_lane_goes_on_after_a_stop(tmp_path: Path) -> None:
    office = Office(tmp_path / "home")
    numbers = [office.ask(kind.name, kind, steps=100_000, seconds=0.1) for kind in KINDS_AT_ONCE]
    for number in numbers:
        office.turn_until_begun(number)
    children = office.worker.children
    office.worker.close()
    assert [office.row(number)["state"] for number in numbers] == ["retrying"] * 3
    assert not any(map(alive, children))
    office.database.close()


def test_the_list_says_the_lane(office: Office) -> None:
    office.ask("a")
    office.ask("b", LIGHT[0])
    told = asking.document(office.database)
    assert [one["lane"] for one in told["jobs"]] == ["light", "heavy"]
    assert "queued       light  light a b" in asking.table(told)
