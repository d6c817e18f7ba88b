"""Every failpoint has its place in the code, and is died at by a test (promise D1)."""

from __future__ import annotations

import ast
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.faults import kills
from tests.faults.lives import DESKS
from tests.faults.order_pair import ALONE
from torra import failpoints
from torra.config import ROOT

SOURCE = (*ROOT.glob("*.py"), *(ROOT / "torra").rglob("*.py"), *(ROOT / "agents").rglob("*.py"))


def places() -> Counter[str]:
    """Return how often each point is named by a call of `failpoint` in the product."""
    found: Counter[str] = Counter()
    for path in SOURCE:
        text = path.read_text(encoding="utf-8")
        if "failpoints import failpoint" in text:
            found.update(_named(ast.parse(text)))
    return found


def _named(tree: ast.AST) -> list[str]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        str(ast.literal_eval(call.args[0]))
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "failpoint"
    ]


def test_every_point_has_a_place_and_every_place_is_listed() -> None:
    assert set(places()) == set(failpoints.POINTS)
    assert len(failpoints.POINTS) == len(set(failpoints.POINTS)) >= 12


def test_every_point_is_died_at_by_a_test() -> None:
    """Some world passes each; test_kills finds what a world passes beside its own points."""
    in_a_tick = {point for world in DESKS.values() for point in world.points}
    alone = {ours for ours, _ in ALONE if ours}
    assert in_a_tick | alone == set(failpoints.POINTS)


def test_a_point_ends_the_process_when_it_is_named_and_only_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    struck: list[str] = []
    monkeypatch.setattr(failpoints, "strike", lambda: struck.append("dead"))
    monkeypatch.setattr(failpoints, "_passed", {})
    failpoints.failpoint("saved")
    monkeypatch.setenv(failpoints.VARIABLE, "saved:2")
    for point in ("scored", "saved", "recorded"):
        failpoints.failpoint(point)
    assert struck == []
    failpoints.failpoint("saved")
    assert struck == ["dead"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_point_kills_with_nothing_tidied(tmp_path: Path) -> None:
    left = tmp_path / "left"

    def life() -> None:
        try:
            failpoints.failpoint("saved")
        finally:
            left.touch()

    assert kills.await_end(kills.begin(life, "saved")) and not left.exists()
