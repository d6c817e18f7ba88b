"""The overview page as cells: the desk at a glance, then every instance, the urgent ones first.

A desk of up to CARDS instances shows one card for each, with every score of every stream. A larger
desk shows one row for each, so that fifty fit on a page; figures and words are the same, and the
scores are one click away. The keys of cells number the instances in the order of the desk file, so
that sorting the page changes no key. Pure functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypedDict

from agents.contracts import VECTORS
from torra import clock
from torra.dashboard.cells import home_cells, skips, sources
from torra.dashboard.cells.common import (
    NO_TICK,
    Cells,
    ThresholdPlaces,
    TickLink,
    age_cells,
    bar_cells,
    changes_cell,
    dash,
    limits,
    position_cells,
    showing,
    skip_cell,
    source_cell,
    thresholds_of,
    verdict_cells,
    voice_cells,
    warning_cells,
    words,
)
from torra.dashboard.record import vetoes
from torra.dashboard.view.desk_values import (
    DeskStatus,
    Overview,
    OverviewSymbol,
    StreamStatus,
)
from torra.dashboard.view.stream_reading import CHARTED
from torra.exhibits import figures, glances
from torra.exhibits.figures import Cell, cell
from torra.words.ticks import SOURCES, WITHOUT_SOME

CARDS: Final = CHARTED
"""Instances that have a tile each; more are rows of a table."""

WATCHED: Final = 6
"""Running debates that are shown by name; the count beside them is of all."""

Sort = Literal["attention", "name", "desk"]
SORTS: Final[dict[Sort, str]] = {
    "attention": "attention first",
    "name": "name",
    "desk": "your own order",
}
"""Orders of the instances and their words."""

VETO: Final = "GATE_VETO"
DECLINED: Final = "TRADER_DECLINED"


class AttentionReason(NamedTuple):
    """Why an instance wants a look; a smaller rank is more urgent."""

    rank: int
    text: str
    tone: str


CALM: Final = 9
"""Rank of an instance that wants no look."""

RESTING: Final = CALM + 1
"""Rank of an instance whose market is closed: nobody can do a thing about it."""


class StreamKey(TypedDict):
    """A stream's key among the cells."""

    key: str
    timeframe: str


class InstanceRow(TypedDict):
    """An instance of the overview.

    `debate` is the stream of its running debate, "" without one; `shown` is all that its own cells
    show.
    """

    key: str
    rank: int
    name: str
    symbol: str
    streams: list[StreamKey]
    limits: ThresholdPlaces
    address: str
    debate: str
    shown: tuple[object, ...]


class OverviewShown(TypedDict):
    """The overview."""

    cells: Cells
    instances: list[InstanceRow]
    compact: bool


def overview(
    data: Overview,
    link: TickLink,
    address: Callable[[str], str],
    sort: Sort = "attention",
    *,
    rows: bool = False,
) -> OverviewShown:
    """Return the cells of the overview and its instances in their order.

    The links return addresses: of a tick's page, of an instance. With `rows` every instance is a
    row, however few there are.
    """
    instances = data.instances
    compact = rows or len(instances) > CARDS
    cells = warning_cells(instances)
    cells |= glance_cells(data, calm=not compact)
    cells["legend.sources"] = _meanings(instances)
    # newest first in the data: reversed, so that the newest debate of an instance wins
    debates = {one.instance: one.stream_id for one in reversed(data.debates)}
    found: list[InstanceRow] = []
    for number, instance in enumerate(instances):
        key = f"i{number}"
        wants = notices(instance, data.desk)
        own = _instance(key, instance, data.desk, link)
        if compact:
            # its symbol's page shows these
            del own[f"{key}.changes"], own[f"{key}.sentence"]
            own[f"{key}.levels"] |= showing(instance.held)
            own[f"{key}.when"] |= showing(instance.latest)
        else:
            own |= home_cells.tile(key, instance)
            # brief, and it leads to its tick
            sentence = own[f"{key}.sentence"]
            sentence["text"] = home_cells.brief(sentence["text"])
            sentence["set"] = own[f"{key}.when"].get("set", {})
        tone = wants[0].tone if wants else ""
        said = ", ".join(item.text for item in wants)
        own[f"{key}.attention"] = words(said, tone) | showing(wants)
        cells |= own
        for place, stream in enumerate(instance.streams):
            make = _line if compact else _stream
            cells |= make(f"{key}.s{place}", instance, stream, link)
        rank = min((item.rank for item in wants), default=CALM)
        debate = debates.get(instance.instance, "")
        found.append(_row(key, instance, rank, address(instance.instance), debate, own))
    # sorted after all keys are given: they follow the desk file, whatever the order on the page
    ranked, named = sort == "attention", sort != "desk"
    order = sorted(
        found, key=lambda row: (row["rank"] if ranked else 0, row["name"] if named else "")
    )
    return {
        "cells": cells,
        "instances": order,
        "compact": compact,
    }


