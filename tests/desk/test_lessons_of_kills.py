"""However often a desk is killed, each trade and each stretch of vetoes leaves one lesson.

A child process trades the sample all the time, is told of its lessons, and dies by SIGKILL at a
point on its way or at any moment; the next goes on. In the end every table is that of a life that
was never killed (promise M1).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from tests.examples import examples
from tests.faults import lives
from tests.worlds import desks, remembering
from torra.failpoints import IN_A_TICK, VARIABLE
from torra.replay.rerun.edges_then import Still

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL"),
    pytest.mark.usefixtures("lessons_come_in_time"),
]

BEGIN = datetime.fromisoformat("2021-11-10T10:00:00+00:00")
POINTS = (*IN_A_TICK, "moved", "enqueued", "committed")
CLOSES = 3
"""Closes that a child lives through at most before it is to die."""


def live(folder: Path, upto: datetime, point: str = "", passes: int = 1, closes: int = 0) -> None:
    """Trade up to a moment, or for so many closes, or to the n-th pass of a point."""
    settings = remembering.profile(agents={"memory": {"use": "on"}, "timeout_seconds": 900.0})
    settings = settings.model_copy(
        update={"gate": settings.gate.model_copy(update={"max_spread_atr": 0.085})}
    )
    desk = desks.open_desk(folder, profile=settings, make_clock=lambda at: Still(at or BEGIN))
    desks.take_lease(desk, seconds=0.001)
    if point:
        os.environ[VARIABLE] = f"{point}:{passes}"
    desk.wake(remembering.BTC)
    while desk.clock.now() < upto and closes != 1:
        desks.step(desk)
        closes -= 1
    desk.close()


@pytest.mark.timeout(1500)
def test_each_end_leaves_one_lesson_however_often_the_desk_dies(
    tmp_path: Path,
    scaled: Callable[..., int],
    record_property: Callable[[str, object], None],
) -> None:
    lives.warm()
    deaths = scaled(200, least=3)
    end = BEGIN + 6 * deaths * desks.QUARTER + 40 * desks.QUARTER
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    for folder in (calm, killed):
        folder.mkdir()
    dice, died, born = random.Random(20261126), 0, 0
    while died < deaths:
        born += 1
        assert born < 6 * deaths, f"of {born} children only {died} came to where they were to die"
        life = partial(live, killed, end, dice.choice(POINTS), dice.randint(1, 4), closes=CLOSES)
        died += lives.run(life)
        lives.whole(killed)
        one_each(killed)
    upto = max(came(killed), BEGIN) + examples(40, 28) * desks.QUARTER
    for folder in (calm, killed):
        live(folder, upto)
    told = one_each(killed)
    assert told["trade"] >= 3 and told["vetoed"] >= 1, told
    assert lives.differences(killed, calm) == []
    record_property("seen", f"{died} kills, {told['trade']} trades, {told['vetoed']} vetoed")


def came(folder: Path) -> datetime:
    """Return the close that a desk has come to."""
    database = desks.open_database(folder)
    moment = database.desk_time()
    database.close()
    return BEGIN if moment is None else BEGIN + desks.QUARTER * ((moment - BEGIN) // desks.QUARTER)


def one_each(folder: Path) -> Counter[str]:
    """Look that each closed trade has one lesson, with its words, and none is of anything else."""
    database = desks.open_database(folder)
    closed = {row["sid"] for row in database.closed_trades(limit=10_000)}
    told = database.lessons_since(0, 0).lessons
    database.close()
    trades = [one.facts.sid for one in told if one.facts.kind == "trade"]
    assert sorted(trades) == sorted(closed)
    assert all([words.author for words in one.words] == ["rules"] for one in told)
    return Counter(one.facts.kind for one in told)
