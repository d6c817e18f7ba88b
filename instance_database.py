"""The desk's database: one SQLite file that holds everything a desk knows.

`Database` joins the stores of torra/store (ticks, bars, signals, journal, ledger and the others)
into one class, which is what a tick takes for its store (torra.store.tick_store). Connections and
transactions are torra.store.connection's part, the schema is torra.store.migrations', the brain's
arithmetic torra.verdict.sentiment_rules'.

`save_sentiment` (torra.store.brain) turns four scores into composites, consensus and verdict. It
does so for the final chain and for three companions: L1 alone, and the lower and the higher of the
gated and the ungated blend. `memory_context` returns what was known of a stream at a moment.
Neither reads anything that closed after the tick's own close.

A score that is not a number in [-1, +1] raises ValueError before anything is written. A database
that cannot be read or written raises StoreUnavailable and keeps nothing of the transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from torra import owner_only
from torra.clock import TIMEFRAMES, System, duration, parse
from torra.errors import ConfigError, StoreUnavailable
from torra.home import DATABASE, LOST, lost
from torra.store import migrations
from torra.store.audit import AuditStore
from torra.store.bars import OF_STREAM, BarStore
from torra.store.brain import Composites, History, StoredTick
from torra.store.connection import BUSY_SECONDS, TickKey, inspect, to_json
from torra.store.faults import explain
from torra.store.journal import JournalStore
from torra.store.ledger import LedgerStore
from torra.store.lessons import LessonStore
from torra.store.news import NewsStore
from torra.store.series import SeriesStore
from torra.store.tick_store import TickStore
from torra.store.ticks import ClaimStore
from torra.store.trade.proposals_and_alarms import ExecutionStore
from torra.store.trade.signals import CLOSED_OPENING, SignalStore
from torra.verdict.sentiment_rules import CHAINS, MARKOV_HISTORY, RECENT_TRADES, ConsensusResult

RECALLED: Final = ("side", "profit", "r_multiple", "outcome", "evolution", "closed_at")
"""Columns of a closed trade that a memory context uses."""

OF_CHAINS: Final = (
    *(f"{chain}_{what}" for what in ("composite", "consensus") for chain in CHAINS[:-1]),
    *("composite", "consensus", "l1_verdict", "verdict"),
)
"""Columns of a tick's chains that a ConsensusResult has."""

LATER: Final = (
    "({0} > ?1 OR ({0} = ?1 AND instance = ?2 "
    "AND timeframe NOT IN (SELECT value FROM json_each(?3))))"
)
"""Rows that a tick that runs again did not know, by a column of times.

Of ticks that close together the longer timeframe runs first (docs/tick.md): ?3 names those.
"""

TAKEN_BACK: Final = (
    # A signal's state is that of its last step: what is taken back, its steps are too.
    "DELETE FROM signal_events WHERE to_state = 'CLOSED' AND sid IN "
    "(SELECT sid FROM signals WHERE kind = 'open' AND state = 'CLOSED' AND closed_at >= ?)",
    "DELETE FROM signal_events WHERE to_state IN ('FILLED', 'PARTIAL', 'CLOSED') "
    "AND sid IN (SELECT sid FROM signals WHERE state IN ('FILLED', 'PARTIAL', 'CLOSED') "
    "AND opened_at >= ?)",
    "UPDATE signals SET state = 'FILLED', closed_at = NULL, close_price = NULL, "
    "profit = NULL, r_multiple = NULL, close_reason = NULL, "
    "outcome = NULL, evolution = NULL, thesis = NULL "
    "WHERE kind = 'open' AND state = 'CLOSED' AND closed_at >= ?",
    "UPDATE signals SET state = 'PUBLISHED', opened_at = NULL, price = NULL, "
    "filled_lots = NULL, deal = NULL "
    "WHERE state IN ('FILLED', 'PARTIAL') AND opened_at >= ?",
    "DELETE FROM paper_cursor WHERE bar_time >= ?",
)
"""What signals learned from a moment on is taken back."""

LATER_TICKS: Final = (
    "(SELECT instance || '|' || timeframe || '|' || bar_time FROM ticks "  # noqa: S608
    f"WHERE close_time >= ?1 AND {LATER.format('close_time')})"
)

__all__ = [
    "MARKOV_HISTORY",
    "RECENT_TRADES",
    "ConsensusResult",
    "Database",
    "TickKey",
    "open_home",
    "open_reader",
    "save_sentiment",
]


