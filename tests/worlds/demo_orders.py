"""A desk that asks a person: proposals in every end, signals in every state, an alarm, a bridge.

`build(folder)` returns the Backing of a desk on the shipped bars whose real ticks proposed what
waits; what cannot happen on paper within a test (a channel with real money, orders without an
answer) is written into its database. To look at it in a browser:
`python -m tests.worlds.demo_orders PORT`, which prints the link that logs in.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
from flask.testing import FlaskClient

from tests.doubles.page_reader import Page
from tests.doubles.visitors import ACCESS, open_app
from tests.worlds import desks, stores
from tests.worlds.demo_view import ScriptedView
from torra.clock import Scaled, Simulated, System
from torra.config import Channel, DeskSettings, Instance, Profile, Risk, Thresholds
from torra.dashboard.app import create_app
from torra.dashboard.doors import access
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.dashboard.view.rendering import EXTENSION
from torra.store import jobs as job_table
from torra.store.connection import TickKey
from torra.store.trade import proposals_and_alarms as execution_table
from torra.store.trade.rows import ProposalRow
from torra.tick import approval
from torra.verdict import risk_engine
from torra.verdict.risk_engine import Account, Decision

GOLD = Instance(
    symbol="XAUUSD", timeframes=("M15",), feed="store", bridge="torra_files", channel="main"
)
SLOW = Instance(
    symbol="XAUUSD", name="gold-h1", timeframes=("H1",), feed="store", bridge="torra_files",
    channel="main",
)  # fmt: skip
PROFILE = Profile(
    execution="approve",
    thresholds=Thresholds(buy=0.15, sell=0.15),
    risk=Risk(capital=100_000.0),  # the agents lean against BTCUSD: a little is left of that
)
START = datetime.fromisoformat("2021-11-10T12:45:00+00:00")
QUARTER = timedelta(minutes=15)
STEPS = 6
"""Closes from the start until 14:15, at which BTCUSD M15 proposes to buy."""

PATHS: dict[str, tuple[str, ...]] = {
    "REJECTED": ("PENDING", "PUBLISHED", "REJECTED"),
    "EXPIRED": ("PENDING", "EXPIRED"),
    "CANCELLED": ("PENDING", "CANCELLED"),
    "UNKNOWN_NOT_SENT": ("PENDING", "PUBLISHED", "UNKNOWN_NOT_SENT"),
    "NOT_SENT": ("PENDING", "PUBLISHED", "UNKNOWN", "NOT_SENT"),
    "WAITING": ("WAITING",),
    "PENDING": ("PENDING",),
    "PUBLISHED": ("PENDING", "PUBLISHED"),
    "CLAIMED": ("PENDING", "PUBLISHED", "CLAIMED"),
    "PLACED": ("PENDING", "PUBLISHED", "PLACED"),
    "PARTIAL": ("PENDING", "PUBLISHED", "PARTIAL"),
    "FILLED": ("PENDING", "PUBLISHED", "FILLED"),
}
"""How a signal comes to each state besides UNKNOWN and CLOSED, which openings show."""

DETAILS = {
    "REJECTED": "spread 10004",
    "EXPIRED": "SIGNAL_EXPIRED",
    "CANCELLED": "TRADING_HALTED",
    "PENDING": "BRIDGE_DEAD: no heartbeat",
}


ENDS = {
    "TWON0000000": (1.17, 61.5, 2.0, "TARGET"),
    "TLOST000000": (1.155, -31.0, -1.0, "STOPPED"),
    "TSCRATCH000": (1.1601, 0.4, 0.02, "CLOSED"),
}
"""Price, profit, R and reason of the trades that are over."""


def settings() -> DeskSettings:
    way = Channel(folder="/nowhere/Torra/main", account=1001, live=True)
    return DeskSettings(instances=(desks.BTC, desks.EUR, GOLD, SLOW), channels={"main": way})


def build(folder: Path, *, clock: Any = None) -> PageContext:
    """Return the backing of the desk in a folder of its own; whoever asks closes its database."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "torra.db").write_bytes(_ran())
    known = settings()
    moment = clock or Simulated(START + STEPS * QUARTER + timedelta(seconds=30))
    desk = desks.open_desk(
        folder, known.instances, profile=PROFILE, make_clock=lambda _stood: moment
    )
    desk.active = True  # it works, so the pages say; nothing wakes it
    return PageContext(folder, desk.database, known, desk, {})


