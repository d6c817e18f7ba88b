"""The screen Signals: what is held, what was sent and with what result, and the trading state.

The list is read a page at a time, by the number of the signal, filtered by instance and state, and
can be downloaded as a file. `version` tells a program that anything but a price has changed.
Halting, reducing, resuming and settling are forms that `orders` answers. Without a desk behind the
pages the screen says so.
"""

from __future__ import annotations

from typing import Any, Final

from flask import Response, jsonify, request
from flask.typing import ResponseReturnValue

from torra.dashboard.doors.routes import Fields, Route
from torra.dashboard.streams import price_lines
from torra.dashboard.trade import journal, lessons, orders, trade_rows
from torra.dashboard.trade import order as order_reads
from torra.dashboard.trade.order import DeskOrder
from torra.dashboard.view import list_query
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.exhibits import lesson_words
from torra.money.open_positions import PAPER
from torra.store import ticks as claim_table
from torra.store.trade import notes as note_table
from torra.store.trade import proposals_and_alarms as execution_table
from torra.store.trade.rows import SignalRow
from torra.verdict.signal_states import EXECUTED, SENT
from torra.words.orders import ALARMS, OUTCOMES, SIGNALS

SHOWN: Final = 50
"""Signals on one page."""

EXPORTED: Final = 10_000
"""Signals in the file, newest first."""

HISTORY: Final = 10
ENDED_ALARMS: Final = 5
QUERY: Final[Fields] = {
    "instance": {"type": "string"},
    "state": {"type": "string", "enum": list(SIGNALS)},
    "before": {"type": "integer", "minimum": 1},
}


def signals() -> str:
    """Show positions, bridges, alarms, the trading state and the newest signals."""
    if state().backing is None:
        return desk_page("signals.html", here=False)
    context, query = backing(), _query()
    rows, older = _listed(query)
    routes = sorted({item.route for item in context.settings.instances})
    newest = context.database.alarms(standing=False, limit=50)
    return desk_page(
        "signals.html",
        here=True,
        live=True,
        positions=order_reads.open_orders(),
        bridges=context.database.bridges(),
        alarms=context.database.alarms(),
        ended=[alarm for alarm in newest if alarm.ended_at][:ENDED_ALARMS],
        engaged=orders.reach().switch.engaged(),
        states=claim_table.trading_states(context.database, HISTORY),
        signals=[DeskOrder(None, row) for row in rows],
        outcomes=OUTCOMES,
        older=older,
        query=query,
        narrowed={name: query[name] for name in ("instance", "state")},
        instances=[item.id for item in context.settings.instances],
        marks=SIGNALS,
        orders=trade_rows,
        executed=EXECUTED,
        routes=routes,
        protected=trade_rows.protected(routes),
        real_now=context.desk.clock.real_now(),
    )


def api_signals() -> ResponseReturnValue:
    """Answer positions, bridges, alarms, trading states and one page of signals as stored."""
    from torra.trading import signal_list  # noqa: PLC0415  a page alone must not load the desk

    return jsonify(signal_list.document(orders.reach(), limit=SHOWN, **_query()))


def signals_csv() -> Response:
    """Answer signals as a file, newest first, by the same filter."""
    database = backing().database
    rows = execution_table.signal_page(database, **_query(), limit=EXPORTED)
    marked = order_reads.marked(database, rows)
    return trade_rows.file("signals", (row.model_dump() for row in marked))


def signal(sid: str) -> str:
    """Show the whole life of one signal, from its decision to what came of it."""
    order = order_reads.of_signal(sid)
    row, currency = order.signal_row, order.currency
    return desk_page(
        "signal.html",
        live=True,
        order=order,
        row=row,
        currency=currency,
        orders=trade_rows,
        outcome=OUTCOMES.get(row.outcome or ""),
        contributions=journal.contributions(row),
        headline=journal.headline(row, order.terms.digits, currency),
        written=note_table.trade_note(backing().database, sid),
        lesson=lessons.of_trade(sid),
        says=lesson_words,
        address=lessons.lesson_address,
        why_made=lessons.thesis_of(sid, row.timeframe),
        over=price_lines.LINES,
        settles=row.state in SENT and (row.bridge or PAPER) != PAPER,
        advice=ALARMS["UNKNOWN"].text,
    )


def api_signal(sid: str) -> ResponseReturnValue:
    """Answer one signal as it is stored, with its steps and the orders that belong to it."""
    order = order_reads.of_signal(sid)
    rows = [order.signal_row, *order.others]
    thesis = lessons.written_of(sid)
    return jsonify(
        version=" ".join(f"{row.sid}:{row.state}:{len(row.detail)}" for row in rows),
        signal=order.signal_row.as_json(),
        events=[step.as_json() for step in order.steps],
        closes=[row.as_json() for row in order.closes],
        opening=order.opening and order.opening.as_json(),
        **({"thesis": thesis.as_dict()} if thesis else {}),
    )


# --- details --------------------------------------------------------------------------------------


def _query() -> dict[str, Any]:
    """Return the filter of the request; unknown values ask for nothing."""
    choices = {"instance": {item.id for item in backing().settings.instances}, "state": SIGNALS}
    words, before = list_query.words(choices), request.args.get("before", "")
    number = before.isascii() and before.isdigit() and len(before) < 16
    return {
        **{name: words.get(name) if words.get(name) in choices[name] else None for name in choices},
        "before": int(before) if number else None,
    }


def _listed(query: dict[str, Any]) -> tuple[list[SignalRow], int | None]:
    """Return the signals of a page, and the number below which the next one begins, if any."""
    # one signal more than a page shows, to know whether there are older ones
    database = backing().database
    rows = execution_table.signal_page(database, **query, limit=SHOWN + 1)
    shown = order_reads.marked(database, rows[:SHOWN])
    return shown, shown[-1].seq if len(rows) > SHOWN else None


ROUTES = (
    Route("/signals", "signals", signals, query=QUERY),
    Route("/signals.csv", "signals_csv", signals_csv, reply="csv", query=QUERY),
    Route("/signals/<sid>", "signal", signal),
    Route("/api/v1/signals", "api_signals", api_signals, reply="json", query=QUERY),
    Route("/api/v1/signals/<sid>", "api_signal", api_signal, reply="json"),
)
