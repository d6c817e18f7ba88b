"""Why an instance of the desk wants a look, the most urgent first, and what its first tick needs.

Pure functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from torra.dashboard.record import vetoes
from torra.dashboard.streams import skips
from torra.dashboard.view.desk_values import DeskStatus, OverviewSymbol, StreamStatus
from torra.exhibits import figures
from torra.words.ticks import WITHOUT_SOME

VETO: Final = "GATE_VETO"
DECLINED: Final = "TRADER_DECLINED"

WEAKER: Final = frozenset(WITHOUT_SOME.values())
"""Sources of ticks without some of their agents."""

CALM: Final = 9
"""Rank of an instance that wants no look."""

RESTING: Final = CALM + 1
"""Rank of an instance whose market is closed: nobody can do a thing about it."""

FEEDS: Final = {
    "store": "none is imported: fill it with torra import",
    "sample": "the sample brings them by itself",
}
"""Where bars come from, by feed; any other one is a channel to MetaTrader 5."""

FRESHNESS: Final = ("stale", "with no new bars", "without a tick yet")
"""What a stream may be, the worst first."""


class AttentionReason(NamedTuple):
    """Why an instance wants a look; a smaller rank is more urgent."""

    rank: int
    text: str
    tone: str


def notices(instance: OverviewSymbol, desk: DeskStatus) -> tuple[AttentionReason, ...]:
    """Return why an instance wants a look, the most urgent first."""
    return tuple(sorted(_notices(instance, desk)))


def _notices(instance: OverviewSymbol, desk: DeskStatus) -> Iterator[AttentionReason]:
    streams, latest = instance.streams, instance.latest

    def reason(what: str, rank: int, those: Iterable[object]) -> Iterator[AttentionReason]:
        names = [stream.timeframe for stream, yes in zip(streams, those, strict=True) if yes]
        if names:
            yield AttentionReason(rank, f"{what} {', '.join(names)}", "warn")

    if desk.waiting_by.get(instance.instance):
        yield AttentionReason(0, "◔ approval waits", "warn")
    yield from reason("◷ stale", 1, (stream.stale for stream in streams))
    if latest and VETO in (latest.reason, *latest.denied):
        yield AttentionReason(2, vetoes.mark(latest).text, "alert")
    if latest and DECLINED in (latest.reason, *latest.denied):
        yield AttentionReason(2, figures.mark("DECLINED").text, "alert")
    yield from reason("· skipped", 3, map(_has_skips, streams))
    yield from reason("! damaged record", 3, (stream.damaged for stream in streams))
    if not latest and not any(stream.damaged for stream in streams):
        yield AttentionReason(5, "○ no tick yet", "flat")
    ticks = [stream.tick for stream in streams if stream.tick]
    for source in sorted({figures.mark(tick.source_type) for tick in ticks} & WEAKER):
        yield AttentionReason(4, source.text, "warn")
    flags = [flag for tick in ticks for flag in tick.deliberation.flags]
    if any(flag.partition(":")[0] == "degraded" for flag in flags):
        yield AttentionReason(4, figures.mark("DEGRADED").text, "warn")
    if streams and all(stream.quiet and not stream.stale for stream in streams):
        yield AttentionReason(RESTING, "◦ no bars", "flat")


def _has_skips(stream: StreamStatus) -> bool:
    """Return whether a stream's newest close was skipped for more than want of a bar."""
    return skips.note(stream, stream.skipped)[1] == "warn"


def feeds(streams: Sequence[StreamStatus]) -> tuple[str, str]:
    """Return how many streams are stale, without bars or without a tick, in words, and the tone."""
    counts = Counter(map(_freshness, streams))
    parts = [f"{counts[word]} of {len(streams)} {word}" for word in FRESHNESS if counts[word]]
    stale = counts["stale"]
    tone = "" if not stale else "alert" if stale == len(streams) else "warn"
    return ", ".join(parts) or ("up to date" if streams else "none yet"), tone


def _freshness(stream: StreamStatus) -> str:
    states = (stream.stale, stream.quiet, not (stream.tick or stream.damaged))
    return next((word for word, holds in zip(FRESHNESS, states, strict=True) if holds), "")


def first_tick(streams: Sequence[StreamStatus], desk: DeskStatus, feed: str | None = None) -> str:
    """Return why no tick has run yet, and what the first one needs."""
    if desk.role == "STOPPED":
        return "No tick yet: no desk works on this home. Start one: torra run."
    if damaged := [stream for stream in streams if stream.damaged]:
        return (
            f"The record of the newest tick is damaged: {figures.sanitize(damaged[0].damaged)}. "
            "Its scores and orders stand in rows of their own; the next tick has a record again."
        )
    ages = [stream.bar_age_seconds for stream in streams if stream.bar_age_seconds is not None]
    if not ages:
        how = FEEDS.get(str(feed), "the feed has brought none: Health tells its age and state")
        return f"No tick yet: at least 210 bars are needed, none are stored. Bars: {how}."
    if any(stream.stale for stream in streams):
        return (
            f"No tick yet: the newest bar closed {figures.span(min(ages))} ago, and a tick "
            "needs a fresh one. Health says how bars come."
        )
    return "No tick yet: the first comes with the close of the next bar."
