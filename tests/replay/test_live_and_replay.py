"""A replay is the live desk: the same bars give the same ticks live, in a replay and again.

The live desk computes each tick on the last 750 bars, in a database, with debates in threads. The
replay looks it up in one pass over the whole history, in memory. The journal has each tick alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from agents.contracts import Completion, Request
from instance_database import Database, TickKey
from tests.worlds import desks
from torra.clock import duration
from torra.config import ROOT, Profile, validate
from torra.evaluation.observations import TickSeen, same_but_time
from torra.providers.rules.provider import RulesProvider
from torra.replay.arms import ARMS
from torra.replay.rerun.journal_replay import replay
from torra.replay.runner import Course, Voice, run_arm
from torra.replay.shards.history import History, load
from torra.replay.shards.seen import tick_seen
from torra_trader import Outcome

CLOSES = 1000
BEGIN = datetime.fromisoformat("2021-11-10T09:30:00+00:00")


class Distant(RulesProvider):
    """The rules behind a line: their answers are not said to be there at once."""

    def submit(self, request: Request) -> Future[Completion]:
        return super().submit(request)


class Lived(NamedTuple):
    """A desk that went from close to close: what each tick came to, and what it left behind.

    `caught_up` are the ticks of its first wake, which came late.
    """

    profile: Profile
    caught_up: tuple[TickKey, ...]
    outcomes: list[Outcome]
    database: Database

    @property
    def ticks(self) -> list[TickSeen]:
        return [tick_seen(one.result, 0.0) for one in self.outcomes if one.result is not None]


@pytest.fixture(scope="module")
def history() -> History:
    files = [str(ROOT / "sample_data" / f"BTCUSD_{name}.csv") for name in ("M15", "H1")]
    return load(Path("nowhere"), "BTCUSD", files)


@pytest.fixture(scope="module", params=["always", "pivotal"])
def lived(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    history: History,
    scaled: Callable[..., int],
) -> Iterator[Lived]:
    """A desk whose history was imported, so that it knows the record high that a replay knows."""
    values = {
        "thresholds": {"buy": 0.15, "sell": 0.15},
        "on_opposite": "reverse",
        "agents": {"call_policy": request.param, "timeout_seconds": 60},
    }
    profile = ARMS["budget"].profile(validate(Profile, values, "a test"))
    desk = desks.open_desk(
        tmp_path_factory.mktemp("lived"), profile=profile, provider=Distant(),
        lease_seconds=36_000.0,
    )  # fmt: skip
    desks.take_lease(desk, 36_000.0)
    desks.clock_of(desk).set(BEGIN)
    for name, frame in history.frames.items():
        known = frame[frame.index <= BEGIN - duration(name)]
        with desk.database.transaction():
            desk.database.store_bars("BTCUSD", name, known)
    desk.database.apply_profile("BTCUSD", profile.model_dump_json(), profile.digest())
    caught_up = tuple(one.key for one in desk.wake("BTCUSD"))
    outcomes: list[Outcome] = []
    for _ in range(scaled(CLOSES, 60)):
        moment = desks.clock_of(desk).now() + desks.QUARTER
        desks.clock_of(desk).set(moment)
        outcomes += desk.wake("BTCUSD")
    yield Lived(profile, caught_up, outcomes, desk.database)
    desk.database.close()


def test_the_desk_lived_through_much(lived: Lived) -> None:
    """Without this the comparisons below would prove little."""
    assert {one.state for one in lived.outcomes} == {"done"}
    assert {tick.action for tick in lived.ticks} >= {"HOLD"} < {tick.action for tick in lived.ticks}
    closes: dict[datetime, int] = {}
    for tick in lived.ticks:
        closes[tick.close_time] = closes.get(tick.close_time, 0) + 1
    assert 2 in closes.values() and 1 in closes.values()


def apart(one: TickSeen, other: TickSeen) -> dict[str, tuple[object, object]]:
    """What two ticks differ in, by field."""
    names = [item.name for item in dataclasses.fields(TickSeen)]
    pairs = {name: (getattr(one, name), getattr(other, name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def test_a_replay_gives_the_ticks_of_the_live_desk(lived: Lived, history: History) -> None:
    keys = (*lived.caught_up, *(one.key for one in lived.outcomes))
    course = dataclasses.replace(Course.of(history), keys=keys)
    voice = RulesProvider()
    arm = run_arm(course, ARMS["budget"], lived.profile, Voice(voice.submit, voice.name))
    again = arm.ticks[len(lived.caught_up) :]
    assert [tick.key for tick in again] == [tick.key for tick in lived.ticks]
    for then, now in zip(lived.ticks, again, strict=True):
        assert same_but_time(then, now), apart(then, now)


def test_the_journal_gives_the_ticks_of_the_live_desk(lived: Lived, tmp_path: Path) -> None:
    into = desks.open_database(tmp_path)
    found = list(replay(lived.database, into, "BTCUSD"))
    into.close()
    assert {one.state for one in found} == {"same"}, [one for one in found if one.state != "same"]
    assert len(found) >= len(lived.outcomes)
    assert not any(one.misses for one in found)
