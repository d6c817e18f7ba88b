"""Who is asked when, in every mode: all of a stage at once, a rebuttal, an end whoever is late."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import Future
from typing import Any, Final

import pytest

from agent_config import GATE_ID, JUDGE_ID, MODES, READER_ID
from agents.contracts import Completion, Request
from agents.registry import AGENTS
from tests.cases import cases
from tests.doubles.scripted import (
    FULL_FEATURES,
    NEVER,
    SWARM_FEATURES,
    Scripted,
    context,
    debate,
    reporting,
    settings,
)
from tests.tries import Tries

FEATURES: Final = {**FULL_FEATURES, **SWARM_FEATURES, "company.pe": 20.0}
AGREED = ["analysts", "research", "decision"]
ANSWERED = ["analysts", "research", "research", "decision"]


def stages_of(*, pivotal: bool = False, apart: bool = False, **agents: Any) -> list[str]:
    script = {"sentiment": reporting(value=-0.1)} if apart else {}
    about = context(features=FEATURES, pivotal=pivotal)
    config = settings(mode="firm", second_look="never", **{"provider": "anthropic", **agents})
    record = debate(Scripted(script), about=about, config=config)
    return [stage["name"] for stage in record.stages]


def test_a_firm_is_three_stages_and_a_rebuttal_is_a_fourth() -> None:
    assert stages_of() == AGREED
    assert stages_of(apart=True) == ANSWERED
    assert stages_of(pivotal=True) == ANSWERED
    assert stages_of(rebuttal="always") == ANSWERED
    assert stages_of(pivotal=True, apart=True, rebuttal="never") == AGREED


def test_where_the_rules_answer_a_rebuttal_is_held_only_if_a_profile_asks_for_it() -> None:
    """It changed no result for the better on five markets (docs/debate.md)."""
    assert stages_of(pivotal=True, apart=True, provider="rules") == AGREED
    assert stages_of(provider="rules", rebuttal="always") == ANSWERED


STAGE: Final = {
    (mode, AGENTS[seat].role.kind): stage.name
    for mode, row in MODES.items()
    for seat in row.seats
    for stage in row.stages
    if AGENTS[seat].role.kind in stage.kinds
}


class Together(Scripted):
    """Answers nobody of a stage before all of it are asked: who waits for another hangs."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self._mode = mode
        sizes = Counter(STAGE[mode, AGENTS[name].role.kind] for name in MODES[mode].seats)
        self._barriers = {name: threading.Barrier(size) for name, size in sizes.items()}

    def submit(self, request: Request) -> Future[Completion]:
        self._barriers[STAGE[self._mode, request.role.kind]].wait(timeout=20)
        return super().submit(request)


@pytest.mark.parametrize("mode", MODES)
def test_all_of_a_stage_are_asked_at_once(mode: str) -> None:
    provider = Together(mode)
    config = settings(mode=mode, second_look="never", rebuttal="never")
    record = debate(provider, about=context(features=FEATURES), config=config)
    assert not record.failures and len(provider.requests) == len(MODES[mode].seats)


LATE: Final = [
    *(("firm", name) for name in ("technical", "bear_researcher", "research_manager", GATE_ID)),
    *(("swarm", name) for name in ("liquidity", READER_ID, JUDGE_ID, GATE_ID)),
]


@cases(("mode", "late"), LATE)
def test_whoever_is_late_a_debate_ends_at_its_deadline(mode: str, late: str, tries: Tries) -> None:
    config = settings(mode=mode, second_look="never", rebuttal="always")
    about = context(features=FEATURES)
    for attempt in tries():
        began = time.monotonic()
        record = debate(Scripted({late: NEVER}), about=about, config=config, seconds=0.4)
        took = time.monotonic() - began
        with attempt:
            assert late in record.failures  # a busy machine ends it before some have their turn
            assert took <= 0.4 + 0.5
