"""`torra ticks`: scores on a terminal, and the names of instances."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worlds.hands import torra
from tests.worlds.homes import desk_file
from tests.worlds.stores import open_database


def test_a_score_of_zero_is_no_missing_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_database(tmp_path).close()
    row = {"close_time": "2021-11-10T11:00:00Z", "verdict": "HOLD", "consensus": 0.0}
    rows = [row | {"action": None, "reason": ""}]
    monkeypatch.setattr("torra.store.tick_queries.tick_summaries", lambda *_: rows)
    line = torra(tmp_path, "ticks", "EURUSD").output.splitlines()[1]
    assert line.split()[2:] == ["2021-11-10T11:00:00Z", "HOLD", "0.0", "-", "-"]


def test_an_instance_is_found_as_it_is_named(tmp_path: Path) -> None:
    desk_file(tmp_path, *({"symbol": "EURUSD", "name": name} for name in ("EURUSD", "euro")))
    for name in ("euro", "eurusd"):
        assert "No tick is stored" in torra(tmp_path, "ticks", name).output
    assert "no instance POUND;" in torra(tmp_path, "ticks", "pound").stderr
