"""What a check says, and what it looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Final

from torra.clock import System
from torra.config import DeskSettings, Instance, Profile, load_desk, load_profile
from torra.home import DATABASE, PRICES
from torra.providers.prices import PriceList

LEVELS: Final = ("alert", "warn", "unknown", "note", "ok")
"""Levels of a finding, the worst first."""

PAUSED: Final = "see docs/install.md: a desk that is paused"
UNSENT: Final = "torra notices lists them, torra notices test tries again (docs/notices.md)"
MEND: Final = "mend what the line names"
"""Remedies that more than one check names."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The state of one thing; `level` is one of LEVELS.

    `facts` are (name, text). Any text may be a stranger's.
    """

    name: str
    level: str
    detail: str
    remedy: str = ""
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def line(self) -> str:
        """Detail and remedy in a line."""
        return f"{self.detail}; {self.remedy}" if self.remedy else self.detail


def worst(results: Iterable[CheckResult]) -> str:
    """Return the worst level of some results, "unknown" left aside; "ok" of none."""
    # A database that nobody has asked to read through yet is no fault.
    levels = {result.level for result in results} - {"unknown"}
    return next((level for level in LEVELS if level in levels), "ok")


@dataclass(frozen=True)
class Context:
    """The subject of all checks: a desk's home, with the environment that holds its keys.

    `alarm` is called with what makes the database unusable, before its remedy is worked out, which
    reads backups. `settings` and `profiles` raise ConfigError.
    """

    home: Path
    environment: Mapping[str, str]
    alarm: Callable[[str], object] = field(default=lambda _: None)

    @property
    def database(self) -> Path:
        """The file of the database, which need not be there."""
        return self.home / DATABASE

    @property
    def now(self) -> datetime:
        """The time of this machine."""
        return System().real_now()

    @cached_property
    def settings(self) -> DeskSettings:
        """The desk as desk.json has it."""
        return load_desk(self.home)

    @cached_property
    def profiles(self) -> dict[str, tuple[Profile, list[Instance]]]:
        """Every profile of the desk by name, with the instances that use it."""
        profiles: dict[str, tuple[Profile, list[Instance]]] = {}
        for instance in self.settings.instances:
            name = instance.profile
            if name not in profiles:
                profiles[name] = (load_profile(name, self.home), [])
            profiles[name][1].append(instance)
        return profiles

    @cached_property
    def prices(self) -> PriceList:
        """The prices of models."""
        return PriceList.read(self.home / PRICES)
