"""The overview and the symbol page as cells: every changing figure by name, already written out.

A page is rendered from these cells and the live module of the browser asks for the same cells
again as JSON, so a figure is formatted in one place and looks the same with and without scripts.
A cell is {"text", "tone", "title"} and may carry "set" (attributes of an SVG or a link) and
"hidden". Pure functions over what a DeskView returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agents.contracts import VECTORS
from torra import clock
from torra.dashboard import agreement, figures, skips, sources, vetoes
from torra.dashboard.desk_view import LISTED as TICKS_SHOWN
from torra.dashboard.figures import cell
from torra.dashboard.reasoning import headline, standing, why
from torra.dashboard.stored import Row, mapping

Cells = dict[str, Row]
TickLink = Callable[[str, str, str], str]
"""Returns the address of a tick's page from instance, timeframe and bar_time."""

NO_TICK: Final = "no tick yet"
ROLES: Final = {"ACTIVE": "works (holds the lease)", "STANDBY": "stands by"}
"""What the desk's role means: its word alone would read like the trading state beside it."""

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
        "desk.time": _text(figures.moment(desk.get("now"), seconds=True)),
        "desk.role": _worded(desk.get("role"), ROLES.get(str(desk.get("role")))),
        "desk.trading": _worded(trading, trading.lower()),
        "desk.cost": _text(used, "alert" if share >= 1 else "warn" if share >= 0.8 else ""),
        "desk.ceiling": _text(figures.money(ceiling, 2)),
        "desk.meter": _text("", "") | {"set": {"width": round(share * 100, 2)}},
        "desk.pace": _text(_pace(desk.get("rate"))),
        "nav.waiting": _waiting(desk.get("waiting")),
        "banner.alarms": _shown(bool(desk.get("alarms"))),
        "desk.alarms": _text(_alarms(desk.get("alarms") or ())),
        "banner.demo": _shown(bool(desk.get("demo"))),
        "banner.standby": _shown(desk.get("role") == "STANDBY"),
        "banner.reducing": _shown(trading == "REDUCING"),
        "banner.halted": _shown(trading == "HALTED"),
        "banner.blocked": _shown(bool(desk.get("blocks"))),
        "desk.blocks": _text(_blocks(desk.get("blocks") or ())),
        "desk.reason": _text(
            figures.clean(desk.get("trading_reason"), 300) or "no reason was given"
        ),
    }


def _waiting(number: Any) -> Row:
    """Return how many proposals wait for a person; hidden when none does."""
    told = figures.plain(number, 0) if number else ""
    return _text(told, "warn", "proposals that wait for a person") | _shown(bool(number))


def _alarms(alarms: Sequence[Mapping[str, Any]]) -> str:
    """Say what the alarms that stand are about."""
    return "; ".join(
        f"{figures.clean(item.get('kind'), 40)}: {figures.clean(item.get('detail'), 300)}"
        for item in alarms
    )


