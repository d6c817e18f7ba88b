"""The screen Cost: what models have cost, what is left of each hour, and what the money bought.

The figures are those of `torra cost` (torra.desk.costs), read from the ledger of the open
database. Times are real, even if the desk's clock runs faster. If no provider costs money, the page
says so. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from flask import jsonify, url_for
from flask.typing import ResponseReturnValue

from agent_config import MODES
from torra.clock import parse
from torra.config import Profile
from torra.dashboard.cells import symbol_cells
from torra.dashboard.doors.routes import Route
from torra.dashboard.record.stored import Row
from torra.dashboard.view.backing import Backing
from torra.dashboard.view.rendering import backing, desk_view, page
from torra.desk import costs as cost_report
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.tick.ladder import CUSTOM, UNASKED

if TYPE_CHECKING:
    from instance_database import Database

WIDTH, HEIGHT = 600.0, 100.0
"""Coordinates of the bars of the days."""

GAP: Final = 0.25
"""Free space between two bars, as a share of a day's width."""

LEAST: Final = 1.5
"""Least height of the bar of a day that cost anything at all."""

SUMS: Final = (
    ("last_hour", "Last 60 minutes"),
    ("today", "Today (UTC)"),
    ("last_24_hours", "Last 24 hours"),
)
RUNGS: Final = {
    **{name: row.rung for name, row in MODES.items()},
    CUSTOM: "the agents that the profile names are asked",
    UNASKED: "nobody is asked: scores are L1 alone",
}
"""Agents that are asked on each rung of the ladder."""

Cells = dict[str, Row]

# weak: what is remembered goes with its database
_PASTS: WeakKeyDictionary[Database, cost_report.LedgerSums] = WeakKeyDictionary()


def costs() -> str:
    """Show what models cost, by hour, day, role and model, against the ceilings."""
    desk = desk_view().desk()
    told = document(backing())
    return page(
        "costs.html",
        desk,
        live=url_for(".api_costs"),
        told=told,
        **shown(desk, told),
    )


def api_costs() -> ResponseReturnValue:
    """Answer the figures of the screen Cost."""
    desk = desk_view().desk()
    told = document(backing())
    arranged = shown(desk, told)
    return jsonify(shape=arranged["shape"], cells=arranged["cells"], report=told)


def document(behind: Backing) -> Row:
    """Return the report of `torra cost` from the open database, and the verdicts changed."""
    instances = behind.settings.instances
    told = cost_report.report(
        behind.home,
        behind.database,
        [item.profile for item in instances],
        behind.desk.clock.real_now(),
        environment=behind.environment,
        settings=partial(_profile, behind),
        past=_PASTS.setdefault(behind.database, cost_report.LedgerSums()),
    )
    changes = [behind.database.verdict_changes(item.id) for item in instances]
    return told | {
        "paying": sorted({v for item in instances for v in _vendors(behind, item.profile)}),
        "changed": {
            "changed": sum(changed for changed, _ in changes),
            "all": sum(every for _, every in changes),
        },
    }


def _profile(behind: Backing, name: str) -> Profile | None:
    """Return a profile as the desk has it, or as its file says; None for one that is broken."""
    for item in behind.settings.instances:
        # the profile that the desk runs with: its file may be newer
        if item.profile == name and item.id in behind.desk.setups:
            found: Profile = behind.desk.setups[item.id].profile
            return found
    try:
        return cost_report.profile_of(name, behind.home)
    except ConfigError:
        return None


def _vendors(behind: Backing, name: str) -> list[str]:
    found = _profile(behind, name)
    return sorted(found.agents.paid()) if found else []


# --- arranging ------------------------------------------------------------------------------------


def shown(desk: Mapping[str, Any], told: Mapping[str, Any]) -> Row:
    """Return {"cells", "shape", "sums", "groups", "profiles", "days", "kept", "free"}."""
    cells = symbol_cells.strip(desk)
    for name, _ in SUMS:
        cells |= _sum(name, told[name])
    month = sum(row["usd"] for row in told["days"])
    cells["month.usd"] = _text(figures.money(month))
    cells["projected.usd"] = _text(figures.money(told["projected_day_usd"]))
    cells["late.text"] = _text(_late(told["late"]))
    cells["changed.text"] = _text(_changed(told["changed"]))
    cells["days.path"] = _text("") | {"set": {"d": bars([row["usd"] for row in told["days"]])}}
    profiles = []
    for number, row in enumerate(told["profiles"]):
        cells |= _profile_cells(f"p{number}", row, told["at"])
        profiles.append({"key": f"p{number}", "name": row["profile"], "row": row})
    groups = [
        (kind, [_group(cells, kind, at, row) for at, row in _listed(told, kind)])
        for kind in ("role", "model")
    ]
    return {
        "cells": cells,
        "shape": _shape(told),
        "sums": SUMS,
        "groups": groups,
        "profiles": profiles,
        "rungs": RUNGS,
        "kept": [_kept(row) for row in told["kept"]],
        "days": [_day(row) for row in reversed(told["days"])],
        "dearest": figures.money(max((row["usd"] for row in told["days"]), default=0.0)),
        "free": not told["paying"] and not month and not told["last_24_hours"]["calls"],
    }


def _shape(told: Mapping[str, Any]) -> str:
    """Return the shape of the page, which must not change if new cells are to fit it."""
    parts = [
        told["days"][-1]["day"],
        *(row["profile"] + str(len(row["ladder"])) for row in told["profiles"]),
        *(f"{kind}:{row[kind]}" for kind in ("role", "model") for _, row in _listed(told, kind)),
        *(f"{row['id']}{row['under_way']}" for row in told["kept"]),
        *(row["provider"] for row in told["blocked"]),
    ]
    return figures.clean("|".join(parts), 4000)


