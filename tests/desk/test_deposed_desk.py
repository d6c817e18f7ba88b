"""A desk that was stopped until another one took over is told so before it writes anything (T6).

What stops it (Ctrl-Z, a debugger, a machine that sleeps) may do so anywhere. Between the last look
at the lease and the transaction that writes, the other desk may have run the same tick.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.trading.test_courier import GOLD, PAPER, World, position
from tests.worlds import desks
from tests.worlds.stores import opening
from torra.desk.schedule import Desk
from torra.tick.bar_window import LiveWindow


class Stopping:
    """The agents of a desk: it stands still while the first of them is asked."""

    def __init__(self, provider: Any, meanwhile: Callable[[], object]) -> None:
        self.name, self._provider = provider.name, provider
        self._meanwhile: list[Callable[[], object]] = [meanwhile]
        self.asked = 0

    def submit(self, request: Any) -> Any:
        self.asked += 1
        if self._meanwhile:
            self._meanwhile.pop()()
        return self._provider.submit(request)

    def close(self) -> None: ...


def two(folder: Path) -> tuple[Desk, Desk]:
    """Return a desk that works and one that stands by; the lease of the first runs out at once."""
    old, new = (desks.open_desk(folder, (desks.EUR,)) for _ in range(2))
    desks.take_lease(old, seconds=0.0)
    return old, new


def everything(desk: Desk) -> list[tuple[Any, ...]]:
    """Return all rows of the database but the lease and the ticks' own moment."""
    connection = desk.database.connection().conn
    names = [
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
    ]
    return [
        (name, *row)
        for name in sorted(names)
        for row in connection.execute(f"SELECT * FROM {name}")
    ]


@pytest.mark.parametrize("point", ["debate", "look"])
def test_a_tick_that_another_desk_has_run_meanwhile_is_told_the_lease_and_writes_nothing(
    point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = two(tmp_path)
    seen: list[list[tuple[Any, ...]]] = []

    def take_over() -> None:
        desks.take_lease(new)
        assert [outcome.state for outcome in new.wake("EURUSD")] == ["done"]
        seen.append(everything(new))

    setup = old.setups["EURUSD"]
    provider = Stopping(setup.provider, take_over if point == "debate" else lambda: None)
    old.roster.setups = {"EURUSD": replace(setup, provider=provider)}
    if point == "look":
        bars = LiveWindow.bars

        def stopped(self: LiveWindow, *words: Any) -> Any:
            found = bars(self, *words)
            if not seen and self._database is old.database:
                take_over()
            return found

        monkeypatch.setattr(LiveWindow, "bars", stopped)
    with caplog.at_level(logging.ERROR):
        (outcome,) = old.wake("EURUSD")
    assert outcome.detail == "the lease is epoch 2's, not epoch 1's"
    assert "UNIQUE" not in caplog.text
    assert bool(provider.asked) == (point == "debate"), "nobody is paid for a tick of another desk"
    assert everything(old) == seen[0]


def test_a_desk_without_the_lease_publishes_nothing_on_paper(tmp_path: Path) -> None:
    old, new = two(tmp_path)
    desks.take_lease(new)
    new.database.enqueue_signal(opening("T1", instance="EURUSD", symbol="EURUSD"))
    assert old.wake("EURUSD") == []
    row = new.database.signal("T1")
    assert row is not None and row["state"] == "PENDING"


# --- the courier ----------------------------------------------------------------------------------


def stopped_after(world: World, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the desk stop after it has asked something; another one has the lease then."""
    whole = getattr(owner, name)

    def asked(*words: Any, **named: Any) -> Any:
        found = whole(*words, **named)
        world.ours = False
        return found

    monkeypatch.setattr(owner, name, asked)


STOPS: dict[str, Callable[[World, pytest.MonkeyPatch], None]] = {
    "reports": lambda world, patch: stopped_after(world, world.bridge, "poll", patch),
    "books": lambda world, patch: stopped_after(world, world.bridge, "books", patch),
    "halt": lambda world, patch: stopped_after(world, world.switch, "keep", patch),
}


@pytest.mark.parametrize("stop", STOPS)
def test_a_courier_that_stood_still_in_its_turn_writes_nothing(
    stop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world.send()
    world.database.enqueue_signal(opening("T2", instance=PAPER.id, symbol=PAPER.symbol))
    world.database.propose(proposal(world))
    if stop == "reports":
        world.bridge.say("T1", "FILLED", world.clock.now(), price=2000.1, volume=0.1, position="77")
    world.bridge.told_books = world.books(position(magic=GOLD.magic))
    before = rows(world)
    STOPS[stop](world, monkeypatch)
    world.turn(3600.0)
    assert rows(world) == before
    assert len(world.bridge.reports) == int(stop == "reports"), "it is there for the other desk"


def proposal(world: World) -> dict[str, Any]:
    now = world.clock.now()
    return {
        "sid": "P1", "torra_key": "k", "instance": PAPER.id, "symbol": PAPER.symbol,
        "timeframe": "H1", "bar_time": now.isoformat(), "verdict": "BUY", "action": "OPEN_BUY",
        "drafts": "[]", "price": 1.0, "atr": 1.0, "multiplier": 1.0,
        "created_at": now.isoformat(), "expires": (now + timedelta(seconds=60)).isoformat(),
        "state": "WAITING", "reason": "",
    }  # fmt: skip


def rows(world: World) -> list[tuple[Any, ...]]:
    connection = world.database.connection().conn
    tables = ("signals", "signal_events", "proposals", "alarms", "bridges", "desk_state")
    return [row for name in tables for row in connection.execute(f"SELECT * FROM {name}")]
