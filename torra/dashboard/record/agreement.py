"""Who took part in one tick, how far they agree, and what was odd, in words for a page.

The panel's numbers are shown as stored (agents.debate.scoring made them); their effect on the size
of an opening is multiplied out here. Flags of the sitting become plain sentences; an unknown flag
stays a word. A record of an older version may have no panel, and then there is no such section.
Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agent_config import MAX_REQUESTS
from agent_framework import NOTHING_OPENS
from agents.contracts import VECTORS, SourceType
from agents.debate.debate import REQUESTS_PER_AGENT
from agents.debate.scoring import DIRECTIONS, Panel
from torra.exhibits import figures
from torra.tick.marks import GATE
from torra.tick.tick_record import DebateRecord, TickRecord
from torra.words.badge import Badge, capital
from torra.words.ticks import FLAGS, UNHEARD

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
OFFICER: Final = {
    "macro.vix_rank": "VIX",
    "derivs.funding_rank": "funding",
    "derivs.long_liquidations_rank": "liquidations",
}
"""What rows of the risk officer read that may have no source (agents.risk_officer)."""

UNSOURCED: Final = "no source of {} is set, so this row of the risk officer is silent: no fault"

ROUND: Final = "answered in an earlier round, which counts"
"""Meaning of a flag round_N_without."""

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


def degraded(deliberation: DebateRecord) -> str:
    """Return why a desk is DEGRADED, in one sentence; empty when it is not."""
    for flag in deliberation.flags:
        if counts := DEGRADED.fullmatch(flag):
            reporting, seats = counts.groups()
            return (
                f"Only {reporting} of {seats} analysts reported (an abstention counts as a "
                "report), fewer than the profile's quorum: bull and bear were not asked."
            )
    return ""


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


def has_opinions(deliberation: DebateRecord) -> bool:
    """Return whether an agent besides the gate's had an opinion."""
    return any(not (row.abstained or row.agent_id == GATE) for row in deliberation.reports)


def size_share(record: TickRecord, side: str) -> float:
    """Return the share of an opening's size that gate, conviction and budget leave.

    In shadow a conviction is not counted: it leaves all of a size.
    """
    debate, budget = record.deliberation, 1.0 if record.budget is None else record.budget
    conviction = 1.0 if debate.in_shadow else debate.panel.agreement(side).conviction
    return record.gate.multiplier * conviction * budget


def is_against(record: TickRecord, push: float) -> bool:
    """Return whether a push is against the tick's side, or against the desk's where it is HOLD."""
    towards = DIRECTIONS.get(record.verdict, _side(record.deliberation.panel.push))
    return bool(towards) and _side(push) == -towards


def disagreement(text: str) -> str:
    """Return a disagreement of the panel, which is made of ids and numbers, for people."""
    return figures.sanitize(text, 200).replace("_", " ").replace(" -", f" {figures.MINUS}")


def leaning(push: float | None) -> Badge:
    """Return the mark of the side to which a push leans."""
    return figures.mark(SIDES[_side(push)])


def checks(stored: Panel, expected: Panel) -> Iterable[tuple[str, float | None, float | None]]:
    """Yield each number of the panel: its name, as recomputed, as stored."""
    for vector in VECTORS:
        name = f"spread of {figures.title(vector).lower()}"
        yield name, expected.spread.get(vector), stored.spread.get(vector)
    for name, push in expected.pushes.items():
        yield f"push of {name}", push, stored.pushes.get(name)
    yield "push of the desk", expected.push, stored.push
    for side in ("buy", "sell"):
        for name, words in SIDE_CHECKS.items():
            recomputed, number = (getattr(getattr(of, side), name) for of in (expected, stored))
            yield words.format(side), recomputed, number


def most_requests(record: TickRecord) -> int:
    """Return how many requests a tick may make."""
    return MAX_REQUESTS + (REQUESTS_PER_AGENT if record.company is not None else 0)


def repeated_requests(record: TickRecord) -> tuple[int, int]:
    """Return how many requests were repeats of failed ones, and how many second looks."""
    looks = sum(flag.partition(":")[0] in LOOKS for flag in record.deliberation.flags)
    repeated = sum(call.attempt > 1 for call in record.made_calls)
    # a second look is a repeated request too, but not because the first one failed
    return max(0, repeated - looks), looks


def meaning_of(flag: str) -> str:
    """Return what a flag of a sitting means; "" of one that is not known."""
    word, _, rest = flag.partition(":")
    if word == "silent" and rest in OFFICER:
        return UNSOURCED.format(OFFICER[rest])
    return ROUND if word.startswith("round_") else FLAGS.get(word, "")


def note(record: TickRecord) -> Badge | None:
    """Return the source of a tick with what it means and what to do; None where all is well."""
    source = figures.mark(record.source_type)
    if not source.advice:
        return None
    flags = {flag.partition(":")[0] for flag in record.deliberation.flags}
    for flag in UNHEARD if record.source_type == SourceType.L1_ONLY else ():
        if flag in flags and UNHEARD[flag].advice:
            source = source._replace(meaning=FLAGS[flag], advice=UNHEARD[flag].advice)
            break
    return source._replace(meaning=f"{capital(source.meaning)}.")


def _side(value: float | None) -> int:
    return 0 if value is None else (value > 0) - (value < 0)
