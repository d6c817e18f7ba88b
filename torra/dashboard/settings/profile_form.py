"""The form of a profile: its sections, every setting once, and the values of a form that was sent.

Values of a profile are strangers' text. They are written so that they cannot harm the page and so
that the form brings back the very same value (torra.profiles.fields). A setting that a form leaves
out stays as it is. Nothing is read or stored here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from pydantic import JsonValue

from agent_config import AgentSettings
from agents.contracts import Role
from agents.registry import REVIEWER, SCORER, TRADER, seated
from torra.config import Profile, SymbolSpec
from torra.exhibits import figures
from torra.profiles.book import SaveResult, SettingFault
from torra.profiles.fields import (
    ABSENT,
    TITLES,
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
from torra.profiles.guard import Change, Direction, direction
from torra.profiles.idle import idle
from torra.profiles.ten import called

LONGEST: Final = 300
"""Characters of a value or a sentence that a page shows in a line."""

WAYS: Final = {
    "loosens": ("▲", "looser: command line", "alert"),
    "tightens": ("▼", "tighter: administrator", "note"),
    "free": ("◈", "administrator", "note"),
    "": ("●", "free", "flat"),
}
"""Glyph, words and tone of a change, by its way."""

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

COMMANDS: Final = ("digest", "number", "csrf", "days")
"""Form fields that are not settings."""


Values = Mapping[str, JsonValue]
"""A profile's values, as its JSON has them."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting as a row of the form; `value` is what its field holds.

    `idle` says why it has no effect, "" where it has one.
    """

    setting: Setting
    id: str
    choices: Sequence[str]
    value: str
    default: str
    differs: bool
    guarded: str
    edited: bool
    fault: str
    idle: str


@dataclass(frozen=True, slots=True)
class FormSection:
    """A section of the form."""

    name: str
    title: str
    about: str
    rows: list[SettingRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class KeptChange:
    """A change as the history has it, as text; `title` is what a trader calls the setting."""

    title: str
    place: str
    before: str
    after: str
    mark: str
    tone: str


@dataclass(frozen=True, slots=True)
class ChangeLine(KeptChange):
    """A change with the default, and how it stands to the guards."""

    default: str
    way: str
    guarded: bool


@dataclass(frozen=True, slots=True)
class CheckLines:
    """The findings of a check, as text.

    `refused` is why this visitor may not save it and `command` what to type instead.
    """

    ok: bool
    faults: list[SettingFault]
    changes: list[ChangeLine]
    warnings: list[str]
    refused: str
    command: str


def proposal(given: Values, values: Values) -> dict[str, JsonValue]:
    """Return the values that a form, or the `settings` of a JSON body, asks for.

    A form's fields are text. A body's `settings` are values by place; null removes an entry. An
    unknown name becomes a key that the check refuses.
    """
    body = given.get("settings")
    if isinstance(body, Mapping):
        typed = {place_of(values, str(name)): value for name, value in body.items()}
        return along_with_mode(values, changed(values, typed), typed)
    known = {setting.name: setting for setting in settings(values)}
    found = {}
    for name, text in given.items():
        if name in known:
            found[known[name].place] = read(known[name], str(text))
        elif name not in COMMANDS:
            found[place_of(values, name)] = str(text)
    # A form names every setting: one that it leaves as it was goes along with a new mode.
    return along_with_mode(values, changed(values, found))


def sections(
    values: Values,
    usual: Values,
    faults: Sequence[SettingFault] = (),
    profile: Profile | None = None,
) -> list[FormSection]:
    """Return the sections of the form with their rows; `usual` are the values that are saved.

    `profile` is what the values make, None while they have faults.
    """
    here, saved = flat(values), flat(usual)
    vain = idle(profile) if profile else {}
    wrong = {fault.name: figures.sanitize(fault.text, LONGEST) for fault in faults}
    found: dict[str, FormSection] = {}
    for number, setting in enumerate(settings(values)):
        section = found.setdefault(setting.section, _section(setting.section))
        value, way = here.get(setting.place, ABSENT), direction(setting.place)
        section.rows.append(
            SettingRow(
                setting=setting,
                id=f"setting-{number}",
                choices=_offered(setting, value) if setting.kind == "choice" else (),
                value=written(value),
                default=figures.sanitize(shown(setting.default), LONGEST),
                differs=value != setting.default,
                guarded="" if way is None else guarded(way),
                edited=value != saved.get(setting.place, ABSENT),
                fault=wrong.get(setting.name, ""),
                idle=vain.get(setting.name, ""),
            )
        )
    whole = found.pop("", None)  # two settings that stand in no section open the form
    return [*([whole] if whole else []), *found.values()]


def _section(name: str) -> FormSection:
    symbol = name.removeprefix("symbols.") if name.startswith("symbols.") else ""
    title = f"Symbol {figures.sanitize(symbol, 40)}" if symbol else TITLES.get(name, name)
    return FormSection(figures.sanitize(name, 80), title, _about(name))


def _about(name: str) -> str:
    known = Profile.model_fields.get(name)
    kind = SymbolSpec if name.startswith("symbols.") else known.annotation if known else None
    # the docstring of a section's class is its text on the page
    text = kind.__doc__ if isinstance(kind, type) and kind is not dict else None
    return " ".join(text.split()) if text else ""


def _offered(setting: Setting, value: JsonValue) -> tuple[str, ...]:
    """Return what a setting may be set to; a plug-in's name that stands there is kept on offer."""
    if not isinstance(value, str) or value in setting.choices:
        return setting.choices
    return (*setting.choices, value)


