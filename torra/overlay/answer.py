"""What a host gets back: the dict of score_chart, and with `deliberate` all that stands behind it.

Whatever went wrong, the dict is that of the given L1, and its bias says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import agent_framework
from agents.contracts import VECTORS, SourceType
from agents.debate.deliberation import with_bias

NO_RECORD: Final[Mapping[str, Any]] = MappingProxyType({})

L1_NOTE: Final = "the deterministic score"


@dataclass(frozen=True, slots=True)
class Hosted:
    """The answer to one question.

    `chart` is the dict that `score_chart()` returned, before any blend; `blended` is that blend,
    0.80 L1 + 0.20 agents, for a host that does not blend itself. `veto` and `multiplier` are the
    gate's word on an opening, which the host may follow; `veto_sides` are the sides, BUY or SELL,
    on which alone openings are vetoed, and `reasons` its codes. `debated`: agents were heard, or
    all of them abstained, and the answer is final; `again`: it was given before, and cost nothing.
    `revision` counts what was stored of the key; 0: nothing. `why` is "" or why L1 stands alone;
    `notes` says what of the question was left out. `record` is the tick's, as the pages show it.
    """

    key: str
    chart: dict[str, Any]
    l1: Mapping[str, float]
    veto: bool = False
    multiplier: float = 1.0
    reasons: tuple[str, ...] = ()
    debated: bool = False
    again: bool = False
    revision: int = 0
    why: str = ""
    notes: tuple[str, ...] = ()
    cost_usd: float = 0.0
    record: Mapping[str, Any] = field(default_factory=lambda: NO_RECORD)
    veto_sides: tuple[str, ...] = ()

    @property
    def blended(self) -> dict[str, Any]:
        """The blend of L1 and the chart, each score within 0.06 of L1."""
        return agent_framework.blend(self.l1, self.chart)


def plain(key: str, l1: Mapping[str, float], why: str, notes: tuple[str, ...] = ()) -> Hosted:
    """Return L1 as it is, with the reason why nothing was added."""
    entries = {vector: {"score": l1[vector], "note": L1_NOTE} for vector in VECTORS}
    chart = with_bias(entries, f"{SourceType.L1_ONLY}: {why}")
    return Hosted(key, chart, l1, why=why, notes=notes)
