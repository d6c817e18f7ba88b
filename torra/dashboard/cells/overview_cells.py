"""The overview page as cells: the desk at a glance, then every instance, the urgent ones first.

A desk of up to CARDS instances shows one card for each, with every score of every stream. A larger
desk shows one row for each, so that fifty fit on a page; figures and words are the same, and the
scores are one click away. The keys of cells number the instances in the order of the desk file, so
that sorting the page changes no key. Pure functions over what a DeskView returns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from agents.contracts import VECTORS
from torra import clock
from torra.dashboard.cells import skips, sources
from torra.dashboard.cells.common import (
    NO_TICK,
    Cells,
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
    verdict_cells,
    voice_cells,
    warning_cells,
    words,
)
from torra.dashboard.cells.symbol_cells import strip
from torra.dashboard.record.stored import Row, mapping, sequence
from torra.exhibits import figures
from torra.exhibits.figures import cell

CARDS: Final = 8
"""Instances that have a card each; more are rows of a table."""

WATCHED: Final = 6
"""Running debates that are shown by name; the count beside them is of all."""

NEAR_CEILING: Final = 0.8
"""Share of the cost ceiling from which the cost is a warning."""

Sort = Literal["attention", "name", "desk"]
SORTS: Final[dict[Sort, str]] = {
    "attention": "attention first",
    "name": "name",
    "desk": "order of the desk file",
}
"""Orders of the instances and their words."""

WatchLink = Callable[[str], str]
"""Returns the address where a stream can be watched, empty where nobody shows it."""

PARTIAL: Final = ("AGENT_PARTIAL", "LEGACY", "L1_ONLY")
"""Source types of a tick for which some agent was asked and is missing."""

VETO: Final = "GATE_VETO"


class Notice(NamedTuple):
    """Why an instance wants a look; a smaller rank is more urgent."""

    rank: int
    text: str
    tone: str


CALM: Final = 9
"""Rank of an instance that wants no look."""


def overview(
    data: Mapping[str, Any],
    link: TickLink,
    watch: WatchLink,
    address: Callable[[str], str],
    sort: Sort = "attention",
) -> Row:
    """Return {"cells", "instances", "compact", "order", "shape"} of the overview.

    The links return addresses: of a tick's page, of a stream to watch, of an instance.
    """
    instances = data["instances"]
    compact = len(instances) > CARDS
    cells = strip(data["desk"]) | warning_cells(instances)
    cells |= glance_cells(data, watch)
    cells["legend.sources"] = _meanings(instances)
    # newest first in the data: reversed, so that the newest debate of an instance wins
    debates = {one["instance"]: one["stream_id"] for one in reversed(debates_of(data))}
    rows = []
    for number, instance in enumerate(instances):
        key = f"i{number}"
        found = notices(instance, data["desk"])
        own = _instance(key, instance, data["desk"], link)
        if compact:
            _shorten(key, own, instance)
        own[f"{key}.attention"] = _attention(found)
        own[f"{key}.watch"] = _watch(debates.get(instance["instance"]), watch)
        cells |= own
        for place, stream in enumerate(instance["streams"]):
            make = _line if compact else _stream
            cells |= make(f"{key}.s{place}", instance, stream, link)
        row = _row(key, instance, min((item.rank for item in found), default=CALM))
        where = address(instance["instance"])
        # its own cells only: ages and waits of streams always change and are no part of the piece
        rows.append({**row, "address": where, "shown": _shown(row["name"], where, own)})
    # sorted after all keys are given: they follow the desk file, whatever the order on the page
    order = sorted(rows, key=_ordering(sort))
    return {
        "cells": cells,
        "instances": order,
        "order": [row["key"] for row in order],
        "compact": compact,
        # what new cells must have in common with the page to fit it: else its script loads the page
        # anew
        "shape": ";".join(f"{row['name']}:{len(row['streams'])}" for row in rows),
    }


def _row(key: str, instance: Mapping[str, Any], rank: int) -> Row:
    return {
        "key": key,
        "rank": rank,
        "name": instance["instance"],
        "symbol": instance["symbol"],
        "streams": [
            {"key": f"{key}.s{place}", "timeframe": stream["timeframe"]}
            for place, stream in enumerate(instance["streams"])
        ],
        "limits": limits(instance.get("thresholds")),
    }


def _shown(name: str, address: str, cells: Cells) -> tuple[Any, ...]:
    """Return all that an instance's own cells show: the key of its rendered piece (views.kept)."""
    told = (
        (key, *(str(cell.get(part)) for part in ("text", "tone", "title", "hidden", "set")))
        for key, cell in cells.items()
    )
    return name, address, *told


