"""Skipped closes in words: a single one, a run of them, a market that is closed.

A closed market leaves one skip for every close, hundreds over a weekend. A list therefore shows a
run of skips of one reason as one row, and a stream in such a run is called quiet, not broken. Pure
functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from torra import clock
from torra.dashboard.record.shown import ListedTick
from torra.dashboard.view.desk_values import Skip, StreamStatus
from torra.dashboard.view.stream_reading import NO_BAR
from torra.exhibits import figures

NO_BARS: Final = "no new bars: the market is closed, or the feed has a gap"


def fold(events: Sequence[ListedTick | Skip]) -> list[ListedTick | Skip]:
    """Return events with each run of skips of one reason as its newest, with `count`, `oldest`."""
    folded: list[ListedTick | Skip] = []
    for reason, run in groupby(events, _reason):
        alike = list(run)
        folded += alike if reason is None else [_folded([s for s in alike if isinstance(s, Skip)])]
    return folded


def note(stream: StreamStatus, skipped: Skip | None) -> tuple[str, str]:
    """Return text and tone of a skip since a stream's newest tick; empty for nothing."""
    tick, quiet = stream.tick, stream.quiet
    if stream.damaged:
        return f"newest tick: its record is damaged: {figures.sanitize(stream.damaged)}", "warn"
    if quiet:
        since = figures.moment(quiet.first)
        return f"{stream.timeframe}: no new bars since {since}, market closed or a gap", "flat"
    # a tick has run since an older skip: that is over
    if not skipped or (tick and str(skipped.bar_time) <= str(tick.bar_time)):
        return "", ""
    return f"newest bar: {_one_text(skipped)}", tone(skipped)


def text(event: Skip, timeframe: str) -> str:
    """Return why a close was skipped, or how many were for the same reason."""
    if event.count == 1:
        return _one_text(event)
    first, last = (close_of(time, timeframe) for time in (event.oldest, event.bar_time))
    return run_text(event.reason, event.count, first, last)


def tone(skip: Skip) -> str:
    """Return the tone of a skip: a bar that never came is no fault of the desk."""
    return "flat" if skip.reason == NO_BAR else "warn"


def close_of(bar_time: str | None, timeframe: str) -> str:
    """Return when a bar closed, as ISO text."""
    return clock.iso(clock.parse(str(bar_time)) + clock.duration(timeframe))


def _reason(event: ListedTick | Skip) -> str | None:
    return str(event.reason) if isinstance(event, Skip) else None


def _folded(run: Sequence[Skip]) -> Skip:
    return replace(run[0], count=len(run), oldest=run[-1].bar_time)


def run_text(reason: str | None, count: int, first: str | None, last: str | None) -> str:
    """Return how many closes were skipped, why, and from which to which close."""
    closes = "1 close" if count == 1 else f"{count} closes"
    start = f"{closes} skipped, {figures.sanitize(reason, 60)}"
    if count == 1:
        return f"{start}: {figures.moment(first)}"
    return f"{start}: from {figures.moment(first)} to {figures.moment(last)}"


def _one_text(skip: Skip) -> str:
    reason, detail = figures.sanitize(skip.reason, 60), figures.sanitize(skip.detail, 240)
    return f"skipped, {reason}: {detail}" if detail else f"skipped, {reason}"
