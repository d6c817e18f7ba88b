"""The Markov table of a symbol page: how often each state has followed the present one.

`torra.verdict.sentiment_rules.markov` counts the moves between neighbouring ticks. This module
writes out its counts and probabilities, what the smoothing adds to them, and a warning while fewer
than FEW moves were counted. Pure functions over what a DeskView returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from torra import clock
from torra.dashboard.cells.common import Cells, showing, words
from torra.dashboard.record.stored import Row, mapping, sequence
from torra.exhibits import figures
from torra.exhibits.figures import STATES
from torra.verdict.sentiment_rules import STATES as COUNTED

FEW: Final = 20
"""Below this number of moves the smoothing weighs as much as the counts."""


def odds_cells(markov: Any, timeframe: str) -> Cells:
    """Return the cells markov.now, .told, .few, .next.STATE, .bar.STATE, .count.STATE, .moves.*."""
    known = mapping(markov)
    state, counts = known.get("state"), _counts(known)
    row = counts.get(str(state), {})
    chances = mapping(known.get("next"))
    cells: Cells = {
        "markov.now": _now(known, timeframe),
        "markov.told": words(_told(known, row)),
        "markov.few": words(_few(row), "warn") | showing(state and sum(row.values()) < FEW),
    }
    for name in STATES:
        chance = figures.number(chances.get(name)) if state else None
        told = "" if chance else "no tick yet"
        cells[f"markov.next.{name}"] = words(_percent(chance), title=told)
        cells[f"markov.bar.{name}"] = _bar(chance)
        cells[f"markov.count.{name}"] = words(figures.plain(row.get(name), 0))
        for after in STATES:
            told = figures.plain(counts.get(name, {}).get(after), 0)
            cells[f"markov.moves.{name}.{after}"] = words(told, "note" if name == state else "")
    return cells


def rows() -> list[Row]:
    """Return the five states with their marks, from strong bullish to strong bearish."""
    return [{"name": name, "mark": figures.mark(name)} for name in STATES]


def _counts(known: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    # no table is a stream without ticks; a table of another size is a fault, and zip() raises
    table = [sequence(row) for row in sequence(known.get("counts"))]
    return {
        # the counts are in the brain's order of states, which is not the page's
        name: dict(zip(COUNTED, row, strict=True))
        for name, row in zip(COUNTED, table, strict=bool(table))
    }


def _now(known: Mapping[str, Any], timeframe: str) -> Row:
    state = known.get("state")
    if not state:
        return words(figures.DASH, title="no tick yet")
    shown = figures.mark(state)
    ticks = int(known.get("duration") or 0)
    span = figures.span((ticks * clock.duration(timeframe)).total_seconds())
    return words(f"{shown.text} for {ticks} tick{'s' * (ticks != 1)} ({span})", shown.tone)


def _told(known: Mapping[str, Any], row: Mapping[str, int]) -> str:
    state = known.get("state")
    if not state:
        return "No state yet: the first tick brings it, and moves are counted from the second on."
    total, name = sum(row.values()), figures.mark(state).word
    ticks = len(sequence(known.get("history")))
    stayed = row.get(str(state), 0)
    added = figures.loose(known.get("smoothing"))
    return (
        f"In the newest {ticks} ticks of this stream, {total} stood at {name} with the next tick "
        f"right after: {stayed} stayed, {total - stayed} went elsewhere. A percentage is how often "
        f"that was, after {added} is added to each of the five counts so that what has not "
        "happened yet is not called impossible. It tells of this stream's own past and of the "
        "consensus, not of the price."
    )


def _few(row: Mapping[str, int]) -> str:
    return f"Only {sum(row.values())} moves are counted from here: the percentages say little yet."


def _percent(chance: float | None) -> str:
    return figures.DASH if chance is None else f"{chance * 100:.1f} %"


def _bar(chance: float | None) -> Row:
    return words("") | {"set": {"width": round((chance or 0.0) * figures.BAR_WIDTH, 2)}}
