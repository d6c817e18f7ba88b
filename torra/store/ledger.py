"""The desk's ledger: what calls to models may cost and did cost, in USD, by profile.

A row is one request that a tick may make. It is booked (`reserved`) before the request, at the most
that the request can cost. It becomes `settled` at the real cost, or `kept` at its worst case when
nobody will ever know; a request that is not made leaves no row.

`until` is the last moment, in real time, at which its money can be spent. A row counts in a sliding
hour while `until` lies in it or in the future, so a clock that is set back frees nothing. Times are
whole seconds: `until` is rounded up and the beginning of a window down, so rounding frees nothing
either.

The ledger also holds the degradation level of a profile, and the vendors that are not asked for a
while. torra.tick.spending decides what to book, and when. A file that cannot be read or
written raises StoreUnavailable.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final

from torra.errors import bounded
from torra.store.connection import AFTER_ALL, RowDict, Store, stamp, to_json
from torra.store.trade.rows import ProviderBlock

SUMMED: Final = "replay."
"""Prefix of profiles whose rows are never pruned: a replay that goes on after months would
otherwise begin to spend anew.
"""

JUST_UNDER_A_SECOND: Final = timedelta(microseconds=999_999)

JUDGED: Final = "calls"
"""Cursor of the moment from which on calls are judged."""

JUDGED_CALLS: Final = 100
JUDGED_FOR: Final = timedelta(hours=24)

PROFILES: Final = """
WITH RECURSIVE found (profile) AS (
    SELECT min(profile) FROM ledger
    UNION ALL
    SELECT (SELECT min(profile) FROM ledger WHERE profile > found.profile)
    FROM found WHERE found.profile IS NOT NULL
) SELECT profile FROM found WHERE profile IS NOT NULL
"""
"""Every profile of the ledger by one step in its index each: DISTINCT would read all of it."""


@dataclass(frozen=True, slots=True)
class Booking:
    """One request that may be made, and the most that it can cost."""

    stage: str
    role: str
    round: int
    attempt: int
    provider: str
    model: str
    usd: float


@dataclass(frozen=True, slots=True)
class Settlement:
    """The real cost of a request; `until` is when its answer was there.

    `route` is (vendor, model) when another one than the booked one answered.
    """

    usd: float
    until: datetime
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    route: tuple[str, str] | None = None


NEWEST_CALLS: Final = (
    "SELECT rowid AS number, at, provider, model, status, elapsed_ms, detail "  # noqa: S608 - ours
    "FROM calls WHERE at >= max(?, "
    "coalesce((SELECT applied_at FROM trading_config "
    "WHERE id = (SELECT max(id) FROM trading_config)), ''), "
    "coalesce((SELECT place FROM notice_cursors WHERE name = ?), '')) "
    "AND model = ? AND status NOT IN ('budget', 'deadline', 'miss') "
    f"ORDER BY at DESC, cost_usd DESC LIMIT {JUDGED_CALLS}"
)

UNDER_WAY: Final = timedelta(seconds=120)
"""Age up to which a call that is booked and not settled may still be under way."""


class LedgerStore(Store):
    """Ledger, levels and blocked vendors."""

    # --- the ledger -----------------------------------------------------------------------------

    def book(
        self,
        profile: str,
        torra_key: str,
        rows: Sequence[Booking],
        *,
        at: datetime,
        until: datetime,
    ) -> list[int]:
        """Reserve the worst case of requests; return the ids of their rows, in order."""
        fixed = {"profile": profile, "torra_key": torra_key, "state": "reserved", "at": at}
        empty = {"input_tokens": 0, "output_tokens": 0, "until": _ceil(until)}
        with self.transaction():
            # All bookings of a stage or none: half of them would leave calls that no row covers.
            return [self.add("ledger", {**fixed, **asdict(row), **empty}) for row in rows]

    def settle(self, row_id: int, paid: Settlement) -> None:
        """Replace a row's worst case by its request's real cost; a settled row stays as it is."""
        self.change(
            "UPDATE ledger SET state = 'settled', usd = ?, input_tokens = ?, output_tokens = ?, "
            "cached_tokens = ?, until = ?, provider = coalesce(?, provider), "
            # A kept row too: its answer may come after all.
            "model = coalesce(?, model) WHERE id = ? AND state <> 'settled'",
            paid.usd, paid.input_tokens, paid.output_tokens, paid.cached_tokens,
            _ceil(paid.until), *(paid.route or (None, None)), row_id,
        )  # fmt: skip

    def keep(self, row_id: int) -> None:
        """Leave a row at its worst case for good: nobody knows what its request cost."""
        self.change("UPDATE ledger SET state = 'kept' WHERE id = ? AND state = 'reserved'", row_id)

    def release(self, row_id: int) -> None:
        """Take back the row of a request that was not made and will not be."""
        # Not a kept row: its request was made.
        self.change("DELETE FROM ledger WHERE id = ? AND state = 'reserved'", row_id)

    def spent(
        self,
        profile: str,
        since: datetime,
        *,
        surely: bool = False,
        stages: Collection[str] | None = None,
    ) -> float:
        """Return the USD booked for a profile in the window that began at `since`.

        `surely`: without what is only reserved, for a request that may not be made. `stages`: of
        these alone.
        """
        sql = "SELECT coalesce(sum(usd), 0.0) FROM ledger WHERE profile = ? AND until > ?"
        sql += " AND state <> 'reserved'" if surely else ""
        if stages is None:
            return float(self.value(sql, profile, since))
        sql += " AND stage IN (SELECT value FROM json_each(?))"
        return float(self.value(sql, profile, since, to_json([*stages])))

    # --- the ladder -----------------------------------------------------------------------------

    def degradation_level(self, profile: str) -> str | None:
        """Return the level of a profile; None before it ever left the highest one."""
        row = degradation_level_row(self, profile)
        return str(row["degradation_level"]) if row else None


def set_degradation_level(store: Store, profile: str, degradation_level: str) -> None:
    """Put a profile on a level."""
    store.upsert(
        "degradation_levels",
        {"profile": profile, "degradation_level": degradation_level, "at": store.moment()},
    )

    # --- vendors that are not asked -------------------------------------------------------------


def count_rounds(store: Store, profile: str, key: str, since: datetime) -> int:
    """Return how often something beside the ticks was asked about, by its calls and bookings.

    Bookings that cost something count from `since` on: a call that a crash cut off has no other
    trace.
    """
    sql = (
        "SELECT coalesce(max(round), 0) FROM ("
        "SELECT round FROM calls WHERE torra_key = ? UNION ALL "
        "SELECT round FROM ledger WHERE profile = ? AND until > ? AND torra_key = ? AND usd > 0)"
    )
    return int(store.value(sql, key, profile, since, key))


def last_round(store: Store, key: str) -> int:
    """Return the newest round of the stored calls of a key, 0 without any."""
    return int(store.value("SELECT max(round) FROM calls WHERE torra_key = ?", key) or 0)


def is_under_way(store: Store, key: str) -> bool:
    """Tell whether a call of a key was booked lately and is not settled: it is under way."""
    since = stamp(store.now() - UNDER_WAY)
    sql = "SELECT 1 FROM ledger WHERE torra_key = ? AND state = 'reserved' AND at > ? LIMIT 1"
    return bool(store.value(sql, key, since))


def ledger_rows(store: Store, since: datetime, profile: str | None = None) -> list[RowDict]:
    """Return the rows that count since a moment, oldest first."""
    which = "" if profile is None else "AND profile = ?"
    return store.rows(
        f"SELECT * FROM ledger WHERE until > ? {which} ORDER BY until, id",  # noqa: S608
        since, *([] if profile is None else [profile]),
    )  # fmt: skip


def ledger_profiles(store: Store) -> list[str]:
    """Return the profiles that were ever booked for, by name."""
    return store.column(PROFILES)


def ledger_sums(
    store: Store, profile: str, after: datetime, upto: datetime | None
) -> list[RowDict]:
    """Return sums of a profile's rows with after < until <= upto (None: for ever), by group.

    Each has role, provider, model, kept (1 when not settled), calls, usd, input_tokens,
    cached_tokens, output_tokens.
    """
    return store.rows(
        "SELECT role, provider, model, state <> 'settled' AS kept, count(*) AS calls, "
        "sum(usd) AS usd, sum(input_tokens) AS input_tokens, "
        "sum(cached_tokens) AS cached_tokens, sum(output_tokens) AS output_tokens "
        "FROM ledger WHERE profile = ? AND until > ? AND until <= ? GROUP BY 1, 2, 3, 4",
        profile, after, upto or AFTER_ALL,
    )  # fmt: skip


def ledger_between(store: Store, profile: str, start: datetime, end: datetime) -> tuple[float, int]:
    """Return USD and number of a profile's calls with start <= until < end."""
    sql = (
        "SELECT coalesce(sum(usd), 0.0), count(*) FROM ledger "
        "WHERE profile = ? AND until >= ? AND until < ?"
    )
    [(usd, calls)] = store.tuples(sql, profile, start, end)
    return usd, calls


