"""The desk's database and the brain that lives in it: `save_sentiment` and what it remembers.

One file holds everything a desk knows. This module is the face of it: `Database` joins the stores
of the family torra/*_store (ticks, bars, signals, journal, ledger), which share the connections of
torra.store_connection and the schema of torra.migrations; nobody else imports those. The brain's
own part is here: `save_sentiment` turns four scores into composites, consensus and verdict, for
the final chain and its three companions (L1 alone, the lower and the higher of the gated and
ungated blend), and `memory_context` says what was known of a stream at a moment. The arithmetic is
torra.sentiment_rules'; here it meets what is stored.

Nothing is read that closed after the tick's own close. A score that is not a number in [-1, +1]
raises ValueError before anything is written; a database that cannot be read or written raises
StoreUnavailable and keeps nothing of the transaction.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from agents.contracts import VECTORS
from torra import migrations, sentiment_rules
from torra.audit_store import AuditStore
from torra.bar_store import BarStore
from torra.clock import duration, iso, parse
from torra.config import Profile, SymbolSpec
from torra.errors import StoreUnavailable
from torra.event_store import EventStore
from torra.execution_store import ExecutionStore
from torra.history_store import HistoryStore
from torra.journal_store import JournalStore
from torra.ledger_store import LedgerStore
from torra.news_store import NewsStore
from torra.risk_engine import Position
from torra.sentiment_rules import OpenPosition
from torra.sentiment_store import SentimentStore
from torra.signal_store import SignalStore, as_position
from torra.store_connection import BUSY_SECONDS, TickKey, explain, inspect, stamp, to_json
from torra.tick_store import TickStore

__all__ = ["Database", "Saved", "TickKey", "save_sentiment"]

MARKOV_HISTORY: Final = 500
"""Newest ticks of a stream from which Markov transitions are counted: five days of M15."""

RECENT_TRADES: Final = 100
"""Newest closed trades in which a losing streak is looked for."""

CHAINS: Final = ("l1", "low", "high", "final")
"""The four chains that are kept: L1 alone, the two bounds of what the gate can do, the one that
counts.
"""


@dataclass(frozen=True, slots=True)
class Saved:
    """What the brain made of a tick.

    `composites` tells, by timeframe, what the consensus saw: composite, close_time, weight, fresh.
    """

    composite: float
    consensus: float
    verdict: str
    l1_composite: float
    l1_consensus: float
    l1_verdict: str
    low_composite: float
    low_consensus: float
    high_composite: float
    high_consensus: float
    composites: Mapping[str, Mapping[str, Any]]


class Database(
    TickStore,
    BarStore,
    SignalStore,
    ExecutionStore,
    JournalStore,
    LedgerStore,
    NewsStore,
    EventStore,
    AuditStore,
    SentimentStore,
    HistoryStore,
):
    """One desk's database. Any thread may use it; each has its own connection."""

    @classmethod
    def open(
        cls, path: Path, *, now: Callable[[], datetime], busy_seconds: float = BUSY_SECONDS
    ) -> Database:
        """Open, and make or migrate if need be, the database at `path`.

        `now` is real time. Raises ConfigError when the file cannot become a desk's database, and
        StoreUnavailable when it is locked or its disk fails.
        """
        path = Path(path)
        database = cls(path, now=now, busy_seconds=busy_seconds)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            inspect(path, busy_seconds)
            migrations.migrate(database.connection(), path, database.transaction, now)
        except (sqlite3.DatabaseError, OSError) as error:
            database.close()
            raise StoreUnavailable(explain(path, error)) from error
        except BaseException:
            database.close()
            raise
        return database

    def save_sentiment(
        self,
        scores: Mapping[str, Any],
        *,
        key: TickKey,
        close_time: datetime,
        ath: float,
        l1: Mapping[str, Any],
        ungated: Mapping[str, Any],
        source_type: str,
        profile: Profile,
        deliberation: Mapping[str, Any] | None,
        timeframes: Sequence[str],
    ) -> Saved:
        """Weigh the blended scores of a tick, store them with their chains, and return the verdict.

        `scores`, `l1` and `ungated` map each vector to a number or to {"score": number, ...}, as
        score_chart gives them; all numbers in [-1, +1]. `timeframes` are the instance's: the latest
        composite of each, up to `close_time`, takes part in the consensus, this tick's own for its
        own. Joins the open transaction. Raises ValueError for a broken score.
        """
        gated, plain, free = _numbers(scores), _numbers(l1), _numbers(ungated)
        height = _number("ath", ath)
        low, high = sentiment_rules.low_high(gated, free)
        weights = profile.sentiment_weights
        own = {
            name: sentiment_rules.composite(vectors, height, weights)
            for name, vectors in zip(CHAINS, (plain, low, high, gated), strict=True)
        }
        with self.transaction():
            latest = self._latest_composites(key, close_time, timeframes)
            latest[key.timeframe] = (close_time, own)
            saved = _weigh(own, latest, profile, close_time)
            row = {
                "timestamp": stamp(close_time),
                "timeframe": key.timeframe,
                **gated,
                "ath": height,
                "composite": saved.composite,
                "consensus": saved.consensus,
                "verdict": saved.verdict,
                "source_type": str(source_type),
                "agent_deliberation": None if deliberation is None else to_json(deliberation),
                "torra_key": key.text,
            }
            sentiment_id = self._add("sentiment", row)
            self._add("chains", _twin(key, close_time, plain, saved, sentiment_id))
        return saved

    def foresee(
        self,
        key: TickKey,
        close_time: datetime,
        *,
        l1: Mapping[str, Any],
        ath: float,
        profile: Profile,
        timeframes: Sequence[str],
    ) -> tuple[float, float]:
        """Return the consensus of the L1 and of the final chain if a tick kept its L1 scores.

        It is what `save_sentiment` would find with nobody asked; nothing is stored.
        """
        own = sentiment_rules.composite(
            _numbers(l1), _number("ath", ath), profile.sentiment_weights
        )
        latest = self._latest_composites(key, close_time, timeframes)
        latest[key.timeframe] = (close_time, dict.fromkeys(CHAINS, own))
        saved = _weigh(latest[key.timeframe][1], latest, profile, close_time)
        return saved.l1_consensus, saved.consensus

    def memory_context(
        self, instance: str, timeframe: str, *, as_of: datetime, profile: Profile, symbol: str
    ) -> dict[str, Any]:
        """Return what the stream remembers at `as_of`, before this tick is stored.

        The keys are document 001's and those of sentiment_rules.memory_view. Positions of other
        instances count when they were decided before `as_of`: ticks that close together do not know
        of each other.
        """
        rows = self._history(instance, timeframe, as_of)
        ours, elsewhere = self._positions_at(instance, timeframe, as_of)
        trades = self.closed_trades(instance, RECENT_TRADES, as_of=as_of)
        price = self._last_close(instance, timeframe, as_of) if ours else None
        spec = profile.symbol(symbol)
        return sentiment_rules.memory_view(
            as_of=as_of,
            timeframe=timeframe,
            history=[(parse(row["close_time"]), row["consensus"]) for row in rows],
            settings=profile.markov,
            lookback=profile.agents.history_lookback,
            verdicts=[row["verdict"] for row in rows],
            open_positions=[
                OpenPosition(item.side, _profit(item, price, spec), item.opened_at) for item in ours
            ],
            profits=[row["profit"] for row in trades],
            trades=trades,
            open_elsewhere=elsewhere,
        )

    def rewind(self, instance: str, as_of: datetime, timeframe: str | None = None) -> None:
        """Forget what happened after `as_of`, and the ticks of the instance that closed at it.

        For a throw-away copy only. With a `timeframe`, ticks of longer ones that closed at `as_of`
        are kept, because they ran before it. Latches stay as they are.
        """
        with self.transaction():
            self._forget_ticks(instance, as_of, timeframe)
            self._forget_signals(instance, as_of, timeframe)
            self._forget_bars(as_of)

    # --- what the brain reads -------------------------------------------------------------------

    def _latest_composites(
        self, key: TickKey, close_time: datetime, timeframes: Sequence[str]
    ) -> dict[str, tuple[datetime, dict[str, float]]]:
        found: dict[str, tuple[datetime, dict[str, float]]] = {}
        for timeframe in timeframes:
            row = self._row(
                "SELECT close_time, l1_composite, low_composite, high_composite, composite "
                "FROM chains WHERE instance = ? AND timeframe = ? AND close_time <= ? "
                "ORDER BY close_time DESC LIMIT 1",
                key.instance, timeframe, stamp(close_time),
            )  # fmt: skip
            if row is not None:
                close, *values = row.values()
                found[timeframe] = (parse(close), dict(zip(CHAINS, values, strict=True)))
        return found

    def _history(self, instance: str, timeframe: str, as_of: datetime) -> list[dict[str, Any]]:
        rows = self._rows(
            "SELECT close_time, consensus, verdict FROM chains WHERE instance = ? "
            "AND timeframe = ? AND close_time < ? ORDER BY close_time DESC LIMIT ?",
            instance, timeframe, stamp(as_of), MARKOV_HISTORY,
        )  # fmt: skip
        return rows[::-1]

    def _positions_at(
        self, instance: str, timeframe: str, as_of: datetime
    ) -> tuple[list[Position], int]:
        now, bar_time = stamp(as_of), stamp(as_of - duration(timeframe))
        ours: list[Position] = []
        others: set[str] = set()
        for row in self._held_at(as_of):
            if row["instance"] != instance:
                others |= {row["instance"]} if row["decided_at"] < now else set()
            elif (row["timeframe"], row["bar_time"]) != (timeframe, bar_time):
                ours.append(as_position(row, set()))
        return ours, len(others)

    def _last_close(self, instance: str, timeframe: str, as_of: datetime) -> float | None:
        row = self._row(
            "SELECT close FROM bars WHERE instance = ? AND timeframe = ? AND bar_time <= ? "
            "ORDER BY bar_time DESC, revision DESC LIMIT 1",
            instance, timeframe, stamp(as_of - duration(timeframe)),
        )  # fmt: skip
        return float(row["close"]) if row else None

    # --- going back -----------------------------------------------------------------------------

    def _forget_ticks(self, instance: str, as_of: datetime, timeframe: str | None) -> None:
        rows = self._rows(
            "SELECT instance, timeframe, bar_time, close_time FROM ticks WHERE close_time >= ?",
            stamp(as_of),
        )
        for row in rows:
            if _stays(row, row["close_time"], instance, as_of, timeframe):
                continue
            key = TickKey(row["instance"], row["timeframe"], parse(row["bar_time"]))
            for table in ("journal", "calls", "chains", "sentiment"):
                self._change(f"DELETE FROM {table} WHERE torra_key = ?", key.text)  # noqa: S608
            self._change(
                "DELETE FROM ticks WHERE instance = ? AND timeframe = ? AND bar_time = ?",
                key.instance, key.timeframe, row["bar_time"],
            )  # fmt: skip

    def _forget_signals(self, instance: str, as_of: datetime, timeframe: str | None) -> None:
        now = stamp(as_of)
        for row in self._rows("SELECT * FROM signals WHERE decided_at >= ?", now):
            if not _stays(row, row["decided_at"], instance, as_of, timeframe):
                self._change("DELETE FROM signal_events WHERE sid = ?", row["sid"])
                self._change("DELETE FROM signals WHERE sid = ?", row["sid"])
        self._change(
            "UPDATE signals SET state = 'FILLED', closed_at = NULL, close_price = NULL, "
            "profit = NULL, r_multiple = NULL, close_reason = NULL, "
            "outcome = NULL, evolution = NULL, thesis = NULL "
            "WHERE kind = 'open' AND state = 'CLOSED' AND closed_at >= ?",
            now,
        )
        self._change(
            "UPDATE signals SET state = 'PUBLISHED', opened_at = NULL, price = NULL, "
            "filled_lots = NULL, deal = NULL "
            "WHERE state IN ('FILLED', 'PARTIAL') AND opened_at >= ?",
            now,
        )
        self._change("DELETE FROM paper_cursor WHERE bar_time >= ?", now)

    def _forget_bars(self, as_of: datetime) -> None:
        streams = self._rows("SELECT DISTINCT instance, timeframe FROM record_highs")
        for row in streams:
            last = stamp(as_of - duration(row["timeframe"]))
            for table in ("bars", "record_highs"):
                self._change(
                    f"DELETE FROM {table} WHERE instance = ? AND timeframe = ? "  # noqa: S608
                    "AND bar_time > ?",
                    row["instance"], row["timeframe"], last,
                )  # fmt: skip