def _row(
    key: str, instance: OverviewSymbol, rank: int, address: str, debate: str, own: Cells
) -> InstanceRow:
    return {
        "key": key,
        "rank": rank,
        "name": instance.instance,
        "symbol": instance.symbol,
        "streams": [
            {"key": f"{key}.s{place}", "timeframe": stream.timeframe}
            for place, stream in enumerate(instance.streams)
        ],
        "limits": limits(thresholds_of(instance)),
        "address": address,
        "debate": debate,
        # its own cells only: ages and waits of streams always change and are no part of the piece
        "shown": (debate, *_shown(instance.instance, address, own)),
    }


def _shown(name: str, address: str, cells: Cells) -> tuple[object, ...]:
    """Return all that an instance's own cells show: the key of its rendered piece (views.kept)."""
    told = (
        (key, *(str(cell.get(part)) for part in ("text", "tone", "title", "hidden", "set")))
        for key, cell in cells.items()
    )
    return name, address, *told


# --- the desk at a glance -----------------------------------------------------------------------


def glance_cells(data: Overview, *, calm: bool) -> Cells:
    """Return the cells on top: approvals, alarms, stale feeds, debates, next ticks.

    `calm`: what is well is hidden, and the tiles tell their next ticks themselves.
    """
    desk, streams = data.desk, [stream for one in data.instances for stream in one.streams]
    waiting, alarms = desk.waiting, len(desk.alarms)
    cells: Cells = {
        "glance.waiting": words(f"{waiting} to decide" if waiting else "nothing to decide",
                                "warn" if waiting else ""),
        "glance.alarms": words(_number(alarms, "stands", "stand") if alarms else "no alarm",
                               "alert" if alarms else ""),
        "glance.feeds": _feeds(streams),
    }  # fmt: skip
    if calm:
        odd = any(stream.stale or not stream.tick for stream in streams)
        rows = {"waiting": waiting, "alarms": alarms, "feeds": odd}
        return cells | {f"glance.{name}.row": showing(one) for name, one in rows.items()}
    soonest: dict[str, float | None] = {}
    for stream in streams:
        # all streams of a timeframe close at the same moment
        soonest.setdefault(stream.timeframe, stream.next_in_seconds)
    for timeframe, left in soonest.items():
        cells[f"glance.next.{timeframe}"] = words(figures.countdown(left)) | (
            {} if left is None else {"set": {"data-countdown": round(left, 1)}}
        )
    return cells


def timeframes_of(data: Overview) -> list[str]:
    """Return the timeframes of a desk, shortest first."""
    names = {stream.timeframe for one in data.instances for stream in one.streams}
    return sorted(names, key=clock.duration)


def _feeds(streams: Sequence[StreamStatus]) -> Cell:
    """Return how many streams are stale, without bars or without a tick, in words."""
    counts = Counter(_freshness(stream) for stream in streams)
    told = [f"{counts[word]} of {len(streams)} {word}" for word in FRESHNESS if counts[word]]
    bad = counts["stale"]
    fresh = "up to date" if streams else "none yet"
    return words(", ".join(told) or fresh, "alert" if bad and bad == len(streams) else
                 "warn" if bad else "")  # fmt: skip


FRESHNESS: Final = ("stale", "with no new bars", "without a tick yet")


def _freshness(stream: StreamStatus) -> str:
    states = (stream.stale, stream.quiet, not (stream.tick or stream.damaged))
    return next((word for word, holds in zip(FRESHNESS, states, strict=True) if holds), "")


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


# --- an instance --------------------------------------------------------------------------------


def notices(instance: OverviewSymbol, desk: DeskStatus) -> list[AttentionReason]:
    """Return why an instance wants a look, the most urgent first."""
    return sorted(_notices(instance, desk))


def _without_tick(instance: OverviewSymbol) -> Iterator[AttentionReason]:
    """Yield that a newest record is damaged, or that no tick has run yet."""
    damaged = [stream.timeframe for stream in instance.streams if stream.damaged]
    if damaged:
        yield AttentionReason(3, f"! damaged record {', '.join(damaged)}", "warn")
    elif not instance.latest:
        yield AttentionReason(5, "○ no tick yet", "flat")


