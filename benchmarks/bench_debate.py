"""What a tick takes when models answer for real: a loopback server of fixed latency, the real SDK.

The server runs in a process of its own. The desk asks it as Anthropic, with the price list, the
ledger and its reservations at work. The full desk reads a file of invented headlines, so that all
eight agents have something to go on.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests import desks
from tests.vendor_line import environment
from tests.vendor_server import ANTHROPIC, Late, VendorServer
from torra.clock import iso
from torra.config import Instance, Profile, validate
from torra.outlook import Outlook
from torra.wiring import open_models

CALL_SECONDS = 1.0
TICKS = {0.0: 30, CALL_SECONDS: 6}
WARM = 3
INSTANCES = 50
HEADLINES = 20
"""Headlines about the euro that are in force on every tick; the agent is shown twelve."""

Row = tuple[str, str, str]


def serve(latency: float, ready: Any, done: Any) -> None:
    """Answer as a vendor, each call after `latency` seconds, until told to end."""
    with VendorServer({"*": Late(latency)} if latency else {}) as server:
        ready.put(server.server_address[1])
        done.wait()


@contextmanager
def vendor(latency: float) -> Iterator[dict[str, str]]:
    """Yield the environment that leads to a server of this latency."""
    context = multiprocessing.get_context("spawn")
    ready, done = context.Queue(), context.Event()
    process = context.Process(target=serve, args=(latency, ready, done), daemon=True)
    process.start()
    port = ready.get(timeout=60)

    class Place:
        """Where the server is."""

        def base(self, name: str) -> str:
            del name
            return f"http://127.0.0.1:{port}"

    try:
        yield environment(Place())  # type: ignore[arg-type]
    finally:
        done.set()
        process.join(10)


def profile(**agents: Any) -> Profile:
    """Return a profile that asks the vendor and is never short of money."""
    values = {"provider": ANTHROPIC, "max_api_cost_per_hour": 1e6} | agents
    news = {"sources": ["file"], "file": "headlines.jsonl", "max_age_hours": 720}
    return validate(Profile, {"agents": values, "news": news}, "a benchmark")


def write_headlines(folder: Path) -> None:
    """Write headlines that were seen before the desk starts."""
    words = ("gains", "slips", "steadies", "rallies", "sinks")
    rows = [
        {
            "headline": f"Euro {words[number % 5]} as report number {number} is published",
            "published": iso(desks.START - timedelta(hours=number)),
        }
        for number in range(HEADLINES)
    ]
    (folder / "headlines.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@contextmanager
def desk_of(folder: Path, where: dict[str, str], names: list[str], **agents: Any) -> Iterator[Any]:
    """Yield a desk of instances on one stream each, whose vendor is at `where`."""
    items = [Instance(name=name, symbol="EURUSD", timeframes=("H1",)) for name in names]
    settings = profile(**agents)
    desk = desks.open_desk(folder, items, profile=settings, provider=object())
    models = open_models(folder, desk.database, where)
    voice = models.provider(settings.agents)
    account = models.account(settings.agents, "benchmark")
    write_headlines(folder)
    outlook = Outlook(folder, desk.database, {}, [settings], now=desk.clock.now)
    models.prices.warm()
    desk.stations = {
        name: replace(
            station,
            provider=voice,
            account=account,
            news=outlook.news(station.instance, settings),
        )
        for name, station in desk.stations.items()
    }
    desks.take_lease(desk)
    try:
        yield desk
    finally:
        models.close()
        desk.database.close()


def one_desk(latency: float, **agents: Any) -> list[float]:
    """Return the wall seconds of ticks that run alone."""
    with (
        vendor(latency) as where,
        tempfile.TemporaryDirectory() as folder,
        desk_of(Path(folder), where, ["EURUSD"], **agents) as desk,
    ):
        taken = []
        for number in range(WARM + TICKS[latency]):
            begin = time.perf_counter()
            desks.step(desk)
            taken.append(time.perf_counter() - begin)
            if number < WARM:
                continue
            check(desk, "EURUSD", 8 if agents.get("mode") == "full" else 4)
        return taken[WARM:]


def check(desk: Any, name: str, calls: int) -> None:
    """Raise when a tick was not debated by the whole desk."""
    record = desk.database.latest_tick(name, "H1")
    if record["source_type"] not in {"AGENT_BUDGET", "AGENT_FULL"} or record["calls"] is None:
        raise RuntimeError(f"{name}: {record['source_type']}, {record['deliberation']['failures']}")
    if len(record["calls"]) != calls:
        raise RuntimeError(f"{name}: {len(record['calls'])} calls instead of {calls}")


def crowd(latency: float) -> list[float]:
    """Return the wall seconds, from one common due moment, of fifty ticks that are due together."""
    names = [f"E{number:02}" for number in range(INSTANCES + 1)]
    with (
        vendor(latency) as where,
        tempfile.TemporaryDirectory() as folder,
        desk_of(Path(folder), where, names) as desk,
    ):
        for _ in desk.warm_up(desk.clock.now(), bars=1):  # stores the history, asks nobody
            pass
        _only(desk, names[0])
        rest = names[1:]
        taken: dict[str, float] = {}
        begin = time.perf_counter()
        threads = [
            threading.Thread(target=_woken, args=(desk, name, begin, taken)) for name in rest
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name in rest:
            check(desk, name, 4)
        return sorted(taken.values())


def _only(desk: Any, name: str) -> None:
    """Go to the next close with one instance alone: it warms what all of them share."""
    every, desk.stations = desk.stations, {name: desk.stations[name]}
    try:
        desks.step(desk)
    finally:
        desk.stations = every


def _woken(desk: Any, name: str, begin: float, taken: dict[str, float]) -> None:
    desk.wake(name)
    taken[name] = time.perf_counter() - begin


def measure() -> dict[str, float]:
    """Return seconds."""
    full = statistics.median(one_desk(CALL_SECONDS, mode="full", include_news=True))
    together = crowd(CALL_SECONDS)
    return {
        "budget_s": statistics.median(one_desk(CALL_SECONDS)),
        "full_s": full,
        "zero_s": statistics.median(one_desk(0.0)),
        "p50_s": statistics.median(together),
        "p99_s": together[min(len(together) - 1, int(0.99 * len(together)))],
        "most_s": together[-1],
    }


def rows(found: dict[str, float]) -> list[Row]:
    """Return table rows: what, measured, target."""
    fifty = f"{INSTANCES} instances due at once, 1.0 s per call"
    return [
        ("budget tick, 1.0 s per call, wall", f"{found['budget_s']:.2f} s", "<= 3.10 s"),
        ("full desk of eight, 1.0 s per call, wall", f"{found['full_s']:.2f} s", "<= 3.15 s"),
        ("budget tick, 0 s per call, wall", f"{found['zero_s'] * 1e3:.0f} ms", "<= 80 ms"),
        (f"{fifty}, p50", f"{found['p50_s']:.1f} s", "<= 15 s"),
        (f"{fifty}, p99", f"{found['p99_s']:.1f} s", "<= 15 s"),
    ]


if __name__ == "__main__":
    for row in rows(measure()):
        print("{:<48}{:>12}   {}".format(*row))
