"""The two examples: the same scorer before and after, and the same blend in host and overlay."""

from __future__ import annotations

import inspect
import json
import os
import runpy
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agent_framework import blend
from agents.contracts import VECTORS, Completion
from tests import ROOT

TIME = "2021-12-01T10:00:00Z"
INDICATORS = {"rsi14": 61.2, "adx14": 27.5}
L1 = {"price_action": 0.42, "key_levels": -0.1, "momentum": 0.3, "structure": 0.0}


def load(name: str) -> Any:
    return SimpleNamespace(**runpy.run_path(str(ROOT / "examples" / f"{name}.py")))


@pytest.fixture
def after():
    example = load("after")
    yield example
    example.POOL.shutdown(wait=True)


def test_the_debate_returns_the_shape_of_score_chart(after: Any) -> None:
    before = load("before")
    old = before.score_chart("XAUUSD", L1, INDICATORS)
    new = after.debate("XAUUSD", TIME, L1, INDICATORS)
    assert list(old) == list(new)
    for name, entry in new.items():
        assert list(entry) == list(old[name]) == ["score", "note"]
        assert isinstance(entry["score"], float)
        assert isinstance(entry["note"], str)


def test_the_hosts_blend_of_the_debate_is_torras(after: Any) -> None:
    chart = after.debate("XAUUSD", TIME, L1, INDICATORS)
    torra = blend(L1, chart)
    assert chart["momentum"]["score"] == pytest.approx(0.3 + 0.1125)
    assert after.blend(L1, chart) == {vector: torra[vector]["score"] for vector in VECTORS}
    assert after.tick("XAUUSD", TIME, L1, INDICATORS) == after.blend(L1, chart)
    assert [{"symbol": "XAUUSD", "time": TIME, **after.blend(L1, chart)}] == after.ROWS


scores = st.integers(-(10**8), 10**8).map(lambda n: n / 10**8)
moves = st.integers(-3 * 10**7, 3 * 10**7).map(lambda n: n / 10**8)


@pytest.mark.journey
def test_the_two_blends_agree_on_any_score() -> None:
    """To the last digit that is kept; a tie in it may round either way."""
    host = load("before")

    @hypothesis_settings(max_examples=300)
    @given(st.fixed_dictionaries(dict.fromkeys(VECTORS, st.tuples(scores, moves))))
    def check(told: Any) -> None:
        l1 = {vector: one for vector, (one, _) in told.items()}
        chart: dict[str, Any] = {
            vector: {"score": max(-1.0, min(1.0, one + move)), "note": ""}
            for vector, (one, move) in told.items()
        }
        ours = blend(l1, chart | {"composite_bias": {"score": 0.0, "note": ""}})
        for vector, score in host.blend(l1, chart).items():
            assert ours[vector]["score"] == pytest.approx(score, abs=1.01e-8)

    check()


def test_what_the_host_does_with_the_scores_is_unchanged(after: Any) -> None:
    before = load("before")
    for name in ("blend", "save_sentiment"):
        old, new = (inspect.getsource(getattr(one, name)) for one in (before, after))
        assert old == new
    old, new = (inspect.getsource(one.tick) for one in (before, after))
    call = "score_chart(symbol, l1, indicators)"
    assert old.replace(call, "debate(symbol, time, l1, indicators)") == new


def test_the_old_scorer_answers_when_every_agent_fails(after: Any) -> None:
    def no_model(_request: object) -> Completion:
        raise RuntimeError("the vendor is down")

    after.debate.__globals__["ask_model"] = no_model
    chart = after.debate("XAUUSD", TIME, L1, INDICATORS)
    assert chart["composite_bias"]["note"].startswith("LEGACY")
    assert chart["momentum"]["score"] == pytest.approx(0.5)
    assert chart["structure"]["score"] == pytest.approx(0.3)


@pytest.mark.parametrize("name", ["before", "after"])
def test_the_examples_run_as_the_readme_says(name: str) -> None:
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert f"PYTHONPATH=. python examples/{name}.py" in text
    done = subprocess.run(
        [sys.executable, f"examples/{name}.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ".", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert set(json.loads(done.stdout.replace("'", '"'))) == set(VECTORS)


def test_the_before_example_is_as_short_as_it_says() -> None:
    lines = (ROOT / "examples" / "before.py").read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) <= 40
