"""What no test may do or see: another machine, and what another test left in the environment."""

from __future__ import annotations

import socket

import pytest

LEAVES = """
import os

def test_leaves():
    assert "TORRA_LEFT" not in os.environ and "SOME_API_KEY" not in os.environ
    os.environ["TORRA_LEFT"] = os.environ["SOME_API_KEY"] = "1"

def test_sees():
    assert "TORRA_LEFT" not in os.environ and "SOME_API_KEY" not in os.environ
"""


def test_no_test_reaches_another_machine() -> None:
    with (
        socket.socket() as other,
        pytest.raises(RuntimeError, match=r"network: 192\.0\.2\.1"),
    ):
        other.connect(("192.0.2.1", 9))


def test_no_test_sees_what_another_left_in_the_environment(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORRA_LEFT", "from a shell")
    pytester.makeconftest("from tests.conftest import pytest_runtest_protocol")
    pytester.makepyfile(LEAVES)
    told = pytester.runpytest_inprocess("-p", "no:randomly", "-p", "no:cacheprovider")
    told.assert_outcomes(passed=2)
