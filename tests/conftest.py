"""What every test shares: the scale of a run, a cleared environment and a guard on the network.

`scaled(n)` is how a test says its nightly count: `make nightly` passes --nightly and the test runs
n cases, `make test` a fraction of that. What it hands out stands in the test's properties as
`trials`, beside what the test itself says there as `seen` and why `tries` tried something `again`:
`python -m tests.faults.nightly` reads them. Sockets reach the loopback only.
"""

from __future__ import annotations

import gc
import ipaddress
import os
import re
import shutil
import socket
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import pandas as pd
import pytest
from flask import Flask
from hypothesis import settings

from instance_database import Database
from tests import ROOT, longest
from tests.doubles import compiled_rules
from tests.doubles.compiled_templates import CompiledTemplates, NobodyGave
from tests.doubles.lent_browser import lent
from tests.examples import examples
from tests.tries import EXCUSED, Tries, without_full_collections
from tests.worlds import desks
from tests.worlds.made_once import Made, made_once
from tests.worlds.scored_once import Kept, scored_once
from tests.worlds.stores import Hand, open_database
from torra.desk.schedule import Desk
from torra.feeds import bar_file, csv_file, sample
from torra.lessons import recall

pytest_plugins = ("pytester",)

MEMORY: Final = Path("/dev/shm")

ROOM: Final = 2 * 2**30
"""Bytes that must be free there: a run needs about a fifth of that."""

YOUNG: Final = 20_000
"""New objects after which Python looks for garbage: at its own 700 that is a seventh of a run."""

SECRETS = ("API_KEY", "AUTH_TOKEN", "_SECRET", "_BASE_URL", "_PROXY", "_proxy")

LATER: Final = ("journey", "nightly")
"""Marks of what `make test` does not run."""

KEPT_OUT: Final = re.compile("|".join(["^TORRA_", *SECRETS]))
"""Names in the environment that no test sees, but for those that it sets itself."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--scale", type=float, default=0.004, help="share of the nightly counts to run, 0 to 1"
    )
    parser.addoption("--nightly", action="store_true", help="run the nightly counts: --scale 1")
    parser.addoption(
        "--local-llm", action="store_true", help="run ticks with a real language model, for minutes"
    )
    parser.addoption(
        "--longest-first", action="store_true", help="begin with the files that take longest"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Every day the same cases, so that a red suite means a change; fresh ones every night.

    Apps are made by the hundred, and compiling their templates was a fifteenth of a run, compiling
    their rules another.
    """
    compiled_rules.share()
    Flask.jinja_options = {"bytecode_cache": CompiledTemplates(), "undefined": NobodyGave}
    settings.register_profile(
        "daily", derandomize=True, database=None, deadline=None, max_examples=25
    )
    settings.register_profile("nightly", deadline=None, print_blob=True)
    examples.whole = scale_of(config) >= 1.0
    settings.load_profile("nightly" if config.getoption("--nightly") else "daily")
    if not os.environ.get("TMPDIR") and _has_room(MEMORY):
        tempfile.tempdir = str(MEMORY)


