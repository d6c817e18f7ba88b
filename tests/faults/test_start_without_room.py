"""A start on a volume without a byte to spare is refused in one line that says so (D6).

SQLite cannot even open a database there: beside the file it needs a few pages of its own. So there
is nothing to serve pages from, and no desk; while one runs, a disk that fills up halts it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.worlds import stores
from torra.config import ROOT
from torra.store import connection
from torra.store.faults import NO_ROOM, explain

START = """
import resource, shutil, sys
from torra.commands.command_line import main
usage = shutil.disk_usage
shutil.disk_usage = lambda path: usage(path)._replace(free=int(sys.argv[2]))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
main(["--home", sys.argv[1], *sys.argv[3:]])
"""
"""A command on a volume on which no file can grow, and which tells so many bytes free."""


def on_a_full_disk(home: Path, free: int, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START, home, str(free), *words],
        check=False, cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_start_on_a_full_disk_names_it_and_what_to_do(tmp_path: Path) -> None:
    with closing(stores.open_database(tmp_path)) as database:
        stores.save(database, stores.NOON, 0.1)
    before = (tmp_path / "torra.db").read_bytes()
    done = on_a_full_disk(tmp_path, 0, "run", "--no-pages")
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    for word in (str(tmp_path), "0 bytes free", "make room there", "200 MB"):
        assert word in done.stderr, done.stderr
    assert (tmp_path / "torra.db").read_bytes() == before
    with closing(stores.open_database(tmp_path)) as database:
        assert connection.quick_check(database) == "ok", "it opens again when there is room"


@pytest.mark.parametrize("message", ["disk I/O error", "database or disk is full"])
@pytest.mark.parametrize("free", [NO_ROOM - 1, NO_ROOM])
def test_only_a_volume_without_room_is_blamed(
    message: str, free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))
    told = explain(tmp_path / "torra.db", Exception(message))
    assert ("bytes free" in told) == (free < NO_ROOM)
    assert message in told


def test_a_volume_that_tells_nothing_is_not_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: Path) -> None:
        raise OSError("the volume is gone")

    monkeypatch.setattr(shutil, "disk_usage", gone)
    assert "check its volume" in explain(tmp_path / "torra.db", Exception("disk I/O error"))
