"""The routes of the main pages: each asks the desk's view, arranges the answer and renders it.

Every route here only reads: it answers GET (and HEAD) and changes nothing. A thing that does not
exist is a 404; the handlers of `app` turn errors into pages of ours. `streams` and
`record.reasoning` do the formatting, `app` the headers and the Host check.
"""

from __future__ import annotations

from typing import Final

from flask import abort, g, jsonify, request
from flask.typing import ResponseReturnValue

from agent_config import JUDGE_ID
from torra import clock
from torra.dashboard.doors.routes import Api, Fields, Route
from torra.dashboard.record import reading_patterns
from torra.dashboard.record.shown import TickView
from torra.dashboard.screens import symbol
from torra.dashboard.screens.tick import bar_moment, tick_page
from torra.dashboard.streams import chart_data, price_lines
from torra.dashboard.streams.committee import newest_card
from torra.dashboard.trade import approvals
from torra.dashboard.view import list_query
from torra.dashboard.view.answer_models import SYMBOL
from torra.dashboard.view.bar_reading import MOST
from torra.dashboard.view.desk_values import ChartBars, Symbol
from torra.dashboard.view.rendering import desk_page, desk_view, page, state
from torra.dashboard.view.stream_reading import Json
from torra.exhibits import figures
from torra.tick.tick_record import Damaged, load
from torra.words import glossary
from torra.words.market import REGIMES, TRIAGE
from torra.words.orders import SIGNALS
from torra.words.ticks import BADGES, SOURCES, VECTOR_NAMES

CHART_BARS: Final = 300
"""Bars and ticks that a symbol page shows."""

MOMENT_BARS: Final = 160
"""Bars up to a tick that its page shows."""

LINE_NAMES: Final = {**VECTOR_NAMES, "ath": "Range"}
"""Scores that the chart's lower pane draws when asked."""


def instance_page(instance: str) -> ResponseReturnValue:
    """Show the shortest timeframe of an instance."""
    data = desk_view().overview()
    known = {one.instance: one.timeframes for one in data.instances}
    return symbol_page(instance, known[instance][0]) if known.get(instance) else abort(404)


def symbol_page(instance: str, timeframe: str) -> str:
    """Show the chart and the ticks of one stream."""
    data = known_symbol(instance, timeframe)
    return page(
        "symbol.html",
        data.desk,
        live=True,
        lines=LINE_NAMES,
        drawn=_chart_version(data),
        card=newest_card(instance),
        **symbol.values(data),
    )


def _chart_version(data: Symbol) -> str:
    """Return what changes with the chart of a stream, and with nothing else."""
    newest = [row.bar_time for row in data.ticks[:1]] + [row.sid for row in data.trades[:1]]
    bars, position = [bar.time for bar in data.bars[-1:]], data.holding and data.holding.position
    levels = (position.state, position.stop, position.target) if position else ()
    return " ".join(map(str, (*bars, *newest, *levels)))


def help_page() -> str:
    """Explain how to read the numbers."""
    behind = state().backing
    setups = behind.desk.setups.values() if behind and behind.desk else ()
    return desk_page(
        "help.html",
        sources=SOURCES,
        marks=BADGES,
        regimes=REGIMES,
        triage=TRIAGE,
        glossary=glossary,
        evidence=tuple(glossary.evidence()),
        patterns=reading_patterns.patterns(),
        states=SIGNALS,
        swarm=any(JUDGE_ID in one.profile.agents.desk() for one in setups),
        firm=any(reading_patterns.FIRM_SEAT in one.profile.agents.desk() for one in setups),
    )


def missing_page(missing: str) -> ResponseReturnValue:  # noqa: ARG001  the rule names it
    """Answer an address below our prefix that has no page."""
    abort(404)


def healthz() -> ResponseReturnValue:
    """Answer a monitor: what runs, how old each stream is."""
    data = desk_view().overview()
    streams = [
        {
            "instance": instance.instance,
            "timeframe": stream.timeframe,
            "close_time": stream.tick.as_of if stream.tick else None,
            "age_seconds": stream.age_seconds,
            "stale": stream.stale,
            "no_bars": bool(stream.quiet),
        }
        for instance in data.instances
        for stream in instance.streams
    ]
    desk = data.desk
    healthy = desk.trading_state != "HALTED" and not any(stream["stale"] for stream in streams)
    status = "ok" if healthy else "attention"
    # anybody may ask this address: a stranger learns the one word only
    if g.get("torra_visitor") is None:
        return jsonify(status=status)
    return jsonify(
        status=status,
        desk_time=desk.now,
        streams=streams,
        version=desk.version,
        role=desk.role,
        trading_state=desk.trading_state,
        demo=desk.demo,
    )


