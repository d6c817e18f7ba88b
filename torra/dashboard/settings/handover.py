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
from typing import Final

from pydantic import JsonValue

from torra.config import Profile
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.commanding import CommandOutcome
from torra.errors import ConfigError, StoreUnavailable
from torra.evaluation.wording import listed
from torra.profiles.book import ProfileBook
from torra.profiles.fields import canonical
from torra.profiles.guard import Change, May, compare, loosening

LATER: Final = "It takes effect at the next start of the desk"

ADOPTING: Final = threading.Lock()
"""Held while a page hands profiles to the desk: what was compared is what the desk takes."""


def gap(context: PageContext, instance: str, profile: Profile | None) -> tuple[Change, ...]:
    """Return the changes between a profile and the one that an instance runs with."""
    setup = context.desk.setups.get(instance)
    if setup is None or profile is None or setup.profile.digest() == profile.digest():
        return ()
    return compare(canonical(setup.profile), canonical(profile))


def apply_profile(context: PageContext, shelf: ProfileBook, name: str, may: May) -> CommandOutcome:
    """Let the running desk take the file as it is now, if this visitor may change all of it.

    The audit entry has by instance what ran before (`running`) and what the file says (`file`).
    """
    users = [item.id for item in shelf.users(name)]
    if not users:
        return CommandOutcome("done", "No symbol uses it.")
    # two saves at once: the desk must take the very file that was compared
    with ADOPTING:
        newest = shelf.read(name).profile
        if newest is None:
            return CommandOutcome("accepted", "The file was changed again and is broken now.")
        gaps = {user: changes for user in users if (changes := gap(context, user, newest))}
        stop = _withheld(gaps, may) if context.adopt else f"{LATER}."
        if context.adopt and not stop:
            try:
                context.adopt(name, newest)
            except (ConfigError, StoreUnavailable) as error:
                stop = f"{LATER}: {error}"
        # an instance in the middle of a tick keeps its profile until that tick has ended
        behind = [] if stop else [user for user in users if gap(context, user, newest)]
    return CommandOutcome(
        "accepted" if stop else "running" if behind else "done",
        stop or _when([user for user in users if user not in behind], behind),
        {"running": _values(gaps, "before")} if gaps else {},
        {"file": _values(gaps, "after")} if gaps else {},
    )


def _values(gaps: Mapping[str, Sequence[Change]], side: str) -> dict[str, JsonValue]:
    return {
        name: {item.name: getattr(item, side) for item in changes} for name, changes in gaps.items()
    }


def _when(ahead: Sequence[str], behind: Sequence[str]) -> str:
    """Return when instances run with what the desk took: from the next tick, or after this one."""
    verb, whose = ("runs", "its") if len(ahead) == 1 else ("run", "their")
    now = [f"{listed(ahead)} {verb} with it from {whose} next tick."] if ahead else []
    return " ".join([*now, *(f"{user} takes it when its tick has ended." for user in behind)])


def _withheld(gaps: Mapping[str, Sequence[Change]], may: May) -> str:
    """Say which changes of the file this visitor may not make; "" for none."""
    changes = [item for differences in gaps.values() for item in differences]
    stopped = loosening(changes) if may == "guarded" else [item for item in changes if item.guarded]
    if may == "loosen" or not stopped:
        return ""
    names = listed(list(dict.fromkeys(item.name for item in stopped)))
    if may == "guarded":
        return f"It does not run yet: it loosens {names}. Let the desk take it by its own button."
    return (
        f"It does not run yet: it changes {names}, so an administrator must let the desk take it."
    )
