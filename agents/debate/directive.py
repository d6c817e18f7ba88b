"""The trust directive and the risk budget: what the regime makes of a swarm.

    weight of an expert   HIERARCHY by the length of the bars x TRUST by the regime, not below
                          TRUST_FLOOR; 1 for all where trust is flat or the regime is not known
    first                 the reader's choice has 1, the others FIRST_OTHERS of what they had
    budget                REGIME_BUDGET of the code's regime, of the reader's too where it names
                          another one, and the reader's own share: the lowest of them

The code's word stays: a reader can lower the budget and have one expert go first, nothing else. The
weights re-weigh what was said, so that they may move a score either way, inside what the experts
asked for. Pure functions; nothing raises. (docs/agents.md, "The swarm".)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agent_config import FIRST_OTHERS, REGIME_BUDGET, TRUST_FLOOR, tabled_trust

from ..contracts import SCORE_DECIMALS, AgentReport, Feature

REGIME: Final = "market.regime"


@dataclass(frozen=True, slots=True)
class Directive:
    """Whose word counts how much, and the share of an opening's size that the regime leaves.

    `regime` is the code's word, `reader` the reader's, "" where it gave none; `trusted` holds a
    weight in (0, 1] by expert, of none where all count alike. `budget` lies in [0, 1].
    """

    regime: str = ""
    reader: str = ""
    first: str = ""
    budget: float = 1.0
    trusted: Mapping[str, float] = field(default_factory=dict)

    @property
    def disputed(self) -> bool:
        """Whether the reader names another regime than the code."""
        return bool(self.reader) and self.reader != self.regime

    @property
    def note(self) -> str:
        """The regime in a word, with the reader's where that is another one."""
        return f"{self.regime}_disputed_{self.reader}" if self.disputed else self.regime

    def as_json(self) -> dict[str, Any]:
        """Return the regime as JSON values."""
        return {
            "code": self.regime,
            "reader": self.reader,
            "budget": self.budget,
            "first": self.first,
            "disputed": self.disputed,
        }


def directive(
    features: Mapping[str, Feature], timeframe: str, told: AgentReport | None, trust: str
) -> Directive:
    """Return the directive of one tick; `told` is the reader's report, None where there is none.

    `trust` is the setting of that name (agent_config.AgentSettings).
    """
    known = features.get(REGIME)
    regime = str(known.value) if known is not None and known.value is not None else ""
    reads = told if told is not None and not told.abstained else None
    first = reads.first if reads else ""
    shares = [REGIME_BUDGET.get(regime, 1.0)]
    if reads is not None:
        shares += [
            REGIME_BUDGET.get(reads.regime, 1.0),
            1.0 if reads.budget is None else reads.budget,
        ]
    return Directive(
        regime,
        reads.regime if reads else "",
        first,
        round(min(shares), SCORE_DECIMALS),
        {} if trust == "flat" else put_first(tabled_trust(timeframe, regime), first),
    )


def put_first(weights: Mapping[str, float], first: str) -> dict[str, float]:
    """Return weights with one expert going first, as they are where it has none."""
    if first not in weights:
        return dict(weights)
    return {
        name: 1.0
        if name == first
        else round(max(TRUST_FLOOR, weight * FIRST_OTHERS), SCORE_DECIMALS)
        for name, weight in weights.items()
    }
