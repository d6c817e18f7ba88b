"""A desk that trades often over the sample's bars, with agents that count, look on, or are absent.

`run` opens it and lives through so many closes; `go_on` lives through more. What its ticks left is
told by `records` and `books`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.contracts import VECTORS, Request
from instance_database import TickKey
from tests.doubles import scripted
from tests.worlds import desks, journals
from torra.clock import Simulated, duration
from torra.config import Profile
from torra.desk.schedule import Desk
from torra.desk.timers import running_order
from torra.providers.rules.provider import RulesProvider
from torra.store import replay_queries
from torra.tick.bar_window import HistoryWindow, LiveWindow


def vetoing(request: Request) -> dict[str, Any]:
    if request.role.kind == "gate":
        return scripted.ruling(request, multiplier=0.0, veto=True, reason_code="CONFLICT")
    return scripted.report(request, value=-0.3)


def wild(request: Request) -> dict[str, Any]:
    chance = random.Random(f"{request.role.id}{request.bar_time}{request.timeframe}")
    if request.role.kind == "gate":
        return scripted.ruling(request, multiplier=chance.random(), veto=chance.random() < 0.3)
    told = scripted.report(request, confidence=chance.choice(("high", "low")))
    told["adjustments"] = {vector: chance.uniform(-9.0, 9.0) for vector in VECTORS}
    return told


ROLES = ("technical", "bull_researcher", "bear_researcher", "risk_gate")

VOICES: dict[str, Callable[[], Any]] = {
    "rules": RulesProvider,
    "vetoing": lambda: scripted.Scripted(dict.fromkeys(ROLES, vetoing)),
    "wild": lambda: scripted.Scripted(dict.fromkeys(ROLES, wild)),
}


class Nobody:
    """A provider that nobody is."""

    name = "nobody"
    submit = None

    def close(self) -> None: ...


def trading(influence: str, mode: str = "budget") -> Profile:
    """A profile that trades often, so that vetoes, latches and sizes would be seen."""
    agents = {"influence": influence, "mode": mode}
    return journals.a_profile(agents=agents, risk={"max_signals_per_hour": 60})


def run(
    folder: Path, provider: Any, influence: str, steps: int, *, mode: str = "budget", **edges: Any
) -> Desk:
    profile = trading(influence, mode)
    desk = desks.open_desk(folder, (desks.BTC,), profile=profile, provider=provider)
    if edges:
        plain = desk._edges
        desk._edges = lambda *how: replace(plain(*how), **edges)  # type: ignore[method-assign]
    desks.open_for_work(desk)
    go_on(desk, steps)
    return desk


def go_on(desk: Desk, bars: int) -> None:
    """Live through so many bars more."""
    desks.clock_of(desk).set(desk.clock.now() + bars * desks.QUARTER)
    setup = desk.setups["BTCUSD"]
    history = {
        name: setup.feed.bars("BTCUSD", name, desk.clock.now(), None) for name in ("M15", "H1")
    }
    LiveWindow(setup.instance, setup.feed, desk.database).fill(desk.clock.now())
    window = HistoryWindow(history)
    after = desk.clock.now() - bars * desks.QUARTER
    keys = [
        TickKey("BTCUSD", name, bar_time)
        for name, bar_time in desks.closes_of(desks.BTC, after, desk.clock.now())
    ]
    edges = desk._edges(setup, window, clock := Simulated(after))
    for key in sorted(keys, key=running_order):
        clock.set(key.bar_time + duration(key.timeframe))
        (outcome,) = desk._run(setup, {key: clock.monotonic()}, edges)
        came = key.bar_time in history[key.timeframe].index
        assert outcome.state == ("done" if came else "skipped"), key


def records(desk: Desk) -> list[dict[str, Any]]:
    found = [
        desk.database.tick_without_calls(key)
        for key in replay_queries.journalled(desk.database, "BTCUSD")
    ]
    return [record for record in found if record is not None]


def books(desk: Desk) -> dict[str, list[dict[str, Any]]]:
    """Return every row that a tick's decision leaves, but when and how fast it was written."""
    apart = {"at", "elapsed_ms", "sentiment_id", "id"}
    tables = ("chains", "signals", "signal_events", "latches", "paper_cursor", "proposals", "bars")
    rows = {name: list(desks.rows(desk, f"SELECT * FROM {name}")) for name in tables}
    return {
        name: [{k: v for k, v in row.items() if k not in apart} for row in found]
        for name, found in rows.items()
    }
