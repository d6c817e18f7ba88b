"""Home and the list of all symbols: what a trader asks first, from the desk's view and money.

Home answers, from the top: what waits for a person, how the money stands, what it may still lose,
what the agents changed, what they cost, and how each symbol stands. A desk of more than CARDS
symbols has a row for each of them, as the page Symbols has. Nothing is changed. An app over a view
without a database knows no money, and shows none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from torra.dashboard.cells import home_cells
from torra.dashboard.cells import overview_cells as glance
from torra.dashboard.doors.routes import Api, Fields, Route
from torra.dashboard.record.shown import WATCH_ONLY
from torra.dashboard.screens.views import Links, watch_link
from torra.dashboard.trade import approvals
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_values import Overview
from torra.dashboard.view.kept import LruCache
from torra.dashboard.view.rendering import desk_view, page, state
from torra.desk.promotion import watch_only
from torra.evaluation.wording import listed
from torra.money.book import Money
from torra.money.open_positions import PERIODS
from torra.store import jobs as job_table
from torra.store.hosted import FEED

PIECES: Final[LruCache[str]] = LruCache(1024)
"""Rendered rows of symbols; the key of each is everything that it shows."""

QUERY: Final[Fields] = {
    "sort": {"type": "string", "enum": list(glance.SORTS)},
    "line": {"type": "string", "enum": list(home_cells.PERIODS), "default": "today"},
}


def overview() -> str:
    """Show Home."""
    return _shown("overview.html", rows=False)


def symbols() -> str:
    """Show every symbol of the desk as a row."""
    return _shown("symbols.html", rows=True)


def api_overview() -> ResponseReturnValue:
    """Answer the desk, its symbols with their streams, and the debates that run."""
    data = desk_view().overview()
    return jsonify(
        desk=data.desk.as_json(),
        symbols=[symbol.as_json() for symbol in data.instances],
        debates=[debate._asdict() for debate in data.debates],
    )


# --- details --------------------------------------------------------------------------------------


def _shown(template: str, *, rows: bool) -> str:
    data, sort, period = desk_view().overview(), _sort(), _period()
    cells, found = _cells(data, rows=rows)
    return page(
        template,
        data.desk,
        live=True,
        sort=sort,
        sorts=glance.SORTS,
        period=period,
        periods=home_cells.PERIODS,
        timeframes=glance.timeframes_of(data),
        watched=range(glance.WATCHED),
        waiting=range(home_cells.WAITING),
        accounts=None if found is None else home_cells.accounts_shown(found),
        kept=_kept,
        **cells,
    )


def _cells(data: Overview, *, rows: bool) -> tuple[glance.OverviewShown, Money | None]:
    """Return the cells of the symbols, and on Home those of the desk's money, and the money."""
    links = Links()
    found = glance.overview(data, links.tick, watch_link, links.instance, _sort(), rows=rows)
    behind = state().backing
    told = None if rows or behind is None else behind.money(tags=False)
    if not rows:
        found["cells"] |= _money(data, told)
    return found, told


def _money(data: Overview, found: Money | None) -> Mapping[str, Any]:
    known = [one.changes for one in data.instances if one.feed != FEED]
    made = sum(one.changed for one in known)
    every = sum(one.every for one in known)
    behind = state().backing
    worth = "" if behind is None else job_table.newest_says(behind.database, "worth")
    watch = "" if behind is None else _watch(behind)
    cells = home_cells.models(data.desk) | home_cells.agents(made, every, worth, watch)
    if behind is None or found is None:
        return cells
    waits = approvals.waiting(home_cells.WAITING) if data.desk.waiting else []
    return {
        **cells,
        **home_cells.money(found, behind.money_lines(_period())),
        **home_cells.risk(found),
        **home_cells.waiting(waits),
    }


def _watch(behind: PageContext) -> str:
    """Return the badge of agents that only look on, with their symbols where others count."""
    setups = behind.desk.setups
    names = [n for n, one in setups.items() if watch_only(behind.database, one.profile)]
    told = f": {listed(names)}" if len(names) < len(setups) else ""
    return WATCH_ONLY + told if names else ""


def _kept(shown: Hashable, caller: Callable[[], str]) -> str:
    """Return a piece of a page; one that shows the same as before is not rendered again."""
    return PIECES.get(shown, caller)


def _sort() -> glance.Sort:
    """Return the order that the request asks for; "attention" for none or an unknown one."""
    asked = request.args.get("sort", "")
    return next((name for name in glance.SORTS if name == asked), "attention")


def _period() -> str:
    """Return the period of the line of money; today for a word that is none."""
    asked = request.args.get("line", "")
    return asked if asked in home_cells.PERIODS and asked in PERIODS else "today"


ROUTES = (
    Route("/", "overview", overview, query=QUERY),
    Route("/symbols", "symbols", symbols, query={"sort": QUERY["sort"]}),
    Api("/api/v1/overview", "api_overview", api_overview),
)
