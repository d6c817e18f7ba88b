"""A Dask scheduler and its workers as processes of a test, on the loopback, each to be killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from torra.config import ROOT
from torra.replay.shards import shards

QUIET = {"DASK_LOGGING__DISTRIBUTED": "critical", "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}


class Cluster:
    """`workers` are processes by number; a worker has no nanny, so a dead one stays dead."""

    def __init__(self, folder: Path, scheme: str, options: Sequence[str]) -> None:
        self.url = f"{scheme}://127.0.0.1:{free_port()}"
        self.folder = folder
        self.options = options
        self.path = f"{shards.ROOT}:{ROOT}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("dask_scheduler", "--host", self.url, "--no-dashboard")

    def add(self, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        host = self.url.rsplit(":", 1)[0]
        begun = self._start(
            "dask_worker", self.url, "--host", host, "--nthreads", "1", "--no-nanny",
            "--no-dashboard", *options, **environment,
        )  # fmt: skip
        self.workers.append(begun)
        return begun

    def wait(self, seconds: float = 60.0) -> None:
        """Return when the scheduler listens."""
        end = time.monotonic() + seconds
        place = ("127.0.0.1", int(self.url.rsplit(":", 1)[1]))
        while True:
            with suppress(OSError), socket.create_connection(place, 1.0):
                return
            assert time.monotonic() < end, (self.folder / "dask_scheduler.log").read_text()
            time.sleep(0.05)

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
        for process in (*self.workers, self.scheduler):
            process.wait(10)

    def _start(self, command: str, *words: str, **more: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, **QUIET, "PYTHONPATH": self.path, **more}
        line = [sys.executable, "-m", f"distributed.cli.{command}", *words, *self.options]
        with (self.folder / f"{command}.log").open("ab") as log:
            return subprocess.Popen(line, env=environment, stdout=log, stderr=log, cwd=self.folder)


@contextmanager
def running(
    folder: Path, workers: int = 2, scheme: str = "tcp", options: Sequence[str] = ()
) -> Iterator[Cluster]:
    cluster = Cluster(folder, scheme, options)
    try:
        for _ in range(workers):
            cluster.add()
        cluster.wait()
        yield cluster
    finally:
        cluster.close()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: Any = found.getsockname()[1]
    return int(port)
