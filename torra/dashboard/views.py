"""The routes of the pages: each asks the desk's view, arranges the answer and renders it.

Read-only: every route here answers GET (and HEAD) and changes nothing. What is not there is a 404;
an error becomes one of our own pages by the handlers of `app`. Formatting is left to `screens` and
`reasoning`, headers and the Host check to `app`.
"""

from __future__ import annotations

from typing import Final

from flask import abort, g, jsonify, url_for
from flask.typing import ResponseReturnValue

from agent_config import OPPOSITION_COST, SIDE_FROM
from torra import clock
from torra.dashboard import figures, reasoning, screens, surroundings
from torra.dashboard.rendering import desk_view, page, tick_link
from torra.dashboard.routes import Route
from torra.dashboard.stored import Row

CHART_BARS: Final = 300
"""Bars and ticks that a symbol page shows."""

FALLBACK_CHART: Final = (600.0, 200.0)
"""Coordinates of the price line that stands in for the chart without scripts."""


def overview() -> str:
    """Show every symbol of the desk."""
    data = desk_view().overview()
    return page(
        "overview.html",
        data["desk"],
        live=url_for(".api_overview"),
        **screens.overview(data, tick_link),
    )


def instance_page(instance: str) -> ResponseReturnValue:
    """Show the shortest timeframe of an instance."""
    known = {one["instance"]: one["timeframes"] for one in desk_view().overview()["instances"]}
    return symbol_page(instance, known[instance][0]) if known.get(instance) else abort(404)


def symbol_page(instance: str, timeframe: str) -> str:
    """Show the chart and the ticks of one stream."""
    data = known_symbol(instance, timeframe)
    closes = [bar.get("close") for bar in data["bars"]]
    return page(
        "symbol.html",
        data["desk"],
        live=url_for(".api_symbol", instance=instance, timeframe=timeframe),
        data=data,
        limits=screens.limits(data.get("thresholds")),
        trades=screens.trade_rows(data),
        bars=screens.bar_rows(data),
        fallback=figures.line(closes, *FALLBACK_CHART),
        **screens.symbol(data, tick_link),
    )


def tick_page(instance: str, timeframe: str, bar_time: str) -> str:
    """Show the reasoning of one tick."""
    record = known_tick(instance, timeframe, bar_time)
    return page(
        "tick.html",
        record["desk"],
        live=url_for(".api_desk"),
        cells=screens.strip(record["desk"]),
        shape="desk",
        record=record,
        close_time=figures.moment(record.get("as_of")),
        story=reasoning.story(record),
        vectors=list(screens.SHORT.values()),
    )


def help_page() -> str:
    """Explain how to read the numbers."""
    desk = desk_view().desk()
    return page(
        "help.html",
        desk,
        live=url_for(".api_desk"),
        cells=screens.strip(desk),
        shape="desk",
        sources=figures.SOURCES,
        marks=figures.MARKS,
        regimes=surroundings.REGIMES,
        triage=surroundings.TRIAGE,
        cost=OPPOSITION_COST,
        side=SIDE_FROM,
    )


def missing_page(missing: str) -> ResponseReturnValue:  # noqa: ARG001  the rule names it
    """Answer an address below our prefix that has no page."""
    abort(404)


def healthz() -> ResponseReturnValue:
    """Answer a monitor: what runs, how old each stream is."""
    data = desk_view().overview()
    desk = data["desk"]
    streams = [
        {
            "instance": one["instance"],
            "timeframe": stream["timeframe"],
            "close_time": (stream.get("tick") or {}).get("as_of"),
            "age_seconds": stream.get("age_seconds"),
            "stale": bool(stream.get("stale")),
            "no_bars": bool(stream.get("quiet")),
        }
        for one in data["instances"]
        for stream in one["streams"]
    ]
    healthy = desk.get("trading_state") != "HALTED" and not any(s["stale"] for s in streams)
    status = "ok" if healthy else "attention"
    if g.get("torra_visitor") is None:
        return jsonify(status=status)
    names = ("version", "role", "trading_state", "demo")
    return jsonify(
        status=status,
        desk_time=desk.get("now"),
        streams=streams,
        **{name: desk.get(name) for name in names},
    )


def api_desk() -> ResponseReturnValue:
    """Answer the cells of the state strip."""
    return jsonify(shape="desk", cells=screens.strip(desk_view().desk()))


def api_overview() -> ResponseReturnValue:
    """Answer the desk as it is stored, and the overview's cells."""
    data = desk_view().overview()
    shown = screens.overview(data, tick_link)
    return jsonify(shape=shown["shape"], cells=shown["cells"], desk=data["desk"])


def api_symbol(instance: str, timeframe: str) -> ResponseReturnValue:
    """Answer the cells and the chart of a symbol page."""
    data = known_symbol(instance, timeframe)
    shown = screens.symbol(data, tick_link)
    return jsonify(**shown, chart=screens.chart(data))


def api_tick(instance: str, timeframe: str, bar_time: str) -> ResponseReturnValue:
    """Answer one tick's record as it is stored."""
    return jsonify(known_tick(instance, timeframe, bar_time))


def known_symbol(instance: str, timeframe: str) -> Row:
    """Return a stream's data or end the request with 404."""
    return desk_view().symbol(instance, timeframe, CHART_BARS) or abort(404)


def known_tick(instance: str, timeframe: str, bar_time: str) -> Row:
    """Return a tick's record or end the request with 404."""
    try:
        moment = clock.iso(clock.parse(bar_time))
    except (ValueError, OverflowError):
        abort(404)
    return desk_view().tick(instance, timeframe, moment) or abort(404)


ROUTES = (
    Route("/", "overview", overview),
    Route("/symbol/<instance>", "instance", instance_page),
    Route("/symbol/<instance>/<timeframe>", "symbol", symbol_page),
    Route("/symbol/<instance>/<timeframe>/<bar_time>", "tick", tick_page),
    Route("/help", "help", help_page),
    Route("/healthz", "healthz", healthz, scope=None, reply="json"),
    Route("/api/v1/desk", "api_desk", api_desk, reply="json"),
    Route("/api/v1/overview", "api_overview", api_overview, reply="json"),
    Route("/api/v1/symbol/<instance>/<timeframe>", "api_symbol", api_symbol, reply="json"),
    Route("/api/v1/symbol/<instance>/<timeframe>/<bar_time>", "api_tick", api_tick, reply="json"),
    Route("/<path:missing>", "missing", missing_page),
)
