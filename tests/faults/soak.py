"""A day is boring: a whole desk on a simulated clock, and what it holds on to (promise S1).

    python -m tests.faults.soak --hours 24 --instances 20 [--days 30] [--json FILE]

The desk is the one that `torra run` opens, with its courier, its streams of events, its collector
of headlines and its calendar; only time, bars and the broker are made. Every close wakes every
instance through the real schedule, one after the other, at full hours all at once. Most trade on
paper, two through a channel to the Expert Advisor. Now and then somebody asks for pages.
Progress goes to stderr, the table to stdout; the exit code is 1 if a line does not hold. What needs
hours to be judged (memory, speed) is shown and not judged in a shorter run. Speed is judged by the
CPU time of a tick's thread, so that a busy machine fails nobody; the whole time stands beside it.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from itertools import count, cycle
from pathlib import Path
from typing import Any, Final, cast
from unittest.mock import patch

import psutil  # for development only

from tests.doubles.visitors import open_app
from tests.worlds import desks
from tests.worlds.channels import ACCOUNT, ENVIRONMENT, new_advisor
from torra.clock import Simulated, iso, parse
from torra.config import DeskSettings
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.desk import wiring
from torra.desk.schedule import Desk
from torra.desk.timers import next_close
from torra.store import tick_queries
from torra.trading import channels

START: Final = datetime.fromisoformat("2021-11-10T10:00:00+00:00")
CHANNELED: Final = 2
"""Instances whose signals go through the channel."""

SHORT: Final = timedelta(hours=6)
"""A shorter run says nothing of memory and speed."""

WARM_SHARE, WARM_MOST = 0.5, timedelta(days=1)
"""What counts as warm-up: this share of the run, a day at most. The page caches of the database's
connections, one for each thread, and what the pages remember of old ticks take hours to fill.
"""

AFTER: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 12.0)
"""Seconds after a close at which the Expert Advisor and the courier go on."""

RSS_GROWTH: Final = 0.05
WAL_MB: Final = 64.0
TICK_MS: Final = 250.0
"""The limits of promise S1."""

EAGER: Final[dict[str, Any]] = {
    "thresholds": {"buy": 0.2, "sell": 0.2},
    "risk": {
        "max_positions": 100,
        "exposure_cap_pct": 100_000.0,
        "account_leverage_cap": 1000.0,
        "daily_loss_cap_pct": 1000.0,
        "max_signals_per_hour": 100,
        "max_same_openings_per_hour": 100,
    },
}
"""Trades often, and no limit of the desk ends that: a soak of a halted desk shows little."""

PROFILES: Final[dict[str, dict[str, Any]]] = {
    "calm": EAGER,
    "whole": {
        **EAGER,
        "agents": {"mode": "full", "include_news": True},
        "news": {"sources": ["file"], "file": "headlines.jsonl"},
        "events": {"calendar": "events.csv"},
        "symbols": {"BTCUSD": {"currencies": ["USD"]}},
        "on_opposite": "reverse",
    },
    "asking": {**EAGER, "execution": "approve"},
}
"""The desks: a small one, a full one with news and events, one that asks a person."""

PAGES: Final = (
    "/", "/orders", "/health", "/watch", "/costs", "/orders?stage=waiting", "/profiles", "/audit",
    "/symbol/{name}/{timeframe}", "/symbol/{name}/{timeframe}/{bar_time}", "/api/v1/overview",
    "/api/v1/health", "/signals.csv", "/healthz",
)  # fmt: skip


class Leaping(Simulated):
    """Desk time, real time and monotonic time, all moved by the soak; ticks take real time."""

    def real_now(self) -> datetime:
        return self.now()

    def monotonic(self) -> float:
        return super().monotonic() + (self.now() - START).total_seconds()

    def real_time_of(self, moment: datetime) -> datetime:
        return moment


@dataclass(frozen=True)
class Line:
    """One line of the table: what was measured and, if it is judged, whether it holds."""

    what: str
    seen: str
    limit: str = ""
    holds: bool | None = None


@dataclass
class Found:
    """What a run measured."""

    instances: int
    simulated: timedelta
    rss: list[float] = field(default_factory=list)
    fds: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    wal_mb: float = 0.0
    database_mb: float = 0.0
    alone_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    together_ms: list[float] = field(default_factory=list)
    pages_ms: list[float] = field(default_factory=list)
    pages: Counter[int] = field(default_factory=Counter)
    ticks: Counter[str] = field(default_factory=Counter)
    signals: Counter[str] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def judged(self) -> bool:
        """Whether the run was long enough to say something of memory and speed."""
        return self.simulated >= SHORT

    def lines(self) -> list[Line]:
        """Return the table."""
        growth = self.rss[-1] / self.rss[0] - 1.0
        slow = percentile(self.cpu_ms, 0.99)
        refused = sum(number for status, number in self.pages.items() if status >= 400)
        return [
            Line("simulated", f"{self.simulated}, {self.instances} instances"),
            Line("ticks", _told(self.ticks)),
            Line("due ticks without a row", f"{len(self.missing)}", "0", not self.missing),
            Line("unhandled errors", f"{len(self.errors)}", "0", not self.errors),
            Line("handled errors in the log", f"{len(self.told)}"),
            Line("pages refused", f"{refused} of {self.pages.total()}", "0", not refused),
            Line("signals", _told(self.signals)),
            Line(
                "memory after warm-up, at the end",
                f"{self.rss[0]:.1f} MB, {self.rss[-1]:.1f} MB ({growth:+.1%})",
                f"< +{RSS_GROWTH:.0%}",
                growth < RSS_GROWTH if self.judged else None,
            ),
            _constant("open files", self.fds, judged=self.judged),
            _constant("threads", self.threads, judged=self.judged),
            Line(
                "WAL at most", f"{self.wal_mb:.1f} MB", f"< {WAL_MB:.0f} MB", self.wal_mb < WAL_MB
            ),
            Line(
                "tick alone, CPU, median and p99",
                f"{percentile(self.cpu_ms, 0.5):.0f} ms, {slow:.0f} ms",
                f"< {TICK_MS:.0f} ms",
                slow < TICK_MS if self.judged else None,
            ),
            _times("tick alone, whole, median and p99", self.alone_ms),
            Line("all at once, p99 of a wake", f"{percentile(self.together_ms, 0.99):.0f} ms"),
            _times("page, median and p99", self.pages_ms),
            Line("database", f"{self.database_mb:.1f} MB"),
            Line("took", f"{self.seconds:.0f} s"),
        ]  # fmt: skip

    @property
    def holds(self) -> bool:
        """Whether every judged line holds."""
        return all(line.holds is not False for line in self.lines())


def _constant(what: str, seen: Sequence[int], *, judged: bool) -> Line:
    told = f"{seen[0]}, {seen[-1]}"
    holds = seen[-1] <= seen[0] if judged else None
    return Line(f"{what} after warm-up, at the end", told, "no more", holds)


def _times(what: str, taken: Sequence[float]) -> Line:
    return Line(what, f"{percentile(taken, 0.5):.0f} ms, {percentile(taken, 0.99):.0f} ms")


def _told(counted: Counter[str]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in sorted(counted.items())) or "none"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of them do not pass; 0 for none."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))] if ranked else 0.0


# --- the world ------------------------------------------------------------------------------------


def instances(number: int) -> list[dict[str, Any]]:
    """Return the desk: of twenty 12 on M15, 6 on M15 and H1, 2 on H1; the channel's come last."""
    profiles = cycle(("whole", "calm", "asking", "calm", "calm"))
    found: list[dict[str, Any]] = []
    for place, profile in zip(range(number), profiles, strict=False):
        kind = place % 10
        frames = ["M15"] if kind < 6 else ["M15", "H1"] if kind < 9 else ["H1"]
        symbol = "EURUSD" if frames == ["H1"] else "BTCUSD"
        told = {"name": f"{symbol}-{place:02d}", "symbol": symbol, "timeframes": frames}
        found.append({**told, "profile": profile, "feed": "store", "bridge": "paper"})
    for item in [one for one in found if one["symbol"] == "BTCUSD"][-CHANNELED:]:
        item.update(profile="calm", bridge="torra_files", channel="main")
    return found


