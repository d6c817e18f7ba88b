"""The page What agents changed: each tick that they changed, beside what L1 alone would have done.

The figures are those of `torra effect` (torra.replay.changed). A page reads some ticks by their
index and goes on by a cursor, so a long history does not make it slow. The two whole paths take all
ticks: they are compared here while there are few of them, later only by the command. Nothing is
changed. Without a database the page says that there is no list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast
from weakref import WeakKeyDictionary

from flask import abort, jsonify, request, url_for
from flask.typing import ResponseReturnValue

from torra.dashboard.doors.routes import Api, Fields, Route
from torra.dashboard.view import list_query
from torra.dashboard.view.rendering import backing, desk_page, state, tick_link
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.store import jobs as job_table
from torra.store import tick_queries

if TYPE_CHECKING:
    from instance_database import Database
    from torra.dashboard.view.backing import PageContext
    from torra.replay.changed.listing import ChangedPage, Paths
    from torra.replay.changed.without_agents import Kind

KINDS: Final = ("verdict", "action", "size")
SHOWN: Final = 20
MOST: Final = 200
"""Ticks on a page, and the most that the API returns at once."""

PER_MINUTE: Final = 60
"""How often one visitor may ask in a minute: some answers compare a thousand ticks."""

FEW: Final = 1_000
"""Stored ticks up to which a page compares the two whole paths itself, within a second or two."""

# weak: what is remembered goes with its database
_PATHS: WeakKeyDictionary[Database, tuple[tuple[object, ...], tuple[Paths, ...]]] = (
    WeakKeyDictionary()
)


def changed_page() -> str:
    """Show the ticks that agents changed, newest first."""
    from torra.replay.changed import words  # noqa: PLC0415

    behind = state().backing
    known = {"instance": request.args.get("instance", "")[:80], "what": _words()}
    try:
        found = None if behind is None else _page_of_query(behind)
    except ConfigError:
        abort(400)
    currency = behind.currency_of(behind.settings.instances) if behind else ""
    told = _paths(behind) if behind is not None and found and found.of <= FEW else ()
    return desk_page(
        "changed.html",
        found=found,
        tick_link=tick_link,
        nothing=words.empty(found, known["what"]) if found else "",
        paths=[words.of_paths(one, currency) for one in told],
        worth=""
        if behind is None
        else figures.sanitize(job_table.newest_says(behind.database, "worth"), 600),
        words=words,
        currency=currency,
        known=known,
        kinds=KINDS,
        instances=[item.id for item in behind.settings.instances] if behind else [],
        older=_address(found.next) if found and found.next else None,
        newest=_address(None) if request.args.get("before") else None,
    )


def api_changed() -> ResponseReturnValue:
    """Answer the ticks that agents changed, newest first; `next` is what to ask as `before`."""
    try:
        return jsonify(_page_of_query(backing()).as_json())
    except ConfigError as error:
        return jsonify(error=str(error), status=400), 400


def _page_of_query(behind: PageContext) -> ChangedPage:
    """Return the ticks that a request asks for; raises ConfigError for words that mean none."""
    from torra.replay.changed import listing  # noqa: PLC0415  the pages load replays only when asked to

    what = _words()
    if wrong := sorted(set(what) - set(KINDS)):
        raise ConfigError(
            f"what is one of {', '.join(KINDS)}, not {figures.sanitize(wrong[0], 40)}"
        )
    return listing.listed(
        behind.database,
        behind.settings,
        instance=request.args.get("instance") or None,
        kinds=cast("tuple[Kind, ...]", what),
        before=request.args.get("before") or None,
        limit=list_query.limit(SHOWN, MOST),
    )


def _words() -> tuple[str, ...]:
    return tuple(request.args.getlist("what")) or KINDS[:2]


def _paths(behind: PageContext) -> tuple[Paths, ...]:
    """Return the whole paths of a small desk; remembered until it has another tick."""
    from torra.desk import promotion  # noqa: PLC0415
    from torra.replay.changed import listing  # noqa: PLC0415

    database = behind.database
    tallies = tick_queries.verdict_tallies(
        database, [item.id for item in behind.settings.instances]
    )
    ticks = sum(number for _, number in tallies.values())
    setups = [(one.instance, one.profile) for one in behind.desk.setups.values()]
    state_now = ticks, *((item.id, profile.digest()) for item, profile in setups)
    known = _PATHS.get(database)
    if known is None or known[0] != state_now:
        told = [listing.paths(database, one) for one in promotion.subjects_of(setups)]
        known = _PATHS[database] = state_now, tuple(told)
    return known[1]


def _address(before: str | None) -> str:
    """Return the address of the ticks before a place, or of the newest, filtered as now."""
    instance, what = request.args.get("instance") or None, request.args.getlist("what") or None
    return url_for(".changed", before=before, instance=instance, what=what)


QUERY: Final[Fields] = {
    "instance": {"type": "string", "description": "Only this instance."},
    "what": {
        "type": "array",
        "items": {"type": "string", "enum": list(KINDS)},
        "default": list(KINDS[:2]),
        "description": "What the agents changed.",
    },
    "before": {"type": "string", "description": "The `next` of the answer before."},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": SHOWN},
}

ROUTES = (
    Route("/changed", "changed", changed_page, per_minute=PER_MINUTE),
    Api(
        "/api/v1/changed",
        "api_changed",
        api_changed,
        per_minute=PER_MINUTE,
        query=QUERY,
    ),
)