def frame() -> str:
    """Show the header and the banners alone, for a page whose own figures stand."""
    return desk_page("frame.html")


def api_desk() -> ResponseReturnValue:
    """Answer the state of the desk."""
    return jsonify(desk=desk_view().desk().as_json())


def api_symbol(instance: str, timeframe: str) -> ResponseReturnValue:
    """Answer a stream with its newest ticks, and the chart of its page."""
    data = known_symbol(instance, timeframe)
    # the lines over the price are the chart's alone: the page itself does without
    drawn = desk_view().bars(instance, timeframe, data.desk.now, CHART_BARS) or ChartBars()
    shown = SYMBOL.model_validate(data).model_dump(mode="json")
    return jsonify(symbol=shown, chart=chart_data.chart(data, drawn))


def api_bars(instance: str, timeframe: str) -> ResponseReturnValue:
    """Answer older bars of a stream with the lines over them, as its chart scrolls back."""
    text = request.args.get("before", "")
    limit = list_query.limit(CHART_BARS, MOST)
    try:
        before = clock.iso(clock.parse(text)) if text else desk_view().desk().now
    except (ValueError, OverflowError):
        wrong = figures.sanitize(text, 40)
        list_query.refuse(f"before is a time, such as 2026-05-01T10:00:00Z, not {wrong}")
    bars = desk_view().bars(instance, timeframe, str(before), limit) or abort(404)
    return jsonify(chart_data.prices(bars))


def api_moment(instance: str, timeframe: str, bar_time: str) -> ResponseReturnValue:
    """Answer the chart at the close of a tick, and which lines its arguments cite."""
    stored = known_tick(instance, timeframe, bar_time)
    record = load(f"{instance}|{timeframe}|{bar_time}", stored, TickView)
    if isinstance(record, Damaged):
        return jsonify(error=f"the record of this tick is damaged: {record.reason}"), 404
    bars = desk_view().bars(instance, timeframe, record.as_of, MOMENT_BARS) or abort(404)
    row = approvals.of_tick(record)
    levels = row.first.levels if row is not None else None
    chart = chart_data.moment(record, bars, levels)
    return jsonify(chart=chart, cited=price_lines.cited(record))


def api_tick(instance: str, timeframe: str, bar_time: str) -> ResponseReturnValue:
    """Answer one tick's record as it is stored."""
    return jsonify(known_tick(instance, timeframe, bar_time))


def known_symbol(instance: str, timeframe: str) -> Symbol:
    """Return a stream's data or end the request with 404."""
    return desk_view().symbol(instance, timeframe, CHART_BARS) or abort(404)


def known_tick(instance: str, timeframe: str, bar_time: str) -> Json:
    """Return a tick's record or end the request with 404."""
    return desk_view().tick(instance, timeframe, bar_moment(bar_time)) or abort(404)


BARS: Final[Fields] = {
    "before": {
        "type": "string",
        "format": "date-time",
        "description": "Only bars that were closed by then.",
    },
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": CHART_BARS},
}

ROUTES = (
    Route("/symbol/<instance>", "instance", instance_page),
    Route("/symbol/<instance>/<timeframe>", "symbol", symbol_page),
    Route("/symbol/<instance>/<timeframe>/<bar_time>", "tick", tick_page),
    Route("/help", "help", help_page),
    Route("/frame", "frame", frame),
    Api("/healthz", "healthz", healthz, scope=None),
    Api("/api/v1/desk", "api_desk", api_desk),
    Api("/api/v1/symbol/<instance>/<timeframe>", "api_symbol", api_symbol),
    Api("/api/v1/symbol/<instance>/<timeframe>/<bar_time>", "api_tick", api_tick),
    Api("/api/v1/bars/<instance>/<timeframe>", "api_bars", api_bars, query=BARS),
    Api(
        "/api/v1/symbol/<instance>/<timeframe>/<bar_time>/chart",
        "api_moment",
        api_moment,
    ),
    Route("/<path:missing>", "missing", missing_page),
)
