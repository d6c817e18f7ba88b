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
    data, sort, links, behind = desk_view().overview(), _sort(), Links(), state().backing
    shown = glance.overview(data, links.tick, links.instance, sort, rows=rows)
    found = None if rows or behind is None else behind.money(tags=False)
    if behind is not None and found is not None:
        lines = behind.money_lines(_period())
        shown["cells"] |= {**home_cells.money(found, lines), **home_cells.risk(found)}
    return page(
        template,
        data.desk,
        live=True,
        sort=sort,
        sorts=glance.SORTS,
        period=_period(),
        periods=home_cells.PERIODS,
        timeframes=glance.timeframes_of(data),
        debates=data.debates[: glance.WATCHED],
        running=len(data.debates),
        watch_link=watch_link,
        waiting=approvals.waiting(home_cells.WAITING) if found and data.desk.waiting else [],
        accounts=None if found is None else home_cells.accounts_shown(found),
        agents=None if rows else _agents(data, behind),
        kept=_kept,
        **shown,
    )


def _agents(data: Overview, behind: PageContext | None) -> Mapping[str, Any]:
    """Return how many verdicts the agents changed, what that was worth, and who only looks on."""
    known = [one.changes for one in data.instances if one.feed != FEED]
    changed = sum(one.changed for one in known)
    every = sum(one.every for one in known)
    worth = job_table.newest_says(behind.database, "worth") if behind else ""
    return {
        "changed": changed,
        "every": every,
        "worth": home_cells.agents_worth(changed, every, worth),
        "badge": _watch(behind) if behind else "",
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
