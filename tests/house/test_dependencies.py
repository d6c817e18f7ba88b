"""Everything that is installed is listed with its licence, pinned by hash, from no named place."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs import dependencies

LOCKS = sorted(dependencies.ROOT.glob("requirements*.txt"))


def test_the_page_is_what_the_lock_says() -> None:
    assert dependencies.PAGE.read_text("utf-8") == dependencies.render(), "python -m docs.generate"


def test_what_is_asked_for_is_pinned_and_has_a_purpose() -> None:
    locked = {pin.name for pin in dependencies.pins()}
    asked = set(dependencies.direct())
    assert asked <= locked
    assert asked == set(dependencies.PURPOSES)


@pytest.mark.parametrize(
    ("expression", "strange"),
    [
        ("MIT", []),
        ("BSD-3-Clause AND 0BSD AND Zlib", []),
        ("GPL-3.0-only", ["GPL-3.0-only"]),
        ("MIT AND AGPL-3.0-or-later", ["AGPL-3.0-or-later"]),
        ("", [""]),
    ],
)
def test_a_licence_that_nobody_has_read_is_refused(expression: str, strange: list[Any]) -> None:
    assert dependencies.unknown(expression) == strange


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_every_pin_has_hashes_and_names_no_place(lock: Path) -> None:
    text = lock.read_text("utf-8")
    assert "://" not in text and "--index" not in text and "--find-links" not in text
    pinned = re.split(r"\n(?=[A-Za-z0-9])", text.strip())
    assert len(pinned) > 3
    for one in pinned:
        assert re.match(r"[A-Za-z0-9_.\[\]-]+==", one), one[:60]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", one), one[:60]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_an_extra_that_a_package_asks_for_is_pinned_with_it(lock: Path) -> None:
    """pip looks for `google-auth[requests]` apart from the pin of `google-auth`: from the day of
    the next release on it finds that one, which has no hash, and installs nothing.
    """
    text = lock.read_text("utf-8")
    lines = re.findall(r"^([A-Za-z0-9_.-]+(?:\[.+?\])?==[^\s;]+)", text, re.MULTILINE)
    pins = {canonicalize_name(pin.name): pin.extras for pin in map(Requirement, lines)}
    missing = [
        f"{name} asks for {asked}"
        for name, extras in pins.items()
        for asked in asked_for(name, extras)
        if not asked.extras <= pins.get(canonicalize_name(asked.name), asked.extras)
    ]
    assert not missing, "make lock"


def asked_for(name: str, extras: set[str]) -> list[Requirement]:
    """What a package asks for where these extras of it are wanted; nothing when it is not here."""
    try:
        asked = [Requirement(line) for line in requires(name) or ()]
    except PackageNotFoundError:
        return []
    return [
        one
        for one in asked
        if one.marker is None or any(one.marker.evaluate({"extra": x}) for x in {"", *extras})
    ]
