"""What the rules are asked in any seat, and what they answer, as a reply and as the framework's."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from agent_config import EXPERTS
from agents.contracts import (
    SIDES,
    VECTORS,
    AgentReport,
    Evidence,
    Feature,
    Prompt,
    Request,
    Role,
    Shape,
)
from agents.debate import replies
from agents.registry import AGENTS, SCORER, TRADER
from agents.texts import door
from tests.worlds.mirrors import Values
from torra.providers.rules.provider import RulesProvider

PROVIDER: Final = RulesProvider()
SEATS: Final[Mapping[str, Role]] = {
    **{name: agent.role for name, agent in AGENTS.items()},
    "trader": TRADER.role,
    SCORER.id: SCORER,
}
KINDS: Final = {
    "arbiter": "judgement", "trader": "thesis", "gate": "ruling", "reader": "regime",
    "judge": "decision", "researcher": "case", "scorer": "scores",
}  # fmt: skip
NAMED: Final = {"news": "news", **dict.fromkeys(EXPERTS, "finding"), "geometry": "geometry"}


def shape_of(role: Role, *, ahead: bool = False) -> Shape:
    """Return the shape of a seat's reply; `ahead`: at a firm."""
    shape = NAMED.get(role.id) or KINDS.get(role.kind, "report")
    looks_ahead = ahead and shape in ("report", "case", "news")
    return cast(Shape, f"{shape}_ahead" if looks_ahead else shape)


def request(
    seat: str | Role,
    values: Values,
    reports: tuple[AgentReport, ...] = (),
    *,
    ahead: bool = False,
    stage: int = 1,
) -> Request:
    """Return a question; a score that the values do not have is 0.125."""
    role = SEATS[seat] if isinstance(seat, str) else seat
    listed = {f"scores.{vector}": 0.125 for vector in VECTORS} | values
    return Request(
        role=role, round=stage, attempt=1, symbol="BTCUSD", timeframe="M15",
        bar_time="2021-11-01T10:00:00Z", model="rules", prompt=Prompt("", "", "report"),
        schema=replies.schema(shape_of(role, ahead=ahead)),
        features={name: Feature(name, value) for name, value in listed.items()},
        reports=reports,
        scores={vector: cast(float, listed[f"scores.{vector}"]) for vector in VECTORS},
        max_output_tokens=100, limit_s=5.0,
    )  # fmt: skip


def answer(asked: Request) -> dict[str, Any]:
    """Return the reply of the rules, as its text says it."""
    return door.load(PROVIDER.submit(asked).result().text, asked.symbol)


def read(asked: Request, reply: Mapping[str, Any] | None = None) -> AgentReport:
    """Return the answer as the framework reads it; anything malformed raises."""
    ahead = "horizon" in asked.schema["properties"]
    shape = shape_of(asked.role, ahead=ahead)
    return replies.read(shape, reply or answer(asked), asked.role, asked.features)


def opinion(seat: str, value: float | None, confidence: Any = "medium", **more: Any) -> AgentReport:
    """Return a report that asks for the same of every score that its seat may touch."""
    focus = SEATS[seat].focus if seat in SEATS else VECTORS
    moves = {vector: value if vector in focus else None for vector in VECTORS}
    return AgentReport(seat, moves, confidence, **more)


def desk(bull: float, bear: float, *analysts: float) -> tuple[AgentReport, ...]:
    """Return the reports of analysts and of both researchers."""
    names = ("technical", "sentiment", "news", "fundamental", *SIDES)
    values = (*analysts, *(0.0 for _ in range(4 - len(analysts))), bull, bear)
    made = zip(names, values, strict=True)
    kept = (*names[: len(analysts)], *SIDES)
    cited = (Evidence("technical.rsi14", 62.0),)
    return tuple(opinion(name, value, evidence=cited) for name, value in made if name in kept)


def rows(path: Path) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table of cases."""
    with path.open(encoding="utf-8", newline="") as table:
        yield from map(tuple, list(csv.reader(table))[1:])


def pairs(cell: str) -> Values:
    """Return what a cell of such a table names; - is a value that is not known."""
    named = (pair.split("=", 1) for pair in cell.split("; ") if pair)
    return {name: _value(text) for name, text in named}


def _value(text: str) -> float | str | None:
    try:
        return None if text == "-" else float(text)
    except ValueError:
        return text


def reports_of(cell: str, values: Values) -> tuple[AgentReport, ...]:
    """Return the reports that a cell names: a seat, its value, confidence, winner, flag, citations.

    What they cite has its value in the market.
    """
    made = []
    for name, text in (pair.split("=") for pair in cell.split("; ") if pair):
        value, confidence, winner, flag, cited, *_ = [*text.split(":"), *[""] * 4]
        number = None if value == "-" else float(value)
        evidence = tuple(Evidence(one, values[one]) for one in cited.split())
        more: dict[str, Any] = {"flags": (flag,) if flag else (), "evidence": evidence}
        made.append(opinion(name, number, confidence or "medium", winner=winner, **more))
    return tuple(made)


def part_of(reply: Any, place: str) -> Any:
    """Return a part of a reply by the keys and places that lead to it; None where it ends."""
    for key in place.split("."):
        rest = dict(enumerate(reply)) if isinstance(reply, list) else reply or {}
        reply = rest.get(int(key) if key.isdigit() else key)
    return reply
