"""What a tick knew of companions, in words: each one's close, its moves, or why it has none.

Pure values and functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torra.evidence.outside_readings import OutsideView
from torra.exhibits import figures
from torra.exhibits.beyond.outside_row import OutsideRow, day_of, ranked
from torra.words.ticks import NO_COMPANION

CHANGES: Final = {"change_1": "1 bar", "change_5": "5 bars", "change_20": "20 bars"}
NAME_CHARS: Final = 60
"""Characters of a symbol's name that are shown."""


def close_of(value: object) -> str:
    """Return a close of a companion, with the digits that tell it from the next."""
    known = figures.number(value)
    return figures.DASH if known is None else f"{known:,.7g}"


def is_companion(name: str) -> bool:
    """Tell whether a feature or a status is that of a companion."""
    return name.partition(".")[0] == "companion"


def names(view: OutsideView) -> list[str]:
    """Return the names of a record's companions, in their order."""
    return [*dict.fromkeys(name.split(".")[1] for name in view.numbers if is_companion(name))]


def rows(view: OutsideView) -> Iterator[OutsideRow]:
    """Yield the row of each companion of which a bar was seen."""
    for name in names(view):
        newest = view.seen.get(f"companion.{name}")
        if newest is None:
            continue
        numbers = {
            which: figures.number(view.numbers.get(f"companion.{name}.{which}"))
            for which in (*CHANGES, "percentile", "correlation")
        }
        closed = f"its bar closed {figures.moment(newest.at)}"
        if numbers["correlation"] is not None:
            over = figures.format_signed(numbers["correlation"], 2)
            closed += f"; correlation {over} over 60 bars"
        changes = [
            f"{figures.format_signed(numbers[which], 2)} % in {bars}"
            for which, bars in CHANGES.items()
            if numbers[which] is not None
        ]
        yield OutsideRow(
            "companion",
            f"{name} ({figures.sanitize(newest.source, NAME_CHARS)})",
            "too late to count" if newest.stale else close_of(newest.value),
            closed,
            day_of(newest.at),
            ", ".join(changes) or figures.DASH,
            ranked(numbers["percentile"]) + " in 250 bars" * (numbers["percentile"] is not None),
            newest.stale,
        )


def notes(view: OutsideView) -> Iterator[str]:
    """Yield which companions are not known, one sentence for each reason."""
    missing: dict[str, list[str]] = {}
    for name in names(view):
        if lack := view.statuses.get(f"companion.{name}"):
            missing.setdefault(str(lack), []).append(name)
    for lack, these in missing.items():
        why = NO_COMPANION.get(lack, "")
        yield f"Not known: {', '.join(these)}. {why}".rstrip()
