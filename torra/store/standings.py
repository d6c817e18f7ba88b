"""Stores what the promotion rule decided about agents, and reads the ticks that it decides by.

Each look that was taken is one row, never changed and never taken twice: two desks that come to the
same look write it once. A look belongs to the fingerprint of a desk's setting; the profile's name
is only noted. Settings are numbered (`trial`) by their first look over the whole database, and no
two share a number. A setting without a row has not been promoted.

Ticks are read for evaluation as plain rows, a page at a time, in the order in which they ran. Of
their JSON only what an observation needs is read: the texts stay where they are.

Ticks that agents may have changed are found newest first, a page at a time by a cursor. Two partial
indexes hold them: ticks whose verdict is not the one of L1 alone, and ticks of an equal verdict
that asks for an order. What agents changed of the latter stands in their records, which
torra.replay.changed reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from torra.clock import TIMEFRAMES, duration, parse
from torra.store.connection import RowDict, Store, stamp, to_json
from torra.store.hosted import is_hosted
from torra.verdict.signal_states import POSITION_STATES, UNEXECUTED

PAGE: Final = 500
"""Ticks that are in memory at a time while all are read."""

NEWEST: Final = "9999"
"""A time that no tick reaches."""


def _parts(column: str, names: Sequence[str]) -> str:
    paths = ", ".join(f"'$.{name}'" for name in names)
    # SQLite raises for text that is no JSON, and one such row would take all others with it.
    return f"CASE WHEN json_valid({column}) THEN json_extract({column}, {paths}) END"


OBSERVED: Final = (
    "SELECT c.sentiment_id AS number, c.torra_key, j.record, s.agent_deliberation "
    "FROM chains c JOIN sentiment s ON s.id = c.sentiment_id "
    "JOIN journal j ON j.torra_key = c.torra_key WHERE c.sentiment_id > ? "
    "AND +c.close_time >= ? AND +c.close_time <= ? AND +c.instance IN "
)
"""The + before a column keeps SQLite on the index of sentiment_id: it reads one page, in order."""

CALLED: Final = (
    "SELECT c.close_time, j.provider, "  # noqa: S608 - names of this module alone
    f"{_parts('j.record', ('close', 'regime.name', 'invented'))} AS told, "
    f"{_parts('s.agent_deliberation', ['reports'])} AS reports "
    "FROM chains c JOIN sentiment s ON s.id = c.sentiment_id "
    "JOIN journal j ON j.torra_key = c.torra_key "
    "WHERE c.instance = ? AND c.timeframe = ? AND c.close_time > ? "
    "ORDER BY c.close_time LIMIT ?"
)
"""The ticks of a stream, along chains_stream."""


# weak: what is known of the warm-ups of a database goes with it
_ENDS: WeakKeyDictionary[Store, dict[tuple[str, str], datetime | None]] = WeakKeyDictionary()


def write_standing(
    store: Store,
    profile: str,
    fingerprint: str,
    *,
    trial: int,
    look: int,
    promoted: bool,
    reason: str,
    figures: Mapping[str, Any],
) -> bool:
    """Note how a look ended; False when it is on record already.

    False too when another setting took this trial's number meanwhile.
    """
    row = {
        "fingerprint": fingerprint, "profile": profile, "trial": trial, "look": look,
        "promoted": promoted, "reason": reason, "figures": to_json(figures),
        "at": store.moment(),
    }  # fmt: skip
    taken = "SELECT 1 FROM agent_standing WHERE look = ? AND (fingerprint = ? OR trial = ?)"
    with store.transaction():
        # Two desks that come to the same look write it once: the schema refuses a second.
        if store.value(taken, look, fingerprint, trial):
            return False
        store.add("agent_standing", row)
        return True


def standings(store: Store, fingerprint: str) -> list[RowDict]:
    """Return every look of a setting in order: profile, trial, look, promoted, reason, at.

    `profile` is what the profile was called then, `figures` what the look saw.
    """
    rows = store.rows(
        "SELECT profile, trial, look, promoted, reason, figures, at FROM agent_standing "
        "WHERE fingerprint = ? ORDER BY look",
        fingerprint,
    )
    return [
        {**row, "promoted": bool(row["promoted"]), "figures": json.loads(row["figures"])}
        for row in rows
    ]


def count_trials(store: Store) -> int:
    """Return how many settings ever came to a look, under whatever name."""
    return int(store.value("SELECT coalesce(max(trial), 0) FROM agent_standing"))


def agents_promoted(store: Store, fingerprint: str) -> bool:
    """Return whether the newest look of a setting promoted its agents."""
    sql = "SELECT promoted FROM agent_standing WHERE fingerprint = ? ORDER BY look DESC LIMIT 1"
    return bool(store.value(sql, fingerprint))


def profiles_given(store: Store) -> list[tuple[str, str]]:
    """Return every instance there was with each profile it was given, as JSON, oldest first."""
    return store.tuples("SELECT instance, profile FROM trading_config ORDER BY id")


def observed(
    store: Store,
    instances: Sequence[str],
    start: datetime | None = None,
    end: datetime | None = None,
    page: int = PAGE,
) -> Iterator[tuple[str, str]]:
    """Yield the ticks of instances that closed in [start, end], in the order they ran.

    Each is its key and its record with its deliberation, as JSON text
    (torra.tick.tick_record.load). Ticks that are stored meanwhile may come too.
    """
    after, marks = 0, ", ".join("?" * len(instances))
    sql = f"{OBSERVED}({marks}) ORDER BY c.sentiment_id LIMIT ?"
    while rows := store.rows(sql, after, start or "", end or NEWEST, *instances, page):
        after = rows[-1]["number"]
        yield from ((row["torra_key"], with_debate(row)) for row in rows)


def stream_calls(
    store: Store, instance: str, timeframe: str, after: datetime | None, limit: int
) -> list[RowDict]:
    """Return the ticks of a stream that closed after a moment, oldest first, with their calls.

    Each has close_time, provider, close, regime, and the reports of its agents as JSON text,
    none of invented evidence. What a damaged row lacks is None.
    """
    rows = store.rows(CALLED, instance, timeframe, stamp(after) if after else "", limit)
    for row in rows:
        *values, invented = json.loads(row.pop("told") or "[null, null, null]")
        row |= dict(zip(("close", "regime"), values, strict=True))
        row["reports"] = "[]" if invented else row["reports"] or "[]"
    return rows


def close_before(store: Store, instance: str, timeframe: str, ticks: int) -> datetime | None:
    """Return the close after which a stream has so many ticks; None where it has no more."""
    close = store.value(
        "SELECT close_time FROM chains WHERE instance = ? AND timeframe = ? "
        "ORDER BY close_time DESC LIMIT 1 OFFSET ?",
        instance, timeframe, ticks,
    )  # fmt: skip
    return parse(close) if close else None


def reports_of(store: Store, torra_key: str) -> tuple[str, str]:
    """Return the provider of a tick and its reports as JSON text; of no such tick none."""
    row = store.row(
        f"SELECT j.provider, {_parts('s.agent_deliberation', ['reports'])} AS reports "  # noqa: S608
        "FROM chains c JOIN sentiment s ON s.id = c.sentiment_id "
        "JOIN journal j ON j.torra_key = c.torra_key WHERE c.torra_key = ?",
        torra_key,
    )
    return (row["provider"], row["reports"] or "[]") if row else ("", "[]")


def skipped_between(
    store: Store,
    instances: Sequence[str],
    start: datetime | None = None,
    end: datetime | None = None,
) -> dict[str, int]:
    """Return how many ticks that closed in [start, end] were skipped, by reason."""
    rows = store.tuples(
        "SELECT reason, count(*) FROM ticks WHERE state = 'skipped' "
        "AND close_time >= ? AND close_time <= ? AND instance IN (SELECT value FROM json_each(?)) "
        "GROUP BY reason ORDER BY reason",
        start or "", end or NEWEST, to_json([*instances]),
    )  # fmt: skip
    return dict(rows)


def trades_between(
    store: Store,
    instances: Sequence[str],
    start: datetime | None = None,
    end: datetime | None = None,
) -> list[RowDict]:
    """Return the closed trades of instances that were decided in [start, end].

    Rows as in the table signals, in the order of their ends.
    """
    return store.rows(
        "SELECT * FROM signals WHERE kind = 'open' AND state = 'CLOSED' "
        "AND decided_at >= ? AND decided_at <= ? AND instance IN (SELECT value FROM json_each(?)) "
        "ORDER BY closed_at, seq",
        start or "", end or NEWEST, to_json([*instances]),
    )  # fmt: skip


def warm_up_end(store: Store, instance: str, timeframe: str) -> datetime | None:
    """Return the last close of a stream that was run in warm-up; None where none was.

    The clock of the warm-up stands at each close, that of a running desk is always past it. So
    a record tells by its `now`.
    """
    ends = _ENDS.setdefault(store, {})
    key = instance, timeframe
    if key in ends:
        return ends[key]
    # Warm-up runs only where there is no tick yet: its ticks are the first, without a gap.
    warmed = partial(_warmed, store, instance, timeframe)
    known, beyond = -1, 0
    while warmed(beyond):
        known, beyond = beyond, 2 * beyond + 1
    while beyond - known > 1:
        middle = (known + beyond) // 2
        if warmed(middle):
            known = middle
        else:
            beyond = middle
    end = None if known < 0 else warmed(known)
    # A tick of the running desk has followed: the warm-up is over for good.
    if close_before(store, instance, timeframe, beyond):
        ends[key] = end
    return end


def _warmed(store: Store, instance: str, timeframe: str, place: int) -> datetime | None:
    """Return the close of a stream's tick, counted from 0, if it was run in warm-up."""
    row = store.row(
        f"SELECT c.close_time, {_parts('j.record', ['now'])} AS now FROM chains c "  # noqa: S608
        "JOIN journal j USING (torra_key) WHERE c.instance = ? AND c.timeframe = ? "
        "ORDER BY c.close_time LIMIT 1 OFFSET ?",
        instance, timeframe, place,
    )  # fmt: skip
    return parse(row["close_time"]) if row and row["now"] == row["close_time"] else None


