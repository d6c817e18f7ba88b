"""A Dask cluster is one more executor: the same results, on this machine or behind TLS only."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cases import cases
from tests.doubles import dask_cluster
from tests.replay.test_shards import SWEEPS, figures, jobs, marked
from tests.tries import until
from tests.worlds import shard_jobs, sweep_jobs
from tests.worlds.price_series import sample
from torra.config import ROOT, Profile
from torra.errors import ConfigError, TorraError
from torra.evaluation.observations import same_but_time
from torra.replay import arms
from torra.replay.replaying import ReplayPlan, TradingCosts, run_on
from torra.replay.shards import cluster, shards
from torra.replay.shards.cluster import (
    TLS_VARIABLES,
    ClusterExecutor,
    open_cluster,
    parse_address,
    tls_files,
)
from torra.replay.shards.executors import Inline
from torra.replay.shards.history import History
from torra.replay.shards.shards import JobFailed, Progress, program, run_all

# --- which addresses ------------------------------------------------------------------------------


@cases(
    ("text", "url"),
    [
        ("tcp://127.0.0.1:8786", "tcp://127.0.0.1:8786"),
        ("127.0.0.1:99", "tcp://127.0.0.1:99"),
        ("localhost", "tcp://127.0.0.1:8786"),
        ("tcp://localhost:5", "tcp://127.0.0.1:5"),
        ("[::1]", "tcp://[::1]:8786"),
        ("tcp://[::1]:7", "tcp://[::1]:7"),
        ("127.8.9.1:7", "tcp://127.8.9.1:7"),
        ("tls://farm.example:8786", "tls://farm.example:8786"),
        ("tls://127.0.0.1:8786", "tls://127.0.0.1:8786"),
    ],
)
def test_addresses_that_are_taken(text: str, url: str) -> None:
    found = parse_address(text)
    assert (found.url, found.secure) == (url, url.startswith("tls"))


@cases(
    ("text", "said"),
    [
        ("tcp://10.0.0.5:8786", "plain transport asks nobody .* tls://10.0.0.5:8786"),
        ("farm.example:8786", "plain transport asks nobody"),
        ("tcp://0.0.0.0:8786", "plain transport asks nobody"),
        ("tcp://127.0.0.1.farm.example", "plain transport asks nobody"),
        ("tcp://localhost.farm.example:1", "plain transport asks nobody"),
        ("tcp://2130706433:8786", "plain transport asks nobody"),
        ("tcp://[::ffff:10.0.0.5]:8786", "plain transport asks nobody"),
        ("tcp://127.0.0.1@10.0.0.5:8786", "write tcp://127.0.0.1:8786"),
        ("tls://farm.example", "name the port"),
        ("ucx://127.0.0.1:8786", "write tcp://127.0.0.1:8786"),
        ("http://127.0.0.1:8786", "write tcp://127.0.0.1:8786"),
        ("inproc://127.0.0.1/1/1", "write tcp://127.0.0.1:8786"),
        ("127.0.0.1:notaport", "write tcp://127.0.0.1:8786"),
        ("127.0.0.1:99999", "write tcp://127.0.0.1:8786"),
        ("", "write tcp://127.0.0.1:8786"),
    ],
)
def test_addresses_that_are_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_address(text)
    with pytest.raises(ConfigError, match=said), open_cluster(text):
        pytest.fail("it was opened")


def test_tls_needs_three_files(tmp_path: Path) -> None:
    for name in TLS_VARIABLES.values():
        (tmp_path / name).touch()
    known = {name: str(tmp_path / name) for name in TLS_VARIABLES.values()}
    assert tls_files(known) == {key: known[name] for key, name in TLS_VARIABLES.items()}
    for name in known:
        with pytest.raises(ConfigError, match=f"{name} is not set"):
            tls_files({**known, name: ""})
        with pytest.raises(ConfigError, match=f"{name} names .*which is no file"):
            tls_files({**known, name: str(tmp_path / "nothing")})


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ConfigError, match=r"pip install 'torra\[cluster\]'"),
        open_cluster("localhost"),
    ):
        pytest.fail("it was opened")


# --- who is there ---------------------------------------------------------------------------------

HERE = "tcp://127.0.0.1:8786"


def told_by(scheduler: str, worker: str, answer: Any) -> ClusterExecutor:
    """An executor whose cluster says of itself what it is told to say."""

    def result(timeout: float) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    info = {"address": scheduler, "workers": {worker: {"nthreads": 2}}}
    client = SimpleNamespace(
        status="running",
        scheduler_info=lambda: info,
        get_executor=lambda **_: Executor(),
        submit=lambda *_, **__: SimpleNamespace(result=result),
    )
    return ClusterExecutor(client, parse_address(HERE), 60.0)


def test_a_cluster_of_the_same_program_is_taken() -> None:
    found = told_by(HERE, "tcp://127.0.0.1:40000", dict(program()))
    found.check_workers()
    assert found.workers == 2


@cases(
    ("scheduler", "worker", "answer", "said"),
    [
        ("tcp://192.168.1.5:8786", HERE, {}, "the scheduler listens at tcp://192.168.1.5:8786"),
        (HERE, "tcp://10.0.0.5:4000", {}, "the worker listens at tcp://10.0.0.5:4000"),
        (HERE, HERE, {"code": "x", "python": "2.7"}, "runs code x, python 2.7, this is code .*"),
        (HERE, HERE, {**program(), "numpy": "1.0"}, "numpy 1.0, .*install the same Torra"),
        (HERE, HERE, {**program(), "ta-lib-c": "0.6.4"}, "ta-lib-c 0.6.4, .*ta-lib-c 0.8"),
        (HERE, HERE, ModuleNotFoundError("torra"), "cannot say which Torra .*ModuleNotFound"),
    ],
    ids=["scheduler-outside", "worker-outside", "python", "library", "c-library", "no-torra"],
)
def test_a_cluster_that_is_not_safe_or_not_the_same_is_refused(
    scheduler: str, worker: str, answer: Any, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        told_by(scheduler, worker, answer).check_workers()


@pytest.fixture
def still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let test and workers run one copy of the program, whatever is edited meanwhile."""
    monkeypatch.setattr(shards, "ROOT", copied(tmp_path / "still"))
    program.cache_clear()
    yield
    program.cache_clear()


