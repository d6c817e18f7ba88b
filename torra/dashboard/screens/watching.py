"""Debates to watch while they run: the list of them, the page of one, and its figures as JSON.

Everything is read from the stored events, so a reload, a second visitor and a debate that has ended
show the same. The page's script follows the stream only to know when to load the page again.
The page of a tick asks `running` for its debate. A dashboard without a database has no streams
and answers 404. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flask import abort, jsonify, url_for
from flask.typing import ResponseReturnValue

from torra.dashboard.doors.routes import Api, Route
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.debate_state import Json, Payload, follow
from torra.dashboard.view.rendering import backing, desk_page, state, tick_link
from torra.exhibits import figures
from torra.providers.rules import provider
from torra.store import streams as stream_table

LISTED: Final = 30
"""Newest debates that are listed."""

MOST_EVENTS: Final = 1000
"""Events of a debate that are read: a debate of eight agents and three rounds has some forty."""

StreamRow = Mapping[str, Any]
"""A stream of events of a tick, as it is stored."""


def watching() -> str:
    """Show which debates run, and the newest that have ended."""
    listed = debates()
    return desk_page(
        "watching.html",
        live=True,
        running=[row for row in listed if not row["ended"]],
        ended=[row for row in listed if row["ended"]],
        backed=state().backing is not None,
        brief=asks_rules_only(state().backing),
    )


def asks_rules_only(behind: PageContext | None) -> bool:
    """Return whether no profile of the desk asks a model: its debates are over in a blink."""
    setups = behind.desk.setups.values() if behind is not None else ()
    vendors = {vendor for setup in setups for vendor in setup.profile.agents.vendors()}
    return bool(setups) and vendors <= {provider.NAME}


def watch(stream_id: str) -> str:
    """Show one debate: who is at work, what was said, and what came of it."""
    row = stream_or_404(stream_id)
    return desk_page("watch.html", live=True, stream=row, now=debate(row))


def api_watching() -> ResponseReturnValue:
    """Answer the newest debates, running ones among them."""
    return jsonify(debates=debates())


def api_watch(stream_id: str) -> ResponseReturnValue:
    """Answer how far one debate is."""
    return jsonify(debate(stream_or_404(stream_id)))


def running(torra_key: str) -> str:
    """Return the stream of a tick's newest debate if it has not ended; "" without one."""
    behind = state().backing
    rows = stream_table.streams(behind.database, torra_key, limit=1) if behind else []
    return str(rows[0]["stream_id"]) if rows and not rows[0]["ended"] else ""


def debates() -> list[Json]:
    """Return the newest debates, newest first; empty without a database."""
    behind = state().backing
    rows = stream_table.streams(behind.database, limit=LISTED) if behind else []
    return [_listed(behind, row) for row in rows if behind]


def _listed(behind: PageContext, row: StreamRow) -> Json:
    """Return a debate as a row of the list; one that has ended has the kind of its end."""
    instance, timeframe, bar_time = [*row["torra_key"].split("|"), "", ""][:3]
    return {
        "stream_id": row["stream_id"],
        "instance": figures.sanitize(instance, 40),
        "timeframe": figures.sanitize(timeframe, 8),
        "bar_time": figures.sanitize(bar_time, 40),
        "bar": figures.moment(bar_time),
        "at": figures.moment(row["at"], seconds=True),
        "ended": bool(row["ended"]),
        "events": row["seq"],
        **(_end(behind, row) if row["ended"] else {"end": "", "tone": "flat"}),
    }


def _end(behind: PageContext, row: StreamRow) -> dict[str, str]:
    """Return the end of a debate in words, its tone and its kind."""
    for last in stream_table.events_after(behind.database, row["stream_id"], row["seq"] - 1, 1):
        payload = Payload.read(last.body)
        if last.event == "decision":
            verdict = figures.mark(payload.verdict)
            return {"end": verdict.text, "tone": verdict.tone, "kind": "decision"}
        if payload.code:
            return {
                "end": f"✕ {figures.sanitize(payload.code, 80)}",
                "tone": "warn",
                "kind": "error",
            }
    return {"end": "✕ no end is told", "tone": "warn", "kind": "error"}


def debate(row: StreamRow) -> Json:
    """Return the state of a debate, with the address of its tick's page once there is one.

    `next` is the address of a newer attempt at the same tick, where one came to nothing.
    """
    behind, key = backing(), row["torra_key"].split("|")
    setup = behind.desk.setups.get(key[0])
    picture = follow(
        stream_table.events_after(behind.database, row["stream_id"], 0, MOST_EVENTS),
        # as the profile seats them now
        setup.profile.agents.desk() if setup else (),
        # events bear real times, also where the desk's clock runs faster
        behind.desk.clock.real_now(),
    )
    end = picture["end"] or {"kind": "", "code": ""}
    # a decision has a record, a skipped tick a row of its own
    stored = end["kind"] == "decision" or end["code"].startswith("skipped")
    tick = tick_link(*key) if len(key) == 3 and stored else ""
    newest = stream_table.streams(behind.database, row["torra_key"], limit=1)
    other = end["kind"] == "error" and newest and newest[0]["stream_id"] != row["stream_id"]
    onward = url_for(".watch", stream_id=newest[0]["stream_id"]) if other else ""
    return {**picture, "tick": tick, "next": onward}


def stream_or_404(stream_id: str) -> StreamRow:
    """Return the stream of a tick, or end the request with 404."""
    row = stream_table.stream(backing().database, stream_id)
    if row is None or row["kind"] != "tick":
        abort(404)
    return row


ROUTES = (
    Route("/watch", "watching", watching),
    Route("/watch/<stream_id>", "watch", watch),
    Api("/api/v1/watch", "api_watching", api_watching),
    Api("/api/v1/watch/<stream_id>", "api_watch", api_watch),
)
