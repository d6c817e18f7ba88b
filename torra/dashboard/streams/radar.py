"""The screen Radar: which symbols deserve a look now, why, and what else the radar watches.

A scan is a job of the desk (torra.radar.job); the page shows the newest run that is stored, or the
one that its address names. Nothing is scanned here. Names of watched symbols and the reasons of a
feed are a stranger's and are cleaned.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from flask import abort, jsonify, request, url_for
from flask.typing import ResponseReturnValue

from torra.clock import floor, parse
from torra.config import load_desk
from torra.dashboard.doors.routes import Api, Command, Fields, Route
from torra.dashboard.screens import jobs
from torra.dashboard.trade.orders import person, reach
from torra.dashboard.view import commanding
from torra.dashboard.view.commanding import CommandOutcome, command
from torra.dashboard.view.rendering import backing, desk_page, state
from torra.errors import ConfigError
from torra.jobs.kinds import parameters_of
from torra.radar.job import FIELDS, LONGEST, RADAR, symbols_of
from torra.radar.result import RadarRow, run_of
from torra.store import radar_runs
from torra.store.journal import json_object
from torra.words.orders import HOLD_REASONS
from torra.words.radar import BUCKET_WORDS, CODES, mode_sentence, words_of, worth_sentence

PER_MINUTE: Final = 10

AUDIT: Final = ("tool_calls", "audit_log", "reasoning_log")
"""Of a run, what says why it is as it is."""

TONES: Final = {"act": "note", "exit_radar": "alert", "watch": "warn"}


def radar() -> ResponseReturnValue:
    """Show which symbols deserve a look now."""
    if state().backing is None:
        return desk_page("radar.html", here=False)
    settings, asked = backing().settings.radar, request.args.get("run", "")
    with suppress(ConfigError):  # a broken file: what the pages began with
        settings = load_desk(backing().home).radar
    row = radar_runs.run(backing().database, jobs.number_in(asked)) if asked else _newest()
    if asked and not (row and row["document"]):
        abort(404)
    run = run_of(row["document"]) if row else None
    newest, now = radar_runs.newest_run(backing().database, failed=True), backing().now()
    return desk_page(
        "radar.html",
        here=True,
        run=run,
        number=row["id"] if row else None,
        made=mode_sentence(run.model_dump()) if run else "",
        worth=worth_sentence(run.worth.model_dump()) if run and run.worth else "",
        passed=max(0.0, (now - parse(row["as_of"])).total_seconds()) if row else 0.0,
        closed_since=lambda row: floor(now, row.timeframe) > parse(row.as_of),
        failed=newest["as_of"] if newest and newest["mode"] == "error" else "",
        settings=settings,
        buckets=BUCKET_WORDS,
        codes=CODES,
        tones=TONES,
        words_of=words_of,
        reasons=HOLD_REASONS,
        values=values,
        jobs=jobs.shown([one for one in jobs.going_on() if one["kind"] == RADAR.name]),
    )


def values(row: RadarRow) -> dict[str, Any]:
    """Return the facts of a row by the last part of their ids."""
    return {fact.id.partition("/")[2]: fact.value for fact in row.facts}


def api_radar_latest() -> ResponseReturnValue:
    """Answer the newest run; 404 while there is none."""
    row = _newest() or abort(404)
    return jsonify(run=row["id"], result=json_object(row["document"]))


def api_radar_status(number: str) -> ResponseReturnValue:
    """Answer how far a scan is, and the number of its run once it is done."""
    row = jobs.job_row(number)
    if row["kind"] != RADAR.name:
        abort(404)
    made = int(row["made"]) if row["state"] == "done" else None
    session = (parameters_of(row) or {}).get("session_id", "")
    return jsonify(
        job=row["id"], state=row["state"], says=row["says"], run=made, session_id=session
    )


def api_radar_audit(number: str) -> ResponseReturnValue:
    """Answer what a run read, and why each row is there; 409 for a run that failed."""
    row = radar_runs.run(backing().database, jobs.number_in(number)) or abort(404)
    if not row["document"]:
        why = f"{row['trigger_code']}: {words_of(row['trigger_code']).meaning}"
        return jsonify(error=why, status=409), 409
    found = run_of(row["document"]) or abort(404)
    return jsonify(run=row["id"], **found.model_dump(mode="json", include=set(AUDIT)))


def run_radar() -> ResponseReturnValue:
    """Start a scan; the same request is one job while it goes on."""
    from torra.jobs import asking  # noqa: PLC0415  a page alone must not load the desk

    def run() -> CommandOutcome:
        known = backing()
        fields = {name: text for name, text in commanding.words().items() if text.strip()}
        done = asking.ask(known.database, known.home, RADAR, fields, person())
        outcome = jobs.queued(done, works=known.database.desk_runs())
        session = fields.get("session_id", "")
        return replace(outcome, more={**outcome.more, "session_id": session})

    return command("job", RADAR.name, run, back=url_for(".radar"))


def set_watch() -> ResponseReturnValue:
    """Set which symbols are watched beside the desk's own, in desk.json."""
    from torra.desk.setup import watch_list  # noqa: PLC0415

    def run() -> CommandOutcome:
        sent = commanding.words()
        if set(sent) - {"symbols"}:
            raise ConfigError("name symbols alone, with commas")
        done = watch_list.set_watch(reach(), person(), symbols_of(sent, "symbols"))
        names = ", ".join(done.document["watch"]) or "nothing else"
        return CommandOutcome("done", f"The radar watches {names}.", on_record=True)

    return command("watch list", "radar", run, back=url_for(".radar"))


def _newest() -> dict[str, Any] | None:
    return radar_runs.newest_run(backing().database)


BODY: Final[Fields] = {
    name: {"type": "string", "maxLength": LONGEST, "description": about}
    for name, about in FIELDS.items()
}
WATCH: Final[Fields] = {
    "symbols": {"type": "string", "maxLength": LONGEST, "description": "with commas; all of them"}
}

ROUTES = (
    Route("/radar", "radar", radar),
    Api("/api/v1/radar/latest", "api_radar_latest", api_radar_latest),
    Api("/api/v1/radar/status/<number>", "api_radar_status", api_radar_status),
    Api("/api/v1/radar/audit/<number>", "api_radar_audit", api_radar_audit, conflicts=True),
    Command(
        "/api/v1/radar/run",
        "run_radar",
        run_radar,
        scope="approve",
        per_minute=PER_MINUTE,
        body=BODY,
    ),
    Command(
        "/api/v1/radar/watch",
        "set_watch",
        set_watch,
        scope="admin",
        per_minute=PER_MINUTE,
        body=WATCH,
    ),
)