def furnish(home: Path, number: int, end: datetime) -> None:
    """Write the files of a home: desk, profiles, headlines and events of the whole run."""
    (home / "profiles").mkdir(parents=True)
    for name, profile in PROFILES.items():
        (home / "profiles" / f"{name}.json").write_text(json.dumps(profile))
    channel = {"folder": str(home / "channel"), "account": ACCOUNT}
    desk = {"instances": instances(number), "channels": {"main": channel}, "keep_calls_days": 1}
    (home / "desk.json").write_text(json.dumps(desk))
    hours = range(int((end - START) / timedelta(hours=1)) + 1)
    (home / "headlines.jsonl").write_text(
        "".join(
            json.dumps({"headline": f"Bitcoin gains as demand grows, report {hour}",
                        "published": iso(START + timedelta(minutes=60 * hour + 7))}) + "\n"
            for hour in hours
        )
    )  # fmt: skip
    times = (START + timedelta(hours=hour) for hour in range(-3, len(hours) + 8, 8))
    events = (f"{iso(moment)},USD,high,statistics" for moment in times)
    (home / "events.csv").write_text("\n".join(["time,currency,impact,name", *events]) + "\n")


class Terminal:
    """The broker's side: the Expert Advisor, and prices that follow the bars."""

    def __init__(self, home: Path) -> None:
        self.advisor = new_advisor(home / "channel")
        self.advisor.symbol("BTCUSD", tick_value=0.01, contract=1, lot_max=50)

    def step(self, clock: Leaping) -> None:
        """Follow the price of the newest bar and run the Advisor's timer once."""
        price = float(desks.sample().bars("BTCUSD", "M15", clock.now(), 1)["close"].iloc[-1])
        self.advisor.quote("BTCUSD", price, price + 1.0, clock.now())
        self.advisor.step(clock.now(), clock.monotonic())


