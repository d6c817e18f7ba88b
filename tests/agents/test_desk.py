"""Who sits at a desk: modes, custom desks, and plain messages for desks that cannot be."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import pytest

from agent_config import GATE_ID, MODES
from agent_framework import check_desk
from agents.contracts import (
    VECTORS,
    AgentReport,
    Ask,
    DebateContext,
    GateRuling,
    SourceType,
)
from agents.registry import AGENTS, Agent, seated
from tests.cases import cases
from tests.doubles.scripted import Scripted, context, debate, reporting, settings


def test_every_agent_of_the_registry_is_what_its_row_says() -> None:
    for name, agent in AGENTS.items():
        assert agent.role.id == name
        assert (agent.role.kind == "gate") == (name == GATE_ID)
        assert set(agent.role.focus) <= set(VECTORS)
        decides = agent.role.kind in ("researcher", "judge")
        assert agent.role.bound == (0.15 if decides else 0.3)


@pytest.mark.parametrize("deliberating", [True, False])
def test_an_unknown_agent_is_named_with_the_known_ones(deliberating: bool) -> None:
    config = settings(active_agents=("technical", "astrologer"))
    with pytest.raises(ValueError, match=r"active_agents .*astrologer; known are .*technical"):
        debate(Scripted(), config=config) if deliberating else check_desk(config.agents)


@pytest.mark.parametrize(
    ("named", "sits"),
    [
        (("technical",), ("technical", "risk_gate")),
        (("risk_gate", "technical"), ("technical", "risk_gate")),
        (("technical", "technical"), ("technical", "risk_gate")),
        (MODES["budget"].seats, MODES["budget"].seats),
    ],
)
def test_active_agents_win_over_the_mode_and_the_gate_is_always_there(
    named: tuple[Any, ...], sits: tuple[Any, ...]
) -> None:
    config = settings(mode="full", active_agents=named)
    assert check_desk(config.agents) == sits
    record = debate(Scripted(), config=config)
    assert record.source_type is SourceType.AGENT_CUSTOM
    assert {call.role_id for call in record.calls} == set(sits)


def test_a_desk_has_an_opinion_and_at_most_eight_agents() -> None:
    with pytest.raises(ValueError, match="beside its gate"):
        check_desk(settings(active_agents=("risk_gate",)).agents)
    two = ("technical", "research_manager", "judge")
    with pytest.raises(
        ValueError, match="one arbiter or judge at most, not research_manager, judge"
    ):
        check_desk(settings(active_agents=two).agents)
    role = AGENTS["technical"].role
    many = {
        f"a{n}": Agent(replace(role, id=f"a{n}"), AGENTS["technical"].analyze) for n in range(8)
    }
    with pytest.raises(ValueError, match="at most 8 agents"):
        check_desk(settings(active_agents=tuple(many)).agents, many)


@cases(
    ("changes", "message"),
    [
        ({"id": "other"}, "role id 'other'"),
        ({"kind": "gate"}, "cannot sit"),
        ({"kind": "scorer"}, "cannot sit"),
        ({"kind": "researcher"}, "no side"),
        ({"focus": {"ath": "primary"}}, "unknown vectors: ath"),
    ],
)
def test_a_seat_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    agent = AGENTS["technical"]
    odd = Agent(replace(agent.role, **changes), agent.analyze)
    with pytest.raises(ValueError, match=message):
        seated(settings(active_agents=("technical",)).agents, {"technical": odd})


@pytest.mark.parametrize(("kind", "message"), [("reader", "one reader"), ("gate", "cannot sit")])
def test_nobody_sits_beside_the_reader_and_the_gate(kind: Any, message: str) -> None:
    own = next(seat for seat in AGENTS.values() if seat.role.kind == kind)
    second = Agent(replace(own.role, id="second"), own.analyze)
    desk = settings(mode="swarm", active_agents=("technical", own.role.id, "second")).agents
    with pytest.raises(ValueError, match=message):
        seated(desk, {**AGENTS, "second": second})


@pytest.mark.parametrize("word", [5.0, math.nan])
def test_an_agent_that_changes_the_report_it_was_given_stays_within_its_bound(word: float) -> None:
    def changed(about: DebateContext, ask: Ask) -> AgentReport:
        report = AGENTS["technical"].analyze(about, ask)
        cast("dict[str, float]", report.adjustments)["momentum"] = word
        return report

    agents = {**AGENTS, "technical": replace(AGENTS["technical"], analyze=changed)}
    record = debate(Scripted(), agents=agents, config=settings(active_agents=("technical",)))
    assert all(abs(move) <= 0.3 for move in record.debate.values())
    assert record.failures == ({"technical": "garbage"} if math.isnan(word) else {})


def test_a_gate_of_another_hand_may_write_lists_and_views() -> None:
    ruling = GateRuling(0.0, veto=True, reasons=cast("Any", ["MODEL_JUDGEMENT"]))
    report = AgentReport(GATE_ID, MappingProxyType(dict.fromkeys(VECTORS)), ruling=ruling,
                         reasoning="The book is empty.", flags=cast("Any", []))  # fmt: skip
    gate = replace(AGENTS[GATE_ID], analyze=lambda _about, _ask: report)
    record = debate(Scripted(), agents={**AGENTS, GATE_ID: gate})
    assert record.ruling.veto and record.ruling.multiplier == 0.0 and not record.failures


def test_a_host_may_bring_its_own_agent_and_gate() -> None:
    mine = Agent(
        replace(AGENTS["technical"].role, id="mine", title="house analyst"),
        AGENTS["technical"].analyze,
    )
    provider = Scripted({"mine": reporting(value=0.2)})
    record = debate(provider, agents={"mine": mine}, config=settings(active_agents=("mine",)))
    assert record.analyst_avg["momentum"] == pytest.approx(0.2)
    assert provider.asked("risk_gate")


@cases("score", [None, "0.1", float("nan"), float("inf"), 1.5, True])
def test_l1_scores_that_are_none_are_the_callers_mistake(score) -> None:
    with pytest.raises(ValueError, match="L1 score momentum"):
        debate(Scripted(), about=context(scores={**context().scores, "momentum": score}))


def test_the_profile_decides_what_agents_see_of_the_memory() -> None:
    def seen(**agents):
        provider = Scripted()
        about = context(picture=b"png")
        debate(provider, about=about, config=settings(**agents))
        return provider.asked("bull_researcher")[0].user, provider.asked("technical")[0].picture

    both, picture = seen(picture="rendered")
    assert picture == b"png"
    assert "recent_transitions" in both
    assert "memory.markov_state" in both
    assert "0.11, 0.25, 0.31" in both
    unmarked, picture = seen(include_markov_context=False)
    assert picture is None
    assert "recent_transitions" not in unmarked
    assert "memory.markov_state" not in unmarked
    assert "memory.next_bullish" not in unmarked
    assert "sentiment_trend" in unmarked
    short, _ = seen(include_sentiment_history=False)
    assert "sentiment_trend" not in short
    assert "memory.consensus_last" not in short
    assert "memory.markov_state" in short
    assert "(newest last): 0.25, 0.31\n" in seen(history_lookback=2)[0]
