"""Lives of a desk that end by SIGKILL, and what it must come to however they ended.

A life is a forked process that ticks through the shipped sample from where its database stands. It
dies at a named point (torra.failpoints), or is ended by its parent. The desk may pay: then it asks
a vendor whose books are a file of their own, written before the vendor answers, so that they know
of every call however the desk died. `whole` says what must hold after any death, `tables` what is
left in the end of a life that no timing shows in.
"""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import technical_calculator
from agent_config import AgentSettings
from agents.contracts import Completion, Request
from agents.registry import Agent
from tests.doubles.scripted import completion, honest
from tests.worlds import desks
from torra.clock import Simulated, iso
from torra.config import Profile
from torra.desk.schedule import Desk
from torra.failpoints import VARIABLE
from torra.providers.prices import PriceList
from torra.tick.ladder import Rung, SpendingAccount

MODEL: Final = "claude-haiku-5-5"
BOOKS: Final = "vendor.jsonl"
PRICES: Final = PriceList(now=lambda: desks.START)
COST: Final = 0.002
"""USD that the vendor takes for a call: a little less than the worst case of any made here."""


@dataclass
class Vendor:
    """Answers at once and honestly; every call is in its books before that."""

    books: Path
    now: Callable[[], datetime]
    name: str = "anthropic"

    def submit(self, request: Request) -> Future[Completion]:
        told = [iso(self.now()), request.role.id, request.round, request.attempt, COST]
        with self.books.open("ab", buffering=0) as file:
            file.write(json.dumps(told).encode() + b"\n")
        future: Future[Completion] = Future()
        known = completion(honest(request))
        future.set_result(replace(known, provider="anthropic", model=MODEL, cost_usd=COST))
        return future

    def close(self) -> None:
        """Holds nothing open."""


class Bold(SpendingAccount):
    """Always asks the whole desk: only the ceiling itself then stands between it and the vendor."""

    def rung(
        self,
        settings: AgentSettings,
        agents: Mapping[str, Agent] | None = None,
        *,
        beside: float = 0.0,
    ) -> Rung:
        return Rung(settings, "bold", True)


def warm() -> None:
    """Load once, before any life is forked, what each would load anew."""
    PRICES.warm()
    technical_calculator.score_frame(desks.sample().bars("BTCUSD", "M15", desks.START, 300))


def spent(folder: Path) -> list[list[Any]]:
    """Return the vendor's books: moment, role, round, attempt and USD of every call."""
    path = folder / BOOKS
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


PATIENT: Final = 900.0
"""Real seconds that a tick may take: a machine that stands still must not tell two lives apart."""


def profile(ceiling: float | None, mode: str = "budget") -> Profile:
    """Return a profile that asks the vendor and may spend so many USD in any hour; None: rules."""
    agents: dict[str, Any] = {"mode": mode, "timeout_seconds": PATIENT}
    if ceiling is not None:
        agents |= {"provider": "anthropic", "max_api_cost_per_hour": ceiling}
    return Profile.model_validate({"agents": agents})


def open_desk(
    folder: Path, start: datetime, ceiling: float | None = None, mode: str = "budget"
) -> Desk:
    """Open a desk where its database stands; without a ceiling nobody is paid."""
    told = profile(ceiling, mode)
    if ceiling is None:
        return desks.open_desk(
            folder, profile=told, make_clock=lambda stood: Simulated(stood or start)
        )
    clocks: list[Simulated] = []

    def make_clock(stood: datetime | None) -> Simulated:
        clocks.append(Simulated(stood or start))
        return clocks[-1]

    def now() -> datetime:
        return clocks[-1].now()

    vendor = Vendor(folder / BOOKS, now)
    desk = desks.open_desk(folder, profile=told, provider=vendor, make_clock=make_clock)
    pays = Bold(desk.database, PRICES, "default", lambda _: False, now)
    desk.roster.setups = {name: replace(one, account=pays) for name, one in desk.setups.items()}
    return desk


def live(
    folder: Path,
    start: datetime,
    upto: datetime,
    *,
    ceiling: float | None = None,
    mode: str = "budget",
    point: str = "",
    spare: int = 0,
    closes: int | None = None,
) -> None:
    """Tick to `upto`, or for so many closes, and close the desk.

    After `spare` closes the process dies at `point`, if it comes there.
    """
    desk = open_desk(folder, start, ceiling, mode)
    desks.take_lease(desk, seconds=0.001)
    left = closes
    if point and not spare:
        os.environ[VARIABLE] = point
    desk.wake("BTCUSD")
    while desk.clock.now() < upto and left != 0:
        if point and not spare:
            os.environ[VARIABLE] = point
        spare, left = spare - 1, None if left is None else left - 1
        desks.step(desk)
    desk.close()


