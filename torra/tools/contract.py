"""The values of every tool: a fact, a result, and what a tool is.

A tool only reads. It takes arguments of one pydantic model and the desk as it stood at one moment,
and gives facts. A fact is one value with its unit, its time and where it comes from; its id is
`<instance>|<timeframe>@<bar time>/<feature id>` where a tick or its evidence holds it, and begins
with one of `PREFIXES` where nothing else does. Its name and its sentence are those of the feature
registry (agents.features, agents.phrases).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel

from agents.features import rows_of
from torra.exhibits.figures import format_any
from torra.words.badge import capital

if TYPE_CHECKING:
    from torra.tools.desk_reader import DeskReader

CODE: Final = re.compile("[A-Za-z][A-Za-z0-9_]{0,39}")
PLACE: Final = re.compile(r"([^|@/]{1,64})\|([A-Z0-9]{1,3})@([0-9TZ:.+-]{16,32})")
"""An instance, a timeframe and one of their bars, as ids of facts begin and a tick is named."""

FACTS: Final = rows_of(Path(__file__).with_name("facts.csv"))
CODES: Final = {row["code"]: row for row in rows_of(Path(__file__).with_name("codes.csv"))}
"""Why a tool gives no facts, by code: the closed list, each with its status, word and meaning."""

SMALL: Final = 0.01
DECIMALS: Final = 3
"""From which value on a sentence rounds a figure that is no price, and to what."""

PREFIXES: Final = (
    "book.", "money.", "changed.", "lesson.", "pattern.", "study.", "radar.", "cost.", "doc.",
)  # fmt: skip
"""Prefixes of the ids that no record and no evidence has."""


class Value(BaseModel, frozen=True, extra="forbid"):
    """A value of tools or of the radar: frozen, and without a key that it does not know."""


class Fact(Value):
    """One value: a number, a word, or None where it is not known.

    `as_of` is the ISO time with Z up to which it counts, `source` the store or feed it was read
    from, `name` what a sentence calls it, `sentence` the whole sentence, "" where there is none.
    """

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
    as_of: str,
    source: str,
    unit: str = "",
    sentence: str = "",
) -> Fact:
    """Return a fact; without a sentence of its own that is "NAME is VALUE UNIT."."""
    if value is not None and not sentence:
        price, large = unit == "price", isinstance(value, float) and abs(value) >= SMALL
        # a price has the decimals of its symbol and no word behind it
        figure = round(value, DECIMALS) if large and not price else value  # type: ignore[arg-type]
        words = (capital(name), "is", format_any(figure), "" if price else unit)
        sentence = f"{' '.join(filter(None, words))}."
    return Fact(
        id=fact_id, value=value, unit=unit, as_of=as_of, source=source, name=name, sentence=sentence
    )


def facts_of(
    table: str, subject: Any, prefix: str, as_of: str, source: str, **words: object
) -> Iterator[Fact]:
    """Yield the facts of a table of facts.csv: what a subject has at the path of each row.

    The id is `prefix` and the row's own. Names and units may have `words` in braces, and `one`, the
    subject.
    """
    for row in FACTS:
        if row["table"] == table:
            value = subject
            for key in row["path"].split("."):
                value = value.get(key) if isinstance(value, Mapping) else getattr(value, key)
            name, unit = (row[key].format(one=subject, **words) for key in ("name", "unit"))
            yield fact(prefix + row["id"], value, name, as_of, source, unit)


class ToolError(Value):
    """Why a tool gave no facts: a code in capitals for programs, and one sentence for people."""

    code: str
    message: str


class ToolResult(Value):
    """What an invocation came to: facts, or an error and no facts."""

    ok: bool
    facts: tuple[Fact, ...] = ()
    error: ToolError | None = None


def refusal(code: str, more: str = "") -> ToolResult:
    """Return the result of a refused call: the meaning of the code, and what is known beyond it."""
    sentences = filter(None, (CODES[code]["meaning"], more))
    message = " ".join(f"{capital(one)}." for one in sentences)
    return ToolResult(ok=False, error=ToolError(code=code, message=message))


class ToolArgs(Value, allow_inf_nan=False):
    """The arguments of a tool: checked, frozen, and without a key that the tool does not know."""


Given = Iterable[Fact] | ToolResult


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool: its name, what it gives, its arguments, and the function that reads.

    `limit_s` is how many seconds one run may take. `work` gives facts, or the refusal that stands
    for them. It raises ConfigError for arguments that name what is not there; any other error is a
    fault of the tool.
    """

    name: str
    description: str
    args: type[ToolArgs]
    work: Callable[[DeskReader, Any], Given]
    limit_s: float = 2.0
    effect: Literal["read"] = "read"
