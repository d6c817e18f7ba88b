"""A tick ends on time whatever a provider does, and a process never waits for one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from agent_config import MODES
from agent_framework import Fallback, deliberate
from agents.contracts import VECTORS, ModelUnavailable, Prompt, SourceType
from agents.debate import debate as debates
from agents.registry import AGENTS, Agent
from tests import ROOT
from tests.doubles.scripted import (
    NEVER,
    Blocks,
    Scripted,
    Slow,
    a_report,
    context,
    debate,
    honest,
    report,
    ruling,
    settings,
)
from tests.tries import Tries, until
from torra.tick.debate import score_chart

DESK = MODES["budget"].seats
OVER = 0.5


@pytest.fixture
def released() -> Iterator[Event]:
    """An event that blocked threads wait for; set at the end, so that they drain."""
    with released_after() as event:
        yield event


def took(provider, seconds, **more):
    started = time.monotonic()
    record = debate(provider, seconds=seconds, **more)
    return record, time.monotonic() - started


@contextmanager
def released_after():
    """An event of one try that blocked threads wait for; set at its end, so that they drain."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()
        until(lambda: debates.abandoned() == 0)


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("fallback", [None, score_chart])
@pytest.mark.parametrize("seconds", [0.05, 0.3])
def test_a_provider_that_never_answers(
    seconds: float, fallback: Fallback | None, rounds: int, tries: Tries
) -> None:
    provider = Scripted(dict.fromkeys([*DESK, "chart_scorer"], NEVER))
    for attempt in tries():
        record, elapsed = took(
            provider, seconds, fallback=fallback, config=settings(debate_rounds=rounds)
        )
        assert record.source_type is SourceType.L1_ONLY
        assert {v: record.scores[v]["score"] for v in VECTORS} == dict(context().scores)
        assert {call.status for call in record.calls} <= {"timeout"}
        with attempt:
            assert elapsed <= seconds + OVER
            assert record.calls


@pytest.mark.parametrize("blocked", [DESK, ("technical",), ("risk_gate",), ("bear_researcher",)])
def test_a_submit_that_blocks(blocked: tuple[Any, ...], tries: Tries) -> None:
    for attempt in tries():
        with released_after() as released, attempt:
            provider = Scripted(dict.fromkeys(blocked, Blocks(released)))
            record, elapsed = took(provider, 0.6)
            assert elapsed <= 0.6 + OVER
            assert set(record.failures) <= set(blocked)
            assert set(record.failures.values()) == {"timeout"}
            assert debates.abandoned() == len([name for name in blocked if name in record.failures])
            assert {call.status for call in record.calls if call.role_id in blocked} == {"timeout"}


def test_an_agent_that_hangs_without_asking(released: Event, tries: Tries) -> None:
    def hang(_context, _ask):
        released.wait()
        return a_report()

    agents = {**AGENTS, "technical": Agent(AGENTS["technical"].role, hang)}
    for attempt in tries():
        with attempt:
            # The researchers need what the one that hangs leaves of it.
            record, elapsed = took(Scripted(), 1.0, agents=agents)
            assert elapsed <= 1.0 + OVER
            assert record.failures == {"technical": "timeout"}
            assert record.source_type is SourceType.AGENT_PARTIAL


@pytest.mark.parametrize("seconds", [0.0, -5.0])
def test_a_deadline_that_has_passed_makes_no_call(seconds: float, tries: Tries) -> None:
    provider = Scripted()
    for attempt in tries():
        record, elapsed = took(provider, seconds, fallback=score_chart)
        assert provider.requests == []
        assert record.source_type is SourceType.L1_ONLY
        assert set(record.failures.values()) == {"deadline"}
        with attempt:
            assert elapsed <= OVER


