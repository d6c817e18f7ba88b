"""A file of bars with other columns is told so at every door, with what it has."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.worlds.hands import torra

NEEDS = "needs time, open, high, low, close; found date, price, amount: export bars"
DOORS = {
    "replay": ("replay", "BTCUSD", "--bars", "FILE"),
    "sweep": ("sweep", "BTCUSD", "--bars", "FILE"),
    "lookahead": ("lookahead", "BTCUSD", "--bars", "FILE"),
    "consistency": ("consistency", "BTCUSD", "H1", "--bars", "FILE"),
    "tick": ("tick", "BTCUSD", "M15", "--bars", "FILE"),
    "import": ("import", "FILE", "--symbol", "BTCUSD", "--timeframe", "M15"),
}


@pytest.mark.parametrize("rows", [0, 300], ids=["no-rows", "rows"])
@pytest.mark.parametrize("door", DOORS)
def test_wrong_columns_are_told_as_such(door: str, rows: int, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("date,price,amount\n" + "2024-01-01,1.5,2\n" * rows, encoding="utf-8")
    words = [str(path) if word == "FILE" else word for word in DOORS[door]]
    told = torra(tmp_path / "home", *words)
    assert told.exit_code == 2
    *_, last = told.stderr.splitlines()
    assert f"{path} {NEEDS}" in last


def test_a_packed_file_is_named_by_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv.gz"
    path.write_bytes(gzip.compress(b"date,price,amount\n2024-01-01,1.5,2\n"))
    told = torra(tmp_path, "replay", "BTCUSD", "--bars", str(path))
    assert f"{path} {NEEDS}" in told.stderr


def test_long_heads_are_shown_in_part(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(",".join(["x" * 400, "<b>\x1b[31m"] * 40) + "\n", encoding="utf-8")
    told = torra(tmp_path, "replay", "BTCUSD", "--bars", str(path))
    assert "found xxxxxxxxxxxxxxxxxxxxxxxx, " in told.stderr and "\x1b" not in told.stderr
    assert len(told.stderr) < 700
