"""Progress of long work: a bar for a person, a plain line every ten seconds for a pipe."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from click import _termui_impl

from tests.conftest import Scale
from tests.worlds.hands import torra
from torra.clock import System
from torra.commands import terminal
from torra.config import ROOT
from torra.replay.rerun import lookahead


class Seconds(System):
    """A clock whose every look is a second later."""

    def __init__(self, step: float = 1.0) -> None:
        self.at, self.step = 0.0, step

    def monotonic(self) -> float:
        self.at += self.step
        return self.at


class Screen(io.StringIO):
    """Standard error of a person."""

    def isatty(self) -> bool:
        return True


def told(capsys: pytest.CaptureFixture[str], steps: int, step: float) -> list[str]:
    with terminal.progress(1000, "ticks", clock=Seconds(step)) as forward:
        for _ in range(steps):
            forward(1)
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def test_a_pipe_gets_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, 1000, 0.125)
    assert len(lines) == 12, "125 seconds"
    assert lines[0] == "ticks: 80 of 1,000 (8 %), about 2 min left"
    assert lines[-1] == "ticks: 960 of 1,000 (96 %), about 5 s left"


def test_short_work_says_nothing_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, 1000, 0.009) == []


@pytest.mark.parametrize(("step", "left"), [(8.0, "2.2 h"), (1.0, "16 min")])
def test_long_waits_are_told_in_minutes_and_hours(
    capsys: pytest.CaptureFixture[str], step: float, left: str
) -> None:
    assert f"about {left} left" in told(capsys, 12, step)[0]


def test_a_person_gets_a_bar_that_is_not_drawn_at_every_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[int] = []
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(_termui_impl.ProgressBar, "update", lambda _, n: drawn.append(n))
    with terminal.progress(10_050, "ticks") as forward:
        for _ in range(10_050):
            forward(1)
    assert len(drawn) <= terminal.REDRAWN + 1
    assert sum(drawn) == 10_050
    assert " left\n" not in screen.getvalue()


LONG = {
    "replay": ("replay", "BTCUSD", "--arms", "l1", "--from", "2021-11-20", "--to", "2021-11-21"),
    "sweep": ("sweep", "BTCUSD", "--thresholds", ".3:.6:.1"),
    "lookahead": ("lookahead", "BTCUSD", "--points", "2"),
    "consistency": ("consistency", "BTCUSD", "H1", "--runs", "2", "--ticks", "2"),
}


@pytest.mark.journey
@pytest.mark.parametrize("name", LONG)
def test_long_commands_tell_a_pipe_and_keep_the_document_apart(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scaled: Scale
) -> None:
    monkeypatch.setattr(terminal, "LINE_SECONDS", 0.0)
    if not scaled.whole:
        # Little is run before each moment that a lookahead looks at.
        monkeypatch.setattr(lookahead, "LEAD", 1)
    bars = ("--bars", str(ROOT / "sample_data" / "BTCUSD_H1.csv"))
    found = torra(tmp_path, *LONG[name], *bars, "--json")
    assert found.exit_code == 0, found.output
    json.loads(found.stdout)
    assert " left\n" in found.stderr and " of " in found.stderr


def test_an_import_tells_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "LINE_SECONDS", 0.0)
    monkeypatch.setattr("torra.desk.setup.bar_import.PART", 500)
    file = str(ROOT / "sample_data" / "BTCUSD_H1.csv")
    words = ("import", file, "--symbol", "BTCUSD", "--timeframe", "H1")
    found = torra(tmp_path, *words, "--json")
    assert json.loads(found.stdout)["bars"] > 1000
    assert "bars: 500 of " in found.stderr
