"""A tick that was told of its seats' past runs again with what it was told; an arm has its own."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database
from tests.worlds import desks, random_markets, swarm_calls
from tests.worlds.journals import again, change
from torra.desk.timers import next_close
from torra.evaluation.observations import ArmObservation, same_but_time
from torra.evaluation.standing import past_calls
from torra.evaluation.standing.track_record import TrackRecord, TrackRecordQuery
from torra.providers.rules.provider import RulesProvider
from torra.replay import runner
from torra.replay.arms import Arm
from torra.replay.rerun.differences import TickDiffers
from torra.replay.runner import AgentSource, Schedule, run_arm
from torra.replay.shards import seen
from torra.replay.shards.arm_standing import ArmPast, past_of
from torra.replay.shards.checkpoints import Checkpoint
from torra.store import replay_queries

BTC = desks.BTC.id
STEPS = 16


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a desk whose swarm was told of its own calls."""
    folder, rules = tmp_path_factory.mktemp("told"), RulesProvider()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(past_calls, "LEAST", 3)
        patch.setattr(past_calls, "BARS", {"bars_4": 2, "bars_16": 3})
        desk = desks.open_desk(folder, profile=swarm_calls.profile(), provider=rules)
        desks.open_for_work(desk)
        settings = swarm_calls.profile()
        desk.database.apply_profile(BTC, settings.model_dump_json(), settings.digest())
        for number in range(STEPS):
            clock = desks.clock_of(desk)
            # A second past the close: a desk that stands at it is warming up.
            clock.set(next_close(clock.now(), ["M15"]) + swarm_calls.LATER)
            desk.wake(BTC)
            if number == 0:
                for thread in threading.enumerate():
                    if thread.name == "standing":
                        thread.join(30.0)
        desk.close()
    return folder / "torra.db"


def newest(source: Database) -> tuple[str, dict[str, Any]]:
    """Return one of the last ticks that were told of a share: two more come after it."""
    sql = (
        "SELECT torra_key, record FROM journal "
        "WHERE json_extract(record, '$.standing.numbers.liquidity_hit_share') IS NOT NULL "
        "ORDER BY rowid DESC LIMIT 1 OFFSET 2"
    )
    (row,) = source.connection().query(sql)
    return row["torra_key"], json.loads(row["record"])


def test_every_tick_runs_again_to_the_same_record(source: Database, tmp_path: Path) -> None:
    found = again(source, tmp_path)
    assert {one.state for one in found.values()} == {"same"}, [
        (one.key, one.detail, dict(one.differences)) for one in found.values()
    ]
    told = [(one.then.get("standing") or {}).get("numbers") for one in found.values()]
    assert not all(told) and sum(map(bool, told)) > STEPS // 3


@pytest.mark.journey
def test_an_altered_value_is_noticed_and_named(source: Database, tmp_path: Path) -> None:
    key, record = newest(source)
    assert record["standing"]["numbers"]["liquidity_hit_share"] != 0.99
    sql = "UPDATE journal SET record = json_set(record, ?, 0.99) WHERE torra_key = ?"
    assert change(source, sql, "$.standing.numbers.liquidity_hit_share", key) == 1
    keys = replay_queries.journalled(source, BTC)
    found = again(source, tmp_path, *keys[keys.index(key) :])
    assert [one.key for one in found.values() if one.state != "same"] == [key]
    first = TickDiffers.of(source, found[key])
    assert first.field == "features.standing.liquidity_hit_share.value" and first.now == 0.99


# --- arms ---------------------------------------------------------------------------------------


def arm_of(bars: int, checkpoint: Checkpoint | None = None) -> tuple[ArmObservation, list[Any]]:
    """Run an arm of a swarm on a random walk; return also what its ticks were told."""
    told: list[Any] = []
    history = random_markets.random_walk(bars, 7)
    settings = swarm_calls.profile()
    voice = AgentSource(debater=swarm_calls.debater())
    arm = Arm("swarm", "a swarm", agents={"mode": "swarm"})
    call = ArmPast.__call__

    def noted(self: ArmPast, asked: TrackRecordQuery) -> TrackRecord:
        told.append(call(self, asked))
        return told[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArmPast, "__call__", noted)
        patch.setattr(past_calls, "LEAST", 2)
        found = run_arm(Schedule.of(history), arm, settings, voice, checkpoint=checkpoint, chunk=25)
    return found, told


class Interrupted(Exception):
    """Stops an arm in its middle."""


@pytest.mark.journey
def test_an_arm_learns_from_its_own_calls_and_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    whole, told = arm_of(300)
    assert sum(bool(one) for one in told) > 30
    assert {name.rpartition("_")[0] for name in told[-1].numbers} >= {"win_share", "judge_hit"}
    identity = {"program": "a test"}
    cut, tick_seen = 0, seen.tick_seen

    def stops(*args: Any) -> Any:
        nonlocal cut
        cut += 1
        if cut == 60:
            raise Interrupted
        return tick_seen(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "tick_seen", stops)
        with pytest.raises(Interrupted):
            arm_of(300, Checkpoint(tmp_path, "swarm", identity))
    held = Checkpoint(tmp_path, "swarm", identity)
    assert held.state is not None and held.state["past"]["books"]
    again, rest = arm_of(300, held)
    assert 0 < len(rest) < len(told) and rest == told[-len(rest) :]
    pairs = zip(whole.ticks, again.ticks, strict=True)
    assert all(same_but_time(*pair) for pair in pairs)


def test_an_arm_that_asks_nobody_or_wants_none_has_no_past() -> None:
    settings = swarm_calls.profile(standing="off")
    assert past_of(settings, asks=True) is None
    assert past_of(swarm_calls.profile(), asks=False) is None
    assert isinstance(past_of(swarm_calls.profile(), asks=True), ArmPast)
