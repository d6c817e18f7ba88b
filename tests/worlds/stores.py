"""What the tests of the database share: a clock set by hand, an open database, a saved tick."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from agents.contracts import VECTORS
from instance_database import ConsensusResult, Database, TickKey
from torra.clock import System, duration
from torra.config import Profile

NOON = datetime(2026, 2, 13, 12, tzinfo=UTC)
PROFILE = Profile()


class Hand:
    """A clock for `now` that stands until it is moved."""

    def __init__(self, moment: datetime = NOON) -> None:
        self.moment = moment

    def __call__(self) -> datetime:
        return self.moment

    def pass_by(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


@cache
def new_database() -> bytes:
    """A database that was just made: making one anew takes ten times as long as copying it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "torra.db"
        Database.open(path, now=System().real_now).close()
        return path.read_bytes()


COPIES: Final[set[Path]] = set()
"""Files that have just become a copy of it, and that nobody has opened."""


def open_database(folder: Path, now: Callable[[], datetime] | None = None, **how: Any) -> Database:
    """Open the database of a folder; where there is none, a new one.

    A test that ends without closing it leaves no open connection behind: these close when nobody
    holds the database any more.
    """
    path = folder / "torra.db"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(new_database())
        COPIES.add(path)
    database = Database.open(path, now=now or Hand(), **how)
    weakref.finalize(database, _close, database._open)
    return database


def _close(connections: Mapping[Any, Any]) -> None:
    for thread_connection in [*connections.values()]:
        thread_connection.db.close()


def flat(score: float) -> dict[str, Any]:
    """All four vectors at one score, in the shape of score_chart."""
    return {vector: {"score": score, "note": "told"} for vector in VECTORS}


def key_of(close: datetime, timeframe: str = "M15", instance: str = "BTCUSD") -> TickKey:
    return TickKey(instance, timeframe, close - duration(timeframe))


def save(
    database: Database,
    close: datetime,
    score: float = 0.1,
    *,
    timeframe: str = "M15",
    instance: str = "BTCUSD",
    l1: float | None = None,
    ungated: float | None = None,
    profile: Profile = PROFILE,
    **more: Any,
) -> ConsensusResult:
    values: dict[str, Any] = {
        "ath": score,
        "source_type": "AGENT_BUDGET",
        "deliberation": {"reports": []},
        "timeframes": ("M15", "H1"),
        **more,
    }
    return database.save_sentiment(
        flat(score),
        key=key_of(close, timeframe, instance),
        close_time=close,
        l1=flat(score if l1 is None else l1),
        ungated=flat(score if ungated is None else ungated),
        profile=profile,
        **values,
    )


def count(database: Database, table: str) -> int:
    return database.connection().table(table).count


def opening(sid: str = "T1", *, instance: str = "BTCUSD", **more: Any) -> dict[str, Any]:
    """The row of an opening as signal_bridge writes it."""
    row: Mapping[str, Any] = {
        "sid": sid,
        "instance": instance,
        "symbol": "BTCUSD",
        "timeframe": "M15",
        "bar_time": NOON - timedelta(minutes=15),
        "kind": "open",
        "side": "BUY",
        "lots": 0.5,
        "entry": 100.0,
        "stop": 90.0,
        "target": 120.0,
        "atr": 5.0,
        "decided_at": NOON,
        "expires": NOON + timedelta(minutes=3),
        "authority": "tick",
    }
    return {**row, **more}


def closing(sid: str, closes: str, **more: Any) -> dict[str, Any]:
    levels = {"entry": None, "stop": None, "target": None, "atr": None}
    return opening(sid, **{**levels, "kind": "close", "side": "SELL", "closes": closes, **more})


def forked(work: Callable[[int], bool], children: int) -> list[bool]:
    """Run `work(number)` in so many processes that start together; return what each one said."""
    gate, starter = os.pipe()
    pids = []
    for number in range(children):
        pid = os.fork()
        if pid == 0:
            code = 2
            try:
                os.close(starter)
                os.read(gate, 1)
                code = 0 if work(number) else 1
            finally:
                os._exit(code)
        pids.append(pid)
    os.close(gate)
    os.close(starter)
    codes = [os.WEXITSTATUS(os.waitpid(pid, 0)[1]) for pid in pids]
    assert set(codes) <= {0, 1}, f"a child failed: {codes}"
    return [code == 0 for code in codes]


def frame(closes: list[float], start: datetime = NOON) -> pd.DataFrame:
    """Bars 15 minutes apart that open and close at these prices, one up and one down from them."""
    index = pd.date_range(start, periods=len(closes), freq="15min", name="time")
    prices = np.array(closes, dtype=float)
    return pd.DataFrame(
        {"open": prices, "high": prices + 1, "low": prices - 1, "close": prices, "volume": 5.0},
        index=index,
    )
