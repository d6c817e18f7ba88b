"""Closed trades: what they came to, then each of them, filtered and page by page.

The sums are those of `torra results` (torra.money.book). The list goes on by a cursor, so a page
costs the same after ten years; it can be taken as a file. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from flask import Response, jsonify, request
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from instance_database import Database
from torra.clock import iso
from torra.dashboard.doors.routes import Fields, Route
from torra.dashboard.trade import trade_rows
from torra.dashboard.trade.order import DeskOrder, marked
from torra.dashboard.view import list_query
from torra.dashboard.view.list_query import ListQuery
from torra.dashboard.view.rendering import backing
from torra.exhibits import figures, pages
from torra.exhibits import money as words
from torra.money.open_positions import PERIODS
from torra.store import tick_listing
from torra.store.trade import notes as note_table
from torra.store.trade import signals as signal_table
from torra.store.trade.notes import TradeNote
from torra.store.trade.rows import SignalRow

SHOWN: Final = 50
MOST: Final = 200
"""Trades on a page, and the most that the API returns at once."""

AT_ONCE: Final = 500
"""Trades that the file reads at once, so that a long history takes no memory."""

FILES: Final = 30
"""How often one visitor may take a file in a minute: one of ten years has many megabytes."""

NOTED: Final = (*trade_rows.COLUMNS, "currency", "tags", "note")
"""Columns of the file of closed trades."""

CAME_TO: Final = ("won", "lost")
SIDES: Final = ("BUY", "SELL")
BY_WORD: Final = ("instance", "reason", "tag", "side")
"""What the store narrows a list to as it is written."""


def trade_list() -> dict[str, Any]:
    """Return what a page shows of what the closed trades came to, and the newest of them."""
    query = list_query.read(QUERY)
    context, period, (rows, cursor) = backing(), _period(), _listed(query)
    results, lines = context.money(), context.money_lines(period)
    reasons = {row.close_reason or "unknown" for row in rows}
    reasons |= {reason for account in results.accounts for reason in account.by_reason}
    offered = {
        "instance": [item.id for item in context.settings.instances],
        "reason": sorted(reasons),
        "tag": note_table.tag_names(context.database),
    }
    return {
        "results": results,
        "drawn": {
            account.account: pages.plotted(words.line(account, lines[account.account]))
            for account in results.accounts
            if lines.get(account.account)
        },
        "period": period,
        "periods": list(PERIODS),
        "sums": words,
        "listed": [DeskOrder(None, row) for row in rows],
        "alone": _alone(rows),
        "cursor": cursor,
        "chosen": {**dict.fromkeys(QUERY, ""), **query.words},
        "offered": {name: list_query.offered(name, choices) for name, choices in offered.items()},
        "file": list_query.address(".trades_csv", QUERY),
    }


def api_money() -> ResponseReturnValue:
    """Answer what the trades came to: by account, today, and by day, symbol, side and reason."""
    return jsonify(backing().money().as_json())


def api_money_line() -> ResponseReturnValue:
    """Answer each account's results added up over a period, closed trades and with open ones."""
    period = _period()
    return jsonify(
        period=period,
        accounts={
            name: [
                {"at": iso(point.at), "closed": point.closed, "whole": point.whole}
                for point in points
            ]
            for name, points in backing().money_lines(period).items()
        },
    )


def api_trades() -> ResponseReturnValue:
    """Answer closed trades as stored, newest first; `next` is what to ask as `before`."""
    rows, older = _listed(list_query.read(QUERY))
    return jsonify(trades=[row.as_json() for row in rows], next=older)


def trades_csv() -> Response:
    """Answer every closed trade of the filter as a file, newest first."""
    known, query = backing(), list_query.read(QUERY)
    return trade_rows.file("trades", _all(known.database, query, cache(known.currency)), NOTED)


# --- details --------------------------------------------------------------------------------------


def _period() -> str:
    """Return the period of the line that is asked for; all for a word that is none."""
    period = request.args.get("line", "")
    return period if period in PERIODS else "all"


def _listed(query: ListQuery) -> tuple[list[SignalRow], str | None]:
    """Return the trades of a page, and where the next page begins if there is one."""
    # one more than is shown, to know whether there are older ones
    rows = _rows(backing().database, query, query.before, query.limit + 1)
    shown = rows[: query.limit]
    return shown, f"{shown[-1].closed_at}|{shown[-1].seq}" if len(rows) > query.limit else None


def _rows(
    database: Database, query: ListQuery, before: tuple[str, int] | None, limit: int
) -> list[SignalRow]:
    only = {name: word for name, word in query.words.items() if name in BY_WORD}
    only |= {"begin": query.begin} if query.begin else {}
    only |= {"end": query.end} if query.end != "~" else {}
    result = query.words.get("result", "")
    rows = signal_table.closed_list(database, only, came_to=result, before=before, limit=limit)
    notes = note_table.trade_notes(database, [row.sid for row in rows])
    own = [notes.get(row.sid, TradeNote()) for row in rows]
    return marked(
        database,
        (
            row.model_copy(update={"note": note.note, "tags": " ".join(note.tags)})
            for row, note in zip(rows, own, strict=True)
        ),
    )


def _alone(rows: Sequence[SignalRow]) -> dict[str, str]:
    """Return in words what L1 alone would have done at the opening of each trade, by its id."""
    verdicts = tick_listing.alone_of(backing().database, ["|".join(row.bar) for row in rows])
    alone = {}
    for row in rows:
        relations = {row.side: "the same side", "HOLD": "no trade", "": figures.DASH}
        alone[row.sid] = relations.get(verdicts.get("|".join(row.bar)) or "", "the other side")
    return alone


def _all(
    database: Database, query: ListQuery, currency: Callable[[str], str]
) -> Iterator[Mapping[str, JsonValue]]:
    before = query.before
    while rows := _rows(database, query, before, AT_ONCE):
        yield from (row.model_dump() | {"currency": currency(str(row.bridge))} for row in rows)
        before = str(rows[-1].closed_at), rows[-1].seq


QUERY: Final[Fields] = {
    "instance": {"type": "string", "description": "Only this instance."},
    "side": {"type": "string", "enum": list(SIDES)},
    "reason": {"type": "string", "description": "Only this reason of the exit, such as STOPPED."},
    "result": {"type": "string", "enum": list(CAME_TO)},
    "tag": {"type": "string", "description": "Only trades to which a person gave this tag."},
    "from": {"type": "string", "format": "date", "description": "First UTC day of the close."},
    "to": {"type": "string", "format": "date", "description": "Last UTC day of the close."},
    "before": {"type": "string", "description": "The `next` of the answer before."},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": SHOWN},
}
PERIOD: Final[Fields] = {"line": {"type": "string", "enum": list(PERIODS), "default": "all"}}
OF_A_FILE: Final = {name: field for name, field in QUERY.items() if name != "limit"}

ROUTES = (
    Route("/trades.csv", "trades_csv", trades_csv, reply="csv", per_minute=FILES, query=OF_A_FILE),
    Route("/api/v1/trades", "api_trades", api_trades, reply="json", query=QUERY),
    Route("/api/v1/money", "api_money", api_money, reply="json"),
    Route("/api/v1/money/line", "api_money_line", api_money_line, reply="json", query=PERIOD),
)