def run(work: Callable[[], None]) -> bool:
    """Do something in a process of its own; return whether that was killed. Others end well."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the parent hears of it
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "a life failed by itself"
    return False


# --- what must hold -------------------------------------------------------------------------------


def rows(database: Any, sql: str) -> list[dict[str, Any]]:
    return list(database.connection().query(sql))


TWINS: Final = ("sentiment", "chains", "journal")
"""What every done tick has one row of, and no other tick any."""


def whole(folder: Path) -> None:
    """Look that no tick is halved and nothing is doubled: right after any death.

    Ticks of other scorers on the home have no row in `ticks`; here they are left out.
    """
    database = desks.open_database(folder)
    done = rows(
        database, "select instance||'|'||timeframe||'|'||bar_time k from ticks where state='done'"
    )
    for table in TWINS:
        sql = f"select torra_key from {table} where torra_key not like 'host:%'"
        keys = [row["torra_key"] for row in rows(database, sql)]
        assert sorted(keys) == sorted(row["k"] for row in done), f"{table} and the ticks differ"
    stray = rows(
        database,
        "select sid from signals where kind='open' and instance||'|'||timeframe||'|'||bar_time "
        "not in (select torra_key from journal)",
    )
    assert not stray, "a signal without its tick"
    assert rows(database, "pragma integrity_check")[0]["integrity_check"] == "ok"
    assert not rows(database, "pragma foreign_key_check")
    database.close()


PASSING: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("at", "epoch", "elapsed_ms", "applied_at"),
    "calls": ("user", "request_hash"),
}
"""Columns that differ between two lives that did the same: moments of real time, time taken, whose
lease it was; prompts have a nonce. "" stands for every table.
"""

TOLD: Final = ("record", "agent_deliberation")
"""Columns of JSON, compared field by field."""

PASSING_FIELDS: Final = (
    *("elapsed_ms", "ms", "request_hash", "user"),
    *("before", "together", "apart", "signal_event"),
)
"""What differs in them. `before` is how the desk stood when the tick began that was stored: a tick
that died after the paper bridge had moved begins again behind that. `together` and `apart` say with
what it ran: a death between two commits of a close parts them. `signal_event` numbers the step that
had come last when it decided, and the numbers are those of a life.
"""

Tables = Mapping[str, list[tuple[Any, ...]]]

UNCOMPARED: Final = ("lease", "ledger", "rungs")
"""Whose turn it is; and what dying cost, which a life without deaths has not spent."""


def tables(folder: Path) -> Tables:
    """Return every table as its rows, sorted, without what time alone decides."""
    database = desks.open_database(folder)
    names = rows(database, "select name from sqlite_master where type='table'")
    found = {
        row["name"]: _rows_of(database, row["name"])
        for row in names
        if row["name"] not in UNCOMPARED
    }
    database.close()
    return found


def parted(folder: Path) -> int:
    """Return how many ticks a death parted from their close: an elder was stored before it."""
    database = desks.open_database(folder)
    sql = "select torra_key from journal where json_extract(record, '$.apart[0]') is not null"
    found = len(rows(database, sql))
    database.close()
    return found


def _rows_of(database: Any, table: str) -> list[tuple[Any, ...]]:
    passing = {*PASSING[""], *PASSING.get(table, ())}
    kept = [
        tuple(
            json.dumps(_lasting(json.loads(value))) if name in TOLD and value else value
            for name, value in row.items()
            if name not in passing
        )
        for row in rows(database, f"select * from {table}")
        if (table, row.get("name")) != ("sqlite_sequence", "ledger")
    ]
    return sorted(kept, key=repr)


def _lasting(value: Any) -> Any:
    """Return JSON without the fields that differ."""
    if isinstance(value, dict):
        kept = sorted(value.items())
        return {key: _lasting(item) for key, item in kept if key not in PASSING_FIELDS}
    return [_lasting(item) for item in value] if isinstance(value, list) else value


def differences(one: Path, other: Path | Tables) -> list[str]:
    """Return the tables in which two lives differ, each with the first rows that do."""
    ours = tables(one)
    theirs = tables(other) if isinstance(other, Path) else other
    return [
        f"{name}: {_beside(ours.get(name, []), theirs.get(name, []))}"
        for name in ours.keys() | theirs.keys()
        if ours.get(name) != theirs.get(name)
    ]


def _beside(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> str:
    """Show the first rows of two tables that the other has not, from where they part."""
    first, second = (
        next((repr(row) for row in rows if row not in other), "")
        for rows, other in ((ours, theirs), (theirs, ours))
    )
    parted = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
    begin = max(0, parted - 120)
    return f"{first[:90]} ... {first[begin : begin + 300]} against {second[begin : begin + 300]}"
