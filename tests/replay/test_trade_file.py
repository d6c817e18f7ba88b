"""The trades of a replay as CSV: with the replay, of one that was run, and from its page."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.worlds.arm_trades import RISK, arm_of
from torra.commands.command_line import main
from torra.config import ROOT
from torra.exhibits import trade_file
from torra.replay.folders import made_of, seen_of

BARS = [str(ROOT / "sample_data" / f"BTCUSD_{name}.csv") for name in ("M15", "H1")]
PERIOD = ["--from", "2021-11-20", "--to", "2021-11-24"]


def torra(home: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), *words])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("trades")
    told = torra(
        found, "replay", "BTCUSD", "--bars", BARS[0], "--bars", BARS[1], *PERIOD, "--arms", "l1",
        "--name", "days", "--costs", ",20,", "--trades", str(found / "out.csv"),
    )  # fmt: skip
    assert told.exit_code == 0, told.output
    assert f"trades: {found / 'out.csv'}" in told.stderr
    return found


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.journey
def test_every_trade_has_its_row_with_units_and_utc_times(home: Path) -> None:
    seen = seen_of(home, made_of(home, "days"), "l1")
    found = rows((home / "out.csv").read_text(encoding="utf-8"))
    assert len(found) == len(seen.trades) > 0
    one, trade = found[0], min(seen.trades, key=lambda each: each.opened)
    assert (one["arm"], one["symbol"], one["side"]) == ("l1", "BTCUSD", trade.side)
    assert one["decided (UTC)"].endswith("Z") and one["closed (UTC)"] > one["opened (UTC)"]
    assert float(one["result (R)"]) == trade.r
    assert float(one["profit (account currency)"]) == trade.profit
    assert float(one["commission (account currency)"]) == pytest.approx(20 * trade.lots)
    assert float(one["net (account currency)"]) == pytest.approx(trade.profit - 20 * trade.lots)
    assert float(one["net (R)"]) < trade.r


@pytest.mark.journey
def test_a_replay_that_was_run_gives_its_trades_by_name(home: Path, tmp_path: Path) -> None:
    told = torra(home, "replay", "--name", "days", "--trades", str(tmp_path / "again.csv"))
    assert told.exit_code == 0, told.output
    assert (tmp_path / "again.csv").read_bytes() == (home / "out.csv").read_bytes()
    assert (home / "replays" / "days" / "trades.csv").read_bytes() == (
        home / "out.csv"
    ).read_bytes()


@pytest.mark.journey
@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(["--name", "none", "--trades", "x.csv"], "there is no replay none", id="none"),
        pytest.param(["--trades", "x.csv"], "name a symbol", id="no-name"),
        pytest.param(
            ["--name", "days", "--trades", "x.csv", "--seed", "1"], "not --seed", id="an-option"
        ),
        pytest.param(["--journal", "--trades", "x.csv"], "not --trades", id="journal"),
        pytest.param(
            ["--name", "days", "--trades", "out.csv/x.csv"], "cannot be written", id="no-place"
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    home: Path, words: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    told = torra(home, "replay", *words)
    assert told.exit_code == 2
    assert says in told.stderr
    assert told.stderr.count("\n") == 1
    assert not (home / "x.csv").exists()


def test_no_cell_is_a_formula_and_a_loss_stays_a_number() -> None:
    text = trade_file.as_csv([arm_of([-1.0, 2.0], "=1+1")])
    found = rows(text)
    assert found[0]["arm"] == "'=1+1"
    assert float(found[0]["profit (account currency)"]) == -RISK
    planted = text.replace("XAUUSD", "@SUM(1)", 1)
    cleaned = trade_file.clean(planted)
    assert cleaned is not None
    assert "'@SUM(1)" in cleaned
    assert float(rows(cleaned)[0]["profit (account currency)"]) == -RISK
    for name in ("7203", "000660", "1E5", "NAN"):
        cleaned = trade_file.clean(text.replace("XAUUSD", name, 2))
        assert cleaned is not None and rows(cleaned)[0]["symbol"] == name
    assert trade_file.clean("a,b\r\n1,2\r\n") is None
