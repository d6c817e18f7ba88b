"""Too few analysts: a large desk does not debate what hardly anybody has looked at, and says so."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from agent_config import MODES, QUORUM_FROM
from agents.contracts import AgentReport, SourceType
from agents.debate.scoring import has_quorum
from agents.registry import AGENTS, Agent
from tests.cases import cases
from tests.doubles.scripted import FULL_FEATURES, Scripted, context, debate, reporting, settings

FULL = MODES["full"].seats
ANALYSTS = tuple(name for name in FULL if AGENTS[name].role.kind == "analyst")
SIDES = ("bull_researcher", "bear_researcher")
DOWN = RuntimeError("down")


def sit(provider: Scripted, **more):
    agents = more.pop("agents", None)
    reserve, fallback = more.pop("reserve", None), more.pop("fallback", None)
    return debate(
        provider,
        about=context(features=FULL_FEATURES),
        config=settings(**{"mode": "full"} | more),
        agents=agents,
        reserve=reserve,
        fallback=fallback,
    )


def failing(count: int) -> dict[str, RuntimeError]:
    return dict.fromkeys(ANALYSTS[:count], DOWN)


def test_left_out_is_neither_a_failure_nor_an_answer() -> None:
    record = sit(Scripted(failing(3)))
    assert set(record.failures) == set(ANALYSTS[:3])
    assert record.not_asked == dict.fromkeys(SIDES, "quorum")
    assert not {report.agent_id for report in record.reports} & set(SIDES)
    assert not {call.role_id for call in record.calls} & set(SIDES)
    (stage,) = [stage for stage in record.stages if stage["name"] == "research"]
    assert (stage["status"], stage["agents"]) == ("skipped", dict.fromkeys(SIDES, "quorum"))
    assert record.as_json()["unasked"] == dict.fromkeys(SIDES, "quorum")
    note = record.scores["composite_bias"]["note"]
    assert note.startswith("AGENT_PARTIAL: DEGRADED (2 of 5 analysts), 2 of 7 opinions")


def test_abstentions_count_as_reports() -> None:
    quiet = reporting(abstained=True, value=None, abstain_reason="no evidence")
    provider = Scripted(failing(2) | dict.fromkeys(ANALYSTS[2:], quiet))
    record = sit(provider)
    assert provider.asked("bull_researcher")
    assert "DEGRADED" not in record.scores["composite_bias"]["note"]


def test_an_abstention_before_any_call_counts_too() -> None:
    """Without a feed the news agent has nothing to go on; that is no reason to stop."""
    bare = {**FULL_FEATURES, **{n: None for n in FULL_FEATURES if n.startswith("news.")}}
    provider = Scripted(dict.fromkeys(("technical", "momentum"), DOWN))
    record = debate(provider, about=context(features=bare), config=settings(mode="full"))
    assert not provider.asked("news")
    assert provider.asked("bull_researcher")
    assert set(record.failures) == {"technical", "momentum"}


@pytest.mark.parametrize(("quorum", "debated"), [(0, True), (1, True), (2, True), (3, False)])
def test_the_profile_names_the_number(quorum: int, debated: bool) -> None:
    provider = Scripted(failing(3))
    record = sit(provider, quorum=quorum)
    assert bool(provider.asked("bull_researcher")) is debated
    assert record.not_asked == ({} if debated else dict.fromkeys(SIDES, "quorum"))


def test_a_quorum_that_the_desk_cannot_reach_is_refused() -> None:
    with pytest.raises(ValueError, match="quorum 6 can never be reached: the desk seats 5"):
        sit(Scripted(), quorum=6)


def test_quorum_0_never_leaves_anybody_out() -> None:
    provider = Scripted(failing(5))
    record = sit(provider, quorum=0)
    assert record.source_type is SourceType.AGENT_PARTIAL
    assert not record.not_asked
    assert provider.asked("bull_researcher")


def stand_ins(count: int) -> dict[str, Agent]:
    role = AGENTS["technical"].role
    names = [f"a{n}" for n in range(count)]
    return {**AGENTS, **{n: Agent(replace(role, id=n), AGENTS["technical"].analyze) for n in names}}


@pytest.mark.parametrize("seats", [1, 2, 3, 4])
def test_small_desks_need_no_quorum(seats: int) -> None:
    """A desk of three analysts of which one answers goes on as ever."""
    names = [f"a{n}" for n in range(seats)]
    provider = Scripted(dict.fromkeys(names[1:], DOWN))
    record = sit(provider, active_agents=(*names, *SIDES), agents=stand_ins(seats))
    assert bool(provider.asked("bull_researcher")) is (seats < QUORUM_FROM)
    expected = SourceType.AGENT_CUSTOM if seats == 1 else SourceType.AGENT_PARTIAL
    assert record.source_type is expected


def test_a_desk_without_researchers_has_nobody_to_leave_out() -> None:
    names = ("a0", "a1", "a2", "a3")
    record = sit(Scripted(dict.fromkeys(names[:2], DOWN)), active_agents=names, agents=stand_ins(4))
    assert record.not_asked == {}
    assert [stage["name"] for stage in record.stages] == ["analysts", "gate"]
    assert "degraded:2_of_4" in record.flags


def test_without_its_quorum_a_desk_asks_no_leave_for_the_researchers() -> None:
    asked = []

    def reserve(stage, _bounds):
        asked.append(stage)
        return True

    sit(Scripted(failing(3)), reserve=reserve, debate_rounds=3)
    assert asked == ["analysts", "gate"]


def test_the_stage_that_was_refused_has_no_quorum() -> None:
    record = sit(Scripted(), reserve=lambda stage, _bounds: stage != "analysts")
    assert record.source_type is SourceType.L1_ONLY
    assert record.not_asked == dict.fromkeys(SIDES, "budget"), "money was the reason, not silence"
    assert set(record.failures.values()) == {"budget"}


def test_the_scores_are_those_of_the_analysts_alone() -> None:
    up = reporting(value=0.2)
    provider = Scripted(failing(3) | dict.fromkeys((*ANALYSTS[3:], *SIDES), up))
    record = sit(provider)
    assert record.debate == record.analyst_avg
    assert record.debate["momentum"] == pytest.approx(0.2)


@cases(
    ("heard", "seats", "quorum", "enough"),
    [(0, 3, 3, True), (2, 4, 3, False), (3, 4, 3, True), (0, 5, 0, True), (5, 5, 8, False)],
)
def test_what_is_a_quorum(heard: int, seats: int, quorum: int, enough: bool) -> None:
    assert has_quorum(heard, seats, quorum) is enough


def test_a_report_that_is_no_report_does_not_count() -> None:
    """An agent of a host's own may return anything; what is held to be garbage was not heard."""
    odd = {
        name: Agent(AGENTS[name].role, lambda _context, _ask: cast(AgentReport, "no report"))
        for name in ANALYSTS[:3]
    }
    provider = Scripted()
    record = sit(provider, agents={**AGENTS, **odd})
    assert record.not_asked == dict.fromkeys(SIDES, "quorum")
    assert not provider.asked("bull_researcher")
