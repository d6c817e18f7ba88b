"""The form of a profile: what was sent with it, what its template shows, and changes as text.

Values of a profile are strangers' text. They are written so that they cannot harm the page and so
that the form brings back the very same value (torra.profiles.fields). A setting that a form leaves
out stays as it is. Nothing is read or stored here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pydantic import JsonValue

from agent_config import AgentSettings
from agents.contracts import Role
from agents.registry import REVIEWER, SCORER, seated
from torra.config import Profile, SymbolSpec
from torra.desk.models.report import traders
from torra.evaluation.wording import listed
from torra.exhibits import figures
from torra.profiles.book import HistoryEntry, SaveResult, SettingFault
from torra.profiles.fields import (
    ABSENT,
    EXACT,
    TITLES,
    Place,
    Setting,
    along_with_mode,
    changed,
    flat,
    place_of,
    read,
    settings,
    shown,
    written,
)
from torra.profiles.guard import direction
from torra.profiles.idle import idle
from torra.profiles.ten import TEN, called
from torra.profiles.ten import TITLES as MAIN

LONGEST: Final = 300
"""Characters of a value or a sentence that a page shows in a line."""

WAYS: Final = {
    "loosens": ("▲ looser: command line", "alert"),
    "tightens": ("▼ tighter: administrator", "note"),
    "free": ("◈ administrator", "note"),
}
"""Words and tone of a change of a guarded setting, by its way."""

FREE: Final = ("● free", "flat")

GUARDED: Final = {
    "up": "can be raised only on the command line",
    "down": "can be lowered only on the command line",
    "any": "can be changed only on the command line",
    "free": "",
    "fewer": "one can be left out only on the command line",
    "more": "one can be added only on the command line",
    "path": "a path outside the home can be set only on the command line",
    "calendar": "another calendar, or none, can be set only on the command line",
}
"""What only the command line may do with a guarded setting, by what loosens it."""

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
"""What a change by the command line waits for."""

COMMANDS: Final = ("digest", "number", "csrf", "days")
"""Form fields that are not settings."""

HISTORY_LINE: Final = ("title", "place", "before", "after", "mark", "tone")

Values = Mapping[str, JsonValue]
"""A profile's values, as its JSON has them."""


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A change with the default, and how it stands to the guards."""

    title: str
    place: str
    before: str
    after: str
    mark: str
    tone: str
    default: str
    way: str
    guarded: bool


# --- what was sent --------------------------------------------------------------------------------


def proposal(sent: Values, values: Values) -> dict[str, JsonValue]:
    """Return the values that a form, or the `settings` of a JSON body, asks for.

    A form's fields are text. A body's `settings` are values by place; null removes an entry. An
    unknown name becomes a key that the check refuses.
    """
    body = sent.get("settings")
    if isinstance(body, Mapping):
        typed = {place_of(values, str(name)): value for name, value in body.items()}
        return along_with_mode(values, changed(values, typed), typed)
    by_name = {setting.name: setting for setting in settings(values)}
    changes: dict[Place, Any] = {}
    for name, text in sent.items():
        if name in by_name:
            changes[by_name[name].place] = read(by_name[name], str(text))
        elif name not in COMMANDS:
            changes[place_of(values, name)] = str(text)
    # A form names every setting: one that it leaves as it was goes along with a new mode.
    return along_with_mode(values, changed(values, changes))


# --- what the form shows --------------------------------------------------------------------------


def context(
    values: Values, saved: Values, faults: Iterable[SettingFault], profile: Profile | None
) -> dict[str, Any]:
    """Return what the template of the form reads; `profile` is what `values` make, if they do.

    The ten settings that matter most stand by themselves, the others by section; those that stand
    in no section come first.
    """
    every = settings(values)
    ten = {setting.name: setting for setting in every if setting.name in MAIN}
    sections = defaultdict[str, list[Setting]](list, {"": []})
    for setting in every:
        if setting.name not in ten:
            sections[setting.section].append(setting)
    absent = dict.fromkeys((setting.place for setting in every), ABSENT)
    return {
        "ids": {setting.name: f"setting-{number}" for number, setting in enumerate(every)},
        "here": absent | flat(values),
        "saved_values": absent | flat(saved),
        "wrong": {fault.name: fault.text for fault in faults},
        "idle": idle(profile) if profile else {},
        "main": [(main, ten[main.name]) for main in TEN if main.name in ten],
        "sections": {name: rows for name, rows in sections.items() if rows},
        "titles": TITLES,
        "exact": EXACT,
        "about_section": _about,
        "who_may": who_may,
        "written": written,
        "shown": shown,
    }


def _about(section: str) -> str:
    field = Profile.model_fields.get(section)
    kind = SymbolSpec if section.startswith("symbols.") else field.annotation if field else None
    # the docstring of a section's class is its text on the page
    text = kind.__doc__ if isinstance(kind, type) and kind is not dict else None
    return " ".join(text.split()) if text else ""


@cache
def who_may(place: Place) -> str:
    """Return in words who changes a guarded setting and what takes the command line, "" if free."""
    way = direction(place)
    if way is None:
        return ""
    if isinstance(way, tuple):
        takes = f"can go from {way[0]} towards {way[-1]} only on the command line"
    else:
        takes = GUARDED[way]
    return ", ".join(filter(None, ("administrator", takes)))


def voices(agents: AgentSettings) -> list[Role]:
    """Return the roles that are asked with these settings; raises ValueError for no such desk."""
    reviewer = (REVIEWER,) if agents.memory.review == "model" else ()
    desk = [seat.role for seat in seated(agents)]
    return [*desk, *traders(agents), SCORER, *reviewer]


def decided_by(agents: AgentSettings, role: Role) -> str:
    """Return which setting names a role's model."""
    if agents.role_models.get(role.id):
        return f"agents.role_models.{role.id}"
    name = f"{role.tier}_think_model"
    return f"agents.{name}" if getattr(agents, name) else f"the default of {agents.provider}"


