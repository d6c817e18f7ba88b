"""The values of every tool: a fact, a result, and what a tool is.

A tool only reads. It takes arguments of one pydantic model and the desk as it stood at one moment,
and gives facts. A fact is one value with its unit, its time and where it comes from; its id is
`<instance>|<timeframe>@<bar time>/<feature id>` where a tick or its evidence holds it, and begins
with one of `PREFIXES` where nothing else does. Its name and its sentence are those of the feature
registry (agents.features, agents.phrases).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from torra.exhibits.figures import format_any
from torra.words.badge import capital

if TYPE_CHECKING:
    from torra.tools.desk_reader import DeskReader

CODE: Final = re.compile("[A-Za-z][A-Za-z0-9_]{0,39}")

PREFIXES: Final = (
    "book.", "money.", "changed.", "lesson.", "pattern.", "study.", "radar.", "cost.", "doc.",
)  # fmt: skip
"""Prefixes of the ids that no record and no evidence has."""


class Fact(BaseModel):
    """One value: a number, a word, or None where it is not known.

    `as_of` is the ISO time with Z up to which it counts, `source` the store or feed it was read
    from, `name` what a sentence calls it, `sentence` the whole sentence, "" where there is none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    value: float | str | None
    unit: str = ""
    as_of: str
    source: str
    name: str
    sentence: str = ""


def code_of(text: object) -> str:
    """Return a code as it is stored, and "other" for what a stranger may have put in its place."""
    return str(text) if CODE.fullmatch(str(text)) else "other"


def fact(
    fact_id: str,
    value: float | str | None,
    name: str,
    *,
    as_of: str,
    source: str,
    unit: str = "",
    sentence: str = "",
) -> Fact:
    """Return a fact; without a sentence of its own that is "NAME is VALUE UNIT."."""
    if value is not None and not sentence:
        # a price has the decimals of its symbol and no word behind it
        words = (capital(name), "is", format_any(value), "" if unit == "price" else unit)
        sentence = f"{' '.join(filter(None, words))}."
    return Fact(
        id=fact_id, value=value, unit=unit, as_of=as_of, source=source, name=name, sentence=sentence
    )


class ToolError(BaseModel):
    """Why a tool gave no facts: a code in capitals for programs, and one sentence for people."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    message: str


class ToolResult(BaseModel):
    """What an invocation came to: facts, or an error and no facts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ok: bool
    facts: tuple[Fact, ...] = ()
    error: ToolError | None = None


class ToolArgs(BaseModel):
    """The arguments of a tool: checked, frozen, and without a key that the tool does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool: its name, what it gives, its arguments, and the function that reads.

    `limit_s` is how many seconds one run may take. `work` gives facts, or the error that stands for
    them. It raises ConfigError for arguments that name what is not there; any other error is a
    fault of the tool.
    """

    name: str
    description: str
    args: type[ToolArgs]
    work: Callable[[DeskReader, Any], Iterable[Fact] | ToolError]
    limit_s: float = 2.0
    effect: Literal["read"] = "read"