def copied(folder: Path) -> Path:
    for name in ("torra", "agents"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in shards.PROGRAM:
        shutil.copy(ROOT / f"{name}.py", folder)
    return folder


# --- real workers, at night -----------------------------------------------------------------------
#
# By day what an executor does is asked of processes that are killed, in test_shards.py.


@pytest.mark.nightly
@pytest.mark.usefixtures("still")
def test_two_workers_give_the_same_and_a_killed_one_costs_only_its_own_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, keep = tmp_path / "tries", tmp_path / "keep"
    tries.mkdir()
    made = marked(jobs(6, tries, seconds=0.05), 2, kill=True, seconds=0.3)
    seen: list[Progress] = []
    with dask_cluster.running(tmp_path) as here, open_cluster(here.url, patience=0.1) as executor:
        until(lambda: executor.check() or executor.workers == 2)
        assert run_all(made, shard_jobs.kills_once, executor, keep=keep) == figures(6)
        assert shard_jobs.attempts(tries) == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1, 5: 1}
        assert sorted(worker.poll() or 0 for worker in here.workers) == [-9, 0]
        with pytest.raises(JobFailed, match="walk 0: ValueError: a bad figure"):
            run_all(marked(jobs(1), 0, error="ValueError"), shard_jobs.raises, executor)
        more = [*made, *jobs(8, tries)[6:]]
        again = run_all(more, shard_jobs.kills_once, executor, keep=keep, on_done=seen.append)
        assert again == figures(8)
        assert seen[-1].kept == 6
        swept = run_all(SWEEPS, sweep_jobs.sweep, executor)
        assert swept == run_all(SWEEPS, sweep_jobs.sweep, Inline())
        here.workers[0].kill()
        here.workers[1].kill()
        with pytest.raises(TorraError, match="has had no worker for 0 s; what was finished is"):
            run_all(jobs(2), shard_jobs.walk_figures, executor)
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with pytest.raises(ConfigError, match="no Dask scheduler answers at tcp:"):
        open_cluster(here.url).__enter__()


def only_nightly(scaled: Any) -> None:
    if not scaled.whole:
        pytest.skip("nightly: make nightly")


@pytest.mark.usefixtures("still")
def test_a_replay_survives_a_worker_that_is_killed_in_the_middle(
    tmp_path: Path, scaled: Callable[..., int]
) -> None:
    only_nightly(scaled)
    profile = Profile()
    bars = History("EURUSD", {"H1": sample("EURUSD_H1").iloc[:500]}, {"H1": "sample"})
    wanted = arms.chosen(["l1", "analysts", "budget", "full", "placebo"])
    made = ReplayPlan(
        "here", bars, profile, wanted, TradingCosts.read("", profile.symbol("EURUSD"))
    )
    alone = run_on(made, Inline())
    killed: list[int] = []
    with dask_cluster.running(tmp_path, 3) as here, open_cluster(here.url) as executor:

        def kill(progress: Progress) -> None:
            if len(killed) < 2:
                worker = here.workers[len(killed)]
                worker.kill()
                killed.append(worker.wait(10))

        found = run_on(made, executor, on_done=kill)
    assert killed == [-9, -9]
    assert len(found) == 7
    for one, other in zip(found, alone, strict=True):
        assert one.name == other.name
        assert all(map(same_but_time, one.ticks, other.ticks))
        assert (len(one.ticks), one.trades) == (len(other.ticks), other.trades)


