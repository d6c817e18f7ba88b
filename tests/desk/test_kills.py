"""A desk that is killed at any moment loses no tick, halves none and opens nothing twice.

A child process ticks through the sample as fast as it can, M15 and H1 closing together among its
ticks, and is killed with SIGKILL at a random moment or at a named point; the next child takes over
where the database stands. At the end every close has its row, every done tick its twins, and every
table is that of a life without a single kill (promises D1, D4 and D10).
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from agent_config import MODES
from tests.faults import lives
from tests.tries import Tries
from tests.worlds import desks
from torra.clock import duration, parse
from torra.failpoints import IN_A_TICK

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL"),
    pytest.mark.usefixtures("lessons_come_in_time"),
]

Scaled = Callable[..., int]

TRADING = datetime.fromisoformat("2021-11-08T02:00:00+00:00")
"""At this close the sample opens a position; it is filled at the next one."""

AMPLE = 100.0
"""USD an hour that no desk here comes to."""

POINTS = (*IN_A_TICK, "enqueued", "committed")
"""What a tick on paper passes that pays; the rest lies on the way to a broker's terminal."""

OWN_SEAT = {"full": "momentum", "firm": "trader", "swarm": "judge"}
"""Who sits at a desk of a mode, and at no desk of the mode below it."""

ONCE = ("moved", "published", "enqueued")
"""Points that a stretch of the sample passes once or twice."""


def spawn(folder: Path, upto: datetime) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            lives.live(folder, desks.START, upto)
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


def finish(folder: Path, start: datetime, upto: datetime, **more: Any) -> None:
    folder.mkdir(exist_ok=True)
    assert not lives.run(partial(lives.live, folder, start, upto, **more))


def still_awaited(timeframe: str, bar_time: datetime, upto: datetime) -> bool:
    """A bar that the feed does not have is waited for until it is two bars old."""
    step = duration(timeframe)
    newest = desks.sample().bars("BTCUSD", timeframe, bar_time + step, 1).index[-1]
    return newest != bar_time and upto - (bar_time + step) <= 2 * step


def check(folder: Path, start: datetime, upto: datetime) -> None:
    """Look that every close has its row, and that everything is whole."""
    lives.whole(folder)
    database = desks.open_database(folder)
    ticks = lives.rows(database, "select timeframe, bar_time, state, reason from ticks")
    states = {(row["timeframe"], parse(row["bar_time"])): row for row in ticks}
    for timeframe, bar_time in desks.closes_of(desks.BTC, start, upto):
        row = states.pop((timeframe, bar_time), None)
        if row is None and still_awaited(timeframe, bar_time, upto):
            continue
        assert row is not None, f"lost: {timeframe} {bar_time}"
        assert row["state"] in {"done", "skipped"}, row
    database.close()


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Callable[[datetime], lives.Tables]:
    """Return what gives the tables of a paying life without kills up to a moment.

    It lives in this process, so that no life that is forked after it scores the same bars.
    """
    lives.warm()

    @cache
    def lived(upto: datetime) -> lives.Tables:
        folder = tmp_path_factory.mktemp("calm")
        lives.live(folder, TRADING, upto, ceiling=AMPLE)
        return lives.tables(folder)

    return lived


@pytest.mark.by_day("claimed", "reserved", "asked", "settled", "recorded", "published")
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_a_named_point_changes_nothing(
    point: str,
    calm: Callable[[datetime], lives.Tables],
    tmp_path: Path,
    scaled: Scaled,
    record_property: Callable[[str, object], None],
) -> None:
    """Each point of a tick, again and again, on a desk that pays its vendor (D1)."""
    deaths = scaled(25)
    upto = TRADING + 2 * deaths * desks.QUARTER
    never_killed = calm(upto)
    for number in range(deaths):
        passes = 1 if point in ONCE else 1 + number % 3
        named = f"{point}:{passes}"
        life = partial(lives.live, tmp_path, TRADING, upto, ceiling=AMPLE, point=named)
        assert lives.run(life), f"nobody came to {named}"
        lives.whole(tmp_path)
    finish(tmp_path, TRADING, upto, ceiling=AMPLE)
    check(tmp_path, TRADING, upto)
    assert lives.differences(tmp_path, never_killed) == []
    record_property("seen", f"{deaths} deaths at {point}")


