"""Debates to watch while they run: the list of them, the page of one, and its figures as JSON.

Everything is read from the stored events, so a reload, a second visitor and a debate that has ended
show the same. The page's script follows the stream only to know when to load the page again.
Other pages ask `running` for the debate of a tick. A dashboard without a database has no streams
and answers 404. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NotRequired, TypedDict

from flask import abort, jsonify, url_for
from flask.typing import ResponseReturnValue

from torra.dashboard.doors.routes import Api, Route
from torra.dashboard.screens import watched
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.rendering import backing, desk_page, state, tick_link
from torra.exhibits import figures
from torra.providers.rules import provider
from torra.store import streams as stream_table

LISTED: Final = 30
"""Newest debates that are listed."""

MOST_EVENTS: Final = 1000
"""Events of a debate that are read: a debate of eight agents and three rounds has some forty."""


def watching() -> str:
    """Show which debates run, and the newest that have ended."""
    listed = debates()
    return desk_page(
        "watching.html",
        live=True,
        running=[one for one in listed if not one["ended"]],
        ended=[one for one in listed if one["ended"]],
        backed=state().backing is not None,
        brief=asks_rules_only(state().backing),
    )


def asks_rules_only(behind: PageContext | None) -> bool:
    """Return whether no profile of the desk asks a model: its debates are over in a blink."""
    setups = behind.desk.setups.values() if behind is not None else ()
    asked = {vendor for setup in setups for vendor in setup.profile.agents.vendors()}
    return bool(setups) and asked <= {provider.NAME}


def watch(stream_id: str) -> str:
    """Show one debate: who is at work, what was said, and what came of it."""
    row = known_stream(stream_id)
    return desk_page(
        "watch.html",
        live=True,
        stream=row,
        now=picture(row),
    )


def api_watching() -> ResponseReturnValue:
    """Answer the newest debates, running ones among them."""
    return jsonify(debates=debates())


def api_watch(stream_id: str) -> ResponseReturnValue:
    """Answer how far one debate is."""
    return jsonify(picture(known_stream(stream_id)))


Row = Mapping[str, Any]
"""A stream of events of a tick, as it is stored."""


class DebateLine(TypedDict):
    """A debate in a list; one that has ended has the kind of its end."""

    stream_id: str
    instance: str
    timeframe: str
    bar_time: str
    bar: str
    at: str
    ended: bool
    events: int
    end: str
    tone: str
    kind: NotRequired[Literal["decision", "error"]]


class PictureLinked(watched.DebatePicture):
    """The state of a debate, with the address of its tick's page and of its next attempt."""

    tick: str
    next: str


def running(torra_key: str) -> DebateLine | None:
    """Return the newest debate of a tick if it has not ended; None without one or a database."""
    behind = state().backing
    rows = stream_table.streams(behind.database, torra_key, limit=1) if behind else []
    return listed(rows[0]) if rows and not rows[0]["ended"] else None


def debates(limit: int = LISTED) -> list[DebateLine]:
    """Return the newest debates, newest first; empty without a database."""
    behind = state().backing
    if behind is None:
        return []
    return [listed(row, behind) for row in stream_table.streams(behind.database, limit=limit)]


def listed(row: Row, behind: PageContext | None = None) -> DebateLine:
    """Return a stream as a row of a list; with a backing its end too."""
    instance, timeframe, bar_time = [*row["torra_key"].split("|"), "", ""][:3]
    told: DebateLine = {
        "stream_id": row["stream_id"],
        "instance": figures.sanitize(instance, 40),
        "timeframe": figures.sanitize(timeframe, 8),
        "bar_time": figures.sanitize(bar_time, 40),
        "bar": figures.moment(bar_time),
        "at": figures.moment(row["at"], seconds=True),
        "ended": bool(row["ended"]),
        "events": row["seq"],
        "end": "",
        "tone": "flat",
    }
    if behind is not None and row["ended"]:
        told["end"], told["tone"], told["kind"] = _end(row, behind)
    return told


def picture(row: Row) -> PictureLinked:
    """Return the state of a debate, with the address of its tick's page once there is one."""
    behind = backing()
    told = watched.follow(
        # events bear real times, also where the desk's clock runs faster
        _events(behind, row),
        _seats(behind, row),
        behind.desk.clock.real_now(),
    )
    key, end = row["torra_key"].split("|"), told["end"]
    # a decision has a record, a skipped tick a row of its own
    kept = end is not None and (end["kind"] == "decision" or end["code"].startswith("skipped"))
    tick = tick_link(*key) if len(key) == 3 and kept else ""
    return {**told, "tick": tick, "next": _again(behind, row, told)}


def known_stream(stream_id: str) -> Row:
    """Return the stream of a tick, or end the request with 404."""
    row = stream_table.stream(backing().database, stream_id)
    if row is None or row["kind"] != "tick":
        abort(404)
    return row


def _again(behind: PageContext, row: Row, told: watched.DebatePicture) -> str:
    """Return the address of a newer attempt at the same tick, where one came to nothing."""
    if told["end"] is None or told["end"]["kind"] != "error":
        return ""
    newest = stream_table.streams(behind.database, row["torra_key"], limit=1)
    other = newest and newest[0]["stream_id"] != row["stream_id"]
    return url_for(".watch", stream_id=newest[0]["stream_id"]) if other else ""


def _events(
    behind: PageContext, row: Row, after: int = 0, limit: int = MOST_EVENTS
) -> Iterable[watched.DebateEvent]:
    for event in stream_table.events_after(behind.database, row["stream_id"], after, limit):
        yield watched.DebateEvent.read({**event.as_json(), "payload": event.body})


def _end(row: Row, behind: PageContext) -> tuple[str, str, Literal["decision", "error"]]:
    """Return the end of a debate in words, its tone and its kind."""
    last = next(iter(_events(behind, row, row["seq"] - 1, 1)), watched.DebateEvent())
    if last.event == "decision":
        mark = figures.mark(last.payload.verdict)
        return mark.text, mark.tone, "decision"
    code = figures.sanitize(last.payload.code, 80) or "no end is told"
    return f"✕ {code}", "warn", "error"


def _seats(behind: PageContext, row: Row) -> tuple[str, ...]:
    """Return the agents of the instance's desk in asking order, as its profile seats them now."""
    instance = row["torra_key"].partition("|")[0]
    setup = behind.desk.setups.get(instance)
    return tuple(setup.profile.agents.desk()) if setup is not None else ()


ROUTES = (
    Route("/watch", "watching", watching),
    Route("/watch/<stream_id>", "watch", watch),
    Api("/api/v1/watch", "api_watching", api_watching),
    Api("/api/v1/watch/<stream_id>", "api_watch", api_watch),
)
