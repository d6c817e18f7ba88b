"""The state strip and the symbol page as cells: every changing figure, by name, as finished text.

The server renders the page from these cells. The page's script fetches the same cells as JSON. So
each figure is formatted in one place and looks the same with and without scripts.
A cell is {"text", "tone", "title"}. It may also carry "set" (attributes of an SVG element or a
link) and "hidden". Pure functions over what a DeskView returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from torra import clock
from torra.dashboard.cells import skips, sources, state_odds, timelines
from torra.dashboard.cells.chart_data import PRICES
from torra.dashboard.cells.common import (
    Cells,
    TickLink,
    action_cell,
    age_cells,
    changes_cell,
    dash,
    digits_of,
    position_cells,
    showing,
    side_of,
    skip_cell,
    source_cell,
    state_cell,
    verdict_cells,
    voice_cells,
    warning_cells,
    worded,
    words,
)
from torra.dashboard.record.reasoning import standing, why
from torra.dashboard.record.stored import Row
from torra.dashboard.view.stream_reading import LISTED as TICKS_SHOWN
from torra.exhibits import figures
from torra.exhibits.figures import cell

ROLES: Final = {"ACTIVE": "works (holds the lease)", "STANDBY": "stands by"}
"""What a desk's role means: the word ACTIVE alone reads like the trading state beside it."""

SHORT: Final = {
    "price_action": "Price action",
    "key_levels": "Key levels",
    "momentum": "Momentum",
    "structure": "Structure",
}


def strip(desk: Mapping[str, Any]) -> Cells:
    """Return the cells of the state strip and of the banners above every page."""
    cost, ceiling = figures.number(desk.get("cost_hour")), figures.number(desk.get("ceiling"))
    share = 0.0 if cost is None or not ceiling else min(1.0, cost / ceiling)
    trading = str(desk.get("trading_state"))
    used = figures.money(cost)
    return {
        "desk.time": words(figures.moment(desk.get("now"), seconds=True)),
        "desk.role": worded(desk.get("role"), ROLES.get(str(desk.get("role")))),
        "desk.trading": worded(trading, trading.lower()),
        "desk.cost": words(used, "alert" if share >= 1 else "warn" if share >= 0.8 else ""),
        "desk.ceiling": words(figures.money(ceiling, 2)),
        "desk.meter": words("", "") | {"set": {"width": round(share * 100, 2)}},
        "desk.pace": words(_pace(desk.get("rate"))),
        "nav.waiting": _waiting(desk.get("waiting")),
        "banner.alarms": showing(bool(desk.get("alarms"))),
        "desk.alarms": words(_alarms(desk.get("alarms") or ())),
        "banner.demo": showing(bool(desk.get("demo"))),
        "banner.standby": showing(desk.get("role") == "STANDBY"),
        "banner.reducing": showing(trading == "REDUCING"),
        "banner.halted": showing(trading == "HALTED"),
        "banner.blocked": showing(bool(desk.get("blocks"))),
        "desk.blocks": words(_blocks(desk.get("blocks") or ())),
        "desk.reason": words(
            figures.clean(desk.get("trading_reason"), 300) or "no reason was given"
        ),
    }


def _waiting(number: Any) -> Row:
    """Return how many proposals wait for a person; hidden when none does."""
    told = figures.plain(number, 0) if number else ""
    return words(told, "warn", "proposals that wait for a person") | showing(bool(number))


def _alarms(alarms: Sequence[Mapping[str, Any]]) -> str:
    """Return the subjects of the standing alarms."""
    return "; ".join(
        f"{figures.clean(item.get('kind'), 40)}: {figures.clean(item.get('detail'), 300)}"
        for item in alarms
    )


