"""Files that are bars in another dress are refused in one line with cause and remedy."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from torra.commands.command_line import main
from torra.config import ROOT

LINES = (ROOT / "sample_data" / "BTCUSD_M15.csv").read_text(encoding="utf-8").splitlines()[:40]


def dressed(path: Path, kind: str) -> Path:
    """Write bars in a dress that is no plain table of bars, oldest first."""
    text = "\n".join(LINES)
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("a.csv", text)
            file.writestr("b.csv", text)
    else:
        told = {
            "short": [*LINES, LINES[-1].rsplit(",", 3)[0]],
            "padded": [*LINES, *[",,,,,"] * 3],
        }[kind]
        path.write_text("\n".join(told), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("kind", "cause", "remedy"),
    [
        pytest.param("zip", "with 2 files of bars in it", "unpack it", id="zip"),
        pytest.param("short", "line 41: low is ''", "ends too early", id="short"),
        pytest.param("padded", "line 41: '' is not a time", "padded lines", id="padded"),
    ],
)
def test_the_cause_and_the_remedy_are_named_in_one_line(
    tmp_path: Path, kind: str, cause: str, remedy: str
) -> None:
    path = dressed(tmp_path / "bars.csv", kind)
    words = ["--home", str(tmp_path / "home"), "import", str(path)]
    told = CliRunner().invoke(main, [*words, "--symbol", "BTCUSD", "--timeframe", "M15"])
    assert told.exit_code == 2
    assert told.stderr.count("\n") == 1
    for word in (str(path), cause, remedy):
        assert word in told.stderr
