"""The record of one debate, and its scores in the shape of score_chart.

Values only: nothing here asks, waits or fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import fsum
from typing import Any, Final

from ..contracts import (
    SCORE_DECIMALS,
    UNHEARD,
    VECTORS,
    AgentReport,
    DebateContext,
    GateRuling,
    SourceType,
)
from ..texts.fence import clean
from .calls import Call
from .replies import REASONING_KEPT
from .scoring import NEUTRAL, Panel, add_adjustments
from .swarm import Swarm

OUTAGE: Final = "outage"
"""Flag of a tick without an opinion of which an agent failed."""

ABSTAINED: Final = "all_abstained"
"""Flag of a tick on which every opinion that was asked abstained."""

EVERY: Final = "rebuttals"
"""The last field of a report that every kind of agent has; what follows is written if it is set."""


@dataclass(frozen=True, slots=True)
class Consulted:
    """What one agent was asked alone, after the debate, and what it said.

    `side` is the opening that it was asked about, BUY or SELL, `tier` the models that were asked,
    `conviction` the share of the opening's size that the panel left. `report` is None where it
    failed, `failure` why then.
    """

    agent: str
    side: str
    tier: str
    conviction: float
    report: AgentReport | None = None
    failure: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "agent": self.agent,
            "side": self.side,
            "tier": self.tier,
            "conviction": self.conviction,
            "report": None if self.report is None else _report_json(self.report),
            "failure": self.failure,
        }


@dataclass(frozen=True, slots=True)
class Deliberation:
    """Everything that one debate said and cost.

    `scores` (gated) and `ungated` (multiplier 1) have the shape of score_chart; `adjustments`
    (gated), `analyst_avg` and `debate` hold a number per vector. `reports` are those that count,
    `earlier` the cases that a later round replaced, `failures` why an agent gave no report,
    `not_asked` why one was left out that could have been asked. `panel` is how far the desk agrees.
    `consulted` is what the trader was asked and said, None where it was not asked. `swarm` is what
    regime, board and judge came to, None at a desk without a risk officer.
    """

    source_type: SourceType
    scores: Mapping[str, Mapping[str, Any]]
    ungated: Mapping[str, Mapping[str, Any]]
    adjustments: Mapping[str, float]
    analyst_avg: Mapping[str, float]
    debate: Mapping[str, float]
    ruling: GateRuling
    rule_ruling: GateRuling
    reports: tuple[AgentReport, ...] = ()
    earlier: tuple[AgentReport, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    calls: tuple[Call, ...] = ()
    stages: tuple[dict[str, Any], ...] = ()
    flags: tuple[str, ...] = ()
    cost_usd: float = 0.0
    elapsed_ms: float = 0.0
    not_asked: Mapping[str, str] = field(default_factory=dict)
    panel: Panel = NEUTRAL
    consulted: Consulted | None = None
    swarm: Swarm | None = None

    @property
    def heard(self) -> bool:
        """Whether an opinion was heard."""
        return self.source_type not in UNHEARD

    @property
    def outage(self) -> bool:
        """Whether no opinion was heard because somebody failed, or could not be asked."""
        return OUTAGE in self.flags

    @property
    def veto(self) -> bool:
        """Whether no opening may be made on these scores."""
        return self.ruling.veto

    def vetoes(self, side: str) -> bool:
        """Return whether no opening BUY or SELL may be made on these scores."""
        return self.ruling.vetoes(side)

    def size_share(self, side: str) -> float:
        """Return the share, 0 to 1, of an opening's size that is left: most x cut x conviction.

        `most` is the rules' multiplier, with the regime's budget among the factors of the storm
        where a risk officer sits; `cut` what the gate's model left of the rules' multiplier. So
        without an officer most x cut is the multiplier. (docs/debate.md, "Size".)
        """
        gate, rules = self.ruling.multiplier, self.rule_ruling.multiplier
        if self.swarm is not None:
            gate = self.swarm.most * gate / rules if gate < rules else self.swarm.most
        return gate * self.conviction_for(side)

    @property
    def declined(self) -> str:
        """The side BUY or SELL of the opening that the trader declined, "" where it did not."""
        asked = self.consulted
        return asked.side if asked and asked.report and asked.report.declined else ""

    def conviction_for(self, side: str) -> float:
        """Return the share, 0 to 1, that conviction leaves of an opening BUY or SELL.

        In an outage it is that of the outage; 1 where nobody was to be asked.
        """
        return self.panel.agreement(side).conviction

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON values, for the `agent_deliberation` column."""
        return {
            "source_type": str(self.source_type),
            "analyst_avg": dict(self.analyst_avg),
            "debate": dict(self.debate),
            "adjustments": dict(self.adjustments),
            "ruling": _ruling_json(self.ruling),
            "rule_ruling": _ruling_json(self.rule_ruling),
            "reports": [_report_json(report) for report in self.reports],
            "earlier": [_report_json(report) for report in self.earlier],
            "failures": dict(self.failures),
            "unasked": dict(self.not_asked),
            "panel": self.panel.as_json(),
            "calls": [call.as_json() for call in self.calls],
            "stages": [dict(stage) for stage in self.stages],
            "flags": list(self.flags),
            "cost_usd": self.cost_usd,
            "elapsed_ms": self.elapsed_ms,
            **({"consulted": self.consulted.as_json()} if self.consulted else {}),
            **({"swarm": self.swarm.as_json()} if self.swarm else {}),
        }


