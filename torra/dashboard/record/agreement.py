"""The agreement of the desk on one tick, and the oddities of its sitting, in words for a page.

The panel's numbers are shown as stored (agents.debate.panel made them); their effect on the size of
an opening is multiplied out here. Flags of the sitting become plain sentences; an unknown flag
stays a word. A record of an older version may have no panel, and then there is no such section.
Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Required, TypedDict

from agent_config import LEANING_SHARE, OPPOSITION_COST
from agent_framework import NOTHING_OPENS
from agents.contracts import ORDINALS, VECTORS, AgentReport
from agents.debate.panel import DIRECTIONS, Agreement, Panel
from torra.dashboard.record.rows import Ordinal, Stance, Voice
from torra.exhibits import figures
from torra.exhibits.figures import Cell, cell
from torra.tick.marks import GATE
from torra.tick.tick_record import DebateRecord, TickRecord
from torra.words.badge import Badge
from torra.words.ticks import BADGES, FLAGS

SMALL_DESK: Final = 4
"""Seats of the budget desk; only a larger desk gets a count of answers and silences."""

WIDE_PUSH: Final = 0.1
"""Push that fills its bar: an analyst seldom pushes further, a researcher cannot."""


UNASKED: Final = {
    "quorum": "no quorum: too few analysts reported for a debate to rest on",
    "budget": "no money: the budget of the hour left none for it",
    "deadline": "no time: the deadline of the tick left none for it",
    NOTHING_OPENS: "no need: nothing can open here, and the gate's rules stand",
}
"""Why an agent that could have been asked was not (Deliberation.unasked)."""

DEGRADED: Final = re.compile(r"degraded:(\d{1,2})_of_(\d{1,2})")
LOOKS: Final = ("second_look", "first_look_stands")
"""Results of a second look (agents.debate.asking), by flag."""

SIDES: Final = {1: "UP", -1: "DOWN", 0: "NEUTRAL"}


class AgentTally(TypedDict):
    """How many agents ended in a state, and who of them with what reason."""

    mark: Badge
    who: list[str]


class SideShown(TypedDict):
    """How far the desk agreed with an opening of a side, and what size that and the gate leave."""

    side: Badge
    opposed: str
    opposition: str
    dissent: str
    raw: str
    kept: str
    bars: list[float]
    against: bool
    gate: str
    counted: str
    budget: str
    size: str


class PanelShown(TypedDict, total=False):
    """How far the desk agreed; only `heard` (False) where there was no opinion."""

    heard: Required[bool]
    side: Badge
    push: Cell
    sided: str
    abstained: str
    cost: str
    leaning: str
    sides: list[SideShown]
    stances: list[Stance]
    spread: list[Cell]
    disagreements: list[str]


def degraded(deliberation: DebateRecord) -> str:
    """Return why a desk is DEGRADED, in one sentence; empty when it is not."""
    for flag in deliberation.flags:
        found = DEGRADED.fullmatch(flag)
        if found:
            heard, seats = found.groups()
            return (
                f"Only {heard} of {seats} analysts reported (an abstention counts as a report), "
                "fewer than the profile's quorum: bull and bear were not asked."
            )
    return ""


def tally(agents: Sequence[Voice]) -> list[AgentTally]:
    """Return how many agents answered, abstained, failed or were not asked; [] for a small desk."""
    if len(agents) <= SMALL_DESK:
        return []
    rows: list[AgentTally] = []
    for state in ("answered", "abstained", "failed", "not asked"):
        group = [agent for agent in agents if agent.mark.word == state]
        if group:
            who = [] if state == "answered" else _silent(group)
            badge = BADGES[state]
            words = ", ".join(filter(None, (f"{len(group)} {state}", badge.meaning)))
            rows.append({"mark": badge._replace(word=words + "." * bool(who)), "who": who})
    return rows


def silence(deliberation: DebateRecord) -> str:
    """Return how many agents abstained or failed, in few words; empty if none did."""
    quiet = sum(report.abstained for report in deliberation.reports)
    counts = {"abstained": quiet, "failed": len(deliberation.failures)}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def unasked(deliberation: DebateRecord, name: str) -> str:
    """Return why an agent was left out that has a seat; empty when it was asked."""
    reason = deliberation.unasked.get(name, "")
    return UNASKED.get(reason, figures.sanitize(reason, 80))


def looks(deliberation: DebateRecord, name: str) -> list[str]:
    """Return the result of an agent's second look; empty if it took none."""
    return [FLAGS[flag] for flag in LOOKS if f"{flag}:{name}" in deliberation.flags]


def ordinals(report: AgentReport) -> list[Ordinal]:
    """Return the whole numbers of the news agent, each with its range."""
    told = report.ordinals
    return [
        {
            "name": figures.title(name),
            "value": cell(told.get(name), 0) if low < 0 else _plain(told.get(name), 0),
            "range": f"{figures.format_signed(low, 0)} to {figures.format_signed(high, 0)}",
        }
        for name, (low, high) in ORDINALS.items()
        if name in told
    ]


