"""Writes docs/dependencies.md: what is installed, in which version, under which licence, what for.

Names and versions are those of requirements.txt; licences are read from the installed packages, and
for those that only other systems install from the table below. A licence that is not in ALLOWED is
an error: somebody has to read it first. `python -m docs.generate` writes the page with the others.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import Final, cast

ROOT: Final = Path(__file__).resolve().parents[1]
LOCK: Final = ROOT / "requirements.txt"
PAGE: Final = ROOT / "docs" / "dependencies.md"

PINNED: Final = re.compile(
    r"^([A-Za-z0-9_.-]+)(?:\[[a-z0-9,._-]+\])?==([^\s;]+)(?:\s*;\s*(.*?))?\s*\\?$"
)
REQUIRED: Final = re.compile(r"^([A-Za-z0-9_.-]+)")

ALLOWED: Final = frozenset({
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "MIT", "MIT-0",
    "MPL-2.0", "PSF-2.0", "Zlib", "ZPL-2.1", "public domain",
})  # fmt: skip
"""Licences that a program under MIT may depend on; by their SPDX names."""

SPELLED: Final[Mapping[str, str]] = {
    "Apache 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "PSFL": "PSF-2.0",
    "Public Domain": "public domain",
    "ZPL 2.1": "ZPL-2.1",
}
"""How packages write a licence that has an SPDX name."""

ELSEWHERE: Final[Mapping[str, str]] = {"httpx2-jsfetch": "MIT"}
"""Licences of packages that only other systems install."""

READ: Final[Mapping[str, str]] = {"ta-lib": "BSD-2-Clause"}
"""Licences of packages that tell theirs in the text of their LICENSE alone."""

PURPOSES: Final[Mapping[str, str]] = {
    "anthropic": "asks Anthropic's models",
    "apscheduler": "wakes the desk when bars close",
    "click": "the command line",
    "finnhub-python": "headlines and fundamentals",
    "flask": "the dashboard",
    "genai-prices": "what a call costs",
    "google-genai": "asks Google's models",
    "httpx2": "the transport below the vendors' clients",
    "numpy": "arrays",
    "openai": "asks OpenAI's models and compatible servers",
    "pandas": "bars",
    "pandas-ta-classic": "indicators",
    "pydantic": "settings and every document from outside",
    "requests": "headlines of Alpha Vantage",
    "setuptools": "installs Torra itself",
    "sqlite-utils": "connections, the steps of the schema, upserts and counts",
    "ta-lib": "computes the recursive indicators for pandas-ta-classic",
    "tzdata": "time zones where the system has none",
    "waitress": "serves the dashboard",
    "werkzeug": "requests and answers below Flask",
}
"""What the packages that pyproject.toml names are used for."""

HEAD: Final = """# Dependencies

What `make run` installs: the versions are pinned and their hashes checked at every installation
(`requirements.txt`). Development, benchmarks and audits have locks of their own. The files that
Torra ships of others are in [THIRD_PARTY_NOTICES](../THIRD_PARTY_NOTICES). The list of words for
headlines is Torra's own ([news.md](news.md)).

`make audit` compares every pin with the public list of known vulnerabilities (`pip-audit`); it
needs that list, and ends with an error where the list cannot be reached or a package is not in it.

| package | version | licence | what for |
|---|---|---|---|
"""
TAIL: Final = "\nThis page is written from the lock: `python -m docs.generate`.\n"


@dataclass(frozen=True, slots=True)
class Pin:
    """One line of the lock: a package, its version, and where it is installed ("": everywhere)."""

    name: str
    version: str
    marker: str


def pins() -> tuple[Pin, ...]:
    """Return the packages of the lock in its order."""
    found = (PINNED.match(line.strip()) for line in LOCK.read_text(encoding="utf-8").splitlines())
    return tuple(Pin(m[1], m[2], m[3] or "") for m in found if m)


def licence(name: str) -> str:
    """Return a package's licence by its SPDX names; raises LookupError where nothing tells it."""
    try:
        told = cast(Message, metadata(name))  # its protocol does not tell `get`
    except PackageNotFoundError:
        return ELSEWHERE[name]
    classified = [
        line.rpartition("::")[2].strip()
        for line in told.get_all("Classifier") or ()
        if line.startswith("License ::")
    ]
    said = told.get("License-Expression") or told.get("License") or " OR ".join(classified)
    said = said or READ.get(name, "")
    first = said.strip().splitlines()[0] if said.strip() else ""
    if not first:
        raise LookupError(f"{name} does not say under which licence it is")
    return SPELLED.get(first, first)


def unknown(expression: str) -> list[str]:
    """Return the licences of an expression that nobody has allowed."""
    return [one for one in re.split(r"\s+(?:AND|OR)\s+", expression) if one not in ALLOWED]


def direct() -> tuple[str, ...]:
    """Return the packages that Torra itself asks for."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*told["dependencies"], *told["optional-dependencies"]["install"]]
    return tuple(name for line in asked if (name := _named(line)))


def render() -> str:
    """Return the page; raises LookupError for a licence that nobody has read."""
    rows = "".join(_row(pin) for pin in pins())
    return f"{HEAD}{rows}{TAIL}"


def _row(pin: Pin) -> str:
    told = licence(pin.name)
    if strange := unknown(told):
        raise LookupError(f"{pin.name}: nobody has read the licence {', '.join(strange)}")
    version = f"{pin.version} (`{pin.marker}`)" if pin.marker else pin.version
    return f"| {pin.name} | {version} | {told} | {_purpose(pin.name)} |\n"


def _purpose(name: str) -> str:
    if name in PURPOSES:
        return PURPOSES[name]
    return f"needed by {', '.join(sorted(_needed_by().get(name, ()))) or 'other systems'}"


@cache
def _needed_by() -> Mapping[str, set[str]]:
    """Return for each package of the lock the others of the lock that ask for it."""
    names = {pin.name for pin in pins()}
    found: dict[str, set[str]] = {}
    for name in names:
        for asked in _requires(name):
            if asked in names and asked != name:
                found.setdefault(asked, set()).add(name)
    return found


def _requires(name: str) -> Iterator[str]:
    try:
        asked = requires(name) or ()
    except PackageNotFoundError:
        return
    for line in asked:
        if "extra ==" not in line and (found := _named(line)):
            yield found


def _named(requirement: str) -> str:
    found = REQUIRED.match(requirement)
    return found[1].lower().replace("_", "-").replace(".", "-") if found else ""