def _blocks(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Return the providers that are not asked for now, with reason and end (real time, UTC)."""
    return "; ".join(
        f"{figures.clean(item.get('provider'), 40)}: {figures.clean(item.get('reason'), 200)} "
        f"(until {str(item.get('until'))[11:16]} UTC, real time)"
        for item in blocks
    )


def symbol(data: Mapping[str, Any], link: TickLink, first_tick: str = "") -> Row:
    """Return {"cells", "rows", "shape", "lanes"} of a symbol page: head, list of ticks, timelines.

    `first_tick` says why there is none yet, where there is none.
    """
    cells = strip(data["desk"])
    latest = data.get("latest")
    stream = {"timeframe": data["timeframe"], "tick": latest}
    cells |= warning_cells([{"instance": data["instance"], "streams": [stream]}])
    near = sources.near_event([stream], data["desk"].get("now"))
    cells["head.event"] = words(near) | showing(near)
    cells |= verdict_cells("head", latest, link)
    if first_tick and not latest:
        cells["head.reason"] = words(first_tick)
    cells |= position_cells("head", data)
    cells |= age_cells("head", data)
    cells |= voice_cells("head", latest or {})
    cells["head.changes"] = changes_cell(data.get("changes"))
    cells["head.skip"] = skip_cell(latest or {}, next(iter(data.get("skipped", ())), None), data)
    events = tick_events(data)[:TICKS_SHOWN]
    for place, event in enumerate(events):
        cells |= _listed(f"tick.{place}", data, event, link)
    cells["ticks.empty"] = showing(not events)
    cells |= state_odds.odds_cells(data.get("markov"), data["timeframe"])
    drawn = lanes(data)
    for line in drawn.values():
        cells |= line["cells"]
    # new cells fit a page of the same shape only: else its script loads the page anew
    shape = f"{data['instance']}/{data['timeframe']}/{'chart' if data['bars'] else 'empty'}"
    return {"cells": cells, "rows": len(events), "shape": shape, "lanes": drawn}


def lanes(data: Mapping[str, Any]) -> dict[str, Row]:
    """Return the timelines of a symbol page: its states and its verdicts."""
    step = clock.duration(data["timeframe"])
    states, verdicts = timelines.state_events(data.get("markov")), timelines.verdict_events(data)
    return {
        "states": timelines.timeline("states", states, step, figures.STATES),
        "verdicts": timelines.timeline("verdicts", verdicts, step, figures.VERDICTS),
    }


def tick_events(data: Mapping[str, Any]) -> list[Row]:
    """Return ticks and skipped ticks together, newest first; a run of like skips is one event."""
    done = [dict(tick) for tick in data.get("ticks", ())]
    seen = {tick["bar_time"] for tick in done}
    # a close that was skipped first and then run late is a tick, not both
    late = [s for s in data.get("skipped", ()) if s["bar_time"] not in seen]
    left = [{**skip, "was_skipped": True} for skip in late]
    events = sorted(done + left, key=lambda event: str(event["bar_time"]), reverse=True)
    return skips.fold(events)


def trade_rows(data: Mapping[str, Any]) -> list[Row]:
    """Return the closed trades of an instance, newest first."""
    digits = digits_of(data)
    return [
        {
            "side": figures.mark(side_of(trade.get("side"))),
            "lots": figures.plain(trade.get("lots"), 2),
            "entry": figures.plain(_filled(trade), digits),
            "planned": _planned(trade, digits),
            "exit": figures.plain(trade.get("close_price"), digits),
            "closed_at": figures.moment(trade.get("closed_at")),
            "reason": figures.clean(trade.get("close_reason"), 60),
            "profit": cell(trade.get("profit"), 2),
            "r": cell(trade.get("r_multiple"), 2),
        }
        for trade in data.get("trades", ())
    ]


def bar_rows(data: Mapping[str, Any], limit: int = TICKS_SHOWN) -> list[Row]:
    """Return the newest bars with the scores of their ticks: the chart as a table."""
    digits = digits_of(data)
    ticks = {tick["bar_time"]: tick for tick in data.get("ticks", ())}
    rows = []
    for bar in list(data.get("bars", ()))[-limit:][::-1]:
        tick = ticks.get(bar["time"], {})
        rows.append(
            {
                "time": figures.moment(bar["time"]),
                "prices": [figures.plain(bar.get(n), digits) for n in PRICES],
                "consensus": cell(tick.get("consensus"), missing="no tick for this bar"),
                "verdict": figures.mark(tick["verdict"]).text if tick else figures.DASH,
                "action": action_cell(tick)["text"] if tick else figures.DASH,
            }
        )
    return rows


def _filled(trade: Mapping[str, Any]) -> Any:
    """Return the price of a fill, from which profit counts; the planned price without one."""
    return trade.get("entry") if trade.get("price") is None else trade["price"]


def _planned(trade: Mapping[str, Any], digits: int) -> str:
    planned, filled = (figures.plain(v, digits) for v in (trade.get("entry"), _filled(trade)))
    return "" if planned in (filled, figures.DASH) else f"planned {planned}"


def _listed(key: str, data: Mapping[str, Any], event: Mapping[str, Any], link: TickLink) -> Cells:
    bar_time = str(event["bar_time"])
    address = link(data["instance"], data["timeframe"], bar_time)
    names = ("verdict", "l1_verdict", "action", "consensus", "l1_consensus", "source")
    if event.get("was_skipped"):
        cells = {name: dash("skipped") for name in names}
        tone = skips.tone(event)
        cells["action"] = state_cell("skipped") | {"tone": tone}
        cells["reason"] = words(skips.text(event, data["timeframe"]), tone)
    else:
        cells = {
            "verdict": state_cell(event.get("verdict")),
            "l1_verdict": state_cell(event.get("l1_verdict")),
            "action": action_cell(event),
            "consensus": cell(event.get("consensus")),
            "l1_consensus": cell(event.get("l1_consensus")),
            "source": source_cell(event.get("source_type")),
            "reason": words(_why(event)),
        }
    close = event.get("close_time") or event.get("as_of")
    if not close:
        # a skipped close has no record with its time
        close = skips.close_of(bar_time, data["timeframe"])
    cells["when"] = words(figures.moment(close)) | {"set": {"href": address}}
    return {f"{key}.{name}": value for name, value in cells.items()}


def _why(event: Mapping[str, Any]) -> str:
    """Return why a listed tick did what it did, by its own thresholds: today's may differ."""
    if event.get("reason") == "THRESHOLD" and not event.get("thresholds"):
        return "between the thresholds of its time"
    return why(event) or standing(event).removeprefix("is ") or figures.DASH


def _pace(rate: Any) -> str:
    known = figures.number(rate)
    times = "" if known is None else f"{figures.loose(known)} times "
    return f"replayed {times}faster than they happened"
