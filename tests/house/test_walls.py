"""No test reaches another machine."""

from __future__ import annotations

import socket

import pytest


def test_no_test_reaches_another_machine() -> None:
    with (
        socket.socket() as other,
        pytest.raises(RuntimeError, match=r"network: 192\.0\.2\.1"),
    ):
        other.connect(("192.0.2.1", 9))
