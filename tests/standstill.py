"""Tests that count real seconds are run again when the machine itself stood still meanwhile.

The tests of `FILES` assert on what they measure by the clock: a deadline that was kept, a wait that
ended. A virtual machine may get no processor for many seconds, or a garbage collection hold the
whole process, and such a test fails then without a fault. A thread that sleeps for a moment at a
time sees it. A test that failed is run again, with new fixtures, at most `TRIES` times in all, and
only if its process was not run for longer than `LEAST` seconds meanwhile: one that fails on a
machine that runs has failed. What was run again stands in the summary and in the properties of the
test.
"""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread
from typing import Final

import pytest
from _pytest.reports import TestReport
from _pytest.runner import runtestprotocol

TESTS: Final = Path(__file__).parent
FILES: Final = frozenset(
    {
        "faults/test_all_fail.py",
        "faults/test_clock_jumps.py",
        "faults/test_double_start.py",
        "faults/test_feeds.py",
        "faults/test_hung_share.py",
        "faults/test_locked_database.py",
        "faults/test_scheduling.py",
        "faults/test_stopped_process.py",
        "faults/test_toxics.py",
        "test_browser.py",
        "test_browser_orders.py",
        "test_browser_shell.py",
        "test_browser_tour.py",
        "test_canaries.py",
        "test_courier.py",
        "test_deadline.py",
        "test_desk_agents.py",
        "test_desk_faults.py",
        "test_failure_ladder.py",
        "test_full_desk_failures.py",
        "test_late_answers.py",
        "test_ledger.py",
        "test_memory_store.py",
        "test_outlook.py",
        "test_pruning.py",
        "test_routing.py",
        "test_second_look.py",
        "test_shutdown.py",
        "test_stream_storm.py",
        "test_streaming.py",
        "test_switchboard.py",
        "test_symbol_databases.py",
        "test_tick.py",
        "test_two_desks.py",
        "test_vendor_faults.py",
        "test_vendor_secrets.py",
        "test_vendor_wire.py",
        "test_watch_page.py",
        "test_wiring.py",
    }
)
"""The files of such tests, below tests/."""

TRIES: Final = 3
"""How often a test is run at most."""

STEP: Final = 0.05
"""Seconds between two looks at the clock."""

LEAST: Final = 0.25
"""Seconds of standing still that count: half of the 0.5 s that most of such tests allow."""

AGAIN: Final = "run again, as the machine stood still: "


def counts_seconds(path: Path) -> bool:
    """Tell whether the tests of a file may be run again."""
    return path.is_relative_to(TESTS) and path.relative_to(TESTS).as_posix() in FILES


class Watch:
    """Remembers when this process was not run, by looking at the clock all the time."""

    def __init__(self) -> None:
        self._stood: list[tuple[float, float]] = []
        Thread(target=self._look, name="standstill", daemon=True).start()

    def since(self, begin: float) -> float:
        """Return the seconds of all that it was not run for, from a moment of the clock on."""
        time.sleep(2 * STEP)  # what goes on now is told as well
        return sum(seconds for end, seconds in tuple(self._stood) if end >= begin)

    def _look(self) -> None:
        while True:
            begin = time.monotonic()
            time.sleep(STEP)
            end = time.monotonic()
            if end - begin - STEP > LEAST:
                self._stood.append((end, end - begin - STEP))


class Standstill:
    """The plugin of pytest."""

    def __init__(self) -> None:
        self.watch: Watch | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run a test of `FILES`, again where it failed on a machine that stood still."""
        if not counts_seconds(item.path):
            return None
        self.watch = self.watch or Watch()
        reports: list[TestReport] = []
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for _ in range(TRIES):
            begin = time.monotonic()
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            if not any(report.failed for report in reports):
                break
            stood = self.watch.since(begin)
            if not stood:
                break
            item.user_properties[:] = [("seen", f"{AGAIN}{item.nodeid} ({stood:.1f} s)")]
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what was run again."""
        reports = [one for some in terminalreporter.stats.values() for one in some]
        told = {
            value
            for report in reports
            for name, value in getattr(report, "user_properties", ())
            if name == "seen" and value.startswith(AGAIN)
        }
        for line in sorted(told):
            terminalreporter.write_line(line)
