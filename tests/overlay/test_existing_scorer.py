"""The example: a scorer before and after, under rules and under each vendor's own SDK."""

from __future__ import annotations

import difflib
import json
import runpy
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agent_framework import blend
from agents.contracts import VECTORS
from tests import ROOT
from tests.doubles import vendor_line
from tests.doubles.vendor_server import VENDORS, VendorServer
from tests.worlds import scorers

EXAMPLE = ROOT / "examples" / "existing_scorer"

scores = st.integers(-(10**8), 10**8).map(lambda n: n / 10**8)
moves = st.integers(-3 * 10**7, 3 * 10**7).map(lambda n: n / 10**8)


def program(name: str, home: Path, monkeypatch: pytest.MonkeyPatch, profile: str) -> dict[str, Any]:
    """Run the example as a module, on a home of its own."""
    monkeypatch.setenv("SCORER_HOME", str(home))
    monkeypatch.setenv("SCORER_PROFILE", profile)
    return runpy.run_path(str(EXAMPLE / f"{name}.py"))


def bring_bars(home: Path, size: int) -> None:
    """Let the terminal have so many bars of each stream."""
    (home / "bars").mkdir(parents=True, exist_ok=True)
    for name, sample in (("BTCUSD_M15", "BTCUSD_M15"), ("XAUUSD_H1", "EURUSD_H1")):
        frame = scorers.bars(size, name=sample)
        frame.reset_index().to_csv(home / "bars" / f"{name}.csv", index=False)


def left_behind(home: Path) -> tuple[list[str], bytes]:
    with closing(sqlite3.connect(home / "scorer.db")) as connection:
        return list(connection.iterdump()), (home / "signals.csv").read_bytes()


@pytest.mark.journey
@pytest.mark.parametrize("who", ["rules", *VENDORS])
def test_only_the_opinion_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    """Tables and signal file are those of the old program with a stub that says the same."""
    profiles = tmp_path / "new" / "torra" / "profiles"
    profiles.mkdir(parents=True)
    agents = {"provider": who, "timeout_seconds": 60.0}  # an SDK takes its time to be imported
    (profiles / "mine.json").write_text(json.dumps({"agents": agents}))
    said: dict[tuple[str, str, str], Any] = {}
    with VendorServer() as server:
        for name, value in vendor_line.environment(server).items():
            monkeypatch.setenv(name, value)
        after = program("after", tmp_path / "new", monkeypatch, "mine")
        held = after["OVERLAY"].score_chart

        def listening(symbol: str, timeframe: str, bars: Any, **more: Any) -> Any:
            chart = held(symbol, timeframe, bars, **more)
            said[symbol, timeframe, str(bars["time"].iloc[-1])] = chart
            return chart

        after["OVERLAY"].score_chart = listening
        try:
            for size in (300, 301, 304):
                bring_bars(tmp_path / "new", size)
                after["tick_all"]("M15")
                after["tick_all"]("H1")
        finally:
            after["OVERLAY"].close()
    assert len(said) == 6
    debated = [c for c in said.values() if "AGENT_BUDGET" in c["composite_bias"]["note"]]
    assert len(debated) == 6, [c["composite_bias"] for c in said.values()]
    before = program("before", tmp_path / "old", monkeypatch, "mine")
    before["tick"].__globals__["score_chart"] = lambda symbol, timeframe, bars, _l1: said[
        symbol, timeframe, str(bars["time"].iloc[-1])
    ]
    for size in (300, 301, 304):
        bring_bars(tmp_path / "old", size)
        before["tick_all"]("M15")
        before["tick_all"]("H1")
    assert left_behind(tmp_path / "new") == left_behind(tmp_path / "old")


@pytest.mark.journey
def test_the_hosts_blend_is_torras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last digit that is kept; a tie in it may round either way."""
    host = program("before", tmp_path, monkeypatch, "default")

    @hypothesis_settings(max_examples=300)
    @given(st.fixed_dictionaries(dict.fromkeys(VECTORS, st.tuples(scores, moves))))
    def check(values: dict[str, tuple[float, float]]) -> None:
        l1 = {vector: score for vector, (score, _) in values.items()}
        chart: dict[str, Any] = {
            vector: {"score": max(-1.0, min(1.0, score + move)), "note": ""}
            for vector, (score, move) in values.items()
        }
        ours = blend(l1, chart | {"composite_bias": {"score": 0.0, "note": ""}})
        for vector, score in host["blend"](l1, chart).items():
            assert ours[vector]["score"] == pytest.approx(score, abs=1.01e-8)

    check()


def test_the_two_differ_in_at_most_eight_lines() -> None:
    old, new = (
        (EXAMPLE / f"{name}.py").read_text(encoding="utf-8").splitlines()
        for name in ("before", "after")
    )
    changes = [line for line in difflib.ndiff(old, new) if line[:2] in ("+ ", "- ")]
    added = [line for line in changes if line.startswith("+ ") and line[2:].strip()]
    assert 0 < len(added) <= 8 and len(changes) - len(added) <= 8


def test_the_same_app_shows_its_debates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORRA_HOME", raising=False)
    hosted: dict[Path, None] = {}
    monkeypatch.setattr("torra.overlay.overlay.HOSTED", hosted)
    monkeypatch.setattr("torra.dashboard.app.HOSTED", hosted)
    monkeypatch.setattr("torra.desk.looking_desk.HOSTED", hosted)
    home = tmp_path / "scorer"
    bring_bars(home, 300)
    after = program("after", home, monkeypatch, "default")
    app = after["create_app"](scheduled=False)
    client = app.test_client()
    assert client.get("/").get_json() == []
    page = client.get("/torra/", base_url="http://127.0.0.1")
    assert page.status_code in (302, 401), "the pages ask who it is"
    after["tick_all"]("M15")
    after["OVERLAY"].close()
    assert client.get("/").get_json()[0][1:3] == ["BTCUSD", "M15"]
