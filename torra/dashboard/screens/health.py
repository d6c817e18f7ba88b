"""The screen Health: what is well, what needs attention and what to do about it, the worst first.

The signs come from torra.dashboard.screens.health_checks. The checks of `torra doctor`, apart from
the reading of the whole database, run once a minute at most. The database is read through on
request, in a thread of its own, and the result stays until the next one. Nothing else is changed
here; no key is shown.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal
from weakref import WeakKeyDictionary

from flask import jsonify, url_for
from flask.typing import ResponseReturnValue

from torra.clock import iso
from torra.dashboard.doors.routes import Api, Command, Route
from torra.dashboard.screens import health_checks
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.commanding import CommandOutcome, command
from torra.dashboard.view.desk_values import Overview
from torra.dashboard.view.kept import LruCache
from torra.dashboard.view.rendering import backing, desk_page, desk_view, state
from torra.dashboard.view.swarm_flags import Flagged
from torra.desk.checks import table
from torra.desk.checks.result import LEVELS, CheckResult
from torra.desk.promotion import PromotionSubject, subjects_of
from torra.exhibits import figures
from torra.services import in_background
from torra.store import connection

if TYPE_CHECKING:
    from instance_database import Database

CHECKED_FOR: Final = timedelta(seconds=60)
"""Age at which the findings about machine and settings are looked for again."""

CHECKS_A_MINUTE: Final = 4
SHARES_KEPT: Final = 200
"""Symbols of which is kept what their newest ticks knew from beyond the chart, and flagged."""

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

GROUPS: Final = (
    ("trading", "Trading"),
    ("streams", "Feeds and streams"),
    ("scheduler", "Scheduler"),
    ("bridges", "Bridges and Expert Advisors"),
    ("providers", "Providers"),
    ("news", "News and calendar"),
    ("beyond", "Beyond the chart"),
    ("database", "Database"),
    ("events", "Event streams and notices"),
    ("access", "Access"),
    ("versions", "Versions"),
    ("checklist", "Checklist of torra doctor"),
)
LASTING: Final = "lasting"
"""The group of what nobody can mend from here: told once, at the bottom of the page."""

BRIEFLY: Final = 2
"""Details that the line of a part tells where something is not well."""

Signs = dict[str, list[CheckResult]]


@dataclass(frozen=True, slots=True)
class DatabaseCheck:
    """The state of a check of the database, its answer and its time, once there is one."""

    state: Literal["never", "running", "done"]
    answer: str = ""
    at: str | None = None


class Checkup:
    """The memory of one database's checks, kept between two requests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._findings: tuple[datetime, list[CheckResult]] | None = None
        self._thread: threading.Thread | None = None
        self._answer: tuple[datetime, str] | None = None
        self.shares: LruCache[list[dict[str, Any]]] = LruCache(SHARES_KEPT)
        self.flags: LruCache[Flagged] = LruCache(SHARES_KEPT)

    def findings(self, behind: PageContext, now: datetime) -> list[CheckResult]:
        """Return findings that are younger than CHECKED_FOR, or look again."""
        with self._lock:
            held = self._findings
            # abs: a clock that was set back would keep the findings for as long
            if held is None or abs(now - held[0]) >= CHECKED_FOR:
                held = self._findings = (now, table.quick(behind.home, behind.environment))
            return held[1]

    def start(self, behind: PageContext) -> bool:
        """Start to read the database through; return False while that already runs."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return False
            self._thread = in_background("quick-check", partial(self._read, behind))
            return True

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for a running check; return whether none runs any more."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return thread is None or not thread.is_alive()

    def told(self) -> DatabaseCheck:
        """Return the state of the check."""
        # each read once: the thread may end between two reads
        thread, answer = self._thread, self._answer
        if thread is not None and thread.is_alive():
            return DatabaseCheck("running")
        if answer is None:
            return DatabaseCheck("never")
        return DatabaseCheck("done", answer[1], iso(answer[0]))

    def _read(self, behind: PageContext) -> None:
        answer = connection.quick_check(behind.database)
        self._answer = (behind.desk.clock.real_now().replace(microsecond=0), answer)


# weak: what is remembered goes with its database
_CHECKUPS: WeakKeyDictionary[Database, Checkup] = WeakKeyDictionary()


def checkup(behind: PageContext) -> Checkup:
    """Return the memory of a database's checks."""
    return _CHECKUPS.setdefault(behind.database, Checkup())


