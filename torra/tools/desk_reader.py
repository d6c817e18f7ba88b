"""The desk as a tool may see it: files and database opened for reading only, at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from torra.config import DeskSettings, Instance, Profile

if TYPE_CHECKING:
    from instance_database import Database


@dataclass(frozen=True)
class DeskReader:
    """A desk at `as_of`, UTC: nothing later is visible to what reads through it.

    `profiles` has the profile that was applied last, by instance.
    """

    home: Path
    database: Database
    settings: DeskSettings
    profiles: Mapping[str, Profile]
    as_of: datetime

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The instances of the desk, without the hosted ones."""
        return self.settings.instances