@pytest.mark.journey
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "budget"])
def test_a_desk_of_any_other_mode_dies_as_safely(
    mode: str,
    tmp_path: Path,
    scaled: Scaled,
    record_property: Callable[[str, object], None],
) -> None:
    """All points of a tick again where more agents are asked, a trader or experts among them (D1).

    The thesis and what the seats came to are in the tables that are compared.
    """
    lives.warm()
    points = [name for name in POINTS if name not in ONCE]
    deaths = scaled(5 * len(points), least=len(points))
    upto = TRADING + 2 * deaths * desks.QUARTER
    killed, calm = tmp_path / "killed", tmp_path / "calm"
    for folder in (killed, calm):
        folder.mkdir()
    for number in range(deaths):
        named = f"{points[number % len(points)]}:{1 + number % 3}"
        life = partial(lives.live, killed, TRADING, upto, ceiling=AMPLE, mode=mode, point=named)
        assert lives.run(life), f"nobody came to {named}"
        lives.whole(killed)
    for folder in (killed, calm):
        finish(folder, TRADING, upto, ceiling=AMPLE, mode=mode)
    check(killed, TRADING, upto)
    asked = {role for _, role, *_ in lives.spent(killed)}
    assert OWN_SEAT[mode] in asked, "nobody asked who makes the mode"
    assert lives.differences(killed, calm) == []
    parted = lives.parted(killed)
    assert parted, "no death fell between two ticks of a close"
    record_property(
        "seen", f"{deaths} deaths of a {mode} desk, {parted} of them between two ticks of a close"
    )


@pytest.mark.timeout(1500)
def test_kills_lose_nothing_and_double_nothing(
    tmp_path: Path, scaled: Scaled, tries: Tries, record_property: Callable[[str, object], None]
) -> None:
    """At any moment whatever (D1, D4)."""
    lives.warm()
    kills = scaled(1000, least=6)
    # a child lives long enough for one or two M15 ticks and a bit, on a fast machine for some more
    end = desks.START + desks.QUARTER * max(48, kills * 8)
    for attempt in tries():
        killed = attempt.folder(tmp_path)
        calm = killed.with_name(f"{killed.name}-calm")
        hit = kill_often(killed, end, kills, seed=20211110)
        upto = after(killed)
        finish(calm, desks.START, upto)
        finish(killed, desks.START, upto)
        check(killed, desks.START, upto)
        assert lives.differences(killed, calm) == []
        with attempt:
            assert hit >= kills * 0.9, "a child lived so long that it did all the work"
    record_property("seen", f"{hit:,} kills of a living desk")


def after(folder: Path) -> datetime:
    """Return a moment some closes after the last one that a desk came to."""
    database = desks.open_database(folder)
    came = database.desk_time() or desks.START
    database.close()
    return desks.START + desks.QUARTER * ((came - desks.START) // desks.QUARTER + 8)


@pytest.mark.journey
@pytest.mark.timeout(1500)
def test_a_life_of_kills_ends_as_a_life_of_closings(
    tmp_path: Path, scaled: Scaled, record_property: Callable[[str, object], None]
) -> None:
    """A desk that only ever dies has the tables of one that is always closed in peace (D10)."""
    lives.warm()
    restarts = scaled(200, least=2)
    upto = TRADING + (4 + 2 * restarts) * desks.QUARTER
    killed, closed = tmp_path / "killed", tmp_path / "closed"
    dice = random.Random(20261122)
    died = 0
    for folder in (killed, closed):
        folder.mkdir()
    for _ in range(restarts):
        point = dice.choice([name for name in POINTS if name not in ONCE])
        spare = dice.randint(0, 1)
        lives.live(closed, TRADING, upto, ceiling=AMPLE, closes=spare)
        life = partial(lives.live, killed, TRADING, upto, ceiling=AMPLE, point=point, spare=spare)
        died += lives.run(life)
    lives.live(closed, TRADING, upto, ceiling=AMPLE)
    finish(killed, TRADING, upto, ceiling=AMPLE)
    for folder in (killed, closed):
        check(folder, TRADING, upto)
    assert died == restarts
    assert lives.differences(killed, closed) == []
    record_property("seen", f"{died} kills and no closing, against {restarts} closings")
