"""`torra doctor` looks at the stored bars of each stream and names what is odd about them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from instance_database import open_home
from tests.cases import cases
from tests.feeds.broken_histories import BROKEN, Broken, scaled_by
from tests.worlds.hands import doctor_rows
from tests.worlds.homes import desk_file
from tests.worlds.price_series import sample, times_of
from torra.desk.checks.stored import IMPLAUSIBLE

HOURS, QUARTERS = sample("BTCUSD_H1"), sample("BTCUSD_M15")
NOW = times_of(QUARTERS)[-1].to_pydatetime() + timedelta(hours=1)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("torra.clock.System.now", lambda _: NOW)
    return tmp_path


def rows(home: Path, symbol: str, **frames: Any) -> list[dict[str, Any]]:
    """Store bars of each timeframe and return what doctor says of them."""
    home.mkdir(exist_ok=True)
    desk_file(home, {"symbol": symbol, "timeframes": [*frames], "feed": "store"})
    database = open_home(home)
    for timeframe, bars in frames.items():
        database.store_bars(symbol, timeframe, bars)
    database.close()
    return doctor_rows(home, "bars")


@cases("broken", [one for one in BROKEN if one.name in ("filler", "split-EURUSD-H1-10")])
def test_doctor_names_a_broken_stream(home: Path, broken: Broken) -> None:
    (row,) = rows(home / broken.name, broken.symbol, **{broken.timeframe: broken.bars})
    assert row["level"] == "warn"
    assert row["detail"].startswith(f"{broken.symbol} {broken.timeframe}: ")
    assert broken.says in row["detail"]
    assert row["remedy"] == IMPLAUSIBLE


def test_clean_streams_have_one_row_each_and_an_empty_one_has_none(home: Path) -> None:
    found = rows(home, "BTCUSD", M15=QUARTERS, H1=HOURS, H4=HOURS.iloc[:0])
    assert [(row["level"], row["detail"]) for row in found] == [
        ("ok", "BTCUSD M15: 8,686 plausible bars"),
        ("ok", "BTCUSD H1: 2,165 plausible bars"),
    ]


def test_a_timeframe_of_another_scale_is_held_against_the_other(home: Path) -> None:
    fine, wrong = rows(home, "COIN", M15=QUARTERS, H1=scaled_by(HOURS, 10.0))
    assert (fine["level"], wrong["level"]) == ("ok", "warn")
    assert "COIN H1: The prices are 9.999 times those of the other bars" in wrong["detail"]
