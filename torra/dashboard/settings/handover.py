"""The handover of a saved profile to the running desk: which changes take effect, by whose word.

A save changes a file, and the desk takes the whole file. The file may differ from the running
profile by more than was saved: by somebody else's change for the next start. So both are compared,
and nothing is handed over that this visitor may not change. The audit entry says what ran and what
the file says instead. A desk that cannot take the file goes on as it is, and the answer says when
the file takes effect.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import JsonValue

from torra.config import Profile
from torra.dashboard.view.backing import PageContext
from torra.errors import ConfigError, StoreUnavailable
from torra.evaluation.wording import listed
from torra.profiles.book import ProfileBook
from torra.profiles.fields import canonical
from torra.profiles.guard import Change, May, compare, loosening

LATER: Final = "It takes effect at the next start of the desk"

ADOPTING: Final = threading.Lock()
"""Held while a page hands profiles to the desk: what was compared is what the desk takes."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """The result of handing a profile to the desk.

    `gaps` are by instance: what the file changes against what ran before.
    """

    status: Literal["accepted", "running", "done"]
    reason: str
    gaps: Mapping[str, Sequence[Change]] = field(default_factory=dict)

    def before(self) -> dict[str, JsonValue]:
        """Return the values that ran, for the audit entry."""
        return {"running": self._values("before")} if self.gaps else {}

    def after(self) -> dict[str, JsonValue]:
        """Return the values of the file, for the audit entry."""
        return {"file": self._values("after")} if self.gaps else {}

    def _values(self, side: str) -> dict[str, JsonValue]:
        return {
            name: {item.name: getattr(item, side) for item in changes}
            for name, changes in self.gaps.items()
        }


def gap(known: PageContext, instance: str, profile: Profile | None) -> tuple[Change, ...]:
    """Return the changes between a profile and the one that an instance runs with."""
    setup = known.desk.setups.get(instance)
    if setup is None or profile is None or setup.profile.digest() == profile.digest():
        return ()
    return compare(canonical(setup.profile), canonical(profile))


def apply_profile(known: PageContext, shelf: ProfileBook, name: str, may: May) -> Adopted:
    """Let the running desk take the file as it is now, if this visitor may change all of it."""
    users = [item.id for item in shelf.users(name)]
    if not users:
        return Adopted("done", "No symbol uses it.")
    # two saves at once: the desk must take the very file that was compared
    with ADOPTING:
        newest = shelf.read(name).profile
        if newest is None:
            return Adopted("accepted", "The file was changed again and is broken now.")
        gaps = {user: found for user in users if (found := gap(known, user, newest))}
        if known.adopt is None:
            return Adopted("accepted", f"{LATER}.", gaps)
        if stop := _withheld(gaps, may):
            return Adopted("accepted", stop, gaps)
        try:
            known.adopt(name, newest)
        except (ConfigError, StoreUnavailable) as error:
            return Adopted("accepted", f"{LATER}: {error}", gaps)
        return _taken(known, users, newest, gaps)


def _taken(
    known: PageContext, users: Sequence[str], newest: Profile, gaps: Mapping[str, Sequence[Change]]
) -> Adopted:
    # an instance in the middle of a tick keeps its profile until that tick has ended
    behind = [user for user in users if gap(known, user, newest)]
    told = []
    if ahead := [user for user in users if user not in behind]:
        one = len(ahead) == 1
        verb, whose = ("runs", "its") if one else ("run", "their")
        told.append(f"{listed(ahead)} {verb} with it from {whose} next tick.")
    told += [f"{user} takes it when its tick has ended." for user in behind]
    return Adopted("running" if behind else "done", " ".join(told), gaps)


def _withheld(gaps: Mapping[str, Sequence[Change]], may: May) -> str:
    """Say which changes of the file this visitor may not make; "" for none."""
    changes = [item for found in gaps.values() for item in found]
    held = loosening(changes) if may == "guarded" else [item for item in changes if item.guarded]
    if may == "loosen" or not held:
        return ""
    names = listed(list(dict.fromkeys(item.name for item in held)))
    if may == "guarded":
        return f"It does not run yet: it loosens {names}. Let the desk take it by its own button."
    return (
        f"It does not run yet: it changes {names}, so an administrator must let the desk take it."
    )
