"""How parts are made and compared: to the bit here, to nine digits elsewhere, in frozen time."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from tests.golden import frozen, parts


def test_numbers_made_with_others_count_to_nine_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "TEXTS", tmp_path)

    def texts(number: str, machine: str) -> dict[str, str]:
        digest = sha256(number.encode()).hexdigest()[:12]
        text = f"{number}, 12345678901 ({digest}, numpy {len(machine)}.1)\n"
        return {"a.txt": text, parts.MADE_WITH: f"{machine}\n"}

    def differs(number: str, machine: str) -> bool:
        return bool(list(parts.differences("part", texts(number, machine))))

    for number, near in (("0.30000000000000004", "0.3"), ("-1.5e-09", "-1.50000000001e-09")):
        parts.renew("part", texts(number, "here"))
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


def test_a_red_part_shows_the_first_lines_of_a_long_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "TEXTS", tmp_path)
    old, new = ("".join(f"{word} {line % 9}\n" for line in range(9999)) for word in ("old", "new"))
    parts.renew("part", {"a.txt": f"same\n{old}"})
    monkeypatch.setattr(parts, "texts_of", lambda _: {"a.txt": f"same\n{new}"})
    with pytest.raises(AssertionError, match=r"part/a\.txt after line 1\n") as red:
        parts.check("part")
    assert str(red.value).count("\n") == parts.SHOWN + 1
