"""A desk that strangers besiege with silent and slow connections is as reachable as before (V10).

A desk in a process of its own, with as few open files as most systems give one, and a minute of
1,000 silent and 200 slow connections; each that the server ends comes again at once. The daily form
is tests/dashboard/test_silent_connections.py.
"""

from __future__ import annotations

import http.client
import json
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.conftest import Scale
from tests.doubles.strangers import besieged
from tests.tries import Tries
from torra.clock import SAMPLE_RATE, parse
from torra.config import ROOT
from torra.home import ACCESS, DATABASE, PAGES

SIEGE_SECONDS = 60.0
PAGE_SECONDS = 1.0
"""19 of 20 pages take no longer, and the page's halt."""

CLOSE_SECONDS = 900.0 / SAMPLE_RATE
TICK_SECONDS = CLOSE_SECONDS / 2
"""A tick is late when it is not done so long after its close: half of the time to the next one."""

FILES = 1024
PAUSE = 0.2

DESK = """
import resource, sys
from pathlib import Path
from torra.commands import run as running
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), hard))
address = running.PagesAddress("127.0.0.1", 0)
running.run(Path(sys.argv[1]), address, pages=True, say=lambda line: print(line, flush=True))
"""
TORRA = "from torra.commands.command_line import main; main()"


@contextmanager
def running_desk(home: Path) -> Iterator[int]:
    """Yield the port of a desk's pages; the desk runs on the shipped sample."""
    words = [sys.executable, "-c", DESK, str(home), str(FILES)]
    with (home.parent / "desk.log").open("w") as log:
        desk = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert desk.stdout is not None
            assert any("is running" in line for line in desk.stdout), "the desk ended by itself"
            address = json.loads((home / PAGES).read_text())["address"]
            yield int(address.rpartition(":")[2])
            assert desk.poll() is None, "the desk ended in the siege"
        finally:
            desk.terminate()
            desk.communicate(timeout=20)


class Person:
    """Somebody who is logged in with a browser; every request has a connection of its own."""

    def __init__(self, home: Path, port: int) -> None:
        self.port = port
        self.cookie = ""
        self.took: list[float] = []
        token = json.loads((home / ACCESS).read_text())["tokens"]["admin"]
        answer, _ = self.ask("POST", "/login", json.dumps({"token": token}))
        assert answer.status == 200
        self.cookie = answer.getheader("Set-Cookie", "").partition(";")[0]
        found = re.search(r'data-csrf="(\w+)"', self.page())
        assert found
        self.csrf = found[1]

    def ask(
        self, method: str, path: str, body: str | None = None, **named: str
    ) -> tuple[http.client.HTTPResponse, str]:
        """Send one request; return its answer and the text of it."""
        begun = time.monotonic()
        headers = {"Cookie": self.cookie, **named}
        if method == "POST":
            ours = {"Origin": f"http://127.0.0.1:{self.port}", "Sec-Fetch-Site": "same-origin"}
            headers |= {"Content-Type": "application/json", "Accept": "application/json", **ours}
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with closing(asked):
            asked.request(method, path, body, headers)
            answer = asked.getresponse()
            text = answer.read().decode()
        self.took.append(time.monotonic() - begun)
        return answer, text

    def page(self) -> str:
        """Open the overview; return its text."""
        answer, text = self.ask("GET", "/")
        assert answer.status == 200 and "</html>" in text
        return text

    def halt(self) -> float:
        """Press Halt; return the seconds that it took."""
        named = {"X-Torra-CSRF": self.csrf}
        answer, text = self.ask("POST", "/api/v1/halt", json.dumps({"reason": "a siege"}), **named)
        assert answer.status == 200, text
        return self.took.pop()

    @contextmanager
    def following(self) -> Iterator[list[bytes]]:
        """Follow what changes on the desk; yield the lines that came so far."""
        lines: list[bytes] = []
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with closing(asked):
            asked.request("GET", "/api/v1/events", headers={"Cookie": self.cookie})
            answer = asked.getresponse()
            assert answer.status == 200
            over = Event()

            def read() -> None:
                while not over.is_set() and (line := answer.readline()):
                    lines.append(line)

            thread = Thread(target=read, daemon=True)
            thread.start()
            yield lines
            assert thread.is_alive(), "the stream was ended"
            over.set()
            thread.join(30)


