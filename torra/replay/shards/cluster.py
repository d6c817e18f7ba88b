"""A Dask cluster as an executor: on this machine, or behind TLS, and nowhere else.

Dask's plain transport has no authentication: whoever reaches it can run any program on every
machine of the cluster, and read what travels. So `--cluster` takes a loopback address, or `tls://`
with a certificate on both sides; the environment names the files. The scheduler and every worker
must be reached in the same way. Workers must run the same Torra on the same Python, because a
result may not depend on where it was made. Every wait has an end.

Anything else raises ConfigError that says what to do; a cluster that is lost during a run raises
TorraError. Needs the extra `cluster`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from torra.clock import System
from torra.errors import ConfigError, TorraError
from torra.providers.vendors.addresses import is_loopback
from torra.replay.shards.shards import program

PORT: Final = 8786
"""Dask's own."""

CONNECT_SECONDS: Final = 10.0
"""How long the scheduler, and then its first worker, may take to answer."""

PATIENCE_SECONDS: Final = 60.0
"""How long a run waits for a cluster that has lost its last worker."""

TLS_VARIABLES: Final = {
    "tls_ca_file": "TORRA_CLUSTER_CA",
    "tls_client_cert": "TORRA_CLUSTER_CERT",
    "tls_client_key": "TORRA_CLUSTER_KEY",
}
"""Variables of the environment with the PEM files of a TLS connection, by Dask's names."""

SETTINGS: Final = {"distributed.admin.large-graph-warning-threshold": "1 GB"}
"""A job carries its own bars: that is meant."""

LOGGERS: Final = ("distributed", "distributed.client")
"""Dask's, each with a level of its own."""

START_HERE: Final = "dask scheduler --host 127.0.0.1 and dask worker tcp://127.0.0.1:8786"


@dataclass(frozen=True, slots=True)
class SchedulerAddress:
    """The address of a scheduler: `secure` over TLS, else on this machine."""

    url: str
    secure: bool


