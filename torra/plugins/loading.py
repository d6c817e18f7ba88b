"""Finds what a package of somebody else brings: a feed, a bridge, a provider, news or notices.

A plug-in is an entry point of an installed distribution, in the group of its family. It is named
`DISTRIBUTION:NAME` and is loaded only where desk.json's `plugins` lists the distribution, because
its code runs with all of Torra's rights. A built-in name has no colon, so no plug-in can take its
place. ConfigError names the plug-in and the remedy: one that is not allowed, not installed, not
there under that name, or that fails as it is loaded. What a plug-in may do with a tick is limited
outside of it: by the door, the guards, the deadline and the ceiling (docs/extending.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import cache
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final, Literal

from agent_config import is_plug_in
from torra.config import DeskSettings, load_desk
from torra.errors import ConfigError

Family = Literal["feeds", "bridges", "providers", "news", "notices"]

GROUP: Final = "torra."
"""Begins the group of a family's entry points, such as torra.feeds."""

SEPARATORS: Final = re.compile(r"[-_.]+")


def load(family: Family, name: str, allowed: Collection[str]) -> Callable[..., Any]:
    """Return what a plug-in has under its name: a callable. Raises ConfigError.

    `allowed` are the distributions that desk.json lists in `plugins`.
    """
    package, _, entry = name.partition(":")
    if canonical(package) not in set(map(canonical, allowed)):
        raise ConfigError(
            f'{name} is a plug-in that desk.json does not allow: add "{package}" to its plugins, '
            "if you trust that package with your account"
        )
    point = _entry_point(family, name, package, entry)
    try:
        target = point.load()
    except Exception as error:
        raise ConfigError(
            f"the plug-in {name} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not callable(target):
        raise ConfigError(f"the plug-in {name} is no callable but {type(target).__name__}")
    return target  # type: ignore[no-any-return]


def of_home(home: Path, family: Family) -> Callable[[str], Callable[..., Any]]:
    """Return what finds plug-ins as a home's desk.json allows them; it reads that when asked."""
    return lambda name: load(family, name, load_desk(home).plugins)


def of_desk(settings: DeskSettings, family: Family) -> Callable[[str], Callable[..., Any]]:
    """Return what finds plug-ins as a desk's settings allow them."""
    return lambda name: load(family, name, settings.plugins)


def versions(names: Iterable[str]) -> dict[str, str]:
    """Return the version of each distribution among these names; names without one are built in.

    "unknown" for a distribution that is gone by now.
    """
    packages = {name.partition(":")[0] for name in names if is_plug_in(name)}
    return {package: _version(package) for package in sorted(packages)}


def brought(package: str) -> list[str]:
    """Return what a distribution brings, as family and name; ConfigError if not installed."""
    installed = _installed(package, package)
    return sorted(
        f"{point.group.removeprefix(GROUP)}: {package}:{point.name}"
        for point in installed.entry_points
        if point.group.startswith(GROUP)
    )


def canonical(package: str) -> str:
    """Return the name of a distribution as packages compare it: torra_acme is Torra-Acme."""
    return SEPARATORS.sub("-", package).lower()


def _entry_point(family: Family, name: str, package: str, entry: str) -> EntryPoint:
    points = _installed(package, name).entry_points.select(group=f"{GROUP}{family}")
    for point in points:
        if point.name == entry:
            return point
    names = ", ".join(sorted(f"{package}:{point.name}" for point in points)) or "none"
    raise ConfigError(f"there is no {name}: the {family} that {package} brings are {names}")


def _installed(package: str, name: str) -> Distribution:
    try:
        return distribution(package)
    except (PackageNotFoundError, ValueError):
        raise ConfigError(
            f"the plug-in {name} is not installed: install {package} into the environment that "
            "runs torra, with pip"
        ) from None


@cache
def _version(package: str) -> str:
    try:
        return distribution(package).version
    except (PackageNotFoundError, ValueError):
        return "unknown"
