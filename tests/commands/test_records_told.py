"""`torra doctor` and `torra import` tell of records, and doctor of an instance that leans."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from instance_database import Database, open_home
from tests.worlds.hands import doctor_rows
from tests.worlds.homes import desk_file
from tests.worlds.stores import frame
from torra.verdict.one_sided import TICKS

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    channels = {"main": {"folder": str(tmp_path), "account": 1}}
    gold = {"symbol": "XAUUSD", "timeframes": ["M15"], "feed": "mt5_files"}
    desk_file(tmp_path, gold, channels=channels)
    monkeypatch.setattr("torra.clock.System.now", lambda _: NOW)
    return tmp_path


def stored(home: Path, age: timedelta) -> None:
    database = open_home(home)
    bars = pd.concat(
        [frame([5598.08], NOW - age), frame([5200.0, 5235.07], NOW - timedelta(days=9))]
    )
    database.store_bars("XAUUSD", "M15", bars)
    database.close()


@pytest.mark.parametrize(("days", "level"), [(11, "warn"), (364, "warn"), (365, "ok")])
def test_a_record_younger_than_a_year_is_told(home: Path, days: int, level: str) -> None:
    stored(home, timedelta(days=days))
    (found,) = doctor_rows(home, "record")
    since = (NOW - timedelta(days=days)).date().isoformat()
    assert found["level"] == level
    assert f"record high 5,599.08, record low 5,199, of the bars since {since}" in found["detail"]
    assert ("import FILE --symbol XAUUSD --timeframe M15" in found["remedy"]) == (level != "ok")


def test_a_stream_without_bars_has_no_record(home: Path) -> None:
    open_home(home).close()
    assert doctor_rows(home, "record") == []


def test_an_instance_that_hardly_buys_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_home(home).close()
    assert doctor_rows(home, "verdicts") == []
    asked: list[Any] = []

    def verdicts(_: Database, *told: Any) -> dict[str, int]:
        asked.append(told)
        return {"SELL": 278, "HOLD": TICKS - 278}

    monkeypatch.setattr("torra.store.tick_queries.verdicts_of", verdicts)
    (found,) = doctor_rows(home, "verdicts")
    assert asked == [("XAUUSD", ("M15",), TICKS)]
    assert found["level"] == "warn"
    assert "278 say SELL and none says BUY" in found["detail"]
