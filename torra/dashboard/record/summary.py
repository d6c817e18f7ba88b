"""The first strip of a tick's page: which agents answered, what was odd, what it cost.

Cost and time stand against their limits, and each seat links to its words further down. `note` says
what the state of a tick means and what a person can do about it. The limits (the deadline of a
tick, the ceiling of an hour) are those of the profile with which the tick ran; without them the
figures stand alone. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict

from agent_config import MAX_REQUESTS
from agents.contracts import SourceType
from agents.debate.asking import REQUESTS_PER_AGENT
from torra.dashboard.record.rows import TranscriptVoice
from torra.dashboard.record.shown import Decision, TickLimits, TickView
from torra.exhibits import figures
from torra.tick.marks import PROPOSED
from torra.tick.tick_record import TickRecord
from torra.words.badge import Badge, capital
from torra.words.orders import REASONS
from torra.words.ticks import FLAGS, UNHEARD

STATES: Final = ("answered", "abstained", "failed", "not asked")
LOOKS: Final = ("second_look", "first_look_stands")

OFFICER: Final = {
    "macro.vix_rank": "VIX",
    "derivs.funding_rank": "funding",
    "derivs.long_liquidations_rank": "liquidations",
}
"""What rows of the risk officer read that may have no source (agents.risk_officer)."""

UNSOURCED: Final = "no source of {} is set, so this row of the risk officer is silent: no fault"

ROUND: Final = "answered in an earlier round, which counts"
"""Meaning of a flag round_N_without."""


class FlagLine(TypedDict):
    """A flag of a sitting: its word, what it is about, and its meaning."""

    flag: str
    meaning: str
    about: str


class LimitShare(TypedDict):
    """The share of a limit that was used: in words, and as the width of a bar."""

    share: str
    width: float | None
    over: bool


class Count(TypedDict):
    """How many agents ended in a state."""

    mark: Badge
    count: int


class Seat(TypedDict):
    """An agent, its state, and the anchor of its words."""

    title: str
    mark: Badge
    anchor: str


class SummaryStrip(TypedDict):
    """The strip: counts, seats, requests, flags, cost and time."""

    counts: list[Count]
    proposed: str
    seats: list[Seat]
    requests: str
    most: int
    retries: str
    looks: str
    late: str
    flags: list[FlagLine]
    cost: LimitShare
    ceiling: str
    took: LimitShare
    deadline: str
    seconds: str


def summary(record: TickView, agents: Sequence[TranscriptVoice]) -> SummaryStrip:
    """Return the strip: counts, seats, requests, flags, cost and time."""
    flags, calls, limits = (
        record.deliberation.flags,
        record.made_calls,
        record.limits or TickLimits(),
    )
    looks = sum(flag.partition(":")[0] in LOOKS for flag in flags)
    repeated = sum(call.attempt > 1 for call in calls)
    return {
        "counts": _counts(agents),
        "proposed": REASONS[PROPOSED] if proposed(record) else "",
        "seats": [
            {"title": one["title"], "mark": one["mark"], "anchor": one["anchor"]} for one in agents
        ],
        "requests": figures.plain(len(calls), 0),
        "most": MAX_REQUESTS + (REQUESTS_PER_AGENT if record.company is not None else 0),
        # a second look is a repeated request too, but not because the first one failed
        "retries": figures.plain(max(0, repeated - looks), 0),
        "looks": figures.plain(looks, 0),
        "late": figures.plain(sum(call.status == "late" for call in calls), 0),
        "flags": [told(flag) for flag in flags],
        "cost": _against(record.cost_usd, limits.ceiling),
        "ceiling": figures.money(limits.ceiling, 2),
        "took": _against(record.elapsed_ms, _ms(limits.timeout_seconds)),
        "deadline": figures.plain(limits.timeout_seconds, 0),
        "seconds": _seconds(record.elapsed_ms),
    }


def proposed(record: Decision) -> bool:
    """Return whether a tick held because its trade was proposed to a person."""
    return record.reason == PROPOSED


def told(flag: str) -> FlagLine:
    """Return a flag of a sitting: its word, what it is about, and its meaning."""
    word, _, rest = flag.partition(":")
    meaning = ROUND if word.startswith("round_") else FLAGS.get(word, "")
    if word == "silent" and rest in OFFICER:
        meaning = UNSOURCED.format(OFFICER[rest])
    return {
        "flag": figures.sanitize(flag, 120),
        "meaning": meaning,
        "about": figures.sanitize(rest, 60),
    }


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


def _counts(agents: Sequence[TranscriptVoice]) -> list[Count]:
    words = [agent["mark"].word for agent in agents]
    return [
        {"mark": figures.mark(state), "count": words.count(state)}
        for state in STATES
        if state in words
    ]


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _seconds(ms: float | None) -> str:
    return figures.DASH if ms is None else f"{figures.plain(ms / 1000, 2)} s"


def _against(known: float | None, most: float | None) -> LimitShare:
    if known is None or not most or most < 0:
        return {"share": "", "width": None, "over": False}
    share = known / most
    words = "under 1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")
    return {"share": words, "width": round(min(1.0, share) * 100, 2), "over": share > 1}
