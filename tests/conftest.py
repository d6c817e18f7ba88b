"""What every test shares: the scale of a run, a cleared environment and a guard on the network.

`scaled(n)` is how a test says its nightly count: `make nightly` passes --scale 1 and the test runs
n cases, `make test` passes a fraction of that. Sockets reach the loopback only.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable

import pytest
from hypothesis import settings

SECRETS = ("API_KEY", "AUTH_TOKEN", "_SECRET", "_BASE_URL", "_PROXY", "_proxy")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--scale", type=float, default=0.008, help="share of the nightly counts to run, 0 to 1"
    )
    parser.addoption("--nightly", action="store_true", help="run the nightly counts: --scale 1")
    parser.addoption(
        "--local-llm", action="store_true", help="run ticks with a real language model, for minutes"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Every day the same cases, so that a red suite means a change; fresh ones every night."""
    settings.register_profile("daily", derandomize=True, database=None, deadline=None)
    settings.register_profile("nightly", deadline=None, print_blob=True)
    settings.load_profile("nightly" if config.getoption("--nightly") else "daily")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the real language model unless it is asked for: its ticks take minutes each."""
    if config.getoption("--local-llm"):
        return
    asleep = pytest.mark.skip(reason="runs a real language model for minutes: make test-local-llm")
    for item in items:
        if item.get_closest_marker("local_llm"):
            item.add_marker(asleep)


def scale_of(config: pytest.Config) -> float:
    return 1.0 if config.getoption("--nightly") else float(config.getoption("--scale"))


@pytest.fixture(scope="session")
def scaled(request: pytest.FixtureRequest) -> Callable[..., int]:
    """Return how many of `count` nightly cases this run takes, at least `least`."""

    def take(count: int, least: int = 1) -> int:
        return max(least, round(count * scale_of(request.config)))

    return take


@pytest.fixture(autouse=True)
def _cleared_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("TORRA_") or any(word in name for word in SECRETS):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> object:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = address[0]  # type: ignore[index]
            if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
                raise RuntimeError(f"a test reached for the network: {host}")
        return connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)