def open_pages(backing: PageContext, scope: str = "admin") -> Any:
    """Return an app whose pages show this backing: one app for each scope, since each is dear.

    What it counted before, rates above all, is forgotten.
    """
    app = _app(scope)
    access._COUNTED.pop(app, None)
    known = app.extensions[EXTENSION]
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    app.extensions[EXTENSION] = replace(known, desk_view=view, backing=backing)
    return app


def visit(backing: PageContext, scope: str = "admin") -> FlaskClient:
    """Return a client of those pages."""
    client: FlaskClient = open_pages(backing, scope).test_client()
    return client


def text_of(backing: PageContext, address: str, scope: str = "admin") -> str:
    """Return a page that is there."""
    answer = visit(backing, scope).get(address)
    assert answer.status_code == 200, answer.text
    return answer.text


def read(backing: PageContext, address: str, scope: str = "admin") -> Page:
    """Return a page as a test reads it."""
    return Page(text_of(backing, address, scope))


def waiting(backing: PageContext, instance: str = "BTCUSD") -> str:
    """Return the id of an instance's newest proposal that waits."""
    rows = backing.database.proposals()
    return next(str(row.sid) for row in rows if row.instance == instance)


@cache
def _app(scope: str) -> Any:
    return open_app(ScriptedView(), scope=scope)


def _ask_for_jobs(database: Any) -> None:
    """Leave a job that has ended and one that is half way, which this desk does not go on with."""
    for key, days in (
        ("first", "2021-10-20 to 2021-10-21"),
        ("second", "2021-10-20 to 2021-11-20"),
    ):
        row, _ = job_table.queue_job(database,
            "replay", key, title=f"BTCUSD M15, H1, {days}",
            parameters=f'{{"symbol":"BTCUSD","bars":"store","name":"{key}"}}', actor="a person",
        )  # fmt: skip
        job_table.begin_job(database, row["id"], "queued")
        job_table.note_progress(database, row["id"], "runs the ticks", 1860, 3720)
        if key == "first":
            says = "No arm shows an edge. There is no trade, which is too few."
            job_table.end_job(database, row["id"], "running", "done", says, key)


@cache
def _ran() -> bytes:
    """The database after the ticks, made once: making it anew takes a second."""
    with tempfile.TemporaryDirectory() as folder:
        desk = desks.open_desk(
            Path(folder), (desks.BTC, desks.EUR), profile=PROFILE,
            make_clock=lambda _: Simulated(START),
        )  # fmt: skip
        desks.open_for_work(desk)
        for _ in range(STEPS):
            now = desks.step(desk)
            _decide(desk.database, now)
        _write(desk.database, now)
        _ask_for_jobs(desk.database)
        path = Path(folder) / "copy.db"
        desk.database.copy(Path(folder) / "torra.db", path)
        desk.close()
        return path.read_bytes()


def _decide(database: Any, now: datetime) -> None:
    """End each proposal of BTCUSD in another way, all but the newest."""
    waiting = [row for row in database.proposals() if row.instance == "BTCUSD"]
    for row in waiting:
        quarters = (datetime.fromisoformat(row.created_at) - START) // QUARTER
        if row.timeframe == "H1":
            approval.reject(database, row.sid, "news ahead: the minutes at two")
        elif quarters == 1:
            execution_table.decide_proposal(database, row.sid, "EXPIRED", "SIGNAL_EXPIRED")
        elif quarters < STEPS:
            _approve(database, row, desks.BTC, now, row.price * 1.2)  # it has gone too far


def _approve(
    database: Any, row: ProposalRow, instance: Instance, now: datetime, price: float
) -> approval.Decided:
    at = approval.ApprovalContext(
        instance=instance, profile=PROFILE, now=now, price=price, halted=""
    )
    return approval.approve(database, row.sid, at, life=QUARTER / 5)


