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

from agent_config import OPPOSITION_COST, SIDE_FROM
from agents.contracts import ORDINALS, VECTORS
from agents.debate.panel import DIRECTIONS, Panel
from torra.dashboard.record.rows import Ordinal, Stance, TranscriptVoice
from torra.exhibits import figures
from torra.exhibits.figures import Cell, Mark, cell
from torra.tick.tick_record import GATE, DebateRecord, PanelTold, ReportRecord, TickRecord

SMALL_DESK: Final = 4
"""Seats of the budget desk; only a larger desk gets a count of answers and silences."""

UNASKED: Final = {
    "quorum": "no quorum: too few analysts reported for a debate to rest on",
    "budget": "no money: the budget of the hour left none for it",
    "deadline": "no time: the deadline of the tick left none for it",
}
"""Why an agent that could have been asked was not (Deliberation.unasked)."""

DEGRADED: Final = re.compile(r"degraded:(\d{1,2})_of_(\d{1,2})")
LOOKS: Final = {
    "second_look": "second look: this is its second answer, as the first was unsure",
    "first_look_stands": "first look stands: a second one was tried and brought no good answer",
}
"""Results of a second look (agents.debate.asking), by flag."""

SIDES: Final = {1: "UP", -1: "DOWN", 0: "NEUTRAL"}


class AgentTally(TypedDict):
    """How many agents ended in a state, and who of them with what reason."""

    mark: Mark
    who: list[str]


class Size(TypedDict):
    """What gate and conviction leave of an opening of a side."""

    side: Mark
    gate: str
    conviction: str
    size: str
    against: bool


class PanelShown(TypedDict, total=False):
    """How far the desk agreed; only `heard` (False) where there was no opinion."""

    heard: Required[bool]
    side: Mark
    sided: str
    opposed: str
    abstained: str
    opposition: str
    raw: str
    kept: str
    bars: list[float]
    cost: str
    sizes: list[Size]
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
        # a record of another version may have the flag without these numbers
        if flag.partition(":")[0] == "degraded":
            return "Too few analysts reported: bull and bear were not asked."
    return ""


def tally(agents: Sequence[TranscriptVoice]) -> list[AgentTally]:
    """Return how many agents answered, abstained, failed or were not asked; [] for a small desk."""
    if len(agents) <= SMALL_DESK:
        return []
    told = {
        "answered": "{}",
        "abstained": "{}, without penalty (they leave every average)",
        "failed": "{}, and what they would have said is missing",
        "not asked": "{}",
    }
    rows: list[AgentTally] = []
    for state, sentence in told.items():
        group = [agent for agent in agents if agent["mark"].word == state]
        if group:
            who = [] if state == "answered" else _silent(group)
            words = sentence.format(f"{len(group)} {state}") + ("." if who else "")
            rows.append({"mark": figures.MARKS[state]._replace(word=words), "who": who})
    return rows


def silence(deliberation: DebateRecord) -> str:
    """Return how many agents abstained or failed, in few words; empty if none did."""
    quiet = sum(report.abstained for report in deliberation.reports)
    counts = {"abstained": quiet, "failed": len(deliberation.failures)}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def unasked(deliberation: DebateRecord, name: str) -> str:
    """Return why an agent was left out that has a seat; empty when it was asked."""
    reason = deliberation.unasked.get(name, "")
    return UNASKED.get(reason, figures.clean(reason, 80))


def looks(deliberation: DebateRecord, name: str) -> list[str]:
    """Return the result of an agent's second look; empty if it took none."""
    return [told for flag, told in LOOKS.items() if f"{flag}:{name}" in deliberation.flags]


def ordinals(report: ReportRecord) -> list[Ordinal]:
    """Return the whole numbers of the news agent, each with its range."""
    told = report.ordinals
    return [
        {
            "name": figures.title(name),
            "value": cell(told.get(name), 0) if low < 0 else _plain(told.get(name), 0),
            "range": f"{figures.signed(low, 0)} to {figures.signed(high, 0)}",
        }
        for name, (low, high) in ORDINALS.items()
        if name in told
    ]