class Errors(logging.Handler):
    """Keeps the errors of a log: those that nobody handled, and those that were only told.

    A database that was locked for too long is told: the wake says so, and the next one goes on.
    """

    def __init__(self, unhandled: list[str], told: list[str]) -> None:
        super().__init__(logging.ERROR)
        self.unhandled, self.told = unhandled, told

    def emit(self, record: logging.LogRecord) -> None:
        kept = self.unhandled if record.exc_info else self.told
        kept.append(self.format(record))


@contextmanager
def made_world(clock: Leaping, errors: list[str], told: list[str]) -> Iterator[None]:
    """Let the desk be opened on the soak's clock and bars, and hear of every error."""
    handler = Errors(errors, told)
    with ExitStack() as stack:
        for module in (wiring, channels):
            stack.enter_context(patch.object(module, "System", lambda: clock))
        stack.enter_context(patch.object(wiring, "clock_maker", lambda _: lambda _stood: clock))
        stack.enter_context(patch.object(wiring, "open_feeds", _feeds))
        stack.enter_context(patch.dict(os.environ, ENVIRONMENT))
        stack.enter_context(
            patch.object(threading, "excepthook", lambda raised: errors.append(repr(raised)))
        )
        logging.getLogger().addHandler(handler)
        stack.callback(logging.getLogger().removeHandler, handler)
        yield


def _feeds(setups: Sequence[Any], *_: object) -> dict[str, Any]:
    return {item.id: desks.sample() for item in setups}


# --- the run --------------------------------------------------------------------------------------


