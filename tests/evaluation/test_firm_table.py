"""What manager and trader did is counted; neither is an opinion."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.worlds.observed import quiet_ticks
from torra.evaluation.agent_activity import activity
from torra.evaluation.firm.firm_table import firm_exhibit, firm_seen
from torra.evaluation.observations import AgentOpinion, as_json, tick_of
from torra.evaluation.opinion_table import agent_ids


def judged(winner: str, bull: float = 1.0, bear: float = 0.5) -> AgentOpinion:
    return AgentOpinion("research_manager", "arbiter", winner=winner, weights=(bull, bear))


SAID: tuple[dict[str, Any], ...] = (
            {"opinions": (judged("LONG"),), "consulted": "BUY", "tier": "deep", "declined": False},
            {"opinions": (judged("LONG", 0.5),), "consulted": "BUY", "tier": "chief",
             "declined": True},
            {"opinions": (judged("SHORT", 0.0, 1.0),), "consulted": "SELL", "tier": "chief"},
            {"opinions": (judged("NONE"),)},
            {"opinions": (AgentOpinion("research_manager", "arbiter", answered=False),)},
            {},
)  # fmt: skip
TICKS = tuple(replace(tick, **told) for tick, told in zip(quiet_ticks(6), SAID, strict=True))


def test_who_was_named_asked_and_declined_is_counted() -> None:
    found = firm_seen(TICKS)
    assert dict(found.named) == {"LONG": 2, "SHORT": 1, "NONE": 1}
    assert (found.judged, found.failed, found.weights) == (4, 1, (0.625, 0.625))
    assert (found.asked, found.chief, found.declined, found.unanswered) == (3, 2, 1, 1)
    told = firm_exhibit(TICKS)
    assert told is not None and not told.enough
    assert "named: LONG 50 %, SHORT 25 %, NONE 25 %" in told.says
    assert "asked about 3 openings, declined 33 %" in told.says
    assert told.figures["escalated"] == 2 / 3


def test_a_desk_that_has_neither_has_no_such_table() -> None:
    assert firm_exhibit(quiet_ticks(3)) is None


def test_neither_is_an_opinion() -> None:
    assert agent_ids(TICKS) == ("research_manager",)
    assert activity(TICKS) == ()


def test_what_they_said_goes_through_json_and_a_tick_without_it_reads_as_before() -> None:
    assert [tick_of(as_json(tick)) for tick in TICKS] == list(TICKS)
    plain = as_json(TICKS[-1])
    assert not plain.keys() & {"consulted", "tier", "declined"}
    said = as_json(AgentOpinion("technical", "analyst"))
    assert not said.keys() & {"winner", "weights", "horizon"}
