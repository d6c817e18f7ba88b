"""What a tick takes when models answer for real: a loopback server of fixed latency, the real SDK.

The server runs in a process of its own, but where its requests are looked at one by one. The desk
asks it as Anthropic, with the price list, the ledger and its reservations at work. The full desk
reads a file of invented headlines, so that all eight agents have something to go on.
"""

from __future__ import annotations

import gc
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
from typing import Any, Final, NamedTuple

from agent_config import MODES
from benchmarks.rows import ALWAYS, Part, Row, at_most, ready
from tests.doubles.vendor_line import environment
from tests.doubles.vendor_server import ANTHROPIC, Exchange, Late, VendorServer
from tests.worlds import desks
from torra.clock import iso
from torra.config import Instance, Profile, validate
from torra.desk.models.access import open_models
from torra.desk.outlook import ContextFeeds
from torra.desk.timers import next_close
from torra.imports import settle
from torra.providers.rules.provider import RulesProvider

CALL_SECONDS: Final = 1.0
CLOSES: Final = {0.5: 1, CALL_SECONDS: 4, 2.0: 1, 3.0: 1, 4.0: 1}
"""Full hours for each latency, at which M15 and H1 close together."""

TICKS: Final = {0.0: 30, CALL_SECONDS: 4}
WARM: Final = 3
INSTANCES: Final = 50
HEADLINES: Final = 20
"""Headlines about the euro that are in force on every tick; the agent is shown twelve."""

LOOK: Final = 0.3
"""Seconds of a call where it is counted which of them are under way together."""

TRIAL_TICKS: Final = 2
TRIAL_INSTANCES: Final = 6


class Spent(NamedTuple):
    """Seconds of one tick: by the clock on the wall, and of the desk's own processor time."""

    wall: float
    cpu: float


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


OPENS: Final[dict[str, Any]] = {
    "thresholds": {"buy": 0.0001, "sell": 0.0001},
    "execution": "approve",
    "risk": {"capital": 1e8, "exposure_cap_pct": 1e6, "max_notional_pct": 1e6},
}
"""Every tick would open a position, and none is held: a person is asked, and says nothing."""


def profile(*, opens: bool | None = None, far: bool = False, **agents: Any) -> Profile:
    """Return a profile that asks the vendor and is never short of money.

    `opens`: on every tick a position would be opened, or on none. `far`: its thresholds are so far
    that nothing can open.
    """
    values = {"provider": ANTHROPIC, "max_api_cost_per_hour": 1e6} | agents
    news = {"sources": ["file"], "file": "headlines.jsonl", "max_age_hours": 720}
    trades: dict[str, Any] = OPENS if opens else {} if opens is None else {"execution": "off"}
    if far:
        trades = {"thresholds": {"buy": 0.99, "sell": 0.99}}
    told = {"agents": values, "news": news, **trades}
    return validate(Profile, told, "a benchmark")


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


def on_one_stream(*names: str) -> list[Instance]:
    """Return instances on one stream each."""
    return [Instance(name=name, symbol="EURUSD", timeframes=("H1",)) for name in names]


@contextmanager
def desk_of(
    folder: Path,
    where: dict[str, str],
    items: list[Instance],
    feed: Any = None,
    beside: Any = None,
    **agents: Any,
) -> Iterator[Any]:
    """Yield a desk of instances whose vendor is at `where`, with numbers `beside` the chart."""
    settings = profile(**agents)
    desk = desks.open_desk(folder, items, profile=settings, provider=object(), feed=feed)
    models = open_models(folder, desk.database, where)
    voice = models.provider(settings.agents)
    account = models.account(settings.agents, "benchmark")
    write_headlines(folder)
    outlook = ContextFeeds(folder, desk.database, {}, [settings], now=desk.clock.now)
    models.prices.warm()
    desk.roster.setups = {
        name: replace(
            setup,
            provider=voice,
            account=account,
            news=outlook.news(setup.instance, settings),
            **({"outside": beside} if beside else {}),
        )
        for name, setup in desk.setups.items()
    }
    desks.open_for_work(desk)
    settle()  # as `torra run` does
    try:
        yield desk
    finally:
        gc.unfreeze()  # the next desk is another process elsewhere
        models.close()
        desk.database.close()


