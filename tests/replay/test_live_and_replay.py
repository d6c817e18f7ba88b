"""A replay is the live desk: the same bars give the same ticks live, in a replay and again.

The live desk computes each tick on the last 750 bars, in a database, with debates in threads. The
replay looks it up in one pass over the whole history, in memory. The journal has each tick alone.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from instance_database import Database
from tests.doubles import scripted
from tests.worlds import desks
from torra.clock import duration, iso
from torra.config import ROOT, Profile, validate
from torra.desk.outlook import ContextFeeds
from torra.evaluation.observations import ArmObservation, TickObservation, same_but_time
from torra.evaluation.pivotal_effect import pivotal_effect
from torra.evaluation.recomposition import BrainNumbers
from torra.providers.rules.provider import RulesProvider
from torra.replay.arms import ARMS
from torra.replay.outlook_then import PointInTimeData, read_outlook
from torra.replay.runner import AgentSource, Schedule, run_arm
from torra.replay.shards.history import History, load
from torra.replay.shards.seen import tick_seen
from torra_trader import TickOutcome

pytestmark = pytest.mark.usefixtures("lessons_come_in_time")

CLOSES = 1600
"""Of them every fourth one of two timeframes: 2,000 ticks."""

CALENDAR = "calendar.csv"
HEADLINES = "headlines.jsonl"
BEGIN = datetime.fromisoformat("2021-11-05T09:30:00+00:00")
"""So that a night of closes ends before the hole in the sample of 2021-11-27."""


class Lived(NamedTuple):
    """A desk that went from close to close: what each tick came to, and what it left behind.

    `caught_up` are those of its first wake, which came late.
    """

    home: Path
    profile: Profile
    caught_up: list[TickOutcome]
    outcomes: list[TickOutcome]
    database: Database

    @property
    def ticks(self) -> list[TickObservation]:
        return [tick_seen(one.result, 0.0) for one in self.outcomes if one.result is not None]


@pytest.fixture(scope="module")
def history() -> History:
    files = [str(ROOT / "sample_data" / f"BTCUSD_{name}.csv") for name in ("M15", "H1")]
    return load(Path("nowhere"), "BTCUSD", files)


KINDS: dict[str, dict[str, Any]] = {
    "always": {},
    "pivotal": {"agents": {"call_policy": "pivotal", "pivotal_sample": 0.3}},
    "calendar and headlines": {
        "agents": {"mode": "full", "include_news": True},
        "events": {"calendar": CALENDAR},
        "news": {"sources": ["file"], "file": HEADLINES},
    },
}


def write_outlook(home: Path) -> None:
    """An event every four hours, a headline every fifty minutes, some of them about bitcoin."""
    hours = [BEGIN + timedelta(hours=4 * number) for number in range(105)]
    rows = [f"{iso(moment)},USD,high,event {number}" for number, moment in enumerate(hours)]
    (home / CALENDAR).write_text("\n".join(["time,currency,impact,name", *rows]) + "\n")
    words = ("Bitcoin soars, demand is strong", "Bitcoin slumps, trading is weak", "Wheat is flat")
    told = [
        {
            "headline": f"{words[number % 3]}, report {number} of {number * 37}",
            "published": iso(BEGIN + timedelta(minutes=50 * number - 400)),
            "first_seen": iso(BEGIN + timedelta(minutes=50 * number - 398, seconds=30)),
        }
        for number in range(500)
    ]
    (home / HEADLINES).write_text("".join(f"{json.dumps(one)}\n" for one in told))


@pytest.fixture(
    scope="module", params=[pytest.param("always", marks=pytest.mark.nightly), *list(KINDS)[1:]]
)
def lived(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    history: History,
    scaled: Callable[..., int],
) -> Iterator[Lived]:
    """A desk whose history was imported, so that it knows the record high that a replay knows."""
    kind, home = KINDS[request.param], tmp_path_factory.mktemp("lived")
    agents = {"timeout_seconds": 60, **kind.get("agents", {})}
    limits = {"thresholds": {"buy": 0.15, "sell": 0.15}, "on_opposite": "reverse"}
    values = {**limits, **kind, "agents": agents}
    # As the arm runs it that is compared: agents that count at once.
    values["agents"]["influence"] = "full"
    profile = validate(Profile, values, "a test")
    write_outlook(home)
    desk = desks.open_desk(home, profile=profile, provider=scripted.Distant())
    outlook = ContextFeeds(home, desk.database, {}, [profile], now=desk.clock.now)
    desk.roster.setups = {
        name: dataclasses.replace(
            setup,
            news=outlook.news(setup.instance, profile),
            events=outlook.events(setup.instance, profile),
        )
        for name, setup in desk.setups.items()
    }
    desks.open_for_work(desk)
    desks.clock_of(desk).set(BEGIN)
    for name, frame in history.frames.items():
        known = frame[frame.index <= BEGIN - duration(name)]
        with desk.database.transaction():
            desk.database.store_bars("BTCUSD", name, known)
    desk.database.apply_profile("BTCUSD", profile.model_dump_json(), profile.digest())
    caught_up = desk.wake("BTCUSD")
    outcomes: list[TickOutcome] = []
    for _ in range(scaled(CLOSES, 24 if request.param == "pivotal" else 28)):
        moment = desks.clock_of(desk).now() + desks.QUARTER
        desks.clock_of(desk).set(moment)
        outcomes += desk.wake("BTCUSD")
    yield Lived(home, profile, caught_up, outcomes, desk.database)
    desk.database.close()


@pytest.mark.journey
def test_the_desk_lived_through_much(lived: Lived, history: History) -> None:
    """Without this the comparisons below would prove little."""
    for one in lived.outcomes:
        there = one.key.bar_time in history.frames[one.key.timeframe].index
        assert (one.state == "done") is there, "all but the holes of the sample"
    assert {tick.action for tick in lived.ticks} >= {"HOLD"} < {tick.action for tick in lived.ticks}
    closes: dict[datetime, int] = {}
    for tick in lived.ticks:
        closes[tick.close_time] = closes.get(tick.close_time, 0) + 1
    assert 2 in closes.values() and 1 in closes.values()
    if lived.profile.agents.include_news:
        assert {tick.rule_veto for tick in lived.ticks} == {True, False}
        counted = [one.record["news"]["unique"] for one in lived.outcomes if one.record]
        assert len(set(counted)) > 3


def apart(one: TickObservation, other: TickObservation) -> dict[str, tuple[object, object]]:
    """What two ticks differ in, by field."""
    names = [item.name for item in dataclasses.fields(TickObservation)]
    pairs = {name: (getattr(one, name), getattr(other, name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@pytest.mark.journey
def test_a_replay_gives_the_ticks_of_the_live_desk(lived: Lived, history: History) -> None:
    keys = tuple(one.key for one in (*lived.caught_up, *lived.outcomes))
    outlook = read_outlook(lived.home, desks.BTC, lived.profile, *history.period)
    # As a worker on another machine gets it.
    outlook = PointInTimeData.of(json.loads(json.dumps(outlook.as_json())))
    course = dataclasses.replace(Schedule.of(history, outlook=outlook), keys=keys)
    voice = RulesProvider()
    # An arm that leaves the settings of the desk as they are.
    mode = dataclasses.replace(ARMS[lived.profile.agents.mode], agents={})
    assert mode.profile(lived.profile) == lived.profile
    arm = run_arm(course, mode, lived.profile, AgentSource(voice.submit, voice.name))
    again = arm.ticks[len(lived.caught_up) :]
    assert [tick.key for tick in again] == [tick.key for tick in lived.ticks]
    for then, now in zip(lived.ticks, again, strict=True):
        assert same_but_time(then, now), apart(then, now)


def test_what_was_sampled_is_known_from_the_ticks(lived: Lived) -> None:
    """What the policy asked on for a sibling's sake is no sample of what it could have skipped."""
    outcomes = [one for one in (*lived.caught_up, *lived.outcomes) if one.result is not None]
    ticks = tuple(tick_seen(one.result, 0.0) for one in outcomes if one.result is not None)
    found = pivotal_effect(
        None, ArmObservation("pivotal", ticks, ()), BrainNumbers.of(lived.profile)
    )
    if lived.profile.agents.call_policy != "pivotal":
        return
    flags = [one.result.debated.deliberation.flags for one in outcomes if one.result is not None]
    assert found.skipped == sum(one.source_type == "AGENT_SKIPPED" for one in ticks) > 0
    assert found.sampled == sum("pivotal_sample" in own for own in flags) > 0