def _write(database: Any, now: datetime) -> None:
    """Write what paper and a minute cannot bring."""
    for name in (GOLD.id, SLOW.id):
        database.apply_profile(name, PROFILE.model_dump_json(), PROFILE.digest())
    _gold_price(database, now, 1860.0)
    propose_gold(database, now)
    for sid, row, path in _signals(now):
        detail = DETAILS.get(path[-1], "")
        database.enqueue_signal({**row, "state": path[0], "detail": detail})
        _lead(database, sid, path, now, detail)
    held = next(row for row in database.proposals() if row.instance == "EURUSD")
    decided = _approve(database, held, desks.EUR, now, held.price)
    assert decided.state == "APPROVED", decided
    _lead(database, held.sid, ("PENDING", "PUBLISHED", "FILLED"), now)
    database.raise_alarm("UNKNOWN TUNKNOWN000", "UNKNOWN", "TUNKNOWN000 open BUY 0.01 XAUUSD")
    facts = {"free_margin": 8123.5, "leverage": 30.0, "algo": True}
    compared = System().real_now() - timedelta(seconds=20)
    execution_table.note_bridge(
        database, GOLD.route, deny="", detail="ready", facts=facts, reconciled_at=compared
    )
    for state, why in (("REDUCING", "MISSING TGONE"), ("ACTIVE", "by a person: looked at it")):
        database.set_trading_state(state, why)


def _lead(database: Any, sid: str, path: tuple[str, ...], now: datetime, detail: str = "") -> None:
    """Take a signal through its states."""
    for state in path[1:]:
        if state == "CLOSED":
            price, profit, r, why = ENDS[sid]
            end = {"price": price, "time": now - QUARTER, "profit": profit, "r_multiple": r}
            database.close_position(sid, reason=why, **end)
            continue
        row = database.signal(sid)
        fill = {"price": row["entry"] or 1.16, "opened_at": now - 3 * QUARTER}
        fields = fill if state == "FILLED" else {}
        database.move_signal(sid, state, detail=detail, fields=fields)


def _gold_price(database: Any, now: datetime, price: float) -> None:
    bars = pd.DataFrame(
        [[price] * 4 + [1.0]], columns=["open", "high", "low", "close", "volume"],
        index=pd.DatetimeIndex([now - QUARTER]),
    )  # fmt: skip
    database.store_bars(GOLD.id, "M15", bars)


def propose_gold(database: Any, now: datetime, price: float = 1860.0) -> str:
    """Propose to buy gold for real money; its tick is not in the store."""
    decision = Decision(
        verdict="BUY", price=price, atr=4.0, multiplier=0.7, veto=False, opening_stands=True
    )
    account = Account(**database.exposure(GOLD.id, "M15", as_of=now))
    action = risk_engine.review(decision, None, account, PROFILE.symbol("XAUUSD"), PROFILE)
    return approval.propose(
        database, action, decision, key=TickKey(GOLD.id, "M15", now - QUARTER), symbol="XAUUSD",
        created=now, expires=now + QUARTER,
    )  # fmt: skip


def _signals(now: datetime) -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
    """Yield id, row and way through the states of each signal."""
    number = count(1)
    closed = ("PENDING", "PUBLISHED", "FILLED", "CLOSED")

    def row(sid: str, instance: str = "EURUSD", **more: Any) -> dict[str, Any]:
        levels = {"entry": 1.16, "stop": 1.155, "target": 1.17, "atr": 0.0025, "lots": 0.06}
        decided = now - QUARTER * 8 + timedelta(minutes=next(number))
        times = {"bar_time": now - 12 * QUARTER, "decided_at": decided, "expires": decided}
        about = {"instance": instance, "symbol": "EURUSD", "timeframe": "H1"}
        return stores.opening(sid, **{**about, **levels, **times, **more})

    for sid in ENDS:
        yield sid, row(sid), closed
    for state, path in PATHS.items():
        sid = f"T{state[:11]:0<11}"
        kind = "open" if state == "WAITING" else "close"
        none = {} if kind == "open" else {"entry": None, "stop": None, "target": None, "atr": None}
        name = SLOW.id if kind == "open" else "EURUSD"
        yield sid, row(sid, name, kind=kind, side="SELL", closes="TGONE", **none), path
    gold = {"symbol": "XAUUSD", "bridge": SLOW.route, "entry": 1850.0, "stop": 1840.0, "lots": 0.01}
    unknown = row("TUNKNOWN000", SLOW.id, target=1870.0, **gold)
    yield "TUNKNOWN000", unknown, ("PENDING", "PUBLISHED", "UNKNOWN")


def main(port: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        start = START + STEPS * QUARTER + timedelta(seconds=30)
        backing = build(Path(folder), clock=Scaled(start, 1.0))
        view = DatabaseView(backing.database, backing.settings, backing.desk)
        app = create_app(view, access=ACCESS, backing=backing)
        print(f"http://127.0.0.1:{port}/login#token={ACCESS.tokens['admin']}", flush=True)
        app.run("127.0.0.1", port, threaded=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
