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

from flask import jsonify, url_for
from flask.typing import ResponseReturnValue

from agent_config import MODES
from torra.clock import parse
from torra.config import Profile
from torra.dashboard.cells.common import Cells, words
from torra.dashboard.doors.routes import Api, Route
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.rendering import backing, desk_cells, desk_page
from torra.desk import costs as cost_report
from torra.desk.costs import Row
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.store import hosted as hosted_table
from torra.store import tick_queries
from torra.tick.spending import CUSTOM, UNASKED

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
        live=url_for(".api_costs"),
        told=told,
        cells=_cells(told),
        layout_version=_layout_version(told),
        sums=SUMS,
        groups=_groups(told),
        degradation_levels=DEGRADATION_LEVELS,
        free=free,
        models=cost_report.of_vendors(behind.home, setups) if free else [],
    )


def api_costs() -> ResponseReturnValue:
    """Answer the figures of the screen Cost."""
    told = document(backing())
    return jsonify(
        layout_version=_layout_version(told), cells=desk_cells() | _cells(told), report=told
    )


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


def _cells(told: Row) -> Cells:
    cells: Cells = {}
    cells |= _sum("last_hour", told["last_hour"]) | _sum("today", told["today"])
    cells |= _sum("last_24_hours", told["last_24_hours"])
    days, late = [row["usd"] for row in told["days"]], told["late"]
    cells["month.usd"] = words(figures.money(sum(days)))
    cells["projected.usd"] = words(figures.money(told["projected_day_usd"]))
    late_text = f"{late['calls']} of the newest {late['of']} calls"
    cells["late.text"] = words(late_text if late["of"] else "no call is on record")
    cells["changed.text"] = words(_changed(told["changed"]))
    cells["days.path"] = words("") | {"set": {"d": bars(days)}}
    for number, row in enumerate(told["profiles"]):
        cells |= _profile_cells(f"p{number}", row, told["at"])
    for kind, rows in _groups(told).items():
        for number, (_, sums) in enumerate(rows):
            cells |= _sum(f"{kind}.{number}", sums)
    return cells


def _layout_version(told: Row) -> str:
    """Return the layout of the page, which must not change if new cells are to fit it."""
    parts = [
        told["days"][-1]["day"],
        *told["paying"],
        *(row["profile"] + str(len(row["ladder"])) for row in told["profiles"]),
        *(f"{kind}:{name}" for kind, rows in _groups(told).items() for name, _ in rows),
        *(f"{row['id']}{row['under_way']}" for row in told["kept"]),
        *(row["provider"] for row in told["blocked"]),
    ]
    return figures.sanitize("|".join(parts), 4000)


def _groups(told: Row) -> dict[str, list[tuple[str, Row]]]:
    """Return the sums by role and by model, each with its name."""
    return {
        "role": [(row["role"], row) for row in told["roles"]],
        "model": [(row["model"], row) for row in told["models"]],
    }


def _sum(key: str, row: Row) -> Cells:
    kept = figures.money(row["kept_usd"])
    share = f"{row['kept_share']:.0%}"
    return {
        f"{key}.usd": words(figures.money(row["usd"])),
        f"{key}.calls": words(figures.plain(row["calls"], 0)),
        f"{key}.in": words(figures.plain(row["input_tokens"], 0)),
        f"{key}.cached": words(figures.plain(row["cached_tokens"], 0)),
        f"{key}.out": words(figures.plain(row["output_tokens"], 0)),
        f"{key}.kept": words(
            f"{kept} ({share})" if row["kept_calls"] else kept, "warn" if row["kept_calls"] else ""
        ),
    }


def _profile_cells(key: str, row: Row, now: str) -> Cells:
    ceiling, spent = row["ceiling_usd"], row["spent_usd"]
    share = min(1.0, spent / ceiling) if ceiling else 0.0
    # the same shares as on the overview (cells.overview.NEAR_CEILING)
    tone = "alert" if share >= 1 else "warn" if share >= 0.8 else ""
    used = figures.DASH if ceiling is None else f"{share:.0%} used"
    held = figures.mark(row["degradation_level"]).text if row["degradation_level"] else figures.DASH
    return {
        f"{key}.spent": words(figures.money(spent), tone),
        f"{key}.used": words(used, tone),
        f"{key}.meter": words("") | {"set": {"width": round(share * 100, 2)}},
        f"{key}.left": words(figures.money(row["left_usd"])),
        f"{key}.degradation_level": words(
            held, "warn" if row["degradation_level"] == UNASKED else ""
        ),
        f"{key}.why": words(_why(row)),
        f"{key}.fits": words(_fits(row, now), "" if row["ticks_left"] != 0 else "warn"),
        f"{key}.leaves": words(_leaves(row, now)),
        f"{key}.ahead": words(
            f"{row['booked_ahead']} calls were booked by a clock ahead of this one: they count "
            "until an hour after the time they bear",
            "warn",
        )
        | {"hidden": not row["booked_ahead"]},
    }


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
