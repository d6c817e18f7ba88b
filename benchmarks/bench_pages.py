"""What the pages cost at size: server time with 1,000,000 ticks of 50 instances in the database.

Each figure is the median over requests through Flask's test client, rendering included: the
overview again and again, symbol pages and deliberations each of another stream or tick, so that
hardly anything was asked for before. Server time is what the answering thread itself took, in the
program and in the system; wall time, which other programs on the machine lengthen, is told beside.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from benchmarks.rows import Part, Row, Run, at_most
from instance_database import open_home
from tests.doubles.visitors import open_app
from tests.worlds import large_database
from torra.dashboard.doors.limits import RateLimits
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.desk.checks import table as checks
from torra.store import tick_listing

ROWS: Final = 1_000_000
INSTANCES: Final = 50
REQUESTS: Final = 100
WARM: Final = 2
"""Requests of a kind that are made first and not counted: templates, connections."""

TRIAL_ROWS, TRIAL_REQUESTS = 5_000, 5

TARGETS: Final = {
    "overview": 50.0, "symbol": 80.0, "deliberation": 60.0, "history": 80.0, "trades": 80.0,
    "money": 80.0,
}  # fmt: skip
"""Milliseconds that a median may take."""

Figures = dict[str, dict[str, float]]


@contextmanager
def opened(trial: bool) -> Iterator[Run]:
    """Build the database once and give what asks for its pages."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "torra.db"
        large_database.build(path, TRIAL_ROWS if trial else ROWS, INSTANCES)
        desk = large_database.settings(INSTANCES)
        database = large_database.open_database(path)
        requests = TRIAL_REQUESTS if trial else REQUESTS
        try:
            yield lambda: {
                **flat(dict(_figures(database, desk, path.parent, requests))),
                "start_s": start_seconds(path.parent),
            }
        finally:
            database.close()


def start_seconds(home: Path) -> float:
    """Return what a desk's start takes that grows with its database: the checks, and opening it."""
    begin = time.perf_counter()
    checks.start(home, lambda _: None)
    open_home(home).close()
    return time.perf_counter() - begin


def flat(found: Figures) -> dict[str, float]:
    """Return the figures of all pages under one name each."""
    return {f"{page}_{name}": value for page, own in found.items() for name, value in own.items()}


def _figures(
    database: Any, desk: Any, home: Path, requests: int
) -> Iterator[tuple[str, dict[str, float]]]:
    client = open_client(database, desk, home)
    for name, addresses in addresses_of(database, desk, requests + WARM).items():
        # History takes 60 requests a minute of one visitor, and answers more than that here.
        with patch.object(RateLimits, "wait", return_value=0.0):
            taken, wall = zip(*[one_request(client, address) for address in addresses], strict=True)
        yield (
            name,
            {
                "median": statistics.median(taken[WARM:]),
                "p95": percentile(taken[WARM:], 95),
                "wall": statistics.median(wall[WARM:]),
            },
        )


def open_client(database: Any, desk: Any, home: Path) -> Any:
    """Return a client of pages over a database."""
    looking = large_database.looking(database, desk)
    view = DatabaseView(database, desk, looking)
    return open_app(view, backing=PageContext(home, database, desk, looking)).test_client()


def addresses_of(database: Any, desk: Any, number: int) -> dict[str, list[str]]:
    """Return the addresses that are asked for, by page."""
    streams = [(one.id, timeframe) for one in desk.instances for timeframe in one.timeframes]
    symbols = [f"/symbol/{name}/{timeframe}" for name, timeframe in streams]
    ticks = [
        f"/symbol/{name}/{timeframe}/{row['bar_time']}"
        for name, timeframe in streams
        for row in database.ticks(name, timeframe, 3)
    ]
    return {
        "overview": ["/"] * number,
        "symbol": (symbols * number)[:number],
        "deliberation": (ticks[:: max(1, len(ticks) // number)] * number)[:number],
        "history": (filters_of(database) * number)[:number],
        "trades": ["/orders?stage=closed"] * number,
        "money": ["/api/v1/money"] * number,
    }


def filters_of(database: Any) -> list[str]:
    """Return the first pages of History under filters of every sort, rare and frequent ones."""
    kinds = tick_listing.tick_kinds(database)
    words = {
        name: sorted({getattr(kind, name) or "-" for kind in kinds})
        for name in ("verdict", "action", "reason", "source", "timeframe", "instance")
    }
    each = [f"/history?{name}={word}" for name, some in words.items() for word in some[:4]]
    marks = ("opened", "proposed", "changed", "vetoed", "denied", "degraded")
    newest = str(database.desk_time().date())
    return [
        "/history",
        *[f"/history?only={mark}" for mark in marks],
        *[f"/history?only=changed&instance={name}&verdict=SELL" for name in words["instance"][:2]],
        f"/history?from={newest}",
        f"/history?from={newest[:7]}-01&only=changed",
        "/history?from=2000-01-01",
        *each,
    ]


def one_request(client: Any, address: str) -> tuple[float, float]:
    """Return the server time and the wall time of one request, in milliseconds."""
    wall, own = time.perf_counter(), time.thread_time()
    answer = client.get(address)
    own, wall = time.thread_time() - own, time.perf_counter() - wall
    if answer.status_code != 200:
        raise RuntimeError(f"{address} answered {answer.status_code}")
    return own * 1e3, wall * 1e3


def percentile(values: Sequence[float], share: int) -> float:
    """Return a percentile of values."""
    return sorted(values)[max(0, round(len(values) * share / 100) - 1)]


def rows() -> Iterator[Row]:
    """Yield the rows of every page."""
    for name, most in TARGETS.items():
        yield Row(f"{name}_median", f"{name} page", "{:.1f} ms", at_most(most))
        yield Row(f"{name}_p95", "p95 of its requests", "{:.1f} ms")
        yield Row(f"{name}_wall", "wall", "{:.1f} ms")
    yield Row("start_s", "checks at start and opening the database, wall", "{:.2f} s", at_most(5))


PART: Final = Part(
    "pages",
    f"Pages with {ROWS:,} ticks of {INSTANCES} instances",
    opened,
    tuple(rows()),
    "Server time: what the answering thread itself took, in the program and in the system, "
    f"rendering included; the median of {REQUESTS} requests, symbol pages and deliberations each "
    "of another stream or tick. Wall time, which other programs lengthen, is told beside.",
)

if __name__ == "__main__":
    with opened(trial=True) as once:
        print(once())
