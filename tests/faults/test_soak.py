"""The soak itself: that it measures a whole desk, and that its lines do not hold when they should
not (promise S1). By night it is a day of twenty instances, as `make soak` runs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.faults.soak import Found, percentile, soak, table
from torra.config import ROOT

DAY = 24
NIGHTLY = 20
"""Instances of a nightly day."""


@pytest.mark.journey
def test_a_few_closes_of_a_whole_desk(tmp_path: Path) -> None:
    """Half an hour of a small desk: its lines come of something."""
    found = soak(tmp_path / "home", hours=0.5, number=3)
    assert found.errors == found.told == found.missing == []
    assert found.ticks == Counter({"done": 6}) and found.pages == Counter({200: 4})
    assert found.holds and found.wal_mb > 0 and len(found.rss) == 2


@pytest.mark.timeout(3600)
def test_a_day_is_boring(
    tmp_path: Path, scaled: Callable[..., int], record_property: Callable[[str, object], None]
) -> None:
    """A process of its own, so that its memory is its own."""
    hours = scaled(DAY)
    if hours < DAY:
        pytest.skip("a day takes minutes: it runs by night, and as `make soak`")
    told = tmp_path / "lines.json"
    command = [sys.executable, "-m", "tests.faults.soak", "--json", str(told)]
    ended = subprocess.run(
        [*command, "--hours", str(hours), "--instances", str(NIGHTLY)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr[-4000:]
    lines: list[dict[str, Any]] = json.loads(told.read_text())
    record_property("seen", "; ".join(f"{line['what']} {line['seen']}" for line in lines[1:]))


# --- the lines ------------------------------------------------------------------------------------


GOOD = Found(
    instances=20,
    simulated=timedelta(hours=24),
    rss=[200.0, 205.0],
    fds=[40, 40],
    threads=[25, 25],
    wal_mb=5.0,
    cpu_ms=[60.0] * 100,
    pages=Counter({200: 10}),
    ticks=Counter({"done": 1920}),
)

BROKEN: dict[str, dict[str, Any]] = {
    "memory": {"rss": [200.0, 211.0]},
    "files": {"fds": [40, 41]},
    "threads": {"threads": [25, 26]},
    "wal": {"wal_mb": 64.0},
    "slow": {"cpu_ms": [60.0] * 97 + [251.0] * 3},
    "pages": {"pages": Counter({200: 10, 500: 1})},
    "errors": {"errors": ["a tick failed"]},
    "missing": {"missing": ["BTCUSD-00 M15"]},
}


def test_a_good_day_holds() -> None:
    assert GOOD.holds
    assert "DOES NOT HOLD" not in table(GOOD.lines())


@cases("what", BROKEN)
def test_one_bad_line_is_enough(what: str) -> None:
    found = replace(GOOD, **BROKEN[what])
    assert not found.holds
    assert table(found.lines()).count("DOES NOT HOLD") == 1


def test_a_short_run_does_not_judge_memory_and_speed() -> None:
    short: dict[str, Any] = {
        "simulated": timedelta(hours=1),
        "rss": [100.0, 200.0],
        "cpu_ms": [900.0],
    }
    assert replace(GOOD, **short).holds


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([], 0.99) == 0.0
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile(list(map(float, range(100))), 0.99) == 99.0
