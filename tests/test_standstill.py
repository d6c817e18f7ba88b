"""A test is run again when the machine stood still, and for no other reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import standstill
from tests.standstill import AGAIN, FILES, TESTS, TRIES, Standstill


def test_the_files_are_there() -> None:
    assert [name for name in sorted(FILES) if not (TESTS / name).is_file()] == []


class Hooks:
    """What pytest is told of a test."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def pytest_runtest_logstart(self, **_: Any) -> None:
        self.told.append("start")

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.told.append("failed" if report.failed else "passed")

    def pytest_runtest_logfinish(self, **_: Any) -> None:
        self.told.append("finish")


def an_item(name: str) -> Any:
    return SimpleNamespace(
        path=TESTS / name,
        nodeid=f"tests/{name}::it",
        location=(),
        ihook=Hooks(),
        user_properties=[],
    )


@pytest.mark.parametrize(
    ("outcomes", "stood", "runs", "told"),
    [
        ([True], 9.0, 1, "passed"),
        ([False, True], 0.0, 1, "failed"),
        ([False, True], 9.0, 2, "passed"),
        ([False, False, True], 9.0, 3, "passed"),
        ([False] * 9, 9.0, TRIES, "failed"),
    ],
    ids=["passes", "fails", "stood still", "stood still twice", "always fails"],
)
def test_when_a_test_is_run_again(
    outcomes: list[bool], stood: float, runs: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[object] = []

    def one_run(item: object, **_: object) -> list[Any]:
        ran.append(item)
        return [SimpleNamespace(failed=not outcomes[len(ran) - 1])]

    monkeypatch.setattr(standstill, "runtestprotocol", one_run)
    plugin, item = Standstill(), an_item("test_deadline.py")
    plugin.watch = SimpleNamespace(since=lambda _begin: stood)  # type: ignore[assignment]
    assert plugin.pytest_runtest_protocol(item, None) is True
    assert len(ran) == runs
    assert item.ihook.told == ["start", told, "finish"]
    held_up = [("seen", f"{AGAIN}tests/test_deadline.py::it (9.0 s)")]
    assert item.user_properties == (held_up if stood and not outcomes[0] else [])


@pytest.mark.parametrize("path", [TESTS / "test_scores.py", Path("/elsewhere/test_deadline.py")])
def test_other_tests_are_left_to_pytest(path: Path) -> None:
    assert Standstill().pytest_runtest_protocol(SimpleNamespace(path=path), None) is None  # type: ignore[arg-type]


STOPPED = """
import sys, time
sys.path.insert(0, sys.argv[1])
from tests.standstill import Watch
watch, begin = Watch(), time.monotonic()
print(watch.since(begin), flush=True)
input()
print(watch.since(begin), flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")
def test_a_process_that_was_stopped_knows_it() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(TESTS.parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        before = float(process.stdout.readline())
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(0.7)
        os.kill(process.pid, signal.SIGCONT)
        after = float(process.communicate("\n")[0])
    assert after - before >= 0.5