def command(home: Path, *words: str) -> float:
    """Run a command in a process of its own; return the seconds that it took."""
    begun = time.monotonic()
    told = [sys.executable, "-c", TORRA, "--home", str(home), *words]
    done = subprocess.run(told, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return time.monotonic() - begun


def rows(home: Path, sql: str, *words: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(home / DATABASE, timeout=30)) as found:
        return found.execute(sql, words).fetchall()


def state(home: Path) -> str:
    """Return the trading state on record."""
    return str(rows(home, "SELECT state FROM desk_state ORDER BY id DESC LIMIT 1")[0][0])


def newest(home: Path) -> str:
    """Return the newest close of which there is a tick."""
    return str(rows(home, "SELECT max(close_time) FROM ticks")[0][0])


def ticks(home: Path, after: str, until: str) -> tuple[set[str], list[float]]:
    """Return how the ticks of some closes ended, and how long after its close each was done.

    Seconds of real time; `until` is the first close that no longer counts.
    """
    found = rows(
        home,
        "SELECT state, record, elapsed_ms FROM ticks LEFT JOIN journal ON torra_key = "
        "instance || '|' || timeframe || '|' || bar_time WHERE close_time > ? AND close_time < ?",
        after,
        until,
    )
    records = [(json.loads(record), elapsed) for _, record, elapsed in found if record]
    lags = [
        (parse(one["now"]) - parse(one["as_of"])).total_seconds() / SAMPLE_RATE + elapsed / 1000.0
        for one, elapsed in records
    ]
    return {row[0] for row in found}, lags


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_besieged_desk_is_as_reachable_as_before(
    tmp_path: Path, scaled: Scale, tries: Tries, record_property: Callable[[str, object], None]
) -> None:
    silent, slow = scaled(1000), scaled(200)
    for attempt in tries():
        home = attempt.folder(tmp_path) / "home"
        with running_desk(home) as port:
            person = Person(home, port)
            before = newest(home)
            with besieged(port, silent, slow) as siege, person.following() as lines:
                person.took.clear()
                halts = besiege(person, home)
                assert siege.holds() and any(b'"what":"tick"' in line for line in lines)
                states, lags = ticks(home, before, newest(home))
                slowest = sorted(person.took)[int(0.95 * len(person.took))]
                said = (
                    f"{silent:,} silent and {slow:,} slow: {len(person.took):,} pages, p95 "
                    f"{slowest:.3f} s; halt by page {halts['page']:.2f} s, by command "
                    f"{halts['command']:.2f} s with its start; {len(lags)} ticks, the last done "
                    f"{max(lags):.2f} s after its close"
                )
            with attempt:
                record_property("seen", f"{said}; {siege.ended:,} connections ended")
                assert slowest <= PAGE_SECONDS
                assert halts["page"] <= PAGE_SECONDS
                assert states == {"done"}
                assert len(lags) >= SIEGE_SECONDS / CLOSE_SECONDS - 2
                assert max(lags) <= TICK_SECONDS


def besiege(person: Person, home: Path) -> dict[str, float]:
    """Open pages for a minute; halt by the page and by the command line, and go on in between."""
    end = time.monotonic() + SIEGE_SECONDS
    halts: dict[str, float] = {}
    while (left := end - time.monotonic()) > 0:
        person.page()
        if left < SIEGE_SECONDS * 2 / 3 and "page" not in halts:
            halts["page"] = person.halt()
            assert state(home) == "HALTED"
            command(home, "resume", "--reason", "a test")
            assert state(home) == "ACTIVE"
        if left < SIEGE_SECONDS / 3 and "command" not in halts:
            halts["command"] = command(home, "halt", "--reason", "a siege")
            assert state(home) == "HALTED"
        time.sleep(PAUSE)
    return halts