save_sentiment = Database.save_sentiment
"""The brain under its old name: `save_sentiment(database, scores, ...)`."""


def _weigh(
    own: Mapping[str, float],
    latest: Mapping[str, tuple[datetime, Mapping[str, float]]],
    profile: Profile,
    close_time: datetime,
) -> Saved:
    together = {
        chain: sentiment_rules.consensus(
            {timeframe: (close, values[chain]) for timeframe, (close, values) in latest.items()},
            profile.timeframe_weights,
            close_time,
        )
        for chain in CHAINS
    }
    return Saved(
        composite=own["final"],
        consensus=together["final"],
        verdict=sentiment_rules.verdict(together["final"], profile.thresholds),
        l1_composite=own["l1"],
        l1_consensus=together["l1"],
        l1_verdict=sentiment_rules.verdict(together["l1"], profile.thresholds),
        low_composite=own["low"],
        low_consensus=together["low"],
        high_composite=own["high"],
        high_consensus=together["high"],
        composites={
            timeframe: {
                "composite": values["final"],
                "close_time": iso(close),
                "weight": profile.timeframe_weights.get(timeframe),
                "fresh": sentiment_rules.is_fresh(close, timeframe, close_time),
            }
            for timeframe, (close, values) in latest.items()
        },
    )


def _twin(
    key: TickKey, close_time: datetime, l1: Mapping[str, float], saved: Saved, sentiment_id: int
) -> dict[str, Any]:
    return {
        "torra_key": key.text,
        "instance": key.instance,
        "timeframe": key.timeframe,
        "bar_time": stamp(key.bar_time),
        "close_time": stamp(close_time),
        "l1": to_json(l1),
        "l1_composite": saved.l1_composite,
        "low_composite": saved.low_composite,
        "high_composite": saved.high_composite,
        "composite": saved.composite,
        "l1_consensus": saved.l1_consensus,
        "low_consensus": saved.low_consensus,
        "high_consensus": saved.high_consensus,
        "consensus": saved.consensus,
        "l1_verdict": saved.l1_verdict,
        "verdict": saved.verdict,
        "sentiment_id": sentiment_id,
    }


