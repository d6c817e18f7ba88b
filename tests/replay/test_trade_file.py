"""The trades of a replay as CSV: with the replay, of one that was run, and from its page."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cases import cases
from tests.worlds.arm_trades import RISK, arm_of, trade
from tests.worlds.observed import START
from torra.clock import iso
from torra.commands.command_line import main
from torra.config import ROOT
from torra.evaluation.observations import ArmObservation
from torra.exhibits import trade_file
from torra.replay.folders import made_of, seen_of
from torra.words.orders import EXITS

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
    one, first = found[0], min(seen.trades, key=lambda each: each.opened)
    assert (one["arm"], one["symbol"], one["side"]) == ("l1", "BTCUSD", first.side)
    assert one["decided (UTC)"].endswith("Z") and one["closed (UTC)"] > one["opened (UTC)"]
    assert float(one["result (R)"]) == first.r
    assert float(one["profit (account currency)"]) == first.profit
    assert float(one["commission (account currency)"]) == pytest.approx(20 * first.lots)
    assert float(one["net (account currency)"]) == pytest.approx(first.profit - 20 * first.lots)
    assert float(one["net (R)"]) < first.r


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


JUMP = START + timedelta(hours=6)


@cases(
    ("decided", "closed", "marked"),
    [(-1, 2, True), (0, 2, True), (-2, 0, True), (1, 2, False), (-2, -1, False)],
)
def test_a_trade_is_marked_if_a_jump_lies_between_its_decision_and_its_end(
    decided: int, closed: int, marked: bool
) -> None:
    hour = timedelta(hours=1)
    one = trade(JUMP + decided * hour, -1.0, closed - decided)
    text = trade_file.as_csv([ArmObservation("l1", (), (one,))], [JUMP])
    assert rows(text)[0]["jump (UTC)"] == (iso(JUMP) if marked else "")
    lines = trade_file.trade_lines(text)
    ended = f"{EXITS['STOPPED']}, across a jump" if marked else EXITS["STOPPED"]
    assert lines is not None and [line.cells[4] for line in lines] == [ended]
    cleaned = trade_file.clean(text)
    assert cleaned is not None and rows(cleaned)[0]["jump (UTC)"] == rows(text)[0]["jump (UTC)"]
