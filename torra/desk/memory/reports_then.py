"""Reads the calls of a swarm's seats out of their reports, given just now or stored.

The counterpart of torra.desk.journal_ticks for torra.evaluation.standing. An agent that this
version does not know made no call, nor did those of damaged reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import fsum
from typing import Final

from pydantic import ConfigDict, TypeAdapter

from agents.contracts import BIASES, VECTORS, WINNERS, AgentReport
from agents.evidence import trust
from agents.registry import AGENTS
from torra.evaluation.standing.past_calls import SEATS, SeatCall

REPORTS: Final = TypeAdapter(
    tuple[AgentReport, ...], config=ConfigDict(strict=True, allow_inf_nan=False)
)

DECIMALS: Final = 9


def calls_of(reports: Iterable[AgentReport]) -> tuple[SeatCall, ...]:
    """Return the calls of the seats of a swarm among the reports of a tick."""
    return tuple(_calls(reports))


def stored_reports(text: str) -> tuple[AgentReport, ...]:
    """Return the reports that a tick has stored as JSON; none where one of them is damaged."""
    try:
        return REPORTS.validate_json(text)
    except ValueError:
        return ()


def chance_of(reports: Iterable[AgentReport], side: str) -> float | None:
    """Return the chance that the judge gave a trade of a side, LONG or SHORT; None for none.

    A judge that took the other side, or none, gave this trade no chance.
    """
    for report in reports:
        if report.win_share is not None and report.winner == side:
            return report.win_share
    return None


def _calls(reports: Iterable[AgentReport]) -> Iterator[SeatCall]:
    for report in reports:
        if report.agent_id not in SEATS or report.abstained or report.agent_id not in AGENTS:
            continue
        lean = (
            WINNERS[report.winner]
            if report.winner
            else _stance(report) or BIASES.get(report.bias, 0)
        )
        side = (lean > 0) - (lean < 0)
        if side:
            yield SeatCall(report.agent_id, side, report.horizon)


def _stance(report: AgentReport) -> float:
    """Return which way an opinion's numbers lean, by focus and times its trust."""
    from torra.desk.journal_ticks import focus_of  # noqa: PLC0415 - a swarm's tick alone asks

    words = (
        weight * (report.adjustments.get(vector) or 0.0)
        for vector, weight in zip(VECTORS, focus_of(report.agent_id), strict=True)
    )
    return round(trust(report) * fsum(words), DECIMALS)
