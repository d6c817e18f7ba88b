"""The news analyst: reads what the headlines mean for all four scores, and gives six ordinals.

It alone reads text from strangers, inside a fence. Other agents see its numbers, ordinals and item
ids, never a word. It abstains when there is no headline, and says why. It knows nothing of the
other agents.
"""

from __future__ import annotations

from typing import Final

from scoring_rubric import build_interpretive_prompt

from .contracts import EVENT_CLASSES, VECTORS, AgentReport, Ask, DebateContext, Role
from .evidence import FUNDAMENTALS, MARKET_EVIDENCE, missing

NEWS: Final = (
    *(f"news.{name}" for name in ("items", "score", "item.", "item_score.", "item_age_h.")),
    "news.item_event.",
    *(f"news.{name}_" for name in EVENT_CLASSES),
)
"""Every number of the news but an item's weight, which says no more than its age does."""

ROLE: Final = Role(
    id="news",
    title="news analyst",
    kind="analyst",
    tier="quick",
    focus=dict.fromkeys(VECTORS, "secondary"),
    needs=("news.item", "news.score"),
    evidence=("scores.", *NEWS, "events.", *FUNDAMENTALS, *MARKET_EVIDENCE),
    ahead=("macro.",),
)


def analyze(context: DebateContext, ask: Ask) -> AgentReport:
    """Return the reading of the news; raises ModelUnavailable when no model answers."""
    if lacking := missing(ROLE, context):
        return AgentReport.abstain(ROLE.id, lacking)
    return ask(build_interpretive_prompt(context, ROLE))
