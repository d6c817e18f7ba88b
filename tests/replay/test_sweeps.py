"""A sweep over a grid: what it says of noise, of a planted edge, and of itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from tests.conftest import Scale
from tests.worlds import l1_markets
from torra.commands.command_line import main
from torra.config import Instance
from torra.errors import ConfigError
from torra.exhibits.documents import Document
from torra.replay.grids import cells
from torra.replay.l1.sweep import L1Backtest
from torra.replay.shards import trials
from torra.replay.shards.history import History
from torra.replay.sweep_jobs import SweepRequest, swept
from torra.replay.sweeps import Sweeping, check_folds, sweep_cells

WALK = (3, 40, 10)


def swung(bars: int, swing: float) -> pd.DataFrame:
    """A walk that drifts up for a hundred bars, then down for a hundred, and so on."""
    frame = l1_markets.walk(9, bars, holes=0.0)
    drift = np.cumsum(np.where(np.arange(bars) // 100 % 2, -swing, swing))
    prices = ["open", "high", "low", "close"]
    frame[prices] = frame[prices].mul(np.exp(drift), axis=0).round(2)
    frame["high"], frame["low"] = frame[prices].max(axis=1), frame[prices].min(axis=1)
    return frame


def tried(frame: pd.DataFrame, thresholds: str = ".2:.5:.1", **more: Any) -> Sweeping:
    history = l1_markets.history(frame, single=True)
    grid = cells(l1_markets.profile(), thresholds)
    return sweep_cells(history, grid, walk=WALK, draws=200, **more)


def figures(found: Sweeping) -> dict[str, dict[str, float | None]]:
    return {exhibit.name: dict(exhibit.figures) for exhibit in found.exhibits}


def test_noise_shows_no_edge_and_says_so() -> None:
    found = tried(l1_markets.walk(21, 5000))
    told = figures(found)
    assert told["deflated-sharpe"]["deflated"] < 0.9
    assert told["walk-forward"]["low"] < 0 < told["walk-forward"]["high"]
    assert told["overfitting"]["probability"] > 0.1
    assert [exhibit.name for exhibit in found.exhibits] == [
        "sweep", "walk-forward", "overfitting", "deflated-sharpe", "random-entries",
    ]  # fmt: skip
    assert all(exhibit.says.endswith(".") for exhibit in found.exhibits)
    assert "best of many is lucky" in found.exhibits[0].says


def test_a_planted_edge_is_found_on_what_followed_the_choice() -> None:
    told = figures(tried(swung(4000, 0.0025)))
    assert told["walk-forward"]["low"] > 0
    assert told["deflated-sharpe"]["deflated"] > 0.95
    best = next(key for key in told["random-entries"] if key.endswith(".p"))
    assert told["random-entries"][best] < 0.05


def test_the_rows_are_the_configurations_net_of_commission() -> None:
    frame = l1_markets.walk(4, 1200)
    history = l1_markets.history(frame, single=True)
    free, paid = tried(frame), tried(frame, commission=5.0)
    ground = L1Backtest(
        Instance(symbol=history.symbol, timeframes=("M15",), feed="store"), history.frames
    )
    for row, costly, cell in zip(
        free.rows, paid.rows, cells(l1_markets.profile(), ".2:.5:.1"), strict=True
    ):
        trades = ground.run(cell.profile).trades
        assert row.trades == costly.trades == len(trades) > 0
        assert row.expectancy == pytest.approx(np.mean([trade.r for trade in trades]))
        assert costly.expectancy < row.expectancy
        assert row.longs == np.mean([trade.side == "BUY" for trade in trades])
    assert free.rows[0].settings == {"threshold": 0.2}


def test_the_same_words_say_the_same() -> None:
    frame = l1_markets.walk(6, 1500)
    assert tried(frame, seed=3).as_json() == tried(frame, seed=3).as_json()
    assert json.loads(json.dumps(tried(frame).as_json(), allow_nan=False))["bars"] > 1000


def test_a_grid_that_never_trades_is_told_in_words() -> None:
    found = tried(l1_markets.walk(6, 1200), "1")
    assert found.rows[0].trades == 0 and found.rows[0].expectancy is None
    assert not any(exhibit.enough for exhibit in found.exhibits)
    assert "traded" in found.exhibits[0].says
    json.dumps(found.as_json(), allow_nan=False)


def test_folds_that_do_not_fit_are_refused() -> None:
    history = l1_markets.history(l1_markets.walk(6, 500), single=True)
    with pytest.raises(ConfigError, match=r"--folds.*M15.*fewer --folds"):
        sweep_cells(history, cells(l1_markets.profile(), ".3"), walk=(20, 10, 10))


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "part"])
def test_folds_are_checked_as_they_are_made(cut: bool) -> None:
    """What is refused before anything is logged is what the sweep itself would refuse."""
    history = l1_markets.history(l1_markets.walk(6, 900), single=True)
    times = history.frames["M15"].index
    begin, end = (times[300], times[700]) if cut else (None, None)
    ticks = L1Backtest(
        Instance(symbol=history.symbol, timeframes=("M15",), feed="store"),
        history.frames,
        begin=begin,
        end=end,
    ).ticks
    with pytest.raises(ConfigError, match=f"--folds: {len(ticks.close)} bars make 21 parts"):
        check_folds(history, begin, end, (20, 10, 10))


def test_several_symbols_need_a_file_each(tmp_path: Path) -> None:
    asked = SweepRequest(bars=["a.csv"], thresholds=".3")
    with pytest.raises(ConfigError, match="--bars BTCUSD=FILE"):
        swept(tmp_path, ["BTCUSD", "XAUUSD"], asked, say=print)


def test_from_the_command_line(tmp_path: Path, scaled: Scale) -> None:
    """That processes give the same is asked here at night, by day of jobs in test_shards.py."""
    file = tmp_path / "BTCUSD_M15.csv"
    frame = l1_markets.walk(8, 1300, holes=0.0, price=40_000.0)
    frame.to_csv(file, date_format="%Y-%m-%dT%H:%M:%SZ")
    asked = SweepRequest(bars=[str(file)], thresholds=".3,.5", costs="15,0,0", folds=2)
    told: list[str] = []
    (first,) = swept(tmp_path, ["BTCUSD"], asked, say=told.append)
    (again,) = swept(tmp_path, ["BTCUSD"], asked, say=told.append)
    assert "2 configurations of BTCUSD M15" in told[0]
    assert first.found == again.found
    assert first.found["trials"] == again.found["trials"] == trials.count(tmp_path, "BTCUSD") == 2
    assert "Whether the best configuration" in first.text(full=True)
    short = first.text()
    assert "Which settings came to what?" in short and "Seeing" not in short
    assert "The best of 2 configurations" in short or "None of 2" in short
    (document,) = (tmp_path / "replays").glob("btcusd-sweep-*.json")
    assert json.loads(document.read_text())["name"] == first.document.name
    if scaled.whole:
        (spread,) = swept(tmp_path, ["BTCUSD"], replace(asked, workers=2), say=told.append)
        assert spread.found == first.found


def test_a_refused_sweep_costs_no_trial_and_a_report_is_of_what_was_judged(tmp_path: Path) -> None:
    file, page = tmp_path / "BTCUSD_M15.csv", tmp_path / "sweep.html"
    frame = l1_markets.walk(8, 1300, holes=0.0, price=40_000.0)
    frame.to_csv(file, date_format="%Y-%m-%dT%H:%M:%SZ")
    begin = frame.index[400].strftime("%Y-%m-%dT%H:%MZ")
    words = ["sweep", "BTCUSD", "--bars", str(file), "--thresholds", ".3", "--costs", "15,0,0"]
    words = ["--home", str(tmp_path), *words, "--from", begin, "--report", str(page), "--folds"]
    told = CliRunner().invoke(main, [*words, "20"])
    assert told.exit_code == 2 and "ask for fewer --folds" in told.stderr
    assert trials.count(tmp_path, "BTCUSD") == 0
    told = CliRunner().invoke(main, [*words, "2"])
    assert told.exit_code == 0, told.output
    assert "/replays/btcusd-sweep-" in told.stdout and page.read_text().startswith("<!doctype")
    (document,) = (tmp_path / "replays").glob("btcusd-sweep-*.json")
    period = Document.model_validate_json(document.read_text()).period
    assert period.start == frame.index[400]


def test_several_timeframes_have_placebos_of_each() -> None:
    history: History = l1_markets.history(l1_markets.walk(12, 2600))
    found = sweep_cells(history, cells(l1_markets.profile(), ".1,.2"), walk=WALK, draws=100)
    shown = found.exhibits[-1]
    assert shown.rows[0][1] <= max(row.trades for row in found.rows)
    assert "picked as the best of 2" in shown.says
