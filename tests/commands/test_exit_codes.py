"""Commands that measure or check end with the code that a script goes by."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.doubles.vendor_line import environment
from tests.doubles.vendor_server import Reply, Status, VendorServer
from tests.worlds.hands import torra
from torra.config import ROOT
from torra.replay.rerun import lookahead
from torra.replay.rerun.lookahead import Findings, Leak

HOURS = str(ROOT / "sample_data" / "EURUSD_H1.csv")
AT = datetime(2017, 12, 28, tzinfo=UTC)
LEAK = Leak("score", "momentum", "walk", AT, AT, 0.1, 0.2, 0.1)


@pytest.mark.parametrize(("leaks", "code"), [([], 0), ([LEAK], 1)])
def test_a_lookahead_ends_in_1_where_something_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaks: list[Leak], code: int
) -> None:
    findings = Findings("EURUSD", points=1, comparisons=1, moved=leaks)
    monkeypatch.setattr(lookahead, "probe", lambda _, **__: findings)
    words = ("lookahead", "EURUSD", "--bars", HOURS, "--points", "1")
    assert torra(tmp_path, *words).exit_code == code


@pytest.mark.parametrize(
    ("reply", "code"), [(Reply(text='{"answer": "ready"}'), 0), (Status(401), 1)]
)
def test_a_test_of_a_vendor_ends_in_1_where_it_was_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply | Status, code: int
) -> None:
    with VendorServer({"*": reply}) as server:
        for name, value in environment(server).items():
            monkeypatch.setenv(name, value)
        assert torra(tmp_path, "models", "--test", "openai_compatible").exit_code == code
