"""Skipped closes in words: a single one, a run of them, a market that is closed.

A closed market leaves one skip for every close, hundreds over a weekend. A list therefore shows a
run of skips of one reason as one row, and a stream in such a run is called quiet, not broken. Pure
functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from torra import clock
from torra.dashboard.record.stored import Row
from torra.dashboard.view.stream_reading import NO_BAR
from torra.exhibits import figures

NO_BARS: Final = "no bars: market closed or hole in the data"


def fold(events: Sequence[Row]) -> list[Row]:
    """Return events with each run of skips of one reason as its newest, with `count`, `oldest`."""
    return [_folded(list(run)) if skipped else next(run) for skipped, run in _runs(events)]


def note(tick: Mapping[str, Any], skipped: Any, stream: Mapping[str, Any]) -> tuple[str, str]:
    """Return text and tone of what a stream skipped since its newest tick; empty for nothing."""
    quiet = stream.get("quiet")
    if quiet:
        run = _run_text(NO_BAR, quiet["count"], quiet["from"], quiet["to"])
        return f"{stream['timeframe']}: {NO_BARS} ({run})", "flat"
    # a tick has run since an older skip: that is over
    if not skipped or (tick and str(skipped["bar_time"]) <= str(tick["bar_time"])):
        return "", ""
    return f"newest bar: {_one_text(skipped)}", tone(skipped)


def text(event: Mapping[str, Any], timeframe: str) -> str:
    """Return why a close was skipped, or how many were for the same reason."""
    if event.get("count", 1) == 1:
        return _one_text(event)
    first, last = (close_of(event[name], timeframe) for name in ("oldest", "bar_time"))
    return _run_text(event.get("reason"), event["count"], first, last)


def tone(skip: Mapping[str, Any]) -> str:
    """Return the tone of a skip: a bar that never came is no fault of the desk."""
    return "flat" if skip.get("reason") == NO_BAR else "warn"


def close_of(bar_time: Any, timeframe: str) -> str:
    """Return when a bar closed, as ISO text."""
    return clock.iso(clock.parse(str(bar_time)) + clock.duration(timeframe))


def _runs(events: Sequence[Row]) -> Iterator[tuple[bool, Iterator[Row]]]:
    """Yield every tick alone (False) and every run of skips of one reason together (True)."""

    def alike(numbered: tuple[int, Row]) -> tuple[bool, Any]:
        place, event = numbered
        skip = bool(event.get("was_skipped"))
        # the place is different for every tick, so groupby never joins two ticks
        return skip, event.get("reason") if skip else place

    for (skip, _), run in groupby(enumerate(events), alike):
        yield skip, (event for _, event in run)


def _folded(run: Sequence[Row]) -> Row:
    return {**run[0], "count": len(run), "oldest": run[-1]["bar_time"]}


def _run_text(reason: Any, count: int, first: Any, last: Any) -> str:
    closes = "1 close" if count == 1 else f"{count} closes"
    told = f"{closes} skipped, {figures.clean(reason, 60)}"
    if count == 1:
        return f"{told}: {figures.moment(first)}"
    return f"{told}: from {figures.moment(first)} to {figures.moment(last)}"


def _one_text(skip: Mapping[str, Any]) -> str:
    reason, detail = figures.clean(skip.get("reason"), 60), figures.clean(skip.get("detail"), 240)
    return f"skipped, {reason}: {detail}" if detail else f"skipped, {reason}"
