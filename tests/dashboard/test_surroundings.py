"""No test can lean on the host: no network, no key, no real model, no order of the day (S6)."""

from __future__ import annotations

import os
import socket
import tomllib
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from tests import longest
from tests.conftest import SECRETS, Scale, pytest_collection_modifyitems
from torra.config import ROOT
from torra.jobs import priority


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "api.example.com"])
def test_a_test_that_reaches_for_the_network_is_stopped(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as one, pytest.raises((RuntimeError, ValueError)):
        one.connect((host, 443))


def test_the_loopback_is_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()


def test_no_variable_of_the_host_is_seen() -> None:
    named = [name for name in os.environ if any(word in name for word in SECRETS)]
    assert named == [] and not [name for name in os.environ if name.startswith("TORRA_")]


@pytest.mark.skipif(not hasattr(os, "getpriority"), reason="no priorities here")
def test_no_command_steps_back_here() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    priority.step_back(1)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_a_warning_is_an_error() -> None:
    with pytest.raises(DeprecationWarning):
        warnings.warn("old", DeprecationWarning, stacklevel=1)


def test_the_order_is_random_and_the_settings_are_strict(request: pytest.FixtureRequest) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pytest_settings = settings["tool"]["pytest"]["ini_options"]
    assert pytest_settings["filterwarnings"][0] == "error"
    assert "--strict-markers" in pytest_settings["addopts"]
    assert any(
        "pytest-randomly" in line for line in settings["project"]["optional-dependencies"]["dev"]
    )


def test_a_run_may_begin_with_the_files_that_take_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """By day all of them come before the others, at night in the order of what they took."""
    a, b, c, d = (f"tests/test_{letter}.py" for letter in "abcd")
    monkeypatch.setattr(longest, "LONGEST", {a, b})
    seen = {c: longest.Seen("2026-11-27", 90), a: longest.Seen("2026-11-26", 200)}
    monkeypatch.setattr(longest, "seen", lambda: seen)
    assert ordered([c, b, d, a], {"--longest-first": True, "--scale": 0.004}) == [b, a, c, d]
    assert ordered([c, b, d, a], {"--longest-first": True, "--scale": 1.0}) == [a, c, b, d]
    assert ordered([c, b, d, a], {"--longest-first": False, "--scale": 1.0}) == [c, b, d, a]


def test_every_file_that_takes_long_is_there() -> None:
    assert all((ROOT / name).is_file() for name in longest.LONGEST)


def ordered(files: list[str], told: dict[str, Any]) -> list[str]:
    config: Any = SimpleNamespace(getoption=told.get)
    items: list[Any] = [
        SimpleNamespace(path=ROOT / name, get_closest_marker=lambda _: None) for name in files
    ]
    pytest_collection_modifyitems(config, items)
    return [item.path.relative_to(ROOT).as_posix() for item in items]


def test_a_share_of_a_count_stands_in_the_properties(
    scaled: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled(7, least=7)
    assert request.node.user_properties == [("trials", 7)]
    monkeypatch.setattr(Scale, "running", None)
    few = Scale(0.008)
    assert (few(1000), few(10), few(10, least=4), few.whole) == (8, 1, 4, False)
    assert (Scale(1.0)(1000, least=4), Scale(1.0).whole) == (1000, True)


@pytest.mark.nightly
def test_what_is_for_the_night_runs_at_night_only(scaled: Any) -> None:
    assert scaled.whole
