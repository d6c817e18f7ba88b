"""Arms over a history: interrupted, spread over workers, or run in one go, they end the same."""

from __future__ import annotations

import dataclasses
import gzip
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.contracts import ADJUSTMENT_BOUND
from instance_database import TickKey
from tests.cases import cases
from tests.examples import examples
from tests.worlds import l1_markets
from torra.bridges.paper import PaperPosition
from torra.clock import duration, iso
from torra.config import ROOT, Profile, validate
from torra.errors import ConfigError
from torra.evaluation.observations import (
    ArmObservation,
    TickObservation,
    arm_of,
    as_json,
    same_but_time,
    tick_of,
)
from torra.replay import arms, replaying, runner, voices
from torra.replay.arms import ARMS, Arm
from torra.replay.l1.sweep import L1Backtest
from torra.replay.l1.trades import left_open
from torra.replay.replaying import ReplayPlan, TradingCosts, run, run_beside, run_on
from torra.replay.runner import AgentSource, Schedule, run_arm
from torra.replay.shards import arm_words, checkpoints, executors, parcels
from torra.replay.shards.checkpoints import Checkpoint
from torra.replay.shards.history import History, cut, load
from torra_trader import run_close

pytestmark = pytest.mark.usefixtures("scored_once")

END = datetime.fromisoformat("2021-11-12T00:00:00+00:00")
HOURS = examples(9, 5)
BEGIN = END - timedelta(hours=HOURS)
TICKS = HOURS * 5
"""Of each arm, more than a chunk."""

CHUNK = 20
MIDNIGHT = END - timedelta(days=1)
ALL = ("l1", "budget", "placebo")
ALL_ARMS = [arm.name for arm in arms.chosen(ALL)]
GATE = Profile().gate


@pytest.fixture(scope="module")
def history() -> History:
    return sample()


def sample() -> History:
    files = [str(ROOT / "sample_data" / f"BTCUSD_{name}.csv") for name in ("M15", "H1")]
    return cut(load(Path("nowhere"), "BTCUSD", files), None, END)


def plan_of(history: History, names: tuple[str, ...] = ALL, **changes: object) -> ReplayPlan:
    level = changes.pop("level", 0.3)
    profile = validate(Profile, {"thresholds": {"buy": level, "sell": level}, **changes}, "a test")
    return ReplayPlan(
        "trial",
        history,
        profile,
        arms.chosen(names),
        TradingCosts(15.0, 0.0, 0.0),
        BEGIN,
        END,
        seed=7,
    )


@pytest.fixture(scope="module")
def whole(history: History) -> list[ArmObservation]:
    return run(plan_of(history), voices.rules_voice)


def same(one: ArmObservation, other: ArmObservation) -> bool:
    equal = dataclasses.replace(one, ticks=()) == dataclasses.replace(other, ticks=())
    pairs = zip(one.ticks, other.ticks, strict=True)
    return equal and all(same_but_time(*pair) for pair in pairs)


def test_a_plan_trades_at_its_own_costs(history: History) -> None:
    plan = dataclasses.replace(plan_of(history), costs=TradingCosts(3.0, 0.0, 0.5))
    spec = plan.profile.symbol("BTCUSD")
    assert (spec.spread, spec.slippage) == (3.0, 0.5)


def test_every_arm_runs_on_the_same_ticks(whole: list[ArmObservation]) -> None:
    keys = [[tick.key for tick in arm.ticks] for arm in whole]
    assert all(found == keys[0] for found in keys)
    assert len(keys[0]) == TICKS
    assert [arm.name for arm in whole] == [
        "l1", "budget", "placebo_shuffled", "placebo_flipped", "placebo_random",
    ]  # fmt: skip


def test_the_control_is_l1_and_the_others_keep_their_bound(whole: list[ArmObservation]) -> None:
    control, *others = whole
    assert all(tick.scores == tick.l1 and not any(tick.adjustments) for tick in control.ticks)
    assert all(tick.source_type == "L1_ONLY" for tick in control.ticks)
    for arm in others:
        moves = [a for tick in arm.ticks for a in tick.adjustments]
        assert any(moves)
        assert max(map(abs, moves)) <= ADJUSTMENT_BOUND
        assert [tick.l1 for tick in arm.ticks] == [tick.l1 for tick in control.ticks]


class Stopped(Exception):
    pass


def stopping_at(number: int) -> Callable[[str, int], None]:
    done = [0]

    def on_event(name: str, more: int) -> None:
        del name
        done[0] += more
        if done[0] >= number:
            raise Stopped

    return on_event


