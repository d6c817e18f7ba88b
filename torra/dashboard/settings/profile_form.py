"""The form of a profile: its sections, every setting once, and the values of a form that was sent.

Values of a profile are strangers' text. They are written so that they cannot harm the page and so
that the form brings back the very same value (torra.profiles.fields). A setting that a form leaves
out stays as it is. Nothing is read or stored here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agents.registry import SCORER, seated
from torra.config import Profile, SymbolSpec
from torra.exhibits import figures
from torra.profiles.book import Checked, SettingFault
from torra.profiles.fields import (
    ABSENT,
    TITLES,
    Setting,
    changed,
    flat,
    place_of,
    read,
    settings,
    shown,
    written,
)
from torra.profiles.guard import Change, Direction, direction

LONGEST: Final = 300
"""Characters of a value or a sentence that a page shows in a line."""

WAYS: Final = {
    "loosens": ("▲", "loosens: command line", "alert"),
    "tightens": ("▼", "tightens: administrator", "note"),
    "free": ("◈", "guarded: administrator", "note"),
    "": ("●", "not guarded", "flat"),
}
"""Glyph, words and tone of a change, by its way."""

GUARDED: Final = {
    "up": "more loosens it",
    "down": "less loosens it",
    "any": "any change loosens it",
    "free": "no change loosens it",
    "fewer": "leaving one out loosens it",
    "path": "a path out of the home loosens it",
    "calendar": "taking it out or another one loosens it",
}
COMMANDS: Final = ("digest", "instance", "cost", "number", "csrf")
"""Form fields that are not settings."""


def proposal(given: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a form, or the `settings` of a JSON body, asks for.

    A form's fields are text. A body's `settings` are values by place; null removes an entry. An
    unknown name becomes a key that the check refuses.
    """
    body = given.get("settings")
    if isinstance(body, Mapping):
        typed = {place_of(values, str(name)): value for name, value in body.items()}
        return changed(values, typed)
    known = {setting.name: setting for setting in settings(values)}
    found = {}
    for name, text in given.items():
        if name in known:
            found[known[name].place] = read(known[name], str(text))
        elif name not in COMMANDS:
            found[place_of(values, name)] = str(text)
    return changed(values, found)


def sections(
    values: Mapping[str, Any], usual: Mapping[str, Any], faults: Sequence[SettingFault] = ()
) -> list[dict[str, Any]]:
    """Return the sections of the form with their rows; `usual` are the values that are saved."""
    here, saved = flat(values), flat(usual)
    wrong = {fault.name: figures.clean(fault.text, LONGEST) for fault in faults}
    found: dict[str, dict[str, Any]] = {}
    for number, setting in enumerate(settings(values)):
        section = found.setdefault(setting.section, _section(setting.section))
        value = here.get(setting.place, ABSENT)
        section["rows"].append(
            {
                **_row(setting, value),
                "id": f"setting-{number}",
                "edited": value != saved.get(setting.place, ABSENT),
                "fault": wrong.get(setting.name, ""),
            }
        )
    for section in found.values():
        section["differs"] = sum(row["differs"] for row in section["rows"])
        section["faults"] = sum(bool(row["fault"]) for row in section["rows"])
    whole = found.pop("", None)  # two settings that stand in no section open the form
    return [*([whole] if whole else []), *found.values()]


def _section(name: str) -> dict[str, Any]:
    symbol = name.removeprefix("symbols.") if name.startswith("symbols.") else ""
    title = f"Symbol {figures.clean(symbol, 40)}" if symbol else TITLES.get(name, name)
    return {"name": figures.clean(name, 80), "title": title, "about": _about(name), "rows": []}


def _about(name: str) -> str:
    field = Profile.model_fields.get(name)
    kind = SymbolSpec if name.startswith("symbols.") else field.annotation if field else None
    # the docstring of a section's class is its text on the page
    text = kind.__doc__ if isinstance(kind, type) and kind is not dict else None
    return " ".join(text.split()) if text else ""


def _row(setting: Setting, value: Any) -> dict[str, Any]:
    way = direction(setting.place)
    return {
        "name": setting.name,
        "label": figures.clean(setting.label, 60),
        "meaning": setting.meaning,
        "kind": setting.kind,
        "limits": setting.limits,
        "unit": setting.unit,
        "low": setting.low,
        "high": setting.high,
        "choices": _offered(setting, value) if setting.kind == "choice" else (),
        "optional": setting.optional,
        "value": written(value),
        "default": figures.clean(shown(setting.default), LONGEST),
        "differs": value != setting.default,
        "guarded": "" if way is None else guarded(way),
    }


def _offered(setting: Setting, value: Any) -> tuple[str, ...]:
    """Return what a setting may be set to; a plug-in's name that stands there is kept on offer."""
    strange = isinstance(value, str) and value not in setting.choices
    return (*setting.choices, value) if strange else setting.choices


def guarded(way: Direction) -> str:
    """Return in words which change of a guarded setting loosens it."""
    if isinstance(way, tuple):
        return f"from {' to '.join(way)} loosens it"
    return GUARDED[way]


def changes_shown(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """Return changes as a page shows them, text only."""
    return [
        {
            "place": figures.clean(change.name, 120),
            "before": figures.clean(shown(change.before), LONGEST),
            "after": figures.clean(shown(change.after), LONGEST),
            "default": figures.clean(shown(change.default), LONGEST),
            "way": change.way,
            "guarded": change.guarded,
            **_way(change.way),
        }
        for change in changes
    ]


def changes_kept(told: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the changes of an entry of the history as a page shows them."""
    return [
        {
            "place": figures.clean(row.get("place"), 120),
            "before": figures.clean(shown(row.get("before")), LONGEST),
            "after": figures.clean(shown(row.get("after")), LONGEST),
            **_way(str(row.get("way", ""))),
        }
        for row in told
    ]


def _way(way: str) -> dict[str, str]:
    glyph, words, tone = WAYS.get(way, WAYS[""])
    return {"mark": f"{glyph} {words}", "tone": tone}


def checked_shown(checked: Checked) -> dict[str, Any]:
    """Return the findings of a check, text only."""
    return {
        "ok": checked.profile is not None,
        "faults": [
            {"name": figures.clean(fault.name, 120), "text": figures.clean(fault.text, LONGEST)}
            for fault in checked.faults
        ],
        "changes": changes_shown(checked.changes),
        "warnings": [figures.clean(text, LONGEST) for text in checked.warnings],
    }


def voices(profile: Profile) -> tuple[list[dict[str, str]], str]:
    """Return whom each role asks with these settings; or no roles, and why."""
    agents = profile.agents
    try:
        roles = [seat.role for seat in seated(agents)]
    except ValueError as error:
        return [], figures.clean(error, LONGEST)
    rows = [
        {
            "role": role.title,
            "kind": role.kind,
            "tier": role.tier,
            "model": figures.clean(agents.model(role.id, role.tier), 120),
            "by": _decided_by(profile, role.id, role.tier),
        }
        for role in (*roles, SCORER)
    ]
    return rows, ""


def _decided_by(profile: Profile, role_id: str, tier: str) -> str:
    """Return which setting names a role's model."""
    if profile.agents.role_models.get(role_id):
        return f"agents.role_models.{role_id}"
    tiers = {"quick": "quick_think_model", "deep": "deep_think_model"}
    if getattr(profile.agents, tiers[tier]):
        return f"agents.{tiers[tier]}"
    return f"the default of {profile.agents.provider}"


def vendors(profile: Profile) -> list[str]:
    """Return the vendors that may have to be paid with these settings."""
    return list(profile.agents.paid())
