"""A desk that only looks: for pages in a host's process and for tools, where no desk runs.

It reads from a home what the desk's own process stored: the profiles that it runs with, its signs
of life, and its clock. It starts nothing and claims nothing, and writes only what a
person orders on a page. While a desk works, this clock runs at the desk's pace. While none does,
time stands still where the last one stopped, and the pages say that nothing runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from torra.clock import SAMPLE_RATE, Clock, Scaled, Simulated, System, parse
from torra.config import (
    DeskSettings,
    Instance,
    Profile,
    has_desk,
    load_desk,
    load_profile,
)
from torra.errors import ConfigError
from torra.home import HOSTED, has_database
from torra.store import hosted as hosted_table
from torra.store import ticks as claim_table

if TYPE_CHECKING:
    from instance_database import Database

PROFILE_SECONDS: Final = 5.0
"""Seconds for which the profiles that were read are used before they are read again."""


class RunningSetup(Protocol):
    """An instance as the desk runs it."""

    @property
    def instance(self) -> Instance:
        """The instance of desk.json."""
        ...

    @property
    def profile(self) -> Profile:
        """The profile that it runs with, which may be changed while it runs."""
        ...


class RunningDesk(Protocol):
    """The parts of a desk that pages and tools read (torra.desk.schedule.Desk, or LookingDesk)."""

    @property
    def clock(self) -> Clock:
        """The desk's clock; a start goes on with another one."""
        ...

    @property
    def setups(self) -> Mapping[str, RunningSetup]:
        """The instances by their names."""
        ...

    @property
    def active(self) -> bool:
        """Whether a desk works: that of this process, or, for one that looks, any."""
        ...


@dataclass(frozen=True, slots=True)
class ReadOnlyDesk:
    """An instance as a looking desk knows it."""

    instance: Instance
    profile: Profile


class LookingDesk:
    """The RunningDesk of a process that runs no desk."""

    def __init__(self, home: Path, settings: DeskSettings, database: Database) -> None:
        self.home = home
        self.settings = settings
        self.database = database
        self._sample = any(item.feed == "sample" for item in settings.instances)
        self._system = System()
        self._read: tuple[float, Mapping[str, ReadOnlyDesk]] | None = None

    @property
    def active(self) -> bool:
        """Whether some desk works on the home now."""
        return self.database.desk_runs()

    @property
    def clock(self) -> Clock:
        """The desk's clock, reckoned from its last sign of life."""
        # only the sample has a clock of its own; every other desk lives in real time
        if not self._sample:
            return self._system
        stood, run = self.database.desk_time(), claim_table.desk_run(self.database)
        if stood is None:
            return self._system
        if run is None or run["desk_time"] is None or not self.active:
            return _Stopped(stood)
        # its last sign of life, carried on at the pace of the sample
        since = self._system.real_now() - parse(run["seen_at"])
        return Scaled(parse(run["desk_time"]) + since * SAMPLE_RATE, SAMPLE_RATE)

    @property
    def setups(self) -> Mapping[str, ReadOnlyDesk]:
        """By instance, each with the profile that runs, or that the next desk starts with."""
        now = self._system.monotonic()
        if self._read is None or now - self._read[0] > PROFILE_SECONDS:
            setups = {
                item.id: ReadOnlyDesk(item, self._profile(item)) for item in self.settings.instances
            }
            self._read = (now, setups)
        return self._read[1]

    def _profile(self, instance: Instance) -> Profile:
        if not self.active:
            with suppress(ConfigError):  # a broken file: what ran last
                return load_profile(instance.profile, self.home)
        applied = claim_table.applied_profile(self.database, instance.id)
        if applied is not None:
            with suppress(ValueError):  # applied by another version: the file is the truth
                return Profile.model_validate_json(applied["profile"])
        return load_profile(instance.profile, self.home)


class _Stopped(Simulated):
    """The clock of a sample desk that does not run."""

    accelerated = True


def look_at(home: Path) -> LookingDesk:
    """Open a home to look at it; raises ConfigError when no desk has run there yet.

    The database is brought up to date as at any start. That of an overlay of this process is made
    if it is not there yet.
    """
    from instance_database import open_home  # noqa: PLC0415  the pages open one only when asked to

    if not has_database(home) and home.absolute() not in HOSTED:
        raise ConfigError(
            f"no desk has run in {home.absolute()} yet: start one with `torra run`, or name its "
            "home with TORRA_AGENTS_HOME or TORRA_HOME"
        )
    load_desk(home)  # before a database is opened
    return looking_desk(home, open_home(home))


def check_profiles(desk: LookingDesk) -> None:
    """Raise ConfigError for a broken profile file of a desk or of a stream hosted there.

    A looking desk itself goes on with what ran last, for the pages of a host must.
    """
    own = {item.profile for item in desk.settings.instances}
    hosted = {item.profile for item in hosted_table.hosted_instances(desk.database)}
    for name in sorted(own | hosted):
        if name in own or (desk.home / "profiles" / f"{name}.json").exists():
            load_profile(name, desk.home)


def looking_desk(home: Path, database: Database) -> LookingDesk:
    """Return the desk of a home by its open database; raises ConfigError.

    A home that has never had a desk.json shows hosted streams alone.
    """
    settings = load_desk(home)
    if (
        not has_desk(home)
        and (home.absolute() in HOSTED or hosted_table.hosted_streams(database))
        and not claim_table.desk_run(database)
    ):
        # Without a desk.json a desk would be the demo's, and none has run here.
        settings = settings.model_copy(update={"instances": ()})
    return LookingDesk(home, settings, database)
