"""What an agent of the radar is asked in one turn, and the reply that is read of it.

A prompt is made anew of the evidence for each turn, of the open rows alone, and is cut to its cap:
fewer facts a row, then fewer rows. What was left out is said in it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from agents.contracts import Prompt, Role
from agents.features import rows_of
from scoring_rubric import REPLY
from torra.exhibits.figures import format_any
from torra.radar.decisions import (
    ROW_FACTS,
    Evidence,
    open_rows,
    row_facts,
    sentences_about,
    short_id,
)
from torra.radar.result import RadarRow, RadarRun
from torra.tools.registry import TOOLS
from torra.words.radar import words_of

TURNS: Final = 4
"""Turns of an agent."""

NAME: Final[Mapping[str, Any]] = {"type": "string"}
LONGEST_LIST: Final = 100
"""Entries of a list of a reply; one with more cannot be read."""


@dataclass(frozen=True)
class RadarRole:
    """An agent of the radar: what it is asked, the tools on its list, and how many calls it has."""

    agent: str
    role: Role
    tools: tuple[str, ...]
    calls: int
    task: str


def _role(row: dict[str, str]) -> RadarRole:
    tier: Any = row["tier"]
    role = Role(f"radar_{row['agent']}", row["title"], "reviewer", tier)
    return RadarRole(
        row["agent"], role, tuple(row["tools"].split()), int(row["calls"]), row["task"]
    )


ROLES: Final = tuple(map(_role, rows_of(Path(__file__).with_name("roles.csv"))))


class TurnPart(BaseModel):
    """A part of a reply; what it does not know it ignores."""

    model_config = ConfigDict(frozen=True, strict=True)


class TurnCall(TurnPart):
    """A call: the tool's name, and the row that it is to read."""

    tool: str
    row: str


class TurnDemotion(TurnPart):
    """A row to be demoted, and the ids of facts that speak for it."""

    row: str
    cites: list[str] = Field(max_length=LONGEST_LIST)


class Turn(TurnPart):
    """The reply of one turn. `say` names rows in an order, or sentences; `done` ends the agent."""

    calls: list[TurnCall] = Field([], max_length=LONGEST_LIST)
    demote: list[TurnDemotion] = Field([], max_length=LONGEST_LIST)
    say: list[str] = Field([], max_length=LONGEST_LIST)
    because: list[list[str]] = Field([], max_length=LONGEST_LIST)
    done: bool


def _list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object_of(**fields: Any) -> dict[str, Any]:
    return {
        "type": "object", "properties": fields, "required": [*fields],
        "additionalProperties": False,
    }  # fmt: skip


SCHEMA: Final = _object_of(
    calls=_list_of(_object_of(tool=NAME, row=NAME)),
    demote=_list_of(_object_of(row=NAME, cites=_list_of(NAME))),
    say=_list_of(NAME),
    because=_list_of(_list_of(NAME)),
    done={"type": "boolean"},
)
FORM: Final = (
    '{"calls": [{"tool": "", "row": ""}], "demote": [{"row": "", "cites": []}], "say": [], '
    '"because": [], "done": true}'
)


def prompt_of(
    agent: RadarRole,
    run: RadarRun,
    evidence: Evidence,
    *,
    turn: int,
    most: int,
    notes: Sequence[str] = (),
) -> tuple[Prompt, str]:
    """Return the prompt of a turn of at most `most` bytes, and what was left out of it.

    `notes` are code's words on the turn before: what was refused, or that it could not be read.
    """
    tools = (f"{name}: {TOOLS[name].description}" for name in agent.tools)
    system = "\n".join((
        f"You are the {agent.role.title} of a small trading desk's radar.", agent.task,
        *(("Tools:", *tools) if agent.tools else ()), f"{REPLY} Its form: {FORM}",
    ))  # fmt: skip
    rows = open_rows(run)
    chosen, facts = len(rows), ROW_FACTS
    while True:
        blocks = [*_blocks(agent, run, evidence, rows[:chosen], facts)]
        left_out = _omissions(run, evidence, rows[:chosen], facts)
        user = "\n".join((
            f"As of {run.as_of}. Turn {turn} of {TURNS}{', your last' * (turn == TURNS)}.",
            *blocks, *notes, left_out,
        ))  # fmt: skip
        if len(f"{system}{user}".encode()) <= most or not chosen:
            return Prompt(system, user, "scores"), left_out
        facts, chosen = (facts - 1, chosen) if facts > 1 else (ROW_FACTS, chosen - 1)


def _blocks(
    agent: RadarRole, run: RadarRun, evidence: Evidence, rows: Sequence[RadarRow], facts: int
) -> Iterator[str]:
    """Yield the evidence of rows: their facts, or for who chooses of them, code's sentences."""
    if agent.tools:
        for row in rows:
            codes = ", ".join(words_of(code).word for code in row.codes)
            yield f"Row {row.stream} ({row.bucket}: {codes})"
            for one in row_facts(row, evidence)[:facts]:
                yield f"  {short_id(row, one.id)} = {format_any(one.value)} {one.unit}".rstrip()
        return
    sentences, causes = sentences_about(run, evidence)
    listed = {
        one.id for row in rows for one in _of_row(row, sentences)[: facts + len(row.codes) + 1]
    }
    yield from (f"{one.id}: {one.text}" for one in sentences if one.id in listed)
    pairs = ", ".join(f"[{one}, {two}]" for one, two in causes if {one, two} <= listed)
    yield f"Causes: {pairs or 'none'}"


def _of_row(row: RadarRow, sentences: Sequence[Any]) -> list[Any]:
    place = f"{row.stream.replace('|', ' ')}: "
    return [one for one in sentences if one.text.startswith(place)]


def _omissions(run: RadarRun, evidence: Evidence, rows: Sequence[RadarRow], facts: int) -> str:
    """Say what a prompt does not hold; "" where it holds all."""
    every = sum(map(len, (run.act, run.exit_radar, run.watch)))
    cut = sum(
        len({one.id for one in (*row.facts, *evidence.get(row.stream, ()))})
        - len(row_facts(row, evidence)[:facts])
        for row in rows
    )
    parts = [f"{every - len(rows)} rows"] * (every > len(rows)) + [f"{cut} facts"] * (cut > 0)
    return f"Left out: {', '.join(parts)}." if parts else ""
