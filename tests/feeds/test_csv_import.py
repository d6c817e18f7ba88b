"""What a table of files cannot say: last digits, clocks, damaged files, what an upload takes."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.feeds import field_files
from tests.worlds.price_series import walk
from torra.errors import ConfigError
from torra.feeds.csv_file import ClockMissing, read_bars
from torra.market.longer_bars import aggregate
from torra.market.plausibility import flat_rows
from torra.replay import uploads

HEAD = "time,open,high,low,close,volume\n"
FIRST = "2024-01-02T00:00:00Z,1.1,1.3,1.0,1.2,7\n"
EXPORT = next(one for one in field_files.FILES if one.name == "mt5-tabs-no-brackets").content


def written(folder: Path, text: str | bytes, name: str = "bars.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(folder: Path, text: str | bytes, clock: str | None = None) -> pd.DataFrame:
    return read_bars(written(folder, text), clock=clock)


def opened(folder: Path, clock: str, *times: str) -> list[datetime]:
    text = "".join(f"{time},1,1,1,1,1\n" for time in times)
    return [t.to_pydatetime() for t in read(folder, text, clock).index]


def handed_in(home: Path, text: str, called: str) -> str:
    begun = uploads.begin(home)
    uploads.add(home, begun, text.encode())
    return uploads.end(home, begun, called).says


# --- cells ----------------------------------------------------------------------------------------


def test_daily_bars_come_without_a_time_column(tmp_path: Path) -> None:
    rows = "".join(f"2024.01.0{day}\t1\t1\t1\t1\t1\n" for day in (2, 3, 4))
    head = "<DATE>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\n"
    for text in (head + rows, rows):
        days = read(tmp_path, text, "utc").index.tolist()
        assert days == [datetime(2024, 1, day, tzinfo=UTC) for day in (2, 3, 4)]


@pytest.mark.parametrize(
    ("heads", "cells", "volume"),
    [("<VOL>,<TICKVOL>", "0,412", 412), ("volume,tick_volume", "7,412", 412),
     ("real_volume", "9", 9)],
)  # fmt: skip
def test_tick_volume_wins_and_real_volume_serves_where_there_is_no_other(
    tmp_path: Path, heads: str, cells: str, volume: float
) -> None:
    text = f"time,open,high,low,close,{heads}\n2024.01.02 00:00,1,1,1,1,{cells}\n"
    assert read(tmp_path, text, "utc")["volume"].tolist() == [volume]


def test_numbers_are_read_to_the_last_digit(tmp_path: Path) -> None:
    texts = ("1.0523600000000001", "1.0542599999999998", "0.1", "2.675", "144")
    frame = read(tmp_path, f"2024.01.02 00:00,{','.join(texts)}\n", "utc")
    assert frame.iloc[0].tolist() == [float(text) for text in texts]


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
    ],
)  # fmt: skip
def test_shapes_that_people_download(tmp_path: Path, head: str, row: str, volume: float) -> None:
    frame = read(tmp_path, f"{head}\n{row}\n".lstrip())
    assert str(frame.index[0]) == "2024-01-02 00:00:00+00:00"
    assert frame.iloc[0].tolist() == [1.1, 1.3, 1.0, 1.2, volume]


# --- clocks ---------------------------------------------------------------------------------------


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


def test_what_is_written_as_metatrader_writes_demands_a_clock(tmp_path: Path) -> None:
    for text in (EXPORT, EXPORT.partition(b"\n")[2]):
        with pytest.raises(ClockMissing, match=r"--clock.*utc, new_york\+7.*Europe/Athens"):
            read(tmp_path, text)


def test_the_hour_that_comes_twice_in_autumn(tmp_path: Path) -> None:
    quarters = [f"2026.11.01 08:{m:02}" for m in (0, 15, 30, 45)]
    twice = opened(
        tmp_path, "new_york+7", "2026.11.01 07:45", *quarters, *quarters, "2026.11.01 09:00"
    )
    start = datetime(2026, 11, 1, 4, 45, tzinfo=UTC)
    assert twice == [start + at * timedelta(minutes=15) for at in range(10)]


def test_the_hour_that_does_not_exist_in_spring_is_refused(tmp_path: Path) -> None:
    assert opened(tmp_path, "new_york+7", "2026.03.08 08:45", "2026.03.08 10:00") == [
        datetime(2026, 3, 8, 6, 45, tzinfo=UTC),
        datetime(2026, 3, 8, 7, tzinfo=UTC),
    ]
    with pytest.raises(ConfigError, match=r"bars\.csv, line 2: .*09:00.*does not exist.*clock"):
        opened(tmp_path, "new_york+7", "2026.03.08 08:45", "2026.03.08 09:00")


@pytest.mark.parametrize(
    ("clock", "offsets"),
    [("new_york+7", ("+02:00", "+03:00")), ("-05:30", ("-05:30",)), ("utc", ("+00:00",))],
)
def test_the_offsets_that_were_used_are_recorded(
    tmp_path: Path, clock: str, offsets: tuple[str, ...]
) -> None:
    text = "".join(f"2026.03.{day} 12:00,1,1,1,1,1\n" for day in ("06", "10"))
    frame = read(tmp_path, text, clock)
    assert (frame.attrs["clock"], frame.attrs["utc_offsets"]) == (clock, offsets)


# --- files ----------------------------------------------------------------------------------------


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.csv", tmp_path):
        with pytest.raises(ConfigError, match=f"cannot read {path}"):
            read_bars(path, clock="utc")


def test_an_error_quotes_little_of_a_long_cell(tmp_path: Path) -> None:
    for text in (HEAD + "x" * 10_000 + FIRST, HEAD + FIRST.replace("1.2", "y" * 10_000)):
        with pytest.raises(ConfigError) as error:
            read(tmp_path, text)
        assert len(str(error.value)) < 400


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


# --- behind the file ------------------------------------------------------------------------------


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
    gone = "".join(
        f"2026.03.08 {at // 4:02}:{at % 4 * 15:02},1.1,1.3,1.0,1.2,7\n" for at in range(60)
    )
    told = handed_in(tmp_path, gone, "BTC.csv")  # 09:00 exists on no server of new_york+7
    assert "60 bars of M15, 2026-03-08 to 2026-03-08; choose the broker's clock for it." in told
    euro = walk(300, 3)
    euro[["open", "high", "low", "close"]] *= 110.0 / euro["close"].median()
    told = handed_in(tmp_path, euro.to_csv(date_format="%Y-%m-%dT%H:%M:%SZ"), "FX_EURUSD, 15.csv")
    assert "is outside of the usual 0.3 to 3.5 of EURUSD" in told


def test_a_packed_file_of_any_name_is_bounded(tmp_path: Path) -> None:
    path = written(tmp_path, packed(zipfile.ZIP_DEFLATED))
    assert len(read_bars(path, clock=None)) == 40
    with pytest.raises(ConfigError, match="holds more than 100 bytes"):
        read_bars(path, clock=None, most=100)