def _blocks(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Say which providers are left alone, why, and until when (real time, UTC)."""
    return "; ".join(
        f"{figures.clean(item.get('provider'), 40)}: {figures.clean(item.get('reason'), 200)} "
        f"(until {str(item.get('until'))[11:16]} UTC, real time)"
        for item in blocks
    )


def overview(data: Mapping[str, Any], link: TickLink) -> Row:
    """Return {"cells", "instances", "shape"} of the overview."""
    cells = strip(data["desk"]) | _sources(data["instances"])
    cells["legend.sources"] = _meanings(data["instances"])
    instances = []
    for number, instance in enumerate(data["instances"]):
        cells |= _instance(f"i{number}", instance, link)
        near = sources.near_event(instance["streams"], data["desk"].get("now"))
        cells[f"i{number}.event"] = _text(near) | _shown(near)
        streams = []
        for place, stream in enumerate(instance["streams"]):
            cells |= _stream(f"i{number}.s{place}", instance, stream, link)
            streams.append({"key": f"i{number}.s{place}", "timeframe": stream["timeframe"]})
        instances.append(
            {
                "key": f"i{number}",
                "name": instance["instance"],
                "symbol": instance["symbol"],
                "streams": streams,
                "limits": limits(instance.get("thresholds")),
            }
        )
    shape = ";".join(f"{i['name']}:{len(i['streams'])}" for i in instances)
    return {"cells": cells, "instances": instances, "shape": shape}


def symbol(data: Mapping[str, Any], link: TickLink) -> Row:
    """Return {"cells", "rows", "shape"} of a symbol page: its head and its list of ticks."""
    cells = strip(data["desk"])
    latest = data.get("latest")
    stream = {"timeframe": data["timeframe"], "tick": latest}
    cells |= _sources([{"instance": data["instance"], "streams": [stream]}])
    near = sources.near_event([stream], data["desk"].get("now"))
    cells["head.event"] = _text(near) | _shown(near)
    cells |= _verdicts("head", latest, link)
    cells |= _position("head", data)
    cells |= _ages("head", data)
    cells |= _desk("head", latest or {})
    cells["head.changes"] = _changes(data.get("changes"))
    cells["head.skip"] = _skip(latest or {}, next(iter(data.get("skipped", ())), None), data)
    events = tick_events(data)[:TICKS_SHOWN]
    for place, event in enumerate(events):
        cells |= _listed(f"tick.{place}", data, event, link)
    cells["ticks.empty"] = _shown(not events)
    shape = f"{data['instance']}/{data['timeframe']}/{'chart' if data['bars'] else 'empty'}"
    return {"cells": cells, "rows": len(events), "shape": shape}


def tick_events(data: Mapping[str, Any]) -> list[Row]:
    """Return ticks and skipped ticks together, newest first; a run of like skips is one event."""
    done = [dict(tick) for tick in data.get("ticks", ())]
    seen = {tick["bar_time"] for tick in done}
    late = [s for s in data.get("skipped", ()) if s["bar_time"] not in seen]
    left = [{**skip, "was_skipped": True} for skip in late]
    events = sorted(done + left, key=lambda event: str(event["bar_time"]), reverse=True)
    return skips.fold(events)


def chart(data: Mapping[str, Any]) -> Row:
    """Return what the chart draws; times are UTC seconds, tones are names of colours."""
    ticks = sorted(data.get("ticks", ()), key=lambda tick: str(tick["bar_time"]))
    return {
        "digits": data.get("digits") if data.get("digits") is not None else 5,
        "candles": [_candle(bar) for bar in data.get("bars", ())],
        "consensus": _series(ticks, "consensus"),
        "l1": _series(ticks, "l1_consensus"),
        "markers": _tick_markers(ticks) + _exits(data),
        "levels": _levels(data.get("position")),
        "thresholds": limits(data.get("thresholds")),
    }


def limits(thresholds: Any) -> Row:
    """Return the thresholds as numbers on the score axis and as places on a signed bar."""
    known = thresholds or {}
    buy, sell = figures.number(known.get("buy")), figures.number(known.get("sell"))
    low = None if sell is None else -sell
    return {
        "buy": buy,
        "sell": low,
        "buy_x": None if buy is None else figures.position_on_axis(buy),
        "sell_x": None if low is None else figures.position_on_axis(low),
        "buy_y": None if buy is None else round((1 - buy) / 2 * figures.SPARK_HEIGHT, 2),
        "sell_y": None if low is None else round((1 - low) / 2 * figures.SPARK_HEIGHT, 2),
    }


def trade_rows(data: Mapping[str, Any]) -> list[Row]:
    """Return the closed trades of an instance, newest first."""
    digits = _digits(data)
    return [
        {
            "side": figures.mark(_side(trade.get("side"))),
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
    digits = _digits(data)
    ticks = {tick["bar_time"]: tick for tick in data.get("ticks", ())}
    rows = []
    for bar in list(data.get("bars", ()))[-limit:][::-1]:
        tick = ticks.get(bar["time"], {})
        rows.append(
            {
                "time": figures.moment(bar["time"]),
                "prices": [figures.plain(bar.get(n), digits) for n in _PRICES],
                "consensus": cell(tick.get("consensus"), missing="no tick for this bar"),
                "verdict": figures.mark(tick["verdict"]).text if tick else figures.DASH,
                "action": figures.mark(tick["action"]).text if tick else figures.DASH,
            }
        )
    return rows


_PRICES: Final = ("open", "high", "low", "close")


def _instance(key: str, instance: Mapping[str, Any], link: TickLink) -> Cells:
    latest = instance.get("latest")
    cells = _verdicts(key, latest, link) | _position(key, instance)
    del cells[f"{key}.source"]  # each stream shows its own
    cells[f"{key}.changes"] = _changes(instance.get("changes"))
    return cells


def _sources(instances: Sequence[Mapping[str, Any]]) -> Cells:
    """Return the warnings of calendar and news, hidden when there is nothing to warn of."""
    told = {
        "calendar": sources.calendar_warning(instances),
        "news": sources.news_warning(instances),
    }
    return {
        f"warning.{name}": _text(f"! {text}.", "warn") | _shown(text) for name, text in told.items()
    }


def _meanings(instances: Sequence[Mapping[str, Any]]) -> Row:
    """Return what the sources mean that the overview shows now."""
    ticks = [mapping(stream.get("tick")) for one in instances for stream in one["streams"]]
    names = sorted({str(tick.get("source_type")) for tick in ticks} & set(figures.SOURCES))
    told = "; ".join(f"{name}: {figures.SOURCES[name]}" for name in names)
    return _text(told or "which agents stand behind the scores")


def _verdicts(key: str, latest: Any, link: TickLink) -> Cells:
    if not latest:
        empty = {
            name: _missing()
            for name in ("verdict", "l1_verdict", "action", "consensus", "l1_consensus", "source")
        }
        cells = {f"{key}.{name}": value for name, value in empty.items()}
        why = "No tick has run yet: the first comes with the close of the next bar."
        cells[f"{key}.reason"] = _text(why)
        cells[f"{key}.when"] = _missing()
        return cells | _bar(f"{key}.consensus", None, None)
    address = link(latest["instance"], latest["timeframe"], latest["bar_time"])
    consensus, l1 = latest.get("consensus"), latest.get("l1_consensus")
    close = figures.moment(latest.get("as_of"))
    cells = {
        "verdict": _mark(latest.get("verdict")),
        "l1_verdict": _mark(latest.get("l1_verdict")),
        "action": _mark(latest.get("action")),
        "consensus": cell(consensus),
        "l1_consensus": cell(l1),
        "source": _source(latest.get("source_type")),
        "reason": _text(_reason(latest)),
        "when": _text(f"{latest['timeframe']} tick of {close}") | {"set": {"href": address}},
    }
    return {f"{key}.{name}": value for name, value in cells.items()} | _bar(
        f"{key}.consensus", consensus, l1
    )


def _stream(
    key: str, instance: Mapping[str, Any], stream: Mapping[str, Any], link: TickLink
) -> Cells:
    tick = stream.get("tick") or {}
    cells: Cells = {}
    for vector in VECTORS:
        value = ((tick.get("scores") or {}).get(vector) or {}).get("score")
        cells[f"{key}.{vector}"] = cell(value, 2, NO_TICK)
        cells |= _bar(f"{key}.{vector}", value, (tick.get("l1") or {}).get(vector))
    cells[f"{key}.ath"] = cell(tick.get("ath"), 2, NO_TICK)
    cells[f"{key}.composite"] = cell(tick.get("composite"), 3, NO_TICK)
    cells |= _bar(f"{key}.composite", tick.get("composite"), tick.get("l1_composite"))
    cells[f"{key}.source"] = _missing()
    if tick:
        address = link(instance["instance"], stream["timeframe"], tick["bar_time"])
        cells[f"{key}.source"] = _source(tick.get("source_type")) | {"set": {"href": address}}
    cells |= _desk(key, tick)
    cells[f"{key}.spark"] = _text("") | {"set": {"d": figures.spark(stream.get("history", ()))}}
    cells[f"{key}.skip"] = _skip(tick, stream.get("skipped"), stream)
    return cells | _ages(key, stream)


def _desk(key: str, tick: Mapping[str, Any]) -> Cells:
    """Return the regime of a tick, and whether its desk was short of voices; hidden when not."""
    name = mapping(tick.get("regime")).get("name")
    deliberation = mapping(tick.get("deliberation"))
    why, silent = agreement.degraded(deliberation), agreement.silence(deliberation)
    badge = f"{figures.mark('DEGRADED').text}, {silent}" if why and silent else silent
    short = _text(badge, "warn" if why else "flat", why or "of the desk's agents")
    return {
        f"{key}.regime": _mark(name or "") | {"title": "the regime of the market"} | _shown(name),
        f"{key}.short": short | _shown(badge),
    }


def _ages(key: str, stream: Mapping[str, Any]) -> Cells:
    age, stale = stream.get("age_seconds"), bool(stream.get("stale"))
    badge = _text("◷ stale", "warn", "the newest tick is older than one and a half bars")
    if stream.get("quiet"):
        badge = _text("◦ no bars", "flat", skips.NO_BARS)
    left = figures.number(stream.get("next_in_seconds"))
    wait = _text(figures.countdown(left))
    if left is not None:
        wait["set"] = {"data-countdown": round(left, 1)}
    return {
        f"{key}.age": _text(figures.span(age), "warn" if stale else "", "" if age else NO_TICK),
        f"{key}.stale": badge | _shown(stale or bool(stream.get("quiet"))),
        f"{key}.next": wait,
    }


def _position(key: str, instance: Mapping[str, Any]) -> Cells:
    position = instance.get("position")
    if not position:
        return {
            f"{key}.position": _text("flat", "flat"),
            f"{key}.levels": _text("nothing is held or opening"),
        }
    digits = _digits(instance)
    side = figures.mark(_side(position.get("side")))
    state = str(position.get("state") or "")
    opening = "" if state in ("", "FILLED") else f" ({figures.clean(state, 20).lower()})"
    lots = figures.plain(position.get("lots"), 2)
    price = figures.plain(position.get("entry"), digits)
    held = f"{side.text} {lots} at {price}{opening}{_gain(position)}"
    return {
        f"{key}.position": _text(held, side.tone),
        f"{key}.levels": _text(
            f"stop {figures.plain(position.get('stop'), digits)}, "
            f"target {figures.plain(position.get('target'), digits)}{_leave(position, digits)}",
            title="what a close at the newest bar's close would get: a long leaves at the bid, "
            "a short pays the spread on top of it",
        ),
    }


def _gain(position: Mapping[str, Any]) -> str:
    if figures.number(position.get("profit")) is None:
        return ""
    money, r = figures.signed(position["profit"], 2), figures.signed(position.get("r_multiple"), 2)
    return f", {money}, {r}\u00a0R"


def _leave(position: Mapping[str, Any], digits: int) -> str:
    if figures.number(position.get("leave")) is None:
        return ""
    return f", closing now at {figures.plain(position['leave'], digits)}"


def _filled(trade: Mapping[str, Any]) -> Any:
    """Return what an opening was filled at, which its profit counts from; the plan without it."""
    return trade.get("entry") if trade.get("price") is None else trade["price"]


def _planned(trade: Mapping[str, Any], digits: int) -> str:
    planned, filled = (figures.plain(v, digits) for v in (trade.get("entry"), _filled(trade)))
    return "" if planned in (filled, figures.DASH) else f"planned {planned}"


def _changes(changes: Any) -> Row:
    known = changes or {}
    changed, every = (figures.plain(known.get(name), 0) for name in ("changed", "all"))
    told = f"agents changed {changed} of {every} verdicts"
    return _text(told, title="ticks whose verdict is not the one of L1 alone")


def _listed(key: str, data: Mapping[str, Any], event: Mapping[str, Any], link: TickLink) -> Cells:
    bar_time = str(event["bar_time"])
    address = link(data["instance"], data["timeframe"], bar_time)
    names = ("verdict", "l1_verdict", "action", "consensus", "l1_consensus", "source")
    if event.get("was_skipped"):
        cells = {name: _missing("skipped") for name in names}
        tone = skips.tone(event)
        cells["action"] = _mark("skipped") | {"tone": tone}
        cells["reason"] = _text(skips.text(event, data["timeframe"]), tone)
    else:
        cells = {
            "verdict": _mark(event.get("verdict")),
            "l1_verdict": _mark(event.get("l1_verdict")),
            "action": _mark(event.get("action")),
            "consensus": cell(event.get("consensus")),
            "l1_consensus": cell(event.get("l1_consensus")),
            "source": _source(event.get("source_type")),
            "reason": _text(_why(event)),
        }
    close = event.get("close_time") or event.get("as_of")
    if not close:
        close = skips.close_of(bar_time, data["timeframe"])
    cells["when"] = _text(figures.moment(close)) | {"set": {"href": address}}
    return {f"{key}.{name}": value for name, value in cells.items()}


def _why(event: Mapping[str, Any]) -> str:
    """Say why a listed tick did what it did, by its own thresholds: today's may be others."""
    if event.get("reason") == "THRESHOLD" and not event.get("thresholds"):
        return "between the thresholds of its time"
    return why(event) or standing(event).removeprefix("is ") or figures.DASH


def _skip(tick: Mapping[str, Any], skipped: Any, stream: Mapping[str, Any]) -> Row:
    told, tone = skips.note(tick, skipped, stream)
    return _text(told, tone) | _shown(bool(told))


def _reason(latest: Mapping[str, Any]) -> str:
    told, veto = why(latest), vetoes.cause(latest)
    denied = ", ".join(figures.clean(reason, 40) for reason in latest.get("denied") or ())
    more = told if not denied or denied in told else f"{told} ({denied})" if told else denied
    if veto and veto not in more:
        more += f" {figures.mark('VETO').text} of openings: {veto}."
    return f"{headline(latest)} {more}".strip()


def _bar(key: str, value: Any, l1: Any) -> Cells:
    place = figures.position_on_axis(l1)
    known = figures.number(l1) is not None
    return {
        f"{key}.bar": _text("", figures.tone(value)) | {"set": figures.signed_bar(value)},
        f"{key}.mark": _text("")
        | {"set": {"x1": place, "x2": place, "opacity": 1 if known else 0}},
    }


def _candle(bar: Mapping[str, Any]) -> Row:
    return {"time": _seconds(bar["time"]), **{name: bar.get(name) for name in _PRICES}}


def _series(ticks: Sequence[Mapping[str, Any]], name: str) -> list[Row]:
    return [
        {"time": _seconds(tick["bar_time"]), "value": tick[name]}
        for tick in ticks
        if figures.number(tick.get(name)) is not None
    ]


def _tick_markers(ticks: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return a marker for every action and for every verdict that was not carried out."""
    markers, before = [], None
    for tick in ticks:
        action, verdict = str(tick.get("action")), tick.get("verdict")
        if action not in ("HOLD", "None"):
            shown = figures.mark(action)
            text = shown.word.removeprefix("OPEN_").lower()
            markers.append(_marker(tick["bar_time"], shown.tone, text, action))
        elif verdict in ("BUY", "SELL") and verdict != before:
            markers.append(_marker(tick["bar_time"], "flat", "", str(verdict)))
        before = verdict
    return markers


def _exits(data: Mapping[str, Any]) -> list[Row]:
    markers = []
    for trade in data.get("trades", ()):
        closed = trade.get("closed_at")
        if not closed:
            continue
        bar_time = clock.iso(clock.floor(clock.parse(str(closed)), data["timeframe"]))
        gain = figures.number(trade.get("profit"))
        text = f"{figures.clean(trade.get('close_reason') or 'exit', 20)} {figures.signed(gain, 0)}"
        markers.append(_marker(bar_time, figures.tone(gain, 0) or "flat", text, "EXIT"))
    return markers


def _marker(bar_time: Any, tone: str, text: str, kind: str) -> Row:
    return {"time": _seconds(bar_time), "tone": tone, "text": text, "kind": kind}


def _levels(position: Any) -> list[Row]:
    if not position:
        return []
    tones = {"entry": "note", "stop": "down", "target": "up"}
    return [
        {"price": position[name], "title": name, "tone": tone}
        for name, tone in tones.items()
        if figures.number(position.get(name)) is not None
    ]


def _seconds(moment: Any) -> int:
    return int(clock.parse(str(moment)).timestamp())


def _digits(data: Mapping[str, Any]) -> int:
    digits = data.get("digits")
    return 5 if digits is None else int(digits)


def _side(side: Any) -> Any:
    return {"BUY": "LONG", "SELL": "SHORT"}.get(str(side), side)


def _text(text: str, tone: str = "", title: str = "") -> Row:
    return {"text": text, "tone": tone, "title": title}


def _mark(name: Any) -> Row:
    shown = figures.mark(name)
    return _text(shown.text.strip(), shown.tone)


def _worded(name: Any, word: str | None) -> Row:
    """Return a state with another word than its own."""
    shown = figures.mark(name)
    return _text(f"{shown.glyph} {word or shown.word}".strip(), shown.tone)


def _pace(rate: Any) -> str:
    known = figures.number(rate)
    times = "" if known is None else f"{figures.loose(known)} times "
    return f"replayed {times}faster than they happened"


def _source(name: Any) -> Row:
    return _mark(name) | {"title": figures.SOURCES.get(str(name), "")}


def _missing(reason: str = NO_TICK) -> Row:
    return _text(figures.DASH, "", reason)


def _shown(yes: Any) -> Row:
    return {"hidden": not yes}
