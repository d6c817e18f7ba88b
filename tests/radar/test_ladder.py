"""The ladder of a run: rules, an earlier run with its age, an error; and what is kept."""

from __future__ import annotations

import json
import os
import random
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database
from tests.conftest import Scale
from tests.faults import kills
from tests.worlds import desks, radar_desks
from tests.worlds.stores import Hand
from torra.config import RadarSettings
from torra.errors import StoreUnavailable
from torra.radar import ladder
from torra.radar.ladder import RadarError
from torra.radar.result import RadarRow, RadarRun
from torra.store import radar_runs
from torra.tools.desk_reader import DeskReader


@pytest.fixture
def reader(database: Database, tmp_path: Path) -> DeskReader:
    radar_desks.store_walks(database)
    return radar_desks.reader(database, tmp_path, radar=RadarSettings(near=1.0))


def broken(*_: Any) -> Any:
    raise ZeroDivisionError("the core")


def row(**more: Any) -> dict[str, Any]:
    return {"universe": "u", "as_of": "2026-01-01T00:00:00Z", "mode": "rules",
            "trigger_code": "", "document": "{}", **more}  # fmt: skip


def test_a_run_is_stored_as_it_is_returned(reader: DeskReader) -> None:
    number, found = ladder.run(reader)
    stored = radar_runs.run(reader.database, number)
    assert stored is not None and (stored["mode"], stored["trigger_code"]) == ("rules", "")
    assert RadarRun.model_validate_json(stored["document"]) == found
    assert not found.using_non_ai_fallback, "rules by choice is no fallback"


def test_a_core_that_fails_shows_the_newest_run_older_and_without_act(
    reader: DeskReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first = ladder.run(reader)
    acting = [one.model_copy(update={"bucket": "act"}) for one in first.watch[:2]]
    some = first.model_copy(update={"act": (*acting,), "watch": first.watch[2:]})
    monkeypatch.setattr(ladder, "scan", lambda *_: some)
    ladder.run(reader)
    monkeypatch.setattr(ladder, "scan", broken)
    later = replace(reader, as_of=reader.as_of + timedelta(hours=23))
    number, found = ladder.run(later)
    assert (found.mode, found.using_cached_data, found.act) == ("cached", True, ())
    assert (found.fallback_trigger, found.fallback_reason) == (
        "CORE_FAILED", "the scan met ZeroDivisionError",
    )  # fmt: skip
    assert [one.code for one in found.watch[:2]] == ["STALE", "STALE"]
    ages = {one.stream: one.age_s for one in (*some.act, *some.watch)}
    assert all(one.age_s == ages[one.stream] + 23 * 3600.0 for one in found.watch)
    coverage = found.coverage
    total = coverage.act + coverage.watch + coverage.exit_radar + coverage.quiet
    assert total + len(coverage.failed) == coverage.streams and coverage.act == 0
    assert (radar_runs.run(reader.database, number) or {})["mode"] == "cached"
    with pytest.raises(RadarError, match="too old"):
        ladder.run(replace(later, as_of=later.as_of + timedelta(hours=2)))


@pytest.mark.parametrize("hours", [25, None])
def test_without_a_fresh_run_it_is_an_error_that_is_counted(
    reader: DeskReader, monkeypatch: pytest.MonkeyPatch, hours: int | None
) -> None:
    if hours:
        ladder.run(reader)
    monkeypatch.setattr(ladder, "scan", broken)
    later = replace(reader, as_of=reader.as_of + timedelta(hours=hours or 0))
    with pytest.raises(RadarError, match="too old" if hours else "none is stored"):
        ladder.run(later)
    counts = radar_runs.mode_counts(reader.database, reader.database.now() - timedelta(days=1))
    assert counts == {"ai": 0, "rules": int(bool(hours)), "cached": 0, "error": 1}
    newest = radar_runs.newest_run(reader.database, failed=True)
    assert newest is not None and (newest["mode"], newest["document"]) == ("error", "")


def test_streams_that_all_fail_are_no_run(database: Database, tmp_path: Path) -> None:
    """No bar is stored: nothing could be said of any stream."""
    with pytest.raises(RadarError, match="SYM0 M15: no bar is stored"):
        ladder.run(radar_desks.reader(database, tmp_path))


def test_a_run_of_another_version_stands_in_for_none(
    reader: DeskReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    ladder.run(reader)
    reader.database.change("UPDATE radar_runs SET document = '{}'")
    monkeypatch.setattr(ladder, "scan", broken)
    with pytest.raises(RadarError, match="none is stored"):
        ladder.run(reader)


def test_another_choice_of_streams_stands_in_for_none(
    reader: DeskReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    ladder.run(reader, ["SYM1"])
    monkeypatch.setattr(ladder, "scan", broken)
    with pytest.raises(RadarError):
        ladder.run(reader, ["SYM2"])
    assert ladder.run(reader, ["SYM1"])[1].mode == "cached"


def test_a_store_that_fails_is_no_fault_of_the_core(
    reader: DeskReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        raise StoreUnavailable("the disk")

    monkeypatch.setattr(ladder, "scan", failing)
    with pytest.raises(StoreUnavailable):
        ladder.run(reader)
    assert radar_runs.newest_run(reader.database, failed=True) is None


def test_runs_of_thirty_days_are_kept_and_the_newest_of_each_universe(
    database: Database, hand: Hand
) -> None:
    first = radar_runs.add_run(database, row())
    radar_runs.add_run(database, row(universe="other"))
    radar_runs.add_run(database, row(mode="error", document=""))
    hand.pass_by(31 * 86_400.0)
    assert radar_runs.run(database, first) is not None
    radar_runs.add_run(database, row(universe="other"))
    kept = database.rows("SELECT universe, mode FROM radar_runs ORDER BY id")
    assert [tuple(one.values()) for one in kept] == [("u", "rules"), ("other", "rules")]


def test_at_most_three_thousand_runs_are_kept(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert radar_runs.MOST == 3_000
    monkeypatch.setattr(radar_runs, "MOST", 5)
    numbers = [radar_runs.add_run(database, row()) for _ in range(12)]
    assert database.column("SELECT id FROM radar_runs ORDER BY id") == numbers[-5:]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_any_kill_the_latest_run_can_be_read(tmp_path: Path, scaled: Scale) -> None:
    """After 1,000 kills at night; a run that was stored once is never gone."""
    chance, newest = random.Random(68), 0
    some = RadarRow(
        stream="A|M15", symbol="A", timeframe="M15", bucket="watch", code="STALE",
        codes=("STALE",), as_of="2026-01-01T00:00:00Z", age_s=1.0,
    )  # fmt: skip
    text = json.dumps({"rows": [some.model_dump()] * 40})

    def life() -> None:
        with closing(desks.open_database(tmp_path)) as database:
            while True:
                radar_runs.add_run(database, row(document=text))

    desks.open_database(tmp_path).close()
    died = 0
    for _ in range(scaled(1_000, least=6)):
        died += kills.run_for(chance.uniform(0.02, 0.3), life)
        with closing(desks.open_database(tmp_path)) as database:
            found = radar_runs.newest_run(database)
            assert found is None or json.loads(found["document"])["rows"]
            number = int(found["id"]) if found else 0
            assert number >= newest
            newest = number
    assert died and newest
