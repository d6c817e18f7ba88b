"""What putting an entry of the history back would change, and which part of it a caller may.

An entry is put back as new values, so the rules of any change hold: a guarded setting needs an
administrator, and one that loosens the command line. The part that a caller may is told before, by
setting, old and new; the rest stays as it is, each with its reason and the command that puts it
back. A part that does not fit together with what stays is not offered. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import ValidationError

from torra.config import Profile, faults
from torra.profiles.fields import ABSENT, canonical, changed
from torra.profiles.guard import Change, command_line, compare, loosening

May = Literal["harmless", "guarded", "loosen"]
"""What a caller may change: settings that are not guarded, guarded ones, or any."""

BLIND: Final = "The file is broken and has no history, so nobody can tell what this would loosen."
SAME: Final = "Nothing differs from what is saved now."


@dataclass(frozen=True, slots=True)
class PutBack:
    """What putting an entry back comes to, from the saved values to the entry's.

    `digest` is that of the saved profile for which this holds.
    `back` are the changes that are made, all of them or none. `loose` stay because they loosen and
    need the command line, which `command` is; `guarded` stay because they need an administrator.
    `why_not` is why nothing can be put back, "" where `back` may be.
    """

    number: int
    digest: str
    back: tuple[Change, ...] = ()
    loose: tuple[Change, ...] = ()
    guarded: tuple[Change, ...] = ()
    command: str = ""
    why_not: str = ""

    @property
    def whole(self) -> bool:
        """Whether nothing stays."""
        return not self.loose and not self.guarded

    @property
    def total(self) -> int:
        """How many settings the entry has otherwise."""
        return len(self.back) + len(self.loose) + len(self.guarded)


def put_back(
    name: str,
    number: int,
    digest: str,
    now: Mapping[str, Any] | None,
    then: Mapping[str, Any],
    may: May,
) -> PutBack:
    """Return what putting the values `then` in the place of `now` comes to for a caller.

    `now` is None where nobody knows what is saved.
    """
    if now is None and may != "loosen":
        return PutBack(number, digest, why_not=BLIND)
    try:
        wanted = canonical(Profile.model_validate(then))
    except ValidationError as error:
        place, said = faults(Profile, error)[0]
        told = f"{'.'.join(place)}: {said}" if place else said
        return PutBack(number, digest, why_not=f"This entry does not fit this version: {told}")
    changes = compare(now or {}, wanted)
    loose = _loose(changes) if may != "loosen" else ()
    guarded = _guarded(changes, loose) if may == "harmless" else ()
    back = tuple(item for item in changes if item not in loose and item not in guarded)
    command = command_line(name, loose) if loose else ""
    return PutBack(
        number, digest, back, loose, guarded, command,
        _why_not(now or {}, back, (*loose, *guarded)),
    )  # fmt: skip


def values_after(now: Mapping[str, Any], found: PutBack) -> dict[str, Any]:
    """Return the saved values with that part put back."""
    return changed(now, {item.place: item.after for item in found.back})


def _loose(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """Return the changes that need the command line, a symbol that comes or goes as a whole."""
    loose = loosening(changes)
    whole = {
        item.place[:2]
        for item in loose
        if item.place[0] == "symbols" and ABSENT in (item.before, item.after)
    }
    return tuple(item for item in changes if item in loose or item.place[:2] in whole)


def _guarded(changes: tuple[Change, ...], loose: tuple[Change, ...]) -> tuple[Change, ...]:
    return tuple(item for item in changes if item.guarded and item not in loose)


def _why_not(now: Mapping[str, Any], back: tuple[Change, ...], stays: tuple[Change, ...]) -> str:
    """Return why a part cannot be put back; "" where it can."""
    if not back:
        return "Nothing of it may be put back here." if stays else SAME
    if not stays:
        return ""
    try:
        Profile.model_validate(changed(now, {item.place: item.after for item in back}))
    except ValidationError as error:
        _, said = faults(Profile, error)[0]
        # Without the values: the lines beside it tell them.
        return f"What may be put back does not fit what stays: {said.partition(' (found ')[0]}."
    return ""
