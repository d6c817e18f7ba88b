"""`torra replay` and `torra recompose` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from torra.command_line import main
from torra.config import ROOT
from torra.dashboard.replay_files import Document
from torra.replay.recomposing import made_of, seen_of

BARS = [str(ROOT / "sample_data" / f"BTCUSD_{name}.csv") for name in ("M15", "H1")]
PERIOD = ["--from", "2021-11-20", "--to", "2021-11-21"]
ALL = ["--bars", BARS[0], "--bars", BARS[1], *PERIOD]


def torra(home: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), *words])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("replays")
    arms = "l1,analysts,budget,placebo"
    told = torra(
        found, "replay", "btcusd", *ALL, "--arms", arms, "--name", "day", "--report",
        str(found / "day.html"),
    )  # fmt: skip
    assert told.exit_code == 0, told.output
    return found


def test_it_says_beforehand_how_long_it_takes(tmp_path: Path) -> None:
    told = torra(tmp_path, "replay", "BTCUSD", *ALL, "--arms", "l1")
    assert told.exit_code == 0
    assert "120 ticks x 1 arms of BTCUSD; about " in told.stderr


def test_the_document_is_on_the_page_replays(home: Path) -> None:
    found = Document.model_validate_json((home / "replays" / "day.json").read_text())
    assert found.arms == (
        "l1", "analysts", "budget", "placebo_shuffled", "placebo_flipped", "placebo_random",
    )  # fmt: skip
    titles = [table.title for table in found.tables]
    assert titles[0] == "Which arms show an edge"
    assert all(table.says for table in found.tables)
    page = (home / "day.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "Which arms show an edge" in page


def test_json_is_one_document_and_nothing_else(home: Path) -> None:
    told = torra(
        home, "replay", "BTCUSD", *ALL, "--arms", "l1,analysts,budget,placebo", "--name", "day",
        "--json",
    )  # fmt: skip
    assert told.exit_code == 0
    before = json.loads((home / "replays" / "day.json").read_text())
    again = json.loads(told.stdout)
    assert [table["rows"] for table in again["tables"] if table["name"] != "criteria"] == [
        table["rows"] for table in before["tables"] if table["name"] != "criteria"
    ]


def test_the_same_trial_counts_once(home: Path) -> None:
    log = home / "replays" / "trials.jsonl"
    before = log.read_text()
    assert len(before.splitlines()) == 3
    torra(home, "replay", "BTCUSD", *ALL, "--arms", "l1,budget", "--name", "other")
    assert log.read_text() == before
    torra(home, "replay", "BTCUSD", *ALL, "--arms", "l1", "--costs", "1", "--name", "cheap")
    assert len(log.read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["BTCUSD"], "name the bars with --bars FILE"),
        (["BTCUSD", "--bars", "nowhere.csv"], "nowhere.csv"),
        (["BTCUSD", "--bars", BARS[0], "--arms", "best"], "--arms best: known are"),
        (["BTCUSD", "--bars", BARS[0], "--from", "yesterday"], "--from yesterday: write"),
        (["BTCUSD", "--bars", BARS[0], "--from", "2031-01-01"], "no bars of BTCUSD in that period"),
        (["BTCUSD", "--bars", BARS[0], "--costs", "cheap"], "--costs cheap: write three numbers"),
        (["BTCUSD", "--bars", BARS[0], "--provider", "anthropic"], "--max-cost USD"),
        (["BTCUSD", "--bars", BARS[0], "--name", "a/b"], "--name a/b: use letters"),
        (["BTCUSD", "--bars", BARS[0], "--timeframes", "M1"], "no M1 bars of BTCUSD"),
        (["GOLD", "--bars", BARS[0]], "no trading conditions for GOLD"),
        (["BTCUSD", "--bars", "store"], "holds no database yet"),
    ],
    ids=[
        "no-bars", "no-file", "arm", "from", "period", "costs", "paid", "name", "timeframe",
        "symbol", "store",
    ],
)  # fmt: skip
def test_a_mistake_is_one_clear_line(words: list[str], said: str, tmp_path: Path) -> None:
    told = torra(tmp_path, "replay", *words)
    assert told.exit_code == 2
    assert said in told.stderr
    assert len(told.stderr.strip().splitlines()) == 1
    assert told.stdout == ""


def test_with_everything_kept_nothing_changes(home: Path) -> None:
    plan = made_of(home, "day")
    told = torra(home, "recompose", "day", "--arm", "analysts", "--json")
    assert told.exit_code == 0, told.output
    document = json.loads(told.stdout)
    arms = next(table for table in document["tables"] if table["name"] == "arms")
    rows = {row[0]: row[1:] for row in arms["rows"]}
    assert rows["recomposed"] == rows["analysts"]
    assert len(seen_of(home, plan, "analysts").ticks) == 120


def test_dropping_an_analyst_of_a_desk_that_debates_is_first_order(home: Path) -> None:
    exact = torra(home, "recompose", "day", "--arm", "analysts", "--drop", "momentum", "--json")
    assert exact.exit_code == 0, exact.output
    loose = torra(home, "recompose", "day", "--arm", "budget", "--drop", "technical", "--json")
    assert loose.exit_code == 0, loose.output
    assert json.loads(loose.stdout)["warnings"][0].startswith("First order only")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["week"], "there is no replay week"),
        (["day", "--arm", "full"], "has no arm full; it has l1"),
        (["day", "--arm", "budget", "--drop", "bull_researcher"], "--no-debate leaves"),
        (["day", "--arm", "budget", "--weights", "1,2"], "--weights 1,2: write 5"),
    ],
    ids=["replay", "arm", "researcher", "weights"],
)
def test_a_recomposition_that_cannot_be(words: list[str], said: str, home: Path) -> None:
    told = torra(home, "recompose", *words)
    assert told.exit_code == 2
    assert said in told.stderr


def test_win_rates_are_taught_when_asked_for(home: Path) -> None:
    told = torra(home, "replay", "BTCUSD", *ALL, "--arms", "l1", "--name", "taught", "--teach")
    assert told.exit_code == 0, told.output
    assert "taught: M15 BUY" in told.stderr
