"""Thinning of a plot's lines: fewer points, and the same picture to the eye.

A line over time or numbers keeps, of every stretch of its points, the first, the last, the lowest
and the highest, so that no peak and no trough is lost. A gap stays a gap, and bounds stay with
their points. Bands are merged where the category does not change; if that is not enough, each
stretch gets the category that fills most of it. Pure functions; a line that is short enough is
returned as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

KEPT: Final = 4
"""Most points that a stretch keeps: first, lowest, highest, last."""

Points = Sequence[tuple[Any, Any]]


def kept(points: Points, most: int) -> list[int]:
    """Return the places of the points to keep, in their order, `most` at most (at least 8)."""
    if len(points) <= most:
        return list(range(len(points)))
    found: set[int] = {0, len(points) - 1}
    # KEPT + 1: a stretch may keep a gap as well
    for stretch in _stretches(len(points), max(1, (most - 2) // (KEPT + 1))):
        known = [place for place in stretch if points[place][1] is not None]
        gap = next((place for place in stretch if points[place][1] is None), None)
        if gap is not None:
            found.add(gap)
        if known:
            found |= {
                known[0],
                min(known, key=lambda place: float(points[place][1])),
                max(known, key=lambda place: float(points[place][1])),
                known[-1],
            }
    return sorted(found)


def merged(points: Points, most: int) -> list[tuple[Any, Any]]:
    """Return bands with one point for each run of a category and one for the end.

    `points` are (x, category), each holding until the next one's x.
    """
    runs = list(_runs(points))
    if len(runs) <= most:
        return runs
    return list(_runs([_fullest(runs, stretch) for stretch in _stretches(len(runs), most - 1)]
                      + [runs[-1]]))  # fmt: skip


def _stretches(count: int, parts: int) -> Iterator[range]:
    for part in range(parts):
        stretch = range(count * part // parts, count * (part + 1) // parts)
        if stretch:
            yield stretch


def _runs(points: Points) -> Iterator[tuple[Any, Any]]:
    last: Any = object()
    for place, (x, category) in enumerate(points):
        # the last point too: without it the last run would have no end
        if category != last or place == len(points) - 1:
            yield x, category
        last = category


def _fullest(runs: Points, stretch: range) -> tuple[Any, Any]:
    """Return the beginning of a stretch with the category that lasts longest in it."""
    lasting: dict[Any, float] = {}
    for place in stretch:
        after = runs[min(place + 1, len(runs) - 1)][0]
        begin, category = runs[place]
        lasting[category] = lasting.get(category, 0.0) + _length(begin, after)
    return runs[stretch[0]][0], max(lasting, key=lambda name: lasting[name])


def _length(begin: Any, end: Any) -> float:
    apart = end - begin
    return float(apart.total_seconds() if isinstance(begin, datetime) else apart)
