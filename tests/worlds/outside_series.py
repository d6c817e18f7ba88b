"""Outside numbers as a world has them: rows of each series that a symbol reads, day by day."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from torra.evidence.outside_numbers import SeriesRow, StoredRow, series_of

DAY = timedelta(days=1)


def moved(name: str, value: float, chance: random.Random) -> float:
    """Return the next value of a series; positions and prices stay above zero."""
    series = series_of(name)
    assert series is not None
    if series.source == "cftc" or series.unit in ("points", "million barrels", "contracts"):
        return max(1.0, value * (1.0 + chance.gauss(0.0, 0.02)))
    return value + chance.gauss(0.0, 0.05)


def rows(
    names: Iterable[str], begin: datetime, days: int, seed: int = 1, source: str = "made"
) -> Iterator[SeriesRow]:
    """Yield a value of every series on each working day, of the CFTC's on Tuesdays.

    A day's value is known at 22:00 of the next one, a Tuesday's positions three days later.
    """
    for name in names:
        chance = random.Random(f"{name} {seed}")
        series = series_of(name)
        assert series is not None
        value = 1000.0 if series.source == "cftc" else 50.0 if series.unit == "of 100" else 20.0
        for at in (begin + number * DAY for number in range(days)):
            if at.weekday() > 4 or (series.source == "cftc" and at.weekday() != 1):
                continue
            value = moved(name, value, chance)
            later = 3 if series.source == "cftc" else 1
            yield SeriesRow(name, at, at + later * DAY + timedelta(hours=22), value, source)


def stored(found: Iterable[SeriesRow], first_seen: datetime | None = None) -> list[StoredRow]:
    """Return rows as the store has them, seen when they were known or at one moment."""
    return [
        StoredRow(row, first_seen or row.known_at, number)
        for number, row in enumerate(found, start=1)
    ]
