"""What a firm's seats read: who sees whom, what is quoted, and that it fits.

The golden texts are those of tests/golden/bytes_debates.py.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from agent_config import MAX_PROMPT_BYTES, MODES, PROMPT_BYTES
from agent_framework import consult_trader
from agents.contracts import OPINIONS, AgentReport, Evidence, Feature, Point, Prompt, Request
from agents.debate import replies
from agents.evidence import with_scores
from agents.registry import AGENTS, TRADER
from scoring_rubric import build_interpretive_prompt, second_look
from tests.agents import test_prompts as plain
from tests.agents.test_debate_invariants import cases as drawn
from tests.agents.test_prompts import (
    TALES,
    at_the_firm,
    attacks,
    outside_fences,
)
from tests.conftest import Scale
from tests.doubles import scripted
from tests.doubles.scripted import Scripted, a_report, context, debate, settings

MANAGER = "research_manager"
CONFIG = settings(mode="firm", second_look="never", rebuttal="always")
LESSONS = ("x" * 180, "漢" * 60, "A lesson of ordinary length about what came of it. " * 9)


def hostile(text: str, name: str) -> tuple[AgentReport, ...]:
    case = a_report(
        "bull_researcher",
        claim=text,
        points_for=(Point(text, "technical.rsi14", 61.2, side=1),),
        horizon="bars_4",
        risks=(text, f"{name} {text}"),
        evidence=(Evidence(name, text), Evidence("technical.rsi14", 61.2)),
    )
    weights = {"bull_researcher": 0.5, "bear_researcher": 0.25}
    return case, replace(case, agent_id=MANAGER, risks=(), winner="LONG", weights=weights)


def test_no_words_of_a_case_or_of_a_judgement_leave_their_fence(scaled: Scale) -> None:
    def outside(reports: tuple[AgentReport, ...]) -> list[str]:
        about = replace(at_the_firm("trader"), reports=reports)
        return outside_fences(build_interpretive_prompt(about, TRADER.role).user)

    silent = tuple(
        replace(one, claim="", points_for=(), risks=(), evidence=one.evidence[1:])
        for one in hostile("", "")
    )
    calm = outside(silent)

    @drawn(scaled(10_000))
    @given(attacks, attacks)
    def check(text: str, name: str) -> None:
        assert outside(hostile(text, name)) == calm

    check()


# --- the size -------------------------------------------------------------------------------------


def wordy(tale: str) -> Any:
    """Replies as long as they can be made to matter, in every shape of a firm."""
    opinion = plain.wordy(tale)

    def entry(request: Request) -> dict[str, Any]:
        if request.role.kind == "arbiter":
            names = sorted(request.features, key=lambda name: (-len(name), name))[:40]
            cited = [{"id": name, "value": -9.9e9} for name in names]
            points = [
                {"id": name, "value": request.features[name].value, "says": tale * 30, "why": tale}
                for name in ("scores.momentum", "scores.structure")
            ]
            return scripted.judgement(
                request, claim=tale * 50, points_for=points, evidence=cited, winner="SHORT"
            )
        told: dict[str, Any] = opinion(request)
        return told | {"risks": [tale * 30] * 2} if request.role.kind == "researcher" else told

    return entry


@pytest.mark.journey
@pytest.mark.parametrize("tale", TALES)
def test_no_prompt_of_a_firm_is_refused_for_its_bytes(tale: str) -> None:
    """Everything is there: headlines, flags, lessons, trades, a rebuttal, and a second look."""
    for about in plain.real_ticks("BTCUSD_M15", 1, tale):
        told = replace(
            about, memory={**about.memory, "recent_trades": plain.TRADES}, lessons=LESSONS
        )
        provider = Scripted(dict.fromkeys(AGENTS, wordy(tale)))
        record = debate(provider, about=told, config=CONFIG)
        assert not record.failures
        assert {request.role.id for request in provider.requests} == set(MODES["firm"].seats)
        ask_trader(provider, told, record.reports)
        assert not [flag for flag in record.flags if flag.startswith("shortened")]
        more = second_look(Prompt("", "", "report", tuple(about.features)), plain.LONGEST)
        for request in provider.requests:
            size = len((request.system + request.user).encode())
            again = len(more.user.encode()) if request.role.kind in OPINIONS else 0
            most = PROMPT_BYTES.get(request.role.id, MAX_PROMPT_BYTES)
            assert size + again <= most, (request.role.id, request.round)


def ask_trader(provider: Scripted, about: Any, reports: tuple[AgentReport, ...]) -> None:
    order = {name: Feature(name, value) for name, value in plain.ORDER.items()}
    scored = with_scores({**about.features, **order}, about)
    asked = consult_trader(
        TRADER,
        replace(about, features=scored, reports=reports, ahead=True),
        CONFIG,
        provider.submit,
        monotonic=time.monotonic,
        deadline=time.monotonic() + scripted.AMPLE,
    )
    assert asked.failure == "" and asked.report is not None
    assert asked.report.flags == ()


def test_an_honest_firm_is_read_without_a_flag() -> None:
    provider = Scripted()
    record = debate(provider, config=CONFIG)
    assert {report.flags for report in record.reports} == {(), ("conceded",)}, (
        "a bear asks for less"
    )
    about = context(features={"order.side": "BUY"})
    asked = Scripted()
    ask_trader(asked, about, record.reports)
    (request,) = asked.requests
    told = replies.read("thesis", scripted.thesis(request), TRADER.role, request.features)
    assert told.horizon_bars == 16