def panel(record: TickRecord) -> PanelShown | None:
    """Return how far the desk agreed (`heard` False without opinions); None without a panel."""
    deliberation = record.deliberation
    told = deliberation.panel
    if not told:
        return None
    if all(report.abstained or report.agent_id == GATE for report in deliberation.reports):
        return {"heard": False}
    side = _side(told.side)
    return {
        "heard": True,
        "side": figures.mark(SIDES[side]),
        "sided": figures.plain(told.sided, 0),
        "opposed": figures.plain(told.opposed, 0),
        "abstained": figures.plain(told.abstained, 0),
        "opposition": figures.plain(told.opposition, 2),
        "raw": figures.plain(told.conviction_raw, 3),
        "kept": figures.plain(told.conviction, 3),
        "bars": [_width(told.conviction_raw), _width(told.conviction)],
        "cost": figures.plain(OPPOSITION_COST, 2),
        "sizes": sizes(record, told, counted=not deliberation.in_shadow),
        "stances": [stance(*item, side) for item in told.stances.items()],
        "spread": [_plain(told.spread.get(vector), 3) for vector in VECTORS],
        "disagreements": [
            figures.clean(said, 200).replace("_", " ").replace(" -", f" {figures.MINUS}")
            for said in told.disagreements
        ],
    }


def sizes(record: TickRecord, told: PanelTold, *, counted: bool = True) -> list[Size]:
    """Return the size that gate and conviction leave of an opening: by the verdict, else of both.

    A conviction that is not `counted` (shadow) leaves all of it.
    """
    gate, verdict = record.gate.multiplier, str(record.verdict)
    rows: list[Size] = []
    for side in (verdict,) if verdict in DIRECTIONS else tuple(DIRECTIONS):
        conviction = conviction_for(told, side) if counted else 1.0
        if gate is None or conviction is None:
            continue
        rows.append(
            {
                "side": figures.mark(side),
                "gate": figures.plain(gate, 3),
                "conviction": figures.plain(conviction, 3),
                "size": figures.plain(gate * conviction, 3),
                "against": counted and told.side == -DIRECTIONS[side],
            }
        )
    return rows


def conviction_for(told: PanelTold, side: str) -> float | None:
    """Return the conviction behind an opening of a side, None when the panel lacks a number."""
    raw, kept = told.conviction_raw, told.conviction
    if raw is None or kept is None:
        return None
    known = Panel({}, side=_side(told.side), conviction_raw=raw, conviction=kept)
    return known.conviction_for(side)


def stance(name: str, value: float | None, side: int = 0) -> Stance:
    """Return which way an agent sees the market, and whether that is against the desk's side."""
    taken = _side(value) if abs(value or 0.0) >= SIDE_FROM else 0
    return {
        "title": figures.title(name),
        "value": cell(value),
        "bar": figures.signed_bar(value),
        "side": figures.mark(SIDES[taken]),
        "against": bool(side and taken == -side),
    }


def falsifiers(report: ReportRecord) -> list[str]:
    """Return the findings that, by a researcher's own words, would prove its case wrong."""
    return [figures.clean(text, 400) for text in report.falsifiers]


def checks(told: PanelTold, expected: Panel) -> Iterable[tuple[str, float | None, float | None]]:
    """Yield each number of the panel: its name, as recomputed, as stored."""
    yield "side of the desk", expected.side, told.side
    for name, stance in expected.stances.items():
        yield f"stance of {name}", stance, told.stances.get(name)
    yield "opposition", expected.opposition, told.opposition
    yield "raw conviction", expected.conviction_raw, told.conviction_raw
    yield "conviction", expected.conviction, told.conviction
    for vector in VECTORS:
        name = f"spread of {figures.title(vector).lower()}"
        yield name, expected.spread.get(vector), told.spread.get(vector)


def _silent(group: Sequence[TranscriptVoice]) -> list[str]:
    """Return the names of silent agents with their reasons, those of one reason together."""
    names: dict[str, list[str]] = {}
    for agent in group:
        names.setdefault(agent["why_silent"].rstrip("."), []).append(agent["title"])
    return [": ".join(filter(None, [", ".join(titles), why])) for why, titles in names.items()]


def _side(value: float | None) -> int:
    known = value or 0.0
    return (known > 0) - (known < 0)


def _plain(value: float | None, decimals: int) -> Cell:
    return {"text": figures.plain(value, decimals), "tone": "", "title": ""}


def _width(value: float | None) -> float:
    return round(max(0.0, min(1.0, value or 0.0)) * figures.BAR_WIDTH, 2)
