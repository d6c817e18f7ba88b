"""Lives of a desk that end by SIGKILL, and what it must come to however they ended.

A life ticks through the shipped sample from where its database stands. It dies at a named point
(torra.failpoints), or is ended by its parent. The desk may pay: then it asks a vendor whose books
are a file of their own, written before the vendor answers, so that they know of every call however
the desk died. `DeskWorld.whole` says what must hold after any death, `tables` what is left in the
end of a life that no timing shows in. DESKS are the desks that die.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

import pandas as pd

import technical_calculator
from agent_config import AgentSettings
from agents.contracts import Completion, Request
from agents.registry import Agent
from tests.doubles.scripted import completion, honest
from tests.faults.books import torn
from tests.worlds import desks, remembering
from torra.clock import Simulated, duration, iso, parse
from torra.config import Profile
from torra.desk.schedule import Desk
from torra.failpoints import IN_A_TICK, VARIABLE
from torra.providers.prices import PriceList
from torra.store.trade import signals as signal_table
from torra.tick.degradation import DegradationLevel
from torra.tick.spending import HOUR, SpendingAccount

MODEL: Final = "claude-haiku-5-5"
BOOKS: Final = "vendor.jsonl"
PRICES: Final = PriceList(now=lambda: desks.START)
COST: Final = 0.002
"""USD that the vendor takes for a call: a little less than the worst case of any made here."""

PATIENT: Final = 900.0
"""Real seconds that a tick may take: a machine that stands still must not tell two lives apart."""

TRADING: Final = datetime.fromisoformat("2021-11-08T02:00:00+00:00")
"""At this close the sample opens a position; it is filled at the next one."""

AMPLE: Final = 100.0
"""USD an hour that no desk here comes to."""

SHORT: Final = 0.03
"""USD an hour: the worst case of about three ticks, of which five come in an hour without kills."""


@dataclass
class Vendor:
    """Answers at once and honestly; every call is in its books before that."""

    books: Path
    now: Callable[[], datetime] = lambda: desks.START
    name: str = "anthropic"

    def submit(self, request: Request) -> Future[Completion]:
        call = [iso(self.now()), request.role.id, request.round, request.attempt, COST]
        with self.books.open("ab", buffering=0) as file:
            file.write(json.dumps(call).encode() + b"\n")
        future: Future[Completion] = Future()
        known = completion(honest(request))
        future.set_result(replace(known, provider="anthropic", model=MODEL, cost_usd=COST))
        return future

    def close(self) -> None:
        """Holds nothing open."""


class Bold(SpendingAccount):
    """Always asks the whole desk: only the ceiling itself then stands between it and the vendor."""

    def degradation_level(
        self,
        settings: AgentSettings,
        agents: Mapping[str, Agent] | None = None,
        *,
        reserved_usd: float = 0.0,
    ) -> DegradationLevel:
        return DegradationLevel(settings, "bold", True)


def warm() -> None:
    """Load once, before any life is forked, what each would load anew."""
    PRICES.warm()
    technical_calculator.score_frame(desks.sample().bars("BTCUSD", "M15", desks.START, 300))


def spent(folder: Path) -> list[list[Any]]:
    """Return the vendor's books: moment, role, round, attempt and USD of every call."""
    path = folder / BOOKS
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def profile(ceiling: float | None, mode: str = "budget") -> Profile:
    """Return a profile that asks the vendor and may spend so many USD in any hour; None: rules."""
    agents: dict[str, Any] = {"mode": mode, "timeout_seconds": PATIENT}
    if ceiling is not None:
        agents |= {"provider": "anthropic", "max_api_cost_per_hour": ceiling}
    return Profile.model_validate({"agents": agents})


