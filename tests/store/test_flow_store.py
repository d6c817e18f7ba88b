"""Order flow is kept beside the bars: the first row of a bar stays, and no bar changes by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from instance_database import Database
from tests.worlds import flows
from tests.worlds.price_series import sample
from tests.worlds.stores import open_database
from torra.evidence.flow_readings import FlowRow
from torra.store import flow as flow_table

BARS = sample("BTCUSD_M15").iloc[:60]
TIMES = [at.to_pydatetime() for at in BARS.index]
ROWS = list(flows.rows(TIMES, "M15"))
STREAM = ("BTCUSD", "M15")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = open_database(tmp_path)
    made.store_bars(*STREAM, BARS)
    yield made
    made.close()


def held(database: Database) -> list[FlowRow]:
    return flow_table.flow_rows(database, *STREAM, TIMES[0], TIMES[-1])


def test_what_was_stored_comes_back(database: Database) -> None:
    assert flow_table.store_flow(database, *STREAM, reversed(ROWS), "mt5_files") == len(ROWS)
    assert held(database) == ROWS
    assert any(row.levels is None for row in ROWS) and any(row.events for row in ROWS)
    assert flow_table.flow_rows(database, *STREAM, TIMES[5], TIMES[9]) == list(
        flows.rows(TIMES[5:10], "M15")
    )
    assert flow_table.flow_rows(database, "EURUSD", "M15", TIMES[0], TIMES[-1]) == []


def test_the_first_row_of_a_bar_stays_and_only_missing_ones_are_added(database: Database) -> None:
    flow_table.store_flow(database, *STREAM, ROWS[:20], "mt5_files")
    again = [row._replace(ticks=1, levels=None) for row in ROWS[:22]]
    assert flow_table.store_flow(database, *STREAM, again, "mt5_direct") == 2
    assert held(database) == [*ROWS[:20], *again[20:]]
    assert flow_table.store_flow(database, *STREAM, [], "mt5_files") == 0


def test_each_stream_is_told_with_its_newest_row(database: Database) -> None:
    assert flow_table.flow_summary(database) == []
    flow_table.store_flow(database, *STREAM, ROWS, "mt5_files")
    flow_table.store_flow(database, "BTCUSD", "H1", ROWS[:3], "mt5_direct")
    found = {row["timeframe"]: row for row in flow_table.flow_summary(database)}
    assert list(found) == ["H1", "M15"]
    row = found["M15"]
    assert (row["rows"], row["source"]) == (len(ROWS), "mt5_files")
    assert row["books"] == sum(one.levels is not None for one in ROWS)
    assert (row["ticks"], row["events"]) == (ROWS[-1].ticks, ROWS[-1].events)
    newest = flow_table.newest_flow(database, *STREAM)
    assert newest is not None and newest.items() <= row.items()
    assert flow_table.newest_flow(database, "EURUSD", "M15") is None
