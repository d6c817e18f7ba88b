"""The agreement of the desk on one tick, and the oddities of its sitting, in words for a page.

The panel's numbers are shown as stored (agents.debate.scoring made them); their effect on the size
of an opening is multiplied out here. Flags of the sitting become plain sentences; an unknown flag
stays a word. A record of an older version may have no panel, and then there is no such section.
Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypedDict

from agent_framework import NOTHING_OPENS
from agents.contracts import ORDINALS, VECTORS, AgentReport
from agents.debate.scoring import DIRECTIONS, Agreement, Panel
from torra.dashboard.record.rows import Ordinal, Stance, Voice
from torra.exhibits import figures
from torra.exhibits.figures import cell
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
"""Results of a second look (agents.debate.debate), by flag."""

SIDE_CHECKS: Final = {
    "opposition": "opposition to {}",
    "dissent": "dissent to {}",
    "raw": "raw conviction, {}",
    "conviction": "conviction, {}",
}
"""What each number of an agreement is called, of a side."""

SIDES: Final = {1: "UP", -1: "DOWN", 0: "NEUTRAL"}


class AgentTally(TypedDict):
    """How many agents ended in a state, and who of them with what reason."""

    mark: Badge
    who: list[str]


class OpeningSize(NamedTuple):
    """How far the desk agrees with an opening of a side, and the share of its size that is left."""

    side: str
    found: Agreement
    left: float


def degraded(deliberation: DebateRecord) -> str:
    """Return why a desk is DEGRADED, in one sentence; empty when it is not."""
    for flag in deliberation.flags:
        found = DEGRADED.fullmatch(flag)
        if found:
            reporting, seats = found.groups()
            return (
                f"Only {reporting} of {seats} analysts reported (an abstention counts as a "
                "report), fewer than the profile's quorum: bull and bear were not asked."
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
            "value": cell(told.get(name), 0)
            if low < 0
            else {"text": figures.plain(told.get(name), 0)},
            "range": f"{figures.format_signed(low, 0)} to {figures.format_signed(high, 0)}",
        }
        for name, (low, high) in ORDINALS.items()
        if name in told
    ]


def has_opinions(deliberation: DebateRecord) -> bool:
    """Return whether an agent besides the gate's had an opinion."""
    return not all(one.abstained or one.agent_id == GATE for one in deliberation.reports)


def sizes(record: TickRecord) -> list[OpeningSize]:
    """Return how far the desk agrees with the verdict's side, with both where it is HOLD.

    In shadow a conviction is not counted: it leaves all of a size.
    """
    debate, verdict = record.deliberation, record.verdict
    found = {side: debate.panel.agreement(side) for side in DIRECTIONS}
    return [
        OpeningSize(side, one, left_of(record.gate.multiplier, kept, record.budget) or 0.0)
        for side, one in found.items()
        if verdict in (side, "HOLD")
        for kept in [1.0 if debate.in_shadow else one.conviction]
    ]


def stances(record: TickRecord) -> list[Stance]:
    """Return which way each agent pushes, and whether that is against the side of the tick."""
    panel = record.deliberation.panel
    towards = DIRECTIONS.get(record.verdict, _side(panel.push))
    return [stance(*item, towards) for item in panel.pushes.items()]


def disagreement(text: str) -> str:
    """Return a disagreement of the panel, which is made of ids and numbers, for people."""
    return figures.sanitize(text, 200).replace("_", " ").replace(" -", f" {figures.MINUS}")


def left_of(
    gate: float | None, conviction: float | None, budget: float | None = None
) -> float | None:
    """Return the share of an opening's size that gate, conviction and budget leave.

    None if not known; the budget is a swarm's, None where there is none.
    """
    if gate is None or conviction is None:
        return None
    return gate * conviction * (1.0 if budget is None else budget)


def leaning(push: float | None) -> Badge:
    """Return the mark of the side to which a push leans."""
    return figures.mark(SIDES[_side(push)])


def stance(name: str, value: float | None, side: int = 0) -> Stance:
    """Return which way an agent leans, and whether that is against a side."""
    return {
        "title": figures.title(name),
        "value": cell(value),
        "bar": figures.signed_bar(value, WIDE_PUSH),
        "side": leaning(value),
        "against": bool(side and _side(value) == -side),
    }


def checks(told: Panel, expected: Panel) -> Iterable[tuple[str, float | None, float | None]]:
    """Yield each number of the panel: its name, as recomputed, as stored."""
    for vector in VECTORS:
        name = f"spread of {figures.title(vector).lower()}"
        yield name, expected.spread.get(vector), told.spread.get(vector)
    for name, push in expected.pushes.items():
        yield f"push of {name}", push, told.pushes.get(name)
    yield "push of the desk", expected.push, told.push
    for side in ("buy", "sell"):
        for name, words in SIDE_CHECKS.items():
            one, other = (getattr(getattr(of, side), name) for of in (expected, told))
            yield words.format(side), one, other


def _silent(group: Sequence[Voice]) -> list[str]:
    """Return the names of silent agents with their reasons, those of one reason together."""
    names: dict[str, list[str]] = {}
    for agent in group:
        names.setdefault(agent.why_silent.rstrip("."), []).append(figures.title(agent.name))
    return [": ".join(filter(None, [", ".join(titles), why])) for why, titles in names.items()]


def _side(value: float | None) -> int:
    known = value or 0.0
    return (known > 0) - (known < 0)
