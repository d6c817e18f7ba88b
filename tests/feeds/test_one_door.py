"""Import, replay and upload take the same files and say the same of one."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from instance_database import open_home
from tests.cases import cases
from tests.feeds.broken_histories import BROKEN, MARKETS, Broken, bars_of, filled, scaled_by
from tests.feeds.field_files import FILES, FieldFile
from tests.worlds.price_series import sample, walk
from torra.clock import System
from torra.desk.setup import bar_import
from torra.errors import ConfigError
from torra.feeds.csv_file import ClockMissing
from torra.market.longer_bars import aggregate
from torra.replay import uploads
from torra.replay.shards import history
from torra.replay.shards.history import home_closes

PRICES = ["open", "high", "low", "close"]


def written(folder: Path, bars: pd.DataFrame, name: str = "bars.csv") -> Path:
    path = folder / name
    bars.rename_axis("time").to_csv(path, date_format="%Y-%m-%dT%H:%M:%SZ")
    return path


def handed_in(home: Path, path: Path, called: str) -> str:
    begun = uploads.begin(home)
    uploads.add(home, begun, path.read_bytes())
    return uploads.end(home, begun, called).says


@pytest.mark.by_day(8)
@pytest.mark.parametrize("broken", BROKEN, ids=[broken.name for broken in BROKEN])
def test_what_is_odd_is_told_at_every_door(tmp_path: Path, broken: Broken) -> None:
    path = written(tmp_path, broken.bars)
    told = history.load(tmp_path, broken.symbol, [str(path)]).warnings
    says = handed_in(tmp_path, path, f"{broken.symbol}_{broken.timeframe}.csv")
    imported = bar_import.run(tmp_path, path, broken.symbol, broken.timeframe, None)["warnings"]
    assert any(broken.says in warning for warning in told)
    sentences = [warning.removeprefix("bars.csv: ") for warning in told]
    assert [warning.removeprefix(f"{path}: ") for warning in imported] == sentences
    assert all(sentence in says for sentence in sentences)


@cases(("symbol", "timeframe"), MARKETS)
def test_what_is_clean_is_accused_at_no_door(tmp_path: Path, symbol: str, timeframe: str) -> None:
    path = written(tmp_path, bars_of(symbol, timeframe))
    assert history.load(tmp_path, symbol, [str(path)]).warnings == ()
    assert bar_import.run(tmp_path, path, symbol, timeframe, None)["warnings"] == []


def test_a_scale_of_ten_is_told_where_the_home_knows_the_symbol(tmp_path: Path) -> None:
    bars = walk(600, 3)
    bar_import.run(tmp_path, written(tmp_path, bars), "ACME", "M15", None)
    known = home_closes(tmp_path, "ACME")
    assert known is not None and len(known) == len(bars)
    hours = scaled_by(aggregate(bars, "M15", "H1"), 10.0)
    path = written(tmp_path, hours, "ACME_H1.csv")
    for told in (
        history.load(tmp_path, "ACME", [str(path)]).warnings,
        bar_import.run(tmp_path, path, "ACME", "H1", None, revise=True)["warnings"],
        [handed_in(tmp_path, path, "ACME_H1.csv")],
    ):
        assert any("The prices are 10 times those of the other bars of ACME" in one for one in told)
    assert home_closes(tmp_path, "OTHER") is None
    assert home_closes(tmp_path / "nowhere", "ACME") is None


@cases("file", [file for file in FILES if file.says], ids=lambda file: file.name)
def test_a_refusal_is_the_same_at_every_door(tmp_path: Path, file: FieldFile) -> None:
    path = tmp_path / "bars.csv"
    path.write_bytes(file.content)
    with pytest.raises(ConfigError) as at_replay:
        history.load(tmp_path, "EURUSD", [str(path)], clock=file.clock)
    with pytest.raises(ConfigError) as at_import:
        bar_import.run(tmp_path, path, "EURUSD", "M15", file.clock)
    assert str(at_import.value) == f"{at_replay.value}; nothing was imported"
    assert file.says in str(at_replay.value)
    database = open_home(tmp_path)
    assert not len(database.load_bars("EURUSD", "M15", as_of=System().now()))
    database.close()
    if isinstance(at_replay.value, ClockMissing):
        return  # an upload asks for the clock afterwards
    below = "not_positive" in str(at_replay.value)  # an upload tells of them, and is kept
    if file.clock is None and not below:
        with pytest.raises(ConfigError) as at_upload:
            handed_in(tmp_path, path, "bars.csv")
        said = str(at_replay.value).replace(str(path), "bars.csv")
        said = said.replace("--clock", "Clock").replace("--leave-out", "Leave out")
        assert str(at_upload.value) == said


def test_filler_is_left_out_by_the_users_word_alone(tmp_path: Path) -> None:
    clean = bars_of("EURUSD", "H1")
    path = written(tmp_path, filled(clean))
    count = len(filled(clean)) - len(clean)
    kept = history.load(tmp_path, "EURUSD", [str(path)])
    assert len(kept.frames["H1"]) == len(clean) + count and kept.omissions == ""
    left = history.load(tmp_path, "EURUSD", [str(path)], leave_out="flat")
    assert left.frames["H1"][PRICES].equals(clean[PRICES])
    assert left.omissions == f"bars.csv: {count:,} flat"
    assert left.warnings == () and f"bars.csv: Left out: {count:,} flat bars." in left.notes
    report = bar_import.run(tmp_path, path, "EURUSD", "H1", None, leave_out="flat")
    assert report["bars"] == len(clean) and report["report"]["omissions"] == {"flat": count}


def test_a_price_below_zero_refuses_a_file_or_is_left_out(tmp_path: Path) -> None:
    bars = bars_of("EURUSD", "H1")
    below = bars.copy()
    below.iloc[500, :4] = [-1.0, 0.5, -2.0, -1.5]
    path = written(tmp_path, below)
    for call in (
        lambda: history.load(tmp_path, "EURUSD", [str(path)]),
        lambda: bar_import.run(tmp_path, path, "EURUSD", "H1", None),
    ):
        with pytest.raises(ConfigError, match=r"open -1\.0.*--leave-out negative"):
            call()
    assert "Left out: 1 negative bar." in handed_in(tmp_path, path, "bars.csv")
    found = history.load(tmp_path, "EURUSD", [str(path)], leave_out="negative")
    assert len(found.frames["H1"]) == len(bars) - 1
    assert found.omissions == "bars.csv: 1 negative"
    assert not (found.frames["H1"][PRICES] <= 0.0).any(axis=None)


def test_shorter_bars_are_put_together_and_longer_ones_refused(tmp_path: Path) -> None:
    quarters = sample("BTCUSD_M15").iloc[:800]
    path = written(tmp_path, quarters)
    told = bar_import.run(tmp_path, path, "BTCUSD", "H1", None)
    assert told["bars"] == len(aggregate(quarters, "M15", "H1"))
    assert "Bars of H1 were put together from those of M15." in told["report"]["notes"]
    with pytest.raises(ConfigError, match="apart, which is not M5"):
        bar_import.run(tmp_path, path, "BTCUSD", "M5", None)


@pytest.mark.parametrize(("missing", "bars"), [(3, 40), (4, 39)])
def test_a_fifth_of_the_minutes_may_be_missing(missing: int, bars: int) -> None:
    minutes = walk(600, 7)
    minutes.index = pd.date_range("2024-01-02", periods=600, freq="min", tz="UTC", name="time")
    kept = minutes.drop(minutes.index[16 : 16 + missing])
    found = aggregate(kept, "M1", "M15")
    assert len(found) == bars
    assert found["close"].iloc[0] == minutes["close"].iloc[14]
    assert len(aggregate(minutes.iloc[:-1], "M1", "M15")) == 39  # the last one may go on