def ledger_unsettled(store: Store, profile: str, since: datetime, limit: int) -> list[RowDict]:
    """Return a profile's newest rows that stand at their worst case."""
    return store.rows(
        "SELECT id, profile, torra_key, stage, role, provider, model, state, usd, at, until "
        "FROM ledger WHERE profile = ? AND until > ? AND state <> 'settled' "
        "ORDER BY until DESC, id DESC LIMIT ?",
        profile, since, limit,
    )  # fmt: skip


def begin_calls(store: Store) -> None:
    """Judge calls anew from now on: a desk has started, and a start reads the keys anew."""
    store.upsert("notice_cursors", {"name": JUDGED, "place": store.moment()})


def newest_calls(store: Store, models: Collection[str]) -> list[RowDict]:
    """Return how the newest calls of models went, without their texts: JUDGED_CALLS of each.

    Those of JUDGED_FOR, since a desk last started and since a profile was last changed, that
    were sent.
    """
    since = store.now() - JUDGED_FOR
    return [row for model in models for row in store.rows(NEWEST_CALLS, since, JUDGED, model)]


def prune_ledger(store: Store, before: datetime) -> int:
    """Forget the rows that left every window before a moment; return how many."""
    return store.change(
        "DELETE FROM ledger WHERE until < ? AND substr(profile, 1, ?) <> ?",
        before, len(SUMMED), SUMMED,
    )  # fmt: skip


