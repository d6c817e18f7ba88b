"""The agreement of the desk on one tick, and the oddities of its sitting, in words for a page.

The panel's numbers are shown as stored (agents.debate.panel made them); their effect on the size of
an opening is multiplied out here. Flags of the sitting become plain sentences; an unknown flag
stays a word. A record of an older version may have no panel, and then there is no such section.
Pure functions over plain dicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agent_config import OPPOSITION_COST, SIDE_FROM
from agents.contracts import ORDINALS, VECTORS
from agents.debate.panel import DIRECTIONS, Panel
from torra.dashboard.record.stored import GATE, Row, in_shadow, mapping, sequence
from torra.exhibits import figures
from torra.exhibits.figures import cell

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


def degraded(deliberation: Mapping[str, Any]) -> str:
    """Return why a desk is DEGRADED, in one sentence; empty when it is not."""
    for flag in sequence(deliberation.get("flags")):
        found = DEGRADED.fullmatch(str(flag))
        if found:
            heard, seats = found.groups()
            return (
                f"Only {heard} of {seats} analysts reported (an abstention counts as a report), "
                "fewer than the profile's quorum: bull and bear were not asked."
            )
        # a record of another version may have the flag without these numbers
        if str(flag).partition(":")[0] == "degraded":
            return "Too few analysts reported: bull and bear were not asked."
    return ""


def tally(agents: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return how many agents answered, abstained, failed or were not asked; [] for a small desk."""
    if len(agents) <= SMALL_DESK:
        return []
    told = {
        "answered": "{}",
        "abstained": "{}, without penalty (they leave every average)",
        "failed": "{}, and what they would have said is missing",
        "not asked": "{}",
    }
    rows = []
    for state, sentence in told.items():
        group = [agent for agent in agents if agent["mark"].word == state]
        if group:
            who = [] if state == "answered" else _silent(group)
            words = sentence.format(f"{len(group)} {state}") + ("." if who else "")
            rows.append({"mark": figures.MARKS[state]._replace(word=words), "who": who})
    return rows


def silence(deliberation: Mapping[str, Any]) -> str:
    """Return how many agents abstained or failed, in few words; empty if none did."""
    quiet = sum(
        bool(mapping(report).get("abstained")) for report in sequence(deliberation.get("reports"))
    )
    failed = len(mapping(deliberation.get("failures")))
    counts = {"abstained": quiet, "failed": failed}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def unasked(deliberation: Mapping[str, Any], name: str) -> str:
    """Return why an agent was left out that has a seat; empty when it was asked."""
    reason = str(mapping(deliberation.get("unasked")).get(name) or "")
    return UNASKED.get(reason, figures.clean(reason, 80))


def looks(deliberation: Mapping[str, Any], name: str) -> list[str]:
    """Return the result of an agent's second look; empty if it took none."""
    flags = set(map(str, sequence(deliberation.get("flags"))))
    return [told for flag, told in LOOKS.items() if f"{flag}:{name}" in flags]


def ordinals(report: Mapping[str, Any]) -> list[Row]:
    """Return the whole numbers of the news agent, each with its range."""
    told = mapping(report.get("ordinals"))
    return [
        {
            "name": figures.title(name),
            "value": cell(told.get(name), 0) if low < 0 else _count(told.get(name)),
            "range": f"{figures.signed(low, 0)} to {figures.signed(high, 0)}",
        }
        for name, (low, high) in ORDINALS.items()
        if name in told
    ]


