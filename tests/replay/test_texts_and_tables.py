"""What a report says in words is what its tables show, and what another report says too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.conftest import Scale
from tests.worlds.arm_trades import arm_of
from torra.commands.command_line import main
from torra.config import ROOT
from torra.evaluation.power import LARGER
from torra.evaluation.trade_figures import arm_figures, arms_exhibit

SAMPLE = ROOT / "sample_data" / "BTCUSD_H1.csv"
BARS = 900
"""So many of it say by day all that is asked for: a few weeks of trades."""


def told(home: Path, *words: str) -> Any:
    bars = ("--bars", str(home / SAMPLE.name))
    ran = CliRunner().invoke(main, ["--home", str(home), *words, *bars, "--json"])
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, scaled: Scale) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    head, *rows = SAMPLE.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / SAMPLE.name).write_text(
        "".join((head, *(rows if scaled.whole else rows[:BARS]))), encoding="utf-8"
    )
    return folder


@pytest.fixture(scope="module")
def replay(home: Path) -> Any:
    return told(home, "replay", "BTCUSD", "--arms", "l1", "--name", "one")


@pytest.fixture(scope="module")
def sweep(home: Path) -> Any:
    told(home, "sweep", "BTCUSD", "--thresholds", ".3,.4,.5", "--folds", "1", "--name", "many")
    return json.loads((home / "replays" / "many.json").read_text())


def table(document: Any, name: str) -> Any:
    return next(one for one in document["tables"] if one["name"] == name)


def cell(one: Any, row: int, column: str) -> Any:
    return one["rows"][row][one["columns"].index(column)]


@pytest.mark.journey
def test_the_same_trades_have_the_same_interval_in_a_sweep(replay: Any, sweep: Any) -> None:
    claims, swept = table(replay, "claims"), table(sweep, "sweep")
    trades, mean = cell(claims, 0, "trades"), cell(claims, 0, "R a trade, net")
    same = [
        number
        for number in range(len(swept["rows"]))
        if (cell(swept, number, "trades"), cell(swept, number, "R a trade")) == (trades, mean)
    ]
    assert same
    assert cell(swept, same[0], "95 % interval") == cell(claims, 0, "95 % interval")


def test_the_best_of_a_sweep_is_one_everywhere(sweep: Any) -> None:
    best = cell(table(sweep, "sweep"), 0, "configuration")
    assert f"is {best} with" in table(sweep, "sweep")["says"]
    assert "the best by Sharpe ratio" in table(sweep, "sweep")["says"]
    assert cell(table(sweep, "deflated-sharpe"), 0, "configuration") == best
    assert table(sweep, "random-entries")["rows"][0][0] == best


@pytest.mark.journey
def test_ticks_announced_are_those_run_and_those_that_were_not(replay: Any) -> None:
    (said,) = (line for line in replay["warnings"] if "ticks" in line and "were run" in line)
    assert "had too few bars (too_short)" in said


@pytest.mark.journey
def test_one_count_of_days_in_text_and_table(replay: Any) -> None:
    sharpe = table(replay, "sharpe")
    days = cell(sharpe, 0, "days")
    assert f"{days} trading days are less than a year's" in sharpe["says"] or days >= 252


def test_beside_an_edge_too_few_is_explained() -> None:
    arm = arm_of(np.where(np.random.default_rng(1).random(209) < 0.6, 2.0, -1.0))
    found = arms_exhibit([arm], [arm_figures(arm, np.random.default_rng(2))])
    assert found.enough
    assert "which is too few." + LARGER in found.says
    luck = arm_of([2.0, -1.0, -1.0] * 70)
    none = arms_exhibit([luck], [arm_figures(luck, np.random.default_rng(2))])
    assert not none.enough and LARGER not in none.says
