"""Numbers of a part count to the bit, and to nine digits where other libraries made them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import parts


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
