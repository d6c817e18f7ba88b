"""Rows that several sections of a tick's page share."""

from __future__ import annotations

from typing import TypedDict

from torra.dashboard.record.thesis import ManagerVerdict
from torra.exhibits.figures import BarSpan, Cell
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


class RulingShown(TypedDict):
    """A ruling of the gate; `note` is its detail, or why there is none."""

    name: str
    multiplier: str
    veto: str
    reasons: list[str]
    note: str


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


class Vote(TypedDict):
    """An adjustment or a score as it was given; `meant` is its value before clamping."""

    name: str
    value: Cell
    meant: str


class PointLine(TypedDict):
    """A point of an agent in words, and the name of the feature that it cites."""

    says: str
    why: str
    name: str


class PointList(TypedDict):
    """Points of one kind under their heading."""

    name: str
    points: list[PointLine]


class TranscriptVoice(TypedDict):
    """What one agent said, or why it said nothing."""

    name: str
    title: str
    who: str
    mark: Badge
    anchor: str
    confidence: str
    trust: str
    adjustments: list[Cell]
    reasoning: str
    key_points: list[str]
    points: list[PointList]
    flags: list[str]
    looks: list[str]
    ordinals: list[Ordinal]
    falsifiers: list[str]
    why_silent: str
    ruling: RulingShown | None
    judged: ManagerVerdict | None
    horizon: str
    risks: list[str]
    finds: list[tuple[str, str]]
    counts: str
    declined: bool
    ms: str
    cost: str
    tries: int


class TranscriptEntry(TranscriptVoice):
    """A voice in its stage, with its citations."""

    round: int
    phase: str
    replaced: bool
    evidence: list[Chip]
    stance: Stance | None
    votes: list[Vote]
    scored: bool


class StageShown(TypedDict):
    """A stage of a debate with its entries."""

    name: str
    gate: bool
    title: str
    note: str
    ms: str
    status: str
    meaning: str
    entries: list[TranscriptEntry]
