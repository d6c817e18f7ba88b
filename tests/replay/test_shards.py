"""Jobs give the same results wherever they run, whatever dies, and however often it is begun."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.house.test_floors import MODULES
from tests.tries import Tries, until
from tests.worlds import shard_jobs, sweep_jobs
from tests.worlds.price_series import sample, walk
from torra.config import ROOT
from torra.errors import ConfigError
from torra.replay.shards import packed_bars, shards
from torra.replay.shards.executors import Inline, Processes, processes, synchronous_executor
from torra.replay.shards.shards import (
    Job,
    JobFailed,
    Progress,
    duration_text,
    run_all,
)

SWEEPS = sweep_jobs.sweeps((0.05, 0.1, 0.2))


def jobs(count: int, folder: Path | None = None, **more: Any) -> list[Job]:
    place = {} if folder is None else {"folder": str(folder)}
    return [Job(f"walk {seed}", {"seed": seed, **place, **more}) for seed in range(count)]


def marked(made: list[Job], *numbers: int, **mark: Any) -> list[Job]:
    return [
        Job(job.name, {**job.spec, **mark}) if at in numbers else job for at, job in enumerate(made)
    ]


def figures(count: int) -> list[Mapping[str, Any]]:
    return [shard_jobs.walk_figures({"seed": seed}) for seed in range(count)]


class Four(ThreadPoolExecutor):
    """Says how many it can do at once."""

    workers = 4


class Losing(Inline):
    """Loses the first attempts of some jobs, in the way that is asked for."""

    def __init__(self, *errors: BaseException, at_submit: bool = False) -> None:
        self.errors = list(errors)
        self.at_submit = at_submit

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.errors:
            error = self.errors.pop(0)
            if self.at_submit:
                raise error
            future: Future[Any] = Future()
            future.set_exception(error)
            return future
        return super().submit(fn, *args, **kwargs)


# --- the same everywhere --------------------------------------------------------------------------


@pytest.mark.journey
def test_processes_give_what_this_process_gives_and_a_killed_one_costs_only_its_own_job(
    tmp_path: Path,
) -> None:
    made = marked(jobs(6, tmp_path, seconds=0.05), 2, kill=True, seconds=0.3)
    steps: list[int] = []
    with processes(2, 6, steps.append) as executor:
        found = run_all(made, shard_jobs.kills_once, executor)
        executor.check()
        told = run_all(jobs(1), shard_jobs.threads, executor)[0]
        swept = run_all(SWEEPS, sweep_jobs.sweep, executor)
    assert found == figures(6)
    assert json.dumps(found) == json.dumps(figures(6))
    assert shard_jobs.attempts(tmp_path) == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1, 5: 1}
    assert told["omp"] == "1"
    assert steps[-1] == 6 * 7, "each part notes seven steps, the killed one too"
    assert swept == run_all(SWEEPS, sweep_jobs.sweep, Inline())
    assert len({len(one["trades"]) for one in swept}) > 1
    assert told["pid"] != os.getpid()


def test_the_order_in_which_jobs_end_changes_nothing(tries: Tries) -> None:
    made = [
        Job(job.name, {**job.spec, "seconds": 0.1 * (3 - at)}) for at, job in enumerate(jobs(4))
    ]
    for attempt in tries():
        told: list[Any] = []
        with Four(4) as executor:
            found = run_all(made, shard_jobs.walk_figures, executor, on_done=told.append)
        assert found == figures(4)
        with attempt:
            assert [one.name for one in told] == ["walk 3", "walk 2", "walk 1", "walk 0"]


def test_jobs_begin_in_their_order_but_after_the_one_that_they_wait_for() -> None:
    made = [Job(job.name, job.spec, "walk 2" if job.name == "walk 0" else "") for job in jobs(4)]
    told: list[Progress] = []
    found = run_all(made, shard_jobs.walk_figures, Inline(), on_done=told.append)
    assert found == figures(4)
    assert [one.name for one in told] == ["walk 1", "walk 2", "walk 0", "walk 3"]


@pytest.mark.parametrize("after", ["walk 9", "walk 0"], ids=["nobody", "itself"])
def test_a_job_that_waits_for_what_never_ends_is_a_mistake(after: str) -> None:
    made = [Job(job.name, job.spec, after) for job in jobs(1)]
    with pytest.raises(ValueError, match="walk 0 waits for"):
        run_all(made, shard_jobs.walk_figures, Inline())


def test_any_executor_will_do() -> None:
    with ThreadPoolExecutor(3) as executor:
        assert run_all(jobs(7), shard_jobs.walk_figures, executor) == figures(7)
    with synchronous_executor() as executor:
        assert run_all([], shard_jobs.walk_figures, executor) == []


# --- what is lost and what is wrong ---------------------------------------------------------------


@pytest.mark.parametrize("at_submit", [False, True], ids=["in-the-future", "at-submit"])
def test_a_lost_job_runs_again_and_one_that_always_dies_is_named(at_submit: bool) -> None:
    lost = [ConnectionResetError("gone"), EOFError()]
    assert run_all(jobs(2), shard_jobs.walk_figures, Losing(*lost, at_submit=at_submit)) == figures(
        2
    )
    with pytest.raises(JobFailed, match=r"walk 0: its worker died 3 times .*ConnectionReset"):
        run_all(jobs(2), shard_jobs.walk_figures, Losing(*lost, lost[0], at_submit=at_submit))


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        ("ValueError", JobFailed, "walk 1: ValueError: a bad figure"),
        ("ConnectionError", JobFailed, "walk 1: ConnectionError: the work's own"),
        ("ConfigError", ConfigError, "walk 1: mend this"),
        ("DataUnavailable", JobFailed, "walk 1: too_short: two bars"),
    ],
)
def test_an_error_of_the_work_is_not_tried_again(
    error: str, kind: type[Exception], said: str, tmp_path: Path
) -> None:
    made = marked(jobs(3, tmp_path), 1, error=error)
    with pytest.raises(kind) as caught:
        run_all(made, shard_jobs.raises, Inline())
    assert str(caught.value) == said
    assert type(caught.value) is kind
    assert shard_jobs.attempts(tmp_path) == {0: 1, 1: 1}


def test_what_is_not_json_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="the spec of odd is not JSON"):
        run_all([Job("odd", {"at": pd.Timestamp(0)})], shard_jobs.walk_figures, Inline())
    with pytest.raises(JobFailed, match="walk 0: ValueError"):
        run_all(jobs(1), shard_jobs.not_a_number, Inline())


def test_a_worker_with_another_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = shards._told(shard_jobs.walk_figures, '{"seed": 1}', "another")
    with pytest.raises(ConfigError, match="walk 1: a worker runs another program"):
        shards._result("walk 1", answer)


def test_an_executor_without_workers_can_end_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deserted(Inline):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            return Future()

        def check(self) -> None:
            raise JobFailed("nobody is left")

    monkeypatch.setattr(shards, "BEAT_SECONDS", 0.01)
    with pytest.raises(JobFailed, match="nobody is left"):
        run_all(jobs(1), shard_jobs.walk_figures, Deserted())


# --- kept and taken up again ----------------------------------------------------------------------


class Interrupt(Exception):
    """Stands for an interruption from outside."""


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    keep, tries = tmp_path / "keep", tmp_path / "tries"
    tries.mkdir()
    seen: list[Progress] = []

    def stop_at_three(progress: Progress) -> None:
        if progress.done == 3:
            raise Interrupt

    with pytest.raises(Interrupt):
        run_all(jobs(5, tries), shard_jobs.walk_figures, Inline(), on_done=stop_at_three, keep=keep)
    assert len(list(keep.glob("*.json"))) == 3
    found = run_all(
        jobs(5, tries), shard_jobs.walk_figures, Inline(), on_done=seen.append, keep=keep
    )
    assert found == figures(5)
    assert shard_jobs.attempts(tries) == dict.fromkeys(range(5), 1)
    assert [(p.done, p.kept) for p in seen] == [(3, 3), (4, 3), (5, 3)]


def test_a_damaged_or_foreign_result_runs_again(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    run_all(jobs(3), shard_jobs.walk_figures, Inline(), keep=keep)
    first, second, third = sorted(keep.glob("*.json"))
    first.write_text(first.read_text()[:-20])
    second.write_text(second.read_text().replace("seed", "sead"))
    third.rename(keep / "0123.json")
    counted: list[Progress] = []
    found = run_all(jobs(3), shard_jobs.walk_figures, Inline(), keep=keep, on_done=counted.append)
    assert found == figures(3)
    assert counted[-1].kept == 0


@pytest.mark.parametrize("other", ["spec", "work", "program"])
def test_another_spec_work_or_program_is_another_result(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all(jobs(1), shard_jobs.walk_figures, Inline(), keep=tmp_path)
    made, work = jobs(1), shard_jobs.walk_figures
    if other == "spec":
        made = jobs(1, steps=501)
    elif other == "work":
        work = shard_jobs.raises
    else:
        monkeypatch.setattr(shards, "program", lambda: {"code": "new"})
    seen: list[Progress] = []
    run_all(made, work, Inline(), keep=tmp_path, on_done=seen.append)
    assert seen[-1].kept == 0


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot keep results in"):
        run_all(jobs(1), shard_jobs.walk_figures, Inline(), keep=tmp_path / "file" / "keep")


def test_the_estimate_goes_by_what_was_run_now(tmp_path: Path) -> None:
    run_all(jobs(2), shard_jobs.walk_figures, Inline(), keep=tmp_path)
    clock = iter(range(0, 1000, 5))
    seen: list[Progress] = []
    run_all(
        jobs(4), shard_jobs.walk_figures, Inline(),
        keep=tmp_path, on_done=seen.append, now=lambda: float(next(clock)),
    )  # fmt: skip
    assert seen[0].left_s is None
    assert seen[1].left_s is not None
    assert seen[1].left_s > 0
    assert seen[-1].left_s == 0
    assert seen[0].line() == "2/4 walk 1"
    assert [duration_text(s) for s in (0, 4.2, 300, 9000)] == ["1 s", "5 s", "5 min", "2.5 h"]


def test_a_run_of_long_jobs_tells_that_it_goes_on() -> None:
    clock = iter(range(0, 1000, 5))
    told: list[Progress] = []
    run_all(
        jobs(4), shard_jobs.walk_figures, Inline(),
        on_wait=told.append, now=lambda: float(next(clock)),
    )  # fmt: skip
    assert told and all(not one.name for one in told)
    assert told[0].line() == "0 of 4 done after 10 s"


RUN: str = """
import signal
import sys
from pathlib import Path
from tests.worlds import shard_jobs
from torra.replay.shards.executors import processes
from torra.replay.shards.shards import Job, run_all
folder, keep = map(Path, sys.argv[1:])
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    specs = [{"seed": seed, "folder": str(folder), "seconds": 0.2} for seed in range(40)]
    jobs = [Job(f"walk {spec['seed']}", spec) for spec in specs]
    with processes(2) as executor:
        run_all(jobs, shard_jobs.walk_figures, executor, keep=keep)