@pytest.mark.parametrize(("fallback", "kept"), [(None, 0.0), (score_chart, 2.0)])
def test_a_fifth_of_the_whole_is_kept_whatever_the_shares(
    fallback: Fallback | None, kept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until somebody has answered; a clock that stands still shows the limits."""
    stages = tuple(replace(stage, share=1.0) for stage in MODES["budget"].stages)
    monkeypatch.setitem(MODES, "budget", replace(MODES["budget"], stages=stages))
    provider = Scripted({"technical": TimeoutError()})
    deliberate(
        context(),
        settings(),
        provider.submit,
        monotonic=lambda: 100.0,
        deadline=110.0,
        fallback=fallback,
    )
    limits = [round(request.limit_s, 6) for request in provider.requests]
    assert limits == [10.0 - kept] * 3 + [10.0]


def test_no_stage_may_use_more_than_its_share() -> None:
    """A clock that stands still shows the limits: 45 %, then 50 % and 60 % of what remains."""
    provider = Scripted()
    deliberate(context(), settings(), provider.submit, monotonic=lambda: 100.0, deadline=110.0)
    limits = [round(request.limit_s, 6) for request in provider.requests]
    assert limits == [4.5, 5.0, 5.0, 6.0]


def test_a_late_answer_is_recorded_and_not_used(tries: Tries) -> None:
    script = {
        "technical": Slow(0.5, lambda request: report(request, value=0.3)),
        "bull_researcher": Slow(0.15, honest),
    }
    for attempt in tries():
        record, _ = took(Scripted(script), 1.0)
        assert record.cost_usd == pytest.approx(sum(call.cost_usd for call in record.calls))
        assert record.failures["technical"] == "timeout"
        assert record.analyst_avg["momentum"] == 0.0
        with attempt:
            assert len(record.failures) == 1
            assert record.calls[0].status == "late"
    late = record.calls[0]
    assert (late.role_id, late.status) == ("technical", "late")
    assert '"momentum": 0.3' in late.reply
    assert late.cost_usd > 0
    assert "late:technical" in record.flags
    assert record.source_type is SourceType.AGENT_PARTIAL


def held_afterwards(released):
    """A busy machine holds up the agent that has its answer."""

    def analyze(context, ask):
        try:
            return AGENTS["technical"].analyze(context, ask)
        finally:
            released.wait()

    return {**AGENTS, "technical": Agent(AGENTS["technical"].role, analyze)}


@pytest.mark.parametrize("reply", [honest, "}{"])
def test_no_call_of_an_agent_that_was_left_behind_is_ok(reply: Any, tries: Tries) -> None:
    """Its answer came in time, it did not: the record says what the debate says."""
    for attempt in tries():
        with released_after() as released:

            def gate(request, released=released):
                released.set()  # the analysts' stage is over; now its agent ends
                until(lambda: debates.abandoned() == 0)
                return ruling(request)

            provider = Scripted({"technical": [reply, honest], "risk_gate": gate})
            record, _ = took(provider, 1.0, agents=held_afterwards(released))
        with attempt:
            assert record.failures == {"technical": "timeout"}
    told = [(call.attempt, call.status) for call in record.calls if call.role_id == "technical"]
    assert told == ([(1, "late")] if reply is honest else [(1, "garbage"), (2, "late")])
    assert record.calls[0].reply and "late:technical" in record.flags


def test_no_call_of_a_fallback_that_was_left_behind_is_ok(released: Event, tries: Tries) -> None:
    def fallback(about, ask):
        try:
            return score_chart(about, ask)
        finally:
            released.wait()

    down = Scripted(dict.fromkeys(DESK, RuntimeError()))
    for attempt in tries():
        with attempt:
            record, elapsed = took(down, 0.4, fallback=fallback)
            assert elapsed <= 0.4 + OVER
            assert "fallback_failed:timeout" in record.flags
            assert record.calls[-1].role_id == "chart_scorer"
    assert record.calls[-1].status == "late"


def test_no_call_counts_after_its_stage() -> None:
    provider, role, stage = Scripted(), AGENTS["technical"].role, debates.Stage("analysts", 1, 1.0)

    def parse(reply, _prompt):
        stage.closed = True
        return reply

    state = debates.DebateState((), settings().agents, provider.submit, lambda: 0.0, 1.0, 0.0)
    ask, prompt = debates.Conversation(state, role, context(), stage), Prompt("", "", "report")
    assert ask.once(prompt, parse)
    with pytest.raises(ModelUnavailable, match="deadline"):
        ask.once(prompt, parse)
    assert len(provider.requests) == len(state.calls) == 1
    assert state.calls[0].status == "timeout"


def test_an_answer_at_the_end_of_its_stage_is_late_and_nothing_is_asked_after_it() -> None:
    clock, provider = [0.0], Scripted()

    def submit(request):
        clock[0] = 1.0
        return provider.submit(request)

    role, stage = AGENTS["technical"].role, debates.Stage("analysts", 1, 1.0)
    state = debates.DebateState((), settings().agents, submit, lambda: clock[0], 2.0, 0.0)
    ask, prompt = debates.Conversation(state, role, context(), stage), Prompt("", "", "report")
    with pytest.raises(ModelUnavailable, match="timeout: the answer came late"):
        ask.once(prompt, lambda reply, _prompt: reply)
    assert [call.status for call in state.calls] == ["timeout"]
    with pytest.raises(ModelUnavailable, match="deadline: no time is left"):
        ask.once(prompt, lambda reply, _prompt: reply)
    assert len(provider.requests) == len(state.calls) == 1


def test_a_listener_hears_of_an_agent_that_was_left_behind(tries: Tries) -> None:
    for attempt in tries():
        errors: dict[str, str] = {}

        def listen(kind, payload, errors=errors) -> None:
            if kind == "agent_error":
                errors[payload["agent"]] = payload["reason"]

        with released_after() as released, attempt:
            took(Scripted({"technical": Blocks(released)}), 0.6, on_event=listen)
            assert errors == {"technical": "timeout"}


def test_a_retry_needs_as_much_time_as_the_first_attempt_took(tries: Tries) -> None:
    for attempt in tries():
        provider = Scripted({"technical": Slow(0.3, "garbage")})
        record, _ = took(provider, 1.0)
        assert len(provider.asked("technical")) == 1
        with attempt:
            assert record.failures["technical"] == "garbage"
    for attempt in tries():
        provider = Scripted({"technical": [Slow(0.05, "garbage"), honest]})
        record, _ = took(provider, 1.0)
        assert len(provider.asked("technical")) <= 2
        with attempt:
            assert len(provider.asked("technical")) == 2
            assert record.source_type is SourceType.AGENT_BUDGET


def test_too_many_threads_left_behind_mean_l1_until_they_drain(
    released: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debates, "MAX_ABANDONED", 5)
    while not debates.too_many_abandoned():
        debate(Scripted(dict.fromkeys(DESK, Blocks(released))), seconds=0.02)
    provider = Scripted()
    record = debate(provider, fallback=score_chart)
    assert record.source_type is SourceType.L1_ONLY
    assert "threads_exhausted" in record.flags
    assert provider.requests == []
    released.set()
    until(lambda: debates.abandoned() == 0)
    assert debate(Scripted()).source_type is SourceType.AGENT_BUDGET


HANGING_HOST = """
import sys, threading, time
sys.path.insert(0, {root!r})
from tests.doubles.scripted import NEVER, Blocks, Scripted, debate
entry = {{"never": NEVER, "blocked": Blocks(threading.Event())}}[sys.argv[1]]
desk = ("technical", "bull_researcher", "bear_researcher", "risk_gate")
provider = Scripted(dict.fromkeys(desk, entry))
print(debate(provider, seconds=0.3).source_type, time.monotonic(), flush=True)
"""


@pytest.mark.parametrize("how", ["never", "blocked"])
def test_the_process_exits_while_calls_hang(how: str, tries: Tries) -> None:
    code = HANGING_HOST.format(root=str(ROOT))
    for attempt in tries():
        done = subprocess.run(
            [sys.executable, "-c", code, how],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            check=True,
        )
        source, finished = done.stdout.split()
        took = time.monotonic() - float(finished)
        assert source == "L1_ONLY"
        with attempt:
            assert took <= 2.0
