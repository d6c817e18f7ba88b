"""The clock of a file: one reader and one word for all commands, and a wrong one is noticed."""

from __future__ import annotations

import gzip
import json
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from click.testing import Result

from instance_database import open_home
from tests.worlds.hands import doctor_rows, torra
from tests.worlds.price_series import sample
from tests.worlds.two_clocks import later, terminal_export
from torra.clock import System
from torra.market.broker_clock import KNOWN
from torra.market.longer_bars import aggregate

BITCOIN = sample("BTCUSD_M15").iloc[:3_800]  # to the week after Europe's change, before America's
EURUSD = sample("EURUSD_H1")

COMMANDS = {
    "import": "import {} --symbol BTCUSD --timeframe M15",
    "replay": "replay BTCUSD --bars {} --arms l1",
    "sweep": "sweep BTCUSD --bars {} --thresholds .4,.5",
    "lookahead": "lookahead BTCUSD --bars {}",
    "tick": "tick BTCUSD M15 --bars {}",
    "consistency": "consistency BTCUSD M15 --bars {}",
}
every_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


def refused(result: Result) -> str:
    assert result.exit_code == 2, result.output
    lines = result.stderr.strip().split("\n")
    assert [line for line in lines if line.startswith("torra:")] == lines[-1:]
    return lines[-1]


def file(folder: Path, name: str, bars: pd.DataFrame, server: str = "new_york+7") -> str:
    """Write the bars as MetaTrader's export on a server of a clock."""
    path = folder / name
    path.write_text(terminal_export(bars, server), newline="")
    return str(path)


def plain(folder: Path, name: str, bars: pd.DataFrame) -> str:
    """Write the bars in the shipped format, with the times that they have."""
    path = folder / name
    bars.rename_axis("time").to_csv(path, date_format="%Y-%m-%d %H:%M")
    return str(path)


def bring(home: Path, path: str, timeframe: str, *more: str, symbol: str = "BTCUSD") -> Result:
    return torra(home, "import", path, "--symbol", symbol, "--timeframe", timeframe, *more)


def stored(home: Path, timeframe: str, symbol: str = "BTCUSD") -> pd.DataFrame:
    with closing(open_home(home)) as database:
        return database.load_bars(symbol, timeframe, as_of=System().now())


# --- one reader -----------------------------------------------------------------------------------


@every_command
def test_an_export_of_metatrader_demands_a_known_clock(tmp_path: Path, command: str) -> None:
    path = file(tmp_path, "M15.csv", BITCOIN.iloc[:300])
    told = refused(torra(tmp_path / "home", *command.format(path).split()))
    assert f"{path} is an export of MetaTrader 5" in told
    assert "say which with --clock, at most brokers new_york+7" in told
    assert KNOWN in told
    words = (*command.format(path).split(), "--clock", "Atlantis")
    assert f"unknown clock 'Atlantis': use {KNOWN}" in refused(torra(tmp_path / "home", *words))


NEEDS = "needs time, open, high, low, close; found date, price, amount: export bars"


