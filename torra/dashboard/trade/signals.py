"""The screen Signals: what is held, what was sent and with what result, and the trading state.

The list is read a page at a time, by the number of the signal, filtered by instance and state, and
can be downloaded as a file. A figure that changes from look to look is a cell. `version` changes
with everything else, so that the page's script reloads those parts. Halting, reducing, resuming and
settling are forms that `orders` answers. Without a desk behind the pages the screen says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from flask import Response, abort, jsonify, request, url_for
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from torra.dashboard.cells import price_lines
from torra.dashboard.cells.common import Cells
from torra.dashboard.doors.routes import Fields, Route
from torra.dashboard.trade import journal, lessons, orders, trade_rows
from torra.dashboard.trade.trade_rows import AlarmLine, BridgeLine, PositionLine
from torra.dashboard.view.rendering import backing, desk_cells, desk_page, state
from torra.money.open_positions import PAPER
from torra.store.standings import WarmUps
from torra.store.trade.rows import SignalRow, SignalStep
from torra.verdict.risk_engine import Position
from torra.verdict.signal_states import SENT
from torra.words.orders import ALARMS, SIGNALS

if TYPE_CHECKING:
    from instance_database import Database

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


@dataclass(frozen=True, slots=True)
class SignalsQuery:
    """The filter of a request; None where it asks for nothing."""

    instance: str | None
    state: str | None
    before: int | None


@dataclass(frozen=True, slots=True)
class Listing:
    """The signals of one page, and the next one if there is one."""

    rows: list[SignalRow]

    @property
    def older(self) -> int | None:
        """The number below which the next page begins, None on the last one."""
        return self.rows[SHOWN - 1].seq if len(self.rows) > SHOWN else None


@dataclass(frozen=True, slots=True)
class SignalsScreen:
    """All but the list: cells, positions (`held` as JSON), bridges, alarms and trading state.

    `engaged` is what keeps signals from going out besides the trading state, "" without it.
    """

    cells: Cells
    positions: list[PositionLine]
    held: list[dict[str, JsonValue]]
    bridges: list[BridgeLine]
    alarms: list[AlarmLine]
    ended: list[AlarmLine]
    engaged: str
    trading: str


@dataclass(frozen=True, slots=True)
class Life:
    """A signal with its steps and the orders that belong to it."""

    row: SignalRow
    events: list[SignalStep]
    closes: list[SignalRow]
    opening: SignalRow | None
    proposed: bool

    @property
    def others(self) -> list[SignalRow]:
        """The orders that belong to it: its closes, and the opening that it ends."""
        return [*self.closes, *([self.opening] if self.opening else [])]

    @property
    def version(self) -> str:
        """What changes with everything that the page shows."""
        rows = [self.row, *self.others]
        return " ".join(f"{row.sid}:{row.state}:{len(row.detail)}" for row in rows)


def signals() -> str:
    """Show positions, bridges, alarms, the trading state and the newest signals."""
    if state().backing is None:
        return desk_page("signals.html", here=False)
    asked = _asked()
    found = _standing()
    listed = _listed(asked)
    states = backing().database.trading_states(HISTORY)
    ways = sorted({item.route for item in backing().settings.instances})
    return desk_page(
        "signals.html",
        here=True,
        live=url_for(
            ".api_signals", instance=asked.instance, state=asked.state, before=asked.before
        ),
        shape="signals",
        cells=found.cells,
        version=_version(found, listed),
        positions=found.positions,
        bridges=found.bridges,
        alarms=found.alarms,
        ended=found.ended,
        engaged=found.engaged,
        states=[trade_rows.state_line(row) for row in states],
        signals=[trade_rows.signal_line(row, digits_of_row(row)) for row in listed.rows[:SHOWN]],
        warmed=sum(row.warm_up for row in listed.rows[:SHOWN]),
        older=listed.older,
        asked=asked,
        instances=[item.id for item in backing().settings.instances],
        marks=SIGNALS,
        ways=ways,
        protected=trade_rows.protected(ways),
    )


def api_signals() -> ResponseReturnValue:
    """Answer positions, bridges, alarms, trading states and one page of signals as stored."""
    found, listed = _standing(), _listed(_asked())
    database = backing().database
    return jsonify(
        shape="signals",
        cells=desk_cells() | found.cells,
        version=_version(found, listed),
        signals=[row.as_json() for row in listed.rows[:SHOWN]],
        before=listed.older,
        positions=found.held,
        bridges=[row.as_json() for row in database.bridges()],
        alarms=[row.as_json() for row in database.alarms()],
        states=[row.as_json() for row in database.trading_states(HISTORY)],
    )


def signals_csv() -> Response:
    """Answer signals as a file, newest first, by the same filter."""
    database = backing().database
    rows = marked(_page(_asked(), EXPORTED), database)
    return Response(
        trade_rows.csv_lines(row.model_dump() for row in rows),
        mimetype="text/csv",
        headers={"Content-Disposition": 'attachment; filename="torra-signals.csv"'},
    )


def signal(sid: str) -> str:
    """Show the whole life of one signal, from its decision to what came of it."""
    found = _life(sid)
    row = found.row
    digits = digits_of_row(row)
    currency = backing().currency(row.bridge or PAPER)
    return desk_page(
        "signal.html",
        live=url_for(".api_signal", sid=sid),
        shape="signal",
        version=found.version,
        row=trade_rows.signal_line(row, digits),
        steps=trade_rows.step_lines(found.events),
        thesis=trade_rows.thesis_lines(row.plan),
        others=[trade_rows.signal_line(other, digits) for other in found.others],
        proposal=found.proposed,
        made=journal.made_of(row),
        headline=journal.headline(row, digits, currency),
        currency=currency,
        written=backing().database.trade_note(sid),
        lesson=lessons.of_trade(sid),
        why_made=lessons.thesis_of(sid, row.timeframe),
        over=price_lines.LINES,
        settles=row.state in SENT,
        advice=ALARMS["UNKNOWN"].text,
    )


def api_signal(sid: str) -> ResponseReturnValue:
    """Answer one signal as it is stored, with its steps and the orders that belong to it."""
    found = _life(sid)
    return jsonify(
        shape="signal",
        cells=desk_cells(),
        version=found.version,
        signal=found.row.as_json(),
        events=[step.as_json() for step in found.events],
        closes=[row.as_json() for row in found.closes],
        opening=found.opening and found.opening.as_json(),
        **({"thesis": told.as_dict()} if (told := lessons.written_of(sid)) else {}),
    )


# --- details --------------------------------------------------------------------------------------


def _asked() -> SignalsQuery:
    """Return the filter of the request; unknown values are left out."""
    known = {item.id for item in backing().settings.instances}
    instance, wanted = request.args.get("instance", ""), request.args.get("state", "")
    before = request.args.get("before", "")
    number = before.isascii() and before.isdigit() and len(before) < 16
    return SignalsQuery(
        instance=instance if instance in known else None,
        state=wanted if wanted in SIGNALS else None,
        before=int(before) if number else None,
    )


def _listed(asked: SignalsQuery) -> Listing:
    # one signal more than a page shows, to know whether there are older ones
    return Listing(marked(_page(asked, SHOWN + 1), backing().database))


def _page(asked: SignalsQuery, limit: int) -> list[SignalRow]:
    return backing().database.signal_page(**asdict(asked), limit=limit)


def marked(rows: Sequence[SignalRow], database: Database) -> list[SignalRow]:
    """Return signals, each with whether it was decided in warm-up."""
    warmed = WarmUps(database)
    return [row.model_copy(update={"warm_up": warmed.made(*row.bar)}) for row in rows]


def _standing() -> SignalsScreen:
    """Return all but the list."""
    known = backing()
    database = known.database
    cells: Cells = {}
    positions, held = [], []
    for item in database.positions():
        line, told, figures = _position(item, known.now())
        positions.append(line)
        held.append(told)
        cells |= figures
    if positions:
        asks = (str(cells[f"pos.{row.sid}.ask"]["set"]["data-confirm"]) for row in positions)
        cells["pos.ask"] = {"set": {"data-confirm": " ".join(asks)}}
    bridges = database.bridges()
    for place, row in enumerate(bridges):
        cells |= trade_rows.bridge_cells(row, place, known.desk.clock.real_now())
    used = {item.route for item in known.settings.instances}
    alarms = database.alarms()
    newest = database.alarms(standing=False, limit=50)
    ended = [row for row in newest if row.ended_at]
    return SignalsScreen(
        cells=cells,
        positions=positions,
        held=held,
        bridges=[trade_rows.bridge_line(row, used) for row in bridges],
        alarms=[trade_rows.alarm_line(row) for row in alarms],
        ended=[trade_rows.alarm_line(row) for row in ended[:ENDED_ALARMS]],
        engaged=orders.reach().switch.engaged(),
        trading=database.trading_state(),
    )


def _position(held: Position, now: datetime) -> tuple[PositionLine, dict[str, JsonValue], Cells]:
    """Return a position as a line and as plain JSON, and as cells the result of a close now."""
    from torra.trading import close_quote  # noqa: PLC0415  a page alone must not load the desk

    opening = backing().database.order(held.signal_id) or SignalRow()
    found = close_quote.quote(orders.reach(), held)
    cells = trade_rows.position_cells(found, opening, now)
    told: dict[str, JsonValue] = {
        name: getattr(held, name)
        for name in ("instance", "symbol", "side", "lots", "entry", "stop", "target", "state")
    }
    told |= {"sid": held.signal_id, "price": found.bid}
    line = trade_rows.position_line(held, trade_rows.digits_of(found.spec), real=found.real)
    return line, told, cells


def digits_of_row(row: SignalRow) -> int:
    """Return the decimals of the prices of a stored signal."""
    setup = backing().desk.setups.get(row.instance)
    return trade_rows.digits_of(
        trade_rows.spec_of(setup.profile, setup.instance.symbol) if setup else None
    )


def _version(found: SignalsScreen, listed: Listing) -> str:
    """Return a short hash of everything that the page shows besides its cells."""
    told = [
        found.trading,
        found.engaged,
        *(f"{line.sid} {line.state.word}" for line in found.positions),
        *(f"{line.name} {line.mark.word} {line.detail}" for line in found.bridges),
        *(f"{line.kind} {line.at}" for line in found.alarms),
        *(f"{row.sid} {row.state} {row.detail}" for row in listed.rows),
    ]
    return hashlib.sha256("\n".join(map(str, told)).encode()).hexdigest()[:16]


def _life(sid: str) -> Life:
    database = backing().database
    (row,) = marked([database.order(sid) or abort(404)], database)
    return Life(
        row=row,
        events=database.signal_events(sid),
        closes=database.orders_of(row.instance, sid),
        opening=database.order(row.closes) if row.closes else None,
        proposed=database.proposal(sid) is not None,
    )


ROUTES = (
    Route("/signals", "signals", signals, query=QUERY),
    Route("/signals.csv", "signals_csv", signals_csv, reply="csv", query=QUERY),
    Route("/signals/<sid>", "signal", signal),
    Route("/api/v1/signals", "api_signals", api_signals, reply="json", query=QUERY),
    Route("/api/v1/signals/<sid>", "api_signal", api_signal, reply="json"),
)
