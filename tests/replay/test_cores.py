"""How many processors a replay takes, alone and beside a desk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torra.replay.shards import cores
from torra.replay.shards.cores import Ahead


@pytest.mark.parametrize(
    ("limit", "found"),
    [("max 100000\n", 5), ("150000 100000\n", 2), ("900000 100000\n", 5), ("odd", 5), ("", 5)],
)
def test_what_the_system_and_a_container_allow(
    limit: str, found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(5)), raising=False)
    monkeypatch.setattr(cores, "CGROUP", tmp_path / "cpu.max")
    assert cores.usable() == 5
    (tmp_path / "cpu.max").write_text(limit)
    assert cores.usable() == found


@pytest.mark.parametrize(("usable", "alone", "beside"), [(1, 1, 1), (2, 2, 1), (8, 8, 7)])
def test_beside_a_desk_one_is_left_and_a_number_that_is_named_holds(
    usable: int, alone: int, beside: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "usable", lambda: usable)
    assert cores.cores(tmp_path, None) == cores.Cores(alone)
    monkeypatch.setattr(cores, "is_locked", lambda _: True)
    assert cores.cores(tmp_path, None) == cores.Cores(beside, beside=True)
    assert cores.cores(tmp_path, 5) == cores.Cores(5, beside=True, named=True)


def test_what_takes_longest_begins_first_and_bounds_the_whole() -> None:
    """With its placebo, which waits for it, `full` is the longest way through."""
    seconds = {"l1": 1.0, "budget": 6.0, "full": 5.0, "placebo_random": 3.0}
    ahead = Ahead(100, seconds, {"placebo_random": "full"})
    assert ahead.longest_first() == ["full", "budget", "placebo_random", "l1"]
    assert [ahead.takes(workers) for workers in (1, 2, 4)] == [7.5 * 2, 8.0, 8.0]