def _listed(told: Mapping[str, Any], kind: str) -> list[tuple[int, Row]]:
    return list(enumerate(told[f"{kind}s"]))


def _sum(key: str, row: Mapping[str, Any]) -> Cells:
    kept = figures.money(row["kept_usd"])
    share = f"{row['kept_share']:.0%}"
    return {
        f"{key}.usd": _text(figures.money(row["usd"])),
        f"{key}.calls": _text(figures.plain(row["calls"], 0)),
        f"{key}.in": _text(figures.plain(row["input_tokens"], 0)),
        f"{key}.cached": _text(figures.plain(row["cached_tokens"], 0)),
        f"{key}.out": _text(figures.plain(row["output_tokens"], 0)),
        f"{key}.kept": _text(
            f"{kept} ({share})" if row["kept_calls"] else kept, "warn" if row["kept_calls"] else ""
        ),
    }


def _group(cells: Cells, kind: str, number: int, row: Mapping[str, Any]) -> tuple[str, str]:
    """Add the cells of a group; return their key and the group's name."""
    key = f"{kind}.{number}"
    cells |= _sum(key, row)
    return key, figures.clean(row[kind], 120)


def _profile_cells(key: str, row: Mapping[str, Any], now: str) -> Cells:
    ceiling, spent = row["ceiling_usd"], row["spent_usd"]
    share = min(1.0, spent / ceiling) if ceiling else 0.0
    # the same shares as on the overview (cells.overview.NEAR_CEILING)
    tone = "alert" if share >= 1 else "warn" if share >= 0.8 else ""
    used = figures.DASH if ceiling is None else f"{share:.0%} used"
    held = figures.mark(row["rung"]).text if row["rung"] else figures.DASH
    return {
        f"{key}.spent": _text(figures.money(spent), tone),
        f"{key}.used": _text(used, tone),
        f"{key}.meter": _text("") | {"set": {"width": round(share * 100, 2)}},
        f"{key}.left": _text(figures.money(row["left_usd"])),
        f"{key}.rung": _text(held, "warn" if row["rung"] == UNASKED else ""),
        f"{key}.why": _text(_why(row)),
        f"{key}.fits": _text(_fits(row, now), "" if row["ticks_left"] != 0 else "warn"),
        f"{key}.leaves": _text(_leaves(row, now)),
        f"{key}.ahead": _text(_ahead(row), "warn") | {"hidden": not row["booked_ahead"]},
    }


def _why(row: Mapping[str, Any]) -> str:
    """Return why a profile is on its rung."""
    if row["rung"] is None:
        return "the profile is gone, or its file cannot be read"
    if not row["worst_tick_usd"]:
        return "its agents cost nothing"
    since = f" since {figures.moment(row['rung_since'])}" if row["rung_since"] else ""
    ladder = row["ladder"]
    place = next((at for at, step in enumerate(ladder) if step["here"]), 0)
    if place == 0:
        return f"the highest rung{since}: its worst case fits what is left of the hour"
    above = ladder[place - 1]
    return (
        f"stepped down{since}: it climbs back to {above['rung']} when "
        f"{figures.money(above['needs_usd'])} of the hour is left"
    )


def _fits(row: Mapping[str, Any], now: str) -> str:
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


def _leaves(row: Mapping[str, Any], now: str) -> str:
    if row["oldest_leaves_at"] is None:
        return "nothing counts in this hour"
    wait = (parse(row["oldest_leaves_at"]) - parse(now)).total_seconds()
    return f"{figures.moment(row['oldest_leaves_at'])}, in {figures.span(wait)}"


def _ahead(row: Mapping[str, Any]) -> str:
    return (
        f"{row['booked_ahead']} calls were booked by a clock ahead of this one: they count until "
        "an hour after the time they bear"
    )


def _late(told: Mapping[str, Any]) -> str:
    if not told["of"]:
        return "no call is on record"
    return f"{told['calls']} of the newest {told['of']} calls"


def _changed(told: Mapping[str, Any]) -> str:
    """Say plainly in how many ticks the verdict differs from that of L1 alone."""
    if not told["all"]:
        return "No tick is on record yet."
    same = told["all"] - told["changed"]
    return (
        f"{told['changed']:,} of {told['all']:,} verdicts ({told['changed'] / told['all']:.1%}) "
        f"differ from what L1 alone said. What was spent on the other {same:,} bought no other "
        "verdict. Whether a changed one was a better one, only a scorecard can say."
    )


def _kept(row: Mapping[str, Any]) -> Row:
    # padded: a key of another form gives three parts too
    instance, timeframe, bar_time = (*str(row["torra_key"]).split("|", 2), "", "")[:3]
    state = "under way" if row["under_way"] else "kept"
    return {
        "at": figures.moment(row["at"]),
        "usd": figures.money(row["usd"]),
        "role": figures.clean(row["role"], 60),
        "model": figures.clean(f"{row['provider']}:{row['model']}", 120),
        "profile": figures.clean(row["profile"], 60),
        "tick": figures.clean(f"{instance} {timeframe} {figures.moment(bar_time)}", 120),
        "state": {"text": ("◌ " if row["under_way"] else "◐ ") + state},
    }


def _day(row: Mapping[str, Any]) -> Row:
    return {
        "day": row["day"],
        "usd": figures.money(row["usd"]),
        "calls": figures.plain(row["calls"], 0),
    }


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


def _text(text: str, tone: str = "", title: str = "") -> Row:
    return {"text": text, "tone": tone, "title": title}


ROUTES = (
    Route("/costs", "costs", costs),
    Route("/api/v1/costs", "api_costs", api_costs, reply="json"),
)
