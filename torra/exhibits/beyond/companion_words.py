"""What a tick knew of companions, in words: each one's close, its moves, or why it has none.

Pure values and functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from torra.evidence.outside_readings import OutsideView
from torra.exhibits import figures
from torra.exhibits.beyond.outside_row import OutsideRow, day_of, ranked
from torra.words.ticks import NO_COMPANION

NAME_CHARS: Final = 60
"""Characters of a symbol's name that are shown."""


def close_of(value: object) -> str:
    """Return a close of a companion, with the digits that tell it from the next."""
    known = figures.number(value)
    return figures.DASH if known is None else f"{known:,.7g}"


def is_companion(name: str) -> bool:
    """Tell whether a feature or a status is that of a companion."""
    return name.partition(".")[0] == "companion"


def names(told: OutsideView) -> list[str]:
    """Return the names of a record's companions, in their order."""
    return [*dict.fromkeys(name.split(".")[1] for name in told.numbers if is_companion(name))]


def row_of(name: str, told: OutsideView) -> OutsideRow | None:
    """Return the row of a companion; None where no bar of it was seen."""
    seen = told.seen.get(f"companion.{name}")
    if seen is None:
        return None
    numbers = {
        which: told.numbers.get(f"companion.{name}.{which}")
        for which in ("change_1", "change_5", "change_20", "percentile", "correlation")
    }
    closed = f"its bar closed {figures.moment(seen.at)}"
    correlated = figures.number(numbers["correlation"])
    return {
        "block": "companion",
        "name": f"{name} ({figures.sanitize(seen.source, NAME_CHARS)})",
        "value": "too late to count" if seen.stale else close_of(seen.value),
        "change": _changes(numbers),
        "rank": f"{ranked(numbers['percentile'])} in 250 bars"
        if figures.number(numbers["percentile"]) is not None
        else figures.DASH,
        "origin": closed
        if correlated is None
        else f"{closed}; correlation {figures.format_signed(correlated, 2)} over 60 bars",
        "day": day_of(str(seen.at)),
        "old": bool(seen.stale),
    }


def _changes(numbers: Mapping[str, object]) -> str:
    known = [
        f"{figures.format_signed(numbers[f'change_{bars}'], 2)} % "
        f"in {bars} bar{'s' if bars > 1 else ''}"
        for bars in (1, 5, 20)
        if figures.number(numbers[f"change_{bars}"]) is not None
    ]
    return ", ".join(known) or figures.DASH


def notes(told: OutsideView) -> Iterator[str]:
    """Yield which companions are not known, one sentence for each reason."""
    found: dict[str, list[str]] = {}
    for name in names(told):
        if lack := told.statuses.get(f"companion.{name}"):
            found.setdefault(str(lack), []).append(name)
    for lack, these in found.items():
        why = NO_COMPANION.get(lack, "")
        yield f"Not known: {', '.join(these)}. {why}".rstrip()