def _ordering(sort: Sort) -> Callable[[Row], tuple[Any, ...]]:
    names = {"attention": ("rank", "name"), "name": ("name",), "desk": ()}[sort]
    return lambda row: tuple(row[name] for name in names)


# --- the desk at a glance -----------------------------------------------------------------------


def glance_cells(data: Mapping[str, Any], watch: WatchLink) -> Cells:
    """Return the cells on top: approvals, alarms, stale feeds, debates, cost, next ticks."""
    desk, streams = data["desk"], [s for one in data["instances"] for s in one["streams"]]
    waiting, alarms = desk.get("waiting") or 0, len(sequence(desk.get("alarms")))
    cells: Cells = {
        "glance.waiting": words(f"{waiting} to decide" if waiting else "none waits",
                                "warn" if waiting else ""),
        "glance.alarms": words(_number(alarms, "stands", "stand") if alarms else "none stands",
                               "alert" if alarms else ""),
        "glance.feeds": _feeds(streams),
        "glance.cost": _cost(desk),
        "glance.changes": _all_changes(data["instances"]),
    }  # fmt: skip
    soonest: dict[str, Any] = {}
    for stream in streams:
        # all streams of a timeframe close at the same moment
        soonest.setdefault(stream["timeframe"], stream.get("next_in_seconds"))
    for timeframe, left in soonest.items():
        cells[f"glance.next.{timeframe}"] = _countdown(left)
    return cells | _debate_cells(debates_of(data), watch)


def timeframes_of(data: Mapping[str, Any]) -> list[str]:
    """Return the timeframes of a desk, shortest first."""
    names = {s["timeframe"] for one in data["instances"] for s in one["streams"]}
    return sorted(names, key=clock.duration)


def debates_of(data: Mapping[str, Any]) -> list[Row]:
    """Return the debates that run now, newest first."""
    return [mapping(one) for one in sequence(data.get("debates"))]


def _feeds(streams: Sequence[Mapping[str, Any]]) -> Row:
    """Return how many streams are stale, without bars or without a tick, in words."""
    counts = Counter(_freshness(stream) for stream in streams)
    told = [f"{counts[word]} of {len(streams)} {word}" for word in FRESHNESS if counts[word]]
    bad = counts["stale"]
    fresh = "all fresh" if streams else "none yet"
    return words(", ".join(told) or fresh, "alert" if bad and bad == len(streams) else
                 "warn" if bad else "")  # fmt: skip


FRESHNESS: Final = ("stale", "without bars now", "without a tick yet")


def _freshness(stream: Mapping[str, Any]) -> str:
    if not stream.get("tick"):
        return FRESHNESS[2]
    if stream.get("quiet"):
        return FRESHNESS[1]
    return FRESHNESS[0] if stream.get("stale") else ""


def _cost(desk: Mapping[str, Any]) -> Row:
    cost, ceiling = figures.number(desk.get("cost_hour")), figures.number(desk.get("ceiling"))
    share = cost / ceiling if cost is not None and ceiling else 0.0
    tone = "alert" if share >= 1 else "warn" if share >= NEAR_CEILING else ""
    return words(f"{figures.plain(share * 100, 0)} % of the ceiling", tone)


