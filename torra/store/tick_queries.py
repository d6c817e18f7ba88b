"""Reads what pages show of many streams at once, or of a long one, each row by an index.

The other stores answer for one tick. A page over fifty instances would ask them some hundred times
and read rows that it does not show. A statement here asks once for all streams, and only for their
newest rows; what must be counted was counted when it was written (verdict_tallies). No statement
reads a table through, so a page costs the same after ten years as after a day.

Nothing is written. A file that cannot be read raises StoreUnavailable. A part of
instance_database.Database; streams are given as (instance, timeframe).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from torra.clock import duration, parse
from torra.store.connection import RowDict, Store, stamp, to_json
from torra.store.hosted import is_hosted
from torra.store.journal import json_object

StreamKey = tuple[str, str]
"""Instance and timeframe."""

NEWEST: Final = (
    "SELECT w.instance, w.timeframe, "
    "(SELECT torra_key FROM chains c WHERE c.instance = w.instance AND c.timeframe = w.timeframe "
    "ORDER BY c.close_time DESC LIMIT 1), "
    "(SELECT max(bar_time) FROM ticks t WHERE t.instance = w.instance "
    "AND t.timeframe = w.timeframe) FROM (SELECT json_extract(value, '$[0]') AS instance, "
    "json_extract(value, '$[1]') AS timeframe FROM json_each(?)) w"
)

TICKS: Final = (
    "SELECT c.torra_key, c.bar_time, c.close_time, c.consensus, c.l1_consensus, c.verdict, "
    "c.l1_verdict, s.price_action, s.key_levels, s.momentum, s.structure, s.ath, s.source_type, "
    "j.action, j.reason FROM chains c JOIN sentiment s ON s.id = c.sentiment_id "
    "LEFT JOIN journal j INDEXED BY journal_told ON j.torra_key = c.torra_key "
    "WHERE c.instance = ? AND c.timeframe = ? ORDER BY c.close_time DESC LIMIT ?"
)

HISTORY: Final = (
    "SELECT close_time, consensus, verdict FROM chains WHERE instance = ? AND timeframe = ? "
    "ORDER BY close_time DESC LIMIT ?"
)

VERDICTS: Final = (
    "SELECT close_time, verdict FROM chains WHERE instance = ? AND timeframe = ? "
    "ORDER BY close_time DESC LIMIT ?"
)

KEYS: Final = (
    "SELECT close_time, torra_key FROM chains WHERE instance = ? AND timeframe = ? "
    "ORDER BY close_time DESC LIMIT ?"
)

FLAGS: Final = (
    "SELECT (SELECT json_group_array(f.value) FROM json_each(s.agent_deliberation, '$.flags') f) "
    "AS debate, (SELECT json_group_array(f.value) FROM "
    "json_each(s.agent_deliberation, '$.reports') r, json_each(r.value, '$.flags') f) AS reports "
    "FROM json_each(?) k JOIN sentiment s ON s.torra_key = k.value "
    "WHERE json_valid(s.agent_deliberation)"
)
"""The flags of the debates of some ticks, and of their reports."""

SKIPPED: Final = (
    "FROM ticks WHERE instance = ? AND timeframe = ? AND bar_time > ? AND state = 'skipped' "
    "ORDER BY bar_time DESC LIMIT ?"
)


def newest_of(
    store: Store, streams: Sequence[StreamKey]
) -> dict[StreamKey, tuple[str | None, str | None]]:
    """Return each stream's newest tick (its key) and the newest bar time of any state."""
    rows = store.tuples(NEWEST, to_json([*streams]))
    return {(instance, timeframe): (key, bar) for instance, timeframe, key, bar in rows}


def tick_summaries(store: Store, instance: str, timeframe: str, limit: int) -> list[RowDict]:
    """Return the newest ticks of a stream as charts and lists show them, newest first.

    The keys are torra_key, bar_time, close_time, both consensus and verdicts, the five blended
    scores and source_type; action and reason are None for a tick without a journal.
    """
    return store.rows(TICKS, instance, timeframe, limit)


