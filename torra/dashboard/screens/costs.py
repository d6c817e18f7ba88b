"""The screen Cost: what models have cost, what is left of each hour, and what the money bought.

The figures are those of `torra cost` (torra.desk.costs), read from the ledger of the open
database. Times are real, even if the desk's clock runs faster. If no provider costs money, the page
says so. Nothing is changed here.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from flask import jsonify
from flask.typing import ResponseReturnValue

from agent_config import MODES
from torra.clock import parse
from torra.config import Profile
from torra.dashboard.doors.routes import Api, Route
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.rendering import backing, desk_page
from torra.desk import costs as cost_report
from torra.desk.costs import Row
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.store import hosted as hosted_table
from torra.store import tick_queries
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
    behind = backing()
    report = document(behind)
    spent = report["last_24_hours"]["calls"] or any(row["usd"] for row in report["days"])
    free = not report["paying"] and not spent
    setups = [(setup.instance, setup.profile) for setup in behind.desk.setups.values()]
    return desk_page(
        "costs.html",
        report=report,
        wait=lambda at: figures.span((parse(at) - parse(report["at"])).total_seconds()),
        step_above=step_above,
        unasked=UNASKED,
        degradation_levels=DEGRADATION_LEVELS,
        free=free,
        models=cost_report.of_vendors(behind.home, setups) if free else [],
    )


def api_costs() -> ResponseReturnValue:
    """Answer the figures of the screen Cost."""
    return jsonify(report=document(backing()))


def document(behind: PageContext) -> Row:
    """Return the report of `torra cost` from the open database, and more.

    That is `paying`, the vendors that the desk may pay, and `changed`, how many verdicts the
    agents changed, of all.
    """
    instances = [*behind.settings.instances, *hosted_table.hosted_instances(behind.database)]
    profile_of = partial(_profile, behind)
    report = cost_report.report(
        behind.home,
        behind.database,
        [item.profile for item in instances],
        behind.desk.clock.real_now(),
        environment=behind.environment,
        settings=profile_of,
        past=_PASTS.setdefault(behind.database, cost_report.LedgerSums()),
    )
    tallies = tick_queries.verdict_tallies(
        behind.database, [item.id for item in instances]
    ).values()
    profiles = filter(None, (profile_of(item.profile) for item in instances))
    return report | {
        "paying": sorted({vendor for profile in profiles for vendor in profile.agents.paid()}),
        "changed": {
            "changed": sum(changed for changed, _ in tallies),
            "all": sum(every for _, every in tallies),
        },
    }


def step_above(row: Row) -> Row | None:
    """Return the step of a profile's ladder to which it climbs next; None on the highest."""
    return next((above for above, step in pairwise(row["ladder"]) if step["here"]), None)


def _profile(behind: PageContext, name: str) -> Profile | None:
    """Return a profile as the desk has it, or as its file says; None for one that is broken."""
    for setup in behind.desk.setups.values():
        # the profile that the desk runs with: its file may be newer
        if setup.instance.profile == name:
            return setup.profile
    try:
        return cost_report.profile_of(name, behind.home)
    except ConfigError:
        return None


ROUTES = (
    Route("/costs", "costs", costs),
    Api("/api/v1/costs", "api_costs", api_costs),
)