class Database(
    ClaimStore,
    BarStore,
    SignalStore,
    ExecutionStore,
    JournalStore,
    LedgerStore,
    NewsStore,
    SeriesStore,
    LessonStore,
    AuditStore,
    TickStore,
):
    """One desk's database. Any thread may use it; each has its own connection."""

    @classmethod
    def open(
        cls, path: Path, *, now: Callable[[], datetime], busy_seconds: float = BUSY_SECONDS
    ) -> Database:
        """Open the database at `path`, and make or migrate it if need be.

        `now` is real time. Raises ConfigError when the file cannot become a desk's database, and
        StoreUnavailable when it is locked or its disk fails.
        """
        path = Path(path)
        database = cls(path, now=now, busy_seconds=busy_seconds)
        try:
            owner_only.make_folder(path.parent)
            if not path.exists():
                owner_only.make_file(path)  # SQLite gives what it puts beside it the same rights
            # Before the first connection of ours: that one would switch a stranger's file to WAL.
            inspect(path, busy_seconds)
            migrations.migrate(database.connection(), path, database.transaction, now)
        except (sqlite3.DatabaseError, OSError) as error:
            database.close()
            raise StoreUnavailable(explain(path, error)) from error
        # A ConfigError too: a file that is refused must not stay open.
        except BaseException:
            database.close()
            raise
        return database

    def rewind(self, instance: str, as_of: datetime, timeframe: str | None = None) -> None:
        """Forget what happened after `as_of`, and the ticks of the instance that closed at it.

        For a throw-away copy only. With a `timeframe`, ticks of longer ones that closed at `as_of`
        are kept, because they ran before it. Latches stay as they are.
        """
        longer = [name for name in TIMEFRAMES if timeframe and duration(name) > duration(timeframe)]
        place = as_of, instance, to_json(longer)
        with self.transaction():
            # The chain before its sentiment row, which it references.
            for table in ("journal", "calls", "lesson_uses", "chains", "sentiment"):
                self.change(f"DELETE FROM {table} WHERE torra_key IN {LATER_TICKS}", *place)  # noqa: S608
            self.change(f"DELETE FROM ticks WHERE {LATER.format('close_time')}", *place)  # noqa: S608
            signals = f"FROM signals WHERE {LATER.format('decided_at')}"
            # Before their signal: they reference it.
            for table in ("signal_events", "trade_notes", "trade_tags"):
                self.change(f"DELETE FROM {table} WHERE sid IN (SELECT sid {signals})", *place)  # noqa: S608
            self.change(f"DELETE {signals}", *place)
            for sql in TAKEN_BACK:
                self.change(sql, as_of)
            self._bar_cache.forget()
            streams = self.tuples("SELECT DISTINCT instance, timeframe FROM record_highs")
            for stream in streams:
                # Spread and order flow go after their bar: beside it, they stay.
                for table in ("bars", "spreads", "flow", "record_highs", "record_lows"):
                    sql = f"DELETE FROM {table} WHERE {OF_STREAM} AND bar_time > ?"  # noqa: S608
                    self.change(sql, *stream, as_of - duration(stream[1]))

    # --- what the brain reads -------------------------------------------------------------------

    def _latest_composites(
        self, key: TickKey, close_time: datetime, timeframes: Sequence[str]
    ) -> Composites:
        composites: Composites = {}
        for timeframe in timeframes:
            row = self.row(
                "SELECT close_time, l1_composite, low_composite, high_composite, composite "
                "FROM chains WHERE instance = ? AND timeframe = ? AND close_time <= ? "
                "ORDER BY close_time DESC LIMIT 1",
                key.instance, timeframe, close_time,
            )  # fmt: skip
            if row is not None:
                close, *values = row.values()
                # The columns are selected in the order of CHAINS.
                composites[timeframe] = (parse(close), dict(zip(CHAINS, values, strict=True)))
        return composites

    def _history(self, instance: str, timeframe: str, as_of: datetime, limit: int) -> History:
        rows = self.tuples(
            "SELECT close_time, consensus, verdict FROM chains WHERE instance = ? "
            "AND timeframe = ? AND close_time < ? ORDER BY close_time DESC LIMIT ?",
            instance, timeframe, as_of, limit,
        )  # fmt: skip
        # Read backwards for the index and the limit; the brain wants them oldest first.
        return rows[::-1]

    def _recent_trades(self, instance: str, as_of: datetime) -> Sequence[Mapping[str, Any]]:
        rows = self.tuples(
            f"SELECT {', '.join(RECALLED)} FROM signals WHERE {CLOSED_OPENING} "  # noqa: S608
            "AND closed_at < ? AND instance = ? ORDER BY closed_at DESC, seq DESC LIMIT ?",
            as_of, instance, RECENT_TRADES,
        )  # fmt: skip
        return [dict(zip(RECALLED, row, strict=True)) for row in rows]

    def _keep_tick(self, tick: StoredTick) -> None:
        key, saved = tick.key, tick.result
        row = {
            "timestamp": tick.close_time,
            "timeframe": key.timeframe,
            **tick.scores,
            "ath": tick.ath,
            "composite": saved.composite,
            "consensus": saved.consensus,
            "verdict": saved.verdict,
            "source_type": tick.source_type,
            "agent_deliberation": None if tick.deliberation is None else to_json(tick.deliberation),
            "torra_key": key.text,
        }
        # First, because the chain names it by its id.
        sentiment_id = self.add("sentiment", row)
        chain = {
            "torra_key": key.text,
            **key._asdict(),
            "close_time": tick.close_time,
            "l1": to_json(tick.l1),
            **{name: getattr(saved, name) for name in OF_CHAINS},
            "sentiment_id": sentiment_id,
        }
        self.add("chains", chain)


# Refused by mypy while Database lacks a method: `open` calls whichever class it is asked of.
_WHOLE: type[TickStore] = Database


def open_home(home: Path, *, anew: bool = False) -> Database:
    """Open the database of a home, and make or migrate it if need be; raises ConfigError.

    A lost database is not replaced by an empty one, unless `anew` says so.
    """
    if not anew and lost(home / DATABASE):
        raise ConfigError(f"{home / DATABASE} {LOST}: torra run says what to type")
    try:
        owner_only.make_folder(home)
    except OSError as error:
        raise ConfigError(f"cannot write to {home}: {error.strerror}; set TORRA_HOME") from error
    return Database.open(home / DATABASE, now=System().real_now)


def open_reader(path: Path) -> Database:
    """Open an existing database for reading only: SQLite itself refuses every write.

    Nothing is made or migrated. A write raises StoreBroken, and so does a file that is not there.
    """
    return Database(path, now=System().real_now, read_only=True)


save_sentiment = Database.save_sentiment
"""The brain under its old name: `save_sentiment(database, scores, ...)`."""
