"""The folder of a replay: one process at a time, one replay only, and nothing read in part."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.replay.test_replay_runner import (
    CHUNK,
    TICKS,
    Stopped,
    plan_of,
    same,
    sample,
    stopping_at,
)
from torra.clock import System
from torra.config import Profile
from torra.errors import ConfigError
from torra.evaluation.observations import (
    NOTHING,
    AgentOpinion,
    ArmObservation,
    Interner,
    SwarmObservation,
    TickObservation,
    as_json,
    tick_of,
)
from torra.exhibits import report
from torra.replay import folders, voices
from torra.replay.arms import ARMS
from torra.replay.replaying import FOLDER, ReplayPlan, run, run_on
from torra.replay.shards import executors, trials
from torra.replay.shards.checkpoints import Checkpoint
from torra.replay.shards.history import History

NAME = "trial"


@pytest.fixture(scope="module")
def history() -> History:
    return sample()


@pytest.fixture(scope="module")
def plan(history: History) -> ReplayPlan:
    return plan_of(history, ("l1",))


@pytest.fixture(scope="module")
def finished(
    plan: ReplayPlan, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, ArmObservation]:
    home = tmp_path_factory.mktemp("finished")
    folders.begin(home, plan)
    return home, run(plan, voices.rules_voice, folder=home / FOLDER / NAME, chunk=CHUNK)[0]


@pytest.fixture
def home(finished: tuple[Path, ArmObservation], tmp_path: Path) -> Path:
    shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)
    return tmp_path


def files(home: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


# --- one replay, one process ----------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{"on_opposite": "hold"}, {"level": 0.4}], ids=str)
def test_a_folder_of_another_replay_stays_as_it_is(
    changes: dict[str, Any], home: Path, history: History
) -> None:
    before = files(home)
    with pytest.raises(ConfigError, match="another --name"):
        folders.begin(home, plan_of(history, ("l1",), **changes))
    assert files(home) == before


def test_the_settings_of_a_folder_are_all_of_them(
    home: Path, plan: ReplayPlan, history: History
) -> None:
    shorter = replace(history, frames={"H1": history.frames["H1"]})
    for other in (
        replace(plan, seed=plan.seed + 1),
        replace(plan, begin=None),
        replace(plan, costs=replace(plan.costs, commission=1.0)),
        replace(plan, history=shorter),
    ):
        with pytest.raises(ConfigError, match="another --name"):
            folders.begin(home, other)


def test_more_arms_of_the_same_replay_may_join(home: Path, history: History) -> None:
    assert folders.begin(home, plan_of(history, ("l1", "budget"))) == 2
    assert folders.begin(home, plan_of(history, ("l1",))) == 2
    assert [arm.name for arm in folders.made_of(home, NAME).arms] == ["l1", "budget"]


def of_another_version(home: Path, *arms: str) -> None:
    """Let the arms look as an older program left them; it knew a profile without some setting."""
    for arm in arms:
        path = home / FOLDER / NAME / f"{arm}.state.json"
        held = json.loads(path.read_text())
        held["identity"] |= {"program": "an older one", "profile": "its digest"}
        path.write_text(json.dumps(held))


@pytest.mark.journey
def test_what_another_version_left_half_done_starts_anew(home: Path, history: History) -> None:
    """Its finished arm too: results of two versions are never mixed."""
    both = plan_of(history, ("l1", "budget"))
    folders.begin(home, both)
    stopped = stopping_at(TICKS + CHUNK + 1)
    with pytest.raises(Stopped):
        run(both, voices.rules_voice, folder=home / FOLDER / NAME, chunk=CHUNK, on_ticks=stopped)
    of_another_version(home, "l1", "budget")
    told: list[str] = []
    folders.begin(home, both, told.append)
    assert len(told) == 1 and "by another version of this program: it starts anew" in told[0]
    assert folders.done(home, both) == {"l1": 0, "budget": 0}
    seen = run(both, voices.rules_voice, folder=home / FOLDER / NAME)
    assert [len(arm.ticks) for arm in seen] == [TICKS, TICKS]
    folders.begin(home, both, told.append)
    assert len(told) == 1, "what this version made is kept"


def test_what_was_paid_for_is_not_thrown_away(home: Path, history: History) -> None:
    both = plan_of(history, ("l1", "budget"))
    folders.begin(home, both)
    of_another_version(home, "l1")
    held = files(home)
    paid = both.profile.model_copy(
        update={"agents": both.profile.agents.model_copy(update={"provider": "anthropic"})}
    )
    with pytest.raises(ConfigError, match="answers were paid for: give this one another --name"):
        folders._start_anew(
            home / FOLDER / NAME, ["l1", "budget"], print, paid=bool(paid.agents.paid())
        )
    assert files(home) == held


def test_what_another_version_finished_stays(home: Path, history: History) -> None:
    of_another_version(home, "l1")
    before = files(home)
    with pytest.raises(ConfigError, match="another --name"):
        folders.begin(home, plan_of(history, ("l1",)))
    assert files(home) == before


def test_a_folder_is_one_process_s(tmp_path: Path) -> None:
    with (
        folders.taken(tmp_path / NAME),
        pytest.raises(ConfigError, match="trial is running already"),
        folders.taken(tmp_path / NAME),
    ):
        pass
    with folders.taken(tmp_path / NAME):
        pass


# --- what is read ---------------------------------------------------------------------------------


def test_a_finished_arm_is_read_whole(
    finished: tuple[Path, ArmObservation], plan: ReplayPlan
) -> None:
    home, seen = finished
    assert folders.seen_of(home, plan, "l1") == seen
    state = json.loads((home / FOLDER / NAME / "l1.state.json").read_text())
    assert (state["done"], state["ticks"], state["trades"]) == (True, TICKS, len(seen.trades))
    assert "store" not in state["state"], "nobody goes on from the end"


def test_an_arm_of_another_program_is_read_and_not_gone_on_with(
    home: Path, plan: ReplayPlan
) -> None:
    rewritten(home, lambda told: told["identity"].update(program="older"))
    assert len(folders.seen_of(home, plan, "l1").ticks) == TICKS
    with pytest.raises(ConfigError, match="another --name"):
        folders.begin(home, plan)


def test_an_arm_of_another_replay_is_not_read(home: Path, plan: ReplayPlan) -> None:
    rewritten(home, lambda told: told["identity"].update(bars="others"))
    with pytest.raises(ConfigError, match="belongs to a replay of other bars"):
        folders.seen_of(home, plan, "l1")


def test_an_arm_that_was_not_run_to_its_end_is_not_read(plan: ReplayPlan, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER / NAME
    folders.begin(tmp_path, plan)
    with pytest.raises(ConfigError, match="not run to its end"):
        folders.seen_of(tmp_path, plan, "l1")
    with pytest.raises(Stopped):
        run(plan, voices.rules_voice, folder=folder, chunk=CHUNK, on_ticks=stopping_at(CHUNK + 2))
    with pytest.raises(ConfigError, match="not run to its end"):
        folders.seen_of(tmp_path, plan, "l1")


def rewritten(home: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = home / FOLDER / NAME / "l1.state.json"
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))


def without_tail(lines: Path, state: Path) -> None:
    del state
    lines.write_bytes(lines.read_bytes()[:-40])


def turned(lines: Path, state: Path) -> None:
    del state
    packed = bytearray(lines.read_bytes())
    packed[200:260] = bytes(60)
    lines.write_bytes(packed)


def of_other_rows(lines: Path, state: Path) -> None:
    lines.write_bytes(gzip.compress(b'{"trade": {"side": "BUY"}}\n'))
    told = json.loads(state.read_text())
    state.write_text(json.dumps(told | {"length": lines.stat().st_size}))


def miscounted(lines: Path, state: Path) -> None:
    del lines
    told = json.loads(state.read_text())
    state.write_text(json.dumps(told | {"ticks": told["ticks"] + 1}))


DAMAGE: dict[str, Callable[[Path, Path], object]] = {
    "no-tail": without_tail,
    "turned": turned,
    "rows": of_other_rows,
    "count": miscounted,
    "no-lines": lambda lines, state: lines.unlink(),
    "state-text": lambda lines, state: state.write_text("{"),
    "state-list": lambda lines, state: state.write_text("[]"),
    "state-keys": lambda lines, state: state.write_text('{"identity": {}}'),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_is_told(how: str, home: Path, plan: ReplayPlan) -> None:
    folder = home / FOLDER / NAME
    DAMAGE[how](folder / "l1.ticks.gz", folder / "l1.state.json")
    with pytest.raises(ConfigError, match=r"is damaged .*remove .*l1.state.json"):
        folders.seen_of(home, plan, "l1")
    with pytest.raises(ConfigError, match="is damaged"):
        Checkpoint(folder, "l1", plan.identity(ARMS["l1"])).lines()


def test_the_remedy_mends_it(
    home: Path, plan: ReplayPlan, finished: tuple[Path, ArmObservation]
) -> None:
    folder = home / FOLDER / NAME
    without_tail(folder / "l1.ticks.gz", folder / "l1.state.json")
    with pytest.raises(ConfigError, match="its end is missing"):
        run(plan, voices.rules_voice, folder=folder)
    (folder / "l1.state.json").unlink()
    assert same(run(plan, voices.rules_voice, folder=folder)[0], finished[1])


def test_a_state_from_which_nothing_can_go_on(home: Path, plan: ReplayPlan) -> None:
    rewritten(home, lambda told: told.update(done=False))
    with pytest.raises(ConfigError, match=r"is damaged .*'store'"):
        run(plan, voices.rules_voice, folder=home / FOLDER / NAME)


@pytest.mark.parametrize(
    "change",
    [
        lambda told: [told],
        lambda told: {**told, "arms": ["l9"]},
        lambda told: {**told, "history": {**told["history"], "frames": {"M15": "AAAA"}}},
        lambda told: {name: told[name] for name in told if name != "costs"},
        lambda told: {**told, "costs": {**told["costs"], "spread": float("nan")}},
        lambda told: {**told, "costs": {**told["costs"], "slippage": "0.1"}},
    ],
    ids=["list", "arm", "bars", "missing", "a spread of nan", "slippage as text"],
)
def test_a_damaged_recipe_is_told(
    change: Callable[[dict[str, Any]], object], home: Path, plan: ReplayPlan
) -> None:
    path = home / FOLDER / NAME / folders.MADE_OF
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(ConfigError, match=r"made_of.json is damaged .*remove its folder"):
        folders.made_of(home, NAME)
    with pytest.raises(ConfigError, match="is damaged"):
        folders.begin(home, plan)


# --- from elsewhere -------------------------------------------------------------------------------


@pytest.mark.journey
def test_arms_of_workers_are_kept_as_if_they_had_been_run_here(
    history: History, tmp_path: Path
) -> None:
    """Also where an arm had been begun here, and another was finished."""
    plan, folder = plan_of(history, ("l1", "budget")), tmp_path / FOLDER / NAME
    with pytest.raises(Stopped):
        run(
            plan,
            voices.rules_voice,
            folder=folder,
            chunk=CHUNK,
            on_ticks=stopping_at(TICKS + CHUNK + 2),
        )
    folders.begin(tmp_path, plan)
    before = (folder / "l1.ticks.gz").read_bytes()
    with executors.synchronous_executor() as executor:
        seen = run_on(plan, executor)
    folders.keep_arms(tmp_path, plan, seen)
    assert (folder / "l1.ticks.gz").read_bytes() == before
    read = [folders.seen_of(tmp_path, plan, arm.name) for arm in plan.arms]
    assert all(same(one, other) for one, other in zip(read, seen, strict=True))
    assert read[1] == seen[1]
    told: list[int] = []
    again = run(plan, voices.rules_voice, folder=folder, on_ticks=lambda _, more: told.append(more))
    assert again == read
    assert told == [TICKS, TICKS], "an arm that is there already was run again"


# --- the log of trials, the documents -------------------------------------------------------------


def test_a_half_written_trial_costs_no_other(tmp_path: Path) -> None:
    trials.log(tmp_path, "GOLD", ["a", "b"], "first")
    path = tmp_path / trials.LOG
    path.write_bytes(path.read_bytes()[:-9])
    assert trials.log(tmp_path, "GOLD", ["c", "d"], "second") == 4
    assert trials.count(tmp_path, "GOLD") == 4
    assert [json.loads(line)["trial"] for line in path.read_text().splitlines()[2:]] == ["c", "d"]


def test_a_log_that_is_no_file_is_told(tmp_path: Path) -> None:
    (tmp_path / trials.LOG).mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"trials.jsonl cannot be read"):
        trials.log(tmp_path, "GOLD", ["a"], "first")
    with pytest.raises(ConfigError, match=r"trials.jsonl cannot be read"):
        trials.count(tmp_path, "GOLD")


def test_a_log_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "replays").mkdir()
    (tmp_path / trials.LOG).symlink_to(tmp_path / "gone" / "trials.jsonl")
    with pytest.raises(ConfigError, match=r"trials.jsonl cannot be written"):
        trials.log(tmp_path, "GOLD", ["a"], "first")


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path, plan: ReplayPlan) -> None:
    (tmp_path / "replays").write_text("a file in the place of the folder")
    for action in (
        lambda: folders.taken(tmp_path / FOLDER / NAME).__enter__(),
        lambda: Checkpoint(tmp_path / FOLDER / NAME, "l1", plan.identity(ARMS["l1"])),
        lambda: trials.log(tmp_path, "GOLD", ["a"], "first"),
    ):
        with pytest.raises(ConfigError, match="cannot be"):
            action()


def test_a_report_takes_the_place_of_its_own_kind_only(tmp_path: Path, plan: ReplayPlan) -> None:
    now = System().real_now()
    own, other = (
        report.document(NAME, kind, "title", "says", plan.history.period, ["l1"], [], [], now)
        for kind in ("replay", "scorecard")
    )
    path = report.write(tmp_path, own, overwrite=True)
    report.write(tmp_path, own, overwrite=True)
    with pytest.raises(ConfigError, match="is replay, no scorecard: take another name"):
        report.write(tmp_path, other, overwrite=True)
    path.write_text("[]")
    with pytest.raises(ConfigError, match="is no document, no replay"):
        report.write(tmp_path, own, overwrite=True)


# --- what many ticks say alike --------------------------------------------------------------------


def written(tick: TickObservation) -> dict[str, Any]:
    """Return a tick as a file gives it, where no two values are one object."""
    told: dict[str, Any] = json.loads(json.dumps(as_json(tick)))
    return told


def test_what_is_said_alike_is_held_once(finished: tuple[Path, ArmObservation]) -> None:
    shared = Interner()
    gate = AgentOpinion("risk_gate", "gate", trust=1.0, confidence="high")
    words = AgentOpinion("news", "analyst", (0.125, None, None, -0.25), focus=(0.5, 0.5, 0.0, 0.0))
    tick = replace(finished[1].ticks[0], opinions=(words, gate))
    one, other = (shared.tick(tick_of(told)) for told in (written(tick), written(tick)))
    assert one == other == tick
    assert one.opinions[1] is other.opinions[1]
    assert one.opinions[0].adjustments[0] is other.opinions[0].adjustments[0]
    for name in ("regime", "bar_time", "close", "l1", "debate", "adjustments", "action"):
        assert getattr(one, name) is getattr(other, name), name


def test_only_the_same_bits_are_held_once(finished: tuple[Path, ArmObservation]) -> None:
    """0.0 equals -0.0 and 1 equals 1.0, and a file tells them apart."""
    shared, plain = Interner(), finished[1].ticks[0]
    opinion = AgentOpinion("risk_gate", "gate", trust=0.0, multiplier=1.0)
    zero = replace(plain, l1=NOTHING, scores=NOTHING, adjustments=NOTHING, opinions=(opinion,))
    minus = (-0.0, 0.0, 0.0, -0.0)
    signed = replace(
        zero, l1=minus, scores=minus, adjustments=minus, debate=minus, ath=-0.0,
        opinions=(replace(opinion, trust=-0.0), replace(opinion, multiplier=1), opinion),
        swarm=SwarmObservation(budget=0.0, trusted=(-0.0, 1.0), value_r=-0.0),
    )  # fmt: skip
    zero = replace(zero, swarm=SwarmObservation(budget=0.0, trusted=(0.0, 1), value_r=0.0))
    for tick in (zero, signed, replace(zero, ath=0.0), signed):
        assert json.dumps(as_json(shared.tick(tick))) == json.dumps(as_json(tick))


def test_profiles_with_equal_settings_have_one_digest(plan: ReplayPlan) -> None:
    """What a folder is compared by."""
    again = Profile.model_validate_json(plan.profile.model_dump_json())
    assert replace(plan, profile=again).settings == plan.settings