class WarmUps:
    """The ends of the warm-up of streams, each looked up once."""

    def __init__(self, database: Store) -> None:
        self._database = database
        self._ends: dict[tuple[str, str], datetime | None] = {}

    def has(self, instance: str, timeframe: str, close: datetime) -> bool:
        """Return whether the tick of a stream that closed then was run in warm-up."""
        if is_hosted(instance):
            return False  # another scorer asks at the very close where it says so itself
        key = instance, timeframe
        if key not in self._ends:
            self._ends[key] = warm_up_end(self._database, *key)
        end = self._ends[key]
        return end is not None and close <= end

    def made(self, instance: str, timeframe: str, bar_time: str) -> bool:
        """Return whether what a bar decided is of the warm-up; False where the bar is none."""
        try:
            close = parse(bar_time) + duration(timeframe)
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
            return False
        return self.has(str(instance), timeframe, close)


def with_debate(row: Mapping[str, Any]) -> str:
    """Return the JSON of a record with that of its deliberation in it."""
    record = str(row["record"]).rstrip().removesuffix("}")
    return f'{record},"deliberation":{row["agent_deliberation"] or "null"}}}'


# --- ticks that agents changed --------------------------------------------------------------------

BEYOND: Final = ("9999", "")
"""A place in the order of ticks that none reaches."""