@dataclass(frozen=True)
class DeskWorld:
    """A kind of desk: the points that it passes, those at which it dies in turn, and how often.

    A death may take `quarters` of the sample, and the life after the last one `more`; `met` looks
    at the end that the world was what it is here for. `alike`: it ends as a desk that never died.
    """

    start: datetime
    settings: Profile
    points: tuple[str, ...]
    dying: tuple[str, ...] = ()
    deaths: int = 0
    least: int = 1
    quarters: int = 2
    more: int = 0
    alike: bool = True
    met: Callable[[Path], str] = lambda _: ""

    @property
    def pays(self) -> bool:
        """Whether a vendor is asked."""
        return self.settings.agents.provider == "anthropic"

    def upto(self, deaths: int) -> datetime:
        """Return the close to which lives come that die so often."""
        return self.start + (self.quarters * deaths + self.more) * desks.QUARTER

    def death(self, number: int, *points: str) -> tuple[str, int]:
        """Return where a life ends, at one of these points or of all, after how many closes."""
        among = points or self.dying
        turn, place = divmod(number, len(among))
        point = among[place]
        if point in ONCE:
            return point, 0
        return point if ":" in point else f"{point}:{1 + (number + turn) % 3}", turn % 2

    def open(self, folder: Path) -> Desk:
        """Open the desk where its database stands."""
        vendor = Vendor(folder / BOOKS) if self.pays else None
        desk = desks.open_desk(
            folder,
            profile=self.settings,
            provider=vendor,
            make_clock=lambda stood: Simulated(stood or self.start),
        )
        if vendor is not None:
            vendor.now = desk.clock.now
            pays = Bold(desk.database, PRICES, "default", lambda _: False, vendor.now)
            setups = {name: replace(one, account=pays) for name, one in desk.setups.items()}
            desk.roster.setups = setups
        return desk

    def live(
        self,
        folder: Path,
        upto: datetime,
        *,
        point: str = "",
        spare: int = 0,
        closes: int | None = None,
    ) -> None:
        """Tick to `upto`, or for so many closes, and close the desk.

        After `spare` closes the process dies at `point`, if it comes there.
        """
        desk = self.open(folder)
        desks.open_for_work(desk)
        for turn in count():
            if point and turn >= spare:
                os.environ[VARIABLE] = point
            if turn:
                desks.step(desk)
            else:
                desk.wake("BTCUSD")
            if desk.clock.now() >= upto or turn == closes:
                break
        desk.close()

    def whole(self, folder: Path) -> None:
        """Look that nothing is halved, doubled or forgotten: right after any death."""
        with closing(desks.open_database(folder)) as database:
            assert torn(database.connection().conn) == []
        if self.pays:
            assert booked(folder) <= self.settings.agents.max_api_cost_per_hour + 1e-9
        if self.settings.agents.memory.use == "on":
            lessons_of_trades(folder)

    def every_close(self, folder: Path, upto: datetime) -> None:
        """Look that every close up to a moment has its row, and that everything is whole."""
        self.whole(folder)
        with closing(desks.open_database(folder)) as database:
            ticks = rows(database, "select timeframe, bar_time, state, reason from ticks")
        states = {(row["timeframe"], parse(row["bar_time"])): row for row in ticks}
        for timeframe, bar_time in desks.closes_of(desks.BTC, self.start, upto):
            row = states.get((timeframe, bar_time))
            if row is not None or not still_awaited(timeframe, bar_time, upto):
                assert row is not None, f"lost: {timeframe} {bar_time}"
                assert row["state"] in {"done", "skipped"}, row

    def after(self, folder: Path) -> datetime:
        """Return a moment some closes after the last one that a desk came to."""
        with closing(desks.open_database(folder)) as database:
            came = database.desk_time() or self.start
        return self.start + desks.QUARTER * ((came - self.start) // desks.QUARTER + 8)


def still_awaited(timeframe: str, bar_time: datetime, upto: datetime) -> bool:
    """A bar that the feed does not have is waited for until it is two bars old."""
    step = duration(timeframe)
    newest = desks.sample().bars("BTCUSD", timeframe, bar_time + step, 1).index[-1]
    return newest != bar_time and upto - (bar_time + step) <= 2 * step


# --- what must hold -------------------------------------------------------------------------------


def rows(database: Any, sql: str) -> list[dict[str, Any]]:
    return list(database.connection().query(sql))


def booked(folder: Path) -> float:
    """Look that the ledger has all of the vendor's calls; return the USD of the dearest hour."""
    calls = [(parse(at), *call) for at, *call in spent(folder)]
    with closing(desks.open_database(folder)) as database:
        ledger = rows(database, "select at, role, round, attempt, usd from ledger")
    known = Counter(
        (parse(row["at"]), row["role"], row["round"], row["attempt"])
        for row in ledger
        if row["usd"] >= COST
    )
    assert not Counter(call[:4] for call in calls) - known, "calls that nobody booked"
    return _dearest_hour([(at, usd) for at, *_, usd in calls])


def _dearest_hour(bookings: Sequence[tuple[datetime, float]]) -> float:
    """Return the USD of the dearest sliding hour, 0 where nothing was spent."""
    if not bookings:
        return 0.0
    paid = pd.Series([usd for _, usd in bookings], [at for at, _ in bookings]).sort_index()
    return float(paid.rolling(HOUR).sum().max())


def lessons_of_trades(folder: Path) -> Counter[str]:
    """Look that each closed trade has one lesson, with its words; return how many of each kind."""
    with closing(desks.open_database(folder)) as database:
        closed = {row.sid for row in signal_table.closed_trades(database, limit=10_000)}
        lessons = database.lessons_since(0, 0).lessons
    trades = [one.facts.sid for one in lessons if one.facts.kind == "trade"]
    assert sorted(trades) == sorted(closed)
    assert all([words.author for words in one.words] == ["rules"] for one in lessons)
    return Counter(one.facts.kind for one in lessons)


PASSING: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("at", "elapsed_ms", "applied_at"),
    "calls": ("user", "request_hash"),
    "notice_cursors": ("place",),
}
"""Columns that differ between two lives that did the same: moments of real time and time taken;
prompts have a nonce. "" stands for every table.
"""

JSON_COLUMNS: Final = ("record", "agent_deliberation")
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

