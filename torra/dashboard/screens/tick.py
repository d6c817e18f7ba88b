"""The page of one tick, with what its record does not hold: the tick before, the limits, the chart.

`tick_page` answers with the page. While the tick has no record yet, it leads to the page of its
running debate, or else answers 404. The limits are those of the profile with which the tick ran,
found in the database by its digest. Without a database, or if that profile is not kept, there are
no limits and the page says so. A picture is found by its hash and shown only if its first bytes are
a picture's. Nothing here writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from flask import Response, abort, redirect, url_for
from flask.typing import ResponseReturnValue

from torra import clock
from torra.config import Profile
from torra.dashboard.cells import symbol_cells
from torra.dashboard.doors.routes import Route
from torra.dashboard.record import inputs, reasoning
from torra.dashboard.record.stored import Row, mapping
from torra.dashboard.screens import watching
from torra.dashboard.trade import approvals
from torra.dashboard.view.backing import Backing
from torra.dashboard.view.rendering import desk_view, page, state
from torra.exhibits import figures

KINDS: Final = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))
"""First bytes of a picture, and its media type; other data is not shown."""

HASH: Final = re.compile(r"[0-9a-f]{64}")
PROFILES_KEPT: Final = 256


def tick_page(instance: str, timeframe: str, bar_time: str) -> ResponseReturnValue:
    """Show the reasoning of one tick, or lead to its debate while it runs."""
    try:
        # an address may write a time in other ways than a key does
        moment = clock.iso(clock.parse(bar_time))
    except (ValueError, OverflowError):
        abort(404)
    record = desk_view().tick(instance, timeframe, moment)
    if record is None:
        running = watching.running(f"{instance}|{timeframe}|{moment}")
        return redirect(watching.address(running)) if running else abort(404)
    return page(
        "tick.html",
        record["desk"],
        live=url_for(".api_desk"),
        cells=symbol_cells.strip(record["desk"]),
        shape="desk",
        record=record,
        close_time=figures.moment(record.get("as_of")),
        story=story(record),
        vectors=list(symbol_cells.SHORT.values()),
        picture_address=picture_address(record),
        proposal=approvals.of_tick(record),
    )


def story(record: Row) -> Row:
    """Return the sections of a tick's page; a skipped tick has none."""
    if record.get("skipped"):
        return {}
    return reasoning.story(record, before(record), limits(record))


def before(record: Mapping[str, Any]) -> Row | None:
    """Return the record of the tick before; None where there is none."""
    bar_time = record.get("previous")
    if not bar_time:
        return None
    where = str(record.get("instance")), str(record.get("timeframe"))
    behind = state().backing
    if behind is not None:
        from instance_database import TickKey  # noqa: PLC0415  a host's pages may do without

        found = behind.database.tick(TickKey(*where, clock.parse(str(bar_time))))
        if found is not None:
            return found
    return desk_view().tick(*where, str(bar_time))


def limits(record: Mapping[str, Any]) -> Row:
    """Return a tick's limits: timeout_seconds, and ceiling in USD an hour; empty if unknown.

    A view may give them itself, in `limits` of its record.
    """
    told = mapping(record.get("limits"))
    behind, digest = state().backing, record.get("profile")
    if told or behind is None or not isinstance(digest, str):
        return told
    instance = str(record.get("instance"))
    setup = behind.desk.setups.get(instance)
    if setup is not None and setup.profile.digest() == digest:
        return _limits(setup.profile.agents.model_dump())
    known = _profile(behind, instance, digest, record.get("execution"))
    return _limits(mapping(known.get("agents")))


def _limits(agents: Mapping[str, Any]) -> Row:
    named = {"timeout_seconds": "timeout_seconds", "ceiling": "max_api_cost_per_hour"}
    return {name: agents[field] for name, field in named.items() if field in agents}


def picture_address(record: Mapping[str, Any]) -> str:
    """Return the address of the chart that a tick's agents saw; empty where it is not kept."""
    shown, behind = inputs.picture(record), state().backing
    if shown is None or behind is None or behind.database.picture(shown["hash"]) is None:
        return ""
    return url_for(".picture", name=shown["hash"])


def picture(name: str) -> ResponseReturnValue:
    """Show a chart that agents saw."""
    behind = state().backing
    data = behind.database.picture(name) if behind and HASH.fullmatch(name) else None
    kind = next((kind for begins, kind in KINDS if data and data.startswith(begins)), None)
    if data is None or kind is None:
        abort(404)
    answer = Response(data, mimetype=kind)
    answer.headers["Content-Disposition"] = "inline"
    return answer


def _profile(behind: Backing, instance: str, digest: str, execution: Any) -> Row:
    """Return a profile by its digest, as it was applied or as a record only (execution off)."""
    for text, kept in _applied(behind, instance):
        # a tick of a late bar runs with execution off, and the digest is of the profile so changed
        if digest == kept or (execution == "off" and digest == _quiet_digest(text)):
            return mapping(json.loads(text))
    return {}


def _applied(behind: Backing, instance: str) -> list[tuple[str, str]]:
    rows = behind.database.profiles_of(instance)[:PROFILES_KEPT]
    return [(str(row["profile"]), str(row["digest"])) for row in rows]


# kept: else each page of such a tick parses all profiles of its instance again
@lru_cache(PROFILES_KEPT)
def _quiet_digest(text: str) -> str:
    profile = Profile.model_validate_json(text)
    return str(profile.model_copy(update={"execution": "off"}).digest())


ROUTES = (Route("/pictures/<name>.png", "picture", picture, reply="picture"),)
