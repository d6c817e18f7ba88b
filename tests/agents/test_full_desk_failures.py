"""The full desk and all that can fail in it: 256 subsets, three kinds of failure, two levels.

`expect` is the rule of docs/debate.md, "When things fail", told once more in terms of who fails.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from agent_config import MODES
from agent_framework import blend
from agents.contracts import VECTORS, Completion, Request, SourceType
from agents.debate.deliberation import Deliberation
from agents.registry import AGENTS
from tests.doubles.scripted import (
    FULL_FEATURES,
    Scripted,
    context,
    debate,
    debate_hanging,
    honest,
    reporting,
    settings,
)
from tests.worlds import desks
from torra.config import Instance, Profile, validate
from torra.tick.chart_scorer import score_chart

Scaled = Callable[..., int]
DESK: Final = ("technical", "sentiment", "news", "key_levels", "momentum",
               "bull_researcher", "bear_researcher", "risk_gate")  # fmt: skip
ANALYSTS: Final = frozenset(DESK[:5])
SIDES: Final = frozenset(DESK[5:7])
GATE: Final = "risk_gate"
FAILURES: Final = {
    "exception": RuntimeError("500"),
    "timeout": TimeoutError(),
    "garbage": "I would hold here.",
}
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


def expect(failing: frozenset[str], *, fallback: bool, silent: frozenset[str]) -> Expected:
    """Foretell a tick; `silent` are those that abstain without a call and so cannot fail."""
    broken = failing - silent
    heard = [name for name in ANALYSTS if name not in broken]
    short = len(heard) < 3
    debated = frozenset() if short else SIDES
    opinions = [name for name in (*ANALYSTS, *debated) if name not in broken]
    asked = (ANALYSTS - silent) | debated | ({GATE} if opinions else set())
    failed = broken & asked
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
    told = [expect(part, fallback=True, silent=frozenset()) for part, _ in CASES]
    assert {expected.source for expected in told} == {"AGENT_FULL", "AGENT_PARTIAL", "LEGACY"}
    degraded = [expected for expected in told if expected.degraded]
    assert len(degraded) == 3 * 16 * 8  # 10 + 5 + 1 subsets of the analysts, any of the others


# --- the framework --------------------------------------------------------------------------------


def check(record: Deliberation, expected: Expected, kind: str, requests: list[Request]) -> None:
    assert str(record.source_type) == expected.source
    assert {request.role.id for request in requests} == expected.asked
    assert record.failures == dict.fromkeys(expected.failed, WORDS[kind])
    assert record.not_asked == dict.fromkeys(expected.left_out, "quorum")
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
        expected = expect(failing, fallback=fallback is not None, silent=frozenset())
        check(record, expected, kind, provider.requests)


def test_a_call_that_hangs_counts_as_any_time_out(scaled: Scaled) -> None:
    """In real time, so a share of the subsets by day; half a second each."""
    about, full = context(features=FULL_FEATURES), settings(mode="full")
    for failing in share(scaled(256, 2), "hanging"):
        expected = expect(failing, fallback=False, silent=frozenset())
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
        expected = expect(failing, fallback=True, silent=frozenset())
        assert str(record.source_type) == expected.source
        assert {request.role.id for request in provider.requests} == expected.asked
        assert set(record.failures) == expected.failed
        assert len(provider.requests) <= 14
        last = {r.round for r in provider.asked("bear_researcher")} | {0}
        cases = SIDES & (expected.asked - expected.failed)
        assert max(last) == (rounds if cases else min(1, len(SIDES & expected.asked)))


# --- the tick -------------------------------------------------------------------------------------

BTC = Instance(symbol="BTCUSD", timeframes=("M15",))
FULL: Final = {"agents": {"mode": "full"}}


class Switched:
    """A provider whose script a test changes between ticks."""

    name = "switched"

    def __init__(self) -> None:
        self.script = Scripted()

    def submit(self, request: Request) -> Future[Completion]:
        return self.script.submit(request)

    def close(self) -> None: ...


@pytest.fixture
def ticking(tmp_path: Path) -> Iterator[Any]:
    voice = Switched()
    desk = desks.open_desk(
        tmp_path, (BTC,), provider=voice, profile=validate(Profile, FULL, "a test")
    )
    desks.take_lease(desk, 1e6)
    yield desk, voice
    desk.database.close()


def test_any_subset_gives_a_valid_row(ticking: Any, scaled: Scaled) -> None:
    desk, voice = ticking
    seen = set()
    for failing, kind in random.Random(1).sample(CASES, scaled(len(CASES), 16)):
        voice.script = Scripted(dict.fromkeys(failing, FAILURES[kind]))
        record = next_tick(desk, "BTCUSD", "M15")
        expected = expect(failing, fallback=True, silent=frozenset({"news"}))  # no feed here
        row(desk, record, expected, kind)
        assert {request.role.id for request in voice.script.requests} == expected.asked
        seen.add(expected.source)
    assert seen >= {"AGENT_PARTIAL"}


def next_tick(desk: Any, instance: str, timeframe: str) -> dict[str, Any]:
    """Step to the next close that has a bar: the sample has holes and weekends."""
    before = desk.database.latest_tick(instance, timeframe)
    for _ in range(100):
        desks.step(desk)
        record = desk.database.latest_tick(instance, timeframe)
        if record is not None and (before is None or record["bar_time"] != before["bar_time"]):
            return record
    raise AssertionError(f"no tick of {instance} after {before and before['bar_time']}")


def row(desk: Any, record: dict[str, Any], expected: Expected, kind: str) -> None:
    """Assert that a tick is stored whole, and as it was foretold."""
    told = record["deliberation"]
    stored = list(
        desk.database.connection().query(
            "SELECT * FROM sentiment WHERE torra_key = ?",
            (f"BTCUSD|M15|{record['bar_time']}",),
        )
    )
    assert len(stored) == 1
    assert stored[0]["source_type"] == record["source_type"] == told["source_type"]
    assert record["source_type"] == expected.source
    assert told["failures"] == dict.fromkeys(sorted(expected.failed), WORDS[kind])
    assert told["unasked"] == dict.fromkeys(expected.left_out, "quorum")
    assert {call["role_id"] for call in record["calls"]} == expected.asked
    assert len(record["calls"]) <= 14
    for vector in VECTORS:
        assert abs(stored[0][vector] - record["l1"][vector]) <= 0.06 + 1e-9
        assert stored[0][vector] == record["scores"][vector]["score"]
    assert record["verdict"] in ("BUY", "SELL", "HOLD")
    assert ("DEGRADED" in record["scores"]["composite_bias"]["note"]) is bool(expected.degraded)
    for side in ("buy", "sell"):
        agreed = told["panel"][side]
        assert 0.0 <= agreed["conviction"] <= agreed["raw"] <= 1.0


# --- eight roles in three stages ------------------------------------------------------------------


def whole(record: dict[str, Any], asked: frozenset[str]) -> None:
    told = record["deliberation"]
    assert record["source_type"] == "AGENT_FULL"
    assert told["failures"] == told["unasked"] == {}
    assert [report["agent_id"] for report in told["reports"]] == list(DESK)
    stages = [(stage["name"], tuple(stage["agents"])) for stage in told["stages"]]
    assert stages == [("analysts", DESK[:5]), ("research", DESK[5:7]), ("gate", DESK[7:])]
    assert {stage["status"] for stage in told["stages"]} == {"ok"}
    assert {call["role_id"] for call in record["calls"]} == asked


@pytest.mark.parametrize("symbol", ["BTCUSD", "EURUSD"])
def test_the_rules_fill_eight_seats_in_three_stages_on_the_sample(
    tmp_path: Path, scaled: Scaled, symbol: str
) -> None:
    instance = Instance(symbol=symbol, timeframes=("H1",))
    desk = desks.open_desk(tmp_path, (instance,), profile=validate(Profile, FULL, "a test"))
    desks.take_lease(desk, 1e6)
    try:
        for _ in range(scaled(200, 4)):
            record = next_tick(desk, symbol, "H1")
            whole(record, frozenset(DESK) - {"news"})
            quiet = [r for r in record["deliberation"]["reports"] if r["abstained"]]
            assert "news" in [report["agent_id"] for report in quiet]
            assert len(record["calls"]) == 7, "the rules would say the same on a second look"
    finally:
        desk.database.close()


def test_a_scripted_model_fills_eight_seats_in_three_stages(ticking: Any) -> None:
    desk, voice = ticking
    for script in ({}, dict.fromkeys(DESK[:7], reporting(value=-0.1, confidence="medium"))):
        voice.script = Scripted(script)
        whole(next_tick(desk, "BTCUSD", "M15"), frozenset(DESK) - {"news"})


def test_with_news_all_eight_are_asked() -> None:
    provider = Scripted({"news": honest})
    record = debate(provider, about=context(features=FULL_FEATURES), config=settings(mode="full"))
    assert record.source_type is SourceType.AGENT_FULL
    assert sorted(request.role.id for request in provider.requests) == sorted(DESK)
    assert [len(stage["agents"]) for stage in record.stages] == [5, 2, 1]
    assert {AGENTS[name].role.kind for name in ANALYSTS} == {"analyst"}
