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
from agents.registry import AGENTS
from tests.cases import cases
from tests.doubles.scripted import Scripted, context, debate, reporting, settings


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


TECHNICAL = AGENTS["technical"]


@cases(
    ("names", "changes", "message"),
    [
        (("technical", "astrologer"), {}, r"active_agents .*astrologer; known are .*technical"),
        (("risk_gate",), {}, "beside its gate"),
        (tuple(f"a{n}" for n in range(8)), {}, "at most 8 agents"),
        (("research_manager", "judge"), {}, "one arbiter or judge .* not research_manager, judge"),
        (("regime_reader", "mine"), {"kind": "reader"}, "one reader"),
        (("mine",), {"kind": "gate"}, "cannot sit"),
        (("mine",), {"kind": "scorer"}, "cannot sit"),
        (("mine",), {"kind": "researcher"}, "no side"),
        (("mine",), {"id": "other"}, "role id 'other'"),
        (("mine",), {"focus": {"ath": "primary"}}, "unknown vectors: ath"),
        (("mine",), {"bound": 5.0}, "bound 5.0; a bound is 0 to 0.3"),
        (("mine",), {"bound": math.nan}, "bound nan"),
        (("mine",), {"bound": -0.1}, "bound -0.1"),
        (("bull_researcher",), {}, "'bull_researcher' has no turn .* mode 'swarm'"),
    ],
)
def test_a_desk_that_cannot_be_is_refused(
    names: tuple[str, ...], changes: dict[str, Any], message: str
) -> None:
    own = {name: replace(TECHNICAL, role=replace(TECHNICAL.role, id=name)) for name in names}
    own["mine"] = replace(TECHNICAL, role=replace(TECHNICAL.role, **{"id": "mine", **changes}))
    own.pop("astrologer", None)
    config = settings(mode="swarm", active_agents=names)
    with pytest.raises(ValueError, match=message):
        check_desk(config.agents, {**own, **AGENTS})
    with pytest.raises(ValueError, match=message):
        debate(Scripted(), config=config, agents={**own, **AGENTS})


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
    mine = replace(TECHNICAL, role=replace(TECHNICAL.role, id="mine", title="house analyst"))
    provider = Scripted({"mine": reporting(value=0.2)})
    record = debate(provider, agents={"mine": mine}, config=settings(active_agents=("mine",)))
    assert record.analyst_avg["momentum"] == pytest.approx(0.2)
    assert provider.asked("risk_gate")


@cases("score", [None, "0.1", float("nan"), float("inf"), 1.5, True])
def test_l1_scores_that_are_none_are_the_callers_mistake(score) -> None:
    with pytest.raises(ValueError, match="L1 score momentum"):
        debate(Scripted(), about=context(scores={**context().scores, "momentum": score}))


def test_the_profile_decides_what_agents_see_of_the_memory() -> None:
    def shown(**agents: Any) -> str:
        provider = Scripted()
        debate(provider, about=context(picture=b"png"), config=settings(**agents))
        picture = provider.asked("technical")[0].picture
        assert picture == (b"png" if agents.get("picture") else None)
        return provider.asked("bull_researcher")[0].user

    words = ("recent_transitions", "memory.markov_state", "memory.next_bullish")
    history = ("sentiment_trend", "memory.consensus_last")
    for user, gone in (
        (shown(picture="rendered"), ()),
        (shown(include_markov_context=False), words),
        (shown(include_sentiment_history=False), history),
    ):
        assert [word for word in (*words, *history) if word not in user] == [*gone]
    assert "(newest last): 0.25, 0.31\n" in shown(history_lookback=2)
