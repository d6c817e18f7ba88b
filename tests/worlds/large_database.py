"""A large database for the pages: many instances with years of ticks, written within a minute.

    python -m tests.worlds.large_database FILE [ROWS] [INSTANCES]

`build` writes `rows` ticks over the M15 and H1 streams of `instances` instances in the order of
their closes, the newest with their bars, and a whole record and deliberation for the newest of each
stream, with calls for the newest of these. They are copies of ticks that a real desk of eight ran
on the sample; other scores and prices follow formulas, so that the same call makes the same rows.
Beside them stand trades, positions, bookings, a proposal, an alarm and a running debate.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from agents.contracts import VECTORS
from instance_database import Database, TickKey
from tests.worlds import desks
from torra.clock import Simulated, duration, iso, parse
from torra.config import DeskSettings, Instance, Profile
from torra.store import replay_queries
from torra.store import streams as stream_table

NOW: Final = datetime(2026, 2, 13, 12, tzinfo=UTC)
"""Every stream's newest tick closed at this moment."""

AFTER: Final = timedelta(seconds=40)
"""How long after it the desk's clock stands."""

TIMEFRAMES: Final = ("M15", "H1")
HOURLY: Final = 5
"""Ticks of an instance in an hour."""

TOLD: Final = 60
"""Newest ticks of a stream that have a record and a deliberation."""

CALLED: Final = 4
"""Newest ticks of a stream that have the texts of their calls."""

SKIPPED: Final = 50
"""One close in so many is skipped."""

PRICES: Final = {"BTCUSD": 60_000.0, "EURUSD": 1.12, "XAUUSD": 2_600.0}
STEPS: Final = 4
TRADES: Final = 200
"""Closed trades of an instance at least; of a desk of a million ticks 1,000."""

HELD: Final = 5
"""Every fifth instance holds a position."""

PROPOSED: Final = "P000000000001"
STREAM: Final = "tick-1"
"""The proposal that waits and the debate that runs."""

BOOKED: Final = 40
"""Calls of an instance that count in the present hour."""

BARRED: Final = 2_000
"""Newest ticks of a stream whose bars are stored."""

BATCH: Final = 20_000


@dataclass(frozen=True)
class Template:
    """One tick of a real desk: its record, its deliberation as text, its calls as rows."""

    record: dict[str, Any]
    deliberation: str
    calls: tuple[dict[str, Any], ...]


class Still(Simulated):
    """A clock whose real time is the desk's."""

    def real_now(self) -> datetime:
        return self.now()


@dataclass
class Rows:
    """Rows that wait for being written, by table; the first of a table names its columns."""

    database: Database
    waiting: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)

    def add(self, statement: str, *values: Any) -> None:
        rows = self.waiting.setdefault(statement, [])
        rows.append(values)
        if len(rows) >= BATCH:
            self.write()

    def write(self) -> None:
        for statement, rows in self.waiting.items():
            marks = ", ".join("?" * len(rows[0]))
            self.database.connection().conn.executemany(
                f"INSERT INTO {statement} VALUES ({marks})", rows
            )
        self.waiting.clear()


SENTIMENT: Final = (
    "sentiment (id, timestamp, timeframe, price_action, key_levels, momentum, structure, ath, "
    "composite, consensus, verdict, source_type, agent_deliberation, torra_key)"
)
CHAINS: Final = (
    "chains (torra_key, instance, timeframe, bar_time, close_time, l1, l1_composite, "
    "low_composite, high_composite, composite, l1_consensus, low_consensus, high_consensus, "
    "consensus, l1_verdict, verdict, sentiment_id)"
)
TICKS: Final = "ticks"
BARS: Final = "bars"
JOURNAL: Final = "journal"
CALLS: Final = (
    "calls (torra_key, role, round, attempt, stage, status, model, provider, instructions, user, "
    "reply, input_tokens, output_tokens, cost_usd, elapsed_ms, request_hash, detail, at)"
)
BLENDED: Final = ("ath", "composite", "consensus", "verdict", "source_type")
CALL_VALUES: Final = (
    "role_id", "round", "attempt", "stage", "status", "model", "provider", "instructions", "user",
    "reply", "input_tokens", "output_tokens", "cost_usd", "elapsed_ms", "request_hash", "detail",
)  # fmt: skip
"""Columns as `Database.tick` tells them, in the order of CALLS."""

SIGNALS: Final = (
    "signals (sid, instance, symbol, timeframe, bar_time, kind, side, lots, entry, stop, target, "
    "atr, decided_at, state, detail, opened_at, price, closed_at, close_price, profit, r_multiple, "
    "close_reason)"
)
LEDGER: Final = (
    "ledger (profile, torra_key, stage, role, round, attempt, provider, model, state, usd, "
    "input_tokens, output_tokens, at, until)"
)


def settings(instances: int) -> DeskSettings:
    """Return a desk of so many instances on M15 and H1."""
    symbols = list(PRICES)
    return DeskSettings(
        instances=tuple(
            Instance(
                name=f"{symbols[n % 3]}-{n + 1:02d}",
                symbol=symbols[n % 3],
                feed="store",
                timeframes=TIMEFRAMES,
            )
            for n in range(instances)
        )
    )


