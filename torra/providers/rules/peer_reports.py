"""What the rules read of the other agents' reports: numbers, trust and citations, never prose.

An analyst is who is none of the others: bull and bear argue by office, the research manager, the
reader of the regime and the trader move no score, the gate sets a size. So a desk of somebody
else's analysts is read as well. Pure functions; nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from agent_config import GATE_ID, MANAGER_ID, READER_ID, TRADER_ID
from agents.contracts import ADJUSTMENT_BOUND, SIDES, VECTORS, AgentReport, Request
from agents.evidence import trust
from agents.features import number
from torra.providers.rules.rule import side_of, word

UNSCORED: Final = {MANAGER_ID, READER_ID, GATE_ID, TRADER_ID}
"""Who reports and moves no score."""

Words = Sequence[tuple[float, Mapping[str, float | None]]]
"""The trust in each report, and its adjustments."""

LESSON_MEAN: Final = "lessons.mean_r"


def opinions(request: Request) -> list[AgentReport]:
    """Return the reports of analysts and researchers that did not abstain."""
    return [
        peer for peer in request.reports if not peer.abstained and peer.agent_id not in UNSCORED
    ]


def analysts(request: Request) -> list[AgentReport]:
    """Return those of the analysts."""
    return [peer for peer in opinions(request) if peer.agent_id not in SIDES]


def researchers(request: Request) -> list[AgentReport]:
    """Return those of the researchers."""
    return [peer for peer in opinions(request) if peer.agent_id in SIDES]


def case_of(request: Request, side: int) -> AgentReport | None:
    """Return the case that was made for a side, +1 or -1; None without one."""
    return next((peer for peer in opinions(request) if SIDES.get(peer.agent_id) == side), None)


def push(report: AgentReport) -> float:
    """Return which way a report's adjustments push on the whole, summed without its trust."""
    return math.fsum(value for value in report.adjustments.values() if value is not None)


def mean_push(request: Request) -> float:
    """Return the mean push of the analysts by trust, -1 to +1; 0 without any."""
    shares = [
        trust(peer) * push(peer) / (ADJUSTMENT_BOUND * len(VECTORS)) for peer in analysts(request)
    ]  # by their number, not their trust: a report with little trust must weigh less
    return math.fsum(shares) / len(shares) if shares else 0.0


def weighed(request: Request) -> Words:
    """Return the trust in each analyst, and what it asks for."""
    return [(trust(peer), peer.adjustments) for peer in analysts(request)]


def mean_adjustment(words: Words, vector: str) -> float | None:
    """Return the mean adjustment of a vector by trust; None when nobody scored it."""
    moved = [share * value for share, moves in words if (value := moves.get(vector)) is not None]
    return sum(moved) / len(moved) if moved else None


def sided(request: Request) -> list[int]:
    """Return the side, +1 or -1, of each analyst that takes one."""
    return [side for peer in analysts(request) if (side := side_of(push(peer)))]


def lessons(request: Request) -> float | None:
    """Return which way similar trades speak, in [-1, +1]; None where too few are known.

    A mean result of 1 R speaks for a side as strongly as anything can.
    """
    mean = number(request.features, LESSON_MEAN)
    if mean is None or "lessons.side" not in request.features:
        return None
    way = 1 if word(request.features, "lessons.side") == "LONG" else -1
    return way * max(-1.0, min(1.0, mean))
