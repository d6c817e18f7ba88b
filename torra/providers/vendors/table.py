"""The table of vendors and of their models (vendors.toml), read once.

A new vendor is a row of it, and a file beside this one that is named for the row. A profile may
name any model: one that is not listed is sent nothing that it might refuse. A model is refused from
the day on which its vendor shuts it down, with a replacement named; before that day `warning` says
so. Nothing here asks a vendor.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

from torra.errors import ConfigError

AS_OF: Final = date(2026, 11, 21)
"""When the rows of the models were written."""

Form = Literal["json_schema", "json_object", "prompt"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
"""In which forms a server is asked for an object, the first one first."""

FORM_IN_USE: Final = "asked in the form "
"""Begin of the end of a call's detail where a server is not asked in its first form."""


@dataclass(frozen=True, slots=True)
class Capability:
    """What one model can do.

    `picture`: it sees. `thinking`: what to send to
    turn its thinking off or down, None for nothing. `effort`: what to send as effort, None for
    nothing. `retired`: the day from which it is gone, and `replaced_by` what to name instead.
    """

    vendor: str
    model: str
    picture: bool = True
    thinking: Mapping[str, str | int] | None = None
    effort: str | None = None
    replaced_by: str = ""
    retired: date | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class VendorRow:
    """A vendor, or a publisher, of which the first six fields are enough.

    `variable` is its name in variables of the environment. `hosts` are its own beside that of
    `base_url`. `keys` are the variables that may hold the key: with none, no key is ever sent.
    `needs_key`: it answers nobody without one. `headers` are sent with each request.

    `sdk` is the module and `package` the distribution of its SDK, `price_list` its name in
    genai-prices. `refusals` are a status (0: any), words in the body in small letters, how it is
    taken, and what it means: of a vendor of models, by which code it is not asked for an hour.
    `causes` are the fields of a refusal that name its cause, `usage` those whose sum is a number of
    tokens (prices.Usage), as paths split at blanks. `stops` has its words for why a reply ended,
    split at blanks, by ours (agents.contracts.Completion); what a person can do about each stands
    in torra.desk.models.remedies.
    """

    variable: str
    base_url: str
    hosts: Sequence[str] = ()
    keys: Sequence[str] = ()
    needs_key: bool = True
    headers: Mapping[str, str] = field(default_factory=lambda: {"authorization": "Bearer {key}"})
    sdk: str = ""
    package: str = ""
    price_list: str = ""
    refusals: Sequence[tuple[int, str, str, str]] = ()
    stops: Mapping[str, str] = field(default_factory=dict)
    causes: str = ""
    usage: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, Capability] = field(default_factory=dict)


@cache
def vendors() -> Mapping[str, VendorRow]:
    """Return every row by its name."""
    text = Path(__file__).with_name("vendors.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text).items()
    return {name: VendorRow(**(row | {"models": _models(name, row)})) for name, row in rows}


def _models(vendor: str, row: Mapping[str, Any]) -> dict[str, Capability]:
    return {
        name: Capability(vendor, name, **{key: group[key] for key in group if key != "names"})
        for group in row.get("models", ())
        for name in group["names"].split()
    }


def stop_word(vendor: str, word: str) -> str:
    """Return our word for how a reply ended; a reply that does not say has ended by itself.

    A word that is not in the table is `other`: a vendor's own words are not kept.
    """
    ours = (name for name, words in vendors()[vendor].stops.items() if word in words.split())
    return next(ours, "other") if word else "end"


def capability(vendor: str, model: str) -> Capability:
    """Return what a model can do; of an unlisted one, only what all of its vendor's models can."""
    unlisted = Capability(vendor, model, picture=vendor != "openai_compatible")
    return vendors()[vendor].models.get(model, unlisted)


def check_model(vendor: str, model: str, today: date) -> None:
    """Raise ConfigError, with the replacement named, for a model that its vendor has shut down."""
    row = capability(vendor, model)
    if row.retired and today >= row.retired:
        raise ConfigError(f"{model} was shut down on {row.retired}; name {row.replaced_by} instead")


def warning(vendor: str, model: str, today: date) -> str:
    """Return a sentence on a model that will be shut down, "" for any other."""
    row = capability(vendor, model)
    if row.retired is None or today >= row.retired:
        return ""
    days = (row.retired - today).days
    return f"{model} is shut down on {row.retired}, in {days} days; name {row.replaced_by} instead"
