"""How parts are made and compared: to the bit here, to nine digits elsewhere, in frozen time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.golden import frozen, parts


def test_numbers_made_with_others_count_to_nine_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "TEXTS", tmp_path)

    def differs(number: str, machine: str) -> bool:
        today = {"a.json": f"[{number}, 12345678901]\n", parts.MADE_WITH: f"{machine}\n"}
        return bool(list(parts.differences("part", today)))

    for number, near in (("0.30000000000000004", "0.3"), ("-1.5e-09", "-1.50000000001e-09")):
        parts.renew("part", {"a.json": f"[{number}, 12345678901]\n", parts.MADE_WITH: "here\n"})
        assert not differs(number, "here") and differs(near, "here")
        assert not differs(near, "elsewhere") and differs("0.31", "elsewhere")


def test_a_frozen_block_has_one_umask_and_ends_before_time_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = os.umask(0o077)
    try:
        with frozen.frozen():
            assert os.umask(0o022) == 0o022
        monkeypatch.setattr(frozen, "PATIENCE", 0.0)
        with pytest.raises(AssertionError, match="time went on"), frozen.frozen():
            pass
    finally:
        assert os.umask(own) == 0o077