"""


@pytest.mark.journey
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_a_stopped_program_leaves_what_is_done_and_no_process(
    number: signal.Signals, tmp_path: Path, scaled: Any
) -> None:
    if not scaled.whole and number == signal.SIGKILL:
        pytest.skip("nightly")
    tries, keep, script = tmp_path / "tries", tmp_path / "keep", tmp_path / "run.py"
    tries.mkdir()
    script.write_text(RUN)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    begun = subprocess.Popen(
        [sys.executable, script, tries, keep], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: len(list(keep.glob("*.json"))) >= 3)
        begun.send_signal(number)
        assert begun.wait(10) != 0
    finally:
        begun.kill()
    until(lambda: not any(_alive(pid) for pid in shard_jobs.running(tries).values()))
    kept = len(list(keep.glob("*.json")))
    assert 3 <= kept < 40
    before = shard_jobs.attempts(tries)
    assert sum(before.values()) <= kept + 2


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# --- what travels ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made", [sample("EURUSD_H1").iloc[:3000], walk(700, 3)], ids=["sample", "walk"]
)
def test_bars_travel_bit_for_bit(made: pd.DataFrame) -> None:
    text = packed_bars.pack(made)
    found = packed_bars.unpack(json.loads(json.dumps(text)))
    pd.testing.assert_frame_equal(found, made, check_exact=True, check_freq=False)
    found.iloc[0, 0] = -1.0
    assert packed_bars.unpack(text).iloc[0, 0] == made.iloc[0, 0]
    assert len(text) < 0.8 * made.memory_usage().sum()
    with pytest.raises(ValueError, match="no packed bars"):
        packed_bars.unpack(text[:-40])


def test_the_program_counts_every_module_that_is_shipped() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(shards.PROGRAM) == set(project["tool"]["setuptools"]["py-modules"])


def test_workers_begin_without_the_numerical_libraries() -> None:
    """Else they would have started their threads before they are told how many."""
    code = "import torra.replay.shards.executors, sys; sys.exit('numpy' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    )
    with pytest.raises(ValueError, match="1 or more"):
        Processes(0)


def test_the_program_is_every_module_of_the_product() -> None:
    """What a half-done replay was made by: a file that is left out could change and be mixed in."""
    named = {path.relative_to(ROOT).as_posix() for path in shards.sources()}
    there = {path.relative_to(ROOT).as_posix() for path in MODULES.values()}
    assert named == there