class Soak:
    """One desk through its hours; `found` is what was measured."""

    def __init__(self, home: Path, desk: Desk, settings: DeskSettings, clock: Leaping) -> None:
        self.home, self.desk, self.settings, self.clock = home, desk, settings, clock
        self.found = Found(len(settings.instances), timedelta(0))
        self.terminal = Terminal(home)
        self.pool = ThreadPoolExecutor(len(settings.instances) + 2)
        self.process = psutil.Process()
        backing = PageContext(
            home, desk.database, settings, desk, adopt=desk.adopt, events=desk.events,
            kill_switch=desk.kill_switch,
        )  # fmt: skip
        view = DatabaseView(desk.database, settings, desk)
        app = open_app(view, backing=backing)
        self.visitor = app.test_client()
        self.addresses = cycle(PAGES)
        self.numbers = count()

    def run(self, end: datetime, say: Callable[[str], None]) -> None:
        """Live from close to close until `end`."""
        begun = time.monotonic()
        warm = START + min((end - START) * WARM_SHARE, WARM_MOST)
        self._begin()
        while self.clock.now() < end:
            close = next_close(self.clock.now(), ["M15"])
            self._close(close)
            if close >= warm and not self.found.rss:
                self._weigh()
            if close.minute == 0:
                say(f"{iso(close)}  {self.process.memory_info().rss / 1e6:.0f} MB")
        self._weigh()
        self._count(end)
        self.found.simulated = end - START
        self.found.seconds = time.monotonic() - begun

    def close(self) -> None:
        """End the desk as `torra run` does."""
        self.pool.shutdown()
        self.terminal.advisor.kill()
        if not self.desk.close(within=10.0):
            self.found.errors.append("a tick ran on when the desk closed")

    def _begin(self) -> None:
        desks.open_for_work(self.desk)
        self.desk.start()
        for second in range(1, 4):
            self._between(START + timedelta(seconds=second))

    def _close(self, close: datetime) -> None:
        """Live through one close and the seconds after it."""
        self._between(close - timedelta(seconds=2))
        self._between(close - timedelta(seconds=1))
        self._between(close)
        self.desk.keep()
        names = list(self.desk.setups)
        if close.minute == 0:
            for wake in [self.pool.submit(self._wake, name) for name in names]:
                self.found.together_ms.append(wake.result()[0])
        else:
            for name in names:
                taken, busy, ticks = self.pool.submit(self._wake, name).result()
                if ticks == 1:
                    self.found.alone_ms.append(taken)
                    self.found.cpu_ms.append(busy)
        for seconds in AFTER:
            self._between(max(self.clock.now(), close + timedelta(seconds=seconds)))
        self._visit()
        if close.minute == 0:
            self.desk.prune()
            self.desk.look_at_agents()
        self.found.wal_mb = max(self.found.wal_mb, _mb(self.home / "torra.db-wal"))

    def _between(self, moment: datetime) -> None:
        self.clock.set(moment)
        self.terminal.step(self.clock)
        cast(Any, self.desk.route).turn()  # the courier

    def _wake(self, name: str) -> tuple[float, float, int]:
        """Wake an instance; return the milliseconds, those of CPU, and how many ticks it ran."""
        begun, busy = time.perf_counter(), time.thread_time()
        outcomes = self.desk.wake(name)
        taken = (time.perf_counter() - begun) * 1e3
        busy = (time.thread_time() - busy) * 1e3
        return taken, busy, sum(one.state == "done" for one in outcomes)

    def _visit(self) -> None:
        """Ask for two pages, in turn."""
        for address in (next(self.addresses), next(self.addresses)):
            item = self.settings.instances[next(self.numbers) % len(self.settings.instances)]
            newest = tick_queries.tick_states(self.desk.database, item.id, item.shortest, 1)
            bar_time = newest[0]["bar_time"] if newest else iso(START)
            begun = time.perf_counter()
            answer = self.visitor.get(
                address.format(name=item.id, timeframe=item.shortest, bar_time=bar_time)
            )
            self.found.pages_ms.append((time.perf_counter() - begun) * 1e3)
            self.found.pages[answer.status_code] += 1
            answer.close()

    def _weigh(self) -> None:
        gc.collect()
        self.found.rss.append(self.process.memory_info().rss / 1e6)
        self.found.fds.append(self.process.num_fds())
        self.found.threads.append(threading.active_count())

    def _count(self, end: datetime) -> None:
        """Compare the rows with what was due, and count what became of everything."""
        database = self.desk.database
        for item in self.settings.instances:
            rows = {
                (frame, parse(row["bar_time"])): row
                for frame in item.timeframes
                for row in tick_queries.tick_states(database, item.id, frame, 1_000_000)
            }
            for frame, bar_time in desks.closes_of(item, START, end):
                row = rows.get((frame, bar_time))
                told = f"{row['state']} {row['reason']}".strip() if row else "without a row"
                self.found.ticks[told] += 1
                if row is None or row["state"] in ("claimed", "released"):
                    self.found.missing.append(f"{item.id} {frame} {iso(bar_time)}")
        for row in database.signals(limit=1_000_000):
            self.found.signals[f"{row['bridge'].split()[0]} {row['state']}"] += 1
        self.found.database_mb = _mb(self.home / "torra.db")


def _mb(path: Path) -> float:
    return path.stat().st_size / 1e6 if path.exists() else 0.0


def soak(
    home: Path, hours: float, number: int, say: Callable[[str], None] = lambda _: None
) -> Found:
    """Run a desk of so many instances through so many hours; return what was measured."""
    end = START + timedelta(hours=hours)
    clock = Leaping(START)
    errors: list[str] = []
    told: list[str] = []
    desks.sample()
    furnish(home, number, end)
    with made_world(clock, errors, told):
        desk, settings = wiring.open_desk(home)
        run = Soak(home, desk, settings, clock)
        run.found.errors, run.found.told = errors, told
        try:
            run.run(end, say)
        finally:
            run.close()
    return run.found


def table(lines: Sequence[Line]) -> str:
    """Return the lines as text."""
    words = {True: "holds", False: "DOES NOT HOLD", None: ""}
    return "\n".join(
        f"{line.what:<40}{line.seen:<44}{line.limit:<12}{words[line.holds]}".rstrip()
        for line in lines
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--days", type=float, help="instead of hours")
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--json", type=Path, help="also write the lines to this file")
    told = parser.parse_args(arguments)
    hours = 24.0 * told.days if told.days else told.hours
    with tempfile.TemporaryDirectory(prefix="torra-soak-") as folder:
        found = soak(
            Path(folder) / "home", hours, told.instances, lambda line: print(line, file=sys.stderr)
        )
    lines = found.lines()
    print(table(lines))
    for fault in (*found.errors[:20], *found.told[:20], *found.missing[:20]):
        print(fault, file=sys.stderr)
    if told.json:
        told.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
