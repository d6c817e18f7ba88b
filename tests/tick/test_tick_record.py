"""A record goes through its type without loss, and what cannot be read is its default."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database, TickKey
from tests.doubles import scripted
from tests.worlds import desks, journals
from torra.chart import renderer
from torra.clock import parse
from torra.config import Profile, validate
from torra.store import replay_queries
from torra.tick.tick_record import JournalRecord, TickRecord, load

OF_THE_ROW = {"torra_key", "role", "instructions", "at"}
"""Columns of a stored call that are the store's own."""


Lived = Callable[..., list[dict[str, Any]]]


class Nobody:
    """A provider that nobody is."""

    name = "nobody"
    submit = None

    def close(self) -> None: ...


def stored(database: Database) -> Iterator[dict[str, Any]]:
    """Yield every tick of a desk as its store tells it."""
    for name in ("BTCUSD", "EURUSD"):
        for key in replay_queries.journalled(database, name):
            instance, timeframe, bar_time = key.split("|")
            found = database.tick(TickKey(instance, timeframe, parse(bar_time)))
            assert found is not None
            calls = [
                {column: value for column, value in call.items() if column not in OF_THE_ROW}
                for call in found["calls"]
            ]
            yield json.loads(json.dumps({**found, "calls": calls}))


@pytest.fixture
def lived(tmp_path: Path) -> Lived:
    def live(profile: dict[str, Any], provider: Any = None) -> list[dict[str, Any]]:
        settings = validate(Profile, {"agents": profile}, "a test")
        desk = desks.working_desk(
            tmp_path, profile=settings, provider=provider or scripted.Scripted()
        )
        desks.step(desk, 2)
        found = list(stored(desk.database))
        desk.database.close()
        assert found
        return found

    return live


def lossless(record: dict[str, Any]) -> None:
    debate = record.pop("deliberation")
    read = JournalRecord.parse(record)
    assert JournalRecord.parse(read.as_json()) == read and read.as_json().keys() == record.keys()
    assert isinstance(load("a tick", {**record, "deliberation": debate}), TickRecord)


@pytest.mark.parametrize(
    "agents",
    [
        None,
        {"call_policy": "pivotal", "pivotal_sample": 0.0},
        {"mode": "budget"},
        {"mode": "full", "debate_rounds": 2},
        {"mode": "full", "influence": "shadow"},
        {"picture": "rendered", "include_news": True},
    ],
    ids=["off", "pivotal", "budget", "full", "shadow", "picture"],
)
def test_a_record_of_every_kind_goes_through_without_loss(
    agents: dict[str, Any] | None, lived: Lived, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renderer, "render", lambda *_, **__: b"\x89PNG\r\n\x1a\n")
    for record in lived(agents or {}, Nobody() if agents is None else None):
        lossless(record)


@pytest.mark.journey
def test_a_desk_that_lived_through_much_goes_through_without_loss(tmp_path: Path) -> None:
    """Requests again, timeouts, garbage, proposals, reversals, a halt."""
    database = journals.live(tmp_path, 30)
    try:
        every = list(stored(database))
    finally:
        database.close()
    assert {call["status"] for record in every for call in record["calls"]} >= {"ok", "error"}
    assert any(call["attempt"] > 1 for record in every for call in record["calls"])
    assert any(record["signals"] for record in every)
    for record in every:
        lossless(record)
