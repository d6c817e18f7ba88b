"""One desk at a time works on a home: the lock, what takes it away, and what does not keep it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Scale
from tests.doubles.job_works import SCRIPTED
from tests.tries import until
from tests.worlds.jobs import alive
from tests.worlds.stores import forked, open_database
from torra import desk_lock, whole_files
from torra.backup.files import OWN
from torra.desk_lock import DeskLock, is_locked
from torra.errors import ConfigError, StoreUnavailable
from torra.home import DESK_LOCK, KEPT
from torra.jobs.process import Bounds, JobProcess


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[DeskLock]:
    made = DeskLock(tmp_path)
    yield made
    made.release()


def test_the_first_holds_it_and_the_second_does_not(lock: DeskLock, tmp_path: Path) -> None:
    second = DeskLock(tmp_path)
    assert not lock.is_owned() and not is_locked(tmp_path)
    assert lock.acquire() and lock.acquire(), "it is theirs already"
    assert lock.is_owned() and is_locked(tmp_path)
    assert not second.acquire(0.1) and not second.is_owned()
    lock.release()
    assert not lock.is_owned() and not is_locked(tmp_path)
    assert second.acquire(0.0)
    second.release()


def test_who_only_looks_makes_nothing_and_keeps_nobody_out(tmp_path: Path) -> None:
    assert not is_locked(tmp_path) and not is_locked(tmp_path / "none")
    assert not list(tmp_path.iterdir())
    (tmp_path / DESK_LOCK).touch()
    with (tmp_path / DESK_LOCK).open("rb+") as look:
        assert whole_files.locked(look, shared=True)
        assert not is_locked(tmp_path), "two looks do not meet each other"
        assert not DeskLock(tmp_path).acquire(0.0), "a look takes a moment"


@pytest.mark.skipif(os.name != "posix", reason="rights of files")
def test_its_file_is_its_owners_and_in_no_backup(lock: DeskLock) -> None:
    lock.acquire()
    assert lock.path.stat().st_mode & 0o777 == 0o600
    assert DESK_LOCK in KEPT and DESK_LOCK in OWN


@pytest.mark.skipif(os.name != "posix", reason="elsewhere no open file can be deleted")
@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
def test_a_lock_whose_file_is_gone_is_taken_again_unless_another_has_it(
    lock: DeskLock, tmp_path: Path, replaced: bool
) -> None:
    lock.acquire()
    lock.path.unlink()
    if replaced:
        lock.path.touch()
    assert not lock.is_owned() and not is_locked(tmp_path)
    assert lock.restore() and lock.is_owned() and is_locked(tmp_path)
    lock.path.unlink()
    second = DeskLock(tmp_path)
    assert second.acquire()
    assert not lock.restore() and not lock.is_owned() and second.is_owned()
    second.release()
    assert lock.restore() and lock.is_owned()


def test_a_lock_that_was_released_is_not_restored(lock: DeskLock, tmp_path: Path) -> None:
    assert not lock.restore(), "it was never taken"
    lock.acquire()
    lock.release()
    assert not lock.restore() and not is_locked(tmp_path)


def test_a_home_that_gives_no_lock_is_refused_with_the_remedy(
    lock: DeskLock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share without locks, and a folder that is not there."""
    with pytest.raises(ConfigError, match="set TORRA_HOME"):
        DeskLock(tmp_path / "none").acquire()

    def unsupported(_: IO[Any], **__: bool) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(desk_lock, "locked", unsupported)
    with pytest.raises(ConfigError, match=r"cannot be locked: No locks available\. A desk needs"):
        lock.acquire()
    assert not lock.is_owned() and not is_locked(tmp_path)