def one_desk(latency: float, ticks: int, calls: int = 4, **agents: Any) -> list[Spent]:
    """Return what ticks of so many calls took that run alone."""
    with (
        vendor(latency) as where,
        tempfile.TemporaryDirectory() as folder,
        desk_of(Path(folder), where, on_one_stream("EURUSD"), **agents) as desk,
    ):
        taken = []
        for _ in range(WARM + ticks):
            wall, cpu = time.perf_counter(), time.process_time()
            desks.step(desk)
            taken.append(Spent(time.perf_counter() - wall, time.process_time() - cpu))
            check(desk, "EURUSD", calls)
        return taken[WARM:]


def counted() -> dict[str, float]:
    """Return how many calls a tick makes, how they hang together, and the letters they carry."""
    with (
        VendorServer() as server,
        tempfile.TemporaryDirectory() as folder,
        desk_of(Path(folder), environment(server), on_one_stream("EURUSD")) as desk,
    ):
        for _ in range(WARM):
            desks.step(desk)
        server.play({"*": Late(LOOK)})
        desks.step(desk)
        asked = sorted(server.exchanges, key=lambda one: one.at)
    check_asked(asked)
    return {
        "calls": len(asked),
        "chain": chain(asked),
        "together": max(len(under_way(asked, one)) for one in asked),
        "stages": float(all(stage_whole(asked, one) for one in asked)),
        "characters": sum(len(one.text) for one in asked),
    }


def check_asked(asked: list[Exchange]) -> None:
    """Raise when the server refused something that it was asked."""
    if refused := [one.refused for one in asked if one.refused or not one.role]:
        raise RuntimeError(f"not asked as a vendor wants it: {refused}")


def chain(asked: list[Exchange]) -> int:
    """Return the longest chain of calls each of which began when the one before had its answer."""
    longest: list[int] = []
    for number, one in enumerate(asked):
        before = [
            longest[at] for at, other in enumerate(asked[:number]) if other.at + LOOK <= one.at
        ]
        longest.append(1 + max(before, default=0))
    return max(longest)


def under_way(asked: list[Exchange], one: Exchange) -> list[Exchange]:
    """Return the calls that were under way when this one began, itself among them."""
    return [other for other in asked if other.at <= one.at < other.at + LOOK]


def stage_whole(asked: list[Exchange], one: Exchange) -> bool:
    """Return whether all calls of a call's stage were under way together."""
    stage = [other for other in asked if other.stage == one.stage]
    return all(other in under_way(asked, stage[-1]) for other in stage)


def close_of(item: Instance, latency: float, closes: int) -> list[float]:
    """Return the wall seconds from the close of full hours to the end of all their ticks.

    Between two of them the desk asks nobody.
    """
    with (
        vendor(latency) as where,
        tempfile.TemporaryDirectory() as folder,
        desk_of(Path(folder), where, [item], desks.WithHalfHours(set())) as desk,
    ):
        asking = desk.setups
        silent = {name: replace(one, provider=RulesProvider()) for name, one in asking.items()}
        taken: list[float] = []
        while len(taken) < closes + 1:
            hour = next_close(desk.clock.now(), ["M15"]).minute == 0
            desk.roster.setups = asking if hour else silent
            begin = time.perf_counter()
            desks.step(desk)
            if hour:
                taken.append(time.perf_counter() - begin)
                for timeframe in item.timeframes:
                    check(desk, item.id, 4, timeframe)
        return taken[1:]  # the first one imports the SDK


def check(desk: Any, name: str, calls: int, timeframe: str = "H1") -> None:
    """Raise when a tick was not debated by the whole desk."""
    record = desk.database.latest_tick(name, timeframe)
    whole = {row.complete for row in MODES.values()}
    if record["source_type"] not in whole or record["calls"] is None:
        raise RuntimeError(f"{name}: {record['source_type']}, {record['deliberation']['failures']}")
    if len(record["calls"]) != calls:
        raise RuntimeError(f"{name}: {[c['role_id'] for c in record['calls']]}, not {calls}")


