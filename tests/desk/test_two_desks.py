"""Two desks on one database: one works, one stands by, and takes over soon after a kill.

With a desk's own lease, whose end takes seconds: by night. By day the same stands in
tests/faults/test_double_start.py, with a lease of a tenth.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from tests.tries import until
from tests.worlds import desks
from torra.clock import Scaled, iso

TAKEOVER = 10.0
"""Seconds after a kill within which the other desk must hold the lease."""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


def life(folder: str) -> None:
    """A desk as `torra run` lives it, without pages and warm-up."""
    desk = desks.open_desk(
        Path(folder), make_clock=lambda stood: Scaled(stood or desks.START, rate=900.0)
    )
    desk.open()
    desk.start()
    time.sleep(120)


def start(folder: Path) -> multiprocessing.process.BaseProcess:
    context = multiprocessing.get_context("fork")
    process = context.Process(target=life, args=(str(folder),), daemon=True)
    process.start()
    return process


@pytest.mark.nightly
def test_the_second_desk_stands_by_and_takes_over(tmp_path: Path) -> None:
    desks.sample()
    database = desks.open_database(tmp_path)

    def holder() -> str:
        lease = database.lease()
        return str(lease["owner"]) if lease else ""

    def done() -> int:
        sql = "select count(*) as n from ticks where state = 'done'"
        return int(next(iter(database.connection().query(sql)))["n"])

    first = start(tmp_path)
    until(lambda: holder() != "", 10, "the first desk holds the lease")
    owner = holder()
    second = start(tmp_path)
    try:
        until(lambda: done() >= 2, 20, "the first desk ticks")
        assert holder() == owner, "the second desk must stand by"
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        first.join()
        before = done()
        taken = until(lambda: holder() not in ("", owner), TAKEOVER, "take-over")
        print(f"take-over after {taken:.1f} s")
        until(lambda: done() > before, 20, "the second desk ticks")
    finally:
        for process in (first, second):
            if process.is_alive():
                process.kill()
            process.join()
    sql = "select epoch, count(*) as n from ticks where state='done' group by epoch"
    epochs = list(database.connection().query(sql))
    assert len(epochs) == 2, epochs
    assert iso(database.desk_time()) > iso(desks.START)
    database.close()
