"""Files that could be read wrong are asked about, refused by name, or warned of."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.worlds.price_series import walk
from torra.errors import ConfigError
from torra.feeds.bar_file import admit
from torra.feeds.csv_file import ClockMissing, read_bars
from torra.market.longer_bars import aggregate
from torra.market.plausibility import flat_rows
from torra.replay import uploads

HEAD = "time,open,high,low,close,volume\n"
FIRST = "2024-01-02T00:00:00Z,1.1,1.3,1.0,1.2,7\n"
SECOND = "2024-01-02T00:15:00Z,1.2,1.3,1.0,1.1,8\n"


def written(folder: Path, text: str | bytes, name: str = "bars.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(folder: Path, text: str | bytes, clock: str | None = None) -> pd.DataFrame:
    return read_bars(written(folder, text), clock=clock)


def handed_in(home: Path, text: str, called: str) -> str:
    begun = uploads.begin(home)
    uploads.add(home, begun, text.encode())
    return uploads.end(home, begun, called).says


@pytest.mark.parametrize("volume", ["0", "7"])
def test_only_a_file_without_a_volume_is_histdatas(tmp_path: Path, volume: str) -> None:
    text = "".join(f"20240102 00{m:02}00;1.1;1.3;1.0;1.2;{volume}\n" for m in range(3))
    if volume == "0":
        frame = read(tmp_path, text)
        assert str(frame.index[0]) == "2024-01-02 05:00:00+00:00"
        assert frame.attrs["shape"].startswith("HistData")
    else:
        with pytest.raises(ClockMissing, match="20240102 000000 and names no clock"):
            read(tmp_path, text)


def test_blank_lines_below_the_head_are_passed_over_and_counted(tmp_path: Path) -> None:
    assert len(read(tmp_path, HEAD + "\n\n" + FIRST + SECOND)) == 2
    with pytest.raises(ConfigError, match=r"line 4: .*'x' is not a time"):
        read(tmp_path, HEAD + "\n\n" + FIRST.replace("2024-01-02T00:00:00Z", "x"))


def packed(method: int) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as archive:
        archive.writestr("a.csv", HEAD + FIRST * 40)
    return whole.getvalue()


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_STORED]
)
def test_a_damaged_zip_is_one_mistake(tmp_path: Path, method: int) -> None:
    sound = packed(method)
    draws = np.random.default_rng(method)
    for _ in range(60):
        damaged = bytearray(sound)
        damaged[int(draws.integers(4, len(damaged)))] ^= int(draws.integers(1, 256))
        try:
            read(tmp_path, bytes(damaged))
        except ConfigError:
            continue


def test_a_zip_with_a_password_is_refused(tmp_path: Path) -> None:
    locked = bytearray(packed(zipfile.ZIP_STORED))
    locked[6] |= 1
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(ConfigError, match=r"cannot read .*encrypted"):
        read(tmp_path, bytes(locked))


def test_thousands_are_no_decimals(tmp_path: Path) -> None:
    head = HEAD.replace(",", ";")
    thousands = "2024-01-02T00:00:00Z;56,000;56,010;55,990;56,005;7\n"
    with pytest.raises(ConfigError, match="open is '56,000', not a number; write numbers with a"):
        read(tmp_path, head + thousands)
    decimals = "2024-01-02T00:00:00Z;100;100,5;99,25;100;7\n"
    frame = read(tmp_path, head + decimals)
    assert frame.iloc[0].tolist() == [100.0, 100.5, 99.25, 100.0, 7.0]
    assert "decimal commas" in frame.attrs["shape"]
    mixed = decimals + "2024-01-02T00:15:00Z;100.5;101;99;100;7\n"
    with pytest.raises(ConfigError, match="'100,5', not a number"):
        read(tmp_path, head + mixed)


def test_an_underscore_is_no_digit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"line 2: high is '1_3', not a number"):
        read(tmp_path, HEAD + FIRST.replace("1.3", "1_3"))


def test_another_clock_for_unix_times_is_refused(tmp_path: Path) -> None:
    bars = walk(300, 3)
    lines = (
        f"{int(at.timestamp()) * 1000},{o},{h},{low},{c},{v}\n"
        for at, o, h, low, c, v in bars.itertuples()
    )
    path = written(tmp_path, "".join(lines))
    assert admit(path, clock=None).report.warnings == admit(path, clock="utc").report.warnings == ()
    with pytest.raises(ConfigError, match="count from 1970, in UTC, so its clock is utc: use that"):
        admit(path, clock="new_york+7")


@pytest.mark.parametrize(
    ("head", "row", "volume"),
    [
        pytest.param(
            "unix,date,symbol,open,high,low,close,Volume BTC,Volume USDT",
            "1704153600,2024-01-02 00:00:00,BTC/USDT,1.1,1.3,1.0,1.2,7,8", 7.0,
            id="volume-of-a-unit",
        ),
        pytest.param(
            "time,open,high,low,close,Volume MA", "1704153600,1.1,1.3,1.0,1.2,7", 0.0,
            id="mean-of-volumes",
        ),
        pytest.param(
            "timestamp,date,time,open,high,low,close,volume",
            "1704153600,2024-01-02,00:00,1.1,1.3,1.0,1.2,7", 7.0, id="seconds-beside-a-date",
        ),
        pytest.param("", "1704153600,1.1,1.3,1.0,1.2,1.15,7,3", 7.0, id="kraken"),
        pytest.param(
            "Time (EET),open,high,low,close,volume", "2024.01.02 02:00,1.1,1.3,1.0,1.2,7", 7.0,
            id="clock-in-the-head",
        ),
    ],
)  # fmt: skip
def test_shapes_that_people_download(tmp_path: Path, head: str, row: str, volume: float) -> None:
    frame = read(tmp_path, f"{head}\n{row}\n".lstrip())
    assert str(frame.index[0]) == "2024-01-02 00:00:00+00:00"
    assert frame.iloc[0].tolist() == [1.1, 1.3, 1.0, 1.2, volume]


def test_a_file_of_columns_alone_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has 100,006 columns: bars have some ten"):
        read(tmp_path, HEAD.strip() + "," * 100_000 + "\n" + FIRST)


def test_an_offset_in_the_head_is_refused_by_that_head(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs time, .*; found time \(utc\+2\), open"):
        read(tmp_path, "Time (UTC+2),open,high,low,close\n2024.01.02 02:00,1,1,1,1\n")


def test_an_error_quotes_little_of_a_long_cell(tmp_path: Path) -> None:
    for text in (HEAD + "x" * 10_000 + FIRST, HEAD + FIRST.replace("1.2", "y" * 10_000)):
        with pytest.raises(ConfigError) as error:
            read(tmp_path, text)
        assert len(str(error.value)) < 400


def test_minutes_that_begin_within_a_span_give_no_bar_of_it() -> None:
    minutes = walk(120, 7)
    minutes.index = pd.date_range("2024-01-02T00:11", periods=120, freq="min", tz="UTC")
    hours = aggregate(minutes, "M1", "H1")
    assert [str(at) for at in hours.index] == ["2024-01-02 01:00:00+00:00"]


def test_quiet_bars_of_an_unknown_volume_are_no_filler() -> None:
    bars = walk(400, 3)
    quiet = bars.index[100:120]
    bars.loc[quiet, ["open", "high", "low", "close"]] = bars["close"].iloc[99]
    assert not flat_rows(bars.assign(volume=0.0)).any()
    bars.loc[quiet, "volume"] = 0.0
    assert flat_rows(bars).sum() == 20


def test_an_upload_takes_what_a_replay_can_be_told_of(tmp_path: Path) -> None:
    below = HEAD + FIRST + SECOND.replace("1.0", "-1.0")
    below += "2024-01-02T00:30:00Z,1.2,1.3,1.0,1.1,8\n"
    told = handed_in(tmp_path, below, "oil.csv")
    assert "Left out: 1 negative bar." in told
    gone = "".join(
        f"2026.03.08 {at // 4:02}:{at % 4 * 15:02},1.1,1.3,1.0,1.2,7\n" for at in range(60)
    )
    told = handed_in(tmp_path, gone, "BTC.csv")  # 09:00 exists on no server of new_york+7
    assert "60 bars of M15, 2026-03-08 to 2026-03-08; choose the broker's clock for it." in told
    euro = walk(300, 3)
    euro[["open", "high", "low", "close"]] *= 110.0 / euro["close"].median()
    path = tmp_path / "euro.csv"
    euro.to_csv(path, date_format="%Y-%m-%dT%H:%M:%SZ")
    told = handed_in(tmp_path, path.read_text(), "FX_EURUSD, 15.csv")
    assert "is outside of the usual 0.3 to 3.5 of EURUSD" in told


def test_a_packed_cell_of_everything_is_bounded(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(b"x" * 3_000_000))
    with pytest.raises(ConfigError, match="holds more than 1,000,000 bytes"):
        read_bars(path, clock=None, most=1_000_000)
