"""The screen Signals: what is held, what was sent and with what result, and the trading state.

The list is read a page at a time, by the number of the signal, filtered by instance and state, and
can be downloaded as a file. A figure that changes from look to look is a cell. `version` changes
with everything else, so that the page's script reloads those parts. Halting, reducing, resuming and
settling are forms that `orders` answers. Without a desk behind the pages the screen says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from flask import Response, abort, jsonify, request, url_for
from flask.typing import ResponseReturnValue

from torra.config import Instance, SymbolSpec
from torra.dashboard.cells import symbol_cells
from torra.dashboard.doors.routes import Route
from torra.dashboard.record.stored import Row
from torra.dashboard.trade import orders, trade_rows
from torra.dashboard.view.rendering import backing, desk_view, page, state
from torra.errors import ConfigError, DataUnavailable
from torra.verdict.risk_engine import Position
from torra.verdict.signal_states import SENT

SHOWN: Final = 50
"""Signals on one page."""

EXPORTED: Final = 10_000
"""Signals in the file, newest first."""

HISTORY: Final = 10
ENDED_ALARMS: Final = 5
QUERY: Final[Mapping[str, Mapping[str, Any]]] = {
    "instance": {"type": "string"},
    "state": {"type": "string", "enum": list(trade_rows.STATES)},
    "before": {"type": "integer", "minimum": 1},
}


def signals() -> str:
    """Show positions, bridges, alarms, the trading state and the newest signals."""
    desk = desk_view().desk()
    if state().backing is None:
        cells, live = symbol_cells.strip(desk), url_for(".api_desk")
        return page("signals.html", desk, live=live, cells=cells, shape="desk", here=False)
    asked = _asked()
    found = _standing(desk)
    listed = _listed(asked)
    return page(
        "signals.html",
        desk,
        here=True,
        live=url_for(".api_signals", **_named(asked)),
        shape="signals",
        cells=found["cells"],
        version=_version(found, listed),
        **{name: found[name] for name in ("positions", "bridges", "alarms", "ended", "engaged")},
        states=trade_rows.state_rows(backing().database.trading_states(HISTORY)),
        signals=[trade_rows.signal_row(row, _digits(row)) for row in listed[:SHOWN]],
        older=listed[SHOWN - 1]["seq"] if len(listed) > SHOWN else None,
        asked=asked,
        instances=[item.id for item in backing().settings.instances],
        marks=trade_rows.STATES,
        meanings=trade_rows.STATE_MEANINGS,
        routes=sorted({item.route for item in backing().settings.instances}),
    )


def api_signals() -> ResponseReturnValue:
    """Answer positions, bridges, alarms, trading states and one page of signals as stored."""
    asked = _asked()
    found, listed = _standing(desk_view().desk()), _listed(asked)
    database = backing().database
    return jsonify(
        shape="signals",
        cells=found["cells"],
        version=_version(found, listed),
        signals=listed[:SHOWN],
        before=listed[SHOWN - 1]["seq"] if len(listed) > SHOWN else None,
        positions=found["held"],
        bridges=database.bridges(),
        alarms=database.alarms(),
        states=database.trading_states(HISTORY),
    )


def signals_csv() -> Response:
    """Answer signals as a file, newest first, by the same filter."""
    asked = _asked()
    rows = backing().database.signal_page(**asked, limit=EXPORTED)
    return Response(
        trade_rows.as_csv(rows),
        mimetype="text/csv",
        headers={"Content-Disposition": 'attachment; filename="torra-signals.csv"'},
    )


def signal(sid: str) -> str:
    """Show the whole life of one signal, from its decision to what came of it."""
    desk = desk_view().desk()
    found = _life(sid)
    row = found["row"]
    digits = _digits(row)
    others = [*found["closes"], *([found["opening"]] if found["opening"] else [])]
    return page(
        "signal.html",
        desk,
        live=url_for(".api_signal", sid=sid),
        cells=symbol_cells.strip(desk),
        shape="signal",
        version=_life_version(found),
        row=trade_rows.signal_row(row, digits),
        symbol=row["symbol"],
        steps=trade_rows.step_rows(found["events"]),
        thesis=trade_rows.thesis_rows(row["thesis"]),
        others=[trade_rows.signal_row(other, digits) for other in others],
        proposal=found["proposal"],
        settles=row["state"] in SENT,
        advice=trade_rows.ADVICE["UNKNOWN"],
    )


def api_signal(sid: str) -> ResponseReturnValue:
    """Answer one signal as it is stored, with its steps and the orders that belong to it."""
    found = _life(sid)
    return jsonify(
        shape="signal",
        cells=symbol_cells.strip(desk_view().desk()),
        version=_life_version(found),
        signal=found["row"],
        events=found["events"],
        closes=found["closes"],
        opening=found["opening"],
    )


# --- details --------------------------------------------------------------------------------------


def _asked() -> Row:
    """Return the filter of the request; unknown values are left out."""
    known = {item.id for item in backing().settings.instances}
    instance, wanted = request.args.get("instance", ""), request.args.get("state", "")
    before = request.args.get("before", "")
    return {
        "instance": instance if instance in known else None,
        "state": wanted if wanted in trade_rows.STATES else None,
        "before": int(before)
        if before.isascii() and before.isdigit() and len(before) < 16
        else None,
    }


def _named(asked: Mapping[str, Any]) -> Row:
    return {name: value for name, value in asked.items() if value is not None}


def _listed(asked: Mapping[str, Any]) -> list[Row]:
    """Return one signal more than a page shows, to know whether there are older ones."""
    return backing().database.signal_page(**asked, limit=SHOWN + 1)


def _standing(desk: Mapping[str, Any]) -> Row:
    """Return all but the list: positions, bridges, alarms, kill switch, trading state."""
    known = backing()
    database = known.database
    cells = symbol_cells.strip(desk)
    positions, held = [], []
    for item in database.positions():
        row, told, figures = _position(item, known.now())
        positions.append(row)
        held.append(told)
        cells |= figures
    bridges = database.bridges()
    for place, row in enumerate(bridges):
        cells |= trade_rows.bridge_cells(row, place, known.desk.clock.real_now())
    used = {item.route for item in known.settings.instances}
    alarms = database.alarms()
    ended = [row for row in database.alarms(standing=False, limit=50) if row["ended_at"]]
    return {
        "cells": cells,
        "positions": positions,
        "held": held,
        "bridges": [trade_rows.bridge_row(row, used) for row in bridges],
        "alarms": [trade_rows.alarm_row(row) for row in alarms],
        "ended": [trade_rows.alarm_row(row) for row in ended[:ENDED_ALARMS]],
        "engaged": orders.reach().switch.engaged(),
        "trading": database.trading_state(),
    }


def _position(held: Position, now: datetime) -> tuple[Row, Row, dict[str, Row]]:
    """Return a position as a row and as plain JSON, and as cells the result of a close now."""
    opening = backing().database.signal(held.signal_id) or {}
    instance, spec = _terms(held.instance)
    price, spread, trouble = _price(instance, now)
    cells = trade_rows.position_cells(held, opening, spec, now, price, trouble, spread)
    row = trade_rows.position_row(held, opening, trade_rows.digits_of(spec))
    told = {
        name: getattr(held, name)
        for name in ("instance", "symbol", "side", "lots", "entry", "stop", "target", "state")
    }
    return row, {**told, "sid": held.signal_id, "price": price}, cells


def _price(instance: Instance | None, now: datetime) -> tuple[float | None, float | None, str]:
    """Return the present bid and spread, each None if unknown, and the reason."""
    from torra.trading import by_hand  # noqa: PLC0415

    if instance is None:
        return None, None, "the desk does not name this instance any more"
    known = backing()
    try:
        price, told = by_hand.market_now(
            known.settings, known.database, instance, now, known.environment
        )
    except (ConfigError, DataUnavailable) as error:
        return None, None, str(error)
    return price, told.get("live_spread"), ""


def _terms(name: str) -> tuple[Instance | None, SymbolSpec | None]:
    known = backing()
    instance = next((item for item in known.settings.instances if item.id == name), None)
    setup = known.desk.setups.get(name)
    if instance is None or setup is None:
        return instance, None
    return instance, trade_rows.spec_of(setup.profile, instance.symbol)


def _digits(row: Mapping[str, Any]) -> int:
    return trade_rows.digits_of(_terms(str(row["instance"]))[1])


def _version(found: Mapping[str, Any], listed: list[Row]) -> str:
    """Return a short hash of everything that the page shows besides its cells."""
    told = [
        found["trading"],
        found["engaged"],
        *(f"{row['sid']} {row['state'].word}" for row in found["positions"]),
        *(f"{row['name']} {row['mark'].word} {row['detail']}" for row in found["bridges"]),
        *(f"{row['kind']} {row['at']}" for row in found["alarms"]),
        *(f"{row['sid']} {row['state']} {row['detail']}" for row in listed),
    ]
    return hashlib.sha256("\n".join(map(str, told)).encode()).hexdigest()[:16]


def _life(sid: str) -> Row:
    database = backing().database
    row = database.signal(sid) or abort(404)
    return {
        "row": row,
        "events": database.signal_events(sid),
        "closes": database.closes_of(row["instance"], sid),
        "opening": database.signal(row["closes"]) if row["closes"] else None,
        "proposal": database.proposal(sid) is not None,
    }


def _life_version(found: Mapping[str, Any]) -> str:
    rows = [found["row"], *found["closes"], *filter(None, [found["opening"]])]
    return " ".join(f"{row['sid']}:{row['state']}:{len(row['detail'])}" for row in rows)


ROUTES = (
    Route("/signals", "signals", signals, query=QUERY),
    Route("/signals.csv", "signals_csv", signals_csv, reply="csv", query=QUERY),
    Route("/signals/<sid>", "signal", signal),
    Route("/api/v1/signals", "api_signals", api_signals, reply="json", query=QUERY),
    Route("/api/v1/signals/<sid>", "api_signal", api_signal, reply="json"),
)
