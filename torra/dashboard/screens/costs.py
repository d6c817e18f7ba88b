"""The screen Cost: what models have cost, what is left of each hour, and what the money bought.

The figures are those of `torra cost` (torra.desk.costs), read from the ledger of the open
database. Times are real, even if the desk's clock runs faster. If no provider costs money, the page
says so. Nothing is changed here.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from flask import jsonify
from flask.typing import ResponseReturnValue

from agent_config import MODES
from torra.clock import parse
from torra.dashboard.doors.routes import Api, Route
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.rendering import backing, desk_page
from torra.desk import costs as cost_report
from torra.desk.costs import Row
from torra.exhibits import figures
from torra.tick.degradation import CUSTOM, UNASKED

if TYPE_CHECKING:
    from instance_database import Database

DEGRADATION_LEVELS: Final = {
    **{name: row.asks for name, row in MODES.items()},
    CUSTOM: "the agents that the profile names are asked",
    UNASKED: "nobody is asked: the bars alone decide",
}
"""Agents that are asked on each level of the ladder."""


# weak: what is remembered goes with its database
_PASTS: WeakKeyDictionary[Database, cost_report.LedgerSums] = WeakKeyDictionary()


def costs() -> str:
    """Show what models cost, by hour, day, role and model, against the ceilings."""
    report = document(backing())
    return desk_page(
        "costs.html",
        report=report,
        wait=lambda at: figures.span((parse(at) - parse(report["at"])).total_seconds()),
        step_above=step_above,
        unasked=UNASKED,
        degradation_levels=DEGRADATION_LEVELS,
        free=cost_report.is_free(report),
    )


def api_costs() -> ResponseReturnValue:
    """Answer the figures of the screen Cost."""
    return jsonify(document(backing()))


def document(context: PageContext, profile: str | None = None) -> Row:
    """Return the cost report of a desk, or of one profile; raises ConfigError for one not there."""
    return cost_report.report(
        context.home,
        context.database,
        context.setups,
        context.desk.clock.real_now(),
        profile=profile,
        environment=context.environment,
        past=_PASTS.setdefault(context.database, cost_report.LedgerSums()),
    )


def step_above(row: Row) -> Row | None:
    """Return the step of a profile's ladder to which it climbs next; None on the highest."""
    return next((above for above, step in pairwise(row["ladder"]) if step["here"]), None)


ROUTES = (
    Route("/costs", "costs", costs),
    Api("/api/v1/costs", "api_costs", api_costs),
)
