"""The screen Cost: what models have cost, what is left of each hour, and what the money bought.

The figures are those of `torra cost` (torra.desk.costs), read from the ledger of the open
database. Times are real, even if the desk's clock runs faster. If no provider costs money, the page
says so. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
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

WIDTH, HEIGHT = 600.0, 100.0
"""Coordinates of the bars of the days."""

GAP: Final = 0.25
"""Free space between two bars, as a share of a day's width."""

LEAST: Final = 1.5
"""Least height of the bar of a day that cost anything at all."""

SUMS: Final = (
    ("Last 60 minutes", "last_hour"),
    ("Today (UTC)", "today"),
    ("Last 24 hours", "last_24_hours"),
)
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
    told = document(behind)
    spent = told["last_24_hours"]["calls"] or any(row["usd"] for row in told["days"])
    free = not told["paying"] and not spent
    setups = [(setup.instance, setup.profile) for setup in behind.desk.setups.values()]
    return desk_page(
        "costs.html",
        live=True,
        told=told,
        spent=[{"when": when, **told[name]} for when, name in SUMS],
        month=[row["usd"] for row in told["days"]],
        bars=bars,
        used=_used,
        why=_why,
        fits=_fits,
        leaves=_leaves,
        changed=_changed(told["changed"]),
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
    told = cost_report.report(
        behind.home,
        behind.database,
        [item.profile for item in instances],
        behind.desk.clock.real_now(),
        environment=behind.environment,
        settings=partial(_profile, behind),
        past=_PASTS.setdefault(behind.database, cost_report.LedgerSums()),
    )
    tallies = tick_queries.verdict_tallies(
        behind.database, [item.id for item in instances]
    ).values()
    return told | {
        "paying": sorted({v for item in instances for v in _vendors(behind, item.profile)}),
        "changed": {
            "changed": sum(changed for changed, _ in tallies),
            "all": sum(every for _, every in tallies),
        },
    }


def _profile(behind: PageContext, name: str) -> Profile | None:
    """Return a profile as the desk has it, or as its file says; None for one that is broken."""
    for item in behind.settings.instances:
        # the profile that the desk runs with: its file may be newer
        if item.profile == name and item.id in behind.desk.setups:
            return behind.desk.setups[item.id].profile
    try:
        return cost_report.profile_of(name, behind.home)
    except ConfigError:
        return None


def _vendors(behind: PageContext, name: str) -> list[str]:
    found = _profile(behind, name)
    return sorted(found.agents.paid()) if found else []


# --- arranging ------------------------------------------------------------------------------------


def _used(row: Row) -> tuple[float, str]:
    """Return the share of a ceiling that is spent, and its tone."""
    ceiling = row["ceiling_usd"]
    share = min(1.0, row["spent_usd"] / ceiling) if ceiling else 0.0
    return share, figures.share_tone(share)


def _why(row: Row) -> str:
    """Return why a profile is on its level."""
    if row["degradation_level"] is None:
        return "the profile is gone, or its file cannot be read"
    if not row["worst_tick_usd"]:
        return "its agents cost nothing"
    since = (
        f" since {figures.moment(row['degradation_level_since'])}"
        if row["degradation_level_since"]
        else ""
    )
    ladder = row["ladder"]
    place = next((at for at, step in enumerate(ladder) if step["here"]), 0)
    if place == 0:
        return f"the highest level{since}: its worst case fits what is left of the hour"
    above = ladder[place - 1]
    return (
        f"stepped down{since}: it climbs back to {above['degradation_level']} when "
        f"{figures.money(above['needs_usd'])} of the hour is left"
    )


def _fits(row: Row, now: str) -> str:
    if row["ceiling_usd"] is None:
        return figures.DASH
    if row["ticks_left"] is None:
        return "any number: its agents cost nothing"
    if row["ticks_left"]:
        return f"{row['ticks_left']} now, {row['ticks_an_hour']} in an hour"
    if row["free_at"] is None:
        return "none, ever: the worst case of one tick is more than the ceiling"
    wait = (parse(row["free_at"]) - parse(now)).total_seconds()
    return f"none now; the next from {figures.moment(row['free_at'])}, in {figures.span(wait)}"


def _leaves(row: Row, now: str) -> str:
    if row["oldest_leaves_at"] is None:
        return "nothing counts in this hour"
    wait = (parse(row["oldest_leaves_at"]) - parse(now)).total_seconds()
    return f"{figures.moment(row['oldest_leaves_at'])}, in {figures.span(wait)}"


def _changed(told: Row) -> str:
    """Say plainly in how many ticks the verdict differs from that of L1 alone."""
    if not told["all"]:
        return "No tick is on record yet."
    same = told["all"] - told["changed"]
    return (
        f"{told['changed']:,} of {told['all']:,} verdicts ({told['changed'] / told['all']:.1%}) "
        f"would have been others without agents. What was spent on the other {same:,} bought no "
        "other verdict. Whether a changed one was a better one, only a scorecard can say."
    )


def bars(values: Sequence[float]) -> str:
    """Return the path of one bar for each value, the highest as high as there is room."""
    most = max(values, default=0.0)
    if not most:
        return ""
    step = WIDTH / len(values)
    parts = []
    for place, value in enumerate(values):
        if value <= 0:
            continue
        high = max(LEAST, value / most * HEIGHT)
        left, wide = place * step + step * GAP / 2, step * (1 - GAP)
        parts.append(f"M{left:.1f} {HEIGHT:.0f}v{-high:.1f}h{wide:.1f}v{high:.1f}z")
    return "".join(parts)


ROUTES = (
    Route("/costs", "costs", costs),
    Api("/api/v1/costs", "api_costs", api_costs),
)
