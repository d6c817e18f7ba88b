"""A stranger follows one debate through few files: what benchmarks.hops counts is bounded."""

from __future__ import annotations

from benchmarks import hops

MOST = {"files": 34, "functions": 414, "calls": 3_405, "hops": 982}


def test_a_budget_tick_walks_no_farther_than_this() -> None:
    figures = hops.walk().figures()
    assert figures["hops"] > 0
    assert {name: max(value, MOST[name]) for name, value in figures.items()} == MOST
