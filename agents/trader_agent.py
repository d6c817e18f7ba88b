"""The trader: is asked alone, after the debate, and only where an opening would stand.

It writes the thesis of that opening: why it is made, what would end it, what may go wrong, for how
many bars it holds. It may decline the opening on the side that it was asked about, with a reason.
Direction, prices and size are not its business: no number of its answer is ever used.
"""

from __future__ import annotations

from typing import Final

from agent_config import TRADER_ID
from scoring_rubric import build_interpretive_prompt

from .contracts import AgentReport, Ask, DebateContext, Role
from .evidence import CASE_EVIDENCE

ROLE: Final = Role(
    id=TRADER_ID,
    title="trader",
    kind="trader",
    tier="deep",
    focus={},
    needs=(),
    evidence=(*CASE_EVIDENCE, "events.", "order."),
)


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the thesis; raises ModelUnavailable when no model answers."""
    return ask(build_interpretive_prompt(context, ROLE))
