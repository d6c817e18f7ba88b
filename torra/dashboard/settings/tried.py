"""Trying settings on the last days of stored bars: what a try found, and what it says of a save.

A try is a job (torra.replay.tried.kind): the desk runs it beside itself, nothing is saved, sent or
paid, so whoever may approve may try anything but a path. What it found may be about settings that
were saved anew meanwhile, and says so. Text of a profile is a stranger's and is cleaned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import JsonValue

from torra.dashboard.view.rendering import backing
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.profiles.book import usable
from torra.profiles.fields import flat, named, shown
from torra.profiles.guard import MORE_TRADES, Change
from torra.profiles.ten import called
from torra.store import jobs as job_table

KIND: Final = "settings"

NEWEST_JOBS: Final = 50
"""Newest jobs among which the newest try of a profile is looked for."""


def newest(name: str) -> Mapping[str, Any] | None:
    """Return the job of the newest try of a profile; None without one."""
    rows = job_table.jobs(backing().database, NEWEST_JOBS)
    return next((row for row in rows if row["kind"] == KIND and profile_of(row) == name), None)


def profile_of(row: Mapping[str, Any]) -> str:
    """Return of which profile a try is; "" where that cannot be read."""
    from torra.jobs.kinds import parameters_of  # noqa: PLC0415

    name = str((parameters_of(row) or {}).get("profile", ""))
    return name if usable(name) else ""


def lines(row: Mapping[str, Any], digest: str | None = None) -> dict[str, Any]:
    """Return what the template of a try reads; `digest` is that of the saved profile, if asked.

    `result` is None while the job goes on, and where it came to nothing. `stale` says that other
    settings are saved by now.
    """
    from torra.replay.tried import kind, words  # noqa: PLC0415  the pages load it when asked to

    done = row["state"] == "done"
    result = kind.read(backing().home, str(row["made"])) if done else None
    return {
        "result": result,
        "alone": {row.name: row for row in words.alone(result)} if result else {},
        "stale": bool(result and digest is not None and result.digest != digest),
        "words": words,
        "called": called,
        "shown": shown,
    }


def wish(
    sent: Mapping[str, JsonValue], saved: Mapping[str, Any], wanted: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the request of a try: the settings that differ, by name (None takes an entry out).

    Raises ConfigError for days that are no whole number.
    """
    old, new = flat(saved), flat(wanted)
    places = dict.fromkeys([*old, *new])
    request: dict[str, Any] = {
        "settings": {
            named(place): new.get(place) for place in places if old.get(place) != new.get(place)
        }
    }
    if "days" in sent:
        days = sent["days"]
        if not isinstance(days, int) or isinstance(days, bool):
            written = figures.sanitize(days, 40)
            raise ConfigError(f"days: {written!r} is no whole number: write it as 30")
        request["days"] = days
    return request


def more_trades(changes: Sequence[Change], try_lines: Mapping[str, Any] | None) -> list[str]:
    """Return what to know of changes that let more trades through, with what a try showed."""
    loose = [change for change in changes if change.way == "loosens" and change.name in MORE_TRADES]
    if not loose:
        return []
    names = " and ".join(called(change.name) for change in loose)
    sentence = f"More trades come through with this change of {names}"
    wished = {change.name: change.after for change in changes}
    shown_try = try_lines["result"] if try_lines and not try_lines["stale"] else None
    if shown_try is None or {row["place"]: row["after"] for row in shown_try.changes} != wished:
        return [f"{sentence}. Try it on the last 30 days before you save it."]
    return [f"{sentence}. {shown_try.says}"]