def crowd(latency: float, instances: int) -> list[float]:
    """Return the wall seconds, from one common due moment, of ticks that are due together."""
    names = [f"E{number:02}" for number in range(instances + 1)]
    with (
        vendor(latency) as where,
        tempfile.TemporaryDirectory() as folder,
        desk_of(Path(folder), where, on_one_stream(*names)) as desk,
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
    every, desk.roster.setups = desk.setups, {name: desk.setups[name]}
    try:
        desks.step(desk)
    finally:
        desk.roster.setups = every


def _woken(desk: Any, name: str, begin: float, taken: dict[str, float]) -> None:
    desk.wake(name)
    taken[name] = time.perf_counter() - begin


def measure(trial: bool) -> dict[str, float]:
    """Return counts, and medians over ticks."""
    some = dict.fromkeys(TICKS, TRIAL_TICKS) if trial else TICKS
    full = one_desk(CALL_SECONDS, some[CALL_SECONDS], calls=8, mode="full", include_news=True)
    late, quick = (one_desk(latency, some[latency]) for latency in (CALL_SECONDS, 0.0))
    closes = {
        f"close_{latency:g}_s": close_of(desks.BTC, latency, 1 if trial else count)
        for latency, count in CLOSES.items()
    }
    closes["three_s"] = close_of(desks.THREE, CALL_SECONDS, 1 if trial else CLOSES[CALL_SECONDS])
    together = crowd(CALL_SECONDS, TRIAL_INSTANCES if trial else INSTANCES)
    return counted() | {
        "budget_s": statistics.median(one.wall for one in late),
        "full_s": statistics.median(one.wall for one in full),
        "zero_ms": 1e3 * statistics.median(one.wall for one in quick),
        "zero_cpu_ms": 1e3 * statistics.median(one.cpu for one in quick),
        **{name: statistics.median(seconds) for name, seconds in closes.items()},
        "p50_s": statistics.median(together),
        "p99_s": together[min(len(together) - 1, int(0.99 * len(together)))],
    }


FIFTY: Final = f"{INSTANCES} instances due at once, 1.0 s per call"

PART: Final = Part(
    "debate",
    "A decision with models that are asked",
    ready(measure),
    (
        Row("calls", "calls of a budget tick", target=at_most(4)),
        Row("chain", "longest chain of calls", target=at_most(3)),
        Row("together", "most calls under way together"),
        Row("stages", "all calls of a stage under way together", target=ALWAYS),
        Row("characters", "characters of its prompts", target=at_most(20_000)),
        Row("budget_s", "budget tick, 1.0 s per call, wall", "{:.2f} s", at_most(3.10)),
        Row("full_s", "full desk of eight, 1.0 s per call, wall", "{:.2f} s", at_most(3.15)),
        *(
            Row(
                f"close_{latency:g}_s",
                f"M15 and H1 that close together, {latency:.1f} s per call, both done",
                "{:.2f} s",
                at_most(3.40) if latency == CALL_SECONDS else None,
            )
            for latency in CLOSES
        ),
        Row("three_s", "M15, M30 and H1 so, 1.0 s per call", "{:.2f} s", at_most(3.40)),
        Row("zero_ms", "budget tick, 0 s per call, wall", "{:.0f} ms", at_most(45)),
        Row("zero_cpu_ms", "of it CPU of the desk", "{:.1f} ms", at_most(35)),
        Row("p50_s", f"{FIFTY}, p50", "{:.1f} s"),
        Row("p99_s", f"{FIFTY}, p99", "{:.1f} s", at_most(4.5)),
    ),
    "The desk asks a loopback server of fixed latency, in a process of its own, through the "
    "Anthropic SDK, with prices, ledger and reservations at work and every commit synced to the "
    "disk. The full desk reads a file of 20 invented headlines, so that all eight agents are "
    "asked. Fifty instances count from one common due moment. Prompts are counted as the server "
    "got them: instructions and evidence, without the schema of the reply.",
)

if __name__ == "__main__":
    print(measure(trial=True))
