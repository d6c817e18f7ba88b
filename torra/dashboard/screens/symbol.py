"""The page of a stream: its newest tick, its chart, its states and verdicts over time, its lists.

The template reads the values of `Symbol`. Here stands what is reckoned from several of them. Pure
functions.
"""

from __future__ import annotations

from typing import Final

from torra import clock
from torra.dashboard.record import agreement, reasoning
from torra.dashboard.record.shown import ListedTick
from torra.dashboard.streams import price_lines, skips, sources, tick_words, timelines
from torra.dashboard.streams.attention import first_tick
from torra.dashboard.view.desk_values import OverviewSymbol, Skip, StateHistory, Symbol
from torra.dashboard.view.stream_reading import LISTED
from torra.exhibits import figures, glances
from torra.feeds.sample import SHOWN_AS
from torra.verdict.one_sided import verdict_balance
from torra.verdict.risk_engine import OPENS
from torra.verdict.sentiment_rules import STATES as COUNTED

FEW: Final = 20
"""Below this number of moves the smoothing weighs as much as the counts."""

FALLBACK_CHART: Final = (600.0, 200.0)
"""Coordinates of the price line that stands in for the chart without scripts."""


def values(data: Symbol) -> dict[str, object]:
    """Return what the template of the page reads."""
    latest = data.latest
    alone = [OverviewSymbol(instance=data.instance, streams=(data.stream,))]
    return {
        "data": data,
        "shown_as": SHOWN_AS,
        "warnings": sources.warnings(alone),
        "no_tick": ListedTick(),
        "first_tick": "" if latest else first_tick([data.stream], data.desk, data.feed),
        "event": sources.near_event([latest], data.desk.now),
        "skip": skips.note(data.stream, next(iter(data.skipped), None)),
        "sided": verdict_balance(data.sides),
        "beyond": latest and reasoning.beyond(latest),
        "ticks": {tick.bar_time: tick for tick in data.ticks},
        "events": tick_events(data)[:LISTED],
        "states": timelines.state_timeline(data.states, data.stream.timeframe),
        "verdicts": timelines.verdict_timeline(data),
        "moves": moves(data.states),
        "few": FEW,
        "fallback": glances.line([bar.close for bar in data.bars], *FALLBACK_CHART),
        "opened": {str(order): position for order, position in OPENS.items()},
        "listed": LISTED,
        "over": price_lines.LINES,
        "why": why,
        # modules whose words the template asks for
        "agreement": agreement,
        "clock": clock,
        "skips": skips,
        "tick_words": tick_words,
    }


def tick_events(data: Symbol) -> list[ListedTick | Skip]:
    """Return ticks and skipped ticks together, newest first; a run of like skips is one event."""
    run = {tick.bar_time for tick in data.ticks}
    # a close that was skipped first and then run late is a tick, not both
    left = [skip for skip in data.skipped if skip.bar_time not in run]
    events: list[ListedTick | Skip] = [*data.ticks, *left]
    return skips.fold(sorted(events, key=lambda event: str(event.bar_time), reverse=True))


def moves(states: StateHistory) -> dict[str, dict[str, int]]:
    """Return how often each state was followed by each; nothing for a stream without ticks.

    A table of another size is a fault, and zip() raises.
    """
    counts = states.view.counts
    return {
        state: dict(zip(COUNTED, row, strict=True))
        for state, row in zip(COUNTED, counts, strict=bool(counts))
    }


def why(tick: ListedTick) -> str:
    """Return why a listed tick did what it did, by its own thresholds: today's may differ."""
    if tick.reason == "THRESHOLD" and not tick.thresholds:
        return "between the thresholds of its time"
    standing = reasoning.standing(tick).removeprefix("is ")
    return reasoning.why(tick) or standing or figures.DASH
