"""What the rules read of the other agents' reports: numbers, trust and citations, never prose.

An analyst is who is none of the others: bull and bear argue by office, the research manager, the
reader of the regime and the trader move no score, the gate sets a size. So a desk of somebody
else's analysts is read as well.

Pure functions; nothing raises.
"""

from __future__ import annotations

import math
from typing import Final

from agent_config import GATE_ID, READER_ID, TRADER_ID
from agents.contracts import ADJUSTMENT_BOUND, SIDES, VECTORS, AgentReport, Request
from agents.evidence import trust
from torra.providers.rules.readings import number

MANAGER_ID: Final = "research_manager"

UNSCORED: Final = frozenset({MANAGER_ID, READER_ID, GATE_ID, TRADER_ID})
"""Who reports and moves no score."""

LESSON_R: Final = 1.0
"""Mean result of similar trades, in R, that speaks for a side as strongly as anything can."""

LESSON_SIDE, LESSON_MEAN = "lessons.side", "lessons.mean_r"


def at_a_firm(request: Request) -> bool:
    """Tell whether a reply names the time that it speaks for: only a firm's do."""
    return "horizon" in request.schema.get("properties", ())


def opinions(request: Request) -> list[AgentReport]:
    """Return the reports of analysts and researchers that did not abstain."""
    return [one for one in request.reports if not one.abstained and one.agent_id not in UNSCORED]


def analysts(request: Request) -> list[AgentReport]:
    """Return those of the analysts."""
    return [one for one in opinions(request) if one.agent_id not in SIDES]


def case_of(request: Request, side: int) -> AgentReport | None:
    """Return the case that was made for a side, +1 or -1; None where none was heard."""
    return next((one for one in opinions(request) if SIDES.get(one.agent_id) == side), None)


def judgement(request: Request) -> AgentReport | None:
    """Return what the research manager said; None where it was not heard."""
    found = (one for one in request.reports if one.agent_id == MANAGER_ID)
    return next((one for one in found if not one.abstained), None)


def push(report: AgentReport) -> float:
    """Return which way a report's adjustments push on the whole, summed without its trust."""
    return math.fsum(value for value in report.adjustments.values() if value is not None)


def mean_push(request: Request) -> float:
    """Return the mean push of the analysts by trust, -1 to +1; 0 without any."""
    told = analysts(request)
    shares = [
        trust(one) * push(one) / (ADJUSTMENT_BOUND * len(VECTORS)) for one in told
    ]  # by their number, not their trust: a report with little trust must weigh less
    return math.fsum(shares) / len(shares) if shares else 0.0


def sided(request: Request) -> list[int]:
    """Return the side, +1 or -1, of each analyst that takes one."""
    pushes = map(push, analysts(request))
    return [1 if one > 0.0 else -1 for one in pushes if one]


def lessons(request: Request) -> float | None:
    """Return which way similar trades speak, in [-1, +1]; None where too few are known."""
    mean, side = number(request.features.get(LESSON_MEAN)), request.features.get(LESSON_SIDE)
    if mean is None or side is None:
        return None
    way = 1 if side.value == "LONG" else -1
    return way * max(-1.0, min(1.0, mean / LESSON_R))
