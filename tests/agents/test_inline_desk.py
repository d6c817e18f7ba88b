"""A provider that answers at once needs no thread: the same debate, on the caller's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from agent_config import MAX_PROMPT_BYTES, MODES
from agent_framework import deliberate
from agents.contracts import (
    AgentReport,
    Ask,
    Completion,
    DebateContext,
    Feature,
    Request,
    Submit,
    is_synchronous,
    synchronous,
)
from agents.debate.deliberation import Deliberation
from agents.registry import AGENTS, Agent
from tests.cases import cases
from tests.doubles import scripted
from torra.providers.recorded import RecordedProvider
from torra.providers.rules.provider import RulesProvider

ABOUT = scripted.context(features=scripted.FULL_FEATURES)
FULL = scripted.settings(mode="full")
RULES = RulesProvider()


class Hand:
    """A clock that is moved by hand, in seconds."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def held(submit: Submit, *, about: DebateContext = ABOUT, **more: Any) -> Deliberation:
    given: dict[str, Any] = {"monotonic": Hand(), "deadline": 100.0} | more
    return deliberate(about, given.pop("config", FULL), submit, **given)


def on_threads(request: Request) -> Future[Completion]:
    """The rules, without the mark."""
    return RULES.submit(request)


def asking(seen: list[threading.Thread]) -> Callable[[Request], Future[Completion]]:
    def submit(request: Request) -> Future[Completion]:
        seen.append(threading.current_thread())
        return RULES.submit(request)

    return submit


def lengthened() -> dict[str, Feature]:
    """More evidence than a prompt may hold."""
    more = {f"technical.more_{number}": Feature(f"technical.more_{number}", 1.0)
            for number in range(MAX_PROMPT_BYTES // 20)}  # fmt: skip
    return {**ABOUT.features, **more}


def test_who_answers_at_once() -> None:
    assert is_synchronous(RULES.submit)
    assert is_synchronous(RecordedProvider(lambda _: None).submit)
    assert not is_synchronous(scripted.Scripted().submit)
    assert not is_synchronous(on_threads)


def test_such_a_desk_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "Thread", lambda **_: pytest.fail("a thread"))
    seen: list[threading.Thread] = []
    record = held(synchronous(asking(seen)))
    assert record.source_type == "AGENT_FULL"
    assert seen == [threading.current_thread()] * 8


def test_any_other_provider_and_any_other_agent_keeps_its_thread() -> None:
    def stranger(context: DebateContext, ask: Ask) -> AgentReport:
        return AGENTS["technical"].analyze(context, ask)

    handed_in = {**AGENTS, "technical": Agent(AGENTS["technical"].role, stranger)}
    for mark, agents in ((lambda submit: submit, AGENTS), (synchronous, handed_in)):
        seen: list[threading.Thread] = []
        held(mark(asking(seen)), agents=agents)
        assert len(seen) == 8
        assert threading.current_thread() not in seen


@pytest.mark.parametrize("mode", MODES)
def test_the_record_is_the_same_to_the_last_text(mode: str) -> None:
    config = scripted.settings(mode=mode, debate_rounds=3)
    inline, apart = (held(submit, config=config) for submit in (RULES.submit, on_threads))
    assert inline.as_json() == apart.as_json()
    assert all(call.user and call.reply and call.request_hash for call in inline.calls)


def test_a_prompt_that_nobody_is_sent_may_be_of_any_length() -> None:
    about = replace(ABOUT, features=lengthened())
    record = held(RULES.submit, about=about)
    assert record.source_type == "AGENT_FULL"
    assert max(len(call.user) for call in record.calls) > MAX_PROMPT_BYTES
    provider = scripted.Scripted()
    assert held(provider.submit, about=about).failures["technical"] == "refused"
    assert not provider.asked("technical")


def test_the_deadline_holds_between_agents() -> None:
    clock = Hand()
    asked: list[str] = []

    @synchronous
    def slow(request: Request) -> Future[Completion]:
        asked.append(request.role.id)
        clock.at += 20.0  # of the 45 that analysts have
        return RULES.submit(request)

    record = held(slow, monotonic=clock)
    first = ["technical", "sentiment", "news"]
    assert asked[:4] == [*first, "risk_gate"], "no quorum: the researchers are left out"
    assert record.failures == dict.fromkeys(("news", "key_levels", "momentum"), "timeout")
    assert {call.role_id: call.status for call in record.calls}["news"] == "late"
    assert clock.at <= 100.0


def test_an_interrupt_of_the_program_goes_through() -> None:
    @synchronous
    def interrupted(_: Request) -> Future[Completion]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        held(interrupted)


def test_the_record_of_a_text_that_cannot_be_written_is_empty() -> None:
    features = {**ABOUT.features, "technical.odd": Feature("technical.odd", [])}  # type: ignore[arg-type]
    record = held(RULES.submit, about=replace(ABOUT, features=features))
    calls = {call.role_id: call.as_json() for call in record.calls}
    assert calls["technical"]["user"] == calls["technical"]["request_hash"] == ""
    assert calls["momentum"]["user"]


@cases(
    ("change", "reason"),
    [
        ({"symbol": "EURUSD"}, "wrong_symbol"),
        ({"symbol": None}, "garbage"),
        ({"confidence": "sure"}, "garbage"),
        ({"claim": "\ud800"}, "garbage"),
        ({"evidence": [{"id": "technical.rsi14", "value": "\ud800"}]}, "garbage"),
        ({"adjustments": dict.fromkeys(scripted.L1, float("nan"))}, "garbage"),
        ({}, ""),
    ],
    ids=["symbol", "no-symbol", "confidence", "surrogate", "surrogate-cited", "nan", "good"],
)
def test_a_reply_that_comes_as_an_object_is_held_to_the_same(
    change: dict[str, Any], reason: str
) -> None:
    def composed(request: Request) -> Completion:
        return Completion("unread", "a model", reply=scripted.honest(request) | change)

    record = held(scripted.Scripted({"technical": composed}).submit)
    assert record.failures.get("technical", "") == reason


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1.0, True, "0.5", None, 10**400])
def test_a_cost_that_is_no_amount_counts_as_nothing(cost: Any) -> None:
    def submit(request: Request) -> Future[Completion]:
        answer: Future[Completion] = Future()
        answer.set_result(replace(RULES.submit(request).result(), cost_usd=cost))
        return answer

    record = held(synchronous(submit))
    assert record.heard and not record.failures
    assert record.cost_usd == 0.0 == sum(call.cost_usd for call in record.calls)