@cache
def profile() -> Profile:
    """Return the profile of every instance: the full desk of eight."""
    return Profile.model_validate({"agents": {"mode": "full"}})


def looking(database: Database, desk: DeskSettings) -> Any:
    """Return a desk that only looks, its clock a little after the newest tick."""
    setups = {one.id: SimpleNamespace(instance=one, profile=profile()) for one in desk.instances}
    return SimpleNamespace(clock=Still(NOW + AFTER), setups=setups, active=True, database=database)


def open_database(path: Path) -> Database:
    return Database.open(path, now=lambda: NOW + AFTER)


def build(
    path: Path, rows: int = 1_000_000, instances: int = 50, *, booked: int = BOOKED
) -> DeskSettings:
    """Write the file and return its desk; every instance has two hours of ticks at least.

    `booked` are the calls of an instance that count in the present hour.
    """
    desk = settings(instances)
    hours = max(2, math.ceil(rows / instances / HOURLY * SKIPPED / (SKIPPED - 1)))
    open_database(path).close()
    database = open_database(path)  # this connection never had a log that it could miss
    try:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -400000"):
            database.connection().execute(f"PRAGMA {pragma}").fetchall()
        with database.transaction():
            written = Rows(database)
            _instructions(database)
            numbers = count(1)
            for slot, close in _closes(hours):
                for place, one in enumerate(desk.instances):
                    if close.minute == 0:
                        _tick(written, one, place, "H1", close, slot, numbers)
                    _tick(written, one, place, "M15", close, slot, numbers)
            for place, one in enumerate(desk.instances):
                _books(written, one, place, booked, max(TRADES, rows // 1_000))
            written.write()
            _desk(database, desk)
    finally:
        database.close()
    return desk


def _closes(hours: int) -> Iterator[tuple[int, datetime]]:
    """Yield every close of an M15 bar, oldest first, and how many come after it."""
    for back in range(hours * 4 - 1, -1, -1):
        yield back, NOW - back * timedelta(minutes=15)


def _tick(
    rows: Rows, one: Instance, place: int, timeframe: str, close: datetime, slot: int, numbers: Any
) -> None:
    step = duration(timeframe)
    bar_time, close_time = iso(close - step), iso(close)
    back = slot // 4 if timeframe == "H1" else slot
    price = _bar(rows, one, place, timeframe, bar_time, back, close_time)
    if back and (back + 7 * place) % SKIPPED == 0:
        told = ("skipped", "missed", "the desk came too late for this bar")
        rows.add(TICKS, one.id, timeframe, bar_time, close_time, *told, close_time)
        return
    rows.add(TICKS, one.id, timeframe, bar_time, close_time, "done", "", "", close_time)
    key, number = f"{one.id}|{timeframe}|{bar_time}", next(numbers)
    if back < TOLD:
        _told(rows, key, one, timeframe, bar_time, close_time, back, number, price)
    else:
        _plain(rows, key, one, timeframe, bar_time, close_time, back + place, number)


def _bar(
    rows: Rows, one: Instance, place: int, timeframe: str, bar_time: str, back: int, at: str
) -> float:
    base = PRICES[one.symbol]
    now, before = (base * (1 + 0.05 * math.sin((back + n) / 31 + place)) for n in (0, 1))
    if back >= BARRED:
        return now
    high, low = max(now, before) * 1.001, min(now, before) * 0.999
    rows.add(BARS, one.id, timeframe, bar_time, 0, before, high, low, now, 1000.0 + back % 97, at)
    return now


def _plain(
    rows: Rows, key: str, one: Instance, timeframe: str, bar_time: str, close: str, n: int, row: int
) -> None:
    """Write a tick without a record: its scores alone."""
    l1 = round(0.7 * math.sin(n / 17) * math.cos(n / 5.3), 8)
    final = round(l1 + 0.05 * math.sin(n / 3), 8)
    verdicts = [_judged(value) for value in (l1, final)]
    rows.add(SENTIMENT, row, close, timeframe, final, final, final, final, final, final, final,
             verdicts[1], "AGENT_FULL", None, key)  # fmt: skip
    text = f'{{"price_action":{l1},"key_levels":{l1},"momentum":{l1},"structure":{l1}}}'
    rows.add(CHAINS, key, one.id, timeframe, bar_time, close, text, l1, final, final, final, l1,
             final, final, final, *verdicts, row)  # fmt: skip


def _judged(consensus: float) -> str:
    return "BUY" if consensus >= 0.5 else "SELL" if consensus <= -0.5 else "HOLD"


def _told(
    rows: Rows, key: str, one: Instance, timeframe: str, bar_time: str, close: str,
    back: int, row: int, price: float,
) -> None:  # fmt: skip
    """Write a tick with its record and deliberation, the newest with their calls."""
    known = templates()[timeframe]
    found = known[back % len(known)]
    identity = {"instance": one.id, "symbol": one.symbol, "timeframe": timeframe}
    # The clock of a running desk is past the close; one that stands at it is a warm-up's.
    now = iso(parse(close) + timedelta(seconds=2))
    times = {"bar_time": bar_time, "as_of": close, "now": now, "close": price}
    told = {**found.record, **identity, **times, "signal": None, "signals": []}
    scores = [told["scores"][vector]["score"] for vector in VECTORS]
    rows.add(SENTIMENT, row, close, timeframe, *scores, *(told[name] for name in BLENDED),
             found.deliberation, key)  # fmt: skip
    rows.add(CHAINS, key, one.id, timeframe, bar_time, close, json.dumps(told["l1"]),
             told["l1_composite"], told["composite"], told["composite"], told["composite"],
             told["l1_consensus"], told["low_consensus"], told["high_consensus"],
             told["consensus"], told["l1_verdict"], told["verdict"], row)  # fmt: skip
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    rows.add(JOURNAL, key, text, told["action"], told["reason"], told["elapsed_ms"],
             told["provider"], told["cost_usd"], close)  # fmt: skip
    if back < CALLED:
        for call in found.calls:
            rows.add(CALLS, key, *(call[name] for name in CALL_VALUES), close)


@cache
def templates() -> dict[str, list[Template]]:
    """Return ticks of a real desk of eight, by timeframe, newest first."""
    with tempfile.TemporaryDirectory() as folder:
        desk = desks.open_desk(Path(folder), profile=profile())
        desks.open_for_work(desk)
        for _ in range(STEPS):
            desks.step(desk)
        found = {name: _ticks_of(desk.database, name) for name in TIMEFRAMES}
        desk.close()
    return found


def _ticks_of(database: Database, timeframe: str) -> list[Template]:
    found = []
    for row in database.ticks("BTCUSD", timeframe, 20):
        moment = datetime.fromisoformat(row["bar_time"])
        key = TickKey("BTCUSD", timeframe, moment)
        whole = database.tick(key)
        assert whole is not None
        record, _ = replay_queries.journal_row(database, row["torra_key"])
        spoken = json.dumps(whole["deliberation"], ensure_ascii=False, separators=(",", ":"))
        found.append(Template(record, spoken, tuple(whole["calls"])))
    return found


def _instructions(database: Database) -> None:
    known = {
        c["instructions"]: c["system"] for t in templates().values() for x in t for c in x.calls
    }
    database.connection().conn.executemany("INSERT INTO instructions VALUES (?, ?)", known.items())


def _books(rows: Rows, one: Instance, place: int, booked: int, trades: int) -> None:
    """Write the trades of an instance, its position, and what its calls cost."""
    base = PRICES[one.symbol]
    levels = (base, base * 0.99, base * 1.02, base * 0.005)
    for n in range(trades):
        opened, closed = (iso(NOW - timedelta(hours=12 * n + h)) for h in (10, 4))
        sid, gain = f"T{place:03d}{n:06d}", 50.0 - n % 90
        rows.add(SIGNALS, sid, one.id, one.symbol, "M15", opened, "open", "BUY", 0.1, *levels,
                 opened, "CLOSED", "TARGET", opened, base, closed, base + gain, gain, gain / 50,
                 "TARGET")  # fmt: skip
    if place % HELD == 0:
        opened = iso(NOW - timedelta(hours=2))
        end = (None,) * 5
        rows.add(SIGNALS, f"H{place:03d}", one.id, one.symbol, "M15", opened, "open", "BUY", 0.1,
                 *levels, opened, "FILLED", "", opened, base, *end)  # fmt: skip
    for n in range(booked * 10):
        at = iso(NOW - timedelta(seconds=3600 * n // booked))
        rows.add(LEDGER, one.profile, f"{one.id}|M15|{at}", "analysts", "technical", 1, 1, "rules",
                 "rules", "settled", 0.0001, 1200, 200, at, at)  # fmt: skip


def _desk(database: Database, desk: DeskSettings) -> None:
    text, digest = profile().model_dump_json(), profile().digest()
    for one in desk.instances:
        database.apply_profile(one.id, text, digest)
    database.set_trading_state("ACTIVE", "")
    first = desk.instances[0]
    at = {"instance": first.id, "symbol": first.symbol, "timeframe": "M15"}
    key = f"{first.id}|M15|{iso(NOW)}"
    database.propose(
        {
            **at, "sid": PROPOSED, "torra_key": key, "bar_time": iso(NOW), "verdict": "BUY",
            "action": "OPEN_BUY", "drafts": [], "price": 1.0, "atr": 0.1, "multiplier": 1.0,
            "created_at": iso(NOW), "expires": iso(NOW + timedelta(minutes=15)),
        }
    )  # fmt: skip
    database.raise_alarm("quiet:main", "QUIET", "no heartbeat")
    stream_table.open_stream(database, STREAM, "tick", key, "owner")
    database.audit(actor="a test", action="halt")


def main(path: str, rows: str = "1000000", instances: str = "50") -> None:
    build(Path(path), int(rows), int(instances))


if __name__ == "__main__":
    main(*sys.argv[1:])
