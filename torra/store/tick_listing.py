"""Every tick of a desk by what it was: kinds of ticks with their counts, and ticks of some kinds.

A kind is what a list can be narrowed by: instance, timeframe, both verdicts, action, reason and who
decided. There are few kinds however many ticks there are, each knows how many ticks it has, and the
ticks of a kind lie in the order of their closes. So a page of any filter costs a look at
the newest tick of each kind and a few more, after ten years as after a day. Triggers keep the two
tables (torra.store.schema). A tick without a journal, as a host may write it, has action "".

Nothing is written. A part of instance_database.Database.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple

from torra.store.connection import RowDict, Store

Place = tuple[str, int]
"""Where a list goes on: close time (ISO 8601) and number of the last tick that was shown."""

AFTER_ALL: Final[Place] = ("~", 2**62)
"""A place behind every tick: the list begins at the newest."""

FIRST_LOOK, MOST_AT_A_LOOK = 32, 512
"""Ticks of a kind that are read at once where all are wanted: at first, and later."""

KINDS: Final = (
    "SELECT id, instance, timeframe, l1_verdict, verdict, action, reason, source, ticks "
    "FROM tick_kinds WHERE ticks > 0"
)
HEADS: Final = (
    "SELECT k.value, (SELECT max(close_time) FROM tick_history INDEXED BY tick_history_kind "
    "WHERE kind = k.value AND close_time <= ?) AS newest FROM json_each(?) k"
)
COUNT: Final = (
    "SELECT count(*) FROM (SELECT 1 FROM tick_history INDEXED BY tick_history_kind "
    "WHERE kind = ? AND close_time >= ? AND close_time < ? LIMIT ?)"
)
OF_A_KIND: Final = (
    "SELECT close_time, sentiment_id FROM tick_history INDEXED BY tick_history_kind "
    "WHERE kind = ? AND close_time >= ? AND close_time <= ? "
    "AND (close_time < ? OR sentiment_id < ?) "
    "ORDER BY close_time DESC, sentiment_id DESC LIMIT ?"
)
TICK_ROWS: Final = (
    "SELECT c.sentiment_id, c.instance, c.timeframe, c.bar_time, c.close_time, s.price_action, "
    "s.key_levels, s.momentum, s.structure, s.ath, c.l1_composite, c.composite, c.l1_consensus, "
    "c.consensus, c.l1_verdict, c.verdict, j.action, j.reason, s.source_type, j.cost_usd, "
    "j.elapsed_ms FROM json_each(?) n JOIN chains c ON c.sentiment_id = n.value "
    "JOIN sentiment s ON s.id = c.sentiment_id "
    "LEFT JOIN journal j INDEXED BY journal_told ON j.torra_key = c.torra_key"
)
CONSULTED: Final = (
    "SELECT json_extract(agent_deliberation, '$.consulted.tier'), "
    "json_extract(agent_deliberation, '$.consulted.report.declined'), "
    "json_extract(agent_deliberation, '$.consulted.failure') FROM json_each(?) n "
    "JOIN sentiment s ON s.id = n.value WHERE json_valid(agent_deliberation)"
)
GATES: Final = (
    "SELECT c.sentiment_id, json_extract(j.record, '$.gate') FROM json_each(?) n "
    "JOIN chains c ON c.sentiment_id = n.value "
    "JOIN journal j ON j.torra_key = c.torra_key WHERE json_valid(j.record)"
)
WITHOUT_TICK: Final = (
    "SELECT instance, timeframe, reason, max(bar_time) AS bar_time, max(close_time) AS newest, "
    "count(*) AS count, min(close_time) AS oldest FROM ("
    "SELECT instance, timeframe, bar_time, close_time, state, reason FROM ticks "
    "INDEXED BY ticks_close WHERE close_time >= ? AND close_time < ? "
    "ORDER BY close_time DESC LIMIT ?) WHERE state = 'skipped' "
    "GROUP BY instance, timeframe, reason ORDER BY newest DESC"
)


class TickKind(NamedTuple):
    """What ticks have in common, and how many of them there are."""

    id: int
    instance: str
    timeframe: str
    l1_verdict: str
    verdict: str
    action: str
    reason: str
    source: str
    ticks: int


class TraderSummary(NamedTuple):
    """What a tick asked its trader: the tier, "" where it asked none, and what came of it."""

    tier: str
    declined: bool
    failure: str


def tick_kinds(store: Store) -> list[TickKind]:
    """Return every kind of tick that the database has, in no order."""
    # as text: what a host or a damaged row wrote may be of any type
    return [
        TickKind._make((number, *map(str, words), ticks))
        for number, *words, ticks in store.tuples(KINDS)
    ]


def counts_of_kinds(
    store: Store, kinds: Collection[int], begin: str, end: str, *, most: int
) -> Mapping[int, int] | None:
    """Return how many ticks of each kind closed in [begin, end), both ISO 8601.

    None when they are more than `most` together: they are not counted on.
    """
    counts: dict[int, int] = {}
    left = most
    for kind in kinds:
        (number,) = store.tuples(COUNT, kind, begin, end, left + 1)[0]
        left -= number
        if left < 0:
            return None
        counts[kind] = number
    return counts


def alone_of(store: Store, torra_keys: Collection[str]) -> Mapping[str, str]:
    """Return the verdict of L1 alone of some ticks, by their keys."""
    return dict(
        store.tuples(
            "SELECT c.torra_key, c.l1_verdict FROM json_each(?) k "
            "JOIN chains c ON c.torra_key = k.value",
            json.dumps([*torra_keys]),
        )
    )


def closes_without_tick(store: Store, first: str, last: str, *, most: int) -> list[RowDict]:
    """Return the skipped closes in [first, last) (ISO 8601), by stream and reason.

    Of each: how many (`count`), the oldest and the newest close, and the newest one's bar time.
    Only the newest `most` closes of any state are looked at, however many there are.
    """
    return store.rows(WITHOUT_TICK, first, last, most)


def ticks_of_kinds(
    store: Store, kinds: Collection[int], *, begin: str = "", before: Place = AFTER_ALL, limit: int
) -> list[RowDict]:
    """Return ticks of some kinds from `begin` on and before a place, newest first.

    Of each: its number (sentiment_id), its key, scores, composites, consensus and verdicts,
    what was done and why, what the agents cost (USD) and how long it took (ms).
    """
    heads = store.tuples(HEADS, before[0], json.dumps([*kinds]))
    newest = sorted(((close, kind) for kind, close in heads if close), reverse=True)
    places: list[Place] = []
    for close, kind in newest:
        # Kinds whose newest tick is older than the page need no look.
        if len(places) == limit and close < places[-1][0]:
            break
        places += store.tuples(OF_A_KIND, kind, begin, before[0], *before, limit)
        places = sorted(places, reverse=True)[:limit]
    return _rows_at(store, places)


def consultations(store: Store, kinds: Collection[int], *, limit: int) -> list[TraderSummary]:
    """Return what the newest ticks of some kinds asked their trader, in no order."""
    newest = ticks_of_kinds(store, kinds, limit=limit)
    numbers = json.dumps([row["sentiment_id"] for row in newest])
    return [
        TraderSummary(str(tier or ""), bool(declined), str(failure or ""))
        for tier, declined, failure in store.tuples(CONSULTED, numbers)
    ]


def gates_of(store: Store, numbers: Collection[int]) -> Mapping[int, str]:
    """Return the ruling of the gate on some ticks as JSON, by their number (sentiment_id)."""
    rows = store.tuples(GATES, json.dumps([*numbers]))
    return {number: gate for number, gate in rows if isinstance(gate, str)}


def every_tick_of_kinds(
    store: Store, kinds: Collection[int], *, begin: str, before: Place, at_once: int
) -> Iterator[RowDict]:
    """Yield the same of every tick of some kinds, newest first, some read at once."""
    places = merge(*(_of_kind(store, kind, begin, before) for kind in kinds), reverse=True)
    while some := list(islice(places, at_once)):
        yield from _rows_at(store, some)


def _of_kind(store: Store, kind: int, begin: str, before: Place) -> Iterator[Place]:
    """Yield the places of a kind's ticks, more of them at each look."""
    part = FIRST_LOOK
    while rows := store.tuples(OF_A_KIND, kind, begin, before[0], *before, part):
        yield from rows
        if len(rows) < part:
            return
        before, part = rows[-1], min(2 * part, MOST_AT_A_LOOK)


def _rows_at(store: Store, places: Sequence[Place]) -> list[RowDict]:
    rows = store.rows(TICK_ROWS, json.dumps([number for _, number in places]))
    return sorted(rows, key=lambda row: (row["close_time"], row["sentiment_id"]), reverse=True)
