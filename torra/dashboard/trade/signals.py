"""Signals: what is held, what was sent and with what result, and the trading state.

The list is read a page at a time, by the number of the signal, filtered by instance and state, and
can be downloaded as a file. `version` tells a program that anything but a price has changed.
Halting, reducing, resuming and settling are forms that `orders` answers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from flask import Response, abort, jsonify, request, url_for
from flask.typing import ResponseReturnValue

from torra.dashboard.doors.routes import Fields, Route
from torra.dashboard.trade import journal, lessons, orders, trade_rows
from torra.dashboard.trade import order as order_reads
from torra.dashboard.trade.order import DeskOrder
from torra.dashboard.view import list_query
from torra.dashboard.view.rendering import backing
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


def controls() -> dict[str, Any]:
    """Return what a page shows of positions, bridges, alarms and the trading state."""
    context = backing()
    routes = sorted({item.route for item in context.settings.instances})
    newest = context.database.alarms(standing=False, limit=50)
    return {
        "positions": order_reads.open_orders(),
        "bridges": context.database.bridges(),
        "alarms": context.database.alarms(),
        "ended": [alarm for alarm in newest if alarm.ended_at][:ENDED_ALARMS],
        "engaged": orders.reach().switch.engaged(),
        "states": claim_table.trading_states(context.database, HISTORY),
        "executed": EXECUTED,
        "routes": routes,
        "protected": trade_rows.protected(routes),
        "real_now": context.desk.clock.real_now(),
    }


def signal_list(states: Collection[str] = ()) -> dict[str, Any]:
    """Return what a page lists of signals, newest first: those in some states, or all."""
    query = _query()
    if states and query["state"] not in states:
        query["state"] = None  # a state of another stage asks for nothing
    rows, cursor = _listed(query, states)
    chosen = {name: query[name] for name in ("instance", "state")}
    # the file has no filter by several states
    file = url_for(".signals_csv", **chosen) if query["state"] or not states else ""
    return {
        "listed": [DeskOrder(None, row) for row in rows],
        "outcomes": OUTCOMES,
        "cursor": cursor,
        "chosen": chosen,
        "offered": {"instance": [item.id for item in backing().settings.instances]},
        "marks": {state: SIGNALS[state] for state in states or SIGNALS},
        "file": file,
    }


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


def life(order: DeskOrder) -> dict[str, Any]:
    """Return what a page shows of an order that was sent, from its signal to what came of it."""
    row, currency = order.signal_row, order.currency
    return {
        "currency": currency,
        "outcome": OUTCOMES.get(row.outcome or ""),
        "contributions": journal.contributions(row),
        "headline": journal.headline(row, order.terms.digits, currency),
        "written": note_table.trade_note(backing().database, row.sid),
        "lesson": lessons.of_trade(row.sid),
        "says": lesson_words,
        "address": lessons.lesson_address,
        "why_made": lessons.thesis_of(row.sid, row.timeframe),
        "settles": row.state in SENT and (row.bridge or PAPER) != PAPER,
        "advice": ALARMS["UNKNOWN"].text,
        "engaged": orders.reach().switch.engaged(),
        "executed": EXECUTED,
    }


def api_signal(sid: str) -> ResponseReturnValue:
    """Answer one signal as it is stored, with its steps and the orders that belong to it."""
    order = DeskOrder.find(sid)
    rows = [order.signal or abort(404), *order.others]
    thesis = lessons.written_of(sid)
    return jsonify(
        version=" ".join(f"{row.sid}:{row.state}:{len(row.detail)}" for row in rows),
        signal=rows[0].as_json(),
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


def _listed(
    query: dict[str, Any], states: Collection[str] = ()
) -> tuple[list[SignalRow], int | None]:
    """Return the signals of a page, and the number below which the next one begins, if any."""
    database = backing().database
    state = query["state"]
    asked = [state] if state or not states else states
    # one signal more than a page shows, to know whether there are older ones
    rows = [
        row
        for one in asked  # each by its index
        for row in execution_table.signal_page(database, **{**query, "state": one}, limit=SHOWN + 1)
    ]
    rows.sort(key=lambda row: row.seq, reverse=True)
    shown = order_reads.marked(database, rows[:SHOWN])
    return shown, shown[-1].seq if len(rows) > SHOWN else None


ROUTES = (
    Route("/signals.csv", "signals_csv", signals_csv, reply="csv", query=QUERY),
    Route("/api/v1/signals", "api_signals", api_signals, reply="json", query=QUERY),
    Route("/api/v1/signals/<sid>", "api_signal", api_signal, reply="json"),
)
