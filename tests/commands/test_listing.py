"""`torra symbols` and `torra ticks`: streams and ticks on a terminal, a desk that has none too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.worlds import desks
from torra.clock import iso
from torra.commands.command_line import main
from torra.home import DATABASE


def torra(home: Path, *words: str, code: int = 0) -> str:
    answer = CliRunner().invoke(main, ["--home", str(home), *words])
    assert answer.exit_code == code, answer.output
    return answer.output


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose desk has run the closes of an hour."""
    folder = tmp_path_factory.mktemp("home")
    desk = desks.open_desk(folder, (desks.BTC, desks.EUR))
    desks.take_lease(desk)
    for _ in range(4):
        desks.step(desk)
    desk.close()
    instances = [
        {"symbol": one.symbol, "timeframes": one.timeframes} for one in (desks.BTC, desks.EUR)
    ]
    (folder / "desk.json").write_text(json.dumps({"instances": instances}))
    return folder


def test_symbols_lists_each_stream_with_its_newest_bar(home: Path) -> None:
    found: Any = json.loads(torra(home, "symbols", "--json"))
    assert [(row["symbol"], row["timeframe"]) for row in found] == [
        ("BTCUSD", "M15"), ("BTCUSD", "H1"), ("EURUSD", "H1"),
    ]  # fmt: skip
    newest = desks.START.replace(hour=10, minute=45)
    assert found[0]["newest_bar"] == iso(newest)
    head, *lines = torra(home, "symbols").splitlines()
    assert head.split() == ["symbol", "timeframe", "feed", "profile", "newest_bar"]
    assert len(lines) == 3 and lines[0].startswith("BTCUSD  M15        sample  default")
    assert lines[0].endswith("2021-11-10T10:45:00Z")


def test_ticks_lists_the_newest_first_and_narrows(home: Path) -> None:
    found: Any = json.loads(torra(home, "ticks", "--json"))
    assert len(found) == len({tuple(row.values()) for row in found}) > 4
    closes = [row["close_time"] for row in found]
    assert closes == sorted(closes, reverse=True)
    assert {row["symbol"] for row in found} == {"BTCUSD", "EURUSD"}
    assert len(torra(home, "ticks", "--limit", "2").splitlines()) == 3
    head, line, *_ = torra(home, "ticks", "eurusd").splitlines()
    assert head.split()[:4] == ["symbol", "timeframe", "close_time", "verdict"]
    assert line.split()[:3] == ["EURUSD", "H1", "2021-11-10T11:00:00Z"]
    told = torra(home, "ticks", "GBPJPY", code=2)
    assert "the desk has no instance GBPJPY; it has BTCUSD, EURUSD" in told


def test_a_score_of_zero_is_no_missing_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"close_time": "2021-11-10T11:00:00Z", "verdict": "HOLD", "consensus": 0.0}
    rows = [row | {"action": None, "reason": ""}]
    monkeypatch.setattr("torra.store.history.HistoryStore.told_ticks", lambda *_: rows)
    line = torra(home, "ticks", "EURUSD").splitlines()[1]
    assert line.split()[2:] == ["2021-11-10T11:00:00Z", "HOLD", "0.0", "-", "-"]


def test_an_instance_is_found_as_it_is_named(tmp_path: Path) -> None:
    instances = [{"symbol": "EURUSD", "name": name} for name in ("EURUSD", "euro")]
    (tmp_path / "desk.json").write_text(json.dumps({"instances": instances}))
    for name in ("euro", "eurusd"):
        assert "No tick is stored" in torra(tmp_path, "ticks", name)
    assert "no instance POUND;" in torra(tmp_path, "ticks", "pound", code=2)


def test_a_home_without_a_database_has_streams_and_no_tick(tmp_path: Path) -> None:
    assert torra(tmp_path, "ticks") == "No tick is stored: `torra run` runs them.\n"
    assert json.loads(torra(tmp_path, "ticks", "--json")) == []
    (first, *_) = json.loads(torra(tmp_path, "symbols", "--json"))
    assert first["newest_bar"] is None
    assert "BTCUSD" in torra(tmp_path, "symbols")
    assert not (tmp_path / DATABASE).exists()
