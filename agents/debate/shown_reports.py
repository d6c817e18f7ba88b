"""The reports of others as a request holds them: with their prose, or bare for who reads none.

A bare report is made once for all agents of a desk that have the same evidence. What is shown of a
report is the rubric's (scoring_rubric.visible). Nothing raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from scoring_rubric import WHOLE, visible

from ..contracts import AgentReport, DebateContext, Feature, Shape


def with_prose(context: DebateContext, shape: Shape) -> tuple[AgentReport, ...]:
    """Return the reports of a context as a model is shown them that replies in a shape."""
    whole = WHOLE.get(shape, ())
    return tuple(
        [visible(report, context, whole=report.agent_id in whole) for report in context.reports]
    )


class ShownReports:
    """The bare reports of one deliberation."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int, bool], _Made] = {}

    def of(self, context: DebateContext, shape: Shape) -> tuple[AgentReport, ...]:
        """Return the reports of a context without prose: their nonce is of no matter then."""
        whole = WHOLE.get(shape, ())
        return tuple(
            [self._one(report, context, report.agent_id in whole) for report in context.reports]
        )

    def _one(self, report: AgentReport, context: DebateContext, whole: bool) -> AgentReport:
        key = id(report), id(context.features), whole
        made = self._made.get(key)
        if made is None:
            bare = visible(report, context, prose=False, whole=whole)
            made = self._made[key] = _Made(report, context.features, bare)
        return made.bare


class _Made(NamedTuple):
    """A bare report beside what it was made of: while that is held, no other has its id."""

    report: AgentReport
    features: Mapping[str, Feature]
    bare: AgentReport
