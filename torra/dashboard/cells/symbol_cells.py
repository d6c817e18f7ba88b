"""The symbol page as cells: every changing figure, by name, as finished text.

A cell is {"text", "tone", "title"}. It may also carry "set" (attributes of an SVG element or a
link) and "hidden". Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypedDict

from torra import clock
from torra.dashboard.cells import skips, sources, state_odds, timelines
from torra.dashboard.cells.common import (
    Cells,
    TickLink,
    action_cell,
    age_cells,
    changes_cell,
    dash,
    origin_cell,
    position_cells,
    showing,
    skip_cell,
    source_cell,
    state_cell,
    verdict_cells,
    voice_cells,
    warning_cells,
    words,
    zone_cells,
)
from torra.dashboard.cells.timelines import Timeline
from torra.dashboard.record import reasoning
from torra.dashboard.record.reasoning import standing, why
from torra.dashboard.record.shown import ListedTick
from torra.dashboard.view.desk_values import (
    OverviewSymbol,
    Skip,
    Symbol,
)
from torra.dashboard.view.stream_reading import LISTED as TICKS_SHOWN
from torra.exhibits import figures
from torra.exhibits.beyond.outside_row import OutsideShown
from torra.exhibits.figures import cell
from torra.verdict.one_sided import verdict_balance
from torra.verdict.risk_engine import OPENS

OPENED: Final[Mapping[str, str]] = {str(order): position for order, position in OPENS.items()}
"""The position that an order of a side opens."""


class SymbolShown(TypedDict):
    """The cells of a symbol page, how many ticks it lists, and its timelines.

    `beyond` is what the newest tick knew from beyond the chart, None where its record cannot tell.
    """

    cells: Cells
    rows: int
    lanes: dict[str, Timeline]
    beyond: OutsideShown | None


def symbol(data: Symbol, link: TickLink, first_tick: str = "") -> SymbolShown:
    """Return a symbol page: head, list of ticks, timelines.

    `first_tick` says why there is none yet, where there is none.
    """
    latest = data.latest
    cells = warning_cells([OverviewSymbol(instance=data.instance, streams=(data.stream,))])
    near = sources.near_event([latest], data.desk.now)
    cells["head.event"] = words(near) | showing(near)
    cells |= verdict_cells("head", latest, link)
    if first_tick and not latest:
        cells["head.reason"] = words(first_tick)
    cells |= position_cells("head", data) | zone_cells("head.consensus", data)
    cells |= age_cells("head", data.stream)
    cells |= voice_cells("head", latest)
    cells["head.changes"] = changes_cell(data.changes)
    cells["head.origin"] = origin_cell(data)
    cells["head.skip"] = skip_cell(next(iter(data.skipped), None), data.stream)
    sided = verdict_balance(data.sides)
    cells["head.sided"] = words(f"! One side is rare: {sided}." if sided else "", "warn") | showing(
        sided
    )
    events = tick_events(data)[:TICKS_SHOWN]
    for place, event in enumerate(events):
        cells |= _listed(f"tick.{place}", data, event, link)
    cells["ticks.empty"] = showing(not events)
    cells |= state_odds.odds_cells(data.states, data.stream.timeframe)
    drawn = lanes(data)
    for line in drawn.values():
        cells |= line.cells
    beyond = None if latest is None else reasoning.beyond(latest)
    cells |= _beyond(beyond)
    return {"cells": cells, "rows": len(events), "lanes": drawn, "beyond": beyond}


def _beyond(told: OutsideShown | None) -> Cells:
    """Return what the newest tick knew from beyond the chart, row by row."""
    cells: Cells = {}
    if told is None:
        return cells
    cells["beyond.brief"] = words(told.brief)
    for place, row in enumerate(told.rows):
        for name in ("name", "value", "change", "rank", "origin"):
            tone = "warn" if name == "value" and row.old else ""
            cells[f"beyond.{place}.{name}"] = words(getattr(row, name), tone)
    for place, note in enumerate(told.notes):
        cells[f"beyond.note.{place}"] = words(note)
    return cells


def lanes(data: Symbol) -> dict[str, Timeline]:
    """Return the timelines of a symbol page: its states and its verdicts."""
    step = clock.duration(data.stream.timeframe)
    states, verdicts = timelines.state_events(data.states), timelines.verdict_events(data)
    return {
        "states": timelines.timeline("states", states, step, figures.STATES),
        "verdicts": timelines.timeline(
            "verdicts", verdicts, step, timelines.verdict_lanes(verdicts)
        ),
    }


def tick_events(data: Symbol) -> list[ListedTick | Skip]:
    """Return ticks and skipped ticks together, newest first; a run of like skips is one event."""
    seen = {tick.bar_time for tick in data.ticks}
    # a close that was skipped first and then run late is a tick, not both
    left = [skip for skip in data.skipped if skip.bar_time not in seen]
    events: list[ListedTick | Skip] = [*data.ticks, *left]
    return skips.fold(sorted(events, key=lambda event: str(event.bar_time), reverse=True))


def _listed(key: str, data: Symbol, event: ListedTick | Skip, link: TickLink) -> Cells:
    bar_time = str(event.bar_time)
    timeframe = data.stream.timeframe
    address = link(data.instance, timeframe, bar_time)
    close = event.close_time
    names = ("verdict", "l1_verdict", "action", "consensus", "l1_consensus", "source")
    if isinstance(event, Skip):
        cells: Cells = {name: dash("skipped") for name in names}
        tone = skips.tone(event)
        cells["action"] = state_cell("skipped") | {"tone": tone}
        cells["reason"] = words(skips.text(event, timeframe), tone)
    else:
        cells = {
            "verdict": state_cell(event.verdict),
            "l1_verdict": state_cell(event.l1_verdict),
            "action": action_cell(event),
            "consensus": cell(event.consensus),
            "l1_consensus": cell(event.l1_consensus),
            "source": source_cell(event.source_type),
            "reason": words(_why(event)),
        }
        close = close or event.as_of
    if not close:
        # a skipped close has no record with its time
        close = skips.close_of(bar_time, timeframe)
    cells["when"] = words(figures.moment(close)) | {"set": {"href": address}}
    return {f"{key}.{name}": value for name, value in cells.items()}


def _why(event: ListedTick) -> str:
    """Return why a listed tick did what it did, by its own thresholds: today's may differ."""
    if event.reason == "THRESHOLD" and not event.thresholds:
        return "between the thresholds of its time"
    return why(event) or standing(event).removeprefix("is ") or figures.DASH
