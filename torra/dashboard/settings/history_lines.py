"""The history of a profile as a page shows it: what changed, and what each entry would put back.

Everything is told before it is done: by setting, what it is now and what it would be; which
settings stay, and why; the command for those that only the command line may loosen, and what
happens then. Text of the history is a stranger's and is cleaned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from torra.dashboard.settings.profile_form import LONGEST, KeptChange, changes_kept
from torra.evaluation.wording import count, listed
from torra.exhibits import figures
from torra.profiles.book import HistoryEntry
from torra.profiles.fields import shown
from torra.profiles.guard import Change
from torra.profiles.ten import called
from torra.profiles.undoing import SAME, PutBack

ACTIONS: Final = {
    "shipped": "the settings as they were shipped",
    "found on the disk": "the settings as an editor left them",
    "save": "saved on a page",
    "set": "saved with torra profile set",
}
"""What an entry's action means to a reader; an undo says it itself."""

COMMAND_LINE: Final = "because loosening it needs the command line"
ADMINISTRATOR: Final = "because only an administrator may change it"
THEN: Final = (
    "A desk that runs takes it at its next start, or when an administrator lets it take the file "
    "on this page."
)


@dataclass(frozen=True, slots=True)
class BackLine:
    """One setting that is put back, or stays: what it is now, what the entry has, and why."""

    title: str
    place: str
    now: str
    then: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class PutBackLines:
    """What putting an entry back does, as text.

    `label` is what its button says, `question` what is asked first. `why_not` is why the button
    does nothing, `command` what to type for what stays.
    """

    back: list[BackLine]
    stays: list[BackLine]
    command: str
    then: str
    label: str
    question: str
    why_not: str
    part: bool


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """An entry of the history; `says` is its action in words.

    `put_back` is None for the one that is saved now.
    """

    number: int
    at: str
    actor: str
    action: str
    says: str
    digest: str
    changes: list[KeptChange]
    put_back: PutBackLines | None = None


def entry_told(entry: HistoryEntry, found: PutBack | None = None) -> HistoryLine:
    """Return an entry as text, with what putting it back does."""
    return HistoryLine(
        number=entry.number,
        at=entry.at,
        actor=figures.clean(entry.actor, 80),
        action=figures.clean(entry.action, 80),
        says=ACTIONS.get(entry.action, figures.clean(entry.action, 80)),
        digest=entry.digest,
        changes=changes_kept(entry.changes),
        put_back=put_back_told(found) if found and found.why_not != SAME else None,
    )


def put_back_told(found: PutBack) -> PutBackLines:
    """Return as text what putting an entry back does."""
    back = [_line(change) for change in found.back]
    stays = [
        *(_line(change, COMMAND_LINE) for change in found.loose),
        *(_line(change, ADMINISTRATOR) for change in found.guarded),
    ]
    label = _label(found)
    return PutBackLines(
        back=back,
        stays=stays,
        command=figures.clean(found.command, 2000),
        then=THEN if found.command else "",
        label=label,
        question=_question(label, back, stays),
        why_not=figures.clean(found.why_not, 600),
        part=not found.whole,
    )


def _label(found: PutBack) -> str:
    if found.whole or not found.back:
        return f"Put entry {found.number} back"
    return f"Put back {len(found.back)} of {count(found.total, 'setting')}"


def _question(label: str, back: Iterable[BackLine], stays: Iterable[BackLine]) -> str:
    """Return what is asked before an entry is put back: what changes, and what stays and why."""
    told = listed([f"{line.title} {line.now} → {line.then}" for line in back])
    kept: dict[str, list[str]] = {}
    for line in stays:
        kept.setdefault(line.why, []).append(f"{line.title} stays at {line.now}")
    why = [f"{listed(lines)}, {_of(why, len(lines))}." for why, lines in kept.items()]
    return " ".join([f"{label}: {told}?", *why])


def _of(why: str, number: int) -> str:
    """Return a reason for so many settings."""
    return why if number == 1 else re.sub(r"\bit\b", "them", why)


def _line(change: Change, why: str = "") -> BackLine:
    return BackLine(
        title=figures.clean(called(change.name), 120),
        place=figures.clean(change.name, 120),
        now=_value(change.before),
        then=_value(change.after),
        why=why,
    )


def _value(value: Any) -> str:
    return figures.clean(shown(value), LONGEST)
