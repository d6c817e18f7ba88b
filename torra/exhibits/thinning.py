"""Thinning of a plot's lines: fewer points, and the same picture to the eye.

A line over time or numbers keeps, of every stretch of its points, the first, the last, the lowest
and the highest, so that no peak and no trough is lost. A gap stays a gap. Bands are merged where
the category does not change; if that is not enough, each stretch gets the category that fills most
of it. A point is (x, y, ...) with a number as x. Pure functions; a line that is short enough is
returned as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, TypeVar

KEPT: Final = 5
"""Most points that a stretch keeps: first, lowest, highest, last, and a gap."""

Point = TypeVar("Point", bound=Sequence[Any])
Run = tuple[float, Any]
"""Where a category begins."""


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Return the points to keep, in their order, `most` at most (at least 8)."""
    if len(points) <= most:
        return list(points)
    chosen = {0, len(points) - 1}
    for stretch in _stretches(len(points), max(1, (most - 2) // KEPT)):
        heights = {at: points[at][1] for at in stretch if points[at][1] is not None}
        gaps = [at for at in stretch if at not in heights]
        places = list(heights)
        chosen.update(gaps[:1], places[:1], places[-1:])
        if places:
            chosen |= {min(places, key=heights.__getitem__), max(places, key=heights.__getitem__)}
    return [points[at] for at in sorted(chosen)]


def merged(points: Sequence[Run], most: int) -> list[Run]:
    """Return one point for each run of a category, and one for the end.

    Each category holds until the next one's x.
    """
    runs = _runs(points)
    if len(runs) <= most:
        return runs
    ends = [*runs[1:], runs[-1]]
    fullest: list[Run] = []
    for stretch in _stretches(len(runs), most - 1):
        lengths: defaultdict[Any, float] = defaultdict(float)
        for at in stretch:
            lengths[runs[at][1]] += ends[at][0] - runs[at][0]
        fullest.append((runs[stretch[0]][0], max(lengths, key=lengths.__getitem__)))
    return _runs([*fullest, runs[-1]])


def _stretches(count: int, parts: int) -> list[range]:
    """Return `count` places as ranges, of which there are `parts`, no more than places."""
    return [range(count * part // parts, count * (part + 1) // parts) for part in range(parts)]


def _runs(points: Sequence[Run]) -> list[Run]:
    # the last point too: without it the last run would have no end
    last = len(points) - 1
    return [
        point for at, point in enumerate(points) if at in (0, last) or point[1] != points[at - 1][1]
    ]
