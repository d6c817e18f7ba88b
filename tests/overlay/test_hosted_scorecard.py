"""A hosted stream is judged like others, apart from a desk's, with what its scorer told."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from tests.worlds import scorers
from tests.worlds.busy_desk import VOICES
from tests.worlds.hands import torra
from torra.overlay import judged
from torra.store import hosted as hosted_table

STREAM = "host:scorer:BTCUSD"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with thirty hosted ticks; every fifth bar has an outcome."""
    folder = tmp_path_factory.mktemp("hosted")
    overlay = scorers.overlay(folder, VOICES["wild"](), strict=True)
    for size in range(300, 330):
        answer = scorers.asked(overlay, scorers.bars(size))
        if size % 5 == 0:
            overlay.outcome(answer.key, verdict="BUY", r=1.5 if size % 10 else -1.0)
    overlay.outcome(overlay.key("BTCUSD", "M15", scorers.bars(303).index[-1]), verdict="HOLD")
    overlay.close()
    return folder / "home"


@pytest.mark.journey
def test_the_scorecard_of_a_hosted_stream(home: Path) -> None:
    result = torra(home, "scorecard", STREAM, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["instances"] == [STREAM] and told["ticks_with_agents"] == 30
    assert told["warm_up"] == {"ticks": 0, "trades": 0}
    text = torra(home, "scorecard", STREAM).stdout
    flat = " ".join(text.split())
    assert "Your scorer told the outcome of 7 bars: 6 trades, +1.50 R in sum." in flat
    assert "This stream is another scorer's: Torra sends nothing" in flat
    assert "warm-up" not in flat and "Trades of L1 alone" not in flat


@pytest.mark.journey
def test_a_stream_that_is_not_there_is_one_line(home: Path) -> None:
    result = torra(home, "scorecard", "host:other:GOLD")
    assert result.exit_code == 2
    assert f"there are {STREAM}" in result.stderr and result.stderr.count("\n") == 1
    result = torra(home.parent / "none", "scorecard", STREAM)
    assert result.exit_code == 2 and "no database yet" in result.stderr


@pytest.mark.journey
def test_a_desks_scorecard_has_no_hosted_tick(home: Path, tmp_path: Path) -> None:
    home = shutil.copytree(home, tmp_path / "home")
    (home / "desk.json").write_text('{"instances": [{"symbol": "BTCUSD", "feed": "store"}]}')
    result = torra(home, "scorecard", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["ticks_with_agents"] == 0


def test_outcomes_are_counted_by_the_agents_side() -> None:
    rows = [
        {"verdict": "BUY", "r": 2.0, "consensus": 0.3, "l1_consensus": 0.2},
        {"verdict": "BUY", "r": -1.0, "consensus": 0.1, "l1_consensus": 0.2},
        {"verdict": "SELL", "r": 0.5, "consensus": 0.1, "l1_consensus": 0.2},
        {"verdict": "SELL", "r": 3.0, "consensus": 0.2, "l1_consensus": 0.2},
        {"verdict": "HOLD", "r": None, "consensus": 0.2, "l1_consensus": 0.2},
        {"verdict": "BUY", "r": None, "consensus": 0.2, "l1_consensus": 0.1},
    ]
    found = judged.reported_outcomes(rows)
    assert (found.bars, found.trades, found.r) == (6, 4, 4.5)
    assert found.along == (2, 2.5) and found.against == (1, -1.0)
    assert found.says == (
        "Your scorer told the outcome of 6 bars: 4 trades, +4.50 R in sum. On 2 of them the agents "
        "pushed its way: +2.50 R; on 1 they pushed the other way: -1.00 R."
    )
    assert judged.reported_outcomes([]).says.startswith("Your scorer told no outcome yet")


@pytest.mark.journey
def test_outcomes_are_those_that_were_told(home: Path) -> None:
    with closing(scorers.stored(home.parent)) as database:
        rows = hosted_table.hosted_outcomes(database, STREAM)
        assert len(rows) == 7 and rows == sorted(rows, key=lambda row: row["torra_key"])
        assert hosted_table.hosted_outcomes(database, "host:other:BTCUSD") == []