def panel(record: Mapping[str, Any], deliberation: Mapping[str, Any]) -> Row | None:
    """Return how far the desk agreed (`heard` False without opinions); None without a panel."""
    told = mapping(deliberation.get("panel"))
    opinions = [
        report
        for report in map(mapping, sequence(deliberation.get("reports")))
        if not report.get("abstained") and report.get("agent_id") != GATE
    ]
    if not told:
        return None
    if not opinions:
        return {"heard": False}
    side = _side(told.get("side"))
    return {
        "heard": True,
        "side": figures.mark(SIDES[side]),
        "sided": figures.plain(told.get("sided"), 0),
        "opposed": figures.plain(told.get("opposed"), 0),
        "abstained": figures.plain(told.get("abstained"), 0),
        "opposition": figures.plain(told.get("opposition"), 2),
        "raw": figures.plain(told.get("conviction_raw"), 3),
        "kept": figures.plain(told.get("conviction"), 3),
        "bars": [_width(told.get(name)) for name in ("conviction_raw", "conviction")],
        "cost": figures.plain(OPPOSITION_COST, 2),
        "sizes": sizes(record, told, counted=not in_shadow(deliberation)),
        "stances": [stance(*item, side) for item in mapping(told.get("stances")).items()],
        "spread": [_spread(mapping(told.get("spread")).get(vector)) for vector in VECTORS],
        "disagreements": [
            figures.clean(said, 200).replace("_", " ").replace(" -", f" {figures.MINUS}")
            for said in sequence(told.get("disagreements"))
        ],
    }


def sizes(record: Mapping[str, Any], told: Mapping[str, Any], *, counted: bool = True) -> list[Row]:
    """Return the size that gate and conviction leave of an opening: by the verdict, else of both.

    A conviction that is not `counted` (shadow) leaves all of it.
    """
    gate = figures.number(mapping(record.get("gate")).get("multiplier"))
    verdict = str(record.get("verdict"))
    rows = []
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
                "against": counted and figures.number(told.get("side")) == -DIRECTIONS[side],
            }
        )
    return rows


def conviction_for(told: Mapping[str, Any], side: str) -> float | None:
    """Return the conviction behind an opening of a side, None when the panel lacks a number."""
    raw, kept = (figures.number(told.get(name)) for name in ("conviction_raw", "conviction"))
    if raw is None or kept is None:
        return None
    known = Panel({}, side=_side(told.get("side")), conviction_raw=raw, conviction=kept)
    return known.conviction_for(side)


def stance(name: str, value: Any, side: int = 0) -> Row:
    """Return which way an agent sees the market, and whether that is against the desk's side."""
    known = figures.number(value) or 0.0
    taken = _side(known) if abs(known) >= SIDE_FROM else 0
    return {
        "title": figures.title(name),
        "value": cell(value),
        "bar": figures.signed_bar(value),
        "side": figures.mark(SIDES[taken]),
        "against": bool(side and taken == -side),
    }


def falsifiers(report: Mapping[str, Any]) -> list[str]:
    """Return the findings that, by a researcher's own words, would prove its case wrong."""
    return [figures.clean(text, 400) for text in sequence(report.get("falsifiers"))]


def checks(
    deliberation: Mapping[str, Any], expected: Panel
) -> Iterable[tuple[str, float | None, Any]]:
    """Yield each number of the panel: its name, as recomputed, as stored."""
    told = mapping(deliberation.get("panel"))
    yield "side of the desk", expected.side, told.get("side")
    for name, stance in expected.stances.items():
        yield f"stance of {name}", stance, mapping(told.get("stances")).get(name)
    yield "opposition", expected.opposition, told.get("opposition")
    yield "raw conviction", expected.conviction_raw, told.get("conviction_raw")
    yield "conviction", expected.conviction, told.get("conviction")
    for vector in VECTORS:
        name = f"spread of {figures.title(vector).lower()}"
        yield name, expected.spread.get(vector), mapping(told.get("spread")).get(vector)


def _silent(group: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of silent agents with their reasons, those of one reason together."""
    names: dict[str, list[str]] = {}
    for agent in group:
        names.setdefault(agent["why_silent"].rstrip("."), []).append(agent["title"])
    return [": ".join(filter(None, [", ".join(titles), why])) for why, titles in names.items()]


def _side(value: Any) -> int:
    known = figures.number(value) or 0.0
    return (known > 0) - (known < 0)


def _spread(value: Any) -> Row:
    return {"text": figures.plain(value, 3), "tone": "", "title": ""}


def _count(value: Any) -> Row:
    return {"text": figures.plain(value, 0), "tone": "", "title": ""}


def _width(value: Any) -> float:
    return round(max(0.0, min(1.0, figures.number(value) or 0.0)) * figures.BAR_WIDTH, 2)
