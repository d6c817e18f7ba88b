"""How long a firm takes: three stages, four with a rebuttal, and its end whoever is late."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import Any

from agents.contracts import Completion, Request
from tests.cases import cases
from tests.doubles.scripted import (
    FULL_FEATURES,
    NEVER,
    Scripted,
    context,
    debate,
    reporting,
    settings,
)
from tests.tries import Tries

FEATURES = {**FULL_FEATURES, "company.pe": 20.0}
ABOUT = context(features=FEATURES)
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


class Together(Scripted):
    """Answers nobody of a stage before all of it are asked: who waits for another hangs."""

    def __init__(self, stages: dict[str, int]) -> None:
        super().__init__()
        self.barriers = {name: threading.Barrier(size) for name, size in stages.items()}

    def submit(self, request: Request) -> Future[Completion]:
        stage = {"analyst": "analysts", "researcher": "research"}.get(request.role.kind, "decision")
        self.barriers[stage].wait(timeout=20)
        return super().submit(request)


def test_all_of_a_stage_are_asked_at_once_and_the_manager_beside_the_gate() -> None:
    provider = Together({"analysts": 4, "research": 2, "decision": 2})
    config = settings(mode="firm", second_look="never", rebuttal="never")
    record = debate(provider, about=ABOUT, config=config)
    assert not record.failures and len(provider.requests) == 8


@cases("late", ["technical", "bear_researcher", "research_manager", "risk_gate"])
def test_whoever_is_late_the_firm_ends_at_its_deadline(late: str, tries: Tries) -> None:
    config = settings(mode="firm", second_look="never", rebuttal="always")
    for attempt in tries():
        began = time.monotonic()
        record = debate(Scripted({late: NEVER}), about=ABOUT, config=config, seconds=0.4)
        took = time.monotonic() - began
        assert late in record.failures
        with attempt:
            assert took <= 0.4 + 0.5
