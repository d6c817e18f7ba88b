"""A desk that is killed at any moment loses no tick, halves none and opens nothing twice.

A child process ticks through the sample as fast as it can, M15 and H1 closing together among its
ticks, and is killed with SIGKILL at a random moment; the next child takes over where the database
stands. At the end every close has its row, every done tick its twins, and the result is the same as
that of a life without a single kill (promises D1, D4 and D10).
"""

from __future__ import annotations

import os
import random
import signal
import time
from datetime import datetime
from pathlib import Path

import pytest

import signal_bridge
import technical_calculator
import torra_trader
from instance_database import Database
from tests import desks
from torra.clock import Simulated, duration, parse

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


TRADING = datetime.fromisoformat("2021-11-08T02:00:00+00:00")
NAMED_UPTO = TRADING + 8 * desks.QUARTER
"""Soon after this an opening is sent and filled, so that the points of a signal are met."""


def child(folder: Path, upto: datetime) -> None:
    """Tick from where the database stands until `upto`, then exit with 0."""
    start = TRADING if upto < desks.START else desks.START
    desk = desks.open_desk(folder, make_clock=lambda stood: Simulated(stood or start))
    desks.take_lease(desk, seconds=0.001)
    desk.wake("BTCUSD")
    while desk.clock.now() < upto:
        desks.step(desk)


def spawn(folder: Path, upto: datetime) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child(folder, upto)
            code = 0
        finally:
            os._exit(code)
    return pid


def kill_often(folder: Path, upto: datetime, kills: int, seed: int) -> int:
    """Return how many kills hit a living child before the work was done."""
    dice = random.Random(seed)
    hit = 0
    while hit < kills:
        pid = spawn(folder, upto)
        time.sleep(dice.uniform(0.0, 0.2))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            assert os.WEXITSTATUS(status) == 0, "a child failed by itself"
            break
        hit += 1
    return hit


def finish(folder: Path, upto: datetime) -> None:
    _, status = os.waitpid(spawn(folder, upto), 0)
    assert os.WEXITSTATUS(status) == 0


def rows(database: Database, sql: str) -> list[dict[str, object]]:
    return list(database.connection().query(sql))


def still_awaited(timeframe: str, bar_time: datetime, upto: datetime) -> bool:
    """A bar that the feed does not have is waited for until it is two bars old."""
    step = duration(timeframe)
    newest = desks.sample().bars("BTCUSD", timeframe, bar_time + step, 1).index[-1]
    return newest != bar_time and upto - (bar_time + step) <= 2 * step


def check(folder: Path, start: datetime, upto: datetime) -> None:
    database = desks.open_database(folder)
    ticks = rows(database, "select instance, timeframe, bar_time, state, reason from ticks")
    states = {(row["timeframe"], parse(str(row["bar_time"]))): row for row in ticks}
    for timeframe, bar_time in desks.closes_of(desks.BTC, start, upto):
        row = states.pop((timeframe, bar_time), None)
        if row is None and still_awaited(timeframe, bar_time, upto):
            continue
        assert row is not None, f"lost: {timeframe} {bar_time}"
        assert row["state"] in {"done", "skipped"}, row
    done = {
        f"{row['instance']}|{row['timeframe']}|{row['bar_time']}"
        for row in ticks
        if row["state"] == "done"
    }
    for table in ("sentiment", "chains", "journal"):
        keys = [str(row["torra_key"]) for row in rows(database, f"select torra_key from {table}")]
        assert len(keys) == len(set(keys))
        assert set(keys) == done, f"{table} and the done ticks differ"
    openings = rows(
        database, "select sid, count(*) as n from signals where kind='open' group by sid"
    )
    assert all(row["n"] == 1 for row in openings)
    assert rows(database, "pragma integrity_check")[0]["integrity_check"] == "ok"
    database.close()


def story(folder: Path) -> list[tuple[object, ...]]:
    """What a life without timing noise amounts to: every score, verdict, action and signal."""
    database = desks.open_database(folder)
    sql = (
        "select s.torra_key, s.price_action, s.composite, s.consensus, s.verdict, s.source_type, "
        "j.action, j.reason from sentiment s join journal j using (torra_key) order by 1"
    )
    found = [tuple(row.values()) for row in rows(database, sql)]
    signals = "select sid, kind, side, lots, state from signals order by sid"
    found += [tuple(row.values()) for row in rows(database, signals)]
    database.close()
    return found


POINTS = {
    "claimed": (Database, "claim_tick", "after"),
    "scores stored": (Database, "save_sentiment", "after"),
    "signal enqueued": (Database, "enqueue_signal", "after"),
    "journal stored": (Database, "write_journal", "after"),
    "before done": (Database, "finish_tick", "before"),
    "after done": (Database, "finish_tick", "after"),
    "before publishing": (torra_trader, "publish", "before"),
    "after publishing": (torra_trader, "publish", "after"),
    "paper moved": (signal_bridge, "apply_event", "after"),
}


def dies_at(folder: Path, upto: datetime, point: str, call: int) -> None:
    """Tick in a child that kills itself at the given call of the point."""
    place, name, side = POINTS[point]
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    whole = getattr(place, name)
    calls = iter(range(1, 10_000))

    def deadly(*words: object, **named: object) -> object:
        last = next(calls) == call
        if last and side == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = whole(*words, **named)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(place, name, deadly)
    try:
        child(folder, upto)
    finally:
        os._exit(1)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, ...]]:
    """The story of a life without kills."""
    desks.sample()
    folder = tmp_path_factory.mktemp("calm")
    finish(folder, NAMED_UPTO)
    return story(folder)


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_a_named_point_changes_nothing(
    point: str, calm: list[tuple[object, ...]], tmp_path: Path
) -> None:
    for call in (1, 2, 3):
        dies_at(tmp_path, NAMED_UPTO, point, call)
    finish(tmp_path, NAMED_UPTO)
    check(tmp_path, TRADING, NAMED_UPTO)
    assert story(tmp_path) == calm


def test_kills_lose_nothing_and_double_nothing(tmp_path: Path, scaled, record_property) -> None:
    desks.sample()
    technical_calculator.score_frame(desks.sample().bars("BTCUSD", "M15", desks.START, 300))
    kills = scaled(1000, least=12)
    # a child lives long enough for about one M15 tick and a bit, so this leaves work for every kill
    upto = desks.START + desks.QUARTER * max(24, kills * 2)
    (tmp_path / "killed").mkdir()
    (tmp_path / "calm").mkdir()
    hit = kill_often(tmp_path / "killed", upto, kills, seed=20211110)
    record_property("kills", hit)
    print(f"kills that hit a living desk: {hit}")
    assert hit >= kills * 0.9
    finish(tmp_path / "killed", upto)
    check(tmp_path / "killed", desks.START, upto)
    finish(tmp_path / "calm", upto)
    assert story(tmp_path / "killed") == story(tmp_path / "calm")