def _has_room(memory: Path) -> bool:
    """Tell whether the tests' files may lie in memory: syncs prove nothing where no power is lost.

    A container may have little of it, or let no program run from there.
    """
    if not os.access(memory, os.W_OK | os.X_OK):
        return False
    runs = not os.statvfs(memory).f_flag & os.ST_NOEXEC
    return runs and shutil.disk_usage(memory).free >= ROOM


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage meanwhile: nearly all that is made stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the real language model, and what is for the night, unless it is asked for.

    By day the order of the files that take longest, and of all others, stays as it was drawn; by
    night the longest of all is begun first, for it ends last.
    """
    leave_cases(items)
    if config.getoption("--longest-first"):
        place = longest.places(by_night=scale_of(config) >= 1.0)
        items.sort(key=lambda item: place.get(item.path.relative_to(ROOT).as_posix(), len(place)))
    asleep = {
        "local_llm": "runs a real language model for minutes: make test-local-llm",
        "nightly": "takes too long for a day: make nightly",
    }
    if config.getoption("--local-llm"):
        del asleep["local_llm"]
    if scale_of(config) >= 1.0:
        del asleep["nightly"]
    for item in items:
        for name, reason in asleep.items():
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=reason))


def leave_cases(items: Iterable[pytest.Item]) -> None:
    """Make journeys of the cases that a test of many leaves: the same ones on every machine.

    `by_day(4)` draws four of them, `by_day("hang", "reply")` names them by their ids. What is for
    the night or a journey anyway takes no place. Raises pytest.UsageError.
    """
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("by_day") and not any(map(item.get_closest_marker, LATER)):
            tests[item.nodeid.partition("[")[0]].append(item)
    for test, cases in tests.items():
        for item in set(cases) - set(of_a_day(test, cases)):
            item.add_marker("journey")


def of_a_day(test: str, cases: list[pytest.Item]) -> list[pytest.Item]:
    mark = cases[0].get_closest_marker("by_day")
    match mark.args if mark and not mark.kwargs else ():
        case (int(count),) if count > 0:
            return sorted(cases, key=lambda case: crc32(case.name.encode()))[:count]
        case (str(), *_) as names:
            found = [case for case in cases if case.name.partition("[")[2][:-1] in names]
            # Who asks for single cases has fewer than are named.
            if len(found) == len(names) or len(cases) <= len(names):
                return found
            raise pytest.UsageError(f"{test}: by_day names a case that it does not have")
    raise pytest.UsageError(f"{test}: by_day wants a number of cases, or their names")


def pytest_collection_finish() -> None:
    """Take what lives until the end out of the collector's sight: all the tests there are.

    Else a full collection looks at a million objects that no test made: the suite's process stands
    still for up to 1.2 s. What is garbage by now stays too: a search takes each worker half a
    second.
    """
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell which tests of real seconds a busy machine left untried."""
    excused = [
        (report.nodeid, str(report.longrepr[-1]).partition(EXCUSED)[2].strip())
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and EXCUSED in str(report.longrepr[-1])
    ]
    if excused:
        terminalreporter.section(f"{len(excused)} excused: the machine was too busy")
        for node, reason in excused:
            terminalreporter.line(f"{node}: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Know which test is running, so that what `scaled` hands out stands in its properties.

    No test begins with a key or a setting of this machine, nor with one that another test left.
    """
    Scale.running = item
    for name in filter(KEPT_OUT.search, [*os.environ]):
        del os.environ[name]
    try:
        return (yield)
    finally:
        Scale.running = None


def scale_of(config: pytest.Config) -> float:
    return 1.0 if config.getoption("--nightly") else float(config.getoption("--scale"))


class Scale:
    """Hands out a share of the nightly counts. `whole`: this run takes them as they are."""

    running: pytest.Item | None = None
    """The test that asks: one process runs one at a time."""

    def __init__(self, share: float) -> None:
        self._share = share
        self.whole = share >= 1.0

    def __call__(self, count: int, least: int = 1) -> int:
        """Return how many of `count` nightly cases this run takes, at least `least`."""
        taken = max(least, round(count * self._share))
        if self.running is not None:
            self.running.user_properties.append(("trials", taken))
        return taken


@pytest.fixture(scope="session")
def scaled(request: pytest.FixtureRequest) -> Scale:
    return Scale(scale_of(request.config))


@pytest.fixture
def tries(record_property: Callable[[str, object], None]) -> Iterator[Tries]:
    """What a statement about real seconds is made under: see tests/tries.py."""
    with without_full_collections():
        yield Tries(partial(record_property, "again"))


@pytest.fixture
def hand() -> Hand:
    """The clock of `database`: it stands until a test moves it."""
    return Hand()


@pytest.fixture
def database(tmp_path: Path, hand: Hand) -> Iterator[Database]:
    """A new database of the test's own folder."""
    with closing(open_database(tmp_path, hand)) as opened:
        yield opened


@pytest.fixture
def euro_desk(tmp_path: Path) -> Desk:
    """A desk of the euro alone, which works."""
    return desks.working_desk(tmp_path, (desks.EUR,))


@pytest.fixture(autouse=True, scope="session")
def _house(request: pytest.FixtureRequest) -> None:
    """What holds for all tests: one fixture, because pytest looks after each of them at each test.

    That is a tenth of a millisecond a fixture, for fourteen thousand tests.
    """
    for name in (
        "loopback_only",
        "place_is_kept",
        "sample_is_read_once",
        "bars_are_scored_once",
        "databases_are_made_once",
        "browser_is_lent",
    ):
        request.getfixturevalue(name)


@pytest.fixture(scope="session")
def place_is_kept() -> Iterator[None]:
    """Let no command step back here: all tests after it would stand behind every other process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "nice", lambda _: 0, raising=False)
        yield


@pytest.fixture(scope="session")
def sample_is_read_once() -> Iterator[None]:
    """Let desks and replays share the bars that are shipped; files of a test are read each time."""
    read, read_bars = sample._load, csv_file.read_bars
    shipped, shipped_file = cache(read), cache(read_bars)

    def load(path: Path) -> pd.DataFrame:
        return shipped(path) if path.parent == ROOT / "sample_data" else read(path)

    def of_a_replay(path: Path, *, clock: str | None, most: int) -> pd.DataFrame:
        if path.parent == ROOT / "sample_data":
            return shipped_file(path, clock=clock).copy()
        return read_bars(path, clock=clock, most=most)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "_load", load)
        patch.setattr(bar_file, "read_bars", of_a_replay)
        yield


@pytest.fixture(scope="session")
def bars_are_scored_once(request: pytest.FixtureRequest) -> Iterator[Kept | None]:
    """By day let every desk share what the same bars came to; at night each scores for itself.

    A scorer that a test changes scores anew.
    """
    with nullcontext() if scale_of(request.config) >= 1.0 else scored_once() as kept:
        yield kept


@pytest.fixture(scope="session")
def databases_are_made_once(request: pytest.FixtureRequest) -> Iterator[Made | None]:
    """By day let new databases begin as a copy of one; at night the steps make each of them."""
    with nullcontext() if scale_of(request.config) >= 1.0 else made_once() as made:
        yield made


@pytest.fixture(scope="session")
def browser_is_lent() -> Iterator[None]:
    """Close the browser that the tests of pages borrowed, when the last of all tests is done."""
    yield
    lent.close()


@pytest.fixture(scope="module")
def lessons_come_in_time() -> Iterator[None]:
    """Let lessons be told however late: a machine that stands still must not part two runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall, "SECONDS", 60.0)
        yield


@pytest.fixture(scope="session")
def loopback_only() -> Iterator[None]:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = address[0]
            if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
                raise RuntimeError(f"a test reached for the network: {host}")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield
