"""Asking for jobs, cancelling them and listing them: the same for pages and command line.

`ask` checks what was asked before anything is stored: bad parameters raise ConfigError and leave
no job. The same request as that of a job that goes on is that job, so a second click changes
nothing. A job that waits is cancelled at once; one that runs is stopped by its desk within two
seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from instance_database import Database
from torra.errors import ConfigError, bounded
from torra.home import has_database
from torra.jobs.kinds import (
    FINAL,
    LONGEST_TITLE,
    JobKind,
    Parameters,
    key_of,
    parameters_of,
)
from torra.jobs.worker import CANCELLED
from torra.store import jobs as job_table
from torra.store.connection import to_json
from torra.trading.commanding import (
    Actor,
    CommandContext,
    CommandResult,
    command,
    with_record,
)

SHOWN: Final = 50
"""Jobs of a list."""

COLUMNS: Final = (
    "id", "kind", "lane", "title", "state", "attempt", "stage", "done", "total", "says", "made",
    "asked_by", "queued_at", "started_at", "ended_at",
)  # fmt: skip

WAITS: Final = "No desk runs: what is queued waits for `torra run`."
STOPS_SOON: Final = "Its desk stops it within two seconds."
NOBODY: Final = "No desk runs: the next `torra run` ends it."


def ask(
    database: Database, home: Path, kind: JobKind, parameters: Parameters, person: Actor
) -> CommandResult:
    """Queue a job, or find the one that goes on already; raises ConfigError for bad parameters."""
    request = kind.check(home, parameters)  # before the transaction: it may read long files

    def queue() -> CommandResult:
        row, new = job_table.queue_job(
            database,
            kind.name,
            key_of(kind, request.identity),
            title=bounded(request.title, LONGEST_TITLE),
            parameters=to_json(request.parameters),
            actor=person.actor,
        )
        return CommandResult(shown(row) | {"new": new}, {}, {"job": row["id"], "new": new})

    return with_record(database, person, "job", kind.name, queue)


@command("cancel job")
def cancel(desk: CommandContext, number: int) -> CommandResult:
    """Cancel a job; raises ConfigError for one that is not there or has ended."""
    database = desk.database
    row = job_table.job(database, number)
    if row is None:
        raise ConfigError(f"there is no job {number}; `torra jobs` lists them")
    if row["state"] in FINAL:
        raise ConfigError(f"the job {number} has ended already: it is {row['state']}")
    if row["state"] == "running":
        job_table.ask_to_cancel(database, number)
    else:
        job_table.end_job(database, number, row["state"], "cancelled", CANCELLED)
    document = shown(job_table.job(database, number) or row)
    return CommandResult(
        {**document, "desk_runs": database.desk_runs()},
        {"state": row["state"]},
        {"state": document["state"]},
    )


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job as it is told: its columns, its parameters, and whether it is being stopped."""
    stops = bool(row["cancel"]) and row["state"] not in FINAL
    columns = {name: row[name] for name in COLUMNS}
    return {**columns, "parameters": parameters_of(row) or {}, "stops": stops}


def document(database: Database, limit: int = SHOWN) -> dict[str, Any]:
    """Return the newest jobs, newest first, and whether a desk runs."""
    return {
        "desk_runs": database.desk_runs(),
        "jobs": [shown(row) for row in job_table.jobs(database, limit)],
    }


# --- from the command line ------------------------------------------------------------------------


def cancelled(home: Path, number: int) -> dict[str, Any]:
    """Cancel a job of a home; raises ConfigError."""
    if not has_database(home):
        raise ConfigError(f"there is no job {number}: no desk has run in {home} yet")
    return cancel.at_home(home, number)


def table(document: Mapping[str, Any]) -> str:
    """Return jobs as lines of text."""
    jobs = document["jobs"]
    lines = [line(one) for one in jobs] or [
        "No job yet: the page Replays starts one, and `torra replay` needs none."
    ]
    if not document["desk_runs"] and any(one["state"] in job_table.GOES_ON for one in jobs):
        lines.append(WAITS)
    return "\n".join(lines)


def line(one: Mapping[str, Any]) -> str:
    """Return one job as a line: number, state, lane, what about, how far it is, what it said."""
    word = "stopping" if one["stops"] else one["state"]
    progress = ""
    if one["state"] == "running":
        share = f" {100 * one['done'] // one['total']} %" if one["total"] else ""
        progress = f"{one['stage'] or 'begins'}{share}"
    head = f"{one['id']:>4}  {word:<11}  {one['lane']:<5}  {one['kind']} {one['title']}"
    parts = [head, progress, one["says"]]
    return "  ".join(filter(None, parts))


def cancelled_line(job: Mapping[str, Any]) -> str:
    """Say what became of a cancelled job."""
    if not job["stops"]:
        return f"The job {job['id']} is {job['state']}."
    return f"The job {job['id']} is told to stop. {STOPS_SOON if job['desk_runs'] else NOBODY}"