@pytest.mark.parametrize(
    "at",
    [
        pytest.param(1, marks=pytest.mark.nightly),
        pytest.param(30, marks=pytest.mark.nightly),
        2 * TICKS + 10,
    ],
)
def test_an_interrupted_replay_ends_like_one_that_was_not(
    at: int, history: History, whole: list[ArmObservation], tmp_path: Path
) -> None:
    plan = plan_of(history)
    with pytest.raises(Stopped):
        run(plan, voices.rules_voice, folder=tmp_path, chunk=CHUNK, on_ticks=stopping_at(at))
    again = run(plan, voices.rules_voice, folder=tmp_path, chunk=CHUNK)
    assert all(same(one, other) for one, other in zip(again, whole, strict=True))
    from_disk = run(plan, voices.rules_voice, folder=tmp_path)
    assert all(same(one, other) for one, other in zip(from_disk, whole, strict=True))


@pytest.mark.journey
def test_a_chunk_that_was_half_written_does_not_count(
    history: History, whole: list[ArmObservation], tmp_path: Path
) -> None:
    plan = plan_of(history)
    with pytest.raises(Stopped):
        run(plan, voices.rules_voice, folder=tmp_path, chunk=CHUNK, on_ticks=stopping_at(CHUNK + 2))
    lines = tmp_path / "l1.ticks.gz"
    lines.write_bytes(lines.read_bytes() + b"\x1f\x8bhalf a chunk")
    again = run(plan, voices.rules_voice, folder=tmp_path, chunk=CHUNK)
    assert same(again[0], whole[0])


CHILD = """
from datetime import datetime
from pathlib import Path
from tests.replay import test_replay_runner as here
from torra.replay import voices
from torra.replay.replaying import run

here.BEGIN = datetime.fromisoformat({begin!r})  # a night's is another one
history = here.sample()
run(here.plan_of(history), voices.rules_voice, folder=Path({folder!r}), chunk=5,
    on_ticks=lambda name, number: print(name, number, flush=True))
"""


