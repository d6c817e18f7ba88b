"""Rows that several sections of a tick's page share."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

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


Tried = TypedDict("Tried", {"try": str})
"""Round and attempt of a call; both this key and the next are words of Python."""

Repeating = TypedDict("Repeating", {"as": str})
"""Which earlier call has what this one repeats."""


class TranscriptCall(Tried, Repeating):
    """A request with its answer; `added` and `as` tell what it repeats, `cut` that texts are."""

    name: str
    role: str
    stage: str
    status: str
    good: bool
    detail: str
    model: str
    vendor: str
    stop: str
    ms: str
    tokens: str
    cached: str
    cost: str
    system: str
    user: str
    reply: str
    hash: str
    added: str
    cut: bool


class TranscriptPicture(NamedTuple):
    """The chart that was shown, by its hash, and whom to."""

    hash: str
    short: str
    to: list[str]
