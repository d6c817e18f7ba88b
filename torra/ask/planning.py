"""Which tools answer a question, by plan.csv, and what they gave.

A row's scope: `each` is once for every symbol that was named, else for the first of the desk;
`named` only for named ones; `desk` only where none is named; `once` is once; `terms` looks for
words of the question in the docs, fewer of them each time, until a text has them. MOST_CALLS at
most. What reads the history of symbols reads it as of the tick that is asked about, where one is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Final

from agents.features import rows_of
from torra.ask.answer import PlanStep
from torra.ask.reading import WORDS, Question, whole
from torra.config import Instance
from torra.tools.contract import CODES, Fact, ToolResult
from torra.tools.desk_reader import DeskReader
from torra.tools.executor import Executor, ToolCall
from torra.tools.registry import TOOLS
from torra.words.deny_reasons import DenyReason

MOST_CALLS: Final = 8
MOST_STREAMS: Final = 4
"""Calls of a plan, and streams of the desk that stand for all where none is named."""

AGENT: Final = "ask"

PLAN: Final = [
    (row["intent"], row["tool"], row["scope"], json.loads(row["args"]))
    for row in rows_of(Path(__file__).with_name("plan.csv"))
]

TOPICS: Final = [
    (whole(row["cue"]), row["words"]) for row in rows_of(Path(__file__).with_name("topics.csv"))
]
"""How a question asks to be told how something is done, and the texts that tell it."""

IDLE: Final = WORDS["idle"]["any"]

SUBJECT: Final = re.compile(
    r"(?:pattern\.[^|]+\||changed\.|radar\.\w+\.)?([^|]+)\||book\.(.+)\.\w+$"
)
"""Where the id of a fact names an instance."""

TERM: Final = re.compile(r"[A-Za-z][A-Za-z_]{3,}")
MOST_TERMS: Final = 3


def retrieve(
    reader: DeskReader,
    executor: Executor,
    reading: Question,
    asked: Sequence[Instance],
    at: datetime | None,
) -> tuple[list[PlanStep], list[Fact]]:
    """Run the plan of a question; return its steps and the facts that they gave, each once.

    `asked` are the instances of its symbols, `at` is the close that it is about.
    """
    calls = [*_calls(reader, reading, asked)][:MOST_CALLS]
    done: list[tuple[ToolCall, ToolResult]] = []
    for then, is_of_stream in (
        (reader if at is None else replace(reader, as_of=at), 1),
        (reader, 0),
    ):
        some = [
            one for one in calls if ("symbol" in TOOLS[one.tool].args.model_fields) == is_of_stream
        ]
        done += zip(some, executor.together(then, some), strict=True)
    if any((intent, scope) == (reading.intent, "terms") for intent, _, scope, _ in PLAN):
        limit, looked_for = terms(reading)
        for words in looked_for[: MOST_CALLS - len(done)]:
            call = ToolCall("find_text", {"words": words, "limit": limit}, agent=AGENT)
            done.append((call, executor.call(reader, call)))
            if limit > 1 and done[-1][1].facts:
                break
    steps = [
        PlanStep(
            tool=call.tool,
            args=dict(call.args),
            status=CODES[code]["status"] if code else "ok",
            code=code,
            facts=len(result.facts),
        )
        for call, result in done
        for code in [result.error.code if result.error else ""]
    ]
    return steps, [*{fact.id: fact for _, result in done for fact in result.facts}.values()]


def _calls(reader: DeskReader, reading: Question, asked: Sequence[Instance]) -> Iterator[ToolCall]:
    """Yield the calls of a plan but for its texts."""
    scopes: dict[str, Sequence[Instance | None]] = {
        "each": asked or reader.instances[:MOST_STREAMS],
        "named": asked,
        "desk": () if asked else (None,),
        "once": asked or (None,),
        "terms": (),
    }
    for intent, tool, scope, args in PLAN:
        fields = TOOLS[tool].args.model_fields
        named = scopes[scope] if intent == reading.intent else ()
        named = named if "symbol" in fields else named and (None,)
        names = reading.compared or (reading.timeframe,) if "timeframe" in fields else ("",)
        for one, timeframe in product(named, names):
            more = {"symbol": one and one.id, "timeframe": timeframe}
            some = {name: value for name, value in more.items() if value}
            yield ToolCall(tool, {**args, **some}, agent=AGENT)


def terms(reading: Question) -> tuple[int, list[str]]:
    """Return what is looked for in the docs, and how many texts of each.

    One text of each that a known topic names; else the first that has words of the question, the
    most telling first: several words, then fewer.
    """
    words = [word for word in TERM.findall(reading.text) if not IDLE.fullmatch(word)]
    if reading.intent != "howto":
        plain = f" {' '.join(words)} ".lower().replace("_", " ")
        said = (str(one) for one in DenyReason if f" {one.replace('_', ' ').lower()} " in plain)
        return MOST_TERMS, [*said][:1]
    if named := next((one for cue, one in TOPICS if cue.search(reading.text)), ""):
        return 1, named.split("|")
    words = sorted(dict.fromkeys(words), key=len, reverse=True)[:MOST_TERMS]
    return MOST_TERMS, [" ".join(words[:count]) for count in range(len(words), 0, -1)]


def without(facts: Iterable[Fact], others: Collection[str]) -> list[Fact]:
    """Return facts without those of some instances, which their ids name."""
    subjects = ((one, SUBJECT.match(one.id)) for one in facts)
    return [one for one, match in subjects if not match or (match[1] or match[2]) not in others]
