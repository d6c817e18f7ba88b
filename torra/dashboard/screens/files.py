"""Ticks and calls as CSV files, newest first, for a spreadsheet: numbers and states, no prose.

A file is written while it is read, some rows at a time, so a long history takes no memory. No cell
can start a formula in a spreadsheet. What models saw and said is in neither: the page of a tick has
it. Without a database there is no file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from flask import Response, abort, request

from torra.dashboard.doors.routes import Fields, Route
from torra.dashboard.screens import history
from torra.dashboard.screens.history import HistoryQuery
from torra.dashboard.trade import trade_rows
from torra.dashboard.trade.trades import AT_ONCE, FILES
from torra.dashboard.view import list_query
from torra.dashboard.view.rendering import backing
from torra.store import hosted as hosted_table
from torra.store import replay_queries, tick_listing

if TYPE_CHECKING:
    from instance_database import Database

TICKS: Final = (
    "instance", "timeframe", "bar_time", "close_time", "price_action", "key_levels", "momentum",
    "structure", "ath", "l1_composite", "composite", "l1_consensus", "consensus", "l1_verdict",
    "verdict", "action", "reason", "source_type", "cost_usd", "elapsed_ms",
)  # fmt: skip
"""Columns of the file of ticks; the four scores are blended, those of L1 are in its composite."""

CALLS: Final = (
    "at", "torra_key", "stage", "role", "round", "attempt", "status", "provider", "model",
    "input_tokens", "cached_tokens", "output_tokens", "cost_usd", "elapsed_ms", "stop_reason",
)  # fmt: skip
"""Columns of the file of calls; times are real, amounts in US dollars."""


def ticks_csv() -> Response:
    """Answer the ticks that are asked for, of every stream unless one is named, as a file."""
    query = HistoryQuery(*list_query.read(history.QUERY))
    database = backing().database
    _require_stream(database, query.words)
    return trade_rows.file("ticks", history.every_tick(database, query, AT_ONCE), TICKS)


def calls_csv() -> Response:
    """Answer the calls of the agents as a file, with what each cost."""
    begin, end = list_query.days(request.args)
    return trade_rows.file("calls", _calls(backing().database, begin, end), CALLS)


# --- details --------------------------------------------------------------------------------------


def _require_stream(database: Database, words: Mapping[str, str]) -> None:
    """End the request with 404 for a stream that the desk neither has nor had."""
    settings = backing().settings
    known = {
        (one.id, frame)
        for one in [*settings.instances, *hosted_table.hosted_instances(database)]
        for frame in one.timeframes
    }
    known |= {(kind.instance, kind.timeframe) for kind in tick_listing.tick_kinds(database)}
    instance, timeframe = words.get("instance"), words.get("timeframe")
    fitting = (instance in (None, one) and timeframe in (None, frame) for one, frame in known)
    if (instance or timeframe) and not any(fitting):
        abort(404)


def _calls(database: Database, begin: str, end: str) -> Iterator[Mapping[str, Any]]:
    place = None
    while rows := replay_queries.calls_before(database, place, AT_ONCE):
        yield from (row for row in rows if begin <= str(row["at"]) < end)
        place = int(rows[-1]["place"])


DAYS: Final[Fields] = {
    "from": {"type": "string", "format": "date", "description": "First UTC day."},
    "to": {"type": "string", "format": "date", "description": "Last UTC day."},
}
ROUTES = (
    Route(
        "/ticks.csv",
        "ticks_csv",
        ticks_csv,
        reply="csv",
        per_minute=FILES,
        query=history.FILTERS,
    ),
    Route("/calls.csv", "calls_csv", calls_csv, reply="csv", per_minute=FILES, query=DAYS),
)
