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
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from agents.contracts import VECTORS, AgentReport, DebateContext, Feature, Role
from agents.registry import AGENTS, SCORER
from scoring_rubric import NUMBERS_ONLY, visible
from torra.dashboard.record import citations
from torra.dashboard.record.transcript import Transcript
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
    """The inputs of an agent; `calls` have their number among those of the tick, from 1."""

    name: str
    shown: Mapping[str, Feature]
    others: list[str]
    calls: list[tuple[int, StoredCall]]
    picture: bool

    @property
    def role(self) -> Role | None:
        """Its role; None of one that a host brought."""
        return citations.role_of(self.name)

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
        return ", ".join(f"{figures.sanitize(name, 30)} {many}" for name, many in counts.items())


def by_agent(record: TickRecord, debate: Transcript, quoted: Sequence[Quoted]) -> list[Inputs]:
    """Return the inputs of each agent of the debate, in the order in which they were asked.

    `quoted` are the rows of `quotations`.
    """
    rows = []
    for name in dict.fromkeys(entry.name for stage in debate.stages for entry in stage.entries):
        own = [row for row in enumerate(record.made_calls, 1) if row[1].role_id == name]
        others = list(dict.fromkeys(row.who for row in quoted if name in row.to))
        pictured = bool(picture(record) and name in PICTURED and own)
        rows.append(Inputs(name, debate.shown.get(name, {}), others, own, pictured))
    return rows


def picture(record: TickRecord) -> str:
    """Return the hash of the chart that was shown; empty where there was none."""
    name = record.picture or ""
    return name if HASH.fullmatch(name) else ""


def quotations(record: TickRecord, debate: Transcript) -> list[Quoted]:
    """Return each report as other agents were shown it, and whom to: numbers, and cut prose."""
    spoke = {entry.name: stage.record.name for stage in debate.stages for entry in stage.entries}
    called = {entry.name for stage in debate.stages for entry in stage.entries if entry.calls}
    rows = []
    for report in record.deliberation.reports:
        readable = "" if is_gate(report) else spoke.get(report.agent_id, "")
        to = [name for name, stage in spoke.items() if readable in READS.get(stage, ())]
        rows.append(_quoted(report, debate, [name for name in to if name in called]))
    for report in record.deliberation.earlier:
        others = [n for n, name in spoke.items() if name == "research" and n != report.agent_id]
        rows.append(_quoted(report, debate, others, earlier=True))
    return [row for row in rows if row.to]


def _quoted(
    report: AgentReport, debate: Transcript, to: list[str], *, earlier: bool = False
) -> Quoted:
    """Return a report as the others are shown it."""
    whole = AgentReport(
        report.agent_id,
        report.adjustments,
        report.confidence,
        figures.sanitize(report.main_claim),
        report.key_points or tuple(figures.sanitize(row.says, 300) for row in report.points_for),
        report.evidence,
        abstained=report.abstained,
    )
    context = DebateContext("", "", "", "", {}, features=debate.features, nonce=citations.NONCE)
    shown = visible(whole, context)
    numbers = [
        f"{figures.title(v).lower()} {figures.format_signed(value, 2)}"
        for v in VECTORS
        if (value := shown.adjustments.get(v)) is not None
    ]
    prose = [figures.sanitize(text, 300) for text in (shown.reasoning, *shown.key_points) if text]
    return Quoted(
        figures.title(report.agent_id),
        "abstained" if report.abstained else ", ".join(numbers) or "no score",
        report.confidence,
        "" if report.abstained else " · ".join(prose),
        earlier,
        to,
    )
