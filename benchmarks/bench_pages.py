"""What the pages cost at size: server time with 1,000,000 ticks of 50 instances in the database.

Each figure is the median over requests through Flask's test client, rendering included: the
overview again and again, symbol pages and deliberations each of another stream or tick, so that
hardly anything was asked for before. Server time is what the answering thread itself took, in the
program and in the system; wall time, which other programs on the machine lengthen, is told beside.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests import large_database
from tests.visitors import open_app
from torra.dashboard.backing import Backing
from torra.dashboard.desk_view import DatabaseView

ROWS = 1_000_000
INSTANCES = 50
REQUESTS = 100
WARM = 2
"""Requests of a kind that are made first and not counted: templates, connections."""

TARGETS = {"overview": 50.0, "symbol": 80.0, "deliberation": 60.0}
"""Milliseconds that a median may take (issue 6)."""

Figures = dict[str, dict[str, float]]


def measure(
    rows: int = ROWS, instances: int = INSTANCES, requests: int = REQUESTS, file: str = ""
) -> Figures:
    """Return median, p95 and wall (its median) in milliseconds by page.

    `file` names a database that is there.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(file or Path(folder) / "torra.db")
        if not file:
            large_database.build(path, rows, instances)
        desk = large_database.settings(instances)
        database = large_database.open_database(path)
        try:
            return dict(_figures(database, desk, path.parent, requests))
        finally:
            database.close()


def _figures(
    database: Any, desk: Any, home: Path, requests: int
) -> Iterator[tuple[str, dict[str, float]]]:
    client = open_client(database, desk, home)
    for name, addresses in addresses_of(database, desk, requests + WARM).items():
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
    return open_app(view, backing=Backing(home, database, desk, looking)).test_client()


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
    }


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


def check(found: Figures) -> None:
    """Raise RuntimeError when a median is above its target."""
    late = {n: found[n]["median"] for n, most in TARGETS.items() if found[n]["median"] > most}
    if late:
        raise RuntimeError(f"too slow, in ms: {late}; targets {TARGETS}")


def rows(found: Figures) -> list[tuple[str, str, str]]:
    """Return table rows: what, measured, target."""
    return [
        (
            f"{name} page, 1,000,000 ticks, 50 instances (p95 {found[name]['p95']:.0f} ms, "
            f"wall {found[name]['wall']:.0f} ms)",
            f"{found[name]['median']:.1f} ms",
            f"<= {most:.0f} ms",
        )
        for name, most in TARGETS.items()
    ]


if __name__ == "__main__":
    figures = measure(file=sys.argv[1] if len(sys.argv) > 1 else "")
    for row in rows(figures):
        print("{:<80}{:>10}   {}".format(*row))
    check(figures)