UNCOMPARED: Final = ("desk_run", "ledger", "degradation_levels")
"""Signs of life; and what dying cost, which a life without deaths has not spent."""


def tables(folder: Path) -> Tables:
    """Return every table as its rows, sorted, without what time alone decides."""
    database = desks.open_database(folder)
    names = rows(database, "select name from sqlite_master where type='table'")
    contents = {
        row["name"]: _rows_of(database, row["name"])
        for row in names
        if row["name"] not in UNCOMPARED
    }
    database.close()
    return contents


def partings(folder: Path) -> int:
    """Return how many ticks a death parted from their close: an elder was stored before it."""
    database = desks.open_database(folder)
    sql = "select torra_key from journal where json_extract(record, '$.apart[0]') is not null"
    count = len(rows(database, sql))
    database.close()
    return count


def _rows_of(database: Any, table: str) -> list[tuple[Any, ...]]:
    passing = {*PASSING[""], *PASSING.get(table, ())}
    kept = [
        tuple(
            json.dumps(_lasting(json.loads(value))) if name in JSON_COLUMNS and value else value
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
    """Return the tables in which two lives differ, each with the first row that one has alone."""
    ours = tables(one)
    theirs = tables(other) if isinstance(other, Path) else other
    return [
        f"{name}: {[row for row in (*mine, *yours) if row not in mine or row not in yours][:1]}"
        for name in ours.keys() | theirs.keys()
        if (mine := ours.get(name, [])) != (yours := theirs.get(name, []))
    ]


# --- the desks that die ---------------------------------------------------------------------------

ONCE: Final = ("moved", "published", "enqueued")
"""Points that a stretch of the sample passes once or twice."""

PAID: Final = (*IN_A_TICK, "enqueued", "committed")
"""What a tick on paper passes that pays; the rest lies on the way to a broker's terminal."""

UNPAID: Final = tuple(name for name in PAID if name not in ("reserved", "asked", "settled"))
OFTEN: Final = tuple(name for name in PAID if name not in ONCE)

SEATS: Final = {"full": "momentum", "firm": "trader", "swarm": "judge"}
"""Who sits at a desk of a mode, and at no desk of the mode below it."""


def of_a_mode(mode: str) -> DeskWorld:
    """Return a desk at which more agents are asked, a trader or experts among them."""

    def met(folder: Path) -> str:
        roles = {role for _, role, *_ in spent(folder)}
        assert SEATS[mode] in roles, "nobody asked who makes the mode"
        return f"{partings(folder)} of them between two ticks of a close"

    deaths = len(OFTEN)
    return DeskWorld(TRADING, profile(AMPLE, mode), PAID, OFTEN, 2 * deaths, least=deaths, met=met)


REFUSED: Final = """
select one.value from sentiment, json_each(agent_deliberation, '$.failures') as one
where one.value = 'budget'
"""
"""A seat for each time that the ceiling refused it a call."""


def _short(folder: Path) -> str:
    dearest = booked(folder) / SHORT
    with closing(desks.open_database(folder)) as database:
        refused = rows(database, REFUSED)
        ledger = rows(database, "select at, usd from ledger")
    held = _dearest_hour([(parse(row["at"]), row["usd"]) for row in ledger]) / SHORT
    assert refused and held > 0.7, "the ceiling was never in the way: nothing was tried"
    calls = f"{len(spent(folder))} calls, {len(refused)} refused"
    return f"{calls}, dearest hour {dearest:.0%} paid and {held:.0%} in the ledger"


def _lessons(folder: Path) -> str:
    lessons = lessons_of_trades(folder)
    assert lessons["trade"] >= 3 and lessons["vetoed"] >= 1, lessons
    return f"{lessons['trade']} trades, {lessons['vetoed']} vetoed"


REMEMBERING: Final = remembering.profile(
    agents={"memory": {"use": "on"}, "timeout_seconds": PATIENT}, gate={"max_spread_atr": 0.085}
)

DESKS: Final[Mapping[str, DeskWorld]] = {
    "paper": DeskWorld(desks.START, profile(None), UNPAID, deaths=200, least=6),
    "paying": DeskWorld(TRADING, profile(AMPLE), PAID, OFTEN, 60, least=2),
    **{mode: of_a_mode(mode) for mode in SEATS},
    "short of money": DeskWorld(
        TRADING,
        profile(SHORT),
        PAID,
        ("recorded", "settled", "asked:4", "asked:3", "asked:2", "asked:1", "reserved"),
        56,
        least=6,
        alike=False,
        met=_short,
    ),
    "remembering": DeskWorld(
        desks.START,
        REMEMBERING,
        UNPAID,
        ("moved", "recorded", "enqueued", *UNPAID),
        60,
        least=3,
        quarters=6,
        more=6,
        met=_lessons,
    ),
}
"""An `asked` of a higher number dies with answers in hand.

A night has 1,000 kills in all: these, 8 at each named point, 200 of orders, 150 of jobs
(test_kills), and 100 beside hosts and of these (tests/overlay/test_beside_a_desk.py).
"""
