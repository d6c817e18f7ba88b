"""However a desk is started, and however often, one works and every other one is refused (T5).

A start is eight processes: a reloader and its child, four workers forked from a parent that had
made its desk before, and two shells. All but one end with a line. A storm is two keepers that start
their desk again at once whenever it ends, and it is killed all the time. Then real programs: `torra
run`, `torra run --wait`, and what lies between them.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from tests.faults import kills, lives
from tests.tries import until
from tests.worlds import desks
from torra.clock import Scaled, parse
from torra.config import ROOT
from torra.desk.schedule import Desk
from torra.desk_lock import DeskLock, is_locked
from torra.errors import ConfigError
from torra.home import DESK_LOCK
from torra.jobs import asking
from torra.replay.job_kinds import REPLAY
from torra.services import Service, Services
from torra.store import jobs as job_table
from torra.trading.commanding import COMMAND_LINE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

START_SECONDS = 10.0
"""Seconds after a kill within which the one that waits works (T5)."""

RATE = 1800.0


class Processes:
    """Processes on one home; each leaves a mark while it works."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.marks = folder, folder / "marks"
        self.marks.mkdir(parents=True)
        self.database = desks.open_database(folder)
        self.alive: list[BaseProcess] = []

    def start(self, desk: Desk | None = None) -> None:
        """Fork a process that lives as a desk that was made before, or that it makes itself."""
        self.alive.append(kills.begin(partial(self.work, desk)))

    def start_eight(self) -> None:
        """Start a reloader and its child, four workers and two shells."""
        preloaded = self.made()
        preloaded.database.close()
        for worker in (False, False, True, True, True, True, False, False):
            self.start(preloaded if worker else None)

    def made(self) -> Desk:
        """Return a desk that is not open yet."""
        desk = desks.open_desk(
            self.folder, make_clock=lambda stood: Scaled(stood or desks.START, RATE)
        )
        desk.services = Services(Service("mark", 3600.0, self.touch, at_once=True))
        return desk

    def touch(self) -> None:
        """Say that this process works."""
        (self.marks / str(os.getpid())).touch()

    def work(self, made: Desk | None) -> None:
        """Live as `torra run` does, until somebody kills it; end at once where it is refused.

        The connection is the process's own: SQLite's may not be carried across a fork.
        """
        desk = made or self.made()
        desk.roster.database = desks.open_database(self.folder)
        with suppress(ConfigError):
            desk.open()
            desk.start()
            time.sleep(120.0)

    def working(self) -> list[BaseProcess]:
        """Return the processes that work, of those that live."""
        return [one for one in self.alive if (self.marks / str(one.pid)).exists()]

    def kill(self, process: BaseProcess) -> None:
        process.kill()
        process.join()
        self.alive.remove(process)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return list(self.database.connection().query(sql))

    def done(self) -> int:
        return int(self.rows("select count(*) as n from ticks where state = 'done'")[0]["n"])

    def ticked(self, least: int) -> bool:
        return self.done() >= least

    def twins(self) -> list[dict[str, Any]]:
        """Return ticks with two scores, or none."""
        found = self.rows("select count(*) as n, count(distinct torra_key) as d from sentiment")
        return [row for row in found if not row["n"] == row["d"] == self.done()]

    def without_row(self) -> set[tuple[str, datetime]]:
        """Return the closes up to the newest that is done which have no row, none once it is whole.

        A stream owes nothing from before its first row: on a busy machine it begins late.
        """
        ticks = self.rows("select * from ticks")
        upto = max(parse(row["close_time"]) for row in ticks if row["state"] == "done")
        there = {(row["timeframe"], parse(row["bar_time"])) for row in ticks}
        begins = {name: min(bar for of, bar in there if of == name) for name, _ in there}
        closes = desks.closes_of(desks.BTC, desks.START, upto)
        return {(name, bar) for name, bar in closes if bar >= begins[name]} - there

    def streams(self) -> int:
        """Return how many timeframes have a tick that is done."""
        sql = "select count(distinct timeframe) as n from ticks where state = 'done'"
        return int(self.rows(sql)[0]["n"])

    def end(self) -> None:
        for process in list(self.alive):
            self.kill(process)
        self.database.close()


