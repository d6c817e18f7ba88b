"""What changed verdicts came to: the sum and the money above and in the list of History.

The figures are those of `torra effect` (torra.replay.changed). The two whole paths take all ticks:
they are compared here while there are few of them, later only by the command. The API lists the
ticks by a cursor, those with a changed action or size too. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

from flask import jsonify, redirect, request, url_for
from flask.typing import ResponseReturnValue

from torra.dashboard.doors.routes import Api, Fields, Route
from torra.dashboard.view import list_query
from torra.dashboard.view.rendering import backing
from torra.errors import ConfigError
from torra.exhibits import figures
from torra.exhibits.money import IN_MONEY
from torra.store import jobs as job_table

if TYPE_CHECKING:
    from instance_database import Database
    from torra.dashboard.view.backing import PageContext
    from torra.replay.changed.listing import Paths
    from torra.replay.changed.without_agents import Kind

KINDS: Final = ("verdict", "action", "size")
SHOWN: Final = 20
MOST: Final = 200
"""Ticks that the API returns unless asked for more, and the most at once."""

PER_MINUTE: Final = 60
"""How often one visitor may ask in a minute: some answers compare a thousand ticks."""

FEW: Final = 1_000
"""Stored ticks up to which a page compares the two whole paths itself, within a second or two."""

# weak: what is remembered goes with its database
_PATHS: WeakKeyDictionary[Database, tuple[tuple[object, ...], tuple[Paths, ...]]] = (
    WeakKeyDictionary()
)


@dataclass(frozen=True, slots=True)
class Effect:
    """What the changes came to, in sentences, and for each tick of a page by its id.

    A tick's pair is what it came to without agents, and with them. `currency` says whose money.
    """

    sentences: tuple[str, ...]
    of_ticks: Mapping[int, tuple[str, str]]
    currency: str


def effect(
    context: PageContext, rows: Iterable[Mapping[str, Any]], changed: int, ticks: int
) -> Effect:
    """Return what the changed verdicts came to: of the desk's `changed` of `ticks`, and of rows."""
    from torra.replay.changed import listing, words  # noqa: PLC0415  the pages load replays only when asked to
    from torra.replay.changed.without_agents import ScoredBars, changed_tick  # noqa: PLC0415

    currency = context.currency_of(context.settings.instances)
    instances = {item.id: item for item in context.settings.instances}
    bars = ScoredBars(context.database)
    of_ticks = {}
    for row in rows:
        key = f"{row['instance']}|{row['timeframe']}|{row['bar_time']}"
        tick = changed_tick(bars, instances, key) if row["instance"] in instances else None
        if tick is not None:
            of_ticks[row["sentiment_id"]] = (
                words.came(tick.l1.came_to, currency),
                words.came(tick.done.came_to, currency),
            )
    worth = figures.sanitize(job_table.newest_says(context.database, "worth"), 600)
    paths = [words.of_paths(path, currency) for path in _paths(context, ticks) or ()]
    sums = paths or [*filter(None, [worth]), words.RENEWED]
    sentences = (listing.enough(changed), *sums, words.NOT_ADDED)
    return Effect(sentences, of_ticks, f"in {currency}" if currency else IN_MONEY)


def _paths(context: PageContext, ticks: int) -> tuple[Paths, ...] | None:
    """Return the whole paths of a small desk, remembered until it has another tick; else None."""
    from torra.desk import promotion  # noqa: PLC0415
    from torra.replay.changed import listing  # noqa: PLC0415

    if ticks > FEW:
        return None
    setups = context.setups
    version = ticks, *((item.id, profile.digest()) for item, profile in setups)
    cached = _PATHS.get(context.database)
    if cached is None or cached[0] != version:
        paths = [
            listing.paths(context.database, subject) for subject in promotion.subjects_of(setups)
        ]
        cached = _PATHS[context.database] = version, tuple(paths)
    return cached[1]


def changed() -> ResponseReturnValue:
    """Lead from the former page to History's ticks with a changed verdict."""
    instance = request.args.get("instance") or None
    return redirect(url_for(".history", only="changed", instance=instance), 303)


def api_changed() -> ResponseReturnValue:
    """Answer the ticks that agents changed, newest first; `next` is what to ask as `before`.

    `paths` compares the whole paths with and without agents; null beyond 1,000 ticks, of which only
    `torra effect` compares them.
    """
    from torra.replay.changed import listing  # noqa: PLC0415

    context = backing()
    what = tuple(request.args.getlist("what")) or KINDS[:2]
    for kind in what:
        list_query.require_known("what", kind, KINDS)
    limit = list_query.limit(SHOWN, MOST)
    try:
        page = listing.listed(
            context.database,
            context.settings,
            instance=request.args.get("instance") or None,
            kinds=cast("tuple[Kind, ...]", what),
            before=request.args.get("before") or None,
            limit=limit,
        )
    except ConfigError as error:
        list_query.refuse(str(error))
    return jsonify(page.as_json(_paths(context, page.of) if page.of else ()))


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
    Route("/changed", "changed", changed, per_minute=PER_MINUTE),
    Api(
        "/api/v1/changed",
        "api_changed",
        api_changed,
        per_minute=PER_MINUTE,
        query=QUERY,
    ),
)
