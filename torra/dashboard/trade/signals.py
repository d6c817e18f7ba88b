"""The screen Signals: what is held, what was sent and with what result, and the trading state.

The list is read a page at a time, by the number of the signal, filtered by instance and state, and
can be downloaded as a file. A figure that changes from look to look is a cell; `version` tells a
program that anything else has changed. Halting, reducing, resuming and settling are forms that
`orders` answers. Without a desk behind the pages the screen says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from flask import Response, abort, jsonify, request
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from torra.dashboard.cells import price_lines
from torra.dashboard.cells.common import Cells
from torra.dashboard.doors.routes import Fields, Route
from torra.dashboard.trade import journal, lessons, orders, trade_rows
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.exhibits import lesson_words
from torra.money.open_positions import PAPER, spec_of
from torra.store import ticks as claim_table
from torra.store.standings import WarmUps
from torra.store.trade import notes as note_table
from torra.store.trade import proposals_and_alarms as execution_table
from torra.store.trade import signals as signal_table
from torra.store.trade.rows import AlarmRow, BridgeRow, SignalRow, SignalStep
from torra.verdict.signal_states import EXECUTED, SENT
from torra.words.orders import ALARMS, OUTCOMES, SIGNALS

if TYPE_CHECKING:
    from instance_database import Database
    from torra.trading.hand_close import CloseQuote

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


class SignalsScreen(NamedTuple):
    """All but the list: positions, bridges, alarms, the newest that ended, and the trading state.

    `engaged` is what keeps signals from going out besides the trading state, "" without it.
    """

    cells: Cells
    positions: list[CloseQuote]
    bridges: list[BridgeRow]
    alarms: list[AlarmRow]
    ended: list[AlarmRow]
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
    asked, screen = _signals_query(), _standing()
    rows, older = _listed(asked)
    ways = sorted({item.route for item in backing().settings.instances})
    return desk_page(
        "signals.html",
        here=True,
        live=True,
        **screen._asdict(),
        states=claim_table.trading_states(backing().database, HISTORY),
        signals=rows,
        outcomes=OUTCOMES,
        older=older,
        asked=asked,
        instances=[item.id for item in backing().settings.instances],
        marks=SIGNALS,
        orders=trade_rows,
        decimals=digits_of_row,
        executed=EXECUTED,
        ways=ways,
        protected=trade_rows.protected(ways),
    )


def api_signals() -> ResponseReturnValue:
    """Answer positions, bridges, alarms, trading states and one page of signals as stored."""
    screen, (rows, older) = _standing(), _listed(_signals_query())
    database = backing().database
    return jsonify(
        version=_version(screen, rows),
        signals=[row.as_json() for row in rows],
        before=older,
        positions=[_position_as_json(quote) for quote in screen.positions],
        bridges=[row.as_json() for row in screen.bridges],
        alarms=[row.as_json() for row in screen.alarms],
        states=[row.as_json() for row in claim_table.trading_states(database, HISTORY)],
    )


def signals_csv() -> Response:
    """Answer signals as a file, newest first, by the same filter."""
    database = backing().database
    rows = marked(_page(_signals_query(), EXPORTED), database)
    return trade_rows.file("signals", (row.model_dump() for row in rows))


def signal(sid: str) -> str:
    """Show the whole life of one signal, from its decision to what came of it."""
    found = _life(sid)
    row = found.row
    digits = digits_of_row(row)
    currency = backing().currency(row.bridge or PAPER)
    return desk_page(
        "signal.html",
        live=True,
        row=row,
        digits=digits,
        orders=trade_rows,
        outcome=OUTCOMES.get(row.outcome or ""),
        plan=trade_rows.plan_of(row),
        steps=found.events,
        plan_cells=trade_rows.plan_cells(row.plan),
        others=found.others,
        proposal=found.proposed,
        made=journal.made_of(row),
        headline=journal.headline(row, digits, currency),
        currency=currency,
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
    found = _life(sid)
    return jsonify(
        version=found.version,
        signal=found.row.as_json(),
        events=[step.as_json() for step in found.events],
        closes=[row.as_json() for row in found.closes],
        opening=found.opening and found.opening.as_json(),
        **({"thesis": told.as_dict()} if (told := lessons.written_of(sid)) else {}),
    )


# --- details --------------------------------------------------------------------------------------


def _signals_query() -> SignalsQuery:
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


def _listed(asked: SignalsQuery) -> tuple[list[SignalRow], int | None]:
    """Return the signals of a page, and the number below which the next one begins, if any."""
    # one signal more than a page shows, to know whether there are older ones
    rows = _page(asked, SHOWN + 1)
    shown = marked(rows[:SHOWN], backing().database)
    return shown, shown[-1].seq if len(rows) > SHOWN else None


def _page(asked: SignalsQuery, limit: int) -> list[SignalRow]:
    return execution_table.signal_page(backing().database, **asdict(asked), limit=limit)


def marked(rows: Sequence[SignalRow], database: Database) -> list[SignalRow]:
    """Return signals, each with whether it was decided in warm-up."""
    warmed = WarmUps(database)
    return [row.model_copy(update={"warm_up": warmed.made(*row.bar)}) for row in rows]


def _standing() -> SignalsScreen:
    """Return all but the list."""
    from torra.trading import hand_close  # noqa: PLC0415  a page alone must not load the desk

    known = backing()
    database = known.database
    cells: Cells = {}
    quotes = [hand_close.quote(orders.reach(), held) for held in database.positions()]
    for quote in quotes:
        opening = database.order(quote.held.signal_id) or SignalRow()
        cells |= trade_rows.position_cells(quote, opening, known.now())
    asks = [str(cells[f"pos.{one.held.signal_id}.ask"]["set"]["data-confirm"]) for one in quotes]
    if asks:
        cells["pos.ask"] = {"set": {"data-confirm": " ".join(asks)}}
    bridges = database.bridges()
    for place, row in enumerate(bridges):
        cells |= trade_rows.bridge_cells(row, place, known.desk.clock.real_now())
    newest = database.alarms(standing=False, limit=50)
    return SignalsScreen(
        cells=cells,
        positions=quotes,
        bridges=bridges,
        alarms=database.alarms(),
        ended=[row for row in newest if row.ended_at][:ENDED_ALARMS],
        engaged=orders.reach().switch.engaged(),
        trading=database.trading_state(),
    )


def _position_as_json(quote: CloseQuote) -> dict[str, JsonValue]:
    names = ("instance", "symbol", "side", "lots", "entry", "stop", "target", "state")
    held = {name: getattr(quote.held, name) for name in names}
    return {**held, "sid": quote.held.signal_id, "price": quote.bid}


def digits_of_row(row: SignalRow) -> int:
    """Return the decimals of the prices of a stored signal."""
    setup = backing().desk.setups.get(row.instance)
    return trade_rows.digits_of(spec_of(setup.profile, setup.instance.symbol) if setup else None)


def _version(screen: SignalsScreen, rows: Sequence[SignalRow]) -> str:
    """Return a short hash of everything that the page shows besides its cells."""
    parts = [
        screen.trading,
        screen.engaged,
        *((one.held.signal_id, one.held.state) for one in screen.positions),
        *((row.name, row.deny, row.detail) for row in screen.bridges),
        *((row.kind, row.at) for row in screen.alarms),
        *((row.sid, row.state, row.detail) for row in rows),
    ]
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


def _life(sid: str) -> Life:
    database = backing().database
    (row,) = marked([database.order(sid) or abort(404)], database)
    return Life(
        row=row,
        events=signal_table.signal_events(database, sid),
        closes=[SignalRow.load(one) for one in database.closes_of(row.instance, sid)],
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