# --- as text --------------------------------------------------------------------------------------


def change_lines(rows: Iterable[Values]) -> list[ChangeLine]:
    """Return changes (Change.as_dict) as a page shows them."""
    return [_change_line(row) for row in rows]


def _change_line(row: Values) -> ChangeLine:
    """Return a change as text; one of a history may lack any of its fields."""
    place, way = str(row.get("place", "")), str(row.get("way"))
    mark, tone = WAYS.get(way, FREE)
    before, after, default = (_value(row.get(name)) for name in ("before", "after", "default"))
    title, place = figures.sanitize(called(place), 120), figures.sanitize(place, 120)
    return ChangeLine(
        title, place, before, after, mark, tone, default, way, bool(row.get("guarded"))
    )


def _value(value: JsonValue) -> str:
    return figures.sanitize(shown(value), LONGEST)


def result_lines(result: SaveResult, more: Sequence[str] = ()) -> dict[str, Any]:
    """Return what a check or a save says of the settings; `more` is what there is to know first."""
    return {
        "changes": change_lines(item.as_dict() for item in result.changes),
        "faults": [
            {
                "name": figures.sanitize(fault.name, 120),
                "text": figures.sanitize(fault.text, LONGEST),
            }
            for fault in result.faults
        ],
        "warnings": [figures.sanitize(text, LONGEST) for text in (*more, *result.warnings)],
    }


def entry_lines(entry: HistoryEntry, undo: SaveResult) -> dict[str, Any]:
    """Return an entry of a history, with what putting it back does (ProfileBook.preview_undo)."""
    action = figures.sanitize(entry.action, 80)
    lines = change_lines(entry.changes)
    return {
        "number": entry.number,
        "at": entry.at,
        "actor": figures.sanitize(entry.actor, 80),
        "action": action,
        "says": ACTIONS.get(entry.action, action),
        "digest": entry.digest,
        "changes": [{name: getattr(line, name) for name in HISTORY_LINE} for line in lines],
        "put_back": None if undo.outcome == "unchanged" else _undo_lines(entry.number, undo),
    }


def _undo_lines(number: int, undo: SaveResult) -> dict[str, Any]:
    """Return what an undo changes, the words of its button and its question, or why it does not."""
    back = [
        {"title": line.title, "place": line.place, "now": line.before, "then": line.after}
        for line in change_lines(item.as_dict() for item in undo.changes)
    ]
    label = f"Put entry {number} back"
    changes = listed(["{title} {now} → {then}".format(**line) for line in back])
    return {
        "back": back,
        "label": label,
        "question": f"{label}: {changes}?",
        "why_not": figures.sanitize(undo.reason, 600),
        "command": figures.sanitize(undo.command, 2000),
        "then": THEN if undo.command else "",
    }