PLACES: Final = tuple(
    f"SELECT close_time, torra_key FROM chains INDEXED BY {index} WHERE instance = ? AND {which} "  # noqa: S608
    "AND (close_time, torra_key) < (?, ?) ORDER BY close_time DESC, torra_key DESC LIMIT ?"
    for index, which in (
        ("chains_changed", "verdict <> l1_verdict"),
        ("chains_acting", "verdict = l1_verdict AND verdict <> 'HOLD'"),
    )
)
"""Ticks of another verdict than L1's, and those of an equal BUY or SELL."""

DECIDED: Final = (
    "SELECT c.torra_key, c.instance, c.timeframe, c.bar_time, c.close_time, c.l1_verdict, "
    "c.verdict, j.action, j.reason, j.record, s.agent_deliberation "
    "FROM chains c JOIN sentiment s ON s.id = c.sentiment_id "
    "LEFT JOIN journal j ON j.torra_key = c.torra_key WHERE c.torra_key = ?"
)


def changed_places(
    store: Store, instance: str, before: tuple[str, str], limit: int, *, acting: bool
) -> list[tuple[str, str]]:
    """Return (close_time, torra_key) of ticks before a place in that order, newest first.

    Ticks of another verdict than L1's; with `acting` those of an equal BUY or SELL.
    """
    return store.tuples(PLACES[acting], instance, *before, limit)