@pytest.mark.usefixtures("still")
def test_a_scheduler_that_dies_ends_the_run_with_what_was_done(
    tmp_path: Path, scaled: Callable[..., int]
) -> None:
    only_nightly(scaled)
    tries, keep = tmp_path / "tries", tmp_path / "keep"
    tries.mkdir()
    made = jobs(8, tries, seconds=0.3)
    with dask_cluster.running(tmp_path) as here, open_cluster(here.url) as executor:

        def kill(progress: Progress) -> None:
            if progress.done == 3:
                here.scheduler.kill()

        with pytest.raises(TorraError, match="is gone"):
            run_all(made, shard_jobs.walk_figures, executor, on_done=kill, keep=keep)
    done = len(list(keep.glob("*.json")))
    assert 3 <= done < 8
    seen: list[Progress] = []
    with dask_cluster.running(tmp_path) as here, open_cluster(here.url) as executor:
        found = run_all(made, shard_jobs.walk_figures, executor, on_done=seen.append, keep=keep)
    assert found == figures(8)
    assert seen[0].kept == done


@pytest.mark.usefixtures("still")
def test_a_job_that_kills_every_worker_is_named(tmp_path: Path, scaled: Callable[..., int]) -> None:
    only_nightly(scaled)
    made = marked(jobs(3, tmp_path), 1, kill=True)
    with dask_cluster.running(tmp_path, 5) as here, open_cluster(here.url) as executor:
        with pytest.raises(JobFailed, match=r"walk 1: its worker died 1 times \(KilledWorker"):
            run_all(made, shard_jobs.kills_always, executor, tries=1)
        assert run_all(jobs(2), shard_jobs.walk_figures, executor) == figures(2)


@pytest.mark.usefixtures("still")
def test_a_worker_with_another_torra_is_refused(tmp_path: Path, scaled: Callable[..., int]) -> None:
    only_nightly(scaled)
    other = copied(tmp_path / "other")
    with (other / "torra" / "clock.py").open("a") as file:
        file.write("# another line\n")
    with dask_cluster.running(tmp_path, 1) as here:
        here.add(PYTHONPATH=f"{other}:{ROOT}")
        with open_cluster(here.url) as executor:
            until(lambda: executor.check() or executor.workers == 2)
            with pytest.raises(ConfigError, match="a worker runs another program"):
                run_all(jobs(40, seconds=0.05), shard_jobs.walk_figures, executor)
        with pytest.raises(ConfigError, match="install the same Torra"):
            open_cluster(here.url).__enter__()


@pytest.mark.usefixtures("still")
def test_tls_with_certificates_on_both_sides(tmp_path: Path, scaled: Callable[..., int]) -> None:
    only_nightly(scaled)
    known = certificates(tmp_path)
    options = [
        *("--tls-ca-file", known["TORRA_CLUSTER_CA"], "--tls-cert", known["TORRA_CLUSTER_CERT"]),
        *("--tls-key", known["TORRA_CLUSTER_KEY"]),
    ]
    with dask_cluster.running(tmp_path, 1, "tls", options) as here:
        with open_cluster(here.url, known) as executor:
            assert run_all(jobs(3), shard_jobs.walk_figures, executor) == figures(3)
        (tmp_path / "stranger").mkdir()
        stranger = certificates(tmp_path / "stranger")
        for others, url in (
            ({**stranger, "TORRA_CLUSTER_CA": known["TORRA_CLUSTER_CA"]}, here.url),
            (stranger, here.url),
            (known, here.url.replace("tls", "tcp")),
        ):
            with pytest.raises(ConfigError, match="no Dask scheduler answers"):
                open_cluster(url, others).__enter__()


def certificates(folder: Path) -> dict[str, str]:
    """Make an authority and a certificate of it; return the environment that names them."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ("-newkey", "rsa:2048", "-nodes")
    openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority")
    openssl("req", *new, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=node")
    signer = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
    openssl("x509", "-req", "-in", "request.pem", *signer, "-out", "cert.pem")
    return {
        "TORRA_CLUSTER_CA": str(folder / "ca.pem"),
        "TORRA_CLUSTER_CERT": str(folder / "cert.pem"),
        "TORRA_CLUSTER_KEY": str(folder / "key.pem"),
    }