def newest_keys(
    store: Store, instance: str, timeframe: str, as_of: datetime, limit: int
) -> list[str]:
    """Return the keys of the newest ticks of a stream that closed by a moment, newest first."""
    return store.column(
        "SELECT torra_key FROM chains WHERE instance = ? AND timeframe = ? AND close_time <= ? "
        "ORDER BY close_time DESC LIMIT ?",
        instance, timeframe, as_of, limit,
    )  # fmt: skip


def words_of(store: Store, torra_keys: Collection[str], names: Sequence[str]) -> dict[str, RowDict]:
    """Return parts of the records of some ticks by their names; what is null is left out."""
    paths = ", ".join(f"'$.{name}'" for name in names)
    rows = store.tuples(
        f"SELECT torra_key, json_extract(record, {paths}) "  # noqa: S608
        "FROM json_each(?) JOIN journal ON torra_key = value "
        # SQLite raises for text that is no JSON, and one such row would take all with it.
        "WHERE json_valid(record)",
        to_json([*torra_keys]),
    )
    return {
        key: {
            name: value
            for name, value in zip(names, json.loads(parts), strict=True)
            if value is not None
        }
        for key, parts in rows
    }


def consensus_history(store: Store, instance: str, timeframe: str, limit: int) -> list[RowDict]:
    """Return close_time, consensus and verdict of the newest ticks, oldest first."""
    return store.rows(HISTORY, instance, timeframe, limit)[::-1]


def verdicts_of(
    store: Store, instance: str, timeframes: Collection[str], limit: int
) -> dict[str, int]:
    """Return how often the newest `limit` ticks of an instance said each verdict."""
    return dict(Counter(_newest_values(store, VERDICTS, instance, timeframes, limit)))


def _newest_values(
    store: Store, sql: str, instance: str, timeframes: Collection[str], limit: int
) -> list[str]:
    """Return what a statement says of the newest ticks of all timeframes, newest first."""
    rows = [row for name in timeframes for row in store.tuples(sql, instance, name, limit)]
    return [value for _, value in sorted(rows, reverse=True)[:limit]]


def debate_flags(
    store: Store, instance: str, timeframes: Collection[str], limit: int
) -> list[list[str]]:
    """Return, of the newest `limit` ticks of an instance, the flags of debate and reports.

    Of ticks whose debate can be read; one that flagged nothing has an empty list.
    """
    newest = _newest_values(store, KEYS, instance, timeframes, limit)
    rows = store.tuples(FLAGS, to_json(newest))
    return [[str(flag) for part in row for flag in json.loads(part)] for row in rows]


def outside_statuses(
    store: Store, instance: str, timeframes: Collection[str], limit: int
) -> list[RowDict]:
    """Return, of the newest `limit` ticks of an instance, how each block of numbers stood.

    Newest first; a tick that read none, or whose record cannot be read, has nothing in it.
    """
    newest = _newest_values(store, KEYS, instance, timeframes, limit)
    rows = store.tuples(
        "SELECT torra_key, json_extract(record, '$.outside.statuses') "
        "FROM json_each(?) JOIN journal ON torra_key = value WHERE json_valid(record)",
        to_json(newest),
    )
    statuses = {key: json_object(text) for key, text in rows}
    return [statuses.get(key, {}) for key in newest]


