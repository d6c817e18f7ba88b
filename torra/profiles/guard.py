"""The guard of settings: which of them protect the account, and which way each loosens.

An administrator may change a guarded setting; loosening one needs the command line, where somebody
sits at the desk's own machine. guard.csv is the one table: a place, with * for any name, and what
loosens it. A guarded section is covered whole: a test fails when a setting has no entry. A change
whose direction is not known counts as loosening. Pure functions; nothing is refused here.
"""

from __future__ import annotations

import json
import math
import ntpath
import posixpath
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from agent_config import CAPS
from agents.features import rows_of
from torra.profiles.fields import (
    ABSENT,
    ROLE_CAPS,
    USUAL,
    Place,
    flat,
    named,
    usual_cap,
    written,
)

Direction = str | tuple[str, ...]
"""What loosens a setting: a greater number (up), a smaller one (down), any change, none (free), an
entry less (fewer) or one more (more), a path that leaves the home, a calendar that goes or changes,
or, of several choices, a later one.
"""

May = Literal["harmless", "guarded", "loosen"]
"""What a caller may change: settings that are not guarded, guarded ones, or any."""

SECTIONS: Final = ("risk", "gate", "symbols")
"""Sections of which every setting is guarded."""

LOOSENS: Final[Mapping[str, Direction]] = {
    row["setting"]: tuple(row["loosens"].split(" < ")) if "<" in row["loosens"] else row["loosens"]
    for row in rows_of(Path(__file__).with_name("guard.csv"))
}
"""A symbol's conditions are guarded because sizes are computed from them: a smaller tick value lets
a position be larger. Provider, models and caps are guarded because they cost money; the ceiling
holds all the same. Who sits at the desk, and whether it counts, loosens by any change: agents that
count may open what L1 would not, and agents that no longer count do not veto or lessen what it
opens. The thresholds are guarded as the cooldown is: a lower one lets through several times the
trades.
`agents.memory` is guarded because words of a model, written long ago, reach an agent through it.
More rounds and dearer models loosen: a rebuttal, an escalation, a lower conviction from which it
comes. A gate that is asked less, a judge's hold that only lessens a size, and a judge that may ask
for closes loosen; whose word counts how much has no tighter way.
"""

LEVERAGE_CAPS: Final = ("risk", "leverage_caps")
"""Where nothing caps what has no entry."""

MORE_TRADES: Final = ("thresholds.buy", "thresholds.sell", "gate.max_spread_atr")
"""Guarded settings that let more trades through when they are loosened."""

PATHS: Final = ("agents.picture_file", "news.file", "events.calendar", "agents.memory.embedder")
"""Settings that name a file or a folder."""


@dataclass(frozen=True, slots=True)
class Change:
    """One setting that differs. `way` is loosens, tightens, free (guarded, neither), or ""."""

    place: Place
    before: Any
    after: Any
    default: Any
    way: Literal["loosens", "tightens", "free", ""]

    @property
    def name(self) -> str:
        """The place as a person writes it."""
        return named(self.place)

    @property
    def guarded(self) -> bool:
        """Whether it needs an administrator."""
        return self.way != ""

    def as_dict(self) -> dict[str, Any]:
        """Return the change for JSON."""
        return {**asdict(self), "place": self.name, "guarded": self.guarded}


@cache
def direction(place: Place) -> Direction | None:
    """Return what loosens a setting; None for one that is not guarded."""
    name = ".".join(place)
    for pattern, way in LOOSENS.items():
        if fnmatchcase(name, pattern):
            return way
    # A setting that the table forgot is guarded all the same.
    return "any" if place[0] in SECTIONS else None


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """Return what differs between the values of two profiles, in the order of the settings."""
    old, new = flat(before), flat(after)
    return tuple(
        Change(place, old.get(place), new.get(place), USUAL.get(place), _way(place, old, new))
        for place in dict.fromkeys([*old, *new])
        if old.get(place) != new.get(place)
    )


def loosening(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return the changes that need the command line."""
    return tuple(change for change in changes if change.way == "loosens")


def leads_out(changes: Iterable[Change]) -> list[str]:
    """Return the paths among changes that could name any file of this machine."""
    return [change.name for change in loosening(changes) if change.name in PATHS]


def command_line(name: str, changes: Sequence[Change]) -> str:
    """Return the command that makes changes to a profile, whichever of them loosen."""
    words, gone = ["torra", "profile", "set", name], dict[str, None]()
    for change in changes:
        if change.after is ABSENT:
            # Of a symbol all of it goes.
            size = 2 if change.place[0] == "symbols" else len(change.place)
            gone[named(change.place[:size])] = None
            continue
        text = written(change.after)
        if isinstance(change.after, list) or not text.isprintable():
            # Escapes instead of what a terminal would act on.
            text = json.dumps(change.after)
        words.append(f"{change.name}={text}")
    for place in gone:
        words += ["--unset", place]
    # Whoever types it has read what it loosens.
    words += ["--yes"] if loosening(changes) else []
    return shlex.join(words)


def _way(
    place: Place, old: Mapping[Place, Any], new: Mapping[Place, Any]
) -> Literal["loosens", "tightens", "free", ""]:
    rule = direction(place)
    if rule is None:
        return ""
    if rule == "free":
        return "free"
    before, after = old.get(place), new.get(place)
    if place[0] == "symbols" and ABSENT in (before, after):
        return "loosens"  # a symbol that comes or goes: what it will be held against is not known
    if place[:2] == ROLE_CAPS and place[-1] in CAPS:
        usual = usual_cap(place[2], place[-1])
        before, after = (usual if value is ABSENT else value for value in (before, after))
    if place[:2] == LEVERAGE_CAPS:
        before, after = (math.inf if value is ABSENT else value for value in (before, after))
    return "loosens" if _loosens(rule, before, after) else "tightens"


def _loosens(rule: Direction, before: Any, after: Any) -> bool:
    if isinstance(rule, tuple):
        return rule.index(after) > rule.index(before)
    if rule in ("up", "down"):
        return bool(after > before if rule == "up" else after < before)
    if rule == "fewer":
        # No currencies at first means that they come from the symbol's name, which a list replaces.
        return not before or not set(before) <= set(after)
    if rule == "more":
        return not set(after) <= set(before)
    if rule == "path":
        return not _inside(after)
    # Any change, or a calendar: a first one only tightens, another one may know fewer events.
    return rule == "any" or bool(before) or not _inside(after)


def _inside(path: str) -> bool:
    """Return whether a path, read as Windows and as POSIX, stays below the home."""
    # Both systems' rules, on either: a profile may be copied from one to the other.
    if ntpath.splitdrive(path)[0] or path[:1] in ("/", "\\", "~") or not path.isprintable():
        return False
    parts = posixpath.normpath(path.replace("\\", "/")).split("/")
    return ".." not in parts and ":" not in path