def decided_tick(store: Store, torra_key: str) -> RowDict | None:
    """Return a tick as it was decided: both verdicts, action, reason, and its JSON.

    `record` is its record with its deliberation (torra.tick.tick_record.load).
    """
    row = store.row(DECIDED, torra_key)
    return None if row is None else {**row, "record": with_debate(row)}


def opening_at(store: Store, instance: str, timeframe: str, moment: datetime) -> RowDict | None:
    """Return the opening that an instance held or had sent when a tick of a close decided.

    None if it was flat then. Of ticks that close together the longer timeframe decided first.
    An opening that was refused or expired meanwhile is not found. `closing` says whether its
    close had been sent by then.
    """
    at = stamp(moment)
    opening = store.row(
        "SELECT * FROM signals WHERE instance = ? AND state = 'CLOSED' AND closed_at >= ? "
        "AND kind = 'open' ORDER BY closed_at LIMIT 1",
        instance, at,
    )  # fmt: skip
    if opening is None or not _before(opening, at, timeframe):
        marks = ", ".join("?" * len(POSITION_STATES))
        rows = store.rows(
            "SELECT * FROM signals WHERE instance = ? AND kind = 'open' "  # noqa: S608 - marks
            f"AND state IN ({marks})",
            instance, *POSITION_STATES,
        )  # fmt: skip
        opening = min(rows, key=lambda row: POSITION_STATES.index(row["state"]), default=None)
    if opening is None or not _before(opening, at, timeframe):
        return None
    closes = store.rows(
        "SELECT decided_at, timeframe, state FROM signals INDEXED BY signals_closes "
        "WHERE instance = ? AND kind = 'close' AND closes = ?",
        instance, opening["sid"],
    )  # fmt: skip
    closing = any(row["state"] not in UNEXECUTED and _before(row, at, timeframe) for row in closes)
    return opening | {"closing": closing}


def l1_verdicts(
    store: Store, instance: str, timeframe: str, first: datetime, limit: int
) -> list[tuple[str, str]]:
    """Return close time and L1's verdict of the ticks of a stream from a close on."""
    return store.tuples(
        "SELECT close_time, l1_verdict FROM chains WHERE instance = ? AND timeframe = ? "
        "AND close_time >= ? ORDER BY close_time LIMIT ?",
        instance, timeframe, first, limit,
    )  # fmt: skip


def _before(signal: RowDict, at: str, timeframe: str) -> bool:
    decided = str(signal["decided_at"])
    # what is no timeframe was in no file of ours: it counts as none that ran before
    step = TIMEFRAMES.get(str(signal["timeframe"]), timedelta())
    return decided < at or (decided == at and step > duration(timeframe))