def panel(record: TickRecord) -> PanelShown:
    """Return how far the desk agreed; `heard` is False without opinions."""
    deliberation = record.deliberation
    told = deliberation.panel
    if all(report.abstained or report.agent_id == GATE for report in deliberation.reports):
        return {"heard": False}
    push = told.push
    towards = DIRECTIONS.get(str(record.verdict), _side(push))
    return {
        "heard": True,
        "side": figures.mark(SIDES[_side(push)]),
        "push": cell(push),
        "sided": figures.plain(told.sided, 0),
        "abstained": figures.plain(told.abstained, 0),
        "cost": figures.plain(OPPOSITION_COST, 2),
        "leaning": figures.plain(LEANING_SHARE, 2),
        "sides": sides(record, told, counted=not deliberation.in_shadow),
        "stances": [stance(*item, towards) for item in told.pushes.items()],
        "spread": [_plain(told.spread.get(vector), 3) for vector in VECTORS],
        "disagreements": [
            figures.sanitize(said, 200).replace("_", " ").replace(" -", f" {figures.MINUS}")
            for said in told.disagreements
        ],
    }


def sides(record: TickRecord, told: Panel, *, counted: bool = True) -> list[SideShown]:
    """Return how far the desk agreed with the verdict's side, with both where it is HOLD.

    A conviction that is not `counted` (shadow) leaves all of a size.
    """
    gate, verdict = record.gate.multiplier, str(record.verdict)
    rows: list[SideShown] = []
    for side in (verdict,) if verdict in DIRECTIONS else tuple(DIRECTIONS):
        found = told.agreement(side)
        kept = found.conviction if counted else 1.0
        budget = record.budget
        size = left_of(gate, kept, budget)
        rows.append(
            {
                "side": figures.mark(side),
                "opposed": figures.plain(found.opposed, 0),
                "opposition": figures.plain(found.opposition, 2),
                "dissent": figures.plain(found.dissent, 2),
                "raw": figures.plain(found.raw, 3),
                "kept": figures.plain(found.conviction, 3),
                "bars": [_width(found.raw), _width(found.conviction)],
                "against": counted and found.leans_against,
                "gate": figures.plain(gate, 3),
                "counted": figures.plain(kept, 3) if counted else "",
                "budget": "" if budget is None else figures.plain(budget, 3),
                "size": figures.plain(size, 3),
            }
        )
    return rows


def left_of(
    gate: float | None, conviction: float | None, budget: float | None = None
) -> float | None:
    """Return the share of an opening's size that gate, conviction and budget leave.

    None if not known; the budget is a swarm's, None where there is none.
    """
    if gate is None or conviction is None:
        return None
    return gate * conviction * (1.0 if budget is None else budget)


def stance(name: str, value: float | None, side: int = 0) -> Stance:
    """Return which way an agent leans, and whether that is against a side."""
    taken = _side(value)
    return {
        "title": figures.title(name),
        "value": cell(value),
        "bar": figures.signed_bar(value, WIDE_PUSH),
        "side": figures.mark(SIDES[taken]),
        "against": bool(side and taken == -side),
    }


def checks(told: Panel, expected: Panel) -> Iterable[tuple[str, float | None, float | None]]:
    """Yield each number of the panel: its name, as recomputed, as stored."""
    for vector in VECTORS:
        name = f"spread of {figures.title(vector).lower()}"
        yield name, expected.spread.get(vector), told.spread.get(vector)
    for name, push in expected.pushes.items():
        yield f"push of {name}", push, told.pushes.get(name)
    yield "push of the desk", expected.push, told.push
    yield from _side_checks("buy", expected.buy, told.buy)
    yield from _side_checks("sell", expected.sell, told.sell)


def _side_checks(
    side: str, expected: Agreement, told: Agreement
) -> Iterable[tuple[str, float | None, float | None]]:
    yield f"opposition to {side}", expected.opposition, told.opposition
    yield f"dissent to {side}", expected.dissent, told.dissent
    yield f"raw conviction, {side}", expected.raw, told.raw
    yield f"conviction, {side}", expected.conviction, told.conviction


def _silent(group: Sequence[Voice]) -> list[str]:
    """Return the names of silent agents with their reasons, those of one reason together."""
    names: dict[str, list[str]] = {}
    for agent in group:
        names.setdefault(agent.why_silent.rstrip("."), []).append(figures.title(agent.name))
    return [": ".join(filter(None, [", ".join(titles), why])) for why, titles in names.items()]


def _side(value: float | None) -> int:
    known = value or 0.0
    return (known > 0) - (known < 0)


def _plain(value: float | None, decimals: int) -> Cell:
    return {"text": figures.plain(value, decimals), "tone": "", "title": ""}


def _width(value: float | None) -> float:
    return round(max(0.0, min(1.0, value or 0.0)) * figures.BAR_WIDTH, 2)
