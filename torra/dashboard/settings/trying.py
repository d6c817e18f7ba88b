"""Trying settings on the last days of stored bars: the command, and the newest try of a profile.

The command queues a job (torra.replay.tried.kind): the desk runs it beside itself, nothing is
saved, sent or paid, so whoever may approve may try anything but a path. The page of the profile
shows the newest try that was asked for, while it runs and as what it found.
"""

from __future__ import annotations

from typing import Any, Final

from flask import url_for
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from torra.dashboard.screens import jobs
from torra.dashboard.screens.jobs import JobsShown
from torra.dashboard.settings import profile_form
from torra.dashboard.settings.profile_form import Values
from torra.dashboard.settings.tried import KIND, TriedLines, lines, profile_of
from torra.dashboard.trade.orders import person
from torra.dashboard.view.commanding import CommandOutcome, command, given
from torra.dashboard.view.rendering import backing
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.profiles.fields import flat, named
from torra.store import jobs as job_table

LOOKED_THROUGH: Final = 50
"""Newest jobs among which the newest try of a profile is looked for."""


def newest(name: str, digest: str) -> tuple[JobsShown, TriedLines] | None:
    """Return the newest try of a profile, its job and what it found; None without one."""
    for row in job_table.jobs(backing().database, LOOKED_THROUGH):
        if row["kind"] == KIND and profile_of(row) == name:
            return jobs.shown([row]), lines(row, digest)
    return None


def start(name: str, base: Values) -> ResponseReturnValue:
    """Queue a try of what a form or a body asks for; the same request is one job while it runs."""
    from torra.jobs import asking  # noqa: PLC0415
    from torra.replay.job_kinds import SETTINGS  # noqa: PLC0415

    def run() -> CommandOutcome:
        said = given()
        asked: dict[str, Any] = {
            "profile": name,
            "settings": _wished(base, profile_form.proposal(said, base)),
        }
        if "days" in said:
            asked["days"] = _days(said["days"])
        known = backing()
        done = asking.ask(known.database, known.home, SETTINGS, asked, person())
        return jobs.queued(done, works=known.database.desk_runs())

    back = f"{url_for('torra_agents.profile', name=name)}#tried"
    return command("job", KIND, run, back=back)


def _days(said: JsonValue) -> int:
    if not isinstance(said, int) or isinstance(said, bool):
        raise ConfigError(
            f"days: {figures.sanitize(said, 40)!r} is no whole number: write it as 30"
        )
    return said


def _wished(base: Values, wanted: Values) -> dict[str, Any]:
    """Return the settings that differ, by name; None takes an entry out."""
    old, new = flat(base), flat(wanted)
    places = dict.fromkeys([*old, *new])
    return {named(one): new.get(one) for one in places if old.get(one) != new.get(one)}
