"""A committee's stream has one end, whoever ends its job; no call follows a lost token."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from instance_database import Database
from tests.committee.test_deciding import voting
from tests.committee.test_events import check
from tests.doubles import vendor_line
from tests.doubles.committee_work import SCRIPTED
from tests.doubles.vendor_server import OPENAI, Status, VendorServer
from tests.doubles.visitors import open_app
from tests.tries import until
from tests.worlds import cards as made_up
from tests.worlds import desks, stores
from tests.worlds.demo_view import ScriptedView
from tests.worlds.jobs import turned
from torra.clock import System
from torra.commands.command_line import main
from torra.committee import debate, job
from torra.committee.deciding import CommitteeError
from torra.committee.events import KIND, CommitteeStream
from torra.committee.example import SYMBOL, example_desk
from torra.config import DeskSettings
from torra.dashboard.doors import access_file
from torra.dashboard.view.backing import PageContext
from torra.jobs import asking
from torra.jobs import worker as worker_module
from torra.jobs.at_home import run_at_home
from torra.jobs.kinds import JobRequest, Parameters, by_name, key_of
from torra.jobs.process import Bounds
from torra.jobs.worker import Worker
from torra.store import jobs as job_table
from torra.store import streams as stream_table
from torra.store.audit import has_asker
from torra.store.envelopes import envelope
from torra.trading import commanding
from torra.trading.commanding import COMMAND_LINE, Actor

ASKED: Final[Parameters] = {
    "symbol": SYMBOL, "risk": "balanced", "again": "", "as_of": "", "hindsight": "",
}  # fmt: skip
ANNA: Final = Actor("Anna:token:approve")
CALLS: Final = 6


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(desks.open_database(tmp_path)) as found:
        yield found


@pytest.fixture(scope="module")
def server() -> Iterator[VendorServer]:
    with VendorServer() as found:
        yield found


Sit = Callable[[], Any]


@pytest.fixture
def sit(
    database: Database, tmp_path: Path, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sit]:
    """Do the job of a committee on the invented company in this process, with models."""
    for name, value in vendor_line.environment(server).items():
        monkeypatch.setenv(name, value)
    with example_desk() as reader:
        agents = vendor_line.agents(OPENAI)
        reader.profiles[SYMBOL] = reader.profiles[SYMBOL].model_copy(update={"agents": agents})
        opened = partial(_opened, (lambda: reader, database))
        monkeypatch.setattr("torra.tools.desk_reader.reading", opened)
        yield lambda: job.run(tmp_path, ASKED, lambda *_: None)


class _opened:  # noqa: N801 - a context manager in the place of `reading`
    def __init__(self, both: Any, _: Path) -> None:
        self.both = both

    def __enter__(self) -> Any:
        return self.both

    def __exit__(self, *_: object) -> None:
        """The fixture closes."""


def ask(database: Database, home: Path, person: Actor = ANNA) -> int:
    """Queue the job and let it run; return its number."""
    kind = job.COMMITTEE
    asked = JobRequest(ASKED, ASKED, SYMBOL)
    kind = type(kind)(kind.name, kind.title, lambda *_: asked, kind.work, light=True)
    number = int(asking.ask(database, home, kind, ASKED, person).document["id"])
    job_table.begin_job(database, number, "queued")
    return number


def told(database: Database) -> list[dict[str, Any]]:
    """Return the events of the one stream that there is."""
    [stream_id] = database.column("SELECT stream_id FROM streams")
    rows = stream_table.events_after(database, stream_id, 0, 1_000)
    return [
        envelope(
            stream_id, KIND, row.seq, row.event, json.loads(row.payload),
            terminal=bool(row.terminal),
        )
        for row in rows
    ]  # fmt: skip


def end(database: Database) -> dict[str, Any]:
    """Return the one end of the stream, which holds to its schema."""
    found = told(database)
    check(found)
    return {name: found[-1]["payload"].get(name) for name in ("code", "recoverable")}


# --- who asked ------------------------------------------------------------------------------------


def command(home: Path, *words: str) -> None:
    done = CliRunner().invoke(main, ["--home", str(home), "token", *words])
    assert done.exit_code == 0, done.output


LOSSES: Final = {
    "revoked": [["--revoke", "anna"]],
    "all new": [["--new"]],
    "less": [["--revoke", "Anna"], ["--name", "Anna", "--scope", "read"]],
}


@pytest.mark.parametrize("before", range(1, CALLS + 2))
def test_no_call_follows_the_loss_of_the_token(
    sit: Sit, database: Database, tmp_path: Path, server: VendorServer, before: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    access_file.name_person(tmp_path, "Anna", "approve")
    ask(database, tmp_path)
    looks, lock = 0, threading.Lock()

    def looked(*words: Any) -> bool:
        nonlocal looks
        with lock:
            looks += 1
            if looks == before:
                for line in [*LOSSES.values()][before % len(LOSSES)]:
                    command(tmp_path, *line)
            return has_asker(*words)

    monkeypatch.setattr(job, "has_asker", looked)
    server.play({"*": partial(voting, {}, [])})
    with pytest.raises(CommitteeError, match="UNAUTHORIZED: the token that asked"):
        sit()
    assert len(server.exchanges) == before - 1
    assert end(database) == {"code": "UNAUTHORIZED", "recoverable": False}
    assert not database.column("SELECT card_id FROM cards")


@pytest.mark.parametrize(
    ("person", "lines", "right"),
    [
        (ANNA, [], True),
        (ANNA, [["--revoke", "Bert"]], True),
        (ANNA, [["--revoke", "ANNA"]], False),
        (ANNA, [["--revoke", "Anna"], ["--name", "Anna"]], False),
        (Actor("Anna:4f2a9c:approve"), [["--revoke", "Anna"]], False),
        (Actor("token:approve"), [["--revoke", "Anna"]], True),
        (Actor("token:approve"), [["--new"]], False),
        (Actor("session:4f2a9c:admin"), [["--new"]], False),
        (COMMAND_LINE, [["--new"]], True),
    ],
)
def test_the_right_is_that_of_the_token_of_then(
    database: Database, tmp_path: Path, person: Actor, lines: list[list[str]], right: bool
) -> None:
    command(tmp_path, "--new")  # what ended before counts for nothing
    for name in ("Anna", "Bert"):
        access_file.name_person(tmp_path, name, "approve")
    number = ask(database, tmp_path, person)
    for line in lines:
        command(tmp_path, *line)
    assert has_asker(database, number) == right
    assert has_asker(database, number + 1), "a job that nobody asked for"
    ask(database, tmp_path, Actor("Bert:token:approve"))
    assert has_asker(database, number), "the same request of another person"


# --- who ends -------------------------------------------------------------------------------------


def test_a_job_that_ends_at_any_event_ends_its_stream(
    sit: Sit, database: Database, tmp_path: Path, server: VendorServer
) -> None:
    """While it runs or waits for its second attempt; what its process tells then is lost."""
    server.play({"*": partial(voting, {}, [])})
    sit()
    events = told(database)[:-1]
    card = made_up.stored(database)
    key = key_of(job.COMMITTEE, ASKED)
    for number in range(1, len(events) + 1):
        database.change("DELETE FROM streams")
        database.change("DELETE FROM stream_events")
        row = ask(database, tmp_path)
        stream = CommitteeStream(database, key)
        for one in events[:number]:
            stream.tell(one["event"], **one["payload"])
        if number % 2:
            job_table.lay_job_back(database, row, "")
            asking.cancel(commanding.context_of(tmp_path, database), COMMAND_LINE, row)
        else:
            job_table.end_job(database, row, "running", "cancelled", "Cancelled by a person.")
        for one in events[number:]:
            stream.tell(one["event"], **one["payload"])
        stream.decision(card)
        assert end(database) == {"code": "CANCELLED", "recoverable": True}
        assert len(told(database)) == number + 1


@pytest.fixture
def worker(database: Database, tmp_path: Path) -> Iterator[Worker]:
    bounds = Bounds(patience=30.0)
    found = Worker(database, tmp_path, by_name(SCRIPTED), retry_seconds=0.1, bounds=bounds)
    yield found
    found.close()


def follow(database: Database, home: Path, number: int) -> list[str]:
    """Read the stream of a job over HTTP to the end of the answer; return the names of events."""
    backing = PageContext(home, database, DeskSettings(), None, environment={})
    client = open_app(ScriptedView(), scope="read", backing=backing).test_client()
    answer = client.get(f"/api/v1/committee/{number}/stream")
    assert answer.status_code == 200
    return [line[7:] for line in answer.text.split("\n") if line.startswith("event: ")]


def test_a_job_has_no_stream_before_it_sits_though_one_like_it_had(
    database: Database, tmp_path: Path
) -> None:
    first = ask(database, tmp_path)
    key = key_of(job.COMMITTEE, ASKED)
    CommitteeStream(database, key).decision(made_up.stored(database))
    job_table.end_job(database, first, "running", "done", "It is decided.")
    second = ask(database, tmp_path)
    backing = PageContext(tmp_path, database, DeskSettings(), None, environment={})
    client = open_app(ScriptedView(), scope="read", backing=backing).test_client()
    assert follow(database, tmp_path, first) == ["decision"]
    assert client.get(f"/api/v1/committee/{second}/stream").status_code == 404
    assert CommitteeStream(database, key).id != f"committee-{first}"


def test_a_command_does_the_job_that_waits_for_a_desk_in_its_own_stream(
    database: Database, tmp_path: Path
) -> None:
    """One job, one stream, one end, whoever asked first; the next desk has nothing to do."""
    asked: Parameters = {"how": ""}
    number = asking.ask(database, tmp_path, SCRIPTED, asked, ANNA).document["id"]
    access_file.name_person(tmp_path, "Anna", "approve")
    command(tmp_path, "--revoke", "Anna")
    assert not has_asker(database, number)
    assert run_at_home(tmp_path, SCRIPTED, asked) == "a card"
    assert (job_table.job(database, number) or {})["state"] == "done"
    assert has_asker(database, number), "the command line asks too"
    assert follow(database, tmp_path, number) == ["agent_start", "agent_start", "decision"]
    run_at_home(tmp_path, SCRIPTED, asked)
    streams = database.column("SELECT stream_id FROM streams ORDER BY at")
    assert len(streams) == 2 and streams[0] == f"committee-{number}"


@pytest.mark.parametrize(
    ("how", "code"), [("cancel", "CANCELLED"), ("late", "TIMEOUT"), ("die", "LOST")]
)
def test_who_reads_the_stream_of_a_job_that_is_ended_comes_to_its_end(
    database: Database, tmp_path: Path, worker: Worker, monkeypatch: pytest.MonkeyPatch,
    how: str, code: str,
) -> None:  # fmt: skip
    asked = {"how": "die"} if how == "die" else {}
    number = asking.ask(database, tmp_path, SCRIPTED, asked, COMMAND_LINE).document["id"]
    turned(database, worker, number, state="running")
    until(lambda: database.column("SELECT stream_id FROM streams"), 60.0)
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(follow, database, tmp_path, number)
        if how == "late":
            monkeypatch.setattr(worker_module, "LIGHT_SECONDS", 0.0)
        elif how == "cancel":
            asking.cancel(commanding.context_of(tmp_path, database), COMMAND_LINE, number)
        turned(database, worker, number, state="cancelled" if how == "cancel" else "error")
        names = reader.result(60.0)
    attempts = 2 if how == "die" else 1
    assert names[-1] == "error" and names.count("error") == 1
    assert len(names) <= 2 * attempts + 1
    assert end(database) == {"code": code, "recoverable": True}


def test_a_desk_that_is_stopped_leaves_the_stream_to_the_next_which_ends_it(
    database: Database, tmp_path: Path, worker: Worker
) -> None:
    number = asking.ask(database, tmp_path, SCRIPTED, {}, COMMAND_LINE).document["id"]
    turned(database, worker, number, state="running")
    until(lambda: len(database.column("SELECT seq FROM stream_events")) == 2, 60.0)
    worker.shut()
    assert (job_table.job(database, number) or {})["state"] == "retrying"
    assert stream_table.orphans(database, "the next desk") == []
    (tmp_path / "go on").touch()
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(follow, database, tmp_path, number)
        following = Worker(database, tmp_path, by_name(SCRIPTED), retry_seconds=0.1)
        turned(database, following, number, state="done")
        following.close()
        names = reader.result(60.0)
    assert names == [*["agent_start"] * 4, "decision"]
    check(told(database))


# --- attempts and clocks --------------------------------------------------------------------------


@pytest.mark.parametrize("calls", range(CALLS + 1))
def test_a_second_attempt_after_the_clock_jumped_back_goes_on_and_pays_no_call_twice(
    sit: Sit, database: Database, tmp_path: Path, server: VendorServer, calls: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The first attempt ends after so many votes; the stream of a day before is no part of it."""
    key, clock = key_of(job.COMMITTEE, ASKED), stores.Hand(System().real_now())
    monkeypatch.setattr(database, "now", clock)
    old = CommitteeStream(database, key)
    old.error("REFUSED", "It was refused.", recoverable=True)
    clock.pass_by(-timedelta(hours=7).total_seconds())
    lock, votes = threading.Lock(), 0

    def tell(self: CommitteeStream, event: str, **fields: Any) -> None:
        nonlocal votes
        with lock:
            if votes >= calls and event != "committee_start":
                raise SystemError("the process is gone")
            real(self, event, **fields)
            votes += event == "insight_extracted"

    real = CommitteeStream.tell
    asked: list[str] = []
    server.play({"*": partial(voting, {}, asked)})
    with monkeypatch.context() as patch:
        patch.setattr(CommitteeStream, "tell", tell)
        with pytest.raises(SystemError):
            sit()
    clock.pass_by(-timedelta(hours=5).total_seconds())
    asked.clear()
    sit()
    assert len(asked) == CALLS - calls
    database.change("DELETE FROM stream_events WHERE stream_id = ?", old.id)
    database.change("DELETE FROM streams WHERE stream_id = ?", old.id)
    assert end(database) == {"code": None, "recoverable": None}
    assert len(database.column("SELECT card_id FROM cards")) == 1


def test_a_busy_vendor_is_told_of_with_the_seconds_of_the_pause(
    sit: Sit, database: Database, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debate, "PAUSES_S", (0.01, 0.02))
    server.play({"*": partial(voting, {("sentiment", 1): Status(429)}, [])})
    sit()
    found = [one["payload"] for one in told(database) if one["event"] == "thinking"]
    assert found == [
        {"phase": "analysis", "agent": "sentiment", "round": 1, "seconds": seconds}
        for seconds in (0.01, 0.02)
    ]
    check(told(database))
