"""How many ticks a second a replay runs on one core: `run_tick` over a history, by store and desk.

Every arm runs the very `run_tick` of a live desk over the shipped M15 bars. With the null store the
journal is off, as in `torra replay`; with the database everything is kept, in a real file that is
synced at each commit. What is counted is CPU time, user and system: waiting for the disk and for
other programs is neither the tick's nor steady.

`python -m benchmarks.bench_replay --profile l1` prints where an arm's time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.mode_ticks import beside
from benchmarks.rows import Part, Row, at_least, ready
from instance_database import Database
from tests.worlds import desks
from torra.clock import Simulated, System, duration
from torra.config import Instance, Profile, validate
from torra.imports import freeze_gc
from torra.providers.registry import open_provider
from torra.store.connection import TickKey
from torra.store.memory import MemoryStore
from torra.tick.bar_window import HistoryWindow
from torra.tick.edges import TickDeps
from torra_trader import run_tick

SYMBOL: Final = "BTCUSD"
TIMEFRAME: Final = "M15"
INSTANCE: Final = Instance(symbol=SYMBOL, timeframes=(TIMEFRAME,))
TRIAL_TICKS: Final = 60
LEAD: Final = 520
"""Ticks that are run first and not counted: from here on the memory context is full."""


class Arm(NamedTuple):
    """What is measured: the desk (None: nobody is asked), the store, how many ticks, the target.

    Without a target the figure is told. `beside`: with numbers from beside the chart, without which
    two of a swarm's experts have nothing to read.
    """

    desk: str | None
    stored: bool
    ticks: int
    target: int | None = None
    beside: bool = False


ARMS: Final = {
    "l1": Arm(None, False, 3000, 5000),
    "budget": Arm("budget", False, 600, 900),
    "full": Arm("full", False, 400, 500),
    "firm": Arm("firm", False, 300),
    "swarm": Arm("swarm", False, 300, beside=True),
    "database": Arm("budget", True, 200, 100),
}


@cache
def window() -> HistoryWindow:
    """Return the shipped bars, scored once for every arm."""
    _, end = desks.sample().period()
    return HistoryWindow({TIMEFRAME: desks.sample().bars(SYMBOL, TIMEFRAME, end, None)})


def keys(count: int) -> list[TickKey]:
    """Return the newest ticks of the history, the lead before them."""
    times = window().times[TIMEFRAME][-(count + LEAD) :]
    return [TickKey(SYMBOL, TIMEFRAME, bar_time.to_pydatetime()) for bar_time in times]


def profile_of(arm: Arm) -> Profile:
    """Return a profile of the arm's desk that leaves a slow machine the time it needs."""
    agents = {"mode": arm.desk or "budget", "timeout_seconds": 900}
    weights = {TIMEFRAME: 1.0}
    return validate(Profile, {"agents": agents, "timeframe_weights": weights}, "the benchmark")


def rate(name: str, ticks: int | None = None) -> float:
    """Return ticks in a second of CPU time of one arm."""
    arm = ARMS[name]
    with prepared(arm, ticks or arm.ticks) as (edges, profile, todo):
        begin = time.process_time()
        run(todo, profile, edges)
        return len(todo) / (time.process_time() - begin)


@contextmanager
def prepared(arm: Arm, ticks: int) -> Iterator[tuple[TickDeps, Profile, Sequence[TickKey]]]:
    """Stand where the lead has been run; give what the counted ticks need."""
    freeze_gc()  # as `torra replay` does
    profile, todo = profile_of(arm), keys(ticks)
    with tempfile.TemporaryDirectory() as folder, opened(arm, profile, Path(folder)) as store:
        voice = open_provider(profile.agents)
        edges = TickDeps(
            database=store,
            window=window(),
            submit=voice.submit if arm.desk else None,
            provider=voice.name,
            clock=Simulated(desks.START),
            outside=beside if arm.beside else None,
            recording=arm.stored,
        )
        run(todo[:LEAD], profile, edges)
        yield edges, profile, todo[LEAD:]


@contextmanager
def opened(arm: Arm, profile: Profile, folder: Path) -> Iterator[Any]:
    """Open the arm's store."""
    if not arm.stored:
        yield MemoryStore({INSTANCE.id: profile})
        return
    database = Database.open(folder / "torra.db", now=System().real_now)
    database.apply_profile(INSTANCE.id, profile.model_dump_json(), profile.digest())
    try:
        yield database
    finally:
        database.close()


def run(todo: Sequence[TickKey], profile: Profile, edges: TickDeps) -> None:
    """Run ticks, each at the close of its bar."""
    clock = edges.clock
    assert isinstance(clock, Simulated)
    for key in todo:
        clock.set(key.bar_time + duration(key.timeframe))
        outcome = run_tick(
            INSTANCE, key.timeframe, key.bar_time, clock.monotonic(), profile=profile, edges=edges
        )
        assert outcome.state == "done", outcome


def measure(trial: bool) -> dict[str, float]:
    """Return ticks in a second of CPU time of each arm."""
    return {name: rate(name, TRIAL_TICKS if trial else None) for name in ARMS}


WORDS: Final = {
    "l1": "L1 alone, null store",
    "budget": "budget desk with rules, null store",
    "full": "full desk with rules, null store",
    "firm": "firm with rules, null store",
    "swarm": "swarm with rules, null store",
    "database": "budget desk with rules, whole database",
}

PART: Final = Part(
    "replay",
    "Replays",
    ready(measure),
    tuple(
        Row(
            name,
            f"replay, {WORDS[name]}, ticks/s of CPU",
            target=None if arm.target is None else at_least(arm.target),
        )
        for name, arm in ARMS.items()
    ),
    "Every arm runs the very `run_tick` of a live desk over the shipped M15 bars of BTCUSD, on one "
    "core; with the null store the journal is off, as in `torra replay`. Of a full desk's tick "
    "about a quarter is the rules reading the evidence, another one reading and holding their "
    "replies, a twentieth the requests; the rest is a flat profile of records, panel, synthesis, "
    "memory and books. With the whole database it is the commits, three a tick, and the texts of "
    "the prompts. `python -m benchmarks.bench_replay --profile full` shows where an arm's time "
    "goes.",
)


def where(name: str) -> None:
    """Print where the time of an arm goes."""
    arm = ARMS[name]
    profiler = cProfile.Profile(time.process_time)
    with prepared(arm, arm.ticks) as (edges, profile, todo):
        profiler.enable()
        run(todo, profile, edges)
        profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


if __name__ == "__main__":
    words = argparse.ArgumentParser(description="ticks a second of a replay")
    words.add_argument("--profile", choices=tuple(ARMS), help="print where the time of an arm goes")
    asked = words.parse_args()
    if asked.profile:
        where(asked.profile)
    else:
        print(measure(trial=True))