def degradation_level_row(store: Store, profile: str) -> RowDict | None:
    """Return the level of a profile and since when: level, at; None before it ever left one."""
    return store.row(
        "SELECT degradation_level, at FROM degradation_levels WHERE profile = ?", profile
    )


def block_provider(store: Store, provider: str, reason: str, until: datetime) -> None:
    """Record that a vendor is not asked before `until`, and why."""
    row = {"provider": provider, "reason": bounded(reason)}
    store.upsert("provider_blocks", {**row, "since": store.moment(), "until": _ceil(until)})


def provider_blocks(store: Store) -> list[ProviderBlock]:
    """Return the vendors that are not asked now."""
    return store.models(
        ProviderBlock,
        "SELECT provider, reason, since, until FROM provider_blocks WHERE until > ? "
        "ORDER BY provider",
        store.moment(),
    )  # fmt: skip


def clear_blocks(store: Store) -> None:
    """Forget that vendors are not asked."""
    store.change("DELETE FROM provider_blocks")


def _ceil(moment: datetime) -> str:
    return stamp(moment + JUST_UNDER_A_SECOND)


def spent_on(store: Store, key: str) -> float:
    """Return the USD booked for what has a key."""
    sql = "SELECT coalesce(sum(usd), 0.0) FROM ledger WHERE torra_key = ?"
    return float(store.value(sql, key))


def spent_together(store: Store, profiles: Collection[str], since: datetime) -> float:
    """Return the USD booked for some profiles in the window that began at `since`."""
    sql = (
        "SELECT coalesce(sum(usd), 0.0) FROM json_each(?) JOIN ledger ON profile = value "
        "WHERE until > ?"
    )
    return float(store.value(sql, to_json([*profiles]), since))