def skips_after(
    store: Store, instance: str, timeframe: str, bar_time: str, limit: int
) -> RowDict | None:
    """Return the newest skipped close of the bars after `bar_time` ("" for all), or None.

    Its keys are bar_time, close_time, state, reason and detail. Three more keys describe the
    newest `limit` of these skips: `count`, `oldest` (a bar time), and `others`, how many have
    another reason than the newest.
    """
    place = (instance, timeframe, bar_time)
    newest = store.row(
        f"SELECT bar_time, close_time, state, reason, detail {SKIPPED}",
        *place, 1,
    )  # fmt: skip
    if newest is None:
        return None
    counts = store.row(
        "SELECT count(*) AS count, min(bar_time) AS oldest, "  # noqa: S608
        # Counted within a limit: a stream may have skipped for years.
        f"sum(reason <> ?) AS others FROM (SELECT bar_time, reason {SKIPPED})",
        newest["reason"], *place, limit,
    )  # fmt: skip
    return {**newest, **(counts or {})}


def skips_from(
    store: Store, instance: str, timeframe: str, bar_time: str, limit: int
) -> list[RowDict]:
    """Return the newest skipped closes of bars from `bar_time` on, newest first."""
    return store.rows(
        "SELECT bar_time, close_time, state, reason, detail FROM ticks WHERE instance = ? "
        "AND timeframe = ? AND bar_time >= ? AND state = 'skipped' "
        "ORDER BY bar_time DESC LIMIT ?",
        instance, timeframe, bar_time, limit,
    )  # fmt: skip


def tick_state(store: Store, instance: str, timeframe: str, bar_time: str) -> RowDict | None:
    """Return state, reason and detail of one close; None for a close without a row."""
    return store.row(
        "SELECT state, reason, detail FROM ticks WHERE instance = ? AND timeframe = ? "
        "AND bar_time = ?",
        instance, timeframe, bar_time,
    )  # fmt: skip


def tick_times(store: Store, instance: str, timeframe: str, first: str, last: str) -> list[str]:
    """Return the bar times in [first, last] of a stream's stored ticks, oldest first."""
    step = duration(timeframe)
    return store.column(
        "SELECT bar_time FROM chains WHERE instance = ? AND timeframe = ? "
        "AND close_time BETWEEN ? AND ? ORDER BY close_time",
        instance, timeframe, parse(first) + step, parse(last) + step,
    )  # fmt: skip


def adjacent_ticks(
    store: Store, instance: str, timeframe: str, bar_time: str
) -> tuple[str | None, str | None]:
    """Return the bar times of the finished or skipped ticks before and after a bar."""
    table, place, value = "ticks", "bar_time", bar_time
    which = "AND state IN ('done', 'skipped') "
    if is_hosted(instance):  # has no row in `ticks`: nobody owes it anything
        table, place, which = "chains", "close_time", ""
        value = stamp(parse(bar_time) + duration(timeframe))
    rows = [
        store.row(
            f"SELECT bar_time FROM {table} WHERE instance = ? AND timeframe = ? "  # noqa: S608
            f"AND {place} {sign} ? {which}ORDER BY {place} {way} LIMIT 1",
            instance, timeframe, value,
        )
        for sign, way in (("<", "DESC"), (">", "ASC"))
    ]  # fmt: skip
    before, after = (str(row["bar_time"]) if row else None for row in rows)
    return before, after


def verdict_tallies(store: Store, instances: Collection[str]) -> dict[StreamKey, tuple[int, int]]:
    """Return, by stream, how many verdicts are not L1's, and how many ticks there are."""
    rows = store.tuples(
        "SELECT instance, timeframe, changed, ticks FROM verdict_tallies "
        "WHERE instance IN (SELECT value FROM json_each(?))",
        to_json([*instances]),
    )
    return {(instance, timeframe): (changed, ticks) for instance, timeframe, changed, ticks in rows}


def tick_states(store: Store, instance: str, timeframe: str, limit: int = 100) -> list[RowDict]:
    """Return the newest ticks' bar_time, close_time, state, reason, detail and at."""
    return store.rows(
        "SELECT bar_time, close_time, state, reason, detail, at FROM ticks "
        "WHERE instance = ? AND timeframe = ? ORDER BY bar_time DESC LIMIT ?",
        instance, timeframe, limit,
    )  # fmt: skip
