"""The inputs of each agent in one sitting, and the calls by which it was asked.

For each agent: the features that its prompt listed; what it saw of other agents (always their
numbers, their prose only fenced and cut, and never a word of the news agent's); whether it saw
headlines, memory or a picture; and its calls. A call's texts are a page of its own, for as long as
they are kept. The overlay's own rules of what may enter a prompt (scoring_rubric) decide what is
listed. Pure functions; nothing raises.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from agents.contracts import VECTORS, AgentReport, DebateContext, Feature, Role
from agents.registry import AGENTS, SCORER
from scoring_rubric import NUMBERS_ONLY, visible
from torra.dashboard.record import citations
from torra.dashboard.record.transcript import DebateStage
from torra.exhibits import figures
from torra.tick.tick_record import StoredCall, TickRecord, is_gate

PICTURED: Final = {seat.role.id for seat in AGENTS.values() if seat.role.picture} | {SCORER.id}
"""Who is shown the chart."""

HASH: Final = re.compile(r"[0-9a-f]{64}")
READS: Final = {
    "research": ("analysts",),
    "judgement": ("experts",),
    "gate": ("analysts", "research", "experts", "judgement"),
    "decision": ("analysts", "research"),
    "thesis": ("analysts", "research", "decision"),
}
"""Of which stages each stage is shown the reports."""


class Quoted(NamedTuple):
    """A report as other agents were shown it, and whom to; `earlier` of a round before."""

    who: str
    numbers: str
    confidence: str | None
    prose: str
    earlier: bool
    to: list[str]


class Inputs(NamedTuple):
    """The inputs of an agent; `role` is None of one that a host brought.

    `calls` have their number among those of the tick, from 1.
    """

    name: str
    role: Role | None
    shown: Mapping[str, Feature]
    others: list[str]
    calls: list[tuple[int, StoredCall]]
    picture: bool

    @property
    def memory(self) -> bool:
        """Whether it was shown the memory."""
        return self.role is SCORER or (self.role is not None and "memory." in self.role.evidence)

    @property
    def news(self) -> bool:
        """Whether it was shown headlines."""
        return self.name in NUMBERS_ONLY

    @property
    def blocks(self) -> str:
        """How many features it was shown of each block: technical 47, scores 4."""
        counts = Counter(feature.block for feature in self.shown.values())
        return ", ".join(f"{figures.sanitize(one, 30)} {count}" for one, count in counts.items())


def by_agent(
    record: TickRecord,
    stages: Sequence[DebateStage],
    quoted: Sequence[Quoted],
    shown: Mapping[str, Mapping[str, Feature]],
) -> list[Inputs]:
    """Return the inputs of each agent of the transcript, in the order in which they were asked.

    `quoted` are the rows of `quotations`, `shown` the features that each agent's prompt lists.
    """
    rows = []
    for name in dict.fromkeys(entry.name for stage in stages for entry in stage.entries):
        own = [row for row in enumerate(record.made_calls, 1) if row[1].role_id == name]
        others = list(dict.fromkeys(row.who for row in quoted if name in row.to))
        seen = bool(picture(record) and name in PICTURED and own)
        features = shown.get(name, {})
        rows.append(Inputs(name, citations.role_of(name), features, others, own, seen))
    return rows


def picture(record: TickRecord) -> str:
    """Return the hash of the chart that was shown; empty where there was none."""
    name = record.picture or ""
    return name if HASH.fullmatch(name) else ""


def quotations(
    record: TickRecord, stages: Sequence[DebateStage], features: Mapping[str, Feature]
) -> list[Quoted]:
    """Return each report as other agents were shown it, and whom to: numbers, and cut prose."""
    spoke = {e.name: stage.record.name for stage in stages for e in stage.entries}
    asked = {e.name for stage in stages for e in stage.entries if e.calls}
    rows = [
        _seen(told, features, _readers(told.agent_id, spoke, asked))
        for told in record.deliberation.reports
        if not is_gate(told)
    ]
    for told in record.deliberation.earlier:
        others = [n for n, name in spoke.items() if name == "research" and n != told.agent_id]
        rows.append(_seen(told, features, others, earlier=True))
    return [row for row in rows if row.to]


def _readers(author: str, spoke: Mapping[str, str], asked: Collection[str]) -> list[str]:
    """Return the agents that were shown an agent's final report."""
    own = spoke.get(author, "")
    return [name for name, stage in spoke.items() if name in asked and own in READS.get(stage, ())]


def _seen(
    told: AgentReport, features: Mapping[str, Feature], to: list[str], *, earlier: bool = False
) -> Quoted:
    """Return a report as the others are shown it."""
    whole = AgentReport(
        told.agent_id,
        told.adjustments,
        told.confidence,
        figures.sanitize(told.main_claim),
        told.key_points or tuple(figures.sanitize(point.says, 300) for point in told.points_for),
        told.evidence,
        abstained=told.abstained,
    )
    context = DebateContext("", "", "", "", {}, features=features, nonce=citations.NONCE)
    shown = visible(whole, context)
    numbers = [
        f"{figures.title(v).lower()} {figures.format_signed(value, 2)}"
        for v in VECTORS
        if (value := shown.adjustments.get(v)) is not None
    ]
    prose = [figures.sanitize(text, 300) for text in (shown.reasoning, *shown.key_points) if text]
    return Quoted(
        figures.title(told.agent_id),
        "abstained" if told.abstained else ", ".join(numbers) or "no score",
        told.confidence,
        "" if told.abstained else " · ".join(prose),
        earlier,
        to,
    )
