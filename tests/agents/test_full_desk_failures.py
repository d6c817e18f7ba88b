"""The full desk and all that can fail in it: 256 subsets, three kinds of failure.

`expect` is the rule of docs/debate.md, "When things fail", told once more in terms of who fails.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from agent_config import MODES
from agent_framework import blend
from agents.contracts import VECTORS, Request
from agents.debate.deliberation import Deliberation
from tests.agents.test_failure_ladder import FAILURES
from tests.doubles.scripted import (
    FULL_FEATURES,
    Scripted,
    context,
    debate,
    debate_hanging,
    settings,
)
from torra.tick.chart_scorer import score_chart

Scaled = Callable[..., int]
DESK: Final = ("technical", "sentiment", "news", "key_levels", "momentum",
               "bull_researcher", "bear_researcher", "risk_gate")  # fmt: skip
ANALYSTS: Final = frozenset(DESK[:5])
SIDES: Final = frozenset(DESK[5:7])
GATE: Final = "risk_gate"
WORDS: Final = {"exception": "error", "timeout": "timeout", "garbage": "garbage"}
CASES: Final = [
    (frozenset(part), kind)
    for kind in FAILURES
    for size in range(9)
    for part in itertools.combinations(DESK, size)
]


def share(count: int, seed: str) -> list[frozenset[str]]:
    """Return some of the subsets, every night all of them."""
    return random.Random(seed).sample([part for part, _ in CASES[:256]], count)


@dataclass(frozen=True)
class Expected:
    """What must come of a desk of which `failing` fail when they are asked."""

    source: str
    asked: frozenset[str]
    failed: frozenset[str]
    left_out: frozenset[str]
    degraded: str


def expect(failing: frozenset[str], *, fallback: bool) -> Expected:
    """Foretell a debate."""
    heard = [name for name in ANALYSTS if name not in failing]
    short = len(heard) < 3
    debated = frozenset() if short else SIDES
    opinions = [name for name in (*ANALYSTS, *debated) if name not in failing]
    asked = ANALYSTS | debated | ({GATE} if opinions else set())
    failed = failing & asked
    if not opinions:
        source = "LEGACY" if fallback else "L1_ONLY"
    else:
        source = "AGENT_PARTIAL" if failed or short else "AGENT_FULL"
    return Expected(
        source,
        frozenset(asked | ({"chart_scorer"} if not opinions and fallback else set())),
        frozenset(failed),
        SIDES if short else frozenset(),
        f"degraded:{len(heard)}_of_5" if short else "",
    )


def test_the_cases_are_every_subset_in_every_kind() -> None:
    assert MODES["full"].seats == DESK
    assert len(set(CASES)) == 256 * 3
    told = [expect(part, fallback=True) for part, _ in CASES]
    assert {expected.source for expected in told} == {"AGENT_FULL", "AGENT_PARTIAL", "LEGACY"}
    degraded = [expected for expected in told if expected.degraded]
    assert len(degraded) == 3 * 16 * 8  # 10 + 5 + 1 subsets of the analysts, any of the others


# --- the framework --------------------------------------------------------------------------------


def check(record: Deliberation, expected: Expected, kind: str, requests: list[Request]) -> None:
    assert str(record.source_type) == expected.source
    assert {request.role.id for request in requests} == expected.asked
    assert record.failures == dict.fromkeys(expected.failed, WORDS[kind])
    assert record.unasked == dict.fromkeys(expected.left_out, "quorum")
    assert [flag for flag in record.flags if flag.startswith("degraded")] == (
        [expected.degraded] if expected.degraded else []
    )
    heard = {report.agent_id for report in record.reports}
    assert heard == (set(DESK) & expected.asked) - expected.failed
    retried = 0 if kind == "timeout" else len(expected.failed)
    assert len(requests) == len(record.calls) == len(expected.asked) + retried <= 14
    last = {"gate": GATE, "fallback": "chart_scorer"}
    stages = ["analysts", "research", *(n for n, role in last.items() if role in expected.asked)]
    assert [stage["name"] for stage in record.stages] == stages
    l1 = context().scores
    final = blend(l1, record.scores)
    for vector in VECTORS:
        assert abs(final[vector]["score"] - l1[vector]) <= 0.06 + 1e-9
    if expected.source == "L1_ONLY":
        assert {vector: record.scores[vector]["score"] for vector in VECTORS} == l1
    note = record.scores["composite_bias"]["note"]
    assert note.startswith(expected.source)
    assert ("DEGRADED" in note) is bool(expected.degraded)
    for side in ("BUY", "SELL"):
        assert (
            0.0
            <= record.conviction_for(side)
            <= record.panel.agreement(side).raw + 1e-8
            <= 1.0 + 1e-8
        )
    json.dumps(record.as_json(), allow_nan=False)


@pytest.mark.parametrize("fallback", [score_chart, None], ids=["fallback", "alone"])
@pytest.mark.parametrize("kind", FAILURES)
def test_any_subset_of_the_full_desk_may_fail(kind: str, fallback: Any, scaled: Scaled) -> None:
    about, full = context(features=FULL_FEATURES), settings(mode="full")
    for failing in share(scaled(256, 8), f"{kind} {fallback is None}"):
        provider = Scripted(dict.fromkeys(failing, FAILURES[kind]))
        record = debate(provider, about=about, config=full, fallback=fallback)
        expected = expect(failing, fallback=fallback is not None)
        check(record, expected, kind, provider.requests)


def test_a_call_that_hangs_counts_as_any_time_out(scaled: Scaled) -> None:
    """In real time, so a share of the subsets by day; half a second each."""
    about, full = context(features=FULL_FEATURES), settings(mode="full")
    for failing in share(scaled(256, 2), "hanging"):
        expected = expect(failing, fallback=False)
        record, provider = debate_hanging(failing, expected.failed, about=about, config=full)
        check(record, expected, "timeout", provider.requests)


@pytest.mark.journey
@pytest.mark.parametrize("rounds", [2, 3])
def test_with_rounds_too(scaled: Scaled, rounds: int) -> None:
    """A side that fails in every round is a failure; one that spoke once is not."""
    about = context(features=FULL_FEATURES)
    full = settings(mode="full", debate_rounds=rounds)
    for failing, kind in random.Random(rounds).sample(CASES, scaled(len(CASES), 20)):
        provider = Scripted(dict.fromkeys(failing, FAILURES[kind]))
        record = debate(provider, about=about, config=full, fallback=score_chart)
        expected = expect(failing, fallback=True)
        assert str(record.source_type) == expected.source
        assert {request.role.id for request in provider.requests} == expected.asked
        assert set(record.failures) == expected.failed
        assert len(provider.requests) <= 14
        last = {r.round for r in provider.asked("bear_researcher")} | {0}
        cases = SIDES & (expected.asked - expected.failed)
        assert max(last) == (rounds if cases else min(1, len(SIDES & expected.asked)))
