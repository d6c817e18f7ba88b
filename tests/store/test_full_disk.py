"""A disk that fills up at any page of a tick halts the desk and damages nothing (promise D6).

The tick of test_halt_points, which sends a signal, runs in a child whose files may not grow beyond
so many pages of the write-ahead log: the first page of the tick fails, then the second, and so on
until the whole tick fits. Every time the rows are whole or not there, nothing is sent that is not
in the books, trading is halted, and with room again the next tick is stored as ever.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import traceback
from pathlib import Path
from typing import Any

import pytest

from tests.trading.test_halt_points import Trading, prepared
from tests.worlds import desks

__all__ = ["prepared"]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and a limit on files")

PAGE = 4096 + 24
"""A page in the write-ahead log, with its header."""

FULL, WHOLE = 0, 10
"""How a child ends: the disk was full on the way, or the tick fitted."""


def rows(trading: Trading, sql: str) -> list[tuple[Any, ...]]:
    return trading.desk.database.connection().execute(sql).fetchall()


def books_are_whole(trading: Trading) -> None:
    done = {row[0] for row in rows(trading, "SELECT instance||'|'||timeframe||'|'||bar_time "
                                            "FROM ticks WHERE state = 'done'")}  # fmt: skip
    for table in ("sentiment", "chains", "journal"):
        keys = [row[0] for row in rows(trading, f"SELECT torra_key FROM {table}")]
        assert len(keys) == len(set(keys))
        assert set(keys) == done, table
    steps = {row[0] for row in rows(trading, "SELECT DISTINCT sid FROM signal_events")}
    assert steps == {row[0] for row in rows(trading, "SELECT sid FROM signals")}
    assert rows(trading, "PRAGMA integrity_check")[0][0] == "ok"


def tick(folder: Path, pages: int) -> int:
    """Run the tick with room for so many pages of the log, then with all the room there is."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    trading = Trading(folder)
    log = folder / "torra.db-wal"
    begun = log.stat().st_size
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (begun + pages * PAGE, hard))
    trading.step()
    trading.courier.turn()
    full = bool(trading.desk.kill_switch.engaged())
    sent = list(trading.bridge.sids)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    trading.courier.turn()
    books_are_whole(trading)
    known = {row[0] for row in rows(trading, "SELECT sid FROM signals")}
    assert set(sent) <= known, "an order went out that no book knows"
    if not full:
        assert len(sent) == 1
        return WHOLE
    assert trading.desk.database.trading_state() == "HALTED"
    assert trading.file.exists()
    before = len(rows(trading, "SELECT 1 FROM ticks WHERE state = 'done'"))
    desks.step(trading.desk)
    assert len(rows(trading, "SELECT 1 FROM ticks WHERE state = 'done'")) > before
    assert trading.bridge.sids == sent, "only a person resumes"
    books_are_whole(trading)
    return FULL


def run(folder: Path, pages: int) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = tick(folder, pages)
        finally:
            if code not in (FULL, WHOLE):
                traceback.print_exc()
            os._exit(code)
    return os.WEXITSTATUS(os.waitpid(pid, 0)[1])


def test_a_disk_that_fills_up_at_any_page_damages_nothing(
    prepared: Path, tmp_path: Path, scaled: Any, record_property: Any
) -> None:
    stride = 300 // scaled(300, least=8)
    pages, failures = 0, 0
    while True:
        folder = tmp_path / str(pages)
        shutil.copytree(prepared, folder)
        end = run(folder, pages)
        assert end in (FULL, WHOLE), f"with room for {pages} pages"
        if end == WHOLE:
            break
        failures += 1
        pages += stride
        assert pages < 1000
    told = f"{failures} full disks, then a tick of at most {pages} pages"
    record_property("seen", told)
    assert failures >= 3
