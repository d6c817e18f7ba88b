"""Files of bars that a person hands in: only bars get a name, and nothing else is left behind."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path

import pytest

from torra.config import ROOT
from torra.errors import ConfigError
from torra.feeds import csv_file
from torra.home import UPLOADS
from torra.replay import uploads

BARS = (ROOT / "sample_data" / "BTCUSD_H1.csv").read_bytes()
FEW = b"\n".join(BARS.splitlines()[:20])


def hand_in(home: Path, name: str, content: bytes, part: int = 200_000) -> uploads.HandedIn:
    begun = uploads.begin(home)
    for at in range(0, len(content), part):
        uploads.add(home, begun, content[at : at + part])
    return uploads.end(home, begun, name)


def lying(home: Path) -> list[str]:
    return sorted(path.name for path in (home / UPLOADS).iterdir())


@pytest.mark.parametrize("part", [10_000, 200_000])
def test_parts_become_the_file(tmp_path: Path, part: int) -> None:
    found = hand_in(tmp_path, "btc.csv", BARS, part)
    assert found.name == "btc.csv"
    held = "2,165 bars of H1, 2021-09-27 to 2021-12-29. Read as a table: ISO dates."
    assert found.says.startswith(f"btc.csv is there: {held} Clock utc: its times carry a zone.")
    assert found.says.endswith("the longest, of 56, begins on 2021-11-27.")
    assert (tmp_path / UPLOADS / "btc.csv").read_bytes() == BARS
    assert lying(tmp_path) == uploads.names(tmp_path) == ["btc.csv"]


def test_a_packed_file_is_taken_packed(tmp_path: Path) -> None:
    assert "bars of H1" in hand_in(tmp_path, "BTC.CSV.GZ", gzip.compress(FEW)).says
    assert uploads.names(tmp_path) == ["BTC.csv.gz"]


def test_nothing_that_lies_there_is_replaced(tmp_path: Path) -> None:
    (tmp_path / UPLOADS).mkdir()
    (tmp_path / UPLOADS / "btc-2.csv").symlink_to("nowhere")
    names = [hand_in(tmp_path, "btc.csv", FEW).name for _ in range(2)]
    assert names == ["btc.csv", "btc-3.csv"]


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("../../desk.csv", "desk.csv"),
        ("C:\\bars\\gold m15.csv", "gold_m15.csv"),
        (".hidden.csv", "hidden.csv"),
        ("-rf.csv", "rf.csv"),
        ("con.csv", "bars_con.csv"),
        ("\u202egold\x00.csv", "gold.csv"),
        (".csv", "bars.csv"),
        ("x" * 300 + ".csv", "x" * 60 + ".csv"),
    ],
)
def test_a_name_is_cleaned(tmp_path: Path, called: str, name: str) -> None:
    assert hand_in(tmp_path, called, FEW).name == name
    assert lying(tmp_path) == [name] and uploads.names(tmp_path) == [name]


@pytest.mark.parametrize(
    ("called", "content", "said"),
    [
        ("a.csv", b"date,price\n1,2\n", "a.csv needs time, open, high, low, close; found"),
        ("a.csv", b"", "a.csv is empty"),
        ("a.csv", b"\x00\x01\x02" * 50, "a.csv "),
        ("a.csv", BARS.replace(b"2021-10-01", b"soon", 1), "is not a time"),
        ("a.csv.gz", b"\x1f\x8bno gzip at all", "cannot read a.csv.gz"),
        ("a.xlsx", FEW, "a.xlsx: only .csv, .txt, .zip, .csv.gz are taken; export the bars as CSV"),
        ("", FEW, "the file: only .csv"),
    ],
)
def test_what_is_no_bars_is_told_so_and_gone(
    tmp_path: Path, called: str, content: bytes, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        hand_in(tmp_path, called, content or b" ")
    assert said in str(caught.value) and str(tmp_path) not in str(caught.value)
    assert lying(tmp_path) == []


def test_an_export_of_mt5_is_taken_and_asks_for_its_clock(tmp_path: Path) -> None:
    head = "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>"
    rows = [f"2024.01.02\t{hour:02}:00:00\t1.5\t1.6\t1.4\t1.5\t10\t0\t2" for hour in range(9)]
    found = hand_in(tmp_path, "gold.csv", "\n".join([head, *rows]).encode())
    assert "; choose the broker's clock for it. Read as MetaTrader 5: " in found.says


def test_a_file_is_not_larger_than_it_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MOST_BYTES", 1000)
    begun = uploads.begin(tmp_path)
    uploads.add(tmp_path, begun, b"x" * 1000)
    with pytest.raises(ConfigError, match="more than the 1,000 bytes that are taken"):
        uploads.add(tmp_path, begun, b"x")
    assert lying(tmp_path) == []
    with pytest.raises(ConfigError, match="parts of this file are gone"):
        uploads.add(tmp_path, begun, b"x")


def test_a_small_file_does_not_unpack_into_all_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MOST_UNPACKED", 10_000)
    with pytest.raises(ConfigError, match=r"a\.csv\.gz holds more than 10,000 bytes"):
        hand_in(tmp_path, "a.csv.gz", gzip.compress(b"1" * 1_000_000))
    path = tmp_path / "large.csv.gz"
    path.write_bytes(gzip.compress(b"1" * 1_000_000))
    with pytest.raises(ConfigError, match="holds more than 500 bytes"):
        csv_file.read_bars(path, clock=None, most=500)


def test_parts_that_nobody_ended_go_and_many_at_once_wait(tmp_path: Path) -> None:
    begun = [uploads.begin(tmp_path) for _ in range(uploads.MOST_BEGUN)]
    with pytest.raises(ConfigError, match="4 files are being handed in already"):
        uploads.begin(tmp_path)
    old = time.time() - uploads.FORGOTTEN_SECONDS - 60
    os.utime(tmp_path / UPLOADS / f".{begun[0]}.part", (old, old))
    assert uploads.begin(tmp_path) not in begun
    assert f".{begun[0]}.part" not in lying(tmp_path) and uploads.names(tmp_path) == []


def test_a_full_folder_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_FILES", 1)
    hand_in(tmp_path, "a.csv", FEW)
    with pytest.raises(ConfigError, match="holds 1 files: remove those that nobody needs"):
        uploads.begin(tmp_path)


@pytest.mark.parametrize("begun", ["../desk", "", "0" * 32, "x" * 32])
def test_a_word_that_began_nothing_leads_nowhere(tmp_path: Path, begun: str) -> None:
    (tmp_path / "desk.part").write_text("kept")
    with pytest.raises(ConfigError, match="parts of this file are gone"):
        uploads.add(tmp_path, begun, b"x")
    with pytest.raises(ConfigError, match="parts of this file are gone"):
        uploads.end(tmp_path, begun, "a.csv")
    assert (tmp_path / "desk.part").read_text() == "kept"


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_parts_are_never_written_through_a_link(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("kept")
    begun = uploads.begin(tmp_path)
    part = tmp_path / UPLOADS / f".{begun}.part"
    part.unlink()
    part.symlink_to(secret)
    with pytest.raises(ConfigError, match="are gone"):
        uploads.add(tmp_path, begun, b"x")
    assert secret.read_text() == "kept"


def test_a_home_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / UPLOADS).write_text("a file in the place of the folder")
    assert uploads.names(tmp_path) == []
    with pytest.raises(ConfigError, match="uploads cannot be made"):
        uploads.begin(tmp_path)