def _notices(instance: OverviewSymbol, desk: DeskStatus) -> Iterable[AttentionReason]:
    if desk.waiting_by.get(instance.instance):
        yield AttentionReason(0, "◔ approval waits", "warn")
    stale = [stream.timeframe for stream in instance.streams if stream.stale]
    if stale:
        yield AttentionReason(1, f"◷ stale {', '.join(stale)}", "warn")
    latest = instance.latest
    if latest and VETO in (latest.reason, *latest.denied):
        yield AttentionReason(2, vetoes.mark(latest).text, "alert")
    if latest and DECLINED in (latest.reason, *latest.denied):
        yield AttentionReason(2, figures.mark("DECLINED").text, "alert")
    left = [stream.timeframe for stream in instance.streams if _left_out(stream)]
    if left:
        yield AttentionReason(3, f"· skipped {', '.join(left)}", "warn")
    yield from _without_tick(instance)
    ticks = [stream.tick for stream in instance.streams if stream.tick]
    sources = {figures.mark(tick.source_type) for tick in ticks}
    for source in sorted(sources & {*WITHOUT_SOME.values()}):
        yield AttentionReason(4, source.text, "warn")
    flags = [flag for tick in ticks for flag in tick.deliberation.flags]
    if any(flag.partition(":")[0] == "degraded" for flag in flags):
        yield AttentionReason(4, figures.mark("DEGRADED").text, "warn")
    if instance.streams and all(stream.quiet and not stream.stale for stream in instance.streams):
        yield AttentionReason(RESTING, "◦ no bars", "flat")


def _left_out(stream: StreamStatus) -> bool:
    """Return whether a stream's newest close was skipped for more than want of a bar."""
    told, tone = skips.note(stream.tick, stream.skipped, stream)
    return bool(told) and tone == "warn"


def _instance(key: str, instance: OverviewSymbol, desk: DeskStatus, link: TickLink) -> Cells:
    cells = verdict_cells(key, instance.latest, link) | position_cells(key, instance)
    del cells[f"{key}.source"]  # each stream shows its own
    if not instance.latest:
        cells[f"{key}.reason"] = words(first_tick(instance.streams, desk, instance.feed))
    cells[f"{key}.changes"] = changes_cell(instance.changes)
    near = sources.near_event([stream.tick for stream in instance.streams], desk.now)
    cells[f"{key}.event"] = words(near) | showing(near)
    return cells


FEEDS: Final = {
    "store": "none is imported: fill it with torra import",
    "sample": "the sample brings them by itself",
}
"""Where bars come from, by feed; any other one is a channel to MetaTrader 5."""


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


def _meanings(instances: Sequence[OverviewSymbol]) -> Cell:
    """Return the meanings of the source types that the overview shows now."""
    ticks = [stream.tick for one in instances for stream in one.streams if stream.tick]
    names = sorted({str(tick.source_type) for tick in ticks} & set(SOURCES))
    told = "; ".join(f"{SOURCES[name].word}: {SOURCES[name].meaning}" for name in names)
    return words(told or "which agents stand behind the scores")


# --- a stream -----------------------------------------------------------------------------------


def _stream(key: str, instance: OverviewSymbol, stream: StreamStatus, link: TickLink) -> Cells:
    """Return everything of a stream, for a card."""
    tick = stream.tick
    cells: Cells = {}
    for vector in VECTORS:
        value = tick.final(vector) if tick else None
        cells[f"{key}.{vector}"] = cell(value, 2, NO_TICK)
        cells |= bar_cells(f"{key}.{vector}", value, tick.l1[vector] if tick else None)
    cells[f"{key}.ath"] = cell(tick.ath if tick else None, 2, NO_TICK)
    composite, l1 = (tick.composite, tick.l1_composite) if tick else (None, None)
    cells |= bar_cells(f"{key}.composite", composite, l1)
    cells[f"{key}.source"] = dash()
    if tick:
        address = link(instance.instance, stream.timeframe, tick.bar_time)
        cells[f"{key}.source"] = source_cell(tick.source_type) | {"set": {"href": address}}
    cells |= voice_cells(key, tick)
    cells[f"{key}.spark"] = words("") | {"set": {"d": glances.spark(stream.history)}}
    cells[f"{key}.skip"] = skip_cell(stream.tick, stream.skipped, stream)
    cells[f"{key}.composite"] = cell(composite, 3, NO_TICK)
    return cells | age_cells(key, stream)


def _line(key: str, instance: OverviewSymbol, stream: StreamStatus, link: TickLink) -> Cells:
    """Return the cells for which a row has room: composite, source, age, wait."""
    tick = stream.tick
    told = source_cell(tick.source_type if tick else None)
    # a row is narrow, and the rest of the word still tells the sources apart
    told["text"] = told["text"].removesuffix(" desk")
    if tick:
        address = link(instance.instance, stream.timeframe, tick.bar_time)
        told["set"] = {"href": address}
    return {
        f"{key}.composite": cell(tick.composite if tick else None, 3, NO_TICK),
        f"{key}.source": told,
        **age_cells(key, stream),
    }