def _numbers(scores: Mapping[str, Any]) -> dict[str, float]:
    found = {}
    for vector in VECTORS:
        if vector not in scores:
            raise ValueError(f"the score of {vector} is missing")
        told = scores[vector]
        found[vector] = _number(vector, told["score"] if isinstance(told, Mapping) else told)
    return found


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"the score of {name} is not a number: {value!r}")
    if not -1.0 <= value <= 1.0:
        raise ValueError(f"the score of {name} is outside [-1, +1]: {value}")
    return float(value)


def _profit(position: Position, price: float | None, spec: SymbolSpec) -> float:
    """Return what closing now would bring, in account currency; 0 for one not filled yet."""
    if price is None or position.state not in ("FILLED", "CLOSED"):
        return 0.0
    leave = price if position.side == "LONG" else price + spec.spread
    gain = leave - position.entry if position.side == "LONG" else position.entry - leave
    return gain / spec.tick_size * spec.tick_value * position.lots


def _stays(
    row: Mapping[str, Any], told: str, instance: str, as_of: datetime, timeframe: str | None
) -> bool:
    """Return whether something told at `as_of` or later was known to the tick that runs again."""
    if told > stamp(as_of):
        return False
    if row["instance"] != instance:
        return True
    return timeframe is not None and duration(row["timeframe"]) > duration(timeframe)
