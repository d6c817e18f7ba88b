"""The settings of a profile one by one: the place, kind, limits and meaning of each.

They are made from the pydantic models (torra.config, agent_config), so a new setting appears here
by itself. A setting's place is the path to it, such as ("risk", "max_positions"); a list is one
setting, every entry of an object is one. Values are those of the profile's JSON. A value that
cannot be read is handed on as it came: torra.config refuses it, with place and remedy.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agent_config import CAPS, MODES, AgentSettings
from agents.registry import AGENTS, UNSEATED
from torra.clock import TIMEFRAMES
from torra.config import Profile, SymbolSpec
from torra.trading_terms import CAPPED

Place = tuple[str, ...]
Kind = Literal["number", "whole", "choice", "switch", "text", "words", "numbers"]

ABSENT: Final = None
"""Stands for an entry of an object that is not there; no setting may be null."""

UNITS: Final = (
    ("risk.max_positions", "positions"),
    ("risk.capital", "account currency"),
    ("agents.max_api_cost_per_hour", "USD an hour"),
    ("_per_hour", "an hour"),
    ("_pct", "% of capital"),
    ("_percentile", "percentile"),
    ("_minutes", "minutes"),
    ("_seconds", "seconds"),
    ("_hours", "hours"),
    ("_bars", "bars"),
    ("_bar_age", "bars"),
    ("_atr", "ATR"),
    ("_lots", "lots"),
    ("prompt_bytes", "bytes"),
    ("output_tokens", "tokens"),
    ("lot_min", "lots"),
    ("lot_step", "lots"),
    ("lot_max", "lots"),
    ("spread", "price"),
    ("slippage", "price"),
    ("tick_size", "price"),
    ("stops_level", "points"),
)
"""Unit of a setting by the end of its place; the first that fits holds."""

NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
LONGEST_NUMBER: Final = 40
ROLES: Final = (*AGENTS, *(role.id for role in UNSEATED))
"""The roles that may have a model and caps of their own."""

EXACT: Final = {
    "gate.disagreement_scale": "multiplier = 1 − s / this value, where s is the widest range of "
    "one score among the analysts' adjustments, and never below disagreement floor",
    "agents.pivotal_sample": "with call policy pivotal, agents are not asked on a tick on which no "
    "answer could change the verdict; on this share of those ticks they are asked all the same",
    "markov.smoothing": "added to every count of a step from one state to another before the odds "
    "are computed, so that what has not happened yet is not called impossible",
}
"""The exact sentence of a setting whose meaning is told in plainer words, by its name."""

ROLE_CAPS: Final = ("agents", "role_caps")
"""Where an entry stands one level deeper; where none is written the usual cap holds."""

ENTRIES: Final[Mapping[Place, Collection[str]]] = {
    ("timeframe_weights",): TIMEFRAMES,
    ("risk", "leverage_caps"): CAPPED,
    ("agents", "role_models"): ROLES,
    ROLE_CAPS: ROLES,
}
"""Objects whose every entry is a setting, and the names of those that any profile may have."""

KIND_LIMITS: Final = {
    "whole": "whole number", "words": "one a line", "numbers": "with commas between",
}  # fmt: skip
LIMITS: Final = {
    "exclusiveMinimum": "above {}", "minimum": "at least {}",
    "exclusiveMaximum": "below {}", "maximum": "at most {}",
    "minItems": "at least {} of them", "maxItems": "at most {} of them",
}  # fmt: skip
"""How a limit of a schema is told."""

TITLES: Final = {
    "": "The whole instance",
    "sentiment_weights": "Weights of the composite",
    "timeframe_weights": "Timeframes",
    "thresholds": "Thresholds of the verdict",
    "markov": "Markov states",
    "gate": "Gate",
    "risk": "Risk",
    "risk.leverage_caps": "Most leverage by timeframe and account",
    "agents": "Agents",
    "agents.role_models": "Models of single agents",
    "agents.role_caps": "Caps of single agents",
    "agents.memory": "Lessons of earlier trades",
    "agents.escalation": "When the trader is asked of the chief tier",
    "news": "News",
    "events": "Scheduled events",
    "outside": "Numbers from beyond the chart",
}
"""Titles of the sections; a section that is not here has its own name."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `low` and `high` are inclusive unless `limits` says otherwise, None if open.

    `optional` settings are entries that may be taken out; `choices` are what a choice accepts, or
    what is known to be accepted.
    """

    place: Place
    meaning: str
    kind: Kind
    limits: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    optional: bool = False

    @property
    def name(self) -> str:
        """The place as a person writes it, and the form calls it."""
        return named(self.place)

    @property
    def section(self) -> str:
        """The place of the section in which it stands."""
        return ".".join(self.place[: 2 if self.place[:2] == ROLE_CAPS else -1])

    @property
    def label(self) -> str:
        """The name within its section, in words."""
        parts = self.place[2:] if self.place[:2] == ROLE_CAPS else self.place[-1:]
        return " ".join(parts).replace("_", " ")

    @property
    def unit(self) -> str:
        """The unit of its values, "" for none."""
        place = ".".join(self.place)
        return next((unit for end, unit in UNITS if place.endswith(end)), "")

    @property
    def default(self) -> Any:
        """The value of the shipped profile; ABSENT where that has no such entry."""
        return USUAL.get(self.place, ABSENT)


DEFAULT: Final[Mapping[str, Any]] = json.loads(Profile().model_dump_json())


def named(place: Place) -> str:
    """Return a place as a person writes it; a name that cannot be printed has escapes."""
    return ".".join(part if part.isprintable() else json.dumps(part)[1:-1] for part in place)


def canonical(profile: Profile) -> dict[str, Any]:
    """Return every value of a profile, as its JSON has them."""
    values: dict[str, Any] = json.loads(profile.model_dump_json())
    return values


def flat(values: Mapping[str, Any], above: Place = ()) -> dict[Place, Any]:
    """Return every value by its place."""
    places: dict[Place, Any] = {}
    for name, value in values.items():
        place = (*above, name)
        places |= flat(value, place) if isinstance(value, Mapping) else {place: value}
    return places


USUAL: Final[Mapping[Place, Any]] = flat(DEFAULT)
"""The values of the shipped profile by their places."""


def settings(values: Mapping[str, Any]) -> tuple[Setting, ...]:
    """Return every setting that a profile with these values has or may have, in order."""
    return tuple(_of_model(Profile, values))


def changed(values: Mapping[str, Any], changes: Mapping[Place, Any]) -> dict[str, Any]:
    """Return values with some replaced; ABSENT takes an entry out. The order of the rest stays."""
    # A deep copy of plain JSON: the caller's values stay as they are.
    result: dict[str, Any] = json.loads(json.dumps(values))
    for place, value in changes.items():
        section = result
        for name in place[:-1]:
            inner = section.get(name)
            if not isinstance(inner, dict):
                inner = {}
                if value is not ABSENT:  # an entry that goes makes no room for itself
                    section[name] = inner
            section = inner
        if value is ABSENT:
            section.pop(place[-1], None)
        else:
            section[place[-1]] = value
    return result


def place_of(values: Mapping[str, Any], name: str) -> Place:
    """Return the place that a name such as risk.max_positions stands for.

    A symbol may have dots in its name; a name that fits nothing is cut at its dots, so that the
    profile's check refuses it where it went wrong.
    """
    section, dot, rest = name.partition(".")
    if not dot:
        return (name,)
    if section == "symbols":
        symbol, _, last = rest.rpartition(".")
        # XAUUSD.m.spread: the last part is the field, unless a symbol has the whole name.
        if symbol and last in SymbolSpec.model_fields and rest not in values.get("symbols", {}):
            return ("symbols", symbol, last)
        return ("symbols", rest)
    if section == "agents" and rest.startswith("role_caps."):
        return tuple(name.split("."))
    inner, more, last = rest.partition(".")
    usual = DEFAULT.get(section)
    if more and isinstance(usual, dict) and isinstance(usual.get(inner), dict):
        return (section, inner, last)
    return (section, rest)


def along_with_mode(
    before: Mapping[str, Any], after: dict[str, Any], named: Collection[Place] = ()
) -> dict[str, Any]:
    """Return values with the settings that a new mode brings where a profile has none of its own.

    A setting goes along while it stands at its usual value in the mode before; `named` ones are as
    they were asked. What a mode brought stays where the next one brings nothing.
    """
    was, mode = (_value(values, "agents", "mode") for values in (before, after))
    row = MODES.get(str(mode))
    # A broken file has no agents, and what is typed may be anything: the check says so.
    if row is None or was == mode or not isinstance(before.get("agents"), Mapping):
        return after
    left = MODES[str(was)].defaults if str(was) in MODES else {}
    brought: dict[Place, Any] = {}
    for section, defaults in row.defaults.items():
        usual = {**DEFAULT[section], **left.get(section, {})}
        for name, value in defaults.items():
            old, new = (_value(values, section, name) for values in (before, after))
            if (section, name) not in named and new == old == usual[name]:
                brought[section, name] = value
    return changed(after, brought)


def _value(values: Mapping[str, Any], section: str, name: str) -> Any:
    """Return a value of a section; ABSENT where there is none."""
    rows = values.get(section)
    return rows.get(name) if isinstance(rows, Mapping) else ABSENT


# --- how values are written -----------------------------------------------------------------------


def written(value: Any) -> str:
    """Write a value for a form: a list has one entry a line, what a line cannot hold is JSON.

    Text with characters that a browser drops, or that turn the reading direction, is written as
    JSON with escapes. `read` gives back the very value.
    """
    if value is ABSENT:
        return ""
    # Before any number: in Python True is an int.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if _plain(value) else json.dumps(value)
    if isinstance(value, list):
        if all(isinstance(item, str) and item.strip() and _plain(item) for item in value):
            return "\n".join(value)
        # type(), so that a list with true in it is JSON and not a number.
        if value and all(type(item) in (int, float) for item in value):
            return ", ".join(json.dumps(item) for item in value)
    return json.dumps(value)


def read(setting: Setting, text: str) -> Any:
    """Read the text of a form's field; what cannot be read comes back as text, to be refused."""
    if setting.kind in ("number", "whole"):
        if setting.optional and not text.strip():
            return ABSENT
        return _number(text)
    if setting.kind == "switch":
        return {"true": True, "false": False}.get(text, text)
    if setting.kind == "numbers":
        return [_number(part) for part in text.split(",")]
    if setting.kind == "words":
        return _words(text)
    quoted = _json(text) if text.startswith('"') else None
    value = quoted if isinstance(quoted, str) else text
    return ABSENT if setting.optional and not value else value