def test_a_share_that_is_away_is_not_held_and_comes_back(
    lock: DeskLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock.acquire()
    stat = Path.stat

    def away(path: Path, **words: Any) -> Any:
        if path == lock.path:
            raise OSError(errno.ESTALE, "Stale file handle")
        return stat(path, **words)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", away)
        assert not lock.is_owned() and lock.restore()
    assert lock.is_owned()


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


@needs_fork
def test_a_fork_does_not_hold_it(lock: DeskLock) -> None:
    lock.acquire()
    assert forked(lambda _: lock.is_owned() or lock.restore(), 1) == [False]
    assert lock.is_owned()


@needs_fork
def test_of_processes_that_want_it_one_gets_it(tmp_path: Path, scaled: Scale) -> None:
    gate = get_context("fork").Barrier(3)

    def try_for_it(_: int) -> bool:
        lock = DeskLock(tmp_path)
        held = lock.acquire(0.0)
        gate.wait()  # nobody ends before all have tried
        return held and lock.is_owned()

    for _ in range(scaled(40, least=4)):
        assert forked(try_for_it, 3).count(True) == 1


# --- children -------------------------------------------------------------------------------------


def sleep(_: int) -> None:
    time.sleep(60.0)


def a_program(_: Path) -> int:
    """Start one that is told to keep every file that may be passed on."""
    words = (sys.executable, "-c", "import time; time.sleep(60)")
    return subprocess.Popen(words, close_fds=False).pid


def a_pool(_: Path) -> int:
    pool = get_context("spawn").Pool(1)
    pool.map_async(sleep, [0])
    pid = pool._pool[0].pid  # type: ignore[attr-defined]
    assert pid is not None
    return int(pid)


def a_job(home: Path) -> int:
    return JobProcess(
        home, SCRIPTED.work, {"name": "a", "how": "done", "steps": 1000, "seconds": 0.1}, Bounds()
    ).number


CHILDREN: dict[str, Callable[[Path], int]] = {"program": a_program, "pool": a_pool, "job": a_job}


@needs_fork
@pytest.mark.parametrize("kind", CHILDREN)
def test_no_child_keeps_the_lock_of_a_desk_that_was_killed(tmp_path: Path, kind: str) -> None:
    home, told = tmp_path / "home", tmp_path / "child"
    home.mkdir()

    lock = DeskLock(home)
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            assert lock.acquire()
            told.write_text(str(CHILDREN[kind](home)))
            os.kill(os.getpid(), 9)
        os._exit(3)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    child = int(told.read_text())
    try:
        assert kind == "job" or alive(child), "a job ends with its desk; these live on"
        assert not is_locked(home)
        assert lock.acquire(0.0)
        lock.release()
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, 9)


# --- what it fences -------------------------------------------------------------------------------


def test_a_database_knows_whether_its_desk_runs(lock: DeskLock, tmp_path: Path) -> None:
    database = open_database(tmp_path)
    assert not database.desk_runs()
    lock.acquire()
    assert database.desk_runs()
    database.fence = lock.is_owned
    database.require_desk()
    lock.release()
    with pytest.raises(StoreUnavailable, match="lost the lock"):
        database.require_desk()
    database.close()


steps = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "restore", "release", "delete", "look"]), st.integers(0, 2)
    ),
    max_size=30,
)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere no open file can be deleted")
@settings(max_examples=60, deadline=None)
@given(steps=steps)
def test_two_never_hold_it_at_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """Against a model: who has it now, and who had it when its file was deleted."""
    home = tmp_path_factory.mktemp("lock")
    locks = [DeskLock(home) for _ in range(3)]
    holder: int | None = None
    robbed: set[int] = set()
    for word, number in steps:
        if word == "delete":
            (home / DESK_LOCK).unlink(missing_ok=True)
            robbed |= {holder} - {None}
            holder = None
        elif word == "release":
            locks[number].release()
            robbed.discard(number)
            holder = None if holder == number else holder
        elif word in ("acquire", "restore"):
            found = locks[number].acquire(0.0) if word == "acquire" else locks[number].restore()
            may = word == "acquire" or number in robbed or holder == number
            assert found == (may and holder in (None, number))
            if found:
                holder = number
                robbed.discard(number)
        assert [lock.is_owned() for lock in locks] == [holder == place for place in range(3)]
        assert is_locked(home) == (holder is not None)
    for lock in locks:
        lock.release()
    until(lambda: not is_locked(home), 1.0)
