"""The news analyst: reads what the headlines mean for all four scores, and gives six ordinals.

It alone reads text from strangers, inside a fence. Other agents see its numbers, ordinals and item
ids, never a word. It abstains when there is no headline, and says why. It knows nothing of the
other agents.
"""

from .contracts import EVENT_CLASSES, VECTORS, Role
from .evidence import FUNDAMENTALS, MARKET_EVIDENCE

NEWS = (
    *(f"news.{name}" for name in ("items", "score", "item.", "item_score.", "item_age_h.")),
    "news.item_event.",
    *(f"news.{name}_" for name in EVENT_CLASSES),
)
"""Every number of the news but an item's weight, which says no more than its age does."""

ROLE = Role(
    id="news",
    title="news analyst",
    kind="analyst",
    task="""
        Read the headlines by class of event: what each means for this symbol, which way,
        how strongly and how fresh it is. Their scores come from a word list: check them
        against the words, and cite an item by its score. The ordinals judge the news as a
        whole; risk_profile_change is positive where risk grows.
    """,
    shape="news",
    focus=dict.fromkeys(VECTORS, "secondary"),
    needs=("news.item", "news.score"),
    evidence=("scores.", *NEWS, "events.", *FUNDAMENTALS, *MARKET_EVIDENCE),
    ahead=("macro.",),
)