def _all_changes(instances: Sequence[Mapping[str, Any]]) -> Row:
    known = [mapping(one.get("changes")) for one in instances]
    sums = {name: sum(int(one.get(name) or 0) for one in known) for name in ("changed", "all")}
    changed, every = (figures.plain(value, 0) for value in sums.values())
    return words(f"{changed} of {every}", title="ticks whose verdict is not the one of L1 alone")


def _countdown(left: Any) -> Row:
    known = figures.number(left)
    told = words(figures.countdown(left))
    return told if known is None else told | {"set": {"data-countdown": round(known, 1)}}


def _debate_cells(debates: Sequence[Row], watch: WatchLink) -> Cells:
    number = len(debates)
    cells = {"glance.debates": words(f"{number} running" if number else "none runs now")}
    # empty places too: the page's script fills cells and makes none
    for place in range(WATCHED):
        key = f"glance.debate.{place}"
        one = debates[place] if place < number else None
        address = watch(str(one["stream_id"])) if one else ""
        told = f"{figures.clean(one['instance'], 40)} {one['timeframe']}" if one else ""
        cells[key] = words(told) | showing(address) | {"set": {"href": address or "#"}}
    return cells


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


# --- an instance --------------------------------------------------------------------------------


def notices(instance: Mapping[str, Any], desk: Mapping[str, Any]) -> list[Notice]:
    """Return why an instance wants a look, the most urgent first."""
    return sorted(_notices(instance, desk))


def _notices(instance: Mapping[str, Any], desk: Mapping[str, Any]) -> Iterable[Notice]:
    waiting = mapping(desk.get("waiting_by")).get(instance["instance"])
    if waiting:
        yield Notice(0, "◔ approval waits", "warn")
    stale = [s["timeframe"] for s in instance["streams"] if s.get("stale")]
    if stale:
        yield Notice(1, f"◷ stale {', '.join(stale)}", "warn")
    latest = mapping(instance.get("latest"))
    if VETO in (latest.get("reason"), *sequence(latest.get("denied"))):
        yield Notice(2, figures.mark("VETO").text, "alert")
    left = [s["timeframe"] for s in instance["streams"] if _left_out(s)]
    if left:
        yield Notice(3, f"· skipped {', '.join(left)}", "warn")
    ticks = [mapping(stream.get("tick")) for stream in instance["streams"]]
    if any(tick.get("source_type") in PARTIAL for tick in ticks):
        yield Notice(4, "◐ PARTIAL", "warn")
    if any(_degraded(tick) for tick in ticks):
        yield Notice(4, figures.mark("DEGRADED").text, "warn")
    if not latest:
        yield Notice(5, "○ no tick yet", "flat")
    if instance["streams"] and all(s.get("quiet") for s in instance["streams"]):
        yield Notice(6, "◦ no bars", "flat")


def _left_out(stream: Mapping[str, Any]) -> bool:
    """Return whether a stream's newest close was skipped for more than want of a bar."""
    tick, skipped = mapping(stream.get("tick")), stream.get("skipped")
    told, tone = skips.note(tick, skipped, stream)
    return bool(told) and tone == "warn"


def _degraded(tick: Mapping[str, Any]) -> bool:
    flags = sequence(mapping(tick.get("deliberation")).get("flags"))
    return any(str(flag).partition(":")[0] == "degraded" for flag in flags)


def _attention(found: Sequence[Notice]) -> Row:
    tone = found[0].tone if found else ""
    return words(", ".join(item.text for item in found), tone) | showing(found)


def _watch(stream_id: Any, watch: WatchLink) -> Row:
    address = watch(str(stream_id)) if stream_id else ""
    return words("◌ debating: watch", "note") | showing(address) | {"set": {"href": address or "#"}}


def _instance(
    key: str, instance: Mapping[str, Any], desk: Mapping[str, Any], link: TickLink
) -> Cells:
    cells = verdict_cells(key, instance.get("latest"), link) | position_cells(key, instance)
    del cells[f"{key}.source"]  # each stream shows its own
    if not instance.get("latest"):
        cells[f"{key}.reason"] = words(first_tick(instance["streams"], desk, instance.get("feed")))
    cells[f"{key}.changes"] = changes_cell(instance.get("changes"))
    near = sources.near_event(instance["streams"], desk.get("now"))
    cells[f"{key}.event"] = words(near) | showing(near)
    return cells


