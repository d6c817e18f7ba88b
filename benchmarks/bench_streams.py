"""What six held streams cost: a page's time with and without them, and a tick's way to a browser.

A real desk on the sample, its pages served by waitress; six readers hold streams, and meanwhile
ticks tell their debates, over and over.
"""

from __future__ import annotations

import http.client
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.rows import Part, Row, at_most, ready
from tests.doubles.visitors import ACCESS, bearer, open_app
from tests.worlds import desks
from torra.config import DeskSettings
from torra.dashboard import server
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.dashboard.view.stream_slots import MOST
from torra.desk.event_stream import EventStream

TICKS = 12
PAGES = 100
TRIAL_PAGES = 5
WARM = 5
EVERY = 0.05
"""Seconds between two events that are told while the pages are measured."""


@contextmanager
def served(app: Any) -> Iterator[int]:
    """Yield the port of the app's server."""
    running: Any = server.open_server(app, "127.0.0.1", 0)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    try:
        yield running.effective_port
    finally:
        running.trigger.pull_trigger(running.close)
        thread.join(10)
        running.task_dispatcher.shutdown()


def page(port: int) -> float:
    """Return the milliseconds of the overview over HTTP."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as asked:
        begin = time.perf_counter()
        asked.request("GET", "/", headers=bearer("read"))
        answer = asked.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"the page answered {answer.status}")
        return (time.perf_counter() - begin) * 1e3


def hold(stack: ExitStack, port: int, number: int) -> http.client.HTTPResponse:
    """Open one of the six streams, until the stack is left."""
    asked = stack.enter_context(closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)))
    asked.request("GET", "/api/v1/events", headers=bearer(list(ACCESS.tokens)[number % 3]))
    answer = stack.enter_context(asked.getresponse())
    if answer.status != 200:
        raise RuntimeError(f"stream {number} answered {answer.status}")
    return answer


def told(events: EventStream, over: threading.Event) -> None:
    """Tell of changes until it is over."""
    while not over.wait(EVERY):
        events.changed("state")


def drained(answer: http.client.HTTPResponse) -> None:
    """Read a stream to its end."""
    while answer.read(4096):
        pass


def latency(events: EventStream, answer: http.client.HTTPResponse, number: int) -> float:
    """Return the milliseconds from telling to the line that a reader gets."""
    begin = time.perf_counter()
    events.changed("tick", instance=f"bench{number}")
    for line in answer:
        if line.startswith(b"data: ") and f"bench{number}" in line.decode():
            json.loads(line.removeprefix(b"data: "))
            return (time.perf_counter() - begin) * 1e3
    raise RuntimeError("the stream has ended")


def measure(trial: bool) -> dict[str, float]:
    """Return medians in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        desk = desks.open_desk(Path(folder))
        desks.open_for_work(desk)
        desk.events = EventStream(desk.database)
        desk.events.start()
        for _ in range(TICKS):
            desks.step(desk)
        settings = DeskSettings(instances=(desks.BTC,))
        view = DatabaseView(desk.database, settings, desk)
        backing = PageContext(Path(folder), desk.database, settings, desk, events=desk.events)
        try:
            with served(open_app(view, backing=backing)) as port:
                return _measured(port, desk.events, TRIAL_PAGES if trial else PAGES)
        finally:
            desk.close()


def _measured(port: int, events: EventStream, pages: int) -> dict[str, float]:
    free = [page(port) for _ in range(WARM + pages)][WARM:]
    over = threading.Event()
    with ExitStack() as stack:
        streams = [hold(stack, port, number) for number in range(MOST)]
        waits = [latency(events, streams[0], number) for number in range(20)]
        readers = [threading.Thread(target=drained, args=(one,)) for one in streams]
        teller = threading.Thread(target=told, args=(events, over))
        for thread in (*readers, teller):
            thread.start()
        held = [page(port) for _ in range(WARM + pages)][WARM:]
        over.set()
        teller.join()
        events.close()
        for thread in readers:
            thread.join()
    return {
        "free_ms": statistics.median(free),
        "held_ms": statistics.median(held),
        "wait_ms": statistics.median(waits),
    }


PART: Final = Part(
    "streams",
    "Pages while streams are held",
    ready(measure),
    (
        Row("free_ms", "overview over HTTP, no stream held", "{:.1f} ms"),
        Row("held_ms", f"overview over HTTP, {MOST} streams held", "{:.1f} ms", at_most(50)),
        Row("wait_ms", "from an event to its reader", "{:.0f} ms"),
    ),
)

if __name__ == "__main__":
    print(measure(trial=True))
