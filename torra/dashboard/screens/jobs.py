"""The screen Jobs, one job, and the commands that start a replay and cancel a job.

A job is queued here and done by the worker of the desk that runs (torra.jobs), in this process or
another one: without a desk it waits, and the page says so. What is asked for is checked before
anything is queued, and a mistake is answered with the field that it is about. Texts of a job are a
stranger's and are cleaned. Without a desk's home behind the pages they say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flask import abort, jsonify, url_for
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from torra.dashboard.doors.routes import Api, Command, Fields, Route
from torra.dashboard.settings import tried
from torra.dashboard.trade.orders import person, reach
from torra.dashboard.view import commanding
from torra.dashboard.view.commanding import CommandOutcome, command
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.errors import ConfigError
from torra.evaluation.wording import arm_called
from torra.exhibits import figures
from torra.exhibits.documents import allowed
from torra.jobs import asking
from torra.jobs.kinds import ATTEMPTS, FINAL
from torra.store import jobs as job_table

if TYPE_CHECKING:
    from torra.trading.commanding import CommandResult

PER_MINUTE: Final = 30
STARTS_PER_MINUTE: Final = 10
LISTED: Final = 50
"""Jobs of the list: those that go on, and the newest that have ended."""

MEANINGS: Final = {
    "queued": ("◌ waits", ""),
    "running": ("● runs", "note"),
    "retrying": ("◐ is tried again soon", "warn"),
    "done": ("✓ done", "note"),
    "error": ("✕ not done", "alert"),
    "cancelled": ("– cancelled", ""),
}
"""A state in the words of a page, and its tone."""

WHOLE_PROFILES: Final = ("saved", "wanted")
"""Parameters of a try of settings: every value of two profiles, of which `changes` tells enough."""
PARAMETERS: Final = {"arms": "who trades", "max_cost": "models may cost, USD"}
"""Parameters whose names a person would not say."""

NO_DESK: Final = "No desk runs. What waits begins when one does: torra run."

Row = Mapping[str, Any]


class JobsShown(NamedTuple):
    """Jobs as a page shows them: rows, and a word about the desk."""

    rows: Sequence[Row]
    note: str

    def state(self, row: Row) -> tuple[str, str]:
        """Return a job's state in words, and its tone."""
        if row["cancel"] and not self.ended(row):
            return "◐ is being stopped", "warn"
        return MEANINGS.get(row["state"], (row["state"], ""))

    def share(self, row: Row) -> int:
        """Return the per cent that are done of a job that runs; 0 where that is not known."""
        total = int(row["total"])
        runs = row["state"] == "running" and total
        return min(100, 100 * int(row["done"]) // total) if runs else 0

    def ended(self, row: Row) -> bool:
        """Return whether a job goes on no more."""
        return row["state"] in FINAL

    def made(self, row: Row) -> str:
        """Return the page of what a job made, "" where it made none."""
        if row["state"] == "done" and row["kind"] == "settings":
            # Its own page shows what it found, and so does that of its profile.
            return url_for(".job", number=row["id"])
        if row["state"] == "done" and row["kind"] in ("radar", "film"):
            return url_for(f".{row['kind']}", run=row["made"])
        if row["state"] == "done" and row["kind"] == "committee":
            return url_for(".card", card_id=row["made"])
        if row["state"] != "done" or row["kind"] != "replay" or not allowed(row["made"]):
            return ""
        return url_for(".replay", name=row["made"])


def shown(rows: Sequence[Row]) -> JobsShown:
    """Return jobs as a page shows them."""
    works = backing().database.desk_runs()
    waits = any(row["state"] not in FINAL for row in rows)
    return JobsShown(rows, NO_DESK if waits and not works else "")


def going_on() -> list[Row]:
    """Return the jobs that wait or run, the oldest first."""
    return [
        row for row in reversed(job_table.jobs(backing().database)) if row["state"] not in FINAL
    ]


def jobs() -> str:
    """Show the jobs that wait and run, and those that have ended."""
    if state().backing is None:
        return desk_page("jobs.html", here=False)
    rows = shown(job_table.jobs(backing().database, LISTED))
    return desk_page("jobs.html", here=True, jobs=rows)


def api_jobs() -> ResponseReturnValue:
    """Answer the newest jobs, newest first."""
    return jsonify(asking.document(backing().database, LISTED))


def job(number: str) -> str:
    """Show one job: what was asked, how far it is, what it came to."""
    row = job_row(number)
    is_try = row["kind"] == tried.KIND
    return desk_page(
        "job.html",
        jobs=shown([row]),
        one=row,
        parameters=_parameters(row),
        attempts=ATTEMPTS,
        tried=tried.lines(row) if is_try else None,
        profile=tried.profile_of(row) if is_try else "",
    )


def api_job(number: str) -> ResponseReturnValue:
    """Answer one job."""
    database = backing().database
    return jsonify(desk_runs=database.desk_runs(), jobs=[asking.shown(job_row(number))])


# --- the commands ---------------------------------------------------------------------------------


def start_replay() -> ResponseReturnValue:
    """Start a replay; the same request is one job while it goes on."""
    from torra.replay.job_kinds import REPLAY  # noqa: PLC0415

    def run() -> CommandOutcome:
        fields = {name: text for name, text in commanding.words().items() if text.strip()}
        known = backing()
        try:
            done = asking.ask(known.database, known.home, REPLAY, fields, person())
        except ConfigError as error:
            field, _, why = str(error).partition(": ")
            if field not in REQUEST:
                raise
            return CommandOutcome("failed", f"{field}: {why}", more={"field": field})
        return queued(done, works=known.database.desk_runs())

    return command("job", "replay", run, back=url_for(".replays"))


def cancel(number: str) -> ResponseReturnValue:
    """Cancel a job: one that waits at once, one that runs within two seconds."""
    wanted = number_in(number)

    def run() -> CommandOutcome:
        done = asking.cancel(reach(), person(), wanted)
        return CommandOutcome(
            "accepted" if done.document["stops"] else "done",
            asking.cancelled_line(done.document),
            done.before,
            done.after,
            {"job": wanted, "state": str(done.document["state"])},
            on_record=True,
        )

    return command("cancel job", str(wanted), run, back=url_for(".jobs"))


def queued(done: CommandResult, *, works: bool) -> CommandOutcome:
    """Return the outcome of a request that is a job now, or was one already."""
    row = done.document
    number = int(row["id"])
    same = "" if row["new"] else "This is asked for already. "
    waits = "" if works else f" {NO_DESK}"
    text = f"{same}Job {number}: {figures.sanitize(row['title'], 200)}.{waits}"
    more: dict[str, JsonValue] = {
        "job": number,
        "new": bool(row["new"]),
        "address": url_for(".job", number=number),
    }
    return CommandOutcome("accepted", text, done.before, done.after, more, on_record=True)


def job_row(number: str) -> Row:
    """Return a job by the number in an address; 404 for none."""
    return job_table.job(backing().database, number_in(number)) or abort(404)


def number_in(text: str) -> int:
    """Return the number in an address, of a job or a run; 404 for what is none."""
    # 15 digits: a number of any length would be slow to read and too large for SQLite
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else abort(404)


# --- arranging ------------------------------------------------------------------------------------


def _parameters(row: Row) -> list[tuple[str, object]]:
    """Return what was asked for, by the names and as the words that a person would say."""
    return [
        (PARAMETERS.get(name, name), _in_words(name, value))
        for name, value in asking.shown(row)["parameters"].items()
        if value not in ("", None) and name not in WHOLE_PROFILES
    ]


def _in_words(name: str, value: object) -> object:
    """Return what was asked as a person says it: those who trade by their names."""
    if name != "arms" or not isinstance(value, str):
        return value
    arms = value.split(",")
    return ", ".join(arm_called(arm, arms) for arm in arms)


REQUEST_FIELDS: Final = {
    "symbol": "such as BTCUSD",
    "bars": "store (default): the desk's own; sample: the shipped ones; or files in the folder "
    "uploads of the home, with commas",
    "clock": "clock of the files' times: utc, new_york+7 (most MT5 brokers), an offset or a zone; "
    "default: what the file says, and one that says none is refused",
    "leave_out": "bars of files that are not taken: flat, negative or both with a comma",
    "timeframes": "such as M15,H1; default: those of the bars",
    "from": "first close that is run, UTC; default: the first there is",
    "to": "last close that is run, UTC; default: the last there is",
    "arms": "what is compared; default: l1,budget",
    "profile": "a profile's name; default: the one of the symbol",
    "name": "what the result is called; default: made of the request",
    "max_cost": "USD that a vendor may be paid for all of it; without it the rules answer",
}
REQUEST: Final[Fields] = {
    name: {"type": "string", "maxLength": 400, "description": about}
    for name, about in REQUEST_FIELDS.items()
}
"""A replay as it is asked for."""

ROUTES = (
    Route("/jobs", "jobs", jobs),
    Route("/jobs/<number>", "job", job),
    Api("/api/v1/jobs", "api_jobs", api_jobs),
    Api("/api/v1/jobs/<number>", "api_job", api_job),
    Command(
        "/api/v1/jobs/replay",
        "start_replay",
        start_replay,
        scope="approve",
        per_minute=STARTS_PER_MINUTE,
        body=REQUEST,
    ),
    Command(
        "/api/v1/jobs/<number>/cancel",
        "cancel_job",
        cancel,
        scope="approve",
        per_minute=PER_MINUTE,
    ),
)
