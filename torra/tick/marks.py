"""The words by which a record of a tick is known: flags, reasons of what it did, its orders.

They stand apart from `tick_record`, whose models take time to make: who writes a record, or asks a
stored one for a flag, needs the words alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GATE: Final = "risk_gate"

SHADOW: Final = "shadow"
"""Flag of a tick whose agents were asked and recorded, and not counted."""

DEMO_SECONDS: Final = 120.0
"""Real seconds that a proposal of the demo waits: its bars last seconds, too few for a person."""

PROPOSED: Final = "AWAITS_APPROVAL"
"""Reason of a HOLD whose signals wait for a person."""

EXECUTION_OFF: Final = "EXECUTION_OFF"
"""Reason of a HOLD that would have sent something, had the profile let it."""

HOSTED: Final = "HOSTED"
"""Reason of a HOLD of a hosted stream: another program's scorer decides, and nothing is sent."""

LEAN_AGAINST: Final = "AGENTS_LEAN_AGAINST"
"""Flag of a tick that gives BUY or SELL while the desk's own words push the other way."""

UNFORESEEN: Final = "unforeseen"
"""Flag of an opening that the trader was not asked about, because it was not foreseen."""

INVENTED: Final = "invented"
"""What stands behind an invented number; by the same name a record says that it has some."""

INVENTED_IDS: Final = (
    "spread.", "micro.", "flow.", "liquidity.delta20", "liquidity.divergence",
    "macro.", "positioning.", "companion.", "news.", "sentiment.news",
)  # fmt: skip
"""How the ids of the features begin that are invented on a tick of the demo."""


@dataclass(frozen=True, slots=True)
class OrderPhrase:
    """An order that a tick wrote, or proposed to a person."""

    kind: str
    side: str
    lots: float
