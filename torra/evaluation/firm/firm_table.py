"""What a firm's manager and trader did: whom the one named, what the other was asked and declined.

Neither is an opinion: no score has a word of theirs. The manager's weights lessen what the two
cases asked for; naming the other side costs an opening most of its size, naming nobody less. The
trader is asked only where an opening would stand. A share is of the ticks, or of the openings that
it was asked about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from agents.contracts import WINNERS
from torra.evaluation.exhibits import Cell, Exhibit
from torra.evaluation.observations import TickObservation
from torra.evaluation.opinion_table import spoke
from torra.evaluation.wording import count, percent, rounded, share_cell

ARBITER: Final = "arbiter"
CHIEF: Final = "chief"
LEAST: Final = 100
"""Ticks, and openings asked about, from which on shares can be read."""

FEW: Final = f"That is few: shares take about {LEAST} ticks and openings."


@dataclass(frozen=True, slots=True)
class FirmObservation:
    """Counts of a firm: judgements by whom they name, and openings by what the trader said."""

    judged: int
    failed: int
    named: Counter[str]
    weights: tuple[float, float] | None
    asked: int
    chief: int
    declined: int
    unanswered: int


def firm_seen(ticks: Sequence[TickObservation]) -> FirmObservation:
    """Return what manager and trader did on these ticks."""
    told = [one for tick in ticks for one in tick.opinions if one.kind == ARBITER]
    heard = [one for one in told if spoke(one)]
    pairs = [one.weights for one in heard if one.weights]
    asked = [tick for tick in ticks if tick.consulted]
    return FirmObservation(
        len(heard),
        sum(not one.answered for one in told),
        Counter(one.winner for one in heard if one.winner),
        (fmean(bull for bull, _ in pairs), fmean(bear for _, bear in pairs)) if pairs else None,
        len(asked),
        sum(tick.tier == CHIEF for tick in asked),
        sum(bool(tick.declined) for tick in asked),
        sum(tick.declined is None for tick in asked),
    )


def firm_exhibit(ticks: Sequence[TickObservation]) -> Exhibit | None:
    """Return the table of manager and trader; None for a desk that has neither."""
    found = firm_seen(ticks)
    if not (found.judged or found.failed or found.asked):
        return None
    bull, bear = found.weights or (None, None)
    rows: list[tuple[Cell, ...]] = [
        *(
            (f"manager names {name}", share_cell(found.named[name], found.judged))
            for name in WINNERS
        ),
        ("manager's mean weight of the bull's case", rounded(bull, 2)),
        ("manager's mean weight of the bear's case", rounded(bear, 2)),
        ("manager failed, ticks", found.failed),
        ("openings that the trader was asked about", found.asked),
        ("of these declined", share_cell(found.declined, found.asked)),
        ("of these asked of the chief tier", share_cell(found.chief, found.asked)),
        ("of these without an answer", share_cell(found.unanswered, found.asked)),
    ]
    few = "" if min(found.judged, found.asked) >= LEAST else FEW
    return Exhibit(
        name="firm",
        title="What manager and trader do",
        columns=("what", "value"),
        rows=tuple(rows),
        says=f"{_says(found)} {few}".strip(),
        enough=not few,
        figures={
            **{f"named.{name}": _part(found.named[name], found.judged) for name in WINNERS},
            "asked": found.asked,
            "declined": _part(found.declined, found.asked),
            "escalated": _part(found.chief, found.asked),
        },
    )


def _part(hits: int, size: int) -> float | None:
    return hits / size if size else None


def _says(found: FirmObservation) -> str:
    named = ", ".join(
        f"{name} {percent(_part(found.named[name], found.judged))}" for name in WINNERS
    )
    told = f"On {count(found.judged, 'tick')} the manager named: {named}." if found.judged else ""
    if not found.asked:
        return f"{told} The trader was asked about no opening.".strip()
    said = (
        f"The trader was asked about {count(found.asked, 'opening')}, declined "
        f"{percent(_part(found.declined, found.asked))} and was asked of the chief tier on "
        f"{percent(_part(found.chief, found.asked))}."
    )
    return f"{told} {said}".strip()