@pytest.mark.parametrize("rows", [0, 300], ids=["no-rows", "rows"])
@every_command
def test_wrong_columns_are_told_as_such(command: str, rows: int, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("date,price,amount\n" + "2024-01-01,1.5,2\n" * rows, encoding="utf-8")
    assert f"{path} {NEEDS}" in refused(torra(tmp_path / "home", *command.format(path).split()))


def test_a_packed_file_and_a_long_head_are_told_so_too(tmp_path: Path) -> None:
    packed, long = tmp_path / "bad.csv.gz", tmp_path / "long.csv"
    packed.write_bytes(gzip.compress(b"date,price,amount\n2024-01-01,1.5,2\n"))
    assert f"{packed} {NEEDS}" in torra(tmp_path, "replay", "BTCUSD", "--bars", str(packed)).stderr
    long.write_text(",".join(["x" * 400, "<b>\x1b[31m"] * 40) + "\n", encoding="utf-8")
    told = torra(tmp_path, "replay", "BTCUSD", "--bars", str(long)).stderr
    assert "found xxxxxxxxxxxxxxxxxxxxxxxx, " in told and "\x1b" not in told and len(told) < 700


@every_command
def test_help_names_the_clocks(tmp_path: Path, command: str) -> None:
    told = torra(tmp_path, command.split(maxsplit=1)[0], "--help").output
    assert KNOWN in " ".join(told.split()).replace(" (most MT5 brokers)", "")


@pytest.mark.parametrize(
    "clock",
    [
        "utc",
        "new_york+7",
        "+03:00",
        "Europe/Athens",
        pytest.param("Europe/London", marks=pytest.mark.nightly),
    ],
)
def test_an_export_is_stored_in_utc_whatever_its_clock(tmp_path: Path, clock: str) -> None:
    path = file(tmp_path, "H1.csv", EURUSD, clock)
    answer = bring(tmp_path, path, "H1", "--clock", clock, "--json", symbol="EURUSD")
    told = json.loads(answer.stdout)
    assert (told["clock"], told["warnings"]) == (clock, [])
    pd.testing.assert_index_equal(
        stored(tmp_path, "H1", "EURUSD").index, EURUSD.index, check_names=False, exact=False
    )


# --- two timeframes at import ---------------------------------------------------------------------


def test_a_timeframe_on_another_clock_is_not_imported(tmp_path: Path) -> None:
    short = plain(tmp_path, "M15.csv", BITCOIN)
    long = file(tmp_path, "H1.csv", aggregate(BITCOIN, "M15", "H1"))
    assert bring(tmp_path, short, "M15").exit_code == 0
    told = refused(bring(tmp_path, long, "H1", "--clock", "utc"))
    assert told.startswith(f"torra: {long}: the times of H1 are 3 h later than those of M15 in 6 ")
    assert "nothing was imported. Give the clock of the file with --clock; if it is utc" in told
    assert "import M15 again under its own, with --revise" in told
    assert stored(tmp_path, "H1").empty
    right = json.loads(bring(tmp_path, long, "H1", "--clock", "new_york+7", "--json").stdout)
    assert right["new"] > 900 and right["warnings"] == []


@pytest.mark.journey
def test_what_is_stored_under_a_wrong_clock_can_be_mended(tmp_path: Path) -> None:
    hours = aggregate(BITCOIN, "M15", "H1")
    bring(tmp_path, plain(tmp_path, "M15.csv", later(BITCOIN, 3)), "M15")
    bring(tmp_path, plain(tmp_path, "H1.csv", later(hours, 3)), "H1")
    right = plain(tmp_path, "M15 right.csv", BITCOIN)
    refused(bring(tmp_path, right, "M15"))
    told = bring(tmp_path, right, "M15", "--revise")
    assert told.exit_code == 0
    assert "warning: the times of H1 are 3 h later" in told.stdout
    assert "import H1 again under its own --clock, with --revise" in told.stdout
    last = bring(tmp_path, plain(tmp_path, "H1 right.csv", hours), "H1", "--revise")
    assert last.exit_code == 0 and "warning" not in last.stdout


@pytest.mark.journey
def test_no_bar_of_the_wrong_clock_stays(tmp_path: Path) -> None:
    """Bars at times at which the market is closed, and their prices of hours to come, too."""
    bring(tmp_path, plain(tmp_path, "wrong.csv", later(EURUSD, 3)), "H1", symbol="EURUSD")
    right = plain(tmp_path, "right.csv", EURUSD)
    told = refused(bring(tmp_path, right, "H1", symbol="EURUSD"))
    assert "it also withdraws the stored bars that the file does not have" in told
    found = json.loads(bring(tmp_path, right, "H1", "--revise", "--json", symbol="EURUSD").stdout)
    assert found["withdrawn"] > 100
    assert found["warnings"] == [
        "3 bars within 14 hours before or after those of the file stay as they were stored: if "
        "their clock was wrong too, import a longer file"
    ]
    held = stored(tmp_path, "H1", "EURUSD")
    pd.testing.assert_frame_equal(
        held.iloc[:-3], EURUSD, check_freq=False, check_index_type=False, check_names=False
    )
    again = json.loads(bring(tmp_path, right, "H1", "--json", symbol="EURUSD").stdout)
    assert (again["new"], again["revised"], again["withdrawn"]) == (0, 0, 0)


@pytest.mark.journey
def test_a_file_is_judged_by_the_bars_that_are_in_both(tmp_path: Path) -> None:
    """A day that differs in every bar is a wrong clock, however long the rest of the file."""
    bring(tmp_path, plain(tmp_path, "old.csv", BITCOIN.iloc[:2_000]), "M15")
    wrong = plain(tmp_path, "wrong.csv", later(BITCOIN.iloc[1_900:], 3))
    told = refused(bring(tmp_path, wrong, "M15"))
    assert "of the 88 bars that are in both; nothing was imported" in told
    # The last bars of an export may have been forming.
    forming = BITCOIN.iloc[1_998:].copy()
    forming["volume"] += 1.0
    assert bring(tmp_path, plain(tmp_path, "next.csv", forming), "M15").exit_code == 0


# --- a first import -------------------------------------------------------------------------------


@pytest.mark.journey
def test_a_first_import_under_a_wrong_clock_says_so(tmp_path: Path) -> None:
    server, clock = "Europe/Athens", "new_york+7"
    path = file(tmp_path, "H1.csv", EURUSD, server)
    told = bring(tmp_path, path, "H1", "--clock", clock, symbol="EURUSD")
    assert told.exit_code == 0
    assert f"warning: {path}: Its weeks begin in New York at " in told.stdout
    assert f"does not fit the clock {clock}; {server} " in told.stdout
    again = json.loads(
        bring(tmp_path, path, "H1", "--clock", clock, "--json", symbol="EURUSD").stdout
    )
    assert [server in line for line in again["warnings"]] == [True]


# --- before anything is measured ------------------------------------------------------------------


@pytest.mark.journey
@pytest.mark.parametrize("command", ["replay", "sweep", "lookahead"])
def test_files_of_different_clocks_are_not_measured(tmp_path: Path, command: str) -> None:
    short = plain(tmp_path, "M15.csv", BITCOIN)
    long = plain(tmp_path, "H1.csv", later(aggregate(BITCOIN, "M15", "H1"), -2))
    words = [*COMMANDS[command].format(short).split(), "--bars", long]
    told = refused(torra(tmp_path / "home", *words))
    assert "BTCUSD: the times of H1 are 2 h earlier than those of M15" in told
    assert "(H1.csv and M15.csv); --clock holds for all files: import each under its own" in told


@pytest.mark.parametrize("command", ["replay", "sweep", "lookahead"])
def test_a_store_of_different_clocks_is_not_measured(tmp_path: Path, command: str) -> None:
    _two_clocks(tmp_path)
    told = refused(torra(tmp_path, *COMMANDS[command].format("store").split()))
    assert "BTCUSD: the times of H1 are 2 h earlier than those of M15" in told
    assert "--clock CLOCK --revise" in told


def test_doctor_names_a_store_of_different_clocks(tmp_path: Path) -> None:
    _two_clocks(tmp_path)
    found = doctor_rows(tmp_path, "timeframes")
    assert [(row["level"], row["detail"].split(" in ")[0]) for row in found] == [
        ("alert", "BTCUSD: the times of H1 are 2 h earlier than those of M15")
    ]
    assert "--clock CLOCK --revise" in found[0]["remedy"]


def _two_clocks(home: Path) -> None:
    """Fill a home as Torra did before it held timeframes against each other."""
    with closing(open_home(home)) as database:
        database.store_bars("BTCUSD", "M15", BITCOIN)
        database.store_bars("BTCUSD", "H1", later(aggregate(BITCOIN, "M15", "H1"), -2))