def score_chart_shape(
    context: DebateContext, adjustments: Mapping[str, float], source: SourceType, summary: str
) -> dict[str, dict[str, Any]]:
    """Return L1 plus adjustments as a score_chart dict, composite_bias included."""
    scores = add_adjustments(context.scores, adjustments)
    chart = {}
    for vector in VECTORS:
        note = context.notes.get(vector, "")
        if adjustments[vector]:
            note += f"{note and '; '}agents {adjustments[vector]:+.3f}"
        chart[vector] = {"score": scores[vector], "note": note}
    return with_bias(chart, f"{source}: {summary}")


def with_bias(chart: dict[str, dict[str, Any]], note: str) -> dict[str, dict[str, Any]]:
    """Return the chart with composite_bias, the plain mean of its four scores."""
    mean = fsum([chart[vector]["score"] for vector in VECTORS]) / len(VECTORS)
    return {**chart, "composite_bias": {"score": round(mean, SCORE_DECIMALS), "note": note}}


def _ruling_json(ruling: GateRuling) -> dict[str, Any]:
    return {
        "multiplier": ruling.multiplier,
        "veto": ruling.veto,
        "reasons": list(ruling.reasons),
        "detail": ruling.detail,
        **({"veto_sides": list(ruling.veto_sides)} if ruling.veto_sides else {}),
    }


def _report_json(report: AgentReport) -> dict[str, Any]:
    """Return a report as JSON values."""
    row: dict[str, Any] = {}
    for part in fields(AgentReport):
        value = getattr(report, part.name)
        if EVERY not in row or value or type(value) is float:
            row[part.name] = _plain(value)
    row["reasoning"] = report.reasoning or _paragraph(report)
    return row


def _plain(value: Any) -> Any:
    if isinstance(value, GateRuling):
        return _ruling_json(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "_asdict"):
        return value._asdict()
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _paragraph(report: AgentReport) -> str:
    """Return claim and points as one paragraph, "" of who claims nothing; it can forge no fence."""
    parts = [report.claim]
    for led, points in (("", report.points_for), ("Against it: ", report.points_against)):
        parts += [f"{led}{point.says}{point.why and ', '}{point.why}" for point in points]
    stripped = (part.rstrip(" .") for part in parts)
    return clean(" ".join(f"{part}." for part in stripped if part), REASONING_KEPT)