def health() -> str:
    """Show what is well and what wants a look, the worst first."""
    overview = desk_view().overview()
    signs, _ = look(overview)
    every = [sign for name, _ in GROUPS for sign in signs[name]]
    return desk_page(
        "health.html",
        overview.desk,
        live=True,
        groups=GROUPS,
        signs=signs,
        urgent=[sign for level in URGENT for sign in every if sign.level == level],
        marks=MARKS,
        line=_line,
        longest=LONGEST,
    )


def api_health() -> ResponseReturnValue:
    """Answer every sign of health."""
    signs, checked = look(desk_view().overview())
    return jsonify(status=worst(signs), check=checked, signs=signs)


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
    """Return every sign by its group, and the state of the database check.

    The findings about machine and settings are up to CHECKED_FOR old.
    """
    behind = backing()
    now = behind.desk.clock.real_now()
    memory = checkup(behind)
    checked = memory.told()
    found: Signs = {
        "trading": [
            *health_checks.trading(overview.desk),
            *health_checks.agents(behind.database, _subjects(behind)),
            *health_checks.swarms(behind, memory.flags),
        ],
        "streams": list(health_checks.streams(overview, behind.settings)),
        "scheduler": list(health_checks.scheduler(behind, now)),
        "bridges": list(health_checks.bridges(behind, now)),
        "providers": list(health_checks.providers(behind)),
        "news": list(health_checks.news(behind, overview)),
        "beyond": list(health_checks.beyond(behind, memory.shares)),
        "database": [*health_checks.database(behind), _sound(checked)],
        "events": [*health_checks.event_streams(behind), *health_checks.notices(behind)],
        "access": list(health_checks.access(behind, state().remote)),
        "versions": list(health_checks.versions(behind.database.bridges())),
        "checklist": list(health_checks.checklist(memory.findings(behind, now))),
        LASTING: list(health_checks.lasting(memory.findings(behind, now))),
    }
    return found, checked


def _subjects(behind: PageContext) -> tuple[PromotionSubject, ...]:
    """Return the profiles that run here."""
    setups = behind.desk.setups.values()
    return subjects_of((setup.instance, setup.profile) for setup in setups)


def _sound(checked: DatabaseCheck) -> CheckResult:
    """Return the sign of the last check of the database."""
    if checked.state == "running":
        return CheckResult("sound", "note", "being read through now")
    if checked.state == "never":
        return CheckResult(
            "sound", "unknown", "not read through since this process began", "check it now"
        )
    when = figures.moment(checked.at)
    if checked.answer == "ok":
        return CheckResult("sound", "ok", f"read through {when} (real time): nothing is damaged")
    return CheckResult(
        "sound", "alert", f"{when}: {checked.answer}", "stop the desk, restore a backup"
    )


def worst(found: Signs) -> str:
    """Return the worst level of all signs, "unknown" left aside."""
    # a database that nobody has asked to read through yet is no fault
    levels = {sign.level for group in found.values() for sign in group} - {"unknown"}
    return next((level for level in LEVELS if level in levels), "ok")


# --- arranging ------------------------------------------------------------------------------------


def _line(signs: list[CheckResult]) -> tuple[str, str]:
    """Return a part of the desk in a line: its worst level, and what it comes to."""
    levels = {sign.level for sign in signs}
    level = next((one for one in LEVELS if one in levels), "ok")
    # a note is no trouble: where something is well beside it, the part is well
    if level in ("note", "unknown") and "ok" in levels:
        level = "ok"
    worst_signs = [sign for sign in signs if sign.level == level]
    if level == "ok" and len(worst_signs) > 1:
        return level, figures.sanitize(
            ", ".join(dict.fromkeys(sign.name for sign in worst_signs)), 90
        )
    brief = figures.sanitize("; ".join(sign.detail for sign in worst_signs[:BRIEFLY]), 120)
    more = f"; and {len(worst_signs) - BRIEFLY} more" if len(worst_signs) > BRIEFLY else ""
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
