"""What a try of settings found, as the page of its profile and the page of its job show it.

What was found may be about settings that were saved anew meanwhile, and says so. Text of a profile
is a stranger's and is cleaned. torra.dashboard.settings.trying asks for tries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from torra.dashboard.view.rendering import backing
from torra.exhibits import figures
from torra.profiles.book import usable
from torra.profiles.fields import shown
from torra.profiles.guard import MORE_TRADES, Change
from torra.profiles.ten import called

if TYPE_CHECKING:
    from torra.replay.tried.estimate import Tried
    from torra.replay.tried.words import AloneRow, ChangeRow

KIND: Final = "settings"


@dataclass(frozen=True, slots=True)
class TriedLines:
    """A try as a page shows it.

    What was found is None while the job goes on, and where it came to nothing. `stale` says that
    other settings are saved by now.
    """

    found: Tried | None
    tables: Sequence[tuple[str, Sequence[ChangeRow]]]
    alone: Mapping[str, AloneRow]
    changes: Sequence[str]
    difference: str
    stale: bool


def lines(row: Mapping[str, Any], digest: str | None = None) -> TriedLines:
    """Return a try as a page shows it; `digest` is that of the saved profile, None: not asked."""
    from torra.replay.tried import kind, words  # noqa: PLC0415  the pages load it when asked to

    done = row["state"] == "done"
    found = kind.read(backing().home, str(row["made"])) if done else None
    return TriedLines(
        found=found,
        tables=words.tables(found) if found else (),
        alone={one.name: one for one in words.alone(found)} if found else {},
        changes=[_change(one) for one in found.changes] if found else (),
        difference=words.difference(found.before, found.after) if found else "",
        stale=bool(found and digest is not None and found.digest != digest),
    )


def profile_of(row: Mapping[str, Any]) -> str:
    """Return of which profile a try is; "" where that cannot be read."""
    from torra.jobs.kinds import parameters_of  # noqa: PLC0415

    name = str((parameters_of(row) or {}).get("profile", ""))
    return name if usable(name) else ""


def more_trades(changes: Sequence[Change], found: TriedLines | None) -> list[str]:
    """Return what to know of changes that let more trades through, with what a try showed."""
    loose = [change for change in changes if change.way == "loosens" and change.name in MORE_TRADES]
    if not loose:
        return []
    names = " and ".join(called(change.name) for change in loose)
    told = f"More trades come through with this change of {names}"
    wished = {change.name: change.after for change in changes}
    known = found.found if found and not found.stale else None
    if known is None or {one["place"]: one["after"] for one in known.changes} != wished:
        return [f"{told}. Try it on the last 30 days before you save it."]
    return [f"{told}. {known.says}"]


def _change(told: Mapping[str, Any]) -> str:
    name = figures.sanitize(called(str(told["place"])), 120)
    before, after = (figures.sanitize(shown(told[side]), 120) for side in ("before", "after"))
    return f"{name}: {before} → {after}"
