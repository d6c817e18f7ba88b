"""The screen Health: what is well, what needs attention and what to do about it, the worst first.

The signs come from torra.dashboard.screens.health_checks. The checks of `torra doctor`, apart from
the reading of the whole database, run once a minute at most. The database is read through on
request, in a thread of its own, and the result stays until the next one. Nothing else is changed
here; no key is shown.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from flask import jsonify, url_for
from flask.typing import ResponseReturnValue

from torra.dashboard.doors.routes import Api, Command, Route
from torra.dashboard.screens.health_checks import PARTS
from torra.dashboard.view.commanding import CommandOutcome, command
from torra.dashboard.view.desk_values import Overview
from torra.dashboard.view.health_context import DatabaseCheck, HealthContext, checkup
from torra.dashboard.view.rendering import backing, desk_page, desk_view, state
from torra.desk.checks.result import LEVELS, CheckResult, worst
from torra.exhibits import figures

CHECKS_A_MINUTE: Final = 4

LONGEST: Final = 600
"""Characters of a sign's text."""

MARKS: Final = {
    "alert": ("✕ mend", "alert"),
    "warn": ("! look", "warn"),
    "unknown": ("? not known", "warn"),
    "note": ("◦ note", "flat"),
    "ok": ("● well", "note"),
}
"""Word and tone of each level."""

URGENT: Final = ("alert", "warn")
"""Levels that want a look, the worse one first."""

BRIEFLY: Final = 2
"""Details that the line of a part tells where something is not well."""

Signs = dict[str, list[CheckResult]]


def health() -> str:
    """Show what is well and what wants a look, the worst first."""
    overview = desk_view().overview()
    signs, _ = look(overview)
    lasting = signs.pop("lasting")
    return desk_page(
        "health.html",
        overview.desk,
        titles={name: PARTS[name][0] for name in signs},
        signs=signs,
        lasting=lasting,
        urgent=[
            sign
            for level in URGENT
            for part in signs.values()
            for sign in part
            if sign.level == level
        ],
        marks=MARKS,
        line=line,
        longest=LONGEST,
    )


def api_health() -> ResponseReturnValue:
    """Answer every sign of health."""
    signs, checked = look(desk_view().overview())
    return jsonify(status=worst(chain.from_iterable(signs.values())), check=checked, signs=signs)


def check_database() -> ResponseReturnValue:
    """Read the database through, in the background."""
    behind = backing()

    def run() -> CommandOutcome:
        if checkup(behind).start(behind):
            return CommandOutcome(
                "accepted", "the database is being read through; this page tells the end"
            )
        return CommandOutcome("running", "it is being read through already")

    return command("health.check", "database", run, back=url_for(".health"))


def look(overview: Overview) -> tuple[Signs, DatabaseCheck]:
    """Return every sign by its part of the desk, and the state of the database check.

    The findings about machine and settings are up to a minute old.
    """
    behind, memory = backing(), checkup(backing())
    now = behind.desk.clock.real_now()
    context = HealthContext(behind, now, overview, memory, state().remote)
    signs = {
        name: [sign for check in checks for sign in check(context)]
        for name, (_, checks) in PARTS.items()
    }
    return signs, memory.database_check()


def line(signs: list[CheckResult]) -> tuple[str, str]:
    """Return a part of the desk in a line: its worst level, and what it comes to."""
    levels = {sign.level for sign in signs}
    level = next((one for one in LEVELS if one in levels), "ok")
    # a note is no trouble: where something is well beside it, the part is well
    if level in ("note", "unknown") and "ok" in levels:
        level = "ok"
    alike = [sign for sign in signs if sign.level == level]
    if level == "ok" and len(alike) > 1:
        return level, figures.sanitize(", ".join(dict.fromkeys(sign.name for sign in alike)), 90)
    brief = figures.sanitize("; ".join(sign.detail for sign in alike[:BRIEFLY]), 120)
    more = f"; and {len(alike) - BRIEFLY} more" if len(alike) > BRIEFLY else ""
    return level, f"{brief}{more}" if signs else "nothing to tell"


ROUTES = (
    Route("/health", "health", health),
    Api("/api/v1/health", "api_health", api_health),
    Command(
        "/api/v1/health/check",
        "check_database",
        check_database,
        scope="approve",
        per_minute=CHECKS_A_MINUTE,
    ),
)
