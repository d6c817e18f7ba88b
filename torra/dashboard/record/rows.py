"""Rows that several sections of a tick's page share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from agents.contracts import AgentReport
from torra.exhibits.figures import BarSpan, Cell
from torra.tick.tick_record import StoredCall
from torra.words.badge import Badge


class Stance(TypedDict):
    """Which way an agent sees the market, and whether that is against the desk's side."""

    title: str
    value: Cell
    bar: BarSpan
    side: Badge
    against: bool


class Ordinal(TypedDict):
    """A whole number of the news agent, with its range."""

    name: str
    value: Cell
    range: str


class Chip(TypedDict):
    """A citation with its anchor and its judgement; `there` is the value of the evidence."""

    key: str
    id: str
    anchor: str
    value: str
    state: str
    glyph: str
    words: str
    there: str


@dataclass(frozen=True, slots=True)
class Voice:
    """What one agent said, or why it said nothing: its report and its calls, as stored.

    `text` is what it says in a sentence, `missing` why it has no adjustment; `trust` is None where
    none weighs its word, `confidence` "" where it counts for nothing. In its stage it has its votes
    by vector and, in `meant`, those that were clamped as the model gave them.
    """

    name: str
    report: AgentReport | None
    calls: Sequence[StoredCall]
    mark: Badge
    why_silent: str
    text: str
    trust: float | None
    confidence: str
    missing: str
    anchor: str = ""
    phase: str = ""
    replaced: bool = False
    evidence: Sequence[Chip] = ()
    stance: Stance | None = None
    votes: Mapping[str, float] = field(default_factory=dict)
    meant: Mapping[str, float] = field(default_factory=dict)

    @property
    def said(self) -> AgentReport:
        """Its report; an empty one where it made none."""
        return self.report or AgentReport(self.name)
