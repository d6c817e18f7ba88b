"""A scan as a job: what a page, a program, the command and the desk itself ask for.

The desk asks by itself after the ticks of a close are stored, as `radar.every` says. The work scans
at the desk's time of that moment. A desk that knows the kind does not scan: what does is imported
where a request is checked, and by the process that does the job.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torra.clock import duration, floor, iso
from torra.config import DeskSettings, load_desk
from torra.errors import ConfigError
from torra.jobs.at_home import run_at_home
from torra.jobs.kinds import (
    JobKind,
    JobRequest,
    JobResult,
    Parameters,
    Tell,
    key_of,
    parameters_of,
)
from torra.store import jobs as job_table
from torra.store import radar_runs, tick_queries
from torra.store.connection import to_json

if TYPE_CHECKING:
    from instance_database import Database

FIELDS: Final = {
    "symbols": "only these symbols, with commas; default: all",
    "portfolio": "symbols that you hold elsewhere, as you say, with commas: their rows come first",
    "session_id": "any text of yours: the answers about this scan have it",
}
"""What may be asked for, each a text."""

LONGEST: Final = 400
"""Characters of a field."""

TITLE: Final = "which symbols deserve a look now"

GRACE: Final = 0.25
"""Share of a bar after which a scheduled scan waits no longer for ticks of its close."""


def check(home: Path, asked: Parameters) -> JobRequest:
    """Return a request for a scan; raises ConfigError that names the field."""
    from torra.radar.universe import universe  # noqa: PLC0415
    from torra.tools.desk_reader import reading  # noqa: PLC0415

    if unknown := [*asked.keys() - FIELDS.keys()]:
        raise ConfigError(f"{unknown[0][:40]}: a scan has no such parameter")
    fields = {name: ",".join(symbols_of(asked, name)) for name in FIELDS}
    fields["session_id"] = str(asked.get("session_id", ""))
    with reading(home) as (reader, _):
        universe(reader(), symbols_of(fields, "symbols"))
    return JobRequest(fields, fields, fields["symbols"] or TITLE)


def run(home: Path, parameters: Parameters, tell: Tell) -> JobResult:
    """Scan, store the run and let agents go over it; raises what `ladder.run` raises."""
    from torra.radar import agents, ladder  # noqa: PLC0415
    from torra.tools.desk_reader import reading  # noqa: PLC0415

    tell("scans")
    with reading(home) as (reader, database):
        fields = {name: symbols_of(parameters, name) for name in ("symbols", "portfolio")}
        desk = reader()
        number, found = ladder.run(replace(desk, database=database), **fields)
        found = agents.go_on(home, desk, database, number, found, os.environ)
    return JobResult(" ".join(found.portfolio_brief), str(number))


def symbols_of(asked: Parameters, name: str) -> Sequence[str]:
    """Return the symbols of a field; raises ConfigError for what is no such text."""
    text: Any = asked.get(name, "")
    if not isinstance(text, str) or len(text) > LONGEST:
        raise ConfigError(
            f"{name}: write a text of {LONGEST} characters at most, symbols with commas"
        )
    return [part.strip() for part in text.split(",") if part.strip()]


def at_home(home: Path, asked: Parameters) -> tuple[int, str]:
    """Scan from the command line; return the number of the run and its document.

    Raises what `run_at_home` raises, and RadarError.
    """
    from instance_database import open_home  # noqa: PLC0415

    number = int(run_at_home(home, RADAR, asked))
    with closing(open_home(home)) as database:
        row = radar_runs.run(database, number) or {"document": "{}"}
    return number, str(row["document"])


def keep_up(database: Database) -> None:
    """Ask for a scan once the ticks of a close are stored; raises StoreUnavailable.

    While desk.json cannot be read, or too many jobs wait, it is asked for at a later turn.
    """
    with suppress(ConfigError):
        _ask_after_close(database, load_desk(database.path.parent))


def _ask_after_close(database: Database, settings: DeskSettings) -> None:
    every, now = settings.radar.every, database.desk_time()
    if every == "off" or not settings.radar.enabled or now is None:
        return
    close = floor(now, every)
    last = job_table.newest_job(database, kind=RADAR.name, asked_by=job_table.THE_DESK)
    if last and (parameters_of(last) or {}).get("close") == iso(close):
        return
    states = [
        tick_queries.tick_state(database, one.id, name, iso(close - duration(name)))
        for one in settings.instances
        for name in one.timeframes
        if floor(close, name) == close
    ]
    over = all(row is not None and row["state"] in ("done", "skipped") for row in states)
    if over or now - close >= GRACE * duration(every):
        fields = dict.fromkeys(FIELDS, "")
        job_table.queue_job(
            database, RADAR.name, key_of(RADAR, fields), title=TITLE,
            parameters=to_json({**fields, "close": iso(close)}), actor=job_table.THE_DESK,
        )  # fmt: skip


RADAR: Final = JobKind("radar", "Radar", check, f"{__name__}:run", keep_up, light=True)
