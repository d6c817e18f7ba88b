"""Cells that lists share: a state and an action, as finished text. Pure functions."""

from __future__ import annotations

from torra.dashboard.cells import tick_words
from torra.dashboard.record.shown import Decision
from torra.exhibits import figures
from torra.exhibits.figures import Cell

Cells = dict[str, Cell]


def words(text: str, tone: str = "", title: str = "") -> Cell:
    """Return a cell of words."""
    return {"text": text, "tone": tone, "title": title}


def state_cell(name: str | None) -> Cell:
    """Return a state with its glyph and tone."""
    shown = figures.mark(name)
    return words(shown.text.strip(), shown.tone)


def action_cell(tick: Decision) -> Cell:
    """Return the action of a tick; one that was proposed to a person is no HOLD."""
    shown = tick_words.action(tick)
    return words(shown.text.strip(), shown.tone, shown.meaning)
