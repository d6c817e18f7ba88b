"""The streams of other programs' scorers on a home (torra.overlay), as the pages know them.

They stand in no desk.json: a stream is there once a question of it was stored, with the profile
that counted for it then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torra.config import Instance, Profile
from torra.dashboard.view.kept import LruCache
from torra.store import hosted as hosted_table
from torra.store import ticks as claim_table

if TYPE_CHECKING:
    from instance_database import Database

PROFILES_KEPT: Final = 64


class HostedStreams:
    """Reader of the hosted streams of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._profiles: LruCache[Profile] = LruCache(PROFILES_KEPT)

    def instances(self) -> list[Instance]:
        """Return every hosted stream that has a tick, by name."""
        return hosted_table.hosted_instances(self._database)

    def profile(self, instance: Instance) -> Profile:
        """Return the profile that counted at the newest question of a stream."""
        applied = claim_table.applied_profile(self._database, instance.id)
        if applied is None:
            return Profile()

        def read() -> Profile:
            try:
                return Profile.model_validate_json(applied["profile"])
            except ValueError:  # stored by another version
                return Profile()

        return self._profiles.get((instance.id, applied["digest"]), read)
