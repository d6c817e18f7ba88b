"""A record goes through its type without loss: every one that the golden tables and a desk hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.worlds import journals
from torra.store import standings
from torra.tick.tick_record import JournalRecord, TickRecord, load

TABLES: Final = Path(__file__).parents[1] / "golden" / "texts" / "tables"
DESKS: Final = ("approve", "days", "firm", "paid", "paper", "swarm")


def lossless(record: dict[str, Any]) -> None:
    debate = record.pop("deliberation", None)
    read = JournalRecord.parse(record)
    assert JournalRecord.parse(read.as_json()) == read and read.as_json().keys() == record.keys()
    if debate is not None:
        assert isinstance(load("a tick", {**record, "deliberation": debate}), TickRecord)


def golden(desk: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a golden desk that it holds whole, with what was said where it is."""
    tables = json.loads((TABLES / f"{desk}.json").read_text())
    spoken = {row["torra_key"]: row["agent_deliberation"] for row in tables["sentiment"]}
    for row in tables["journal"]:
        debate = spoken[row["torra_key"]]
        if isinstance(row["record"], dict):
            yield row["record"] | ({"deliberation": debate} if isinstance(debate, dict) else {})


@pytest.mark.parametrize("desk", DESKS)
def test_a_golden_record_goes_through_without_loss(desk: str) -> None:
    records = [*golden(desk)]
    assert records
    for record in records:
        lossless(record)


@pytest.mark.journey
def test_a_desk_that_lived_through_much_goes_through_without_loss(tmp_path: Path) -> None:
    """Requests again, timeouts, garbage, proposals, reversals, a halt."""
    database = journals.live(tmp_path, 30)
    try:
        every = [json.loads(text) for _, text in standings.observed(database, ("BTCUSD", "EURUSD"))]
    finally:
        database.close()
    calls = [call for record in every for call in record["deliberation"]["calls"]]
    assert {call["status"] for call in calls} >= {"ok", "error"}
    assert any(call["attempt"] > 1 for call in calls)
    assert any(record["signals"] for record in every)
    for record in every:
        lossless(record)
