"""The history of a profile as a page shows it: what changed, and what each entry would put back.

Everything is told before it is done: by setting, what it is now and what it would be; else why it
may not be done here, and the command that does it. Text of the history is a stranger's and is
cleaned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from torra.dashboard.settings.profile_form import LONGEST, KeptChange, changes_kept
from torra.evaluation.wording import listed
from torra.exhibits import figures
from torra.profiles.book import HistoryEntry, SaveResult
from torra.profiles.fields import shown
from torra.profiles.guard import Change
from torra.profiles.ten import called

ACTIONS: Final = {
    "shipped": "the settings as they were shipped",
    "found on the disk": "the settings as an editor left them",
    "save": "saved on a page",
    "set": "saved with torra profile set",
}
"""What an entry's action means to a reader; an undo says it itself."""

THEN: Final = (
    "A desk that runs takes it at its next start, or when an administrator lets it take the file "
    "on this page."
)


@dataclass(frozen=True, slots=True)
class UndoLine:
    """One setting that an entry has otherwise: what it is now, and what it would be."""

    title: str
    place: str
    now: str
    then: str


@dataclass(frozen=True, slots=True)
class UndoLines:
    """What putting an entry back does, as text.

    `label` is what its button says, `question` what is asked first. `why_not` is why the button
    does nothing, `command` what to type instead.
    """

    back: list[UndoLine]
    label: str
    question: str
    why_not: str
    command: str
    then: str


@dataclass(frozen=True, slots=True)
class ProfileChange:
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
    put_back: UndoLines | None = None


def entry_told(entry: HistoryEntry, undo: SaveResult | None = None) -> ProfileChange:
    """Return an entry as text, with what putting it back does (ProfileBook.preview_undo)."""
    return ProfileChange(
        number=entry.number,
        at=entry.at,
        actor=figures.sanitize(entry.actor, 80),
        action=figures.sanitize(entry.action, 80),
        says=ACTIONS.get(entry.action, figures.sanitize(entry.action, 80)),
        digest=entry.digest,
        changes=changes_kept(entry.changes),
        put_back=_undo_lines(entry, undo) if undo and undo.outcome != "unchanged" else None,
    )


def _undo_lines(entry: HistoryEntry, undo: SaveResult) -> UndoLines:
    back = [_line(change) for change in undo.changes]
    label = f"Put entry {entry.number} back"
    changes = listed([f"{line.title} {line.now} → {line.then}" for line in back])
    return UndoLines(
        back=back,
        label=label,
        question=f"{label}: {changes}?",
        why_not=figures.sanitize(undo.reason, 600),
        command=figures.sanitize(undo.command, 2000),
        then=THEN if undo.command else "",
    )


def _line(change: Change) -> UndoLine:
    return UndoLine(
        title=figures.sanitize(called(change.name), 120),
        place=figures.sanitize(change.name, 120),
        now=_value(change.before),
        then=_value(change.after),
    )


def _value(value: Any) -> str:
    return figures.sanitize(shown(value), LONGEST)