def _shorten(key: str, cells: Cells, instance: Mapping[str, Any]) -> None:
    """Remove from a row what its symbol's page shows, and cells without content."""
    del cells[f"{key}.changes"]
    cells[f"{key}.levels"] |= showing(instance.get("position"))
    cells[f"{key}.when"] |= showing(instance.get("latest"))


FEEDS: Final = {
    "store": "none is imported: fill it with torra import",
    "sample": "the sample brings them by itself",
}
"""Where bars come from, by feed; any other one is a channel to MetaTrader 5."""


def first_tick(
    streams: Sequence[Mapping[str, Any]], desk: Mapping[str, Any], feed: Any = None
) -> str:
    """Return why no tick has run yet, and what the first one needs."""
    if desk.get("role") == "STANDBY":
        return (
            "No tick has run yet: this desk stands by. The one that holds the lease runs them, "
            "or this one when the lease runs out."
        )
    if not any(stream.get("newest_bar") for stream in streams):
        how = FEEDS.get(str(feed), "the feed has brought none: Health tells its age and state")
        return f"No tick has run yet: no bar is stored, and a tick reads 210 and more. Bars: {how}."
    return "No tick has run yet: the first comes with the close of the next bar."


def _meanings(instances: Sequence[Mapping[str, Any]]) -> Row:
    """Return the meanings of the source types that the overview shows now."""
    ticks = [mapping(stream.get("tick")) for one in instances for stream in one["streams"]]
    names = sorted({str(tick.get("source_type")) for tick in ticks} & set(figures.SOURCES))
    told = "; ".join(f"{name}: {figures.SOURCES[name]}" for name in names)
    return words(told or "which agents stand behind the scores")


# --- a stream -----------------------------------------------------------------------------------


def _stream(
    key: str, instance: Mapping[str, Any], stream: Mapping[str, Any], link: TickLink
) -> Cells:
    """Return everything of a stream, for a card."""
    tick = stream.get("tick") or {}
    cells: Cells = {}
    for vector in VECTORS:
        value = ((tick.get("scores") or {}).get(vector) or {}).get("score")
        cells[f"{key}.{vector}"] = cell(value, 2, NO_TICK)
        cells |= bar_cells(f"{key}.{vector}", value, (tick.get("l1") or {}).get(vector))
    cells[f"{key}.ath"] = cell(tick.get("ath"), 2, NO_TICK)
    cells |= bar_cells(f"{key}.composite", tick.get("composite"), tick.get("l1_composite"))
    cells[f"{key}.source"] = dash()
    if tick:
        address = link(instance["instance"], stream["timeframe"], tick["bar_time"])
        cells[f"{key}.source"] = source_cell(tick.get("source_type")) | {"set": {"href": address}}
    cells |= voice_cells(key, tick)
    cells[f"{key}.spark"] = words("") | {"set": {"d": figures.spark(stream.get("history", ()))}}
    cells[f"{key}.skip"] = skip_cell(tick, stream.get("skipped"), stream)
    cells[f"{key}.composite"] = cell(tick.get("composite"), 3, NO_TICK)
    return cells | age_cells(key, stream)


def _line(
    key: str, instance: Mapping[str, Any], stream: Mapping[str, Any], link: TickLink
) -> Cells:
    """Return the cells for which a row has room: composite, source, age, wait."""
    tick = stream.get("tick") or {}
    told = source_cell(tick.get("source_type"))
    # a row is narrow, and the rest of the word still tells the sources apart
    told["text"] = told["text"].replace("AGENT_", "")
    if tick:
        address = link(instance["instance"], stream["timeframe"], tick["bar_time"])
        told["set"] = {"href": address}
    return {
        f"{key}.composite": cell(tick.get("composite"), 3, NO_TICK),
        f"{key}.source": told,
        **age_cells(key, stream),
    }