@pytest.mark.journey
def test_a_killed_replay_ends_like_one_that_was_not(
    history: History, whole: list[ArmObservation], tmp_path: Path, scaled: Callable[..., int]
) -> None:
    """Each life of the process is killed a few ticks further on, in the middle of its work."""
    script = CHILD.format(folder=str(tmp_path), begin=BEGIN.isoformat())
    for life in range(scaled(40)):
        with subprocess.Popen(
            [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            for _ in range(7 + life % 11):
                child.stdout.readline()
            child.kill()
    again = run(plan_of(history), voices.rules_voice, folder=tmp_path, chunk=CHUNK)
    assert all(same(one, other) for one, other in zip(again, whole, strict=True))


@pytest.mark.journey
def test_jobs_on_an_executor_give_the_same_arms(
    history: History, whole: list[ArmObservation]
) -> None:
    with executors.synchronous_executor() as executor:
        found = run_on(plan_of(history), executor)
    assert all(same(one, other) for one, other in zip(found, whole, strict=True))


@pytest.mark.journey
def test_arms_that_ran_beside_each_other_are_the_same_to_the_byte(
    history: History, whole: list[ArmObservation], tmp_path: Path
) -> None:
    """In whatever order they begin: a placebo waits for its source."""
    plan, (here, beside) = plan_of(history), (tmp_path / "here", tmp_path / "beside")
    run(plan, voices.rules_voice, folder=here)
    with executors.synchronous_executor() as executor:
        told = run_beside(plan, executor, beside, first=[arm.name for arm in plan.arms[::-1]])
    assert all(same(one, other) for one, other in zip(told, whole, strict=True))
    assert [kept(beside, arm) for arm in ALL_ARMS] == [kept(here, arm) for arm in ALL_ARMS]
    found = run(plan, nobody_is_asked, folder=beside)
    assert all(same(one, other) for one, other in zip(found, whole, strict=True))


@pytest.mark.journey
def test_what_runs_beside_goes_on_from_where_it_was(
    history: History, whole: list[ArmObservation], tmp_path: Path
) -> None:
    plan = plan_of(history)
    with pytest.raises(Stopped):
        run(
            plan,
            voices.rules_voice,
            folder=tmp_path,
            chunk=CHUNK,
            on_ticks=stopping_at(TICKS + CHUNK + 2),
        )
    begun = Checkpoint(tmp_path, "budget", plan.identity(ARMS["budget"])).state
    assert begun is not None and 0 < begun["at"] < len(whole[0].ticks)
    with executors.synchronous_executor() as executor:
        told = run_beside(plan, executor, tmp_path)
    found = run(plan, nobody_is_asked, folder=tmp_path)
    for one, other, arm in zip(told, found, whole, strict=True):
        assert same(one, arm) and same(other, arm)


def test_an_interruption_waits_for_nothing_that_is_being_read(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One arm was run before and is read while another one runs."""
    run(plan_of(history, ("l1",)), voices.rules_voice, folder=tmp_path)
    begun, read = threading.Event(), list[object]()

    def slow(told: Any) -> TickObservation:
        read.append(told)
        begun.set()
        time.sleep(0.05)
        return tick_of(told)

    def interrupted(spec: Any) -> dict[str, Any]:
        del spec
        assert begun.wait(60.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints, "tick_of", slow)
    monkeypatch.setattr(replaying, "run_part", interrupted)
    with executors.synchronous_executor() as executor, pytest.raises(KeyboardInterrupt):
        run_beside(plan_of(history, ("l1", "budget")), executor, tmp_path)
    assert 0 < len(read) < TICKS


def kept(folder: Path, arm: str) -> tuple[Any, list[Any]]:
    """Return the state of a kept arm and its lines, but for the time that each tick took."""
    state = json.loads((folder / f"{arm}.state.json").read_text())
    # of the compressed bytes, in which the times are too
    state.pop("length")
    with gzip.open(folder / f"{arm}.ticks.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows:
        row.get("tick", {}).pop("elapsed_ms", None)
    return state, rows


def nobody_is_asked(arm: Arm) -> AgentSource:
    """The voice of an arm that is done already, and would be another one if it were asked."""
    del arm
    return AgentSource()


def test_an_arm_goes_through_a_parcel_unchanged(whole: list[ArmObservation]) -> None:
    for arm in whole:
        assert parcels.arm_from(parcels.packed_arm(arm)) == arm
        assert arm_of(as_json(arm)) == arm


def test_placebos_use_the_words_of_the_reference(whole: list[ArmObservation]) -> None:
    budget = whole[1]
    said = {(tick.timeframe, iso(tick.bar_time)): tick.adjustments for tick in budget.ticks}
    flipped = arm_words.placebo("flipped", budget, 1, GATE)
    assert all(
        words.adjustments == tuple(0.0 - a for a in said[place]) for place, words in flipped.items()
    )
    shuffled = arm_words.placebo("shuffled", budget, 1, GATE)
    assert Counter(words.adjustments for words in shuffled.values()) == Counter(said.values())
    random = arm_words.placebo("random", budget, 1, GATE)
    sizes = Counter(tuple(map(abs, words.adjustments)) for words in random.values())
    assert sizes == Counter(tuple(map(abs, moves)) for moves in said.values())
    assert (
        arm_words.placebo("random", budget, 1, GATE)
        == random
        != arm_words.placebo("random", budget, 2, GATE)
    )


def test_a_placebo_trades_at_the_size_of_its_source(whole: list[ArmObservation]) -> None:
    """With the other sign on the same tick gate and conviction leave what they left the source."""
    budget, flipped = whole[1], whole[3]
    sizes = [[t.multiplier * t.conviction for t in arm.ticks] for arm in (budget, flipped)]
    assert sizes[1] == pytest.approx(sizes[0], abs=1e-8)
    assert sum(sizes[0]) < 0.9 * len(sizes[0])


def test_the_end_of_the_bars_closes_what_is_open(history: History) -> None:
    plan = plan_of(history, ("l1",), on_opposite="hold", level=0.05)
    course = Schedule.of(plan.history, begin=END - timedelta(hours=9), end=END)
    cutting = dataclasses.replace(course, keys=course.keys[:40])
    seen = run_arm(cutting, ARMS["l1"], plan.profile, voices.rules_voice(ARMS["l1"]))
    assert seen.trades
    assert seen.trades[-1].reason == "END"
    assert seen.trades[-1].closed < course.keys[39].bar_time + timedelta(hours=1)


@pytest.mark.parametrize(
    ("side", "levels", "told"),
    [
        ("LONG", (98.0, 104.0), (103.0, 1.5, 1500.0)),
        ("SHORT", (104.0, 92.0), (103.5, -0.875, -1750.0)),
        ("LONG", (100.0, 100.0), (103.0, 0.0, 1500.0)),
    ],
    ids=["long", "short-at-the-ask", "no-risk"],
)
def test_what_a_position_that_is_left_open_comes_to(
    side: Any, levels: tuple[float, float], told: tuple[float, float, float]
) -> None:
    spec = l1_markets.profile(0.1, spec_spread=0.5).symbol(l1_markets.SYMBOL)
    held = PaperPosition("one", side, 5.0, 100.0, *levels, opened_at=BEGIN)
    event = left_open(held, 103.0, END, spec)
    assert (event.price, event.r_multiple, event.profit) == pytest.approx(told)
    assert event.time == END


def halting(halts: dict[int, str], seen: list[tuple[datetime, str]]) -> Callable[..., Any]:
    """The very run_close, after which the desk is halted at some ticks; `seen` is how it stood."""

    def close(instance: Any, bars: Any, *, edges: Any) -> Any:
        state = edges.database.trading_state()
        first = len(seen)
        seen.extend((bar.bar_time + duration(bar.timeframe), state) for bar in bars)
        outcomes = run_close(instance, bars, edges=edges)
        for at in range(first + 1, len(seen) + 1):
            if at in halts:
                edges.database.halt(halts[at])
        return outcomes

    return close


def test_a_halt_is_that_of_its_own_day(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last tick before midnight halts: the first of the new day runs on an active desk."""
    course = Schedule.of(history, begin=END - timedelta(hours=25), end=END)
    late = course.keys[: next(n for n, key in enumerate(course.keys) if closes(key) >= MIDNIGHT)]
    known: list[tuple[datetime, str]] = []
    monkeypatch.setattr(runner, "run_close", halting({len(late): "late", 30: "later"}, known))
    seen = run_arm(
        dataclasses.replace(course, keys=course.keys[:30]), ARMS["l1"], Profile(), AgentSource()
    )
    assert seen.halts == 2, "one before midnight, one in the very last tick"
    assert {state for _, state in known} == {"ACTIVE"}


def test_a_halted_desk_rests_until_midnight(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = Schedule.of(history, begin=MIDNIGHT - timedelta(hours=3), end=MIDNIGHT)
    known: list[tuple[datetime, str]] = []
    monkeypatch.setattr(runner, "run_close", halting({2: "early"}, known))
    assert run_arm(course, ARMS["l1"], Profile(), AgentSource()).halts == 1
    assert [state for _, state in known[:-2]] == ["ACTIVE"] * 2 + ["HALTED"] * (len(known) - 4)
    assert known[-2:] == [(MIDNIGHT, "ACTIVE")] * 2, "both timeframes close at midnight"


def test_the_pass_on_l1_counts_a_halt_in_the_last_tick_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    profile = l1_markets.profile(0.1, risk_max_signals_per_hour=1, on_opposite="reverse")
    bars = l1_markets.history(l1_markets.walk(11, 345, holes=0.0), single=True)
    course, at = Schedule.of(bars), list[int]()
    note = runner._note_a_halt

    def noted(run: Any, day: str) -> None:
        before = run.halts
        note(run, day)
        at.extend([run.at] * (run.halts - before))

    monkeypatch.setattr(runner, "_note_a_halt", noted)
    run_arm(course, ARMS["l1"], profile, AgentSource())
    keys = course.keys[: at[0] + 1]
    cut_off = run_arm(dataclasses.replace(course, keys=keys), ARMS["l1"], profile, AgentSource())
    found = L1Backtest(course.instance, cut(bars, None, closes(keys[-1])).frames).run(profile)
    assert (found.trades, found.halts) == (cut_off.trades, cut_off.halts)
    assert found.halts == 1


def closes(key: TickKey) -> datetime:
    return key.bar_time + duration(key.timeframe)


@pytest.mark.parametrize(
    ("names", "message"),
    [(("l2",), "known are"), (("placebo",), "add one of")],
    ids=["unknown", "placebo-alone"],
)
def test_arms_that_cannot_be(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        arms.chosen(names)


@pytest.mark.parametrize(
    ("text", "costs"),
    [("", (15.0, 0.0, 0.0)), ("1", (1.0, 0.0, 0.0)), (",7,2", (15.0, 7.0, 2.0))],
    ids=["empty", "one", "gap"],
)
def test_costs_that_are_not_given_are_the_profiles(
    text: str, costs: tuple[float, float, float]
) -> None:
    assert dataclasses.astuple(TradingCosts.read(text, Profile().symbol("BTCUSD"))) == costs


@cases("text", ["a", "1,2,3,4", "-1", "inf", "nan"])
def test_costs_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--costs"):
        TradingCosts.read(text, Profile().symbol("BTCUSD"))