def shown(value: Any) -> str:
    """Write a value in a line for a person."""
    if value is ABSENT:
        return "none"
    if isinstance(value, str):
        return json.dumps(value) if not value or not _plain(value) else value
    if isinstance(value, list):
        return ", ".join(shown(item) for item in value) or "empty"
    return json.dumps(value)


def _plain(text: str) -> bool:
    # What begins like JSON would be read back as JSON.
    return text.isprintable() and text[:1] not in ('"', "[")


def _number(text: str) -> Any:
    digits = text.strip()
    # Stricter than float(): that takes inf, nan, 1_000 and digits of other scripts.
    if not NUMBER.fullmatch(digits) or len(digits) > LONGEST_NUMBER:
        return text
    return float(digits) if set(digits) & set(".eE") else int(digits)


def _words(text: str) -> Any:
    if text.lstrip().startswith("["):
        words = _json(text)
        return words if isinstance(words, list) else text
    return [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# --- from the models ------------------------------------------------------------------------------


def _of_model(
    model: type[BaseModel], values: Mapping[str, Any], above: Place = ()
) -> Iterator[Setting]:
    for name, field in described(model).items():
        inner, place = field.annotation, (*above, name)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _of_model(inner, values.get(name, {}), place)
        elif place == ("symbols",):
            for symbol, spec in values[name].items():
                yield from _of_model(SymbolSpec, spec, (*place, symbol))
        elif place in ENTRIES:
            names = ENTRIES[place]
            for entry in (*names, *sorted({*values.get(name, {})} - {*names})):
                yield from _entry(place, entry, str(field.description))
        else:
            yield _setting(model, name, place)


@cache
def described(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """Return the fields of a model, each with its description: its own, or the string below it.

    Read when first asked for: pydantic's `use_attribute_docstrings` makes every import slower.
    """
    (section,) = ast.parse(inspect.getsource(model)).body
    for field, text in pairwise(section.body if isinstance(section, ast.ClassDef) else ()):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            words = " ".join(str(ast.literal_eval(text.value)).split())
            model.model_fields[ast.unparse(field.target)].description = words
    return model.model_fields


def usual_cap(role_id: str, name: str) -> int:
    """Return the cap of a role for which none is written."""
    roles = (*(agent.role for agent in AGENTS.values()), *UNSEATED)
    tier = next((role.tier for role in roles if role.id == role_id), "quick")
    return dict(zip(CAPS, AgentSettings().caps(role_id, tier), strict=True))[name]


def _entry(place: Place, name: str, meaning: str) -> Iterator[Setting]:
    """Yield an entry that an object has or may have; of a role's caps each of them."""
    path = (*place, name)
    if place == ROLE_CAPS:
        for cap, (low, high) in CAPS.items():
            limits = f"whole number, {low:,} to {high:,}; empty = {usual_cap(name, cap):,}"
            yield Setting((*path, cap), meaning, "whole", limits, low, high, optional=True)
    elif place == ("agents", "role_models"):
        yield Setting(path, meaning, "text", "empty = the model of its tier", optional=True)
    else:
        limits = "above 0; empty = not there"
        yield Setting(path, meaning, "number", limits, 0.0, optional=True)


@lru_cache(maxsize=4096)
def _setting(model: type[BaseModel], name: str, place: Place) -> Setting:
    rules = _schema(model)[name]
    choices, kind = names_of(rules), _kind(rules)
    low, high = (
        next((rules[rule] for rule in pair if rule in rules), None)
        for pair in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
    )
    meaning = str(described(model)[name].description)
    return Setting(place, meaning, kind, _limits(kind, rules, choices), low, high, choices)


@cache
def _schema(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    properties: dict[str, dict[str, Any]] = model.model_json_schema()["properties"]
    return properties


def _kind(rules: Mapping[str, Any]) -> Kind:
    simple: dict[str, Kind] = {"integer": "whole", "number": "number", "boolean": "switch"}
    if rules.get("type") == "array":
        items = rules.get("items") or rules["prefixItems"][0]
        return "numbers" if items.get("type") == "number" else "words"
    return simple.get(rules.get("type", ""), "choice" if names_of(rules) else "text")


def names_of(rules: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names that a schema lists, wherever in it they stand; none for other kinds.

    A field that also takes the name of a plug-in is a union with such a list.
    """
    inside = [*rules.get("anyOf", ()), rules.get("items", {})]
    names = rules.get("enum") or next(
        (names for part in inside if part and (names := names_of(part))), ()
    )
    return tuple(names)


def _limits(kind: Kind, rules: Mapping[str, Any], choices: tuple[str, ...]) -> str:
    words = [KIND_LIMITS[kind]] if kind in KIND_LIMITS else []
    if "minItems" in rules and rules["minItems"] == rules.get("maxItems"):
        words.append(f"{rules['minItems']} of them")
        rules = {name: rule for name, rule in rules.items() if not name.endswith("Items")}
    words += [text.format(rules[rule]) for rule, text in LIMITS.items() if rule in rules]
    if choices and kind == "words":
        words.append(f"known: {', '.join(choices)}")
    return ", ".join(words)
