"""Which tools answer a question, by plan.csv, and what they gave.

A row's scope: `each` is once for every symbol that was named, else for the first of the desk;
`named` only for named ones; `desk` only where none is named; `once` is once; `terms` looks for
words of the question in the docs, fewer of them each time, until a text has them. MOST_CALLS at
most. What reads the history of symbols reads it as of the tick that is asked about, where one is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Final

from agents.features import rows_of
from torra.ask.answer import PlanStep
from torra.ask.reading import WORDS, Question
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

IDLE: Final = WORDS["idle"]["any"]

SUBJECT: Final = re.compile(
    r"(?:pattern\.[^|]+\||changed\.|radar\.\w+\.)?([^|]+)\||book\.(.+)\.\w+$"
)
"""Where the id of a fact names an instance."""

TERM: Final = re.compile(r"[A-Za-z][A-Za-z_]{3,}")
MOST_TERMS: Final = 3


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What the tools gave: steps in their order, and the facts of those that gave any."""

    steps: tuple[PlanStep, ...] = ()
    facts: tuple[Fact, ...] = ()


def retrieve(
    reader: DeskReader,
    executor: Executor,
    reading: Question,
    asked: Sequence[Instance],
    at: datetime | None,
) -> Retrieval:
    """Run the plan of a question; `asked` are the instances of its symbols, `at` is its close."""
    then = reader if at is None else replace(reader, as_of=at)
    calls = [*_calls(reader, reading, asked)][:MOST_CALLS]
    of_stream = [call for call in calls if "symbol" in TOOLS[call.tool].args.model_fields]
    rest = [call for call in calls if call not in of_stream]
    results = [
        *zip(of_stream, executor.together(then, of_stream), strict=True),
        *zip(rest, executor.together(reader, rest), strict=True),
    ]
    if any(tool == "find_text" and intent == reading.intent for intent, tool, *_ in PLAN):
        results += _texts(reader, executor, reading, MOST_CALLS - len(results))
    facts = {fact.id: fact for _, result in results for fact in result.facts}
    return Retrieval(tuple(_step(*one) for one in results), tuple(facts.values()))


def _calls(reader: DeskReader, reading: Question, asked: Sequence[Instance]) -> Iterator[ToolCall]:
    """Yield the calls of a plan but for its texts."""
    for intent, tool, scope, args in PLAN:
        fields = TOOLS[tool].args.model_fields
        if intent != reading.intent or scope == "terms" or (scope == "desk" and asked):
            continue
        named: Sequence[Instance | None] = asked or [None]
        if scope in ("each", "named"):
            named = asked or (reader.instances[:MOST_STREAMS] if scope == "each" else ())
        if "symbol" not in fields:
            named = [None] if named else []
        names = reading.compared or (reading.timeframe,) if "timeframe" in fields else ("",)
        for one, timeframe in product(named, names):
            more = {"symbol": one.id} if one else {}
            more |= {"timeframe": timeframe} if timeframe else {}
            yield ToolCall(tool, {**args, **more}, agent=AGENT)


def terms(reading: Question) -> list[str]:
    """Return what is looked for in the docs, the most telling first: several words, then fewer."""
    words = [word for word in TERM.findall(reading.text) if not IDLE.fullmatch(word)]
    if reading.intent != "howto":
        plain = f" {' '.join(words)} ".lower().replace("_", " ")
        return [str(one) for one in DenyReason if f" {one.replace('_', ' ').lower()} " in plain][:1]
    words = sorted(dict.fromkeys(words), key=len, reverse=True)[:MOST_TERMS]
    return [" ".join(words[:count]) for count in range(len(words), 0, -1)]


def _texts(
    reader: DeskReader, executor: Executor, reading: Question, room: int
) -> Iterator[tuple[ToolCall, ToolResult]]:
    """Yield looks for texts of the docs until one is found."""
    for words in terms(reading)[:room]:
        call = ToolCall("find_text", {"words": words, "limit": 3}, agent=AGENT)
        result = executor.call(reader, call)
        yield call, result
        if result.facts:
            return


def _step(call: ToolCall, result: ToolResult) -> PlanStep:
    code = result.error.code if result.error else ""
    return PlanStep(
        tool=call.tool,
        args=dict(call.args),
        status=CODES[code]["status"] if code else "ok",
        code=code,
        facts=len(result.facts),
    )


def without(retrieval: Retrieval, others: Collection[str]) -> Retrieval:
    """Return what was retrieved without the facts of some instances, which their ids name."""
    subjects = ((one, SUBJECT.match(one.id)) for one in retrieval.facts)
    facts = (one for one, match in subjects if not match or (match[1] or match[2]) not in others)
    return replace(retrieval, facts=tuple(facts))
