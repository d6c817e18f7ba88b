"""`torra import` keeps the spreads of an export; what is stored already gets them and stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from instance_database import open_home
from tests.feeds.test_spreads_of_feeds import HEADER, rows
from tests.worlds.hands import torra
from tests.worlds.homes import desk_file
from torra.clock import parse
from torra.feeds.protocol import COLUMNS
from torra.market.spreads import SPREAD
from torra.replay.shards.history import load

COUNT = 40


def imported(home: Path, lines: list[Any]) -> dict[str, Any]:
    file = home / "XAUUSD_M15.csv"
    file.write_text("".join("\t".join(line) + "\n" for line in lines))
    words = ("import", str(file), "--symbol", "XAUUSD", "--timeframe", "M15", "--clock", "utc")
    done = torra(home, *words, "--json")
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def stored(home: Path) -> pd.DataFrame:
    database = open_home(home)
    found = database.load_bars("XAUUSD", "M15", as_of=parse("2030-01-01T00:00:00Z"))
    database.close()
    return found


def test_an_export_again_adds_its_spreads_and_changes_no_bar(tmp_path: Path) -> None:
    lines = [HEADER, *rows(COUNT)]
    before = imported(tmp_path, [line[:-1] for line in lines])
    bars = stored(tmp_path)
    assert SPREAD not in bars.columns and before["new"] == COUNT
    told = imported(tmp_path, lines)
    assert (told["new"], told["revised"], told["warnings"]) == (0, 0, [])
    found = stored(tmp_path)
    pd.testing.assert_frame_equal(found[list(COLUMNS)], bars)
    assert found[SPREAD].tolist()[:4] == [0.28, 0.27, 0.0, 0.28]
    desk_file(tmp_path, {"symbol": "XAUUSD", "timeframes": ["M15"], "feed": "store"})
    history = load(tmp_path, "XAUUSD", ["store"], timeframes=("M15",))
    pd.testing.assert_frame_equal(history.frames["M15"], found)


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    (warning,) = imported(tmp_path, [HEADER, *rows(COUNT, spreads=("28", "?"))])["warnings"]
    assert "Spreads are left out" in warning and "line 3: spread is '?'" in warning
    assert stored(tmp_path)[SPREAD].isna().sum() == COUNT // 2


def test_a_file_that_does_not_tell_its_point_keeps_its_bars_alone(tmp_path: Path) -> None:
    lines = [[head.strip("<>").lower() for head in HEADER], *rows(20)]
    told = imported(tmp_path, lines)
    assert told["new"] == 20
    (warning,) = told["warnings"]
    assert warning.endswith("its prices do not tell how large a point is.")
    assert SPREAD not in stored(tmp_path).columns
