"""A stranger follows one debate through few files: what benchmarks.hops counts is bounded."""

from __future__ import annotations

from benchmarks import hops

MOST = {"files": 21, "functions": 320, "hops": 585}


def test_a_budget_tick_walks_no_farther_than_this() -> None:
    figures = hops.walk().figures()
    assert figures["hops"] > 0
    assert {name: max(figures[name], most) for name, most in MOST.items()} == MOST