def guarded(way: Direction) -> str:
    """Return in words who changes a guarded setting, and what takes the command line."""
    if isinstance(way, tuple):
        takes = f"can go from {way[0]} towards {way[-1]} only on the command line"
    else:
        takes = GUARDED[way]
    return ", ".join(filter(None, ("administrator", takes)))


def changes_shown(changes: Iterable[Change]) -> list[ChangeLine]:
    """Return changes as a page shows them, text only."""
    return [
        ChangeLine(
            **asdict(_change_row(change.name, change.before, change.after, change.way)),
            default=figures.sanitize(shown(change.default), LONGEST),
            way=change.way,
            guarded=change.guarded,
        )
        for change in changes
    ]


def changes_kept(told: Iterable[Values]) -> list[KeptChange]:
    """Return the changes of an entry of the history as a page shows them."""
    return [
        _change_row(str(row.get("place", "")), row.get("before"), row.get("after"), row.get("way"))
        for row in told
    ]


def _change_row(name: str, before: JsonValue, after: JsonValue, way: object) -> KeptChange:
    glyph, words, tone = WAYS.get(str(way), WAYS[""])
    old, new = (figures.sanitize(shown(value), LONGEST) for value in (before, after))
    title = figures.sanitize(called(name), 120)
    return KeptChange(title, figures.sanitize(name, 120), old, new, f"{glyph} {words}", tone)


def checked_shown(
    checked: SaveResult, stop: SaveResult | None, more: Sequence[str] = ()
) -> CheckLines:
    """Return the findings of a check, text only; `stop` is why it may not be saved.

    `more` is what there is to know besides.
    """
    return CheckLines(
        ok=checked.profile is not None,
        faults=faults_shown(checked.faults),
        changes=changes_shown(checked.changes),
        warnings=[figures.sanitize(text, LONGEST) for text in (*more, *checked.warnings)],
        refused=figures.sanitize(stop.reason, 600) if stop else "",
        command=figures.sanitize(stop.command, 2000) if stop else "",
    )


def faults_shown(faults: Iterable[SettingFault]) -> list[SettingFault]:
    """Return faults as a page shows them, text only."""
    return [
        SettingFault(figures.sanitize(fault.name, 120), figures.sanitize(fault.text, LONGEST))
        for fault in faults
    ]


def voices(profile: Profile) -> tuple[list[dict[str, str]], str]:
    """Return whom each role asks with these settings; or no roles, and why."""
    agents = profile.agents
    try:
        roles = [seat.role for seat in seated(agents)]
    except ValueError as error:
        return [], figures.sanitize(error, LONGEST)
    beside = (SCORER, REVIEWER) if agents.memory.review == "model" else (SCORER,)
    rows = [
        {
            "role": role.title,
            "kind": role.kind,
            "tier": role.tier,
            "model": figures.sanitize(agents.model(role.id, role.tier), 120),
            "by": _decided_by(profile, role.id, role.tier),
        }
        for role in (*roles, *_traders(agents), *beside)
    ]
    return rows, ""


def _traders(agents: AgentSettings) -> list[Role]:
    """Return the trader's role, once for each tier that it may be asked of; [] without one."""
    if not agents.consulted():
        return []
    escalated = replace(TRADER.role, tier="chief", title="trader, escalated")
    return [TRADER.role, escalated] if "chief" in agents.tiers() else [TRADER.role]


def _decided_by(profile: Profile, role_id: str, tier: str) -> str:
    """Return which setting names a role's model."""
    if profile.agents.role_models.get(role_id):
        return f"agents.role_models.{role_id}"
    tiers = {
        "quick": "quick_think_model", "deep": "deep_think_model", "chief": "chief_think_model",
    }  # fmt: skip
    if getattr(profile.agents, tiers[tier]):
        return f"agents.{tiers[tier]}"
    return f"the default of {profile.agents.provider}"