def parse_address(text: str) -> SchedulerAddress:
    """Return the address that `--cluster` names; raises ConfigError with the reason and a remedy.

    Taken are 127.0.0.1, [::1] and localhost, with or without tcp:// and a port, and tls://HOST:PORT.
    """
    try:
        parts = urlsplit(text if "://" in text else f"tcp://{text}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
        parts = urlsplit("")
    if not host or parts.scheme not in ("tcp", "tls") or parts.path.strip("/") or parts.username:
        raise ConfigError(
            f"--cluster {text}: write tcp://127.0.0.1:{PORT} for a scheduler on this machine, or "
            "tls://HOST:PORT"
        )
    if parts.scheme == "tls":
        if port is None:
            raise ConfigError(f"--cluster {text}: name the port, as in tls://{host}:{PORT}")
        return SchedulerAddress(f"tls://{_bracketed(host)}:{port}", secure=True)
    if not is_loopback(host):
        raise ConfigError(
            f"--cluster {text}: Dask's plain transport asks nobody who they are, so that anyone "
            "who reaches it can run programs on every worker; Torra uses it on this machine only "
            f"(tcp://127.0.0.1:{port or PORT}). For another machine set up TLS and give "
            f"tls://{host}:{port or PORT}"
        )
    here = "127.0.0.1" if host == "localhost" else host
    return SchedulerAddress(f"tcp://{_bracketed(here)}:{port or PORT}", secure=False)


@contextmanager
def open_cluster(
    text: str, environment: Mapping[str, str] | None = None, *, patience: float = PATIENCE_SECONDS
) -> Iterator[ClusterExecutor]:
    """Yield the executor of a cluster; raises ConfigError for one that may not or cannot serve."""
    address = parse_address(text)
    known = dict(os.environ) if environment is None else environment
    files = tls_files(known) if address.secure else {}
    client = _connect(address, files)
    try:
        found = ClusterExecutor(client, address, patience)
        found.check_workers()
        yield found
    finally:
        _close(client)


def tls_files(environment: Mapping[str, str]) -> dict[str, str]:
    """Return Dask's names and the files of a TLS connection; raises ConfigError."""
    found = {}
    for name, variable in TLS_VARIABLES.items():
        path = environment.get(variable, "")
        if not path:
            raise ConfigError(
                f"--cluster tls:// needs {', '.join(TLS_VARIABLES.values())}: {variable} is not set"
            )
        if not Path(path).is_file():
            raise ConfigError(f"{variable} names {path}, which is no file")
        found[name] = path
    return found


class ClusterExecutor(Executor):
    """The workers of a cluster as an executor: `workers` jobs run at once, as far as is known."""

    elsewhere: Final = True
    """Workers may have been started from another program: each job says which it belongs to."""

    def __init__(self, client: Any, address: SchedulerAddress, patience: float) -> None:
        self._client = client
        self._address = address
        self._patience = patience
        # A job that is tried again must run again, not be answered by its own earlier failure.
        self._inner = client.get_executor(pure=False)
        self._now = System().monotonic
        self._seen = self._now()
        self.workers = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Send a job to whichever worker is free."""
        future: Future[Any] = self._inner.submit(fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take back what has not begun; the cluster itself goes on."""
        self._inner.shutdown(wait=wait and not cancel_futures)

    def check(self) -> None:
        """Count the workers; raises TorraError when the cluster is gone, or has none for long."""
        told = self._told()
        self.workers = sum(int(row["nthreads"]) for row in told.values())
        if self.workers:
            self._seen = self._now()
        elif self._now() - self._seen > self._patience:
            raise TorraError(
                f"the cluster at {self._address.url} has had no worker for {self._patience:.0f} s; "
                "what was finished is kept: start workers and give the same command again"
            )

    def check_workers(self) -> None:
        """Raise ConfigError for an unsafe scheduler or worker, or a worker of another program."""
        info = self._client.scheduler_info()
        self._reached_safely("scheduler", info["address"])
        here = dict(program())
        for place in self._told():
            self._reached_safely("worker", place)
            there = self._program_of(place)
            if there != here:
                raise ConfigError(
                    f"the worker {place} runs {_words(there)}, this is {_words(here)}: install the "
                    "same Torra and the same Python there"
                )
        self.check()

    def _told(self) -> Mapping[str, Any]:
        if self._client.status != "running":
            raise self._gone(self._client.status)
        try:
            found: Mapping[str, Any] = self._client.scheduler_info()["workers"]
        except Exception as error:
            raise self._gone(f"{type(error).__name__}: {error}") from error
        return found

    def _gone(self, why: str) -> TorraError:
        return TorraError(
            f"the cluster at {self._address.url} is gone ({why}); what was finished is kept: start "
            "it and give the same command again"
        )

    def _reached_safely(self, who: str, place: str) -> None:
        parts = urlsplit(place)
        if parts.scheme == "tls" or (
            not self._address.secure and is_loopback(parts.hostname or "")
        ):
            return
        raise ConfigError(
            f"the {who} listens at {place}, without TLS and not on this machine alone, where "
            f"anybody can give it programs to run; start it with {START_HERE}, or with TLS"
        )

    def _program_of(self, place: str) -> Mapping[str, str]:
        # pure=False: another worker's answer must not serve for this one.
        future = self._client.submit(program, workers=[place], pure=False)
        try:
            found: Mapping[str, str] = future.result(timeout=CONNECT_SECONDS)
        except Exception as error:
            raise ConfigError(
                f"the worker {place} cannot say which Torra it runs ({type(error).__name__}: "
                f"{error}): install the same Torra there"
            ) from error
        return found


def _connect(address: SchedulerAddress, files: Mapping[str, str]) -> Any:
    """Return a client of a scheduler that has a worker; raises ConfigError."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise ConfigError(
            "--cluster needs the package distributed: pip install 'torra[cluster]'"
        ) from error
    import_module("dask").config.set(SETTINGS)
    for logger in LOGGERS:  # whatever matters comes as a sentence
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    security = distributed.Security(require_encryption=True, **files) if address.secure else None
    try:
        client = distributed.Client(
            address.url, security=security, timeout=CONNECT_SECONDS, set_as_default=False
        )
    except Exception as error:
        raise ConfigError(
            f"no Dask scheduler answers at {address.url} ({type(error).__name__}): start one with "
            f"{START_HERE}" + (", with TLS" if address.secure else "")
        ) from error
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except Exception as error:
        _close(client)
        raise ConfigError(
            f"the scheduler at {address.url} has no worker: start one with dask worker "
            f"{address.url} --nthreads 1"
        ) from error
    return client


def _close(client: Any) -> None:
    client.close(timeout=CONNECT_SECONDS)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _words(known: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(known.items()))
