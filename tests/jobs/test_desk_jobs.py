"""A whole desk, as `torra run` opens it, works on jobs while it holds the lock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database
from tests.doubles.job_works import SCRIPTED, notes
from tests.tries import until
from tests.worlds.hands import torra
from tests.worlds.jobs import KINDS, alive
from torra.desk import wiring
from torra.desk.schedule import Desk
from torra.jobs import asking
from torra.jobs.worker import Worker
from torra.store import jobs as job_table
from torra.store import streams as stream_table
from torra.store.envelopes import DESK_STREAM
from torra.trading.commanding import COMMAND_LINE


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    found, _ = wiring.open_desk(tmp_path, KINDS)
    found.open()
    found.start()
    yield found
    found.close()


def ask(database: Database, home: Path, **asked: Any) -> int:
    done = asking.ask(database, home, SCRIPTED, {"name": "a", **asked}, COMMAND_LINE)
    return int(done.document["id"])


def state(database: Database, number: int) -> str:
    row = job_table.job(database, number)
    return str(row["state"]) if row else ""


@pytest.mark.journey
def test_a_desk_does_a_job_and_its_stream_tells(desk: Desk, tmp_path: Path) -> None:
    number = ask(desk.database, tmp_path, steps=2)
    until(lambda: state(desk.database, number) == "done", 20.0)

    def told() -> list[dict[str, Any]]:
        rows = stream_table.events_after(desk.database, DESK_STREAM, 0, 1000)
        changes = (json.loads(row.payload) for row in rows)
        return [one for one in changes if one["what"] == "jobs" and one.get("job") == str(number)]

    until(lambda: any(one["state"] == "done" for one in told()))
    assert {one["state"] for one in told()} <= {"running", "done"}


@pytest.mark.journey
def test_a_desk_that_ends_lays_its_job_back_and_the_next_one_does_it(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = ask(desk.database, tmp_path, how="long once", steps=30, seconds=0.1)
    until(lambda: notes(tmp_path, "a", "begin"), 20.0)
    child = int(notes(tmp_path, "a", "begin")[0].split()[1])
    assert desk.close()
    assert not alive(child)
    shown = torra(tmp_path, "jobs")
    assert "retrying" in shown.stdout and "waits for `torra run`" in shown.stdout
    monkeypatch.setitem(vars(Worker)["__init__"].__kwdefaults__, "retry_seconds", 0.2)
    following, _ = wiring.open_desk(tmp_path, KINDS)
    try:
        following.open()
        following.start()
        until(lambda: state(following.database, number) == "done", 30.0)
        row = job_table.job(following.database, number)
        assert row is not None and row["attempt"] == 1
    finally:
        following.close()


@pytest.mark.journey
def test_the_command_lists_and_cancels(desk: Desk, tmp_path: Path) -> None:
    number = ask(desk.database, tmp_path, steps=100_000, seconds=0.1)
    until(lambda: (job_table.job(desk.database, number) or {})["stage"] == "works", 20.0)
    told = json.loads(torra(tmp_path, "jobs", "--json").stdout)
    assert told["desk_runs"] and told["jobs"][0]["state"] == "running"
    assert "1  running      heavy  scripted a  works 0 %" in torra(tmp_path, "jobs").stdout
    answer = torra(tmp_path, "jobs", "--cancel", str(number))
    assert answer.stdout == ("The job 1 is told to stop. Its desk stops it within two seconds.\n")
    until(lambda: state(desk.database, number) == "cancelled", 10.0)
    again = torra(tmp_path, "jobs", "--cancel", str(number))
    assert again.exit_code == 2
    assert again.stderr == "torra: the job 1 has ended already: it is cancelled\n"


def test_a_home_without_a_database_stays_without_one(tmp_path: Path) -> None:
    assert torra(tmp_path, "jobs").stdout.startswith("No job yet")
    answer = torra(tmp_path, "jobs", "--cancel", "1")
    assert answer.exit_code == 2 and "no desk has run in" in answer.stderr
    assert list(tmp_path.iterdir()) == []
