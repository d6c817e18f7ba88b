"""A tick whose agents ask a vendor over a line, and what it left behind."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import torra_trader
from agent_config import AgentSettings
from agents.contracts import VECTORS
from tests.worlds import desks, stores
from torra.clock import duration
from torra.config import Profile, validate
from torra.tick.bar_window import HistoryWindow, LiveWindow
from torra.tick.edges import TickDeps

TIMEFRAME: Final = "H1"


@dataclass(frozen=True)
class Ticked:
    """What a tick left behind. `calls` are rows of the table, in the order of asking."""

    outcome: Any
    record: Mapping[str, Any]
    row: Mapping[str, Any]
    calls: list[dict[str, Any]]
    flags: tuple[str, ...]
    failures: Mapping[str, str]
    elapsed: float

    def of(self, role: str) -> list[dict[str, Any]]:
        """Return the calls of one role."""
        return [call for call in self.calls if call["role"] == role]


@functools.cache
def history() -> HistoryWindow:
    """Return the sample's bars, scored once for all tests that need no database of bars."""
    frame = desks.sample().bars(desks.EUR.symbol, TIMEFRAME, desks.START + timedelta(days=1), None)
    return HistoryWindow({TIMEFRAME: frame})


def tick(folder: Path, provider: Any, settings: AgentSettings, **how: Any) -> Ticked:
    """Run the tick of one bar, or of several one after the other; return the last."""
    return [*ticks(folder, provider, settings, **how)][-1]


def ticks(
    folder: Path,
    provider: Any,
    settings: AgentSettings,
    *,
    live: bool = False,
    bars: int = 1,
    late: float = 0.0,
) -> Iterator[Ticked]:
    """Run the ticks of some bars, one after the other, in a new database.

    `live` lets it compute and store everything as a desk does; else the scores are looked up.
    Answers that are late may come for `late` seconds after the tick.
    """
    values = settings.model_dump()
    profile = validate(Profile, {"agents": values}, "a test")
    folder.mkdir(exist_ok=True)
    (folder / "torra.db").write_bytes(stores.new_database())
    desk = desks.open_desk(folder, (desks.EUR,), profile=profile, provider=provider)
    try:
        desks.open_for_work(desk)
        for _ in range(bars):
            yield _tick(desk, profile, live=live, late=late)
    finally:
        desk.database.close()


def _tick(desk: Any, profile: Profile, *, live: bool, late: float) -> Ticked:
    setup = desk.setups["EURUSD"]
    window = LiveWindow(setup.instance, setup.feed, desk.database) if live else history()
    edges = TickDeps(
        database=desk.database,
        window=window,
        submit=setup.provider.submit,
        provider=setup.provider.name,
        clock=desk.clock,
    )
    if desk.database.latest_tick("EURUSD", TIMEFRAME):
        desk.clock.set(desk.clock.now() + duration(TIMEFRAME))
    bar_time = desk.clock.now() - duration(TIMEFRAME)
    began = time.monotonic()
    outcome = torra_trader.run_tick(
        setup.instance, TIMEFRAME, bar_time, began, profile=profile, edges=edges
    )
    elapsed = time.monotonic() - began
    connection = desk.database.connection()
    (row,) = connection.query("select * from sentiment order by id desc limit 1")

    def read_calls() -> list[dict[str, Any]]:
        statement = "select * from calls where torra_key = ? order by rowid"
        return [dict(call) for call in connection.query(statement, [row["torra_key"]])]

    until = time.monotonic() + late
    while any(call["status"] == "timeout" for call in read_calls()) and time.monotonic() < until:
        time.sleep(0.02)
    calls = read_calls()
    record = desk.database.latest_tick("EURUSD", TIMEFRAME)
    told = record["deliberation"]
    return Ticked(
        outcome, record, row, calls, tuple(told["flags"]), dict(told["failures"]), elapsed
    )


def check_stored(ticked: Ticked) -> None:
    """What holds of every stored row: bounds, one source, and L1 where nobody answered."""
    record, row = ticked.record, ticked.row
    assert ticked.outcome.state == "done"
    assert row["torra_key"] == f"EURUSD|{TIMEFRAME}|{record['bar_time']}"
    assert row["source_type"] == record["source_type"]
    for vector in VECTORS:
        assert row[vector] == record["scores"][vector]["score"]
        assert abs(row[vector] - record["l1"][vector]) <= 0.06 + 1e-9
        if record["source_type"] == "L1_ONLY":
            assert row[vector].hex() == record["l1"][vector].hex()
    if record["source_type"] == "L1_ONLY":
        assert record["composite"] == record["l1_composite"]