@pytest.mark.journey
@pytest.mark.timeout(1800)
def test_of_eight_processes_one_works_and_the_others_end(
    tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    """(T5) After a kill the next start works at once, with every claim of the dead."""
    desks.sample()
    starts = scaled(100, least=3)
    for number in range(starts):
        start = Processes(tmp_path / str(number))
        try:
            start.start_eight()
            until(partial(start.ticked, 2), 30, "somebody ticks")
            ended = [one for one in start.alive if one not in start.working()]
            for process in ended:
                process.join(20)
            assert [one.exitcode for one in ended] == [0] * 7, "all but one are refused"
            (leader,) = start.working()
            start.kill(leader)
            assert not is_locked(start.folder)
            done = start.done()
            start.start()
            until(partial(start.ticked, done + 1), 30, "the next one ticks")
            assert not start.twins()
        finally:
            start.end()
    record_property("seen", f"{starts} starts of 8 processes, one works, seven are refused")


def storm(folder: Path, deaths: int, dice: random.Random) -> Processes:
    """Kill one of two desks again and again, at work or not, and start it anew; return the two."""
    two = Processes(folder)
    two.start()
    # A stream without a tick begins with its newest close, whoever holds the desk then.
    until(lambda: two.streams() == len(desks.BTC.timeframes), 60, "both streams have begun")
    for _ in range(deaths):
        time.sleep(dice.uniform(0.0, 0.6))
        for process in list(two.alive):
            if not process.is_alive():
                two.kill(process)  # it was refused
        if two.alive:
            two.kill(dice.choice(two.alive))
        for _ in range(2 - len(two.alive)):
            two.start()
        assert len(two.working()) <= 1
    if not any(process.is_alive() for process in two.alive):
        two.start()
    done = two.done()
    until(lambda: two.done() >= done + 3, 60, "the storm is over")
    until(lambda: not two.without_row(), 20, "every close has its row")
    return two


@pytest.mark.timeout(900)
def test_a_storm_of_restarts_loses_no_close_and_doubles_none(
    tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    """(T5, D1) However they die, what a dead desk left is done by the next."""
    desks.sample()
    deaths = scaled(200, least=4)
    two = storm(tmp_path, deaths, random.Random(20261122))
    try:
        assert not two.twins()
        ticks = two.done()
    finally:
        two.end()
    lives.DESKS["paper"].whole(tmp_path)
    record_property("seen", f"{deaths:,} deaths of two desks with {ticks:,} ticks")


# --- the program itself ---------------------------------------------------------------------------

MONTHS = {
    "symbol": "BTCUSD", "bars": "sample", "from": "2021-11-15", "to": "2022-01-15",
    "arms": "l1,budget",
}  # fmt: skip
"""A replay that takes a while, in processes of its own."""

TORRA = "from torra.commands.command_line import main; main()"


@contextmanager
def torra_run(home: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start `torra run` without pages; it is killed in the end."""
    program = (sys.executable, "-c", TORRA, "--home", str(home), "run", "--no-pages", *words)
    pipe = subprocess.PIPE
    with subprocess.Popen(program, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def runs(home: Path) -> int | None:
    """Return the process of the newest desk that gave a sign of life; None before there is one."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(home / "torra.db")) as database:
        row = database.execute("select process from desk_run where desk_time <> ''").fetchone()
        return int(row[0]) if row else None
    return None


def awaits(process: subprocess.Popen[str], home: Path) -> None:
    until(lambda: runs(home) == process.pid, 60, "the desk works")


def contents(home: Path) -> dict[str, Any]:
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(home.rglob("*"))
        if not path.name.endswith("-shm")  # which every reader maps
    }


@pytest.mark.journey
def test_a_second_desk_is_refused_in_a_line_and_changes_nothing(tmp_path: Path) -> None:
    """(T5, T6) The first one is stopped after its first scan, so nothing changes by itself."""
    home = tmp_path / "home"
    with torra_run(home) as first:
        awaits(first, home)
        with closing(desks.open_database(home)) as database:
            until(lambda: (job_table.job(database, 1) or {"state": ""})["state"] == "done", 60)
        os.kill(first.pid, signal.SIGSTOP)
        before = contents(home)
        with torra_run(home) as second:
            said, wrong = second.communicate(timeout=60)
        assert second.returncode == 2 and said == ""
        assert wrong.count("\n") == 1
        assert f"another desk (process {first.pid}, since 20" in wrong
        assert f"works on {home}: end it, or start this one with `torra run --wait`" in wrong
        assert contents(home) == before


@pytest.mark.journey
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["ends", "is killed"])
def test_who_waits_works_soon_after_the_first_one_ends(
    tmp_path: Path, how: signal.Signals, record_property: Any
) -> None:
    """(T5) Also beside a replay with processes of its own: none of them keeps the lock."""
    home = tmp_path / "home"
    with torra_run(home) as first:
        awaits(first, home)
        with torra_run(home, "--wait") as second:
            assert second.stdout is not None
            told = second.stdout.readline()
            assert told == (
                f"Another desk works on {home}: this one waits for its end. Ctrl-C ends it.\n"
            )
            with closing(desks.open_database(home)) as database:
                job = asking.ask(database, home, REPLAY, MONTHS, COMMAND_LINE).document["id"]
                until(lambda: (job_table.job(database, job) or {})["stage"] == "runs the ticks", 60)
            os.kill(first.pid, how)
            took = until(lambda: runs(home) == second.pid, 60, "the one that waited works")
            second.terminate()
            assert second.wait(20) == 0
    assert took <= START_SECONDS
    record_property("seen", f"{took:.1f} s from the end of one desk to the work of the next")


@pytest.mark.journey
def test_who_waits_ends_in_order_when_told_to(tmp_path: Path) -> None:
    lock = DeskLock(tmp_path)
    assert lock.acquire()
    with torra_run(tmp_path, "--wait") as waiting:
        assert waiting.stdout is not None and "waits for its end" in waiting.stdout.readline()
        waiting.terminate()
        assert waiting.wait(20) == 0
    assert [path.name for path in tmp_path.iterdir()] == [DESK_LOCK]
    lock.release()


@pytest.mark.journey
def test_a_desk_whose_lock_was_deleted_and_taken_ends_with_a_line(tmp_path: Path) -> None:
    """(T6) Nobody else has it: it is locked anew. Another desk has: this one ends, code 2."""
    home = tmp_path / "home"
    with torra_run(home) as first:
        awaits(first, home)
        (home / DESK_LOCK).unlink()
        until(lambda: is_locked(home), 20, "it is locked anew")
        os.kill(first.pid, signal.SIGSTOP)
        (home / DESK_LOCK).unlink()
        with torra_run(home) as second:
            awaits(second, home)
            os.kill(first.pid, signal.SIGCONT)
            _, wrong = first.communicate(timeout=60)
            assert first.returncode == 2
            last = wrong.strip().splitlines()[-1]
            assert f"another desk (process {second.pid}, since" in last and "was deleted" in last
            assert runs(home) == second.pid and second.poll() is None
