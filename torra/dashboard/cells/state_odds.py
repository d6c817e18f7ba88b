"""The Markov table of a symbol page: how often each state has followed the present one.

`torra.verdict.sentiment_rules.markov` counts the moves between neighbouring ticks. This module
writes out its counts and probabilities, what the smoothing adds to them, and a warning while fewer
than FEW moves were counted. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from torra import clock
from torra.dashboard.cells.common import Cells, showing, words
from torra.dashboard.view.desk_values import StateHistory
from torra.exhibits import figures
from torra.exhibits.figures import STATES, Cell
from torra.verdict.sentiment_rules import STATES as COUNTED

FEW: Final = 20
"""Below this number of moves the smoothing weighs as much as the counts."""


def odds_cells(known: StateHistory, timeframe: str) -> Cells:
    """Return the cells markov.now, .told, .few, .next.STATE, .bar.STATE, .count.STATE, .moves.*."""
    state, counts = known.view.state, _counts(known)
    row = counts.get(str(state), {})
    moves = sum(row.values())
    cells: Cells = {
        "markov.now": _now(known, timeframe),
        "markov.told": words(_told(known, row)),
        "markov.exact": words(
            f"Transition probabilities with add-{figures.format_any(known.smoothing)} smoothing. "
            "Only moves between neighbouring ticks of this stream are counted."
        ),
        "markov.few": words(
            f"Only {moves} moves are counted from here: the percentages say little yet.", "warn"
        )
        | showing(state and moves < FEW),
    }
    for name in STATES:
        chance = known.view.next_probabilities.get(name) if state else None
        told = "" if chance else "no tick yet"
        cells[f"markov.next.{name}"] = words(_percent(chance), title=told)
        cells[f"markov.bar.{name}"] = _bar(chance)
        cells[f"markov.count.{name}"] = words(figures.plain(row.get(name), 0))
        for after in STATES:
            told = figures.plain(counts.get(name, {}).get(after), 0)
            cells[f"markov.moves.{name}.{after}"] = words(told, "note" if name == state else "")
    return cells


def _counts(known: StateHistory) -> dict[str, dict[str, int]]:
    # no table is a stream without ticks; a table of another size is a fault, and zip() raises
    return {
        # the counts are in the brain's order of states, which is not the page's
        name: dict(zip(COUNTED, row, strict=True))
        for name, row in zip(COUNTED, known.view.counts, strict=bool(known.view.counts))
    }


def _now(known: StateHistory, timeframe: str) -> Cell:
    state = known.view.state
    if not state:
        return words(figures.DASH, title="no tick yet")
    shown = figures.mark(state)
    ticks = known.view.duration
    span = figures.span((ticks * clock.duration(timeframe)).total_seconds())
    return words(f"{shown.text} for {ticks} tick{'s' * (ticks != 1)} ({span})", shown.tone)


def _told(known: StateHistory, row: Mapping[str, int]) -> str:
    state = known.view.state
    if not state:
        return "No state yet: the first tick brings it, and moves are counted from the second on."
    total, name = sum(row.values()), figures.mark(state).word
    ticks = len(known.history)
    stayed = row.get(state, 0)
    return (
        f"In the newest {ticks} ticks of this stream, {total} stood at {name} with the next tick "
        f"right after: {stayed} stayed, {total - stayed} went elsewhere. It tells of the "
        "consensus, not of the price."
    )


def _percent(chance: float | None) -> str:
    return figures.DASH if chance is None else f"{chance * 100:.1f} % smoothed"


def _bar(chance: float | None) -> Cell:
    return words("") | {"set": {"width": round((chance or 0.0) * figures.BAR_WIDTH, 2)}}
